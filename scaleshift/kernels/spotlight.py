"""What does one step of a spotlight sum?  The truth in float64, on any array; rows are taken in tiles.

A spotlight has a mean mu, a precision p and, where it is saturated, a squared radius q. With r = |x - mu|^2
a row has the weight

    gaussian      u = exp(-p r / 2), saturated u = 1 / (1 + exp(p (r - q) / 2)): odds exp(-p (r - q) / 2)
    epanechnikov  u = max(0, 1 - p r)

and the slope s = -2 du / d(p r), from which all derivatives are made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels.reference import Array, namespace, tile_rows, to_numpy

SHAPES = ("gaussian", "epanechnikov")
_HIGHEST = 700.0  # exponent that float64 still holds


class Spotlights(NamedTuple):
    """One or several spotlights, which one pass serves."""

    shape: str  # one of SHAPES
    means: np.ndarray  # (R, d)
    precisions: np.ndarray  # (R,)
    radii: np.ndarray | None = None  # (R,) squared; where given, the gaussian shape is saturated

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.means.nbytes


def layout_of(spotlights: Spotlights) -> dict[str, tuple[int, ...]]:
    """Shapes of the sums."""
    one, each = (len(spotlights.means),), spotlights.means.shape
    return {
        "weight": one,
        "loss": one,
        "slope": one,
        "slope_loss": one,
        "x": each,
        "x_loss": each,
        "r": one,
        "r_loss": one,
    }


def spotlight_sums(
    x: Array, loss: Array, weight: Array | None, spotlights: Spotlights, squares: Array | None = None
) -> dict[str, np.ndarray]:
    """Sum over the rows of a block what the objective and its gradient are made of.

    Parameters
    ----------
    x : (n, d) array
        Embeddings, free of NaN.
    loss : (n,) array
        Losses l, less what earlier spotlights explain.
    weight : (n,) array or None
        Weights v of the rows, 1 where None; a row of weight 0 adds nothing.
    spotlights : Spotlights
    squares : (n,) array, optional
        |x|^2, where it is known already.

    Returns
    -------
    dict of float64 numpy.ndarray
        weight (R,): sum of v u; loss (R,): of v u l; slope (R,): of v s; slope_loss (R,): of v s l;
        x (R, d): of v s (x - mu); x_loss (R, d): of v s l (x - mu); r (R,): of v s r; r_loss (R,): of
        v s l r.

    Examples
    --------
    >>> one = Spotlights("epanechnikov", np.zeros((1, 1)), np.array([0.25]))
    >>> sums = spotlight_sums(np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 2.0, 9.0]), None, one)
    >>> sums["weight"].tolist(), sums["loss"].tolist(), sums["r"].tolist()
    ([1.75], [2.5], [2.0])
    """
    xp = namespace(x)
    means = xp.asarray(spotlights.means)
    n_rows = tile_rows(x, max(means.shape))
    total: Any = 0.0
    for start in range(0, max(len(x), 1), n_rows):
        rows = slice(start, start + n_rows)
        tile = xp.asarray(x[rows], dtype=np.float64)
        r = _distances(xp, tile, means, None if squares is None else squares[rows])
        u, s = _light(xp, r, spotlights)
        losses = xp.asarray(loss[rows], dtype=np.float64)
        if weight is not None:
            v = xp.asarray(weight[rows], dtype=np.float64)
            u, s = u * v, s * v
        both = xp.concatenate([s, s * losses])  # (2 R, n)
        by_distance = both * xp.concatenate([r, r])
        parts = [u.sum(axis=1), u @ losses, both.sum(axis=1), by_distance.sum(axis=1), (both @ tile).ravel()]
        total = total + xp.concatenate(parts)
    return _named(to_numpy(total), spotlights.means)


def light(x: Array, spotlights: Spotlights) -> np.ndarray:
    """Weights u of rows, (n, R) float64.

    Examples
    --------
    >>> light(np.array([[0.0], [2.0]]), Spotlights("gaussian", np.zeros((1, 1)), np.array([0.5]))).round(4)
    array([[1.    ],
           [0.3679]])
    """
    xp = namespace(x)
    result = np.empty((len(x), len(spotlights.means)))
    n_rows = tile_rows(x, max(spotlights.means.shape))
    for start in range(0, len(x), n_rows):
        tile = xp.asarray(x[start : start + n_rows], dtype=np.float64)
        u, _ = _light(xp, _distances(xp, tile, xp.asarray(spotlights.means), None), spotlights)
        result[start : start + n_rows] = to_numpy(u).T
    return result


def distances(x: Array, means: np.ndarray) -> np.ndarray:
    """Squared distances of rows and means, (n, R) float64. Of few rows: nothing is cut into tiles here."""
    xp = namespace(x)
    return to_numpy(_distances(xp, xp.asarray(x, dtype=np.float64), xp.asarray(means), None)).T


def _distances(xp: Any, x: Array, means: Array, squares: Array | None) -> Array:
    """(R, n): a spotlight's rows lie side by side."""
    squares = (x * x) @ xp.ones(x.shape[1]) if squares is None else squares
    return xp.maximum((-2 * means) @ x.T + squares + (means * means).sum(axis=1)[:, None], 0.0)


def _light(xp: Any, r: Array, spotlights: Spotlights) -> tuple[Array, Array]:
    """Weights u and slopes s of squared distances, (R, n) each."""
    p = xp.asarray(spotlights.precisions)[:, None]
    if spotlights.shape == "epanechnikov":
        u = xp.maximum(1 - p * r, 0.0)
        return u, 2.0 * (u > 0)
    if spotlights.radii is None:
        u = xp.exp(-0.5 * p * r)
        return u, u
    u = 1 / (1 + xp.exp(xp.minimum(0.5 * p * (r - xp.asarray(spotlights.radii)[:, None]), _HIGHEST)))
    return u, u * (1 - u)


def _named(packed: np.ndarray, means: np.ndarray) -> dict[str, np.ndarray]:
    """The sums by name; those of x still about zero, to be moved about the means."""
    k, (n, d) = len(means), means.shape
    weight, loss, slope, slope_loss, r, r_loss = packed[: 6 * k].reshape(6, k)
    x, x_loss = packed[6 * k :].reshape(2, n, d)
    return {
        "weight": weight,
        "loss": loss,
        "slope": slope,
        "slope_loss": slope_loss,
        "x": x - slope[:, None] * means,
        "x_loss": x_loss - slope_loss[:, None] * means,
        "r": r,
        "r_loss": r_loss,
    }
