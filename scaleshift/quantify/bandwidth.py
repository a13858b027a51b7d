"""Which bandwidth tells the classes apart best?  Chosen from a subsample of the source alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from scaleshift.errors import DataError
from scaleshift.quantify import geometry

SUBSAMPLE = 2_000
LEAST = 20  # rows of a class: fewer make its embedding noise, and the choice with it
LADDER = range(2, -9, -1)  # bandwidth = median distance * 2**(k / 2), widest first
ONE_CLASS = -3  # near the usual choice, .35 x median distance, where there is nothing to tell apart
CRITERIA = {"delta_min": geometry.delta_min, "lambda_min": geometry.lambda_min}


def select(drawn: Mapping[str, np.ndarray], counts: np.ndarray, criterion: str) -> float:
    """Bandwidth of the Gaussian kernel that maximises `criterion` on a subsample.

    Parameters
    ----------
    drawn : mapping
        What `passes.sample` gives, by class: at least the rows that `allocation` asks for.
    counts : numpy.ndarray, shape (n_labels,)
        Labelled rows of each class.
    criterion : {"delta_min", "lambda_min"}

    Returns
    -------
    float
        In the units of the rows.

    Raises
    ------
    DataError
        If there are no two labelled, finite rows, or they do not differ.
    """
    code = drawn["code"]
    rank = np.arange(len(code)) - np.searchsorted(code, code)  # codes ascend, keys ascend within a code
    used = rank < allocation(counts)[code]
    return best(drawn["x"][used].astype(np.float64), code[used], criterion)


def checked(bandwidth: Any) -> Any:
    """A bandwidth as it was given; DataError unless it is "auto" or a positive number."""
    if isinstance(bandwidth, str):
        if bandwidth == "auto":
            return bandwidth
    elif isinstance(bandwidth, int | float | np.number) and 0 < bandwidth < np.inf:
        return bandwidth
    raise DataError(f"bandwidth={bandwidth!r}: expected 'auto' or a positive number, in the units of X")


def allocation(counts: np.ndarray) -> np.ndarray:
    """Rows of each class in the subsample: by class size, at least 20 of each where there is room.

    Of more than 1 000 classes the largest are taken, so that the subsample stays one.
    """
    largest = np.argsort(-counts, kind="stable")[: SUBSAMPLE // 2]
    share = np.zeros(len(counts), np.int64)
    least = min(max(SUBSAMPLE // len(counts), 2), LEAST)
    share[largest] = np.maximum(np.rint(SUBSAMPLE * counts[largest] / max(counts.sum(), 1)), least)
    return np.minimum(counts, share)


def best(x: np.ndarray, code: np.ndarray, criterion: str) -> float:
    """The same from the subsample itself: x (n, n_markers), code (n,).

    One exponential at the widest bandwidth; the narrower ones are its squares.
    """
    if len(x) < 2:
        raise DataError(f"bandwidth='auto' needs 2 labelled, finite rows, found {len(x)}: pass a number")
    with np.errstate(over="ignore"):
        squared = pdist(x, "sqeuclidean")
    median = float(np.sqrt(np.median(squared)))
    if median == np.inf:
        raise DataError("bandwidth='auto': distances overflow; bring the markers to a scale near 1")
    if not median > 0:
        raise DataError(
            "bandwidth='auto' needs labelled rows that differ, but half of the pairs are equal: pass a number"
        )
    ladder = [median * 2 ** (k / 2) for k in LADDER]
    present, group, sizes = np.unique(code, return_inverse=True, return_counts=True)
    used = sizes > 1  # the debiased norm of a one-cell class does not exist
    if used.sum() < 2:
        return ladder[LADDER.index(ONE_CLASS)]
    mean = np.zeros((len(present), len(x)))
    mean[group, np.arange(len(x))] = 1 / sizes[group]
    kernel = squareform(np.exp(squared / (-2 * ladder[0] ** 2)))
    np.fill_diagonal(kernel, 1)
    grams = []
    for _ in ladder:
        grams.append((mean @ kernel @ mean.T)[np.ix_(used, used)])
        np.multiply(kernel, kernel, out=kernel)
    members = _kinds(grams, sizes[used])  # (n_kinds, n_labels)
    counts = members @ sizes[used]
    if len(counts) < 2:
        return ladder[LADDER.index(ONE_CLASS)]
    average = members * sizes[used] / counts[:, None]
    worth = [CRITERIA[criterion](geometry.debiased(average @ g @ average.T, counts)) for g in grams]
    return ladder[int(np.argmax(worth))]


def _kinds(grams: list[np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """Classes that no bandwidth tells apart, taken together: 0 or 1, (n_kinds, n_labels).

    One population under two names would leave nothing but noise to choose by. Two classes are told apart
    where their debiased distance exceeds its noise beyond doubt.
    """
    apart = np.zeros((len(sizes), len(sizes)), bool)
    for gram in grams:
        clean = geometry.debiased(gram, sizes)
        norm, noise = np.diag(clean), geometry.sampling_noise(clean, sizes)
        distance = norm[:, None] + norm - 2 * clean  # squared
        apart |= distance > geometry.BEYOND_DOUBT * (noise[:, None] + noise)
    n, kind = connected_components(~apart, directed=False)
    return (np.arange(n)[:, None] == kind).astype(float)
