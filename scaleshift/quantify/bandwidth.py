"""Which bandwidth tells the classes apart best?  Chosen from a subsample of the source alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from scaleshift.errors import DataError
from scaleshift.kernels.families import KERNELS, Kernel
from scaleshift.quantify import geometry

SUBSAMPLE = 2_000
LEAST = 20  # rows of a class: fewer make its embedding noise, and the choice with it
LADDER = range(2, -9, -1)  # bandwidth = median distance * 2**(k / 2), widest first
ONE_CLASS = -3  # near the usual choice, .35 x median distance, where there is nothing to tell apart
CRITERIA = {"delta_min": geometry.delta_min, "lambda_min": geometry.lambda_min}


def select(
    drawn: Mapping[str, np.ndarray], counts: np.ndarray, criterion: str, kernel: str = "gaussian"
) -> float:
    """Bandwidth of a kernel that maximises `criterion` on a subsample.

    Parameters
    ----------
    drawn : mapping
        What `passes.sample` gives, by class: at least the rows that `allocation` asks for.
    counts : numpy.ndarray, shape (n_labels,)
        Labelled rows of each class.
    criterion : {"delta_min", "lambda_min"}
    kernel : str, default "gaussian"
        A name in `scaleshift.kernels.families.KERNELS`.

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
    return best(drawn["x"][used].astype(np.float64), code[used], criterion, kernel)


def checked(bandwidth: Any) -> Any:
    """A bandwidth as it was given; DataError unless it is "auto" or a positive number."""
    if isinstance(bandwidth, str):
        if bandwidth == "auto":
            return bandwidth
    elif isinstance(bandwidth, int | float | np.number) and 0 < bandwidth < np.inf:
        return bandwidth
    raise DataError(f"bandwidth={bandwidth!r}: expected 'auto' or a positive number, in the units of X")


def allocation(counts: np.ndarray, size: int = SUBSAMPLE) -> np.ndarray:
    """Rows of each class in a subsample: by class size, at least 20 of each where there is room.

    Of more classes than half of the rows the largest are taken, so that the subsample stays one.
    """
    largest = np.argsort(-counts, kind="stable")[: size // 2]
    share = np.zeros(len(counts), np.int64)
    least = min(max(size // len(counts), 2), LEAST)
    share[largest] = np.maximum(np.rint(size * counts[largest] / max(counts.sum(), 1)), least)
    return np.minimum(counts, share)


def best(x: np.ndarray, code: np.ndarray, criterion: str, kernel: str = "gaussian") -> float:
    """The same from the subsample itself: x (n, n_markers), code (n,).

    The ladder begins at the median distance, Manhattan's for the Laplace kernel.
    """
    if len(x) < 2:
        raise DataError(f"bandwidth='auto' needs 2 labelled, finite rows, found {len(x)}: pass a number")
    family = KERNELS[kernel]
    with np.errstate(over="ignore"):
        distances = pdist(x, family.metric or "sqeuclidean")
    median = float(np.median(distances)) ** (0.5 if family.metric in (None, "sqeuclidean") else 1)
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
    if family.metric is None:
        every = _product_grams(family, x, ladder, mean)
    else:
        every = [mean @ values @ mean.T for values in _ladder(family, distances, ladder)]
    grams = [gram[np.ix_(used, used)] for gram in every]
    members = _kinds(grams, sizes[used])  # (n_kinds, n_labels)
    counts = members @ sizes[used]
    if len(counts) < 2:
        return ladder[LADDER.index(ONE_CLASS)]
    average = members * sizes[used] / counts[:, None]
    worth = [CRITERIA[criterion](geometry.debiased(average @ g @ average.T, counts)) for g in grams]
    return ladder[int(np.argmax(worth))]


def _ladder(family: Kernel, distances: np.ndarray, widths: list[float]) -> Iterator[np.ndarray]:
    """Kernel values between all rows, (n, n), at each bandwidth, widest first; valid until the next.

    Of the Gaussian kernel one exponential at the widest bandwidth; the narrower ones are its squares.
    """
    if family.name == "gaussian":
        values = squareform(np.exp(distances / (-2 * widths[0] ** 2)))
        np.fill_diagonal(values, 1)
        for _ in widths:
            yield values
            np.multiply(values, values, out=values)
        return
    single = distances.astype(np.float32)  # digits enough to choose by, in half of the time
    for width in widths:
        values = squareform(family.profile(single / np.float32((family.unit * width) ** family.degree)))
        np.fill_diagonal(values, 1)
        yield values


def _product_grams(family: Kernel, x: np.ndarray, widths: list[float], mean: np.ndarray) -> list[np.ndarray]:
    """Gram matrices of class means (n_labels, n_labels) at each bandwidth, of a product over columns.

    Each squared difference serves all bandwidths; tiles of 8 rows with all rows from there on fit the cache.
    """
    grams = [np.zeros((len(mean), len(mean))) for _ in widths]
    for start in range(0, len(x), 8):
        stop = min(start + 8, len(x))
        products = np.ones((len(widths), stop - start, len(x) - start), np.float32)
        for column in x.T:
            squares = ((column[start:stop, None] - column[start:]) ** 2).astype(np.float32)
            for product, width in zip(products, widths, strict=True):
                factor = squares / np.float32(width**2)
                factor += 1
                with np.errstate(over="ignore"):  # the kernel is 0 there
                    product *= factor
        here, below = mean[:, start:stop], mean[:, stop:]
        for gram, product in zip(grams, products, strict=True):
            values = family.profile(product)
            within, beyond = values[:, : stop - start], values[:, stop - start :]
            both = here @ beyond @ below.T
            gram += here @ within @ here.T + both + both.T
    return grams


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
