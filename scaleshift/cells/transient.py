"""Which failures of a file system pass by themselves?  They are waited for, a little; others are not."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

WAITS = (0.2, 1.0, 5.0)  # seconds before each new try
PASSING = frozenset(
    {errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ETIMEDOUT, errno.ENETUNREACH}
    | {errno.EHOSTUNREACH, errno.ENETRESET, errno.EREMOTEIO}
)
DAMAGED = "restore it from a copy or write the study again"
SEE_TO_IT = "its file system failed several times: see to it, then run again"
Found = TypeVar("Found")


def patiently(read: Callable[[], Found]) -> Found:
    """What `read` gives; tried again where its error is one that passes, as those of network file systems.

    A file that is missing, or whose bytes are wrong, stays so: that is raised at once.

    Examples
    --------
    >>> patiently(lambda: 1)
    1
    """
    for seconds in WAITS:
        try:
            return read()
        except Exception as error:  # stores wrap the errors of their file systems
            if not passes(error):
                raise
        time.sleep(seconds)
    return read()


def passes(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, may be gone at the next try.

    Examples
    --------
    >>> passes(OSError(errno.ESTALE, "Stale file handle")), passes(FileNotFoundError("c/0"))
    (True, False)
    """
    while error is not None:
        if isinstance(error, ConnectionError | TimeoutError):  # fsspec's too
            return True
        if isinstance(error, OSError) and error.errno in PASSING:
            return True
        error = error.__cause__
    return False
