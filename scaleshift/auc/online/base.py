"""What do all methods do that go through the rows step by step?  They hand a small state on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scaleshift.auc import telling
from scaleshift.auc.classes import signs
from scaleshift.blocks import graph, noise, passes
from scaleshift.blocks.block import Block, Kept, Rows
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError
from scaleshift.fitted import Facts, Fitted
from scaleshift.kernels.reference import to_numpy
from scaleshift.parameters import check, is_whole

State = dict[str, np.ndarray]
Meaning = tuple[Callable[[Any], Any], str | tuple[str, ...]]

POSITIVE: Meaning = (lambda value: 0 < value < np.inf, "a number above 0")
FROM_ZERO: Meaning = (lambda value: 0 <= value < np.inf, "a number from 0")
WHOLE: Meaning = (lambda value: is_whole(value) and value >= 1, "a whole number from 1")
ENTRIES: Meaning = (lambda value: is_whole(value) and value >= 0, "a whole number from 0")


class Task(NamedTuple):
    """What a fit goes through."""

    rows: Rows
    kept: Rows | Kept  # the same rows, in memory where several passes need them and all fit
    sign: np.ndarray  # (n_labels,) +1 or -1
    counts: tuple[int, int]  # labelled rows: positive, negative
    visits: int  # labelled rows of one pass, each visit counted
    seed: int

    @property
    def d(self) -> int:
        """Features."""
        return self.rows.n_markers


class OnlineRanking(Fitted):
    """A linear ranking learned step by step: what all of them answer, and how each begins and ends its fit.

    Steps need each other's results, so they run one after the other, whatever the number of workers: the
    state travels, not the rows. The result does not depend on how the rows are chunked.
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {}  # of parameters

    n_passes: int
    order: Any
    pos_label: Any
    random_state: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the labelled rows.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset
            numpy, Dask (any chunks), pandas, xarray, AnnData.
        y : array-like, shape (n,), optional
            Labels of two kinds, or of more with `pos_label`; unlabelled rows (NaN, None) are skipped. None
            takes those of the dataset.

        Returns
        -------
        self

        Raises
        ------
        DataError
            Parameters without a meaning, one class alone, values that are not finite, or coefficients that
            are not because the steps are too long.

        Examples
        --------
        >>> from scaleshift.auc import SPAM
        >>> X = np.array([[1.0, 0.2], [0.9, -0.2], [-1.0, 0.1], [-0.8, -0.1]])
        >>> y = ["ill", "ill", "healthy", "healthy"]
        >>> model = SPAM(n_passes=10).fit(X, y)
        >>> model.classes_.tolist(), int(np.abs(model.coef_).argmax())
        (['healthy', 'ill'], 0)
        """
        for name, (meaningful, expected) in {"n_passes": WHOLE, **self.MEANINGS}.items():
            check(name, getattr(self, name), meaningful, expected)
        task = self._task(X, y)
        coef, intercept = self._learn(task)
        if not (np.isfinite(coef).all() and np.isfinite(intercept)):
            raise DataError(
                f"the coefficients of {type(self).__name__} are not finite: its steps are too long for these "
                "rows; give rows of unit length, or make the step smaller"
            )
        categories = task.rows.categories("label")
        negative = categories[task.sign < 0]
        self.coef_, self.intercept_ = coef, float(intercept)
        # One against all others: there is no one name for these.
        self.classes_ = np.append(negative, categories[task.sign > 0]) if len(negative) == 1 else categories
        self.markers_, self.n_features_in_ = task.rows.markers, task.d
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores of rows: the higher, the more like the positive class.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64, shape (n,)
            Lazy for Dask input.

        Examples
        --------
        >>> from scaleshift.auc import SPAM
        >>> X = np.array([[1.0, 0.2], [0.9, -0.2], [-1.0, 0.1], [-0.8, -0.1]])
        >>> y = ["ill", "ill", "healthy", "healthy"]
        >>> SPAM(n_passes=10).fit(X, y).decision_function(X).argsort().tolist()  # the healthy ones first
        [2, 3, 1, 0]
        """
        check_is_fitted(self, "coef_")
        rows = as_rows(X).matched(self.markers_, self.n_features_in_).only()
        scores = passes.map_rows(score_leaf, rows, coef=self.coef_, intercept=self.intercept_)
        return graph.compute(scores, in_memory=True) if rows.in_memory else scores

    def _learned(self) -> Facts:
        return telling.of_online(self)

    # For the methods themselves ------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        """Coefficients (d,) and intercept."""

    def _task(self, X: Any, y: Any) -> Task:
        rows = as_rows(X, y)
        if "label" not in rows.columns:
            raise DataError(
                "y is missing, and X brings no labels: a ranking is learned from labelled rows; pass y"
            )
        rows = rows.only("label")
        sign = signs(rows.categories("label"), self.pos_label)
        by_label = passes.counts(rows, "label")
        n_pos, n_neg = int(by_label[sign > 0].sum()), int(by_label[sign < 0].sum())
        if not (n_pos and n_neg):
            raise DataError(
                f"y has {n_pos} positive and {n_neg} negative rows: a ranking needs both; pass some of each"
            )
        visits = n_pos + n_neg
        if isinstance(self.order, str):
            check("order", self.order, lambda value: value == "random", "None, 'random' or an array")
        elif self.order is not None and not np.size(self.order):
            raise DataError("order is empty: name the rows, or blocks, of at least one step")
        elif self.order is not None and self._goes_by_rows:
            if visits < rows.x.shape[0]:
                raise DataError("order names rows, and some are unlabelled: leave these out, or order=None")
            visits = len(np.atleast_1d(self.order))
        kept: Rows | Kept = rows
        if self.n_passes > 1:
            kept = passes.keep(rows, loaded_leaf, rows.n_markers * rows.x.dtype.itemsize + 8)
        return Task(rows, kept, sign, (n_pos, n_neg), visits, noise.seed_of(self.random_state))

    _goes_by_rows = True  # or by blocks of them

    def _pass(self, kernel: Any, state: State, task: Task, number: int, **parameters: Any) -> State:
        """One pass of a kernel that goes row by row, in the order that was asked for."""
        order = self.order
        if isinstance(order, str):
            order = noise.generator(task.seed, f"order {number}").permutation(task.rows.x.shape[0])
        return passes.chain(kernel, state, task.kept, order, sign=task.sign, **parameters)


def loaded_leaf(block: Block) -> Block:
    """A block that stays in memory: as numbers of its own, not views of what it was read from."""
    return block._replace(x=to_numpy(block.x))


def score_leaf(block: Block, coef: np.ndarray, intercept: float) -> np.ndarray:
    """Scores of one block, (n,)."""
    return to_numpy(block.x) @ coef + intercept


def signed(block: Block, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What kernels go through: rows (n, d) of floats, and +1, -1 or 0 (unlabelled) of each."""
    x = to_numpy(block.x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    codes = block.codes("label")
    return np.ascontiguousarray(x), np.where(codes >= 0, sign[codes], 0).astype(np.int8)
