"""Which class, and which part of the source, is a row of?  Ungated cells can be a class of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.errors import DataError
from scaleshift.quantify.classifier.parts import Parts, divided
from scaleshift.spelling import meant

UNGATED = "auto"
ENOUGH_UNGATED = 50  # cells, to be a class
ENOUGH = 10  # cells of every class without each sample, for samples to be the parts
MAX_DRAWN = 50_000  # rows that everything is learned from
MAX_PARTS = 10  # more samples are put together at random
N_PARTS = 5  # of a source that is one sample


@dataclass(frozen=True)
class Strata:
    """Class and part of every row of a source.

    Classes are counted in the order of the labels that have rows; ungated cells come last. Parts are what
    classifiers are cross-fitted by: the labelled samples, or random parts (`random` says which).
    """

    class_of: np.ndarray  # (n_labels + 1,) class of each label code, last that of rows without one; or -1
    n_classes: int
    unknown: int  # class of unknown cells, or -1
    part_of: np.ndarray  # (n_samples,) part of a sample's rows, -1 where it has no labelled ones
    random: Parts | None

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return int(self.part_of.max()) + 1 if self.random is None else self.random.n_parts

    @property
    def by_sample(self) -> bool:
        """Whether the parts are samples."""
        return self.random is None

    @property
    def n_strata(self) -> int:
        """What `__call__` counts up to."""
        return self.n_classes * (int(self.part_of.max()) + 1)

    def classes(self, block: Block) -> np.ndarray:
        """Class of each row of a block, -1 for those that are not learned from."""
        found = self.class_of[block.columns["label"]]
        return np.where(self.part_of[block.columns["sample"]] < 0, -1, found)

    def parts(self, block: Block) -> np.ndarray:
        """Part of each row of a block; -1 for rows of small classes, which every part learns from."""
        if self.random is None:
            return self.part_of[block.columns["sample"]]
        return self.random.of_block(block.start, self.classes(block))

    def parts_drawn(self, drawn: dict[str, np.ndarray]) -> np.ndarray:
        """The same of rows that were drawn by stratum."""
        code, sample_part = np.divmod(drawn["code"], int(self.part_of.max()) + 1)
        return sample_part if self.random is None else self.random.of_rows(drawn["row"], code)

    def __call__(self, block: Block) -> np.ndarray:
        """Stratum of each row of a block: its class and the part of its sample; or -1."""
        code = self.classes(block)
        stratum = code * (int(self.part_of.max()) + 1) + self.part_of[block.columns["sample"]]
        return np.where(code < 0, -1, stratum)


def strata(rows: Rows, unknown_class: Any, seed: int) -> tuple[Strata, np.ndarray]:
    """Strata of a source and their numbers of rows: one pass over the label and sample columns.

    Parameters
    ----------
    rows : Rows
        With the columns "label" and "sample".
    unknown_class : "auto", None or a label
    seed : int

    Returns
    -------
    strata : Strata
    counts : numpy.ndarray, shape (n_strata,)

    Raises
    ------
    DataError
        Without labels, or if `unknown_class` is no label of the source.
    """
    if "label" not in rows.columns:
        raise DataError("the source has no labels: pass y, or a cells dataset with labels")
    by_label = np.roll(passes.crossed(rows, "sample", "label"), -1, axis=1)  # (n_samples, n_labels + 1)
    labelled = by_label[:, :-1].any(axis=1)
    if not labelled.any():
        raise DataError(f"none of the source's {rows.x.shape[0]} rows has a label")
    by_label[~labelled] = 0
    class_of, unknown = _classes(rows.categories("label"), by_label.sum(axis=0), unknown_class)
    n_classes = int(class_of.max()) + 1
    counts = np.zeros((n_classes, len(by_label)), np.int64)
    for code in np.flatnonzero(class_of >= 0):
        counts[class_of[code]] += by_label[:, code]
    part_of = np.full(len(by_label), -1)
    part_of[labelled] = _part_of(int(labelled.sum()), seed)
    by_part = np.array([counts[:, part_of == part].sum(axis=1) for part in range(part_of.max() + 1)]).T
    rest = by_part.sum(axis=1, keepdims=True) - by_part
    random = None
    if by_part.shape[1] < 2 or (rest < ENOUGH).any():
        random = divided(counts.sum(axis=1), N_PARTS, seed)
    return Strata(class_of, n_classes, unknown, part_of, random), by_part.ravel()


def _classes(labels: np.ndarray, counts: np.ndarray, unknown_class: Any) -> tuple[np.ndarray, int]:
    """Class of each label, last of the rows without one; and the class of unknown cells."""
    class_of = np.full(len(labels) + 1, -1)
    known = np.flatnonzero(counts[:-1] > 0)
    class_of[known] = np.arange(known.size)
    if unknown_class is None:
        return class_of, -1
    if isinstance(unknown_class, str) and unknown_class == UNGATED:
        if counts[-1] < ENOUGH_UNGATED:
            return class_of, -1
        class_of[-1] = known.size
        return class_of, known.size
    found = [code for code, label in enumerate(labels.tolist()) if np.array_equal(label, unknown_class)]
    if not found or class_of[found[0]] < 0:
        raise DataError(
            f"unknown_class={unknown_class!r}: the source has no cells of this label; expected 'auto', None, "
            f"or one of {', '.join(map(str, labels[known]))}{meant(unknown_class, labels[known])}"
        )
    if known.size == 1:
        raise DataError(f"unknown_class={unknown_class!r} is the only class of the source: label others too")
    return class_of, int(class_of[found[0]])


def _part_of(n_samples: int, seed: int) -> np.ndarray:
    """Part of each labelled sample: its own, up to ten."""
    if n_samples <= MAX_PARTS:
        return np.arange(n_samples)
    return noise.generator(seed, "parts").permutation(np.arange(n_samples) % MAX_PARTS)


def allocation(counts: np.ndarray, total: int = MAX_DRAWN) -> np.ndarray:
    """Rows to draw of each stratum: all of the small ones, equally many of the large ones.

    Examples
    --------
    >>> allocation(np.array([10, 500, 1_000]), 210).tolist()
    [10, 100, 100]
    """
    ascending = np.sort(counts)
    left = total - np.concatenate([[0], np.cumsum(ascending)[:-1]])  # after those that are smaller
    at_most = left // np.arange(len(counts), 0, -1)
    whole = np.flatnonzero(ascending > at_most)
    return np.minimum(counts, max(int(at_most[whole[0]]), 1)) if whole.size else counts
