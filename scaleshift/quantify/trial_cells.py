"""Which cells does a comparison of methods work on? A bounded share of each labelled sample, in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Rows
from scaleshift.errors import DataError

MAX_CELLS = 200_000  # of all samples together
FEW = 10  # cells of a class in a sample that are taken in any case


@dataclass(frozen=True)
class TrialCells:
    """Cells of the samples that have labels, in random order within each sample and class."""

    x: np.ndarray  # (n, n_markers)
    sample: np.ndarray  # (n,) codes
    label: np.ndarray  # (n,) codes, -1 for cells outside every class
    samples: np.ndarray  # names
    labels: np.ndarray  # in their own type and order
    rank: np.ndarray  # (n,) place of the cell among those of its sample and class

    def y(self, rows: np.ndarray) -> np.ndarray:
        """Labels of some rows in their own type, None for unlabelled ones."""
        code = self.label[rows]
        if (code >= 0).all():
            return self.labels[code]
        names = np.array([*self.labels.tolist(), None], dtype=object)  # code -1 is the last
        return names[code]


def labelled_samples(rows: Rows, least: int = 1) -> np.ndarray:
    """Codes of the samples with so many labelled rows: one pass over samples and labels.

    Raises
    ------
    DataError
        If no row has a label.
    """
    return np.flatnonzero(_counts(rows)[:, 1:].sum(axis=1) >= least)


def gather(rows: Rows, cells_per_sample: int, seed: int) -> TrialCells:
    """Draw the cells: one pass over samples and labels, one over X.

    Samples without labels are left out: of their cells nobody has said that they are outside every class.
    Of more samples than `MAX_CELLS` allows some are drawn. Shares of the classes are those of the sample, but
    for `FEW` cells of each that are taken in any case.
    """
    counts = _counts(rows)
    held = np.flatnonzero(counts[:, 1:].any(axis=1))
    most = max(MAX_CELLS // cells_per_sample, 1)
    if held.size > most:
        held = np.sort(noise.generator(seed, "compared samples").permutation(held)[:most])
    mine = counts[held]
    share = np.minimum(cells_per_sample / mine.sum(axis=1), 1)[:, None]
    wanted = np.zeros_like(counts)
    wanted[held] = np.maximum(np.round(mine * share), np.minimum(mine, FEW))
    by = passes.pairs(rows, "sample", "label")
    drawn = passes.sample(rows, wanted.ravel(), by=by, seed=seed, stream="compare")
    sample, label = np.divmod(drawn["code"], counts.shape[1])
    first = np.searchsorted(drawn["code"], drawn["code"])
    return TrialCells(
        drawn["x"],
        np.searchsorted(held, sample),
        label - 1,
        rows.categories("sample")[held],
        rows.categories("label"),
        np.arange(len(first)) - first,
    )


def _counts(rows: Rows) -> np.ndarray:
    """Rows by sample and label, unlabelled ones first."""
    if "label" not in rows.columns:
        raise DataError("there are no labels to compare methods by: pass y, or a cells dataset with labels")
    counts = passes.crossed(rows, "sample", "label")
    if not counts[:, 1:].any():
        raise DataError(f"none of the {rows.x.shape[0]} rows has a label: nothing can be compared")
    return counts
