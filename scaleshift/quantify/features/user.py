"""A feature map of the user's own: any object with fit(X, y) and transform(X), as scikit-learn has them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify import bandwidth
from scaleshift.quantify.features.base import ExplicitEmbedding, FeatureMap, Source
from scaleshift.user_objects import ask

FITTED_ON = 20_000  # rows
TILE = 1 << 20  # numbers that a call of transform makes, about


class UserFeatures(FeatureMap):
    """Features that an object of one's own makes of rows: the kernel is their inner product.

    The object itself can be given as `features`; this is what becomes of it.

    Parameters
    ----------
    transformer : object with fit(X, y) and transform(X)
        scikit-learn's transformers and pipelines, or what looks like one. A copy is fitted on at most 20 000
        labelled rows of the source, by class size, at least 20 of each where there is room. Its `transform`
        is then applied to the rows block by block, on the workers, in threads: it must be a function of the
        row alone, and may give an array, a sparse matrix or a data frame. Parameters named `random_state`
        that are None become the quantifier's.

    Notes
    -----
    Class embeddings are means of these features, so that features that are linear in the markers tell classes
    by their means alone, and scales matter: a feature counts by its square.

    Examples
    --------
    >>> from sklearn.preprocessing import SplineTransformer
    >>> UserFeatures(SplineTransformer())
    UserFeatures(transformer=SplineTransformer())
    """

    def __init__(self, transformer: Any):
        self.transformer = transformer

    def learn(self, source: Source) -> UserEmbedding:
        """Fit a copy of the object to some labelled rows."""
        source.refuse_bandwidth(f"features={self.transformer!r}")
        drawn = source.draw(bandwidth.allocation(source.counts, FITTED_ON))
        fitted = _copied(self.transformer)
        _seed(fitted, source.seed_of(None))
        labels = source.rows.categories("label")[drawn["code"]]
        found = ask(fitted, "fit", drawn["x"], labels)
        fitted = fitted if found is None else found
        n_features = _features(fitted, drawn["x"][:1], None).shape[1]
        embedding = UserEmbedding(fitted, n_features)
        embedding.sums(
            drawn["x"], np.zeros(len(drawn["x"]), np.int32), 1, **embedding.parameters
        )  # or refuses
        return embedding


def missing_methods(thing: Any) -> list[str]:
    """Which of fit and transform an object has not."""
    return [name for name in ("fit", "transform") if not callable(getattr(thing, name, None))]


def _copied(transformer: Any) -> Any:
    """An unfitted copy of what has parameters, else a plain copy: the user's own object stays as it is."""
    return clone(transformer) if hasattr(transformer, "get_params") else copy.deepcopy(transformer)


def _seed(transformer: Any, seed: int) -> None:
    """Give random states that are not given: a fit gives the same features again."""
    if not hasattr(transformer, "get_params"):
        return
    for name, value in sorted(transformer.get_params(deep=True).items()):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            transformer.set_params(**{name: seed % 2**32})


def _features(transformer: Any, x: np.ndarray, n_features: int | None) -> np.ndarray:
    """Features (n, n_features) of rows, float64; DataError, naming the class, where they are none."""
    found = ask(transformer, "transform", x)
    name = type(transformer).__name__
    values = np.asarray(found.toarray() if sparse.issparse(found) else found)
    if values.ndim != 2 or len(values) != len(x) or values.dtype.kind not in "biuf" or not values.shape[1]:
        raise DataError(
            f"{name}.transform gave an array of shape {values.shape} and dtype {values.dtype} for {len(x)} "
            "rows: expected a table of numbers with one row each"
        )
    if n_features is not None and values.shape[1] != n_features:
        raise DataError(
            f"{name}.transform gave {values.shape[1]} features for some rows and {n_features} for others: "
            "expected as many for all"
        )
    values = values.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        raise DataError(
            f"{name}.transform gave NaN or infinite values for finite rows: expected finite numbers"
        )
    return values


def transformed_sums(
    x: Any, groups: np.ndarray, n_groups: int, transformer: Any, n_features: int
) -> np.ndarray:
    """Sums of features and of their squared norm by group, (n_groups, n_features + 1), tile by tile."""
    sums = np.zeros((n_groups, n_features + 1))
    for rows in _tiles(np.flatnonzero(groups >= 0), n_features):
        values = _features(transformer, to_numpy(x[rows]), n_features)
        present, position = np.unique(groups[rows], return_inverse=True)
        ones = sparse.csr_array(
            (np.ones(len(rows)), (position, np.arange(len(rows)))), (len(present), len(rows))
        )
        sums[present, :-1] += ones @ values
        sums[present, -1] += ones @ np.einsum("ij,ij->i", values, values)
    return sums


def _tiles(rows: np.ndarray, n_features: int) -> Iterator[np.ndarray]:
    size = max(TILE // n_features, 64)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@dataclass(frozen=True, repr=False)
class UserEmbedding(ExplicitEmbedding):
    """A fitted transformer: sums of its features, and of their squared norm."""

    transformer: Any
    n_matching: int
    bandwidth = float("nan")
    largest_norm = float("inf")
    is_density = False  # of some transformers it is, which nobody can tell
    sums = staticmethod(transformed_sums)

    @property
    def width(self) -> int:
        """Its features, and their squared norm."""
        return self.n_matching + 1

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The fitted transformer."""
        return {"transformer": self.transformer, "n_features": self.n_matching}

    def same_as(self, other: Any) -> bool:
        """The very same object: what transformers hold cannot be compared."""
        return isinstance(other, UserEmbedding) and self.transformer is other.transformer

    def features(self, means: np.ndarray) -> np.ndarray:
        """As they are."""
        return means[..., :-1]

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """Summed beside the features."""
        return means[:, -1]
