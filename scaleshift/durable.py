"""What stands on the disk after a power cut?  What was synced before the rename that makes it count."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 16
NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # of file systems that sync no folders


def sync_tree(folder: Path) -> None:
    """Wait until all files of a folder, and their names in it, are on the disk."""
    paths = [Path(parent, name) for parent, _, files in os.walk(folder) for name in (*files, "")]
    with ThreadPoolExecutor(AT_ONCE) as threads:  # disks and servers write many in the time of one
        list(threads.map(sync, paths))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; Windows has no such wait for folders."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if not is_folder or error.errno not in NO_FOLDERS:
            raise
    finally:
        os.close(handle)
