"""Was the prediction right, and how sure was it? One read of the probabilities of each row."""

import numpy as np

from scaleshift.kernels.cpu.jit import strict_jit


def judged(
    probabilities: np.ndarray, labels: np.ndarray | None, least: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Compare the most probable class with the label, and look up the label's probability.

    Parameters
    ----------
    probabilities : (n, C) numpy.ndarray
        float32 or float64.
    labels : (n,) integer array, optional
        Codes; rows with negative ones, and all without labels, get NaN.
    least : float
        Probabilities below are none.
    tolerance : float
        Rows whose sum is farther than this from 1 hold no probabilities.

    Returns
    -------
    error : (n,) numpy.ndarray of float64
        1 where the most probable class, the first of equal ones, is not the label.
    probability : (n,) numpy.ndarray of float64
        Of the label.
    bad : int
        The first row without probabilities, -1 if there is none.

    Examples
    --------
    >>> error, probability, bad = judged(np.array([[0.9, 0.1], [0.9, 0.9]]), np.array([1, 0]), 0.0, 0.01)
    >>> error.tolist(), probability.tolist(), bad
    ([1.0, 0.0], [0.1, 0.9], 1)
    """
    codes = (
        np.full(len(probabilities), -1, np.int32) if labels is None else labels.astype(np.int32, copy=False)
    )
    error, probability = np.full(len(codes), np.nan), np.full(len(codes), np.nan)
    bad = _judge(np.ascontiguousarray(probabilities), codes, least, tolerance, error, probability)
    return error, probability, bad


@strict_jit
def _judge(
    probabilities: np.ndarray,
    codes: np.ndarray,
    least: float,
    tolerance: float,
    error: np.ndarray,
    probability: np.ndarray,
) -> int:
    bad = -1
    for i in range(codes.size):
        total, lowest, highest, best = 0.0, np.inf, -np.inf, 0
        for c in range(probabilities.shape[1]):
            value = np.float64(probabilities[i, c])
            total += value
            lowest = min(lowest, value)
            if value > highest:
                highest, best = value, c
        if bad < 0 and not (lowest >= least and abs(total - 1.0) <= tolerance):  # NaN is none either
            bad = i
        if codes[i] >= 0:
            error[i] = np.float64(best != codes[i])
            probability[i] = probabilities[i, codes[i]]
    return bad
