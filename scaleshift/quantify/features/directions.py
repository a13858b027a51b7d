"""How are directions drawn that cover the sphere more evenly than independent ones?"""

from __future__ import annotations

import numpy as np

SPREAD = 1_000  # directions: the force between all pairs costs their square
STEPS = 100
LONGEST = 0.03  # step, in radians


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
    # In the memory order that it has after saving and loading: another one gives other bits.
    return np.ascontiguousarray(np.concatenate(blocks)[:n])


def spread_directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors (n, d) that cover the lines through 0 evenly: `directions` that then repel each other.

    The mean of |w.v| over 256 of them varies with v by a fifth of what it does over orthogonal blocks for
    d = 5, half for d = 10. Of over 1 000 directions the blocks stay as they are: they are many enough.
    """
    w = directions(n, d, rng)
    if not d < n <= SPREAD:
        return w
    for step in range(STEPS):
        cosine = w @ w.T
        # Coulomb's force between lines, of the potential 1 / sin of their angle.
        pull = cosine / np.maximum(1 - cosine**2, 1e-6) ** 1.5
        np.fill_diagonal(pull, 0)
        force = -pull @ w
        force -= (force * w).sum(axis=1, keepdims=True) * w
        size = np.linalg.norm(force, axis=1, keepdims=True)
        typical = max(float(np.sqrt((size**2).mean())), 1e-300)
        w += LONGEST * (1 - step / STEPS) * force / np.maximum(typical, size / 3)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return w
