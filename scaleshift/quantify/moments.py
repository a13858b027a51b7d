"""Where do the classes of the source lie, marker by marker, and how wide are they?"""

from __future__ import annotations

import numpy as np

LEAST_SPREAD = 0.3  # of the pooled one: where a class has one value of a marker, any shift would be infinite


def centres_and_spreads(moments: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every class and marker.

    Parameters
    ----------
    moments : numpy.ndarray, shape (n_labels, 2, n_markers)
        Sums of the markers, and of their squares.
    counts : numpy.ndarray, shape (n_labels,)
        Rows of each class.

    Returns
    -------
    centres, spreads : numpy.ndarray, shape (n_labels, n_markers)
        NaN for classes without rows. A spread is .3 of the pooled within-class one at least; 1 where no class
        varies at all.

    Examples
    --------
    >>> centres, spreads = centres_and_spreads(np.array([[[4.0], [10.0]]]), np.array([2]))
    >>> centres.tolist(), spreads.tolist()
    ([[2.0]], [[1.0]])
    """
    n = np.where(counts > 0, counts, np.nan)[:, None]
    centres = moments[:, 0] / n
    variances = np.maximum(moments[:, 1] / n - centres**2, 0)
    variances[variances < 1e-12 * centres**2] = 0  # rounding
    pooled = np.nansum(variances * n, axis=0) / counts.sum()
    pooled[pooled == 0] = 1 / LEAST_SPREAD**2
    return centres, np.sqrt(np.maximum(variances, LEAST_SPREAD**2 * pooled))
