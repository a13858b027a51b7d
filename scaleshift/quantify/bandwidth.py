"""Which bandwidth tells the classes apart best?  Chosen from a subsample of the source alone."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform

from scaleshift.blocks import passes
from scaleshift.blocks.rows import Rows
from scaleshift.errors import DataError
from scaleshift.quantify import geometry

SUBSAMPLE = 2_000
LADDER = range(2, -9, -1)  # bandwidth = median distance * 2**(k / 2), widest first
ONE_CLASS = -3  # near the usual choice, .35 x median distance, where there is nothing to tell apart
CRITERIA = {"delta_min": geometry.delta_min, "lambda_min": geometry.lambda_min}


def select(rows: Rows, counts: np.ndarray, criterion: str, seed: int) -> float:
    """Bandwidth of the Gaussian kernel that maximises `criterion` on a subsample: one pass.

    Parameters
    ----------
    rows : Rows
        With a column "label".
    counts : numpy.ndarray, shape (n_labels,)
        Labelled rows of each class.
    criterion : {"delta_min", "lambda_min"}
    seed : int

    Returns
    -------
    float
        In the units of the rows.

    Raises
    ------
    DataError
        If the criterion is unknown, or the labelled rows do not differ at all.
    """
    if criterion not in CRITERIA:
        raise DataError(f"criterion={criterion!r}: expected one of {', '.join(CRITERIA)}")
    drawn = passes.sample(rows, allocation(counts), by="label", seed=seed)
    return best(drawn["x"].astype(np.float64), drawn["code"], criterion)


def allocation(counts: np.ndarray) -> np.ndarray:
    """Rows of each class in the subsample: by class size, at least 2 where there are 2."""
    share = np.rint(SUBSAMPLE * counts / max(counts.sum(), 1)).astype(np.int64)
    return np.minimum(counts, np.maximum(share, 2))


def best(x: np.ndarray, code: np.ndarray, criterion: str) -> float:
    """The same from the subsample itself: x (n, n_markers), code (n,).

    One exponential at the widest bandwidth; the narrower ones are its squares.
    """
    squared = pdist(x, "sqeuclidean")
    median = float(np.sqrt(np.median(squared))) if squared.size else 0.0
    if not median > 0:
        raise DataError(
            "bandwidth='auto' needs labelled rows that differ, and half of the pairs do not: pass a number"
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
    worth = []
    for _ in ladder:
        gram = (mean @ kernel @ mean.T)[np.ix_(used, used)]
        worth.append(CRITERIA[criterion](geometry.debiased(gram, sizes[used])))
        np.multiply(kernel, kernel, out=kernel)
    return ladder[int(np.argmax(worth))]
