"""Which values of a slicer's parameters have a meaning?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scaleshift.kernels.mixture import COVARIANCES
from scaleshift.parameters import is_whole
from scaleshift.slices.mixtures import ranking

INITS = ("confusion", "kmeans", "random", "random_from_data", "k-means++")
COMPAT = "domino-0.1.5"
SIZES = (5, 10, 15, 25, 40)  # numbers of components that "auto" compares


def _from_one(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _from_zero(value: Any) -> bool:
    return 0 <= value < np.inf


DOMINO: dict[str, tuple[Callable[[Any], bool], str]] = {
    "n_slices": (_from_one, "a whole number from 1"),
    "covariance_type": (lambda v: v in COVARIANCES, f"one of {COVARIANCES}"),
    "n_pca_components": (lambda v: v is None or _from_one(v), "None or a whole number from 1"),
    "n_mixture_components": (lambda v: v == "auto" or _from_one(v), "'auto' or a whole number from 1"),
    "y_log_likelihood_weight": (_from_zero, "a number from 0"),
    "y_hat_log_likelihood_weight": (_from_zero, "a number from 0"),
    "max_iter": (_from_one, "a whole number from 1"),
    "init_params": (lambda v: v is None or v in INITS, f"None or one of {INITS}"),
    "confusion_noise": (_from_zero, "a number from 0"),
    "tol": (lambda v: v >= 0, "a number from 0"),
    "reg_covar": (_from_zero, "a number from 0"),
    "ranking": (lambda v: v in ranking.RANKINGS, f"one of {tuple(ranking.RANKINGS)}"),
    "holdout": (lambda v: 0 <= v < 1, "a share from 0, below 1"),
    "compat": (lambda v: v in (None, COMPAT), f"None or {COMPAT!r}"),
}
