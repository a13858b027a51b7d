"""Which values of the parameters of `DominoSlicer` have a meaning?"""

from __future__ import annotations

import numpy as np

from scaleshift.kernels.mixture import COVARIANCES
from scaleshift.slices.meanings import COMMON, FROM_ONE, FROM_ZERO, Meaning, exactly, one_of, or_none
from scaleshift.slices.mixtures import ranking

INITS = ("confusion", "kmeans", "random", "random_from_data", "k-means++")
COMPAT = "domino-0.1.5"
SIZES = (5, 10, 15, 25, 40)  # numbers of components that "auto" compares

DOMINO: dict[str, Meaning] = {
    **COMMON,
    "covariance_type": one_of(COVARIANCES),
    "n_mixture_components": (
        lambda value: value == "auto" or FROM_ONE[0](value),
        f"'auto' or {FROM_ONE[1]}",
    ),
    "y_log_likelihood_weight": FROM_ZERO,
    "y_hat_log_likelihood_weight": FROM_ZERO,
    "max_iter": FROM_ONE,
    "init_params": or_none(one_of(INITS)),
    "confusion_noise": FROM_ZERO,
    "tol": (lambda value: 0 <= value <= np.inf, "a number from 0"),  # infinite: after one pass
    "reg_covar": FROM_ZERO,
    "ranking": one_of(ranking.RANKINGS),
    "compat": or_none(exactly(COMPAT)),
}
