"""From which probabilities are outcomes redrawn?  Of the model, of its refit without penalty, or between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.error.categorical.columns import Source
from scaleshift.error.categorical.fitting import Chosen, Setting, held_out, relaxed
from scaleshift.errors import DataError

# Shares of the refit, more of them near 0: where labels are nearly separated, its weights are huge.
BLENDS = np.concatenate([[0, 0.01, 0.02, 0.05], np.linspace(0.1, 1, 10)])
ROOM = 3  # rows by parameters: of fewer, a refit to all features tells little


@dataclass(frozen=True)
class Generator:
    """Parameters that outcomes are drawn from."""

    theta: np.ndarray  # (m, q)
    name: str
    blend: float  # 0: the model itself; 1: its refit without penalty


def generator_of(source: Source, setting: Setting, chosen: Chosen) -> Generator:
    """The generator that the settings ask for.

    A penalty shrinks probabilities towards the shares of the classes, so that a shrunk model expects more
    errors than it makes. "relaxed" is the refit without penalty: of an l1 model on its features, of an l2
    model on all. "auto" goes as far from the model towards it as the deviance of held-out rows says; it stays
    with the model where there are no folds, or an l2 model has few rows for its parameters.

    Raises
    ------
    DataError
        If it is none of a categorical model's.
    """
    name, penalised = setting.settings.generator, chosen.alpha > 0
    if name == "plugin" or (name == "auto" and not (penalised and setting.n_folds and _has_room(setting))):
        return Generator(chosen.theta, "plugin", 0.0)
    if name not in ("relaxed", "auto"):
        raise DataError(
            f"generator={name!r} is none of a {setting.settings.model} model: outcomes are labels, which are "
            "drawn from probabilities; give 'auto', 'plugin' or 'relaxed'"
        )
    if not penalised:
        raise DataError(
            "generator='relaxed' is a refit without penalty, and alpha=0 has none: give alpha > 0, or "
            "generator='plugin'"
        )
    refits = relaxed(source, setting, chosen)
    if name == "relaxed":
        return Generator(refits[0], "relaxed", 1.0)
    shares = BLENDS[:, None, None]
    models = (1 - shares) * chosen.of_folds[:, None] + shares * refits[1:, None]
    _, deviance, _ = held_out(source, models, "deviance", setting.classes)
    blend = float(BLENDS[deviance.sum(axis=0).argmin()])
    return Generator((1 - blend) * chosen.theta + blend * refits[0], "auto", blend)


def _has_room(setting: Setting) -> bool:
    """Whether rows are many enough for a refit on the features that the penalty leaves."""
    if setting.settings.penalty == "l1":
        return True
    return float(setting.counted.n.sum()) >= ROOM * max(setting.m - 1, 1) * setting.q
