"""What are a classifier's probabilities where classes are more or less frequent than where it learned?

Labels that were subsampled (as many of each class, say) are a shift of labels, not of covariates alone:
methods for covariate shift take the training frequencies for those of the target at equal covariates. Correct
the probabilities first.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block
from scaleshift.error.comparators import given
from scaleshift.errors import DataError


def prior_corrected(proba: Any, prior_trained: Any, prior_target: Any) -> Any:
    """Probabilities under another frequency of the classes.

    Parameters
    ----------
    proba : array-like of numbers, shape (n, K)
        Probabilities of rows: numpy, Dask with any chunks, pandas, xarray.
    prior_trained : array-like of numbers, shape (K,)
        Frequency of each class among the rows that the classifier learned from, above 0; sums to 1.
    prior_target : array-like of numbers, shape (K,)
        That where it is used: known, or estimated by a quantifier (`scaleshift.DFM`). Sums to 1.

    Returns
    -------
    numpy.ndarray or dask.array.Array of float64, shape (n, K)
        proba * prior_target / prior_trained, of each row divided by its sum; NaN where that is 0. Lazy where
        `proba` is Dask.

    Raises
    ------
    DataError
        If `proba` are no probabilities or hold NaN (of a Dask array when it is computed), or the priors are
        not one a column, are negative, or do not sum to 1.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities.

    Examples
    --------
    >>> import scaleshift as ss
    >>> ss.error.prior_corrected([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1]).tolist()
    [[0.9, 0.1]]
    """
    rows = given.proba_rows(proba, "proba")
    k = rows.x.shape[1]
    trained, target = _prior(prior_trained, k, "prior_trained"), _prior(prior_target, k, "prior_target")
    if (trained == 0).any():
        raise DataError(
            f"prior_trained is 0 for class {int(trained.argmin())}: a class that was never learned has no "
            "probability; leave its column out"
        )
    found = passes.map_rows(corrected, rows, k, ratio=target / trained)
    if isinstance(rows.x, da.Array) and not rows.in_memory:
        return found
    return graph.compute(found, rows.in_memory)


def corrected(block: Block, ratio: np.ndarray) -> np.ndarray:
    """Kernel of the correction."""
    proba, wrong = given.proba_of(block)
    given.refuse(wrong, "proba")
    product = np.maximum(proba, 0) * ratio
    total = product.sum(axis=1, keepdims=True)
    return np.divide(product, total, out=np.full_like(product, np.nan), where=total > 0)


def _prior(prior: Any, k: int, name: str) -> np.ndarray:
    found = np.asarray(prior)
    if found.shape != (k,) or found.dtype.kind not in "biuf":
        raise DataError(f"{name} is {found.dtype} of shape {found.shape}: expected {k} numbers, one a column")
    found = found.astype(np.float64)
    if not (found >= 0).all() or abs(found.sum() - 1) > given.ROUNDING:
        raise DataError(f"{name}={found.tolist()[:8]}: expected numbers from 0 that sum to 1")
    return found / found.sum()
