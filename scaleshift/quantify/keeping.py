"""Which passes has a killed fit made?  Those in its checkpoint, of this source and these parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from scaleshift import checkpoint
from scaleshift.blocks.block import Rows
from scaleshift.blocks.resuming import columns_told, kept_in, rows_told
from scaleshift.encoding import encode
from scaleshift.errors import DataError
from scaleshift.user_objects import told

# Parameters that no pass over the source knows; the seed stands for the random state.
ELSEWHERE = ("checkpoint", "random_state", "level", "resample", "soft", "unknown", "n_bootstrap")
Kept = Callable[[str, Callable[[], Any]], Any]


class Model(Protocol):
    """A quantifier that takes a checkpoint."""

    checkpoint: Any
    n_bootstrap: int

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Of its constructor."""


def kept_of(model: Model, rows: Rows, seed: int) -> Kept:
    """What a pass gives, by its name: made now, or found in the folder of the checkpoint.

    Raises
    ------
    DataError
        If the folder is that of another job.
    """
    if model.checkpoint is None:
        return _made
    given = model.get_params(deep=False).items()
    columns = [name for name in ("label", "sample") if name in rows.columns]
    job = {
        "model": type(model).__name__,
        "parameters": {name: _told(value) for name, value in given if name not in ELSEWHERE},
        "folds": bool(model.n_bootstrap),
        "rows": rows_told(rows),
        "columns": columns_told(rows.only(*columns)),
        "names": [rows.categories(name).tolist() for name in columns],
        "seed": seed,
    }
    return kept_in(model.checkpoint, checkpoint.fingerprint(job), seed)


def _made(name: str, make: Callable[[], Any]) -> Any:
    """Without a folder."""
    return make()


def _told(value: Any) -> Any:
    """What tells a parameter from others: all of it, of users' own objects their parameters."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    try:
        tree, arrays = encode(value)
    except DataError:
        return told(value)
    return [tree, {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}]
