"""Classifiers fitted on a bounded sample of the source, so that every labelled row is predicted held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax

from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.classifier.logistic import Logistic, mean_logistic
from scaleshift.quantify.classifier.models import LOG_TINY, Model, check_estimator, fitted, fitted_already
from scaleshift.quantify.classifier.parts import Parts, divided

if TYPE_CHECKING:
    from scaleshift.quantify.features.base import Source

MAX_ROWS = 20_000  # of the source are learned from
LEAST = 200  # of a class, where it has them


@dataclass(frozen=True)
class CrossFit:
    """One classifier for each part of the source, fitted without it.

    Of rows that none has learned from `log_posteriors` gives what each says. A mean over them has the errors
    that the source's rows show, each predicted by one; those of a vote among them, or of a classifier fitted
    on all parts, are fewer, and proportions corrected for the source's errors would be off.
    """

    n_labels: int
    prior: np.ndarray  # (n_labels,) class shares of the rows that were learned from
    models: tuple[Model, ...]  # by part; one where it came fitted
    parts: Parts | None  # None where it came fitted

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return sum(model.nbytes for model in self.models)

    @property
    def voices(self) -> tuple[Model, ...]:
        """Those that answer for rows that none has learned from; of linear models their mean, as one.

        It differs from the mean of their answers by less than either does from the truth.
        """
        logistic = [model for model in self.models if isinstance(model, Logistic)]
        if len(logistic) == len(self.models) and len({model.classes.tobytes() for model in logistic}) == 1:
            return (mean_logistic(logistic),)  # a prediction, not as many as parts
        return self.models

    def log_posteriors(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """What each voice says of rows that were not learned from: (n, n_markers) -> (n, n_labels) each."""
        for model in self.voices:
            yield log_posterior_of(model, x, self.n_labels)

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """The geometric mean of what they say, for single rows: (n, n_markers) -> (n, n_labels)."""
        total, n = np.zeros((len(x), self.n_labels)), 0
        for found in self.log_posteriors(x):
            total += found
            n += 1
        return log_softmax(total / n, axis=1)

    def log_posterior_held_out(self, block: Block) -> np.ndarray:
        """Of labelled rows, each by the classifier that has not seen its part: -> (n, n_labels)."""
        x, code = to_numpy(block.x), block.columns["label"]
        if self.parts is None:
            return self.log_posterior(x)
        return self._by_part(x, self.parts.of_block(block.start, code))

    def log_posterior_drawn(self, drawn: dict[str, np.ndarray]) -> np.ndarray:
        """The same of rows that `passes.sample` gave."""
        if self.parts is None:
            return self.log_posterior(drawn["x"])
        return self._by_part(drawn["x"], self.parts.of_rows(drawn["row"], drawn["code"]))

    def _by_part(self, x: np.ndarray, part: np.ndarray) -> np.ndarray:
        found = np.empty((len(x), self.n_labels))
        for number in np.unique(part):
            here = part == number
            if number < 0:
                found[here] = self.log_posterior(x[here])
            else:
                found[here] = log_posterior_of(self.models[number], x[here], self.n_labels)
        return found


def log_posterior_of(model: Model, x: np.ndarray, n_labels: int) -> np.ndarray:
    """Of one model, (n, n_labels); that of a class which it does not know is that of next to nothing."""
    found = np.full((len(x), n_labels), LOG_TINY)
    if len(x):  # scikit-learn refuses no rows
        found[:, model.classes] = np.maximum(model.log_posterior(x), LOG_TINY)
    return found


def cross_fit(
    estimator: Any, cv: int | str, source: Source, seed: int, drawn: Mapping[str, np.ndarray] | None = None
) -> CrossFit:
    """Fit the classifiers: one pass over the source draws at most about 20 000 rows to learn from.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier
        None is the default one.
    cv : int or "prefit"
        How many parts the source has. "prefit": the estimator is fitted already, on other rows.
    source : Source
    seed : int
    drawn : mapping of name to array, optional
        Those rows, where they were drawn already: `allocation` says how many.
    """
    n_labels = len(source.counts)
    check_estimator(estimator)
    if isinstance(cv, str) and cv == "prefit":
        model = fitted_already(
            estimator, source.rows.categories("label"), source.rows.n_markers, source.rows.markers
        )
        return CrossFit(n_labels, source.counts / source.counts.sum(), (model,), None)
    if not isinstance(cv, int | np.integer) or cv < 2:
        raise DataError(f"cv={cv!r}: expected a number of parts from 2, or 'prefit'")
    drawn = source.draw(allocation(source.counts)) if drawn is None else drawn
    x, code = drawn["x"], drawn["code"]
    parts = divided(source.counts, int(cv), seed)
    part = parts.of_rows(drawn["row"], code)
    models = tuple(fitted(estimator, x[part != number], code[part != number]) for number in range(cv))
    prior = np.bincount(code, minlength=n_labels) / len(code)
    return CrossFit(n_labels, prior, models, parts)


def allocation(counts: np.ndarray) -> np.ndarray:
    """Rows of each class to learn from: by class size, 200 at least where there are.

    Of more than 100 classes fewer at least, so that all together are 40 000 at most.

    Examples
    --------
    >>> allocation(np.array([1_000_000, 100, 1_000])).tolist()
    [19978, 100, 200]
    >>> int(allocation(np.full(5_000, 10_000)).sum())
    20000
    """
    if counts.sum() <= MAX_ROWS:
        return counts
    share = np.rint(MAX_ROWS * counts / counts.sum()).astype(np.int64)
    return np.minimum(counts, np.maximum(share, min(LEAST, max(MAX_ROWS // len(counts), 1))))


def same(a: Any, b: Any) -> bool:
    """Whether two learned things hold the same numbers; of estimators, whether they are one object.

    Examples
    --------
    >>> same(Parts(2, 0, np.array([True])), Parts(2, 0, np.array([True])))
    True
    """
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return type(a) is type(b) and all(same(getattr(a, name), getattr(b, name)) for name in names)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b)
    return a is b or (isinstance(a, int | float | str) and a == b)
