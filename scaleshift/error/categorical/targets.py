"""How wrong are replicates on a target?  Sums of one pass, which can be added over parts of it.

In the same pass every replicate is the generator once: models are then a few other replicates, moved as far
as it lies from the true generator. How replicates stray hardly depends on where the generator is, so that
this is the bootstrap of the bootstrap without a refit.
"""

from __future__ import annotations

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.error.categorical.judging import Models
from scaleshift.error.categorical.replicates import runs, uniform_numbers
from scaleshift.error.categorical.scoring import expected_losses, losses, steps
from scaleshift.error.family import Sums
from scaleshift.kernels.cpu.categorical import drawn_losses, wrong_among_partners
from scaleshift.kernels.logistic import class_probabilities, logits, probabilities, tiles

PARTNERS, PARTNERS_DEAR = 4, 2  # of each replicate as generator; fewer where losses need exponentials
CERTAIN = 1 - 1e-6  # probability that is told as 1


def n_partners(models: Models) -> int:
    """How many other replicates each one meets as a generator."""
    most = PARTNERS if models.loss == "counting" and len(models.theta) == 1 else PARTNERS_DEAR
    return min(most, models.n_replicates - 1)


def summed(rows: Rows, models: Models, noise: bool) -> Sums:
    """Sums of one target: one pass."""
    b = models.n_replicates
    layout = {"err": (b,), "drawn": (b,), "twice": (b,), "certain": (), "n": (), "n_invalid": ()}
    rows = rows.only(*(["noise"] if noise else []))
    return passes.total(_sum, rows, layout, models=models)


def _sum(block: Block, models: Models) -> Sums:
    b = models.n_replicates
    found = {name: np.zeros(b) for name in ("err", "drawn", "twice")}
    found |= {"certain": np.zeros(()), "n": np.zeros(()), "n_invalid": np.array(float((~block.valid).sum()))}
    for part in runs(block):
        uniforms = uniform_numbers(part, "noise", models.seed, "target", b)
        z = models.frame.z(part.x, part.valid)
        for tile in tiles(len(z), models.width):
            _sum_tile(found, z[tile], uniforms[tile], models)
    return found


def _sum_tile(found: Sums, z: np.ndarray, uniforms: np.ndarray, models: Models) -> None:
    """Add what one tile of rows tells."""
    counts = np.ascontiguousarray(z[:, 0])
    central = logits(z, models.generator[..., None])  # (m, t, 1)
    truth = class_probabilities(central)[..., 0]  # (K, t)
    own = logits(z, models.theta)  # (m, t, B)
    each = losses(models.loss, own, models.classes)
    found["n"] += counts.sum()
    found["certain"] += counts @ (truth.max(axis=0) > CERTAIN)
    found["err"] += ((truth * counts)[:, None] @ each).sum(axis=(0, 1))
    drawn_losses(each, steps(truth), uniforms, counts, found["drawn"])
    # A replicate's own generator strays from the generator as the replicate does from the model; its refits
    # are other replicates that stray as it does.
    centre = logits(z, models.model[..., None])
    own -= centre
    likely = own + central
    if models.loss == "counting" and len(own) == 1:
        around = np.ascontiguousarray(centre[0, :, 0])
        likely = probabilities(likely)
        wrong_among_partners(own[0], around, likely[0], counts, n_partners(models), found["twice"])
        return
    likely = class_probabilities(likely)
    around = np.concatenate([own, own], axis=-1)
    own += centre
    for step in range(1, n_partners(models) + 1):
        moved = own + around[..., step : step + own.shape[-1]]
        found["twice"] += counts @ expected_losses(models.loss, likely, moved, models.classes)
