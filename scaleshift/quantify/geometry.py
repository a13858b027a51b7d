"""How well do class embeddings tell the classes apart?  Eigenvalues of their Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

BEYOND_DOUBT = 3  # times the sampling noise: of coincident classes 1 in 100 seems to differ by more
TRADED = 0.1  # entries of a projection: below, two classes do not take part in the same trade


def debiased(gram: np.ndarray, counts: np.ndarray, self_product: float | np.ndarray = 1.0) -> np.ndarray:
    """Gram matrix without the pairs of a row with itself.

    Parameters
    ----------
    gram : numpy.ndarray, shape (n_labels, n_labels)
        Inner products of class means.
    counts : numpy.ndarray, shape (n_labels,)
        Rows of each class, at least 2.
    self_product : float or numpy.ndarray of shape (n_labels,), default 1
        Squared norm of a row's features, its mean over the rows of each class.

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
    return float(np.linalg.eigvalsh(_of_contrasts(gram, _mirror(c)))[0])


def lambda_min(gram: np.ndarray) -> float:
    """Smallest eigenvalue of the Gram matrix: what soft matching divides by; NaN without classes."""
    return float(np.linalg.eigvalsh(gram)[0]) if len(gram) else float("nan")


def confounded(
    gram: np.ndarray, counts: np.ndarray, self_product: float | np.ndarray = 1.0
) -> list[np.ndarray]:
    """Sets of classes whose sum is determined, but not how it is divided among them.

    Along a direction in which the embeddings coincide up to sampling noise, shares can be traded for each
    other. Noise adds sum_i v_i^2 (1 - |Phi_i|^2) / n_i to the Gram matrix along v; a direction whose debiased
    eigenvalue does not exceed three times that is null.

    Parameters
    ----------
    gram : numpy.ndarray, shape (n_labels, n_labels)
        Debiased.
    counts : numpy.ndarray, shape (n_labels,)
        Rows of each class; infinite for a class that is known exactly (the zero vector).
    self_product : float or numpy.ndarray of shape (n_labels,), default 1

    Returns
    -------
    list of numpy.ndarray of int
        Positions of the classes of each set, two at least; empty if all can be told apart.

    Examples
    --------
    >>> twins = np.array([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.1, 0.1, 0.6]])
    >>> [found.tolist() for found in confounded(twins, np.array([100, 100, 100]))]
    [[0, 1]]
    """
    if len(gram) < 2:
        return []
    noise, mirror = sampling_noise(gram, counts, self_product), _mirror(len(gram))
    contrasts = _of_contrasts(gram, mirror)
    if _exceeds(contrasts, BEYOND_DOUBT * noise.max()):
        return []
    values, vectors = np.linalg.eigh(contrasts)
    directions = np.vstack([np.zeros(len(values)), vectors])
    directions -= 2 * np.outer(mirror, mirror @ directions)
    null = directions[:, values <= BEYOND_DOUBT * (np.square(directions).T @ noise)]
    linked = np.abs(null @ null.T) > TRADED
    n_sets, member = connected_components(linked, directed=False)
    sets = [np.flatnonzero(member == i) for i in range(n_sets)]
    return [found for found in sets if found.size > 1]


def sampling_noise(
    gram: np.ndarray, counts: np.ndarray, self_product: float | np.ndarray = 1.0
) -> np.ndarray:
    """Expected squared error of each class embedding, (n_labels,); `gram` is debiased."""
    return np.maximum(self_product - np.diag(gram), 0) / counts


def _exceeds(gram: np.ndarray, bound: float) -> bool:
    """Whether all eigenvalues do: Cholesky's factor exists then, and costs a tenth of them."""
    try:
        np.linalg.cholesky(gram - bound * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        return False
    return True


def _mirror(c: int) -> np.ndarray:
    """Unit vector u for which I - 2 u u' takes the first axis to that of 1, and the others to contrasts."""
    u = np.full(c, c**-0.5)
    u[0] -= 1
    return u / np.linalg.norm(u)


def _of_contrasts(gram: np.ndarray, mirror: np.ndarray) -> np.ndarray:
    """Gram matrix of the contrasts, (n_labels - 1, n_labels - 1): its zero eigenvalue is left out exactly."""
    product = gram @ mirror
    product -= (mirror @ product) * mirror
    return (gram - 2 * (np.outer(mirror, product) + np.outer(product, mirror)))[1:, 1:]
