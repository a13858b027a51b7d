"""Is a path a file that ends, or a pipe or a device, which is never opened?"""

from __future__ import annotations

import os
import stat

from scaleshift.errors import DataError

FOLDER = "is a folder: name the files in it"
ODD = {
    stat.S_IFIFO: "is a pipe: write it to a file first",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
}


def refuse_odd(path: str | os.PathLike[str], folders: bool = False) -> None:
    """Raise DataError for what is there, but is no regular file; what is not there is told when it is opened.

    Parameters
    ----------
    path : path
        Links are followed.
    folders : bool, default False
        Whether a folder will do.

    Raises
    ------
    DataError
        If it is a pipe, a device, a socket, or a folder.

    Examples
    --------
    >>> refuse_odd(os.devnull)
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: /dev/null: is a device, not a file
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISREG(mode) or (folders and stat.S_ISDIR(mode)):
        return
    words = FOLDER if stat.S_ISDIR(mode) else ODD.get(stat.S_IFMT(mode), "is not a file")
    raise DataError(f"{os.fspath(path)}: {words}")
