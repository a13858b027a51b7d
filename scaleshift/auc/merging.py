"""How do two fitted rankings become one?  By the sums that they were learned from."""

from __future__ import annotations

import dataclasses
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scaleshift.auc.contrasts import Contrasts
from scaleshift.auc.damage import refuse_damaged
from scaleshift.auc.job import rarest_side, task_of
from scaleshift.auc.ranker import Question
from scaleshift.auc.solving import from_moments
from scaleshift.blocks.treatment import check_treatment
from scaleshift.errors import DataError


def merged(one: Any, other: Any) -> Any:
    """A ranking of the rows of both."""
    if not isinstance(other, type(one)):
        raise DataError(f"merge: expected a fitted {type(one).__name__}, found a {type(other).__name__}")
    for model in (one, other):
        check_is_fitted(model, "learned_")
        refuse_damaged(model)
        if model.moments_ is None:
            raise DataError(f"solver {model.solver_!r} keeps no sums that could be added: fit with 'moments'")
    alike = {
        "labels": (one.labels_.tolist(), other.labels_.tolist()),
        "features": (one.markers_, other.markers_),
        "number of features": (one.n_features_in_, other.n_features_in_),
        "contrasts": (one.signs_.tolist(), other.signs_.tolist()),
        "buckets": (one.moments_.n_buckets, other.moments_.n_buckets),
    }
    for what, (here, there) in alike.items():
        if here != there:
            raise DataError(f"the two rankings have other {what}, {here} and {there}: fit both alike")
    check_treatment(one.treatment_, other.treatment_, one.markers_)
    moments = one.moments_ + other.moments_
    asked = Contrasts(one.classes_, one.contrasts_, list(one.signs_), one.kind_)
    rarest = rarest_side(moments.count.sum(axis=1), asked)
    task = task_of(one, "moments", one.n_features_in_, one.n_folds_, moments.n_buckets, rarest, one.seed_)
    solved = from_moments(moments, asked, task, one.n_features_in_, None)
    fields = {field.name: getattr(one, f"{field.name}_") for field in dataclasses.fields(Question)}
    fields["n_labelled"] += other.n_labelled_
    return clone(one)._learn(solved, Question(**fields))
