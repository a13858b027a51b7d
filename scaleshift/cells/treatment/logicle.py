"""What is the logicle scale? A symmetric scale, linear around zero and logarithmic far from it.

After Moore and Parks (2012), Update for the logicle data scale including operational code implementations,
and Parks, Roederer and Moore (2006). An intensity x stands at the place y of the scale where B(y) = x. With
t = |y - x1|, the distance from the place of zero, the biexponential is

    B = sign(y - x1) s (expm1(b t) - k expm1(-d t)),    k = (b / d)^2,

which vanishes at x1 with its second derivative, and has no cancellation: both terms are positive. d solves
2 (ln d - ln b) + w (b + d) = 0, which is Lambert's function, and s puts T at the end of the scale, y = 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import lambertw

from scaleshift.errors import DataError

TILE = 8_192  # values: the temporaries of one tile fit a core's cache
HUGE = 1e100  # in units of s: from here on the scale is a logarithm to the last bit
MAX_EXPONENT = 700.0  # of what float64 can hold
MAX_DECADES = 20.0
MAX_STEPS = 50  # a handful is needed


class Coefficients(NamedTuple):
    """Of the biexponential."""

    x1: float  # place of zero on the scale
    b: float
    d: float
    k: float
    s: float


@functools.lru_cache(maxsize=1_000)
def coefficients(T: float, W: float, M: float, A: float) -> Coefficients:
    """Coefficients for the parameters of a scale.

    Parameters
    ----------
    T : float
        Intensity at the top of the scale, > 0.
    W : float
        Decades of the linear region on either side of zero, from 0 to M / 2.
    M : float
        Decades of the scale, > 0.
    A : float
        Additional decades of negative intensities, from -W to M - 2 W.

    Raises
    ------
    DataError
        If a parameter is outside these bounds.

    Examples
    --------
    >>> round(coefficients(262144, 0.5, 4.5, 0).x1, 3)
    0.111
    """
    given = f"logicle with T={T:g}, W={W:g}, M={M:g}, A={A:g}"
    if not all(map(math.isfinite, (T, W, M, A))) or T <= 0:
        raise DataError(f"{given}: expected numbers, and T, the top of the scale, above 0")
    if not 0 < M <= MAX_DECADES:
        raise DataError(f"{given}: expected M, the decades of the scale, above 0 and at most {MAX_DECADES:g}")
    if not 0 <= W <= M / 2:
        raise DataError(f"{given}: expected W, the linear decades, from 0 to M / 2 = {M / 2:g}")
    if not -W <= A <= M - 2 * W:
        raise DataError(
            f"{given}: expected A, the additional negative decades, from -W to M - 2 W = {M - 2 * W:g}"
        )
    w, b = W / (M + A), (M + A) * math.log(10)
    x1 = A / (M + A) + w
    u = w * b / 2
    d = float(lambertw(u * math.exp(-u)).real) / u * b if u > 0 else b  # (w d / 2) e^(w d / 2) = u e^(-u)
    k = (b / d) ** 2
    s = T / (math.expm1(b * (1 - x1)) - k * math.expm1(-d * (1 - x1)))
    return Coefficients(x1, b, d, k, s)


def forward(
    values: np.ndarray, T: float = 262_144, W: float = 0.5, M: float = 4.5, A: float = 0
) -> np.ndarray:
    """Places of intensities on the scale: T at 1, and 0 at (W + A) / (M + A).

    Parameters
    ----------
    values : array-like
        Intensities of any size; NaN and infinities stay what they are.
    T, W, M, A : float
        As in `coefficients`.

    Returns
    -------
    numpy.ndarray of float64, shape of `values`

    Examples
    --------
    >>> forward([262_144.0, 0.0, -500.0]).round(4).tolist()
    [1.0, 0.1111, -0.1588]
    """
    return _tiled(_places, values, coefficients(T, W, M, A))


def inverse(
    places: np.ndarray, T: float = 262_144, W: float = 0.5, M: float = 4.5, A: float = 0
) -> np.ndarray:
    """Intensities at places of the scale: the inverse of `forward`, with its parameters.

    Examples
    --------
    >>> inverse(forward([-500.0, 0.0, 262_144.0])).round(6).tolist()
    [-500.0, 0.0, 262144.0]
    """
    return _tiled(_intensities, places, coefficients(T, W, M, A))


def _tiled(
    function: Callable[[np.ndarray, Coefficients], np.ndarray], values: np.ndarray, found: Coefficients
) -> np.ndarray:
    """The function of every value, computed in float64, some at a time."""
    values = np.asarray(values)
    flat, result = values.reshape(-1), np.empty(values.size)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for first in range(0, values.size, TILE):
            tile = slice(first, first + TILE)
            result[tile] = function(flat[tile].astype(np.float64), found)
    return result.reshape(values.shape)


def _places(x: np.ndarray, found: Coefficients) -> np.ndarray:
    return found.x1 + np.copysign(_distance(np.abs(x), found), x)


def _distance(x: np.ndarray, found: Coefficients) -> np.ndarray:
    """Distance from the place of zero for x >= 0, by Halley's steps.

    f(t) = B / s - x / s is increasing and convex, so that its tangent at 0, and its exponential alone, lead
    too far: the root lies between 0 and the nearer of the two.
    """
    _, b, d, k, s = found
    v = x / s
    huge = v > HUGE
    any_huge = huge.any()
    if any_huge:
        v[huge] = 0
    furthest = np.minimum(np.log1p(v) / b, v / (b + k * d))
    t, enough = furthest.copy(), 1e-5 * np.minimum(furthest, 1 / b)
    going = np.ones(t.shape, bool)
    for _ in range(MAX_STEPS):
        grown, shrunk = np.expm1(b * t), np.expm1(-d * t)
        slope = b * (grown + 1) + k * d * (shrunk + 1)
        step = (grown - k * shrunk - v) / slope
        step /= 1 - 0.5 * b * b * step * (grown - shrunk) / slope
        # Each value stops by itself: what else is in the tile does not show.
        t = np.where(going, np.clip(t - step, 0, furthest), t)
        going &= np.abs(step) > enough  # the next step would be about its third power
        if not going.any():
            break
    if any_huge:
        t[huge] = (np.log(x[huge]) - math.log(s)) / b
    return t


def _intensities(places: np.ndarray, found: Coefficients) -> np.ndarray:
    x1, b, d, k, s = found
    t = places - x1
    distance = np.abs(t)
    value = s * (np.expm1(b * distance) - k * np.expm1(-d * distance))
    far = b * distance > MAX_EXPONENT
    if far.any():
        value[far] = np.exp(b * distance[far] + math.log(s))
    return np.copysign(value, t)
