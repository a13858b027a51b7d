"""The default classifier: logistic regression on the markers and their products, kept as arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from scaleshift.errors import DataError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FARTHEST = 1e15  # standard deviations
LARGEST = 1e100
MAX_PRODUCTS = 30  # markers: beyond, 500 products cost more than they tell


def default_classifier(n_markers: int) -> Pipeline:
    """Multinomial logistic regression, C = 1, on standardised markers and their products x_i x_j, i <= j.

    Above 30 markers on the markers alone.

    Parameters
    ----------
    n_markers : int

    Returns
    -------
    sklearn.pipeline.Pipeline
        Not fitted.

    Examples
    --------
    >>> len(default_classifier(5).steps), len(default_classifier(100).steps)
    (4, 2)
    """
    # Imported when needed: methods without a classifier do without a third of scikit-learn.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    linear = [StandardScaler(), LogisticRegression(max_iter=1_000)]
    if n_markers > MAX_PRODUCTS:
        return make_pipeline(*linear)
    return make_pipeline(StandardScaler(), PolynomialFeatures(include_bias=False), *linear)


@dataclass(frozen=True)
class Logistic:
    """A fitted default classifier as arrays: quick on workers, and kept without pickle."""

    classes: np.ndarray  # (n_classes,) codes, ascending
    location: np.ndarray  # (n_markers,)
    scale: np.ndarray  # (n_markers,)
    linear: np.ndarray  # (n_markers, n_classes)
    products: np.ndarray  # (n_markers (n_markers + 1) / 2, n_classes), or none
    intercept: np.ndarray  # (n_classes,)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.linear.nbytes + self.products.nbytes

    def log_posterior(self, x: np.ndarray) -> np.ndarray:
        """Logarithms of the class probabilities: (n, n_markers) -> (n, n_classes), float64."""
        z = standardised(x, self.location, self.scale)
        logits = z @ self.linear + self.intercept
        if len(self.products):
            first = 0
            for i in range(z.shape[1]):  # the products of marker i with itself and those after it
                after = z[:, i:]
                logits += (z[:, i, None] * after) @ self.products[first : first + after.shape[1]]
                first += after.shape[1]
        return log_softmax(logits, axis=1)


def standardised(x: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Rows in units of `scale`, float64, and none so far away that the products of markers overflow."""
    z: np.ndarray = (x - location) / scale
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


def check_range(x: np.ndarray) -> None:
    """Raise a DataError where squares of the values overflow, so that there is no standard deviation."""
    largest = float(np.abs(x).max(initial=0))
    if not largest < LARGEST:
        raise DataError(
            f"the source has values of {largest:g}, whose squares overflow: bring the markers to a scale "
            "near 1"
        )


def fit_logistic(x: np.ndarray, code: np.ndarray) -> Logistic:
    """Fit the default classifier.

    Parameters
    ----------
    x : numpy.ndarray, shape (n, n_markers)
    code : numpy.ndarray of int, shape (n,)
        Two classes at least.

    Returns
    -------
    Logistic

    Examples
    --------
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> fit_logistic(x, np.array([0, 0, 1, 1])).log_posterior(x).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    check_range(x)
    pipeline = default_classifier(x.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nothing that a user could mend
        pipeline.fit(x.astype(np.float64), code)
    return of_pipeline(pipeline)


def mean_logistic(models: Sequence[Logistic]) -> Logistic:
    """The classifier whose logits are the mean of those of several that know the same classes.

    Its posteriors are the geometric mean of theirs, at the cost of one.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> a, b = (fit_logistic(rows, (rows[:, 0] > 0).astype(int)) for rows in (x[:30], 3 * x[10:]))
    >>> both = log_softmax((a.log_posterior(x) + b.log_posterior(x)) / 2, axis=1)
    >>> bool(np.allclose(mean_logistic([a, b]).log_posterior(x), both))
    True
    """
    first, n = models[0], len(models)
    linear, products = np.zeros_like(first.linear), np.zeros_like(first.products)
    intercept = np.zeros_like(first.intercept)
    i, j = np.triu_indices(len(first.location)) if len(products) else (np.empty(0, int), np.empty(0, int))
    for model in models:
        # Its standardised markers are stretched * (those of the first) + moved.
        stretched = first.scale / model.scale
        moved = (first.location - model.location) / model.scale
        intercept += (model.intercept + moved @ model.linear + (moved[i] * moved[j]) @ model.products) / n
        linear += stretched[:, None] * model.linear / n
        np.add.at(linear, i, (stretched[i] * moved[j])[:, None] * model.products / n)
        np.add.at(linear, j, (stretched[j] * moved[i])[:, None] * model.products / n)
        products += (stretched[i] * stretched[j])[:, None] * model.products / n
    return Logistic(first.classes, first.location, first.scale, linear, products, intercept)


def of_pipeline(pipeline: Pipeline) -> Logistic:
    """The arrays of a fitted default classifier: the second scaler becomes part of the coefficients."""
    first, *between, model = [step for _, step in pipeline.steps]
    d = first.n_features_in_
    mean, scale = (between[-1].mean_, between[-1].scale_) if between else (np.zeros(d), np.ones(d))
    coef, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # scikit-learn gives the second class alone
        coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    weights = np.ascontiguousarray((coef / scale).T)
    return Logistic(
        model.classes_.astype(np.int64),
        first.mean_,
        first.scale_,
        weights[:d],
        weights[d:],
        intercept - mean @ weights,
    )
