"""Synthetic label-shift problems with contamination, and the errors a plain reference has on them.

Same draws as the project's reference case "synthetic" (MIT, written for this project).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NOISES = ("none", "background", "far", "near")


class Problem(NamedTuple):
    """A labelled source and an unlabelled target whose class shares are known."""

    x: np.ndarray  # (n, d) source
    y: np.ndarray  # (n,) source labels 0 .. c - 1
    target: np.ndarray  # (m, d)
    proportions: np.ndarray  # (c,) realised in the target; they sum to 1 - unknown
    unknown: float
    alpha: np.ndarray  # (c,) what the known target cells were drawn with


def make(
    seed: int, noise: str = "none", eps: float = 0.0, d: int = 5, c: int = 5, n: int = 10_000
) -> Problem:
    """`c` Gaussian classes; a share `eps` of the target comes from none of them."""
    if noise == "none":
        eps = 0.0
    rng = np.random.default_rng(1000 + seed)
    means = rng.normal(0, 3.0, (c, d))
    factors = []
    for _ in range(c):
        a = rng.standard_normal((d, d))
        factors.append(np.linalg.cholesky(a @ a.T / d + 0.5 * np.eye(d)))
    beta = rng.dirichlet(5 * np.ones(c))
    alpha = rng.dirichlet(2 * np.ones(c))
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    near = rng.normal(0, 3.0, d)

    rng = np.random.default_rng([seed, int(eps * 1000), NOISES.index(noise)])

    def draw(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(c, n, p=shares)
        x = np.empty((n, d))
        for i in range(c):
            rows = y == i
            x[rows] = means[i] + rng.standard_normal((rows.sum(), d)) @ factors[i].T
        return x, y

    x, y = draw(beta)
    target, truth = draw(alpha)
    m = round(n * eps / (1 - eps))
    if noise == "background":
        unknown = rng.uniform(target.min(0), target.max(0), (m, d))
    elif noise == "far":
        radius = np.linalg.norm(means - means.mean(0), axis=1).max()
        unknown = means.mean(0) + 3 * radius * direction + rng.standard_normal((m, d))
    elif noise == "near":
        unknown = near + rng.standard_normal((m, d))
    else:
        unknown = np.empty((0, d))
    share = m / (n + m)
    proportions = np.bincount(truth, minlength=c) / n * (1 - share)
    return Problem(x, y, np.vstack([target, unknown]), proportions, share, alpha)
