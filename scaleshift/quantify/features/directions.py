"""How are directions drawn that cover the sphere more evenly than independent ones?  In orthogonal blocks."""

from __future__ import annotations

import numpy as np


def directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors (n, d), each uniform on the sphere, and d at a time orthogonal to each other.

    Examples
    --------
    >>> found = directions(4, 2, np.random.default_rng(0))
    >>> np.abs(found[:2] @ found[:2].T).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    blocks = []
    for _ in range(-(-n // d)):
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        blocks.append((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)  # without the signs it is not uniform
    return np.concatenate(blocks)[:n]
