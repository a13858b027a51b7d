"""Additive statistics: named float64 arrays that travel as one vector and can be added in any chunking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Layout = Mapping[str, tuple[int, ...]]
State = TypeVar("State")


def size(layout: Layout) -> int:
    """Number of float64 values in a packed state."""
    return sum(math.prod(shape) for shape in layout.values())


def pack(arrays: Mapping[str, Any], layout: Layout, lead: tuple[int, ...] = ()) -> np.ndarray:
    """Named arrays as one float64 vector, in the layout's order.

    Parameters
    ----------
    arrays : mapping of name to array-like, shape lead + layout[name]
    layout : mapping of name to shape
    lead : tuple of int, default ()
        Leading axes that every array shares (one state a key).

    Returns
    -------
    numpy.ndarray of float64, shape lead + (size(layout),)

    Raises
    ------
    ValueError
        If names or shapes differ from the layout: a fault in a kernel.

    Examples
    --------
    >>> pack({"n": 2, "sum": [1.0, 3.0]}, {"n": (), "sum": (2,)}).tolist()
    [2.0, 1.0, 3.0]
    """
    if set(arrays) != set(layout):
        raise ValueError(f"kernel returned {sorted(arrays)}, its layout says {sorted(layout)}")
    parts = []
    for name, shape in layout.items():
        values = np.asarray(arrays[name], np.float64)
        if values.shape != lead + shape:
            raise ValueError(f"kernel returned {name!r} of shape {values.shape}, expected {lead + shape}")
        parts.append(values.reshape((*lead, math.prod(shape))))
    return np.concatenate(parts, axis=-1)


def unpack(packed: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    """Views of a packed state by name: the inverse of `pack`, leading axes kept."""
    arrays, position = {}, 0
    for name, shape in layout.items():
        width = math.prod(shape)
        arrays[name] = packed[..., position : position + width].reshape(packed.shape[:-1] + shape)
        position += width
    return arrays


def tree(states: Sequence[State], merge: Callable[[State, State], State]) -> State:
    """Merge neighbours pairwise until one state is left.

    Cutting the row of states at multiples of a power of two and merging the parts first gives the same
    bits: how blocks are grouped into tasks does not show in the result.
    """
    states = list(states)
    while len(states) > 1:
        pairs = [merge(a, b) for a, b in zip(states[::2], states[1::2], strict=False)]
        states = pairs + states[2 * len(pairs) :]
    return states[0]


class Folder:
    """The same tree for states that arrive one after the other; holds log2(n) of them."""

    def __init__(self, merge: Callable[[Any, Any], Any]):
        self.merge = merge
        self.stack: list[tuple[int, Any]] = []

    def push(self, state: Any) -> None:
        """Take the next state in row order."""
        level = 0
        while self.stack and self.stack[-1][0] == level:
            state = self.merge(self.stack.pop()[1], state)
            level += 1
        self.stack.append((level, state))

    def result(self) -> Any:
        """Everything pushed so far, merged."""
        state = self.stack[-1][1]
        for _, earlier in reversed(self.stack[:-1]):
            state = self.merge(earlier, state)
        return state
