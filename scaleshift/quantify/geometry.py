"""How well do class embeddings tell the classes apart?  Eigenvalues of their Gram matrix."""

from __future__ import annotations

import numpy as np


def debiased(gram: np.ndarray, counts: np.ndarray, self_product: float = 1.0) -> np.ndarray:
    """Gram matrix without the pairs of a row with itself.

    Parameters
    ----------
    gram : numpy.ndarray, shape (n_labels, n_labels)
        Inner products of class means.
    counts : numpy.ndarray, shape (n_labels,)
        Rows of each class, at least 2.
    self_product : float, default 1
        Squared norm of a row's features.

    Returns
    -------
    numpy.ndarray, shape (n_labels, n_labels)
        G_ii becomes (n_i G_ii - self_product) / (n_i - 1): the plain diagonal is too large by about 1 / n_i.
    """
    result = gram.copy()
    diagonal = np.einsum("ii->i", result)
    diagonal[:] = (counts * diagonal - self_product) / (counts - 1)
    return result


def delta_min(gram: np.ndarray) -> float:
    """Second smallest eigenvalue of the centred Gram matrix: what hard matching divides by.

    NaN below two classes, where there is nothing to tell apart.

    Examples
    --------
    >>> round(delta_min(np.eye(3)), 6)
    1.0
    """
    c = len(gram)
    if c < 2:
        return float("nan")
    # An orthonormal basis of the complement of 1 leaves out the zero eigenvalue exactly.
    basis = np.linalg.qr(np.column_stack([np.ones(c), np.eye(c)[:, 1:]]))[0][:, 1:]
    return float(np.linalg.eigvalsh(basis.T @ gram @ basis)[0])


def lambda_min(gram: np.ndarray) -> float:
    """Smallest eigenvalue of the Gram matrix: what soft matching divides by; NaN without classes."""
    return float(np.linalg.eigvalsh(gram)[0]) if len(gram) else float("nan")
