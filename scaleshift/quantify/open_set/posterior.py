"""To which class does one cell of a sample belong, or to none?  Posteriors under the sample's answer.

Cells that are not flagged as unlike every class are divided by what the classes have of such cells. Among the
flagged ones the share of cells unlike every class takes part as a whole, each class with those of its own
cells that are flagged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.learned import unknown_name
from scaleshift.quantify.open_set.alignment import flagged
from scaleshift.quantify.open_set.counts import Alignments
from scaleshift.quantify.open_set.learning import Learned
from scaleshift.quantify.open_set.passing import align_samples
from scaleshift.quantify.posterior import by_cell, of_samples

if TYPE_CHECKING:
    from scaleshift.quantify.open_set.open_set import OpenSetQuantifier


def posterior(model: OpenSetQuantifier, rows: Rows, predicted: xr.Dataset) -> xr.DataArray:
    """Lazy posteriors (cell, label), unknown cells last; one pass finds the samples' shifts before."""
    learned, samples = model.learned_, rows.categories("sample")
    found, share = of_samples(predicted, samples, model.labels_)
    unknown = np.nan_to_num(found["unknown"].values)
    novel = np.nan_to_num(found["novel"].values)
    novel = np.where(model.unknown and novel > model.gate_, np.minimum(novel, unknown), 0)
    by_class = np.zeros((len(samples), learned.strata.n_classes))
    class_of = learned.strata.class_of[np.flatnonzero(np.isin(model.source_labels_, model.labels_))]
    by_class[:, class_of[class_of >= 0]] = share[:, class_of >= 0]
    if learned.strata.unknown >= 0:
        by_class[:, learned.strata.unknown] = unknown - novel
    flags = model.counts_.rates().flagged[0]
    # Which column of the result a class is added to.
    place = np.full(learned.strata.n_classes + 1, len(model.labels_))
    place[class_of[class_of >= 0]] = np.flatnonzero(class_of >= 0)
    lazy = passes.map_rows(
        posterior_rows,
        rows.only("sample"),
        len(model.labels_) + 1,
        learned=learned,
        alignments=align_samples(rows, learned, passes.counts(rows, "sample"), model.seed_),
        clear=by_class * (1 - flags),
        odd=np.column_stack([by_class * flags, novel]),
        gather=(place[:, None] == np.arange(len(model.labels_) + 1)).astype(float),
    )
    return by_cell(lazy, [*model.labels_.tolist(), unknown_name(model.labels_)])


def posterior_rows(
    block: Block,
    learned: Learned,
    alignments: Alignments,
    clear: np.ndarray,
    odd: np.ndarray,
    gather: np.ndarray,
) -> np.ndarray:
    """Kernel of the pass: (n, n_labels + 1).

    Parameters
    ----------
    block : Block
    learned : Learned
    alignments : Alignments
        Of every sample.
    clear : numpy.ndarray, shape (n_samples, n_classes)
        Shares of the cells that are of a class and not flagged.
    odd : numpy.ndarray, shape (n_samples, n_classes + 1)
        Those of a class and flagged; last those unlike every class.
    gather : numpy.ndarray, shape (n_classes + 1, n_labels + 1)
    """
    sample, scorer = block.columns["sample"], learned.scorer
    z = scorer.standardised(to_numpy(block.x)) - alignments.centre[sample]
    logits = scorer.logits(z)
    told = scorer.posteriors(logits)  # all classes equally frequent
    own, novelty = logits.argmax(axis=1), scorer.landmarks.novelty(z)
    _, strange = flagged(z, own, novelty, alignments.shift, sample, scorer.landmarks, learned.profile)
    weight = np.concatenate([clear[sample] * told, np.zeros((len(z), 1))], axis=1)
    weight[strange, :-1] = odd[sample[strange], :-1] * told[strange]
    weight[strange, -1] = odd[sample[strange], -1]
    total = weight.sum(axis=1, keepdims=True)
    alike = np.concatenate([told, np.zeros((len(z), 1))], axis=1)  # where no class that is there is possible
    return np.where(total > 0, weight / np.where(total > 0, total, 1), alike) @ gather
