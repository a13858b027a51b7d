"""What has a slicer learned?  Told in words, of the sums over its slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scaleshift.blocks.sizes import count
from scaleshift.slices.describing.profile import SliceProfile
from scaleshift.slices.describing.words import percent

if TYPE_CHECKING:
    from scaleshift.fitted import Facts
    from scaleshift.slices.base import Slicer

SEEN, HELD_OUT = slice(0, 1), slice(1, 2)  # parts of a profile


def facts(model: Slicer) -> Facts:
    """What a slicer has learned."""
    profile = model.profile_
    seen, held_out = (int(profile.tally("n", part)[-1]) for part in (SEEN, HELD_OUT))
    left_out = f", {count(model.n_invalid_, 'row', 'rows')} left out" if model.n_invalid_ else ""
    features = count(model.n_features_in_, "feature", "features")
    found: Facts = {
        "learned from": f"{count(seen, 'row', 'rows')} of {features}{left_out}",
        "judged on": f"{held_out:,} rows that were held out" if held_out else "the same rows",
        "slices": slices(profile, HELD_OUT if held_out else SEEN),
    }
    if hasattr(model, "converged_"):
        passes = count(model.n_iter_, "pass", "passes")
        found["mixture"] = f"{len(model.weights_)} components, " + (
            f"converged after {passes}" if model.converged_ else f"not converged in {passes}"
        )
    return {**found, "seed": str(model.seed_)}


def slices(profile: SliceProfile, part: slice) -> dict[str, str]:
    """How large each slice is in a part of the rows, and how wrong; the rest likewise."""
    n, wrong, known, loss, lost = (
        profile.tally(name, part) for name in ("n", "errors_n", "error_n", "losses_n", "loss_n")
    )
    names = [*(str(i) for i in range(profile.n_slices)), "in none"]
    found = {}
    for i in np.flatnonzero(n[:-1]):
        how = f", {percent(wrong[i] / known[i])} wrong" if known[i] else ""
        how = f", mean loss {loss[i] / lost[i]:.3g}" if not how and lost[i] else how
        found[names[i]] = count(int(n[i]), "row", "rows") + how
    return found
