"""Distribution feature matching: the mixture of class embeddings that is nearest to a sample's."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks import blas, noise, passes
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError
from scaleshift.quantify import bandwidth, geometry, result
from scaleshift.quantify.embedding import GroupState, embed_classes, embed_samples
from scaleshift.quantify.features import Embedding, Source, feature_map
from scaleshift.solve.simplex import simplex_least_squares

CITATION = (
    "Dussap, Blanchard, Cherief-Abdellatif (2023), Label Shift Quantification with Robustness Guarantees "
    "via Distribution Feature Matching"
)


class DFM(BaseEstimator):
    """Class proportions of unlabelled samples by distribution feature matching.

    The class proportions of a sample are the weights of the mixture of class mean embeddings that comes
    nearest to the sample's mean embedding. Soft matching lets the weights sum to less than one: what is
    missing is the share of unknown cells.

    Parameters
    ----------
    features : "fourier", "gaussian" or a feature map, default "fourier"
        "gaussian" is the exact kernel, for at most 50 000 labelled rows.
    soft : bool, default True
        Whether some cells of a sample may belong to no class of the source.
    bandwidth : "auto" or float, default "auto"
        Of the kernel, in the units of X. Used unless the map object has a number of its own. "auto"
        maximises `criterion` on a subsample of the source.
    criterion : {"delta_min", "lambda_min"}, default "delta_min"
    random_state : None, int or numpy.random.Generator
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Attributes
    ----------
    labels_ : numpy.ndarray, shape (n_labels,)
        In their own type and order.
    class_counts_ : numpy.ndarray of int64, shape (n_labels,)
        Labelled rows of each class.
    bandwidth_ : float
    gram_ : numpy.ndarray, shape (n_labels, n_labels)
        Inner products of the class embeddings; NaN for classes without rows.
    delta_min_, lambda_min_ : float
        How well the classes can be told apart, hard and soft; debiased, over classes of 2 rows or more.
    delta_min_plain_, lambda_min_plain_ : float
        The same without debiasing, over all classes with rows.
    markers_ : tuple of str or None
    n_features_in_ : int
    source_samples_ : list
        Names of the samples that the source held.
    n_invalid_ : int
        Labelled rows left out with ``invalid="drop"``.
    means_ : numpy.ndarray, shape (n_labels, width)
        Class embeddings, up to the scale that `embedding_` knows.
    embedding_ : Embedding
        What the feature map learned.
    seed_ : int

    Notes
    -----
    Distances treat all markers alike: bring them to comparable scales first. One pass over the source,
    one more for ``bandwidth="auto"`` and one more for the exact kernel; one over the targets, whatever
    their number.
    Source: Dussap, Blanchard and Cherief-Abdellatif (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> y = np.repeat(["a", "b"], 500)
    >>> model = DFM(random_state=0).fit(X, y)
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    def __init__(
        self,
        features: Any = "fourier",
        soft: bool = True,
        bandwidth: Any = "auto",
        criterion: str = "delta_min",
        random_state: Any = None,
        invalid: Invalid = "raise",
    ):
        self.features = features
        self.soft = soft
        self.bandwidth = bandwidth
        self.criterion = criterion
        self.random_state = random_state
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None, sample: Any = None) -> DFM:
        """Learn the class embeddings.

        Parameters
        ----------
        X : array-like, shape (n, n_markers), or a cells dataset
            The source. A cells dataset brings its labels and samples along.
        y : array-like, shape (n,), optional
            Labels; NaN, None and pandas.NA mean unlabelled, and such rows are left out.
        sample : array-like, shape (n,), optional
            Which sample a row belongs to.

        Returns
        -------
        DFM
            Itself.

        Raises
        ------
        DataError
            Without labels or labelled rows, with rows that are not finite (unless ``invalid="drop"``).
        """
        features = feature_map(self.features)
        bandwidth.checked(self.bandwidth)
        if self.criterion not in bandwidth.CRITERIA:
            known = ", ".join(bandwidth.CRITERIA)
            raise DataError(f"criterion={self.criterion!r}: expected one of {known}")
        rows = as_rows(X, y, sample, invalid=self.invalid)
        if "label" not in rows.columns:
            raise DataError("the source has no labels: pass y, or a cells dataset with labels")
        counts = passes.counts(rows, "label")
        if not counts.any():
            raise DataError(f"none of the source's {rows.x.shape[0]} rows has a label")
        seed = noise.seed_of(self.random_state)
        embedding = features.learn(Source(rows, counts, self.bandwidth, self.criterion, seed))
        state = embed_classes(rows, embedding)
        learned = {
            "seed_": seed,
            "embedding_": embedding,
            "bandwidth_": embedding.bandwidth,
            "labels_": rows.categories("label"),
            "source_samples_": rows.categories("sample").tolist(),
            "markers_": rows.markers,
            "n_features_in_": rows.n_markers,
            "class_counts_": state.counts.astype(np.int64),
            "n_invalid_": int(state.n_invalid.sum()),
            "means_": state.means,
            **_geometry(embedding, state),
        }
        # All at once, at the end: a fit that fails leaves an earlier one as it was.
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def predict(self, X: Any, sample: Any = None) -> xr.Dataset:
        """Class proportions of every sample: one pass, then one small problem a sample.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), or a cells dataset
            The targets. Markers are matched by name where both sides have names. Labels are not used; those
            that the source does not have stay in the result as NaN, with a flag.
        sample : array-like, shape (m,), optional
            Which sample a row belongs to; without it an array is one sample named "all".

        Returns
        -------
        xarray.Dataset
            Dimensions (sample, label); see `scaleshift.quantify.result.VARIABLES`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        DataError
            If a marker is missing, or rows are not finite (unless ``invalid="drop"``).
        """
        check_is_fitted(self, "means_")
        rows = as_rows(X, None, sample, invalid=self.invalid).matched(self.markers_, self.n_features_in_)
        foreign = self._foreign(rows)
        state = embed_samples(rows, self.embedding_, foreign)
        known = self._dataset(rows.categories("sample"), state)
        if foreign.size:
            known = _with_foreign(known, rows.categories("label")[foreign], state.n_foreign)
        return known

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a folder that `scaleshift.load` reads: see `scaleshift.persistence.save`."""
        from scaleshift import persistence  # Zarr is imported when it is needed

        persistence.save(self, path)

    def _foreign(self, rows: Rows) -> np.ndarray:
        """Codes of the labels that a cells dataset of targets names and the source does not have."""
        if "label" not in rows.columns:
            return np.array([], np.int64)
        named = rows.categories("label")
        foreign = np.flatnonzero(~np.isin(named, self.labels_))
        if foreign.size and named.dtype.kind != self.labels_.dtype.kind:
            raise DataError(
                f"labels of the targets are {named.dtype.name}, of the source {self.labels_.dtype.name}: "
                "convert them to one type, or pass the targets without labels"
            )
        return foreign

    def _dataset(self, samples: np.ndarray, state: GroupState) -> xr.Dataset:
        proportion, unknown, distance = self._match(state)
        known = 1 - (unknown if self.soft else np.zeros(len(unknown)))
        share = self.class_counts_ / self.class_counts_.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            variables = {
                "proportion": proportion,
                "proportion_known": proportion / np.where(known > 0, known, np.nan)[:, None],
                "count": proportion * state.counts[:, None],
                "weight": proportion / np.where(share > 0, share, np.nan),
                "unknown": unknown,
                "distance": distance,
                "n_cells": state.counts.astype(np.int64),
                "n_invalid": state.n_invalid.astype(np.int64),
                "flag": self._flags(state),
            }
        attributes = {
            "method": ("soft" if self.soft else "hard") + " distribution feature matching",
            "citation": CITATION,
            "parameters": json.dumps(self.get_params(), default=str),
            "seed": self.seed_,
            "bandwidth": self.bandwidth_,
            "delta_min": self.delta_min_,
            "lambda_min": self.lambda_min_,
            "source_samples": json.dumps(self.source_samples_),
        }
        return result.dataset(samples, self.labels_, variables, attributes)

    def _match(self, state: GroupState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Proportions (n_samples, n_labels), unknown shares and distances (n_samples,); NaN without cells."""
        present, filled = self.class_counts_ > 0, state.counts > 0
        proportion = np.full((len(filled), len(present)), np.nan)
        unknown, distance = np.full((2, len(filled)), np.nan)
        if not filled.any():
            return proportion, unknown, distance
        targets, gram = state.means[filled], self.gram_[np.ix_(present, present)]
        products = self.embedding_.products(self.means_[present], targets)
        with blas.one_thread():
            hard = simplex_least_squares(gram, products)
            alpha = simplex_least_squares(gram, products, soft=True) if self.soft else hard
        proportion[np.ix_(filled, present)] = alpha
        if self.soft:
            unknown[filled] = np.clip(1 - alpha.sum(axis=1), 0, 1)
        # ||Phi_Q - sum a_i Phi_i||^2 = a'Ga - 2 q'a + ||Phi_Q||^2, of the hard fit also where `soft`
        squared = np.einsum("si,ij,sj->s", hard, gram, hard) - 2 * np.einsum("si,si->s", products, hard)
        distance[filled] = np.sqrt(np.maximum(squared + self.embedding_.squared_norms(targets), 0))
        return proportion, unknown, distance

    def _flags(self, state: GroupState) -> list[str]:
        by_count = [[str(name) for name in self.labels_[self.class_counts_ == n]] for n in (0, 1)]
        always = [
            f"{reason}: {', '.join(names)}"
            for reason, names in zip(("not in the source", "one source cell only"), by_count, strict=True)
            if names
        ]
        flags = []
        for n, lost in zip(state.counts, state.n_invalid, strict=True):
            reasons = [] if n else ["no cells"]
            if lost:
                reasons.append(f"{int(lost)} cell(s) with NaN or infinite values left out")
            flags.append("; ".join(reasons + always))
        return flags


