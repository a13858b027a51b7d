"""How does a worker process end at once?  Dask loads this into workers that `connect` starts on this machine.

As Python ends it looks through all objects for what can be freed, half a second of processor time with
numba's compiled code about. All workers do it together, and a nanny kills with a warning what lasts longer
than 4 s.
"""

from __future__ import annotations

import gc
from typing import Any


def dask_teardown(worker: Any) -> None:
    """Leave the memory to the system, which takes it back as the process ends."""
    gc.freeze()
