"""What has a ranking learned?  Told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks.sizes import count
from scaleshift.cells.problem import several

if TYPE_CHECKING:
    from scaleshift.auc.fitting import LearnedRanking
    from scaleshift.auc.online.base import OnlineRanking
    from scaleshift.auc.ranker import Ranker
    from scaleshift.fitted import Facts


def of_ranker(model: Ranker) -> Facts:
    """What a sparse ranking has learned, of each contrast."""
    rows = model.n_labelled_ - model.n_invalid_
    left_out = f", {count(model.n_invalid_, 'row', 'rows')} left out" if model.n_invalid_ else ""
    of_features = f" of {count(model.n_features_in_, 'feature', 'features')}"
    found: Facts = {"learned from": count(rows, "labelled row", "labelled rows") + of_features + left_out}
    if model.kind_ == "binary":
        negative, positive = model.classes_.tolist()
        found["ranks"] = f"{positive} over {negative}"
        found["features"] = _weights(model.coef_, model.markers_)
        found["AUC"] = _auc(model.learned_[0])
    else:
        found["ranks"] = {
            name: f"{count(int(np.count_nonzero(one.coef)), 'feature', 'features')}, AUC {_auc(one)}"
            for name, one in zip(model.contrasts_, model.learned_, strict=True)
        }
    if model.prior_ is not None:
        shares = zip(model.classes_.tolist(), model.prior_.tolist(), strict=True)
        found["prior"] = ", ".join(f"{label}: {share:.2g}" for label, share in shares)
    return {**found, "solver": model.solver_, "seed": str(model.seed_)}


def of_online(model: OnlineRanking) -> Facts:
    """What a ranking has learned step by step."""
    labels = model.classes_.tolist()
    ranks = (
        f"{labels[1]} over {labels[0]}" if len(labels) == 2 else f"one of {several(labels)} over the others"
    )
    return {"ranks": ranks, "features": _weights(model.coef_, model.markers_)}


def _weights(coef: np.ndarray, names: tuple[str, ...] | None) -> dict[str, str]:
    """Weights of the features that have one, the largest first."""
    by_size = np.argsort(-np.abs(coef), kind="stable")
    chosen: list[Any] = by_size[coef[by_size] != 0].tolist()
    return {names[i] if names else f"{i}": f"{coef[i]:.3g}" for i in chosen}


def _auc(one: LearnedRanking) -> str:
    """On held-out rows, where there were some."""
    if np.isfinite(one.cv_auc):
        return f"{one.cv_auc:.3f} +- {one.cv_auc_se:.3f} on held-out rows"
    return "not known: no rows were held out"
