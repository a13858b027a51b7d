"""Sparse AUC maximisation: the few features that rank positives over negatives best."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from scaleshift.auc import resuming
from scaleshift.auc.job import job_of
from scaleshift.auc.merging import merged
from scaleshift.auc.ranker import Question, Ranker
from scaleshift.auc.solvers import SOLVERS
from scaleshift.auc.tables import column, table
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.buckets import given_splits
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.rows import as_rows, with_columns, with_numbers
from scaleshift.errors import DataError
from scaleshift.parameters import check, is_switch, is_whole

Meaning = tuple[Callable[[Any], Any], str | tuple[str, ...]]
SWITCH: Meaning = (is_switch, "True or False")
MOST_SHRINKAGE = 1e100  # beyond it weights and their squares leave the range of float64


def _is_size(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _is_sizes(value: Any) -> bool:
    return bool(value is None or _is_size(value) or (len(value) and all(map(_is_size, np.asarray(value)))))


def _is_shrinkage(value: Any) -> bool:
    numbers = np.atleast_1d(np.asarray(0.0 if value is None else value, np.float64))
    return bool(numbers.size and numbers.ndim == 1 and ((numbers >= 0) & (numbers <= MOST_SHRINKAGE)).all())


def _is_cv(value: Any) -> bool:
    return value is None or (is_whole(value) and value >= 2) or (isinstance(value, list) and len(value) >= 2)


class SparseAUC(Ranker):
    """Linear ranking with k features that maximises the AUC, in one or two passes over the data.

    Minimises over w with at most k entries the mean of (1 - w'(x+ - x-))^2 over all pairs of a positive and a
    negative row. The pairs are never made: this is a quadratic of class means and covariances, which one pass
    sums. Number of features and shrinkage are chosen by cross-validation on the same sums; a second pass
    measures the AUC on rows that had no say, and learns probabilities.

    Parameters
    ----------
    k : int or sequence of int, optional
        Number of features; several: those to choose from (with `cv=None` the largest is taken, and the
        others are in `path_`). None: up to 100, by cross-validation.
    alpha : float or sequence of float, optional
        Shrinkage: alpha diag(W) is added to the covariance W. None: of .01 to 100 by cross-validation; 0 with
        ``cv=None``, and of "screen" and "sht".
    solver : {"auto", "moments", "stream", "screen", "sht"}, default "auto"
        "moments" sums covariances of all features; "stream" those of `n_screened` candidates by t, for
        thousands of features, and looks whether one was overlooked; "screen" takes the k of largest t, as
        of classes of one size, as they are; "sht" is the stochastic hard thresholding of the source. "auto"
        is "moments" where its sums fit, else "stream".
    positive : bool, default False
        Whether weights below 0 are ruled out; not with "sht".
    cv : int, list or None, default 5
        Folds, random within each label, or of whole `groups`; or a list of (train, test) row numbers as
        scikit-learn's splitters give them, each row tested once. None: no cross-validation, and one pass.
    pos_label : label, optional
        The positive one, against all others. None: of two labels the one that sorts last.
    scale : bool, default True
        Whether features count in units of their spread within the classes; for "moments" and "stream" this
        matters to `alpha` alone.
    block_size, step_size, max_iter, order
        Of "sht": rows of a block, step for the gradient of F, number of steps, and numbers of the blocks
        they use; blocks are then contiguous in row order. Without `order` blocks are random and stratified.
    checkpoint : path, optional
        Folder for the state of a long fit, which goes on from there after it was killed.
    random_state : int, Generator or None
        Of buckets, halves and blocks.
    multi_class : {"ovr", "ovo"}, default "ovr"
        With more than two labels and no `pos_label`: each against all others, or each pair.
    selection : {"best", "one_se"}, default "best"
        The best held-out AUC, or the fewest features within a standard error of it: easier to read, and
        worse by some hundredths where positives are few.
    n_halves : int, default 20
        Halves of the rows that `stability` is told from; 0: none.
    n_screened : int, default 1000
        Candidates of "stream", at most: those of largest t on all rows, and outside each fold.
    debias : bool, default False
        Whether the weights of the chosen features are learned again without shrinkage; not with "sht".
    warm_start : bool, default False
        Whether "sht" starts from the weights of the fit before.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_features,) or (n_contrasts, n_features)
        Weights in units of X; 0 but for the chosen features.
    intercept_ : float or numpy.ndarray, shape (n_contrasts,)
        Rows score above -intercept_ where a positive is more likely than not; of each label against all
        others, under the prior of the training rows.
    support_ : numpy.ndarray of int
        The chosen features, ascending; of any contrast.
    classes_ : numpy.ndarray
        Of two labels the second is the positive one.
    k_, alpha_ : of the ranking that was chosen; arrays of several contrasts.
    objective_ : float or numpy.ndarray
        F of all pairs of rows.
    auc_, auc_se_ : float or numpy.ndarray
        AUC on held-out rows, the mean over folds; NaN without cross-validation. Neither the ranking nor the
        size and shrinkage of a fold had a say of its rows. The standard error is that of the folds, or of
        their numbers of rows where it is larger; of five folds 2.8 of them, not 2, make 95 %.
    auc_binormal_ : float or numpy.ndarray
        What normal scores with the moments of the training rows would have: a proxy, no AUC.
    path_ : xarray.Dataset
        By number of features: weights, objective, held-out AUC.
    solver_ : str
    n_iter_ : int
        Steps of "sht"; 1 of the others, which do not iterate.
    n_overlooked_ : int
        Of "stream": features that no t let in, and that seem useful still after a second round with the first
        such ones; 0 where none is left.
    objective_path_, coef_history_, coef_history_steps_, step_size_, converged_
        Of "sht", of its last contrast: F by epoch, and iterates with the numbers of their steps.
    n_features_in_, n_invalid_, seed_

    References
    ----------
    "Stochastic Hard Thresholding Algorithms for AUC Maximization", ICDM 2020: the objective as a sum over
    rows (Proposition 1), the solver "sht" (Algorithm 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(2_000) < 0.05
    >>> X = rng.normal(size=(2_000, 30)).astype(np.float32)
    >>> X[y, :3] += 1
    >>> model = SparseAUC(selection="one_se", random_state=0).fit(X, y)
    >>> model.support_.tolist(), bool(model.auc_ > 0.85)
    ([0, 1, 2], True)
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {
        "k": (_is_sizes, "a whole number from 1, several of them, or None"),
        "alpha": (_is_shrinkage, "a number from 0 to 1e100, several of them, or None"),
        "solver": (lambda value: value in ("auto", *SOLVERS), ("auto", *SOLVERS)),
        "positive": SWITCH,
        "cv": (_is_cv, "a number from 2, a list of (train, test), or None"),
        "scale": SWITCH,
        "multi_class": (lambda value: value in ("ovr", "ovo"), "'ovr' or 'ovo'"),
        "selection": (lambda value: value in ("best", "one_se"), ("best", "one_se")),
        "n_halves": (lambda value: is_whole(value) and value >= 0, "a whole number from 0"),
        "n_screened": (_is_size, "a whole number from 1"),
        "debias": SWITCH,
        "warm_start": SWITCH,
        "invalid": (lambda value: value in ("raise", "drop"), "'raise' or 'drop'"),
    }

    def __init__(
        self,
        k: Any = None,
        alpha: Any = None,
        solver: str = "auto",
        positive: bool = False,
        cv: Any = 5,
        pos_label: Any = None,
        scale: bool = True,
        block_size: int | None = None,
        step_size: float | None = None,
        max_iter: int | None = None,
        order: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        *,
        multi_class: str = "ovr",
        selection: str = "best",
        n_halves: int = 20,
        n_screened: int = 1_000,
        debias: bool = False,
        warm_start: bool = False,
        invalid: Invalid = "raise",
    ):
        self.k = k
        self.alpha = alpha
        self.solver = solver
        self.positive = positive
        self.cv = cv
        self.pos_label = pos_label
        self.scale = scale
        self.block_size = block_size
        self.step_size = step_size
        self.max_iter = max_iter
        self.order = order
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.multi_class = multi_class
        self.selection = selection
        self.n_halves = n_halves
        self.n_screened = n_screened
        self.debias = debias
        self.warm_start = warm_start
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the ranking.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset
            numpy, Dask (any chunks), CuPy, pandas, xarray, AnnData; also scipy.sparse and Dask arrays of
            sparse blocks, with the solvers "stream" and "screen".
        y : array-like, shape (n,), optional
            Labels; None, NaN: the row is not learned from. None takes those of the dataset.
        sample_weight : array-like, shape (n,), optional
            What each row counts, from 0.
        groups : array-like, shape (n,), or "sample", optional
            Rows that folds keep together, such as those of one donor: the held-out AUC is then that of donors
            not seen. "sample" takes the samples of a cells dataset.

        Returns
        -------
        self

        Raises
        ------
        DataError
            Parameters without a meaning, fewer than two labels, too few rows of one, values that are not
            finite.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> donor, y = np.arange(400) % 10, np.arange(400) % 2
        >>> X = rng.normal(size=(400, 2)) + y[:, None] * [1, 0]
        >>> model = SparseAUC(k=1, random_state=0).fit(X, y, groups=donor)  # judged on donors not seen
        >>> model.support_.tolist(), round(float(model.auc_), 1)
        ([0], 0.8)
        """
        rows = self._rows(X, y, sample_weight, groups)
        seed = resuming.seed_of(self.checkpoint, self.random_state)
        name, job = job_of(self, rows, sample_weight is not None, seed)
        solved = SOLVERS[name](resuming.resumable(job, name))
        return self._learn(solved, Question.of(job, name))

    def merge(self, other: SparseAUC) -> SparseAUC:
        """A ranking of the rows of both: their sums are added, no row is needed.

        Parameters
        ----------
        other : SparseAUC
            Fitted with solver "moments", on the same labels, features and number of folds.

        Returns
        -------
        SparseAUC
            A new one with the parameters of this. What is told by rows alone, `auc_` and the held-out AUCs of
            `path_`, is NaN; probabilities are those of normal scores.

        Raises
        ------
        DataError
            If the two do not fit together.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(400) % 2
        >>> X = rng.normal(size=(400, 4)) + y[:, None]
        >>> here, there, both = (SparseAUC(k=2, cv=None) for _ in range(3))
        >>> merged = here.fit(X[:150], y[:150]).merge(there.fit(X[150:], y[150:]))
        >>> bool(np.allclose(merged.coef_, both.fit(X, y).coef_))
        True
        """
        return merged(self, other)

    def _rows(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Rows:
        """Rows with labels, weights and groups; parameters are checked first."""
        for name, (meaningful, expected) in self.MEANINGS.items():
            check(name, getattr(self, name), meaningful, expected)
        own = isinstance(groups, str) and groups == "sample"
        rows = as_rows(table(X), column(y), None if own else groups, invalid=self.invalid, sparse=True)
        if sample_weight is not None:
            if getattr(sample_weight, "ndim", 1) > 1:
                raise DataError(
                    f"sample_weight has {sample_weight.ndim} dimensions: expected one number a row"
                )
            rows = with_numbers(rows, weight=sample_weight)
        if groups is not None:
            return with_columns(rows, group=rows.columns["sample"])
        if isinstance(self.cv, int | np.integer | None):
            return rows
        return with_columns(rows, group=given_splits(self.cv, rows.x.shape[0]))

    def _plan_fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Plan:
        from scaleshift.auc.planning import plan_fit

        return plan_fit(self, self._rows(X, y, sample_weight, groups), sample_weight is not None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
