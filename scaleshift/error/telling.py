"""What is told of one target?  Answers of the engine and of comparators, and what makes them doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scaleshift.blocks.block import Rows
from scaleshift.error.comparators import COMPARATORS
from scaleshift.error.comparators.shift import Shift
from scaleshift.error.family import Answer, Family
from scaleshift.error.flags import flags, is_serious
from scaleshift.error.held_out import HeldOut, seen, share_far
from scaleshift.error.result import OfTarget
from scaleshift.error.targets import TargetState


def states(family: Family, targets: Mapping[str, Rows], seed: int, *, with_noise: bool) -> dict[str, TargetState]:
    """What is kept of targets: the engine's sums, and some rows of each."""
    sums = family.target_sums(targets, with_noise)
    found = {}
    for name, rows in targets.items():
        n = float(sums[name]["n"])
        found[name] = TargetState(sums[name], seen(rows, family, seed), n, rows.x.shape[0] - n)
    return found


def of_target(family: Family, held: HeldOut, state: TargetState, methods: Sequence[str]) -> OfTarget:
    """Everything of one target."""
    shift = Shift(held, state.seen)
    answers: dict[str, Answer] = dict(family.answers(state.sums))
    for name in methods:
        if name in COMPARATORS:
            answers[name] = COMPARATORS[name](shift)
    far = share_far(held, state.seen, family)
    reasons = flags(shift, far, state, answers, family.remarks(state.sums))
    return OfTarget(
        answers,
        state.n_rows,
        state.n_invalid,
        shift.effective_sample_size,
        far,
        any(map(is_serious, reasons)),
        "; ".join(reasons),
        family.by_feature(state.sums),
    )
