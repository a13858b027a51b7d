"""What is said when there is no room on a disk? Zarr's own error names no file."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from zarr.core.sync import sync

from scaleshift.errors import DataError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def told(path: str | os.PathLike[str], way_out: str) -> Iterator[None]:
    """Raise a DataError that names `path` where what is done within finds its disk full.

    Examples
    --------
    >>> with told("study.zarr", "then write it again"):
    ...     pass
    """
    try:
        yield
    except OSError as error:
        settle()
        if error.errno not in FULL:
            raise
        raise DataError(
            f"{os.fspath(path)} cannot be written, the disk is full ({error.strerror}): make room, {way_out}"
        ) from error


def settle() -> None:
    """Wait until nothing is written any more: where one chunk fails, zarr goes on with the others.

    Examples
    --------
    >>> settle()
    """
    sync(_others())


async def _others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=60)
