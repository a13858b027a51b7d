"""From which probabilities are outcomes redrawn?  Of the model, of a refit on its support, or between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.error.categorical.columns import Source
from scaleshift.error.categorical.fitting import Chosen, Setting, held_out, relaxed
from scaleshift.errors import DataError

BLENDS = np.linspace(0, 1, 11)  # shares of the refit


@dataclass(frozen=True)
class Generator:
    """Parameters that outcomes are drawn from."""

    theta: np.ndarray  # (m, q)
    name: str
    blend: float  # 0: the model itself; 1: the refit on its support


def generator_of(source: Source, setting: Setting, chosen: Chosen) -> Generator:
    """The generator that the settings ask for.

    Raises
    ------
    DataError
        If it is none of a categorical model's.
    """
    name, lasso = setting.settings.generator, setting.settings.penalty == "l1" and chosen.alpha > 0
    if name == "plugin" or (name == "auto" and not (lasso and setting.n_folds)):
        return Generator(chosen.theta, "plugin", 0.0)
    if name not in ("relaxed", "auto"):
        raise DataError(
            f"generator={name!r} is none of a {setting.settings.model} model: outcomes are labels, which are "
            "drawn from probabilities; give 'auto', 'plugin', or with penalty='l1' 'relaxed'"
        )
    if not lasso:
        raise DataError(
            "generator='relaxed' is a refit on the features that penalty='l1' with alpha > 0 has chosen: "
            "give these, or generator='plugin'"
        )
    refits = relaxed(source, setting, chosen)
    if name == "relaxed":
        return Generator(refits[0], "relaxed", 1.0)
    shares = BLENDS[:, None, None]
    models = (1 - shares) * chosen.of_folds[:, None] + shares * refits[1:, None]
    _, deviance, _ = held_out(source, models, "deviance", setting.classes)
    blend = float(BLENDS[deviance.sum(axis=0).argmin()])
    return Generator((1 - blend) * chosen.theta + blend * refits[0], "auto", blend)
