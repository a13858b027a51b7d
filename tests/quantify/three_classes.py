"""Three clear classes in three markers."""

import numpy as np

CENTRES = np.array([[-4.0, 0, 0], [0, 4, 0], [4, 0, 4]])
LABELS = np.array(["a", "b", "c"])


def draw(n, shares, seed):
    """Rows (n, 3) and labels (n,)."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    return (CENTRES[y] + rng.standard_normal((n, 3))).astype("f4"), LABELS[y]
