"""What comes from another process lies at any byte: how do its arrays come to lie where numpy wants them?

numpy keeps BLAS and its own fast loops from arrays that are not aligned, and then adds in another order:
other bits, and slowly; numba compiles a version of its own for them. So all that may have travelled is
aligned where a task takes it up, and where the driver does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse


def aligned(value: Any) -> Any:
    """The same value, its arrays aligned, those in dicts, lists and tuples too; aligned ones are not copied.

    Examples
    --------
    >>> travelled = np.zeros(17, np.uint8)[1:].view(np.float64)
    >>> aligned({"x": [travelled]})["x"][0].flags.aligned
    True
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else np.require(value, requirements="A")
    if sparse.issparse(value) and value.format == "csr":
        parts = [value.data, value.indices, value.indptr]
        if all(part.flags.aligned for part in parts):
            return value
        return type(value)(tuple(map(aligned, parts)), shape=value.shape)
    if type(value) is dict:
        return {name: aligned(part) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(aligned, value))
    if type(value) in (list, tuple):
        return type(value)(map(aligned, value))
    return value


class Carried:
    """A large parameter of any kind: pickled with its arrays inside, which are aligned where they arrive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        from distributed.protocol import pickle

        return _arrived, (pickle.dumps(self.value),)

    def __sizeof__(self) -> int:
        """What Dask takes it to weigh in a worker's memory."""
        return nbytes(self.value)


def _arrived(pickled: bytes) -> Carried:
    from distributed.protocol import pickle

    return Carried(pickle.loads(pickled))


def nbytes(value: Any) -> int:
    """Bytes of a parameter, of the parts of a list or tuple together."""
    return sum(map(nbytes, value)) if isinstance(value, list | tuple) else int(getattr(value, "nbytes", 0))


def unpacked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as kernels take them."""
    return {name: v.value if isinstance(v, Carried) else v for name, v in parameters.items()}
