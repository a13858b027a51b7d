"""What do landmarks become for kernels in float32? Points about their mean, in units of the bandwidth."""

from typing import NamedTuple

import numpy as np

# in units of sqrt(-t), t the power of two that a kernel value is: that is, of 1.2 bandwidths
SIGHT = 11.25  # of a landmark: beyond, kernel values are below 2^-126, the smallest that float32 holds
FAR = 16.0  # from the centre: beyond, t has an error of 1e-7 |x|^2, which is 3e-5, and more

UNSEEN = np.float32(-1e6)  # in place of -|x|^2 or -|z|^2: kernel values are 2^-126, or 0


class Scaled(NamedTuple):
    """Landmarks about their mean, scaled such that kernel values are 2^t with t = -rate |x - z|^2."""

    centre: np.ndarray  # (d,) of the dtype of the rows
    scale: np.floating  # a power of 2, which costs no digits and keeps squares in float32's range
    rate: float  # in [1/2, 2]
    reach: float  # distance of the farthest landmark from the centre in units of sqrt(-t)
    weights: np.ndarray  # (padded, d) float32: 2 rate z
    biases: np.ndarray  # (padded,) float32: -rate |z|^2
    corrections: np.ndarray  # (m,): factors that undo the rounding of the biases


def scaled(landmarks: np.ndarray, bandwidth: float, dtype: np.dtype, padded: int) -> Scaled:
    """Centre and scale landmarks, and pad them with some that see nothing.

    Parameters
    ----------
    landmarks : (m, d) numpy.ndarray of float64
    bandwidth : float
    dtype : numpy.dtype
        Of the rows.
    padded : int
        How many there are to be, m at least.

    Examples
    --------
    >>> found = scaled(np.array([[-1.0], [1.0]]), np.log2(np.e) ** 0.5, np.dtype("f4"), 2)
    >>> found.rate, found.weights.tolist(), found.biases.tolist()
    (0.5, [[-1.0], [1.0]], [-0.5, -0.5])
    """
    m, d = landmarks.shape
    rate = np.log2(np.e) / (2 * bandwidth**2)
    scale = 2.0 ** np.rint(np.log2(rate) / 2)
    rate /= scale**2
    centre = landmarks.mean(axis=0).astype(dtype)
    z = np.clip((landmarks - centre) * scale, -1e100, 1e100)  # so that squares are finite
    squares = rate * (z * z).sum(axis=1)
    seeing = np.flatnonzero(squares <= (FAR + SIGHT) ** 2)
    weights = np.zeros((padded, d), dtype=np.float32)
    weights[seeing] = 2 * rate * z[seeing]
    # |z|^2 is that of the rounded weights: a landmark displaced by 1e-7 |z| does less harm than an error of
    # 1e-7 |z|^2 in every t
    exact = np.full(padded, np.float64(UNSEEN))
    exact[seeing] = -(weights[seeing].astype(np.float64) ** 2).sum(axis=1) / (4 * rate)
    biases = exact.astype(np.float32)
    reach = float(squares.max() ** 0.5)
    return Scaled(centre, dtype.type(scale), float(rate), reach, weights, biases, np.exp2(exact - biases)[:m])
