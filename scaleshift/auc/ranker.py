"""What does a fitted ranking answer?  Scores, labels and probabilities of rows; its path and its features."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from scaleshift.auc import answers, result, telling
from scaleshift.auc.damage import refuse_damaged
from scaleshift.auc.fitting import LearnedRanking
from scaleshift.auc.held_out import linear_scores
from scaleshift.auc.moments import ClassMoments
from scaleshift.auc.solving import Job, Solved
from scaleshift.auc.tables import table
from scaleshift.blocks import graph, passes
from scaleshift.blocks.block import Block, Invalid, Rows
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.treatment import Treatment
from scaleshift.errors import DataError
from scaleshift.fitted import Facts, Fitted


@dataclass(frozen=True)
class Question:
    """What a fit was asked, beside its parameters: fitted attributes, each with "_" at its end."""

    classes: np.ndarray  # of two labels the second is the positive one
    labels: np.ndarray  # as they came, in their order
    contrasts: list[str]
    signs: np.ndarray  # (n_contrasts, n_labels) int8
    kind: str  # "binary", "ovr", "ovo"
    markers: tuple[str, ...] | None
    treatment: Treatment | None  # transform and scaling, where cells tell of them
    n_features_in: int
    n_labelled: int  # rows with a label and a weight, finite or not
    n_folds: int
    solver: str
    seed: int

    @classmethod
    def of(cls, job: Job, solver: str) -> Question:
        """The question of a job."""
        asked, rows = job.contrasts, job.rows
        return cls(
            asked.classes,
            rows.categories("label"),
            list(asked.names),
            np.stack(asked.sign),
            asked.kind,
            rows.markers,
            rows.treatment,
            rows.n_markers,
            int(passes.counts(rows, "label").sum()),
            job.n_folds,
            solver,
            job.seed,
        )


class Ranker(ClassifierMixin, Fitted):
    """Linear rankings of one contrast of labels or of several: what they answer once they are learned."""

    invalid: Invalid
    learned_: list[LearnedRanking]  # one a contrast
    kind_: str  # "binary", "ovr", "ovo"
    contrasts_: list[str]
    classes_: np.ndarray
    markers_: tuple[str, ...] | None
    treatment_: Treatment | None
    n_features_in_: int
    moments_: ClassMoments | None  # of solver "moments", which `merge` needs
    prior_: np.ndarray | None  # (n_classes,) None: that of the training rows
    seed_: int
    support_: np.ndarray

    def decision_function(self, X: Any) -> Any:
        """Scores of rows: the higher, the more like the positive class.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64
            Of two labels (n,), X @ coef_ + intercept_, above 0 where the positive one is more likely. Of
            several (n, n_classes): log odds of each against the others, under the prior that was set; or with
            "ovo" the mean probability in pairs. Lazy for Dask input.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> X, y = np.arange(12.0)[:, None], np.repeat(["healthy", "ill"], 6)
        >>> model = SparseAUC(1, cv=None).fit(X, y)
        >>> scores = model.decision_function([[2.0], [9.0]])
        >>> bool(scores[0] < 0 < scores[1])
        True
        """
        return self._map(decision_leaf, X)

    def predict(self, X: Any) -> Any:
        """The most likely label of each row.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset

        Returns
        -------
        numpy.ndarray or dask.array.Array, shape (n,)
            Labels of `classes_`. Where positives are rare, few rows or none are more likely positive than
            not: rank by `decision_function`. Lazy for Dask input.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> X, y = np.arange(12.0)[:, None], np.repeat(["healthy", "ill"], 6)
        >>> model = SparseAUC(1, cv=None).fit(X, y)
        >>> model.predict([[2.0], [9.0]]).tolist()
        ['healthy', 'ill']
        """
        codes = self._map(code_leaf, X, dtype=np.int64, fill=-1)
        if isinstance(codes, np.ndarray):
            return labelled(codes, self.classes_)
        return codes.map_blocks(labelled, self.classes_, dtype=self.classes_.dtype, meta=self.classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """How likely each label is.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64, shape (n, n_classes)
            By Platt scaling on held-out scores; without cross-validation, of normal scores. Lazy for Dask
            input.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> X, y = np.arange(12.0)[:, None], np.repeat(["healthy", "ill"], 6)
        >>> model = SparseAUC(1, cv=None).fit(X, y)
        >>> model.predict_proba([[2.0], [5.5]]).round(2).tolist()  # the second row is half-way between them
        [[1.0, 0.0], [0.5, 0.5]]
        """
        return self._map(probability_leaf, X, columns=len(self.classes_) if hasattr(self, "classes_") else 2)

    def set_prior(self, prior: Any, sample: Any = None) -> Self:
        """Say how frequent the labels are where rows come from now: probabilities move, ranks do not.

        Parameters
        ----------
        prior : float, dict, array-like, xarray.Dataset or None
            Share of the positive label; shares by label, or in the order of `classes_`; or what a quantifier
            has found. None: those of the training rows.
        sample : str, optional
            Which sample of a quantification.

        Returns
        -------
        self

        Notes
        -----
        Right where rows of one label look as they did in training.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> rng = np.random.default_rng(0)
        >>> y = rng.random(500) < 0.5
        >>> X = rng.normal(size=(500, 3)) + 2 * y[:, None]
        >>> model = SparseAUC(k=1, random_state=0).fit(X, y)
        >>> before = model.predict_proba(X)[:, 1].mean()
        >>> bool(model.set_prior(0.01).predict_proba(X)[:, 1].mean() < before / 2)
        True
        """
        self._ready()
        self.prior_ = None if prior is None else answers.prior_of(prior, self.classes_, sample)
        self._expose()
        return self

    @property
    def path_(self) -> xr.Dataset:
        """Rankings by number of features k: weights, F, held-out AUC; contrasts along `contrast`.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(400) % 2
        >>> X = rng.normal(size=(400, 3)) + y[:, None] * [2, 1, 0]
        >>> path = SparseAUC([1, 2, 3], random_state=0).fit(X, y).path_
        >>> path["k"].values.tolist(), path["auc"].round(2).values.tolist()  # the third feature adds nothing
        ([1, 2, 3], [0.92, 0.92, 0.92])
        """
        self._ready()
        found = result.path_dataset(self.learned_, self.contrasts_, self._feature_names, self.kind_)
        return found.assign_attrs(self._attributes())

    def describe(self) -> xr.Dataset:
        """What each feature does: its weight, how stably it is chosen, what it ranks alone.

        Returns
        -------
        xarray.Dataset
            By feature: coef, coef_scaled, selected, stability, auc_alone, mean_positive, mean_negative; of
            the ranking: k, alpha, auc, auc_se, auc_bound, auc_binormal, objective, intercept. Several
            contrasts lie along `contrast`.

        Examples
        --------
        >>> from scaleshift import SparseAUC
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(400) % 2
        >>> X = rng.normal(size=(400, 3)) + y[:, None] * [2, 1, 0]
        >>> told = SparseAUC(2, random_state=0).fit(X, y).describe()
        >>> told["selected"].values.tolist(), told["auc_alone"].round(1).values.tolist()
        ([True, True, False], [0.9, 0.7, 0.5])
        """
        self._ready()
        found = result.features_dataset(self.learned_, self.contrasts_, self._feature_names, self.kind_)
        return found.assign_attrs(self._attributes())

    def _learned(self) -> Facts:
        return telling.of_ranker(self)

    def _learn(self, solved: Solved, question: Question) -> Self:
        """Set what was learned."""
        self.learned_, self.moments_ = list(solved.learned), solved.moments
        self.n_iter_ = 1
        self.n_invalid_ = question.n_labelled - solved.n_rows
        for name, value in vars(question).items():
            setattr(self, f"{name}_", value)
        self.__dict__.pop("feature_names_in_", None)  # of a fit before
        if question.markers is not None:
            self.feature_names_in_ = np.array(question.markers, object)
        for remark, value in (solved.remarks or {}).items():
            setattr(self, remark, value)
        self.prior_ = None
        self._expose()
        return self

    # For the rankings themselves -----------------------------------------------------------------------

    @property
    def _feature_names(self) -> Any:
        return np.arange(self.n_features_in_) if self.markers_ is None else list(self.markers_)

    def _attributes(self) -> dict[str, Any]:
        positive = [str(label) for label in self.classes_[1:]] if self.kind_ == "binary" else self.contrasts_
        told: dict[str, Any] = {"seed": self.seed_, "positive": positive}
        if self.kind_ == "binary":
            told["negative"] = str(self.classes_[0])
        return result.attributes(self.get_params(), **told)

    def _ready(self) -> None:
        check_is_fitted(self, "learned_")
        refuse_damaged(self)

    def _shifts(self) -> np.ndarray:
        """What the prior adds to the log odds of each contrast, whatever the row."""
        if self.prior_ is None:
            return np.zeros(len(self.learned_))
        return answers.shifts(self.prior_, self._trained_prior(), self.kind_)

    def _trained_prior(self) -> np.ndarray:
        return trained_prior(self.learned_, self.kind_, len(self.classes_))

    def _expose(self) -> None:
        """Attributes of the chosen rankings, of one contrast without its axis."""
        every = self.learned_
        coef = np.stack([one.coef for one in every])
        self.support_ = np.flatnonzero((coef != 0).any(axis=0))
        slope = np.array([one.slope for one in every])
        told = {
            "coef_": coef,
            "intercept_": np.array([one.intercept for one in every]) + self._shifts() / slope,
            "k_": np.array([one.sizes[one.size] for one in every]),
            "alpha_": np.array([one.alpha for one in every]),
            "objective_": np.array([one.objective[one.size] for one in every]),
            "auc_": np.array([one.cv_auc for one in every]),
            "auc_se_": np.array([one.cv_auc_se for one in every]),
            "auc_binormal_": np.array([one.auc_binormal[one.size] for one in every]),
        }
        for name, values in told.items():
            setattr(self, name, values[0] if self.kind_ == "binary" else values)

    def _matched(self, rows: Rows) -> Rows:
        n, expected = rows.x.shape[1], self.n_features_in_
        if n != expected and (rows.markers is None or self.markers_ is None):
            raise DataError(
                f"X has {n} features, but {type(self).__name__} is expecting {expected} features as input: "
                "pass the columns that it was fitted on, in their order"
            )
        return rows.matched(self.markers_, expected, self.treatment_)

    def _map(self, leaf: Any, X: Any, columns: int | None = None, **options: Any) -> Any:
        self._ready()
        rows = self._matched(as_rows(table(X), invalid=self.invalid, sparse=True))
        support = self.support_ if self.support_.size else np.zeros(1, np.int64)
        rows = rows.only()  # a value that is not finite is refused in any feature, chosen or not
        slope = np.array([one.slope for one in self.learned_])
        scoring = Scoring(
            support,
            np.stack([one.coef[support] for one in self.learned_]),
            np.array([one.intercept for one in self.learned_]) + self._shifts() / slope,
            slope,
            self.kind_,
            len(self.classes_),
            None if self.prior_ is None else (self.prior_, self._trained_prior()),
        )
        if columns is None and leaf is decision_leaf and self.kind_ != "binary":
            columns = len(self.classes_)
        found = passes.map_rows(leaf, rows, columns, scoring=scoring, **options)
        return graph.compute(found, in_memory=True) if rows.in_memory else found


def trained_prior(learned: list[LearnedRanking], kind: str, n_classes: int) -> np.ndarray:
    """Shares of the classes among the training rows."""
    if kind == "binary":
        weight = learned[0].weight
    elif kind == "ovr":
        weight = np.array([one.weight[1] for one in learned])
    else:
        weight = np.zeros(n_classes)
        for one, (first, second) in zip(learned, itertools.combinations(range(n_classes), 2), strict=True):
            weight[[first, second]] = one.weight
    return weight / weight.sum()


def labelled(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels of codes; a row without one, which is not finite, gets the first."""
    return classes[np.maximum(codes, 0)]


