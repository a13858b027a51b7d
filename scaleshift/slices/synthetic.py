"""On what are slicers judged?  Made-up problems in which a classifier fails where it is told to.

The generator is under the MIT licence: see NOTICE.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleshift.errors import DataError
from scaleshift.parameters import check, is_whole

__all__ = ["make"]

KINDS = ("rare", "correlation", "noisy", "no_slice")
ERROR_RATE = 0.1  # outside of the slice
ERROR_RATE_IN_SLICE = 0.65
FLIPPED = 0.6  # share of the labels of a noisy cluster
RARE_SHARE = 0.03
SPREAD, SPREAD_HARD = 1.6, 1.0  # of the clusters' centres
SHIFT = 5.0  # how far an attribute moves a row


class _Clusters(NamedTuple):
    """What both parts of a problem share."""

    centres: np.ndarray  # (n_clusters, d)
    label: np.ndarray  # (n_clusters,) 0 or 1
    share: np.ndarray  # (n_clusters,)
    direction: np.ndarray  # (d,) in which an attribute moves a row
    noisy: int | None = None  # the cluster of noisy labels


def make(
    kind: str,
    seed: int,
    hard: bool = False,
    n: int = 4_000,
    d: int = 32,
    n_clusters: int = 24,
    strength: float = 0.6,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draw a problem of two classes: a part to fit on, and a part to be judged on.

    Rows lie in Gaussian clusters, each of one class. The classifier is wrong in 10 % of the rows, and in
    about 60 % of those of the planted slice.

    Parameters
    ----------
    kind : {"rare", "correlation", "noisy", "no_slice"}
        The slice is a cluster of 3 % of the rows ("rare"), or the rows of class 1 that lack an attribute
        which goes with the class elsewhere ("correlation"), or a cluster in which 60 % of the labels are
        flipped ("noisy"): the classifier is wrong there as it says the clean ones. With "no_slice" it fails
        nowhere in particular: what is found then is a false discovery.
    seed : int
        0 to 13 served to compare methods: judge on others.
    hard : bool, default False
        Clusters that lie closer.
    n : int, default 4000
        Rows of each part.
    d : int, default 32
        Columns.
    n_clusters : int, default 24
    strength : float, default 0.6
        Of the correlation of class and attribute.

    Returns
    -------
    fit, test : dict of str to numpy.ndarray
        "X" (n, d), "y" (n,) 0 or 1, "pred_probs" (n, 2), and "in_slice" (n,) bool.

    Raises
    ------
    DataError
        For a kind that is none of these, or no clusters or columns.

    Examples
    --------
    >>> fit, test = make("rare", seed=100)
    >>> fit["X"].shape, bool(0.02 < test["in_slice"].mean() < 0.04)
    ((4000, 32), True)
    """
    check("kind", kind, lambda value: value in KINDS, KINDS)
    for name, value in {"n": n, "d": d, "n_clusters": n_clusters}.items():
        check(name, value, lambda v: is_whole(v) and v >= 1, "a whole number from 1")
    check("strength", strength, lambda v: 0 <= v <= 1, "a number from 0 to 1")
    if kind == "rare" and n_clusters < 2:
        raise DataError("n_clusters=1: a rare cluster needs others beside it, from 2")
    rng = np.random.RandomState(seed)
    clusters = _clusters(rng, kind, SPREAD_HARD if hard else SPREAD, d, n_clusters)
    clusters, fit = _part(rng, kind, clusters, n, strength)
    _, test = _part(rng, kind, clusters, n, strength)
    return fit, test


def _clusters(rng: np.random.RandomState, kind: str, spread: float, d: int, n_clusters: int) -> _Clusters:
    centres = rng.randn(n_clusters, d) * spread / np.sqrt(2) * 0.8
    direction = rng.randn(d)
    direction /= np.linalg.norm(direction)
    share = rng.dirichlet(np.ones(n_clusters) * 3)
    if kind == "rare":
        share[0] = 0
        share = share / share.sum() * (1 - RARE_SHARE)
        share[0] = RARE_SHARE
    return _Clusters(centres, np.arange(n_clusters) % 2, share, direction)


def _part(
    rng: np.random.RandomState, kind: str, clusters: _Clusters, n: int, strength: float
) -> tuple[_Clusters, dict[str, np.ndarray]]:
    """One part, and the clusters with the noisy one, which the first part draws.

    Numbers are drawn in a fixed order: a seed names a problem.
    """
    cluster = rng.choice(len(clusters.share), size=n, p=clusters.share)
    y = clusters.label[cluster].copy()
    x = clusters.centres[cluster] + rng.randn(n, clusters.centres.shape[1])
    in_slice = np.zeros(n, bool)
    if kind == "rare":
        in_slice = cluster == 0
    elif kind == "correlation":
        attribute = np.where(rng.rand(n) < 0.5 + strength / 2, y, 1 - y)
        x = x + np.outer(attribute - 0.5, clusters.direction) * SHIFT
        in_slice = (attribute != y) & (y == 1)
    elif kind == "noisy":
        if clusters.noisy is None:
            clusters = clusters._replace(noisy=int(rng.choice(len(clusters.share))))
        in_slice = cluster == clusters.noisy
        y = np.where(in_slice & (rng.rand(n) < FLIPPED), 1 - y, y)
    # The classifier knows the clean labels: of noisy ones it is wrong where they were flipped.
    truth = clusters.label[cluster] if kind == "noisy" else y
    error_rate = ERROR_RATE if kind == "noisy" else np.where(in_slice, ERROR_RATE_IN_SLICE, ERROR_RATE)
    predicted = np.where(rng.rand(n) < error_rate, 1 - truth, truth)
    return clusters, {"X": x, "y": y, "pred_probs": _probabilities(rng, predicted), "in_slice": in_slice}


def _probabilities(rng: np.random.RandomState, predicted: np.ndarray) -> np.ndarray:
    """Probabilities of a classifier that is mostly sure, whether right or wrong, (n, 2)."""
    confidence = rng.beta(6, 2, size=len(predicted))
    confidence = np.clip(np.where(confidence < 0.5, 1 - confidence, confidence), 0.5, 0.995)
    second = np.where(predicted == 1, confidence, 1 - confidence)
    return np.stack([1 - second, second], axis=1)
