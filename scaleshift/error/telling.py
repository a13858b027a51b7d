"""What is told of one target?  Answers of the engine and of comparators, and what makes them doubtful."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scaleshift.blocks.block import Rows
from scaleshift.error.comparators import COMPARATORS, NORM
from scaleshift.error.comparators.projection import norm_of_seen
from scaleshift.error.family import Answer, Family, Settings
from scaleshift.error.flags import flags, unreliable
from scaleshift.error.held_out import HeldOut, coverage, effective_sample_size, seen, share_far
from scaleshift.error.result import OfTarget
from scaleshift.error.targets import TargetState, naming


def states(
    family: Family,
    targets: Mapping[str, Rows],
    settings: Settings,
    classes: np.ndarray | None,
    *,
    with_noise: bool,
) -> dict[str, TargetState]:
    """What is kept of targets: the engine's sums, and some rows of each; refits meet all targets at once."""
    together = {} if isinstance(settings.model, str) else family.target_sums(targets, with_noise)
    found = {}
    for name, rows in targets.items():
        with naming(name):
            sums = together or family.target_sums({name: rows}, with_noise)
            n = float(sums[name]["n"])
            some = seen(rows, family, settings, settings.seed, classes)
            found[name] = TargetState(sums[name], some, n, rows.x.shape[0] - n)
    return found


def of_target(family: Family, held: HeldOut, state: TargetState, settings: Settings) -> OfTarget:
    """Everything of one target."""
    answers: dict[str, Answer] = dict(family.answers(state.sums))
    for name in settings.methods:
        if name in COMPARATORS:
            answers[name] = COMPARATORS[name](held, state.seen)
    far, size = share_far(held, state.seen, family), effective_sample_size(held, state.seen)
    negative = [
        one.reason for one in answers.values() if one.error < 0
    ]  # others say why there is no interval
    remarks = [*family.remarks(state.sums), *negative]
    reasons = flags(
        round(state.n_rows),
        n_left_out=round(state.n_invalid),
        n_source=len(held.x),
        effective_sample_size=size,
        coverage=coverage(held, state.seen),
        share_far=far,
        n_judged=len(state.seen.x),
        remarks=list(dict.fromkeys(remarks)),
    )
    return OfTarget(
        answers,
        state.n_rows,
        state.n_invalid,
        size,
        far,
        unreliable(reasons),
        "; ".join(reasons),
        family.by_feature(state.sums),
        norm_of_seen(family, held, state.seen, settings) if NORM in settings.methods else None,
    )
