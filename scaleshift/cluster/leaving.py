"""How does a worker process end?  Dask loads this into workers that `connect` starts on this machine.

As Python ends it looks through all objects for what can be freed, half a second of processor time with
numba's compiled code about. All workers do it together, and a nanny kills with a warning what lasts longer
than 4 s.
"""

from __future__ import annotations

import contextlib
import gc
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to whoever started the worker: a terminal sends it to all, and each would tell of it."""
    with contextlib.suppress(ValueError):  # not the main thread, where signals are nobody's business
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def dask_teardown(worker: Any) -> None:
    """Leave the memory to the system, which takes it back as the process ends."""
    gc.freeze()
