"""What is counted of the cells of a source, and of those of samples?  The kernels of the two passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise, statistics
from scaleshift.blocks.block import Block
from scaleshift.blocks.folds import Folds
from scaleshift.blocks.statistics import Layout
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.open_set.alignment import flagged
from scaleshift.quantify.open_set.profile import Profile
from scaleshift.quantify.open_set.scoring import Scorer
from scaleshift.quantify.open_set.strata import Strata
from scaleshift.quantify.prototypes import Prototypes
from scaleshift.quantify.source import MAX_BYTES, StateSizeError

STREAM = "source"


def source_layout(n_classes: int, n_folds: int) -> Layout:
    """Shapes of what `source_counts` gives."""
    pair = (n_folds, n_classes, n_classes)
    return {"predicted": pair, "clear": pair, "n_invalid": (n_classes,)}


def source_counts(
    block: Block, *, strata: Strata, scorer: Scorer, profile: Profile, n_folds: int, seed: int
) -> dict[str, np.ndarray]:
    """Kernel: held-out cells by (fold, class, predicted class), all and those that are not flagged."""
    code = strata.classes(block)
    n = strata.n_classes
    used = np.flatnonzero((code >= 0) & block.valid)
    row = block.start + used
    z = scorer.standardised(to_numpy(block.x)[used])
    part = strata.parts(block)[used]
    predicted = scorer.logits_held_out(z, part).argmax(axis=1)
    novel = scorer.landmarks.held_out(z, part, row) > profile.thresholds[predicted]
    fold = noise.keys(seed, STREAM, block.start, len(code))[used] % np.uint64(n_folds)
    cell = (fold.astype(np.int64) * n + code[used]) * n + predicted
    shape = (n_folds, n, n)
    return {
        "predicted": np.bincount(cell, minlength=n_folds * n * n).reshape(shape),
        "clear": np.bincount(cell[~novel], minlength=n_folds * n * n).reshape(shape),
        "n_invalid": np.bincount(code[~block.valid & (code >= 0)], minlength=n),
    }


@dataclass(frozen=True)
class Alignments:
    """What was found of every sample: `alignment.Aligner`."""

    centre: np.ndarray  # (n_samples, n_markers)
    shift: np.ndarray  # (n_samples, n_classes, n_markers)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.centre.nbytes + self.shift.nbytes


def sample_layout(n_classes: int, n_prototypes: int, n_folds: int, n_foreign: int) -> Layout:
    """Shapes of what `sample_counts` gives of each sample."""
    return {
        "predicted": (n_folds, n_classes),
        "clear": (n_folds, n_classes),
        "kinds": (n_folds, n_prototypes),
        "clear_kinds": (n_folds, n_prototypes),
        "posteriors": (n_prototypes, n_classes),
        "clear_posteriors": (n_prototypes, n_classes),
        "clear_unaligned": (n_classes,),
        "clear_kinds_unaligned": (n_prototypes,),
        "n_invalid": (),
        "n_foreign": (n_foreign,),
    }


def sample_counts(
    block: Block,
    *,
    keys: np.ndarray,
    scorer: Scorer,
    profile: Profile,
    prototypes: Prototypes,
    alignments: Alignments,
    folds: Folds | None,
    n_folds: int,
    foreign: np.ndarray,
) -> dict[str, np.ndarray]:
    """Kernel: cells by (sample, fold, predicted class) and by prototype, all and those not flagged."""
    sample, n = block.columns["sample"], len(keys)
    n_classes, n_kinds = scorer.n_classes, len(prototypes)
    _check_size(n, sample_layout(n_classes, n_kinds, n_folds, len(foreign)))
    fold = np.zeros(len(sample), np.int64) if folds is None else folds(block.start, keys[sample])
    used = np.flatnonzero(block.valid)
    own, group = sample[used], sample[used].astype(np.int64) * n_folds + fold[used]
    z = scorer.standardised(to_numpy(block.x)[used]) - alignments.centre[keys[own]]
    logits = scorer.logits(z)
    predicted = logits.argmax(axis=1)
    posterior = scorer.posteriors(logits)
    kind = prototypes.nearest(posterior)
    before, after = flagged(
        z, predicted, scorer.landmarks.novelty(z), alignments.shift[keys], own, scorer.landmarks, profile
    )
    by_class, by_kind = group * n_classes + predicted, group * n_kinds + kind
    counted = {
        "predicted": _counted(by_class, n, (n_folds, n_classes)),
        "clear": _counted(by_class[~after], n, (n_folds, n_classes)),
        "kinds": _counted(by_kind, n, (n_folds, n_kinds)),
        "clear_kinds": _counted(by_kind[~after], n, (n_folds, n_kinds)),
        "clear_unaligned": _counted((own * n_classes + predicted)[~before], n, (n_classes,)),
        "clear_kinds_unaligned": _counted((own * n_kinds + kind)[~before], n, (n_kinds,)),
    }
    place = own * n_kinds + kind
    n_foreign = [np.bincount(sample[block.columns["label"] == code], minlength=n) for code in foreign]
    return {
        **counted,
        "posteriors": _summed(place, posterior, n, n_kinds),
        "clear_posteriors": _summed(place[~after], posterior[~after], n, n_kinds),
        "n_invalid": np.bincount(sample[~block.valid], minlength=n),
        "n_foreign": np.column_stack([np.zeros((n, 0)), *n_foreign]),
    }


def _check_size(n: int, layout: Layout) -> None:
    """Refuse a state that no worker should hold."""
    n_bytes = 8 * n * statistics.size(layout)
    if n_bytes > MAX_BYTES:
        raise StateSizeError(
            f"{n} samples in one block make a state of {n_bytes / 2**30:.1f} GB in every task: take fewer "
            "samples at a time, or fit with n_bootstrap=0, which makes no folds"
        )


def _counted(place: np.ndarray, n: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.bincount(place, minlength=n * int(np.prod(shape))).reshape(n, *shape)


def _summed(place: np.ndarray, values: np.ndarray, n: int, n_kinds: int) -> np.ndarray:
    """Sums of the rows of `values` by place: (n, n_kinds, n_classes)."""
    columns = [np.bincount(place, column, n * n_kinds) for column in values.T]
    return np.stack(columns, axis=1).reshape(n, n_kinds, values.shape[1])
