"""One BLAS thread while Dask gives the threads: BLAS threads of their own would oversubscribe the cores."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import threadpoolctl

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread; the last of several concurrent users gives its threads back.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()