@dataclass(frozen=True)
class Scoring:
    """What rows are scored by."""

    support: np.ndarray  # (p,) features
    coef: np.ndarray  # (n_contrasts, p)
    intercept: np.ndarray  # (n_contrasts,)
    slope: np.ndarray  # (n_contrasts,)
    kind: str
    n_classes: int
    priors: tuple[np.ndarray, np.ndarray] | None  # (n_classes,) that of the rows, and of the training rows

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.support.nbytes + self.coef.nbytes

    def scores(self, block: Block) -> np.ndarray:
        """(n, n_contrasts) of the rows of a block."""
        return linear_scores(block.x[:, self.support], self.coef) + self.intercept

    def log_odds(self, block: Block) -> np.ndarray:
        """Of the positives of each contrast: (n, n_contrasts)."""
        found = self.slope * self.scores(block)
        return answers.shifted(found, *self.priors) if self.kind == "ovr" and self.priors else found


def decision_leaf(block: Block, scoring: Scoring) -> np.ndarray:
    """Scores of the rows of a block, (n,) or (n, n_classes)."""
    if scoring.kind == "binary":
        return scoring.scores(block)[:, 0]
    return scoring.log_odds(block) if scoring.kind == "ovr" else probability_leaf(block, scoring)


def code_leaf(block: Block, scoring: Scoring) -> np.ndarray:
    """The most likely class of the rows of a block, (n,)."""
    found = decision_leaf(block, scoring)
    return (found > 0).astype(np.int64) if scoring.kind == "binary" else found.argmax(axis=1)


def probability_leaf(block: Block, scoring: Scoring) -> np.ndarray:
    """Probabilities of the classes of the rows of a block, (n, n_classes)."""
    return answers.probabilities(scoring.log_odds(block), scoring.kind, scoring.n_classes)