def _geometry(embedding: Embedding, state: GroupState) -> dict[str, Any]:
    """Gram matrix of the class embeddings, and how well it tells the classes apart."""
    counts, present = state.counts, state.counts > 0
    if not present.any():
        raise DataError("no labelled row of the source is finite")
    found = embedding.gram(state.means[present])
    if not np.isfinite(found).all():
        raise DataError("the class embeddings overflow: bring the markers to a scale near 1")
    gram = np.full((len(counts), len(counts)), np.nan)
    gram[np.ix_(present, present)] = found
    several = counts[present] > 1  # one cell has no debiased norm
    within = found[np.ix_(several, several)]
    clean = geometry.debiased(within, counts[present][several], embedding.self_product)
    return {
        "gram_": gram,
        "delta_min_": geometry.delta_min(clean),
        "lambda_min_": geometry.lambda_min(clean),
        "delta_min_plain_": geometry.delta_min(found),
        "lambda_min_plain_": geometry.lambda_min(found),
    }


def _with_foreign(known: xr.Dataset, labels: np.ndarray, counts: np.ndarray | None) -> xr.Dataset:
    """The result with the labels that some targets' cells have and the source lacks: NaN, and a flag."""
    assert counts is not None
    met = counts.any(axis=0)
    flags = []
    for flag, row in zip(known["flag"].values.tolist(), counts, strict=True):
        names = ", ".join(str(label) for label, n in zip(labels, row, strict=True) if n)
        flags.append("; ".join(filter(None, [flag, f"not in the source: {names}" if names else ""])))
    wider = known.reindex(label=np.concatenate([known["label"].values, labels[met]]))
    return wider.assign(flag=("sample", np.array(flags, dtype=str), known["flag"].attrs))
