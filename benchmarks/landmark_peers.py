"""How else are class sums of a kernel with landmarks written?  Each as fast as its library honestly goes.

All take (x, labels, n_groups, landmarks, bandwidth) and give (n_groups, m) sums, on one thread.
"""

from collections.abc import Callable

import numpy as np
import peers
from sklearn.kernel_approximation import Nystroem

Sums = Callable[[np.ndarray, np.ndarray, int, np.ndarray, float], np.ndarray]


def numpy_sums(
    x: np.ndarray,
    labels: np.ndarray,
    n_groups: int,
    landmarks: np.ndarray,
    bandwidth: float,
    chunk: int = 256,
) -> np.ndarray:
    """Class sums in float32 by one-hot products, with work arrays that stay in cache."""
    centre = landmarks.mean(axis=0)
    scale = np.float32(1 / bandwidth)
    points = ((landmarks - centre) / bandwidth).astype(np.float32)
    weights = np.ascontiguousarray(points.T)
    half_squares = (points * points).sum(axis=1) / 2
    offset = centre.astype(np.float32)
    kernel = np.empty((chunk, len(points)), np.float32)
    sums = np.zeros((n_groups, len(points)))
    groups = np.arange(n_groups)[:, None]
    for start in range(0, len(x), chunk):
        rows = (x[start : start + chunk] - offset) * scale
        one_hot = (groups == labels[start : start + chunk]).astype(np.float32)
        values = kernel[: len(rows)]
        np.matmul(rows, weights, out=values)
        values -= half_squares
        values -= np.einsum("ij,ij->i", rows, rows)[:, None] / 2
        np.exp(values, out=values)
        sums += one_hot @ values
    return sums


def sklearn_means(features: Nystroem, x: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Class means of the features that Nystroem writes out."""
    one_hot = (np.arange(n_groups)[:, None] == labels).astype(np.float32)
    return one_hot @ features.transform(x) / one_hot.sum(axis=1, keepdims=True)


def torch_sums(chunk: int) -> Sums:
    """The same products as numpy's, of all rows centred and squared beforehand."""
    torch = peers.torch()

    def run(
        x: np.ndarray, labels: np.ndarray, n_groups: int, landmarks: np.ndarray, bandwidth: float
    ) -> np.ndarray:
        centre = landmarks.mean(axis=0)
        points = torch.from_numpy(((landmarks - centre) / bandwidth).astype(np.float32))
        weights, half_squares = points.T.contiguous(), (points * points).sum(dim=1) / 2
        rows = (torch.from_numpy(x) - torch.from_numpy(centre.astype(np.float32))) / bandwidth
        shifts, codes = (rows * rows).sum(dim=1, keepdim=True) / 2, torch.from_numpy(labels)
        groups = torch.arange(n_groups, dtype=codes.dtype)[:, None]
        sums = torch.zeros((n_groups, len(points)), dtype=torch.float64)
        kernel = torch.empty((chunk, len(points)))
        for start in range(0, len(rows), chunk):
            part = rows[start : start + chunk]
            values = kernel[: len(part)]
            torch.matmul(part, weights, out=values)
            values.sub_(half_squares).sub_(shifts[start : start + chunk]).exp_()
            sums += (groups == codes[start : start + chunk]).float() @ values
        return sums.numpy()

    return run


def keops_sums(n_columns: int, flags: str) -> Sums:
    """Class by class, as `fourier_peers.keops_sums`."""
    total = peers.keops("Exp(-SqDist(z, x))", [f"z = Vi({n_columns})", f"x = Vj({n_columns})"], flags)

    def run(
        x: np.ndarray, labels: np.ndarray, n_groups: int, landmarks: np.ndarray, bandwidth: float
    ) -> np.ndarray:
        scale = 1 / (np.sqrt(2) * bandwidth)
        points = np.ascontiguousarray(landmarks * scale, dtype=np.float32)
        order = np.argsort(labels, kind="stable")
        cuts, rows = np.searchsorted(labels[order], range(1, n_groups)), x[order] * np.float32(scale)
        return np.stack([total(points, part, backend="CPU")[:, 0] for part in np.split(rows, cuts)])

    return run


def prototype_sums(folder: str | None) -> Sums | None:
    """The prototype's kernel where there is one."""
    sketch = peers.prototype("lk6", folder)
    if sketch is None:
        return None
    kernel = sketch.make6()

    def run(
        x: np.ndarray, labels: np.ndarray, n_groups: int, landmarks: np.ndarray, bandwidth: float
    ) -> np.ndarray:
        rate = np.log2(np.e) / (2 * bandwidth**2)
        return sketch.run6(kernel, x, labels, n_groups, landmarks, rate, 5)[0][:, 0]

    return run
