"""How far does a model move if it learns anew from what it says itself of the target?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scaleshift.error.comparators import given
from scaleshift.error.family import Family, Settings
from scaleshift.error.held_out import HeldOut, Seen
from scaleshift.errors import DataError
from scaleshift.user_objects import ask

CITATION = "Yu et al. (2022), Predicting out-of-distribution error with the projection norm"
PAIRS = (("coef_", "intercept_"), ("coefs_", "intercepts_"))  # of linear models, of networks

#: name -> (long_name, description)
VARIABLES = {
    "norm": (
        "projection norm",
        "distance of the parameters from those refitted to pseudo-labelled target rows",
    ),
    "norm_source": (
        "the same of the source",
        "refitted to pseudo-labelled source rows: what a refit does alone",
    ),
}


def projection_norm(model: Any, X_target: Any, X_source: Any = None) -> xr.Dataset:
    """Distance between a model and its refit to its own predictions of the target.

    Parameters
    ----------
    model : fitted scikit-learn estimator
        With `coef_` and `intercept_`, or `coefs_` and `intercepts_` (networks); of a Pipeline the last step,
        whose earlier steps stay as they are.
    X_target : array-like of numbers, shape (m, p)
        Rows in memory.
    X_source : array-like of numbers, shape (n, p), optional
        Source rows, for comparison; as many as target rows, or penalties weigh differently.

    Returns
    -------
    xarray.Dataset
        norm; norm_source, NaN without `X_source`. In units of the parameters, and no error: where it
        is larger, models tend to err more. Not to be compared between models.

    Raises
    ------
    DataError
        If the model is not fitted or has no such parameters, a network has no `random_state`, rows are lazy
        or not finite, or the target has other classes than the model.

    Notes
    -----
    The refit is a clone with the same parameters. Pseudo-labels of classes have no noise, so that a refit to
    source rows moves a model too: compare with `norm_source`. Networks start from random weights: with
    `random_state` a number both start from the same, without which their distance tells nothing. A linear
    regression that is determined by the target rows gets its own coefficients back: the norm is 0, however
    wrong it is.

    References
    ----------
    Yu et al. (2022).

    Examples
    --------
    >>> import scaleshift as ss
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 2))
    >>> model = Ridge(alpha=10.0).fit(x, x.sum(axis=1))
    >>> result = ss.error.projection_norm(model, 0.1 * x, x)
    >>> bool(result["norm"] > result["norm_source"])
    True
    """
    head, last = _last_step(model)
    norms = {"norm": _norm(head, last, X_target, "X_target"), "norm_source": np.nan}
    if X_source is not None:
        norms["norm_source"] = _norm(head, last, X_source, "X_source")
    return given.dataset(norms, VARIABLES, "projection_norm", CITATION)


def norm_of_seen(family: Family, held: HeldOut, target: Seen, settings: Settings) -> tuple[float, str]:
    """The norm of a target whose rows were drawn, and why there is none.

    Of a named model of labels the parameters are those of scikit-learn's logistic regression with the same
    penalty, fitted to the source rows that were drawn.
    """
    if not held.is_classes:
        return np.nan, "projection_norm: for labels alone, which predictions are not already"
    model = getattr(getattr(family, "model", None), "model", None)
    if isinstance(settings.model, str):
        from sklearn.linear_model import LogisticRegression  # slow to import

        weight = max(getattr(family, "alpha", 0.0), 1e-8) * len(held.x)
        model = LogisticRegression(C=1 / weight, max_iter=1_000).fit(held.x, held.y)
    try:
        return float(projection_norm(model, target.x)["norm"]), ""
    except DataError as error:
        return np.nan, f"projection_norm: {error}"


def _norm(head: Any, last: Any, X: Any, name: str) -> float:
    given.refuse_lazy(X, name, "a refit")
    x = given.matrix_of(X, name)
    if head is not None:
        x = np.asarray(ask(head, "transform", x))
    predicted = np.asarray(ask(last, "predict", x))
    classes = getattr(last, "classes_", None)
    if classes is not None and len(set(predicted.tolist())) != len(classes):
        raise DataError(
            f"the model finds {len(set(predicted.tolist()))} of its {len(classes)} classes in {name}: a "
            "refit has other parameters, which cannot be compared; pass more rows"
        )
    before, after = _parameters(last), _parameters(ask(clone(last), "fit", x, predicted))
    return float(np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(before, after, strict=True))))


def _last_step(model: Any) -> tuple[Any, Any]:
    """What prepares rows, if any, and the estimator with the parameters."""
    head, last = (
        (model[:-1], model[-1]) if hasattr(model, "steps") and len(model.steps) > 1 else (None, model)
    )
    name = type(last).__name__
    try:
        check_is_fitted(last)
    except Exception as error:  # NotFittedError; TypeError of what is no estimator
        raise DataError(f"{name} is no fitted estimator: fit it on the source first ({error})") from error
    if not _parameters(last):
        raise DataError(
            f"{name} has neither coef_ and intercept_ nor coefs_ and intercepts_: its parameters cannot be "
            "compared; projection_norm is for linear models and networks of scikit-learn"
        )
    if hasattr(last, "coefs_") and not isinstance(last.get_params().get("random_state"), int | np.integer):
        raise DataError(
            f"{name} was fitted without a number as random_state: its refit would start from other weights; "
            f"fit {name}(random_state=0, ...)"
        )
    return head, last


def _parameters(model: Any) -> list[np.ndarray]:
    for names in PAIRS:
        if all(hasattr(model, name) for name in names):
            found = (getattr(model, name) for name in names)
            return [
                np.asarray(part, np.float64)
                for item in found
                for part in (item if isinstance(item, list) else [item])
            ]
    return []
