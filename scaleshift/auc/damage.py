"""Do the parts of a ranking that was loaded belong together?  A damaged or forged file may hold others."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.auc.fitting import LearnedRanking
from scaleshift.auc.moments import ClassMoments
from scaleshift.errors import DataError

OF_SIZES = ("objective", "auc_binormal", "auc", "auc_se", "auc_bound")


def refuse_damaged(model: Any) -> None:
    """Refuse a fitted ranking whose parts do not belong together.

    Raises
    ------
    DataError
    """
    try:
        sound = _is_sound(model)
    except (AttributeError, TypeError, ValueError, IndexError):
        sound = False
    if not sound:
        raise DataError(
            f"what this {type(model).__name__} has learned does not fit together: it was saved damaged; "
            "fit it again"
        )


def _is_sound(model: Any) -> bool:
    d, n_classes = model.n_features_in_, len(model.classes_)
    n = {"binary": 1, "ovr": n_classes, "ovo": n_classes * (n_classes - 1) // 2}.get(model.kind_)
    support, prior, moments = model.support_, model.prior_, model.moments_
    return bool(
        n == len(model.learned_) == len(model.contrasts_)
        and isinstance(model.contrasts_, list)
        and isinstance(model.classes_, np.ndarray)
        and (model.kind_ != "binary" or n_classes == 2)
        and all(_fits(one, d) for one in model.learned_)
        and support.ndim == 1
        and support.dtype.kind == "i"
        and (not support.size or (support.min() >= 0 and support.max() < d))
        and (model.markers_ is None or len(model.markers_) == d)
        and model.signs_.shape == (n, len(model.labels_.tolist()))
        and isinstance(model.seed_, int)
        and isinstance(model.n_folds_, int)
        and isinstance(model.solver_, str)
        and (prior is None or (prior.shape == (n_classes,) and prior.dtype.kind == "f"))
        and (moments is None or _fit(moments, d, len(model.labels_)))
    )


def _fits(one: LearnedRanking, d: int) -> bool:
    m = len(one.sizes)
    shapes = {
        "coef": (d,),
        "path": (m, d),
        "stability": (d,),
        "mean": (2, d),
        "deviation": (d,),
        "weight": (2,),
    }
    arrays = {**shapes, **dict.fromkeys(OF_SIZES, (m,))}
    numbers = (one.slope, one.intercept, one.alpha, one.cv_auc, one.cv_auc_se)
    return bool(
        all(getattr(one, name).shape == shape for name, shape in arrays.items())
        and all(getattr(one, name).dtype.kind == "f" for name in arrays)
        and one.sizes.dtype.kind in "iu"
        and 0 <= one.size < m
        and all(isinstance(value, float) for value in numbers)
        and one.slope > 0
        and np.isfinite(one.coef).all()
    )


def _fit(moments: ClassMoments, d: int, n_labels: int) -> bool:
    groups = (n_labels, moments.count.shape[1])
    return bool(
        moments.centre.shape == (d,)
        and moments.count.shape == moments.weight.shape == groups
        and moments.sum.shape == (*groups, d)
        and moments.scatter.shape == (*groups, d, d)
    )
