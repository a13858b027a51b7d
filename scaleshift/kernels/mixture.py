"""What does one pass of expectation-maximisation sum?  The truth in float64, and the fallback on any array.

Rows are taken in tiles: responsibilities of a whole block are never held. The model of a component k is
P(S = k) = w_k, x | k ~ N(mu_k, Sigma_k), label | k ~ Cat(p_k), prediction | k ~ Cat(q_k), as Domino has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels.reference import Array, namespace, tile_rows, to_numpy

COVARIANCES = ("diag", "spherical", "full", "tied")
EPSILON = float(np.finfo(np.float64).eps)


class Components(NamedTuple):
    """Components of one or several mixtures, which one pass serves: K of them, model after model."""

    covariance_type: str  # one of COVARIANCES
    sizes: tuple[int, ...]  # components of each of the R models; they add up to K
    weights: np.ndarray  # (K,) of each model they add up to about 1
    means: np.ndarray  # (K, d)
    covariances: np.ndarray  # diag (K, d), spherical (K,), full (K, d, d), tied (R, d, d)
    label_probs: np.ndarray | None = None  # (K, C)
    prediction_probs: np.ndarray | None = None  # (K, C)
    label_power: float = 1.0  # exponent of a label's probability
    prediction_power: float = 1.0

    @property
    def models(self) -> Iterator[tuple[int, slice]]:
        """Number and components of each model."""
        first = 0
        for number, size in enumerate(self.sizes):
            yield number, slice(first, first + size)
            first += size

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return sum(getattr(part, "nbytes", 0) for part in self)


class Outcomes(NamedTuple):
    """What is known of rows beside their embedding; None where nothing is."""

    label: Array | None = None  # (n,) codes below n_labels; negative ones are missing: their term is left out
    n_labels: int = 0  # C
    prediction: Array | None = None  # (n, C) probabilities
    weight: Array | None = None  # (n,) 1 where None; a row of weight 0 adds nothing
    extra: Array | None = None  # (n, m) anything whose sums by component are wanted: error, loss

    def rows(self, chosen: slice) -> Outcomes:
        """The same of some rows."""
        parts = {name: part[chosen] for name, part in self._asdict().items() if hasattr(part, "shape")}
        return self._replace(**parts)


def mixture_sums(x: Array, outcomes: Outcomes, components: Components) -> dict[str, np.ndarray]:
    """One pass of expectation-maximisation over a block: what the next parameters are made of.

    Parameters
    ----------
    x : (n, d) array
        Embeddings, best about their mean; free of NaN.
    outcomes : Outcomes
    components : Components

    Returns
    -------
    dict of float64 numpy.ndarray
        mass (1,): sum of the rows' weights v_i; log_likelihood (R,): sum of v_i log sum_k exp(L_ik);
        n (K,): sum of v r_k; x (K, d): of v r_k x; xx: of v r_k x^2, (K, d) for "diag" and "spherical",
        (K, d, d) for "full"; of v x x', (d, d), for "tied"; label (K, C): of v r_k onehot(label);
        prediction (K, C): of v r_k prediction; extra (K, m): of v r_k extra. The last three only where
        these outcomes are given.

    Examples
    --------
    >>> x = np.array([[-5.0], [5.0], [6.0]])
    >>> two = Components("diag", (2,), np.array([0.5, 0.5]), np.array([[-5.0], [5.0]]), np.ones((2, 1)))
    >>> mixture_sums(x, Outcomes(), two)["n"].round(6).tolist()
    [1.0, 2.0]
    """
    total: dict[str, np.ndarray] = {}
    for tile, rows in _tiles(x, outcomes, components.means.shape):
        joint = log_joint(tile, rows, components)
        xp, parts, evidence = namespace(joint), [], []
        for _, model in components.models:
            part, lse = _softmax(joint[:, model])
            parts.append(part)
            evidence.append(float((lse if rows.weight is None else lse * rows.weight).sum()))
        found = responsibility_sums(tile, rows, xp.concatenate(parts, axis=1), components.covariance_type)
        found["log_likelihood"] = np.array(evidence)
        total = {name: total.get(name, 0.0) + value for name, value in found.items()}
    return total


def responsibilities(x: Array, outcomes: Outcomes, components: Components) -> np.ndarray:
    """P(S = k | a row's embedding and what is known of it) of one mixture, (n, K) float64; rows add up to 1.

    Examples
    --------
    >>> two = Components("diag", (2,), np.array([0.5, 0.5]), np.array([[-5.0], [5.0]]), np.ones((2, 1)))
    >>> responsibilities(np.array([[-5.0], [0.0]]), Outcomes(), two).round(6).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    result = np.empty((len(x), len(components.weights)))
    start = 0
    for tile, rows in _tiles(x, outcomes, components.means.shape):
        result[start : start + len(tile)] = to_numpy(_softmax(log_joint(tile, rows, components))[0])
        start += len(tile)
    return result


def responsibility_sums(
    x: Array, outcomes: Outcomes, responsibilities: Array, covariance_type: str
) -> dict[str, np.ndarray]:
    """The same sums for responsibilities that are given, (n, K); without log_likelihood.

    Examples
    --------
    >>> sums = responsibility_sums(np.ones((2, 1)), Outcomes(), np.array([[1.0, 0.0], [0.5, 0.5]]), "diag")
    >>> sums["n"].tolist(), sums["x"].tolist()
    ([1.5, 0.5], [[1.5], [0.5]])
    """
    xp = namespace(x)
    x, r = xp.asarray(x, dtype=np.float64), responsibilities
    v = xp.ones(len(x)) if outcomes.weight is None else xp.asarray(outcomes.weight, dtype=np.float64)
    r = r * v[:, None]
    sums = {"mass": v.sum(keepdims=True), "n": r.sum(axis=0), "x": r.T @ x}
    if covariance_type in ("diag", "spherical"):
        sums["xx"] = r.T @ (x * x)
    elif covariance_type == "tied":
        sums["xx"] = (x * v[:, None]).T @ x
    else:
        sums["xx"] = xp.stack([(x * r[:, k, None]).T @ x for k in range(r.shape[1])])
    if outcomes.label is not None:
        known = xp.asarray(outcomes.label)[:, None] == xp.arange(outcomes.n_labels)
        sums["label"] = r.T @ known.astype(np.float64)
    if outcomes.prediction is not None:
        sums["prediction"] = r.T @ xp.asarray(outcomes.prediction, dtype=np.float64)
    if outcomes.extra is not None:
        sums["extra"] = r.T @ xp.asarray(outcomes.extra, dtype=np.float64)
    return {name: to_numpy(value) for name, value in sums.items()}


def log_joint(x: Array, outcomes: Outcomes, components: Components) -> Array:
    """Log joint density of rows and components, (n, K). Of few rows: nothing is cut into tiles here.

    L_ik = log w_k + log N(x_i | mu_k, Sigma_k) + g log(p_k[y_i] + eps) + h log(q_k . yhat_i + eps)
    """
    xp = namespace(x)
    result = _log_gaussian(xp, xp.asarray(x, dtype=np.float64), components)
    with np.errstate(divide="ignore"):  # a component of weight 0
        result += xp.log(xp.asarray(components.weights))
    if outcomes.label is not None and components.label_probs is not None:
        label = xp.asarray(outcomes.label)
        term = xp.log(xp.asarray(components.label_probs) + EPSILON).T[xp.maximum(label, 0)]
        result += xp.where((label >= 0)[:, None], components.label_power * term, 0.0)
    if outcomes.prediction is not None and components.prediction_probs is not None:
        prediction = xp.asarray(outcomes.prediction, dtype=np.float64)
        agreement = prediction @ xp.asarray(components.prediction_probs).T
        result += components.prediction_power * xp.log(agreement + EPSILON)
    return result


def _log_gaussian(xp: Any, x: Array, components: Components) -> Array:
    """Log densities of all components, (n, K)."""
    means, covariances = xp.asarray(components.means), xp.asarray(components.covariances)
    d = x.shape[1]
    if components.covariance_type in ("diag", "spherical"):
        if components.covariance_type == "spherical":
            covariances = xp.broadcast_to(covariances[:, None], means.shape)
        precisions = 1 / covariances
        squares = (
            (x * x) @ precisions.T - 2 * x @ (means * precisions).T + (means**2 * precisions).sum(axis=1)
        )
        log_det = xp.log(covariances).sum(axis=1)
        return -0.5 * (d * np.log(2 * np.pi) + log_det + squares)
    result = xp.empty((len(x), len(means)))
    for number, model in components.models:
        for k in range(model.start, model.stop):
            # Sigma = L L': log det and distances of the whitened rows
            lower = xp.linalg.cholesky(covariances[number if components.covariance_type == "tied" else k])
            white = xp.linalg.solve(lower, (x - means[k]).T)
            log_det = 2 * xp.log(xp.diag(lower)).sum()
            result[:, k] = -0.5 * (d * np.log(2 * np.pi) + log_det + (white * white).sum(axis=0))
    return result


def _softmax(joint: Array) -> tuple[Array, Array]:
    """Responsibilities (n, K) and log sum exp (n,) of log joint densities."""
    xp = namespace(joint)
    highest = joint.max(axis=1, keepdims=True)
    powers = xp.exp(joint - highest)
    mass = powers.sum(axis=1, keepdims=True)
    return powers / mass, (highest + xp.log(mass))[:, 0]


def _tiles(x: Array, outcomes: Outcomes, shape: tuple[int, int]) -> Iterator[tuple[Array, Outcomes]]:
    """Rows few enough that a tile with K components or d columns is small; one tile at least."""
    n_rows = tile_rows(x, max(shape))
    for start in range(0, max(len(x), 1), n_rows):
        rows = slice(start, start + n_rows)
        yield x[rows], outcomes.rows(rows)
