"""What every quantifier does: learn class sums from a source in one pass, answer for samples in another."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scaleshift import parameters
from scaleshift.blocks import blas
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.resuming import seed_of
from scaleshift.blocks.rows import as_rows
from scaleshift.fitted import Facts, Fitted
from scaleshift.quantify import learned, pieces, result, telling
from scaleshift.quantify.features import Embedding, ExplicitEmbedding, FeatureMap, Source
from scaleshift.quantify.keeping import kept_of
from scaleshift.quantify.matching import Matcher
from scaleshift.quantify.mixtures import Mixture, Resampled
from scaleshift.quantify.source import N_FOLDS, embed_source, label_counts
from scaleshift.quantify.targets import SampleStates, answer_samples, embed_samples, foreign_codes

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Plan
    from scaleshift.blocks.planner import Planner


class Quantifier(Fitted):
    """Class proportions of unlabelled samples, from mean features of the classes and of the samples.

    A family of methods says which features (`_feature_map`), how class means and a sample's mean become
    proportions (`_mixture`), and what it is (`METHOD`, `CITATION`).

    Attributes
    ----------
    labels_ : numpy.ndarray, shape (n_labels,)
        In their own type and order.
    class_counts_ : numpy.ndarray of int64, shape (n_labels,)
        Labelled rows of each class.
    embedding_ : Embedding
        What the feature map learned.
    source_ : SourceState
        Feature sums of the source, all that is kept of it.
    """

    METHOD: str
    CITATION: str

    # Parameters of every family.
    n_bootstrap: int
    level: float
    resample: str | None
    random_state: Any
    invalid: Invalid

    # Of those that have them.
    soft: bool = False  # whether some cells of a sample may belong to no class
    bandwidth: Any = "auto"
    criterion: str = "delta_min"
    checkpoint: str | os.PathLike[str] | None = None

    @abstractmethod
    def _feature_map(self) -> FeatureMap:
        """What is learned of the rows."""

    def _bounded(self) -> bool:
        """Whether proportions lie in [0, 1]."""
        return True

    @abstractmethod
    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> Mixture:
        """How proportions follow from class means of the sums, (n_labels, width), of classes with rows."""

    def fit(self, X: Any, y: Any = None, sample: Any = None) -> Self:
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
        Self
            Itself.

        Raises
        ------
        DataError
            Without labels or labelled rows, with rows that are not finite (unless ``invalid="drop"``).

        Examples
        --------
        >>> import scaleshift as ss
        >>> cells = ss.as_cells([[0.0], [0.1], [5.0], [5.1]], label=["B", "B", "T", None])
        >>> model = ss.DFM(bandwidth=1.0, random_state=0).fit(cells)  # the last cell is not gated
        >>> model.class_counts_.tolist()
        [2, 1]
        """
        self._check()
        features = self._feature_map()
        rows = as_rows(X, y, sample, invalid=self.invalid)
        counts = label_counts(rows)
        seed = seed_of(self.checkpoint, self.random_state)
        kept = kept_of(self, rows, seed)
        learned_of = Source(rows, counts, self.bandwidth, self.criterion, seed)
        embedding = kept("embedding", lambda: features.learn(learned_of))
        n_folds = N_FOLDS if self.n_bootstrap and isinstance(embedding, ExplicitEmbedding) else 1
        source = kept("source", lambda: embed_source(rows, embedding, n_folds, seed))
        learned.draws_samples(self.resample, source)  # refuses what cannot be done
        found = {
            "seed_": seed,
            "embedding_": embedding,
            "bandwidth_": embedding.bandwidth,
            "markers_": rows.markers,
            "treatment_": rows.treatment,
            "n_features_in_": rows.n_markers,
            "source_": source,
            **learned.attributes(source, embedding, self.soft),
        }
        return self._set(found)  # all at once: a fit that fails leaves an earlier one as it was

    def predict(
        self, X: Any, sample: Any = None, *, checkpoint: str | os.PathLike[str] | None = None
    ) -> xr.Dataset:
        """Class proportions of every sample: one pass, then one small problem a sample and replicate.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), a cells dataset, or what `embed` gave
            The targets. Markers are matched by name where both sides have names. Labels are not used; those
            that the source does not have stay in the result as NaN, with a flag.
        sample : array-like, shape (m,), optional
            Which sample a row belongs to; without it an array is one sample named "all".
        checkpoint : path, optional
            Folder in which answers of finished samples are kept: the same call goes on from there after a
            kill, to the same bits. Samples are then answered in pieces of a million rows or a 256th of all,
            or one larger sample each; where their rows do not lie together, all at once.

        Returns
        -------
        xarray.Dataset
            Dimensions (sample, label); see `scaleshift.quantify.result.VARIABLES`. Metadata of samples stay.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        DataError
            If a marker is missing, rows are not finite (unless ``invalid="drop"``), a parameter has no
            meaning, or `checkpoint` is of other rows or of another model.

        Examples
        --------
        >>> import scaleshift as ss
        >>> model = ss.DFM(bandwidth=1.0, random_state=0)
        >>> model = model.fit([[0.0], [0.1], [5.0], [5.1]], ["B", "B", "T", "T"])
        >>> found = model.predict([[0.0], [0.1], [0.1], [5.0], [5.1]], sample=["S1", "S1", "S1", "S1", "S2"])
        >>> found["proportion"].sel(sample="S1", label="B").round(1).item()
        0.7
        """
        check_is_fitted(self, "source_")
        self._check()  # set_params may have been called since the fit
        matcher = self._matcher()
        if isinstance(X, SampleStates):
            return self._dataset(X.samples, X.answers(matcher))
        rows = self._rows(X, sample)
        foreign = foreign_codes(rows, self.labels_)
        n_folds = self.source_.counts.shape[1]

        def answer(rows: Rows) -> dict[str, np.ndarray]:
            found = answer_samples(rows, self.embedding_, n_folds, self.seed_, foreign, matcher)
            return self._improved(rows, matcher, found)

        answers = pieces.answered(answer, rows, self, foreign, checkpoint)
        known = self._dataset(rows.categories("sample"), answers)
        if foreign.size:
            known = result.with_foreign(known, rows.categories("label")[foreign], answers["n_foreign"])
        return result.described(known, X)

    def embed(self, X: Any, sample: Any = None) -> SampleStates:
        """Feature sums of unlabelled samples: to keep, to add those of later cells, to predict from.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), or a cells dataset
        sample : array-like, shape (m,), optional
            As in `predict`.

        Returns
        -------
        SampleStates
            n_samples x 40 x n_features numbers (without folds where ``n_bootstrap=0``).

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(200, 2))
        >>> from scaleshift import DFM
        >>> model = DFM(random_state=0).fit(x, np.repeat(["a", "b"], 100))
        >>> monday = model.embed(x, sample=np.repeat(["S1", "S2"], 100))
        >>> tuesday = model.embed(x[:50], sample=np.repeat(["S2"], 50))
        >>> model.predict(monday + tuesday).n_cells.values.tolist()
        [100, 150]
        """
        check_is_fitted(self, "source_")
        rows = self._rows(X, sample)
        return embed_samples(rows, self.embedding_, self.source_.counts.shape[1], self.seed_)

    def posterior(self, X: Any, proportion: xr.Dataset | None = None, sample: Any = None) -> xr.DataArray:
        """Probability of each class for every cell, under the proportions of the cell's own sample. Lazy.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), or a cells dataset
        proportion : xarray.Dataset, optional
            What `predict` gave for X; None predicts first, which is one more pass.
        sample : array-like, shape (m,), optional
            As in `predict`.

        Returns
        -------
        xarray.DataArray
            Dimensions (cell, label), backed by Dask in the row chunks of X; a row adds up to one. Soft models
            have the unknown cells as last label, "unknown". NaN for rows that are not finite with
            ``invalid="drop"``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        DataError
            If `proportion` lacks a sample of X, or a label; for the energy kernel, HDx and transformers,
            which give no densities.

        Notes
        -----
        p(i | x) is proportional to a_i <Phi(x), Phi_i>^g, a_i the class's proportion: a kernel density
        classifier. The power g = 1 + (bandwidth / within-class sd)^2 makes densities as sharp as the classes:
        the kernel makes a Gaussian class of variance v one of v + bandwidth^2. Classes of very different
        widths get the same g, and posteriors between them are rough. The error of Fourier features shows in
        cells far from every class where the bandwidth is narrow: prefer landmarks for posteriors. The power
        is that of the Gaussian kernel; with others, most of all Laplace and Cauchy, posteriors are rough.

        Unknown cells have a flat density, .4 of what classes have at their own cells: where they overlap with
        a class, few are told from it. A cell where no class has any density is unknown, or gets the
        proportions themselves. A classifier in place of the kernel gives p(i | x) a_i / b_i, b_i the class's
        share of what it learned from (Saerens, Latinne and Decaestecker 2002), and no unknown cells.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import DFM
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(-3, 1, (500, 2)), rng.normal(3, 1, (500, 2))])
        >>> model = DFM(random_state=0).fit(X, np.repeat(["a", "b"], 500))
        >>> model.posterior(X[495:505]).sel(label="a").values.round().tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        from scaleshift.quantify.posterior import posterior

        return posterior(self, X, proportion, sample)

    def merge(self, other: Self) -> Self:
        """The model of both sources, without their cells.

        Parameters
        ----------
        other : the same class
            Fitted with the same feature map: the same frequencies or landmarks. Pass this model's
            `embedding_` as `features` of the other, or give both the same map, bandwidth and random state.

        Returns
        -------
        Self
            A new one, with this one's parameters. Labels of either model are known to it.

        Raises
        ------
        DataError
            If the maps, markers or numbers of folds differ, for the exact kernel, or if both sources hold a
            sample of the same name.

        Examples
        --------
        >>> import scaleshift as ss
        >>> here = ss.DFM(bandwidth=1.0, random_state=0).fit([[0.0], [0.1], [5.0]], ["B", "B", "T"])
        >>> there = ss.DFM(here.embedding_).fit([[5.1], [9.0]], ["T", "NK"])  # elsewhere, the same map
        >>> both = here.merge(there)
        >>> both.labels_.tolist(), both.class_counts_.tolist()
        (['B', 'NK', 'T'], [2, 1, 2])
        """
        for model in (self, other):
            check_is_fitted(model, "source_")
        learned.check_mergeable(self, other)
        merged, source = clone(self), self.source_ + other.source_
        found = {name: value for name, value in vars(self).items() if name.endswith("_")}
        found.update(source_=source, **learned.attributes(source, self.embedding_, self.soft))
        return merged._set(found)

    def _learned(self) -> Facts:
        return telling.facts(self)

    def _improved(
        self, rows: Rows, matcher: Matcher, answers: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """What further passes over the targets make of the answers; here there are none."""
        return answers

    def _plan_more(self, planner: Planner, rows: Rows) -> None:
        """Tell a planner of these passes."""

    def _plan(self, rows: Rows) -> Plan:
        """What `scaleshift.explain` tells of a fit, or of a prediction once fitted."""
        from scaleshift.quantify import planning

        if hasattr(self, "source_"):
            return planning.plan_predict(self, rows.matched(self.markers_, self.n_features_in_))
        self._check()
        return planning.plan_fit(self, rows)

    def _set(self, fitted: dict[str, Any]) -> Self:
        for name, value in fitted.items():
            setattr(self, name, value)
        return self

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        parameters.check_replicates(self.n_bootstrap)
        parameters.check_level(self.level)
        allowed = (None, "cells", "samples")
        parameters.check("resample", self.resample, lambda v: v in allowed, "None, 'cells' or 'samples'")
        parameters.check_switch("soft", self.soft)

    def _rows(self, X: Any, sample: Any) -> Rows:
        """The rows of targets, markers as the source has them."""
        rows = as_rows(X, None, sample, invalid=self.invalid)
        return rows.matched(self.markers_, self.n_features_in_, self.treatment_)

    def _matcher(self) -> Matcher:
        with blas.one_thread():
            return learned.matcher(
                self.source_,
                self.embedding_,
                self._mixture,
                sets=learned.traded(self.confounded_, self.labels_, self.soft),
                n_bootstrap=self.n_bootstrap if self.source_.counts.shape[1] > 1 else 0,
                level=self.level,
                resample=self.resample,
                seed=self.seed_,
                bounded=self._bounded(),
            )

    def _dataset(self, samples: np.ndarray, answers: dict[str, np.ndarray]) -> xr.Dataset:
        """The result, of what the matcher answered for the samples that have rows."""
        present = self.class_counts_ > 0
        c = int(present.sum())

        def placed(values: np.ndarray, fill: float = np.nan) -> np.ndarray:
            full = np.full((len(samples), *values.shape[1:]), fill)
            full[answers["key"]] = values
            return full

        # (n_samples, n_shares, 3): each with the ends of its interval
        shares = placed(np.stack([answers[name] for name in ("share", "low", "high")], axis=2))
        proportion = np.full((len(samples), len(present), 3), np.nan)
        proportion[:, present] = shares[:, :c]
        unknown = shares[:, c] if self.soft else np.full((len(samples), 3), np.nan)
        numbers: dict[str, Any] = {name: placed(answers[name]) for name in ("distance", "misfit", "p_value")}
        numbers |= {name: placed(answers[name], 0) for name in ("n_cells", "n_invalid")}
        numbers["flag"] = telling.flags(self, numbers, unknown, shares)
        numbers["unknown_baseline"] = self.unknown_baseline_ if self.soft else np.nan
        return result.assembled(
            samples, self.labels_, self.class_counts_, proportion, unknown, numbers, telling.attributes(self)
        )
