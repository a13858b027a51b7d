"""What is a row worth to a spotlight?  Its loss, less what earlier ones explain; and passes over that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Kept
from scaleshift.kernels import dispatch
from scaleshift.kernels.spotlight import Spotlights, layout_of
from scaleshift.kernels.spotlight import light as light_of
from scaleshift.slices.prepared import fitted_weight
from scaleshift.slices.spotlights.membership import SpotlightSlices

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Gains:
    """Losses in the units of a search; what is explained moves towards `rest`."""

    sign: float = 1.0  # -1: low losses are sought
    centre: float = 0.0
    scale: float = 1.0
    rest: float = 0.0  # gain of a row that is explained
    earlier: SpotlightSlices | None = None

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return 0 if self.earlier is None else self.earlier.nbytes

    def of(self, block: Block) -> np.ndarray:
        """Gains of a prepared block's rows, (n,)."""
        gain = (self.sign * loss_of(block) - self.centre) / self.scale
        if self.earlier is not None:
            gain = self.rest + (gain - self.rest) * self.earlier.unexplained(block.x)
        return gain

    def after(self, earlier: SpotlightSlices | None) -> Gains:
        """The same for the spotlight that follows these."""
        return replace(self, earlier=earlier)

    def as_objective(self, gain: Any) -> Any:
        """Gains as losses, negative ones where low losses are sought."""
        return gain * self.scale + self.centre


def loss_of(block: Block) -> np.ndarray:
    """Losses of a prepared block's rows, (n,) float64."""
    return block.columns["extra"][:, 1].astype(np.float64)


def weight_of(block: Block) -> np.ndarray:
    """Weights of a prepared block's rows, 0 for those that the fit does not see, (n,) float64."""
    return fitted_weight(block).astype(np.float64)


# What losses there are ---------------------------------------------------------------------------------


def spread(kept: Kept, sign: float, pivot: float) -> dict[str, float]:
    """Mean, standard deviation and least of signed losses, and the sum of the weights: one pass."""
    state = passes.total(spread_leaf, kept, None, merge=merge_spread, sign=sign, pivot=sign * pivot)
    mass = max(state["mass"], TINY)
    shift = state["sum"] / mass
    variance = max(state["squares"] / mass - shift**2, 0.0)
    return {
        "mass": state["mass"],
        "n_rows": state["n_rows"],
        "mean": sign * pivot + shift,
        "deviation": float(np.sqrt(variance)),
        "least": state["least"],
    }


def spread_leaf(block: Block, sign: float, pivot: float) -> dict[str, float]:
    """Sums of one block about the pivot."""
    weight, loss = weight_of(block), sign * loss_of(block)
    about = loss - pivot
    return {
        "mass": float(weight.sum()),
        "n_rows": float((weight > 0).sum()),
        "sum": float(weight @ about),
        "squares": float(weight @ (about * about)),
        "least": float(loss[weight > 0].min(initial=np.inf)),
    }


def merge_spread(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    """Sums of both blocks, and the least loss."""
    added = {name: a[name] + b[name] for name in ("mass", "n_rows", "sum", "squares")}
    return {**added, "least": min(a["least"], b["least"])}


# Steps over all rows -----------------------------------------------------------------------------------


def sums(kept: Kept, gains: Gains, spotlights: Spotlights) -> dict[str, np.ndarray]:
    """Sums of all rows under some spotlights: one pass."""
    layout = layout_of(spotlights)
    return passes.total(spotlight_leaf, kept, layout, gains=gains, spotlights=spotlights)


def spotlight_leaf(block: Block, gains: Gains, spotlights: Spotlights) -> dict[str, np.ndarray]:
    """Sums of one prepared block."""
    if "gain" in block.columns:
        gain, weight = block.columns["gain"], block.columns["weight"]
    else:
        gain, weight = gains.of(block), weight_of(block)
    return dispatch.spotlight_sums(block.x, gain, weight, spotlights)


def settled(kept: Kept, gains: Gains) -> Kept:
    """Gains of rows that are one block in memory, found once; other blocks find them in every pass."""
    if not kept.is_one_block:
        return kept
    block: Block = kept.x
    columns = {**block.columns, "gain": gains.of(block), "weight": weight_of(block)}
    return replace(kept, x=block._replace(columns=columns))


# What a spotlight that has come to rest shows ----------------------------------------------------------


def shown(kept: Kept, gains: Gains, spotlight: Spotlights) -> dict[str, float]:
    """Sums and peak of the light of one spotlight: one pass."""
    state: dict[str, Any] = passes.total(
        shown_leaf, kept, None, merge=_merge_shown, gains=gains, spotlight=spotlight
    )
    return state


def shown_leaf(block: Block, gains: Gains, spotlight: Spotlights) -> dict[str, float]:
    """Of one prepared block."""
    weight, u = weight_of(block), light_of(block.x, spotlight)[:, 0]
    lit = weight * u
    return {
        "peak": float(u[weight > 0].max(initial=0.0)),
        "weight": float(lit.sum()),
        "squares": float(lit @ u),
        "gain": float(lit @ gains.of(block)),
        "loss": float(lit @ loss_of(block)),
    }


def _merge_shown(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    added = {name: a[name] + b[name] for name in ("weight", "squares", "gain", "loss")}
    return {**added, "peak": max(a["peak"], b["peak"])}
