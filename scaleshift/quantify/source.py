"""What is learned from the labelled rows: feature sums by class, in random folds and by sample.

All of it is additive: states of different stores, embedded by the same map, can be added without the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from scaleshift.blocks import labels, noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.folds import Folds, divide
from scaleshift.blocks.statistics import Layout
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch
from scaleshift.quantify.features import Embedding

N_FOLDS = 40
MAX_PARTS = 40  # samples are told apart up to this many; more are put together at random
ARRAYS = ("sums", "counts", "part_sums", "part_counts", "n_invalid", "moments")
GROUPS_AT_A_TIME = 4_096  # are summed: rows in random order have a (class, fold, sample) each, nearly
MAX_BYTES = 2**31  # of a state: it is held for several blocks at once


@dataclass(frozen=True)
class SourceState:
    """Feature sums of the labelled rows; additive over any parts of the data."""

    labels: np.ndarray  # (n_labels,) in their own type and order
    sums: np.ndarray  # (n_labels, n_folds, width)
    counts: np.ndarray  # (n_labels, n_folds) rows that are finite
    part_sums: np.ndarray  # (n_labels, n_parts, width) by sample that has rows; none where there is one
    part_counts: np.ndarray  # (n_labels, n_parts)
    n_invalid: np.ndarray  # (n_labels,) rows that are not finite
    moments: np.ndarray  # (n_labels, 2, n_markers) sums of the finite rows, and of their squares
    samples: tuple[Any, ...]  # names of those that have rows

    @property
    def class_counts(self) -> np.ndarray:
        """Finite rows of each class, int64."""
        return self.counts.sum(axis=1).astype(np.int64)

    @property
    def means(self) -> np.ndarray:
        """Class embeddings, (n_labels, width); NaN for classes without rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums.sum(axis=1) / self.counts.sum(axis=1)[:, None]

    def by_sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by class and sample, to draw samples from.

        A class that one sample alone has is divided by its folds: drawing samples would never vary it.
        """
        sums, counts = self.part_sums.copy(), self.part_counts.copy()
        n_parts = counts.shape[1]
        for code in np.flatnonzero(np.count_nonzero(counts, axis=1) == 1):
            sums[code], counts[code] = 0, 0
            for fold in range(self.counts.shape[1]):
                sums[code, fold % n_parts] += self.sums[code, fold]
                counts[code, fold % n_parts] += self.counts[code, fold]
        return sums, counts

    def __add__(self, other: SourceState) -> SourceState:
        """The state of both sources; labels that one of them lacks count 0 there."""
        both = set(self.samples) & set(other.samples) - {"all"}
        if both:
            raise DataError(
                f"the sources share the sample(s) {', '.join(map(str, sorted(both, key=str)))}: a cell would "
                "count twice; fit on different samples, or rename them"
            )
        known = merged_labels(self.labels, other.labels)
        a, b = self._with_labels(known), other._with_labels(known)
        n = min(max(a.part_counts.shape[1], 1) + max(b.part_counts.shape[1], 1), MAX_PARTS)
        part_sums = np.zeros((len(known), n, a.sums.shape[2]))
        part_counts = np.zeros((len(known), n))
        first = 0
        for state in (a, b):
            sums, counts = state._parts()
            for part in range(counts.shape[1]):
                part_sums[:, (first + part) % n] += sums[:, part]
                part_counts[:, (first + part) % n] += counts[:, part]
            first += counts.shape[1]
        return SourceState(
            known,
            a.sums + b.sums,
            a.counts + b.counts,
            part_sums,
            part_counts,
            a.n_invalid + b.n_invalid,
            a.moments + b.moments,
            self.samples + other.samples,
        )

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums and counts by sample, also of a single one."""
        if self.part_counts.shape[1]:
            return self.part_sums, self.part_counts
        return self.sums.sum(axis=1, keepdims=True), self.counts.sum(axis=1, keepdims=True)

    def _with_labels(self, known: np.ndarray) -> SourceState:
        place = np.array([np.flatnonzero(known == label)[0] for label in self.labels], np.int64)

        def placed(values: np.ndarray) -> np.ndarray:
            result = np.zeros((len(known), *values.shape[1:]))
            result[place] = values
            return result

        arrays = {name: placed(getattr(self, name)) for name in ARRAYS}
        return SourceState(labels=known, samples=self.samples, **arrays)


def label_counts(rows: Rows) -> np.ndarray:
    """Rows of each class; DataError if there are none."""
    if "label" not in rows.columns:
        raise DataError("the source has no labels: pass y, or a cells dataset with labels")
    counts = passes.counts(rows, "label")
    if not counts.any():
        raise DataError(f"none of the source's {rows.x.shape[0]} rows has a label")
    return counts


def merged_labels(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Labels of both: in the order that both have, else in natural order."""
    if np.array_equal(a, b):
        return a
    if a.dtype.kind != b.dtype.kind:
        raise DataError(
            f"labels are {a.dtype.name} in one model and {b.dtype.name} in the other: fit both on one type"
        )
    return labels.order(np.concatenate([a, b]))


def embed_source(rows: Rows, embedding: Embedding, n_folds: int, seed: int) -> SourceState:
    """State of every class of the column "label": one pass; unlabelled rows are left out.

    `n_folds` = 1 makes no folds.
    """
    read, layout, parameters = source_pass(rows, embedding, n_folds, seed)
    state = passes.total(source_sums, read, layout, **parameters)
    names, held = rows.categories("sample"), state["part_counts"].sum(axis=0) > 0
    if held.size:  # a sample without labelled cells is none of the source's
        names = names[held[parameters["part"]]]
        held &= np.count_nonzero(held) > 1
    for name in ("part_sums", "part_counts"):
        state[name] = state[name].compress(held, axis=1)
    return SourceState(rows.categories("label"), **state, samples=tuple(names.tolist()))


def source_pass(
    rows: Rows, embedding: Embedding, n_folds: int, seed: int
) -> tuple[Rows, Layout, dict[str, Any]]:
    """What the pass reads, the layout of its state, and the parameters of `source_sums`."""
    names, classes = rows.categories("sample"), rows.categories("label")
    n_parts = min(len(names), MAX_PARTS) if len(names) > 1 else 0
    part = noise.generator(seed, "parts").permutation(np.arange(len(names)) % max(n_parts, 1))
    c, width = len(classes), embedding.width
    layout: Layout = {
        "sums": (c, n_folds, width),
        "counts": (c, n_folds),
        "part_sums": (c, n_parts, width),
        "part_counts": (c, n_parts),
        "n_invalid": (c,),
        "moments": (c, 2, rows.n_markers),
    }
    check_size(8 * c * (n_folds + n_parts) * width, f"{c} classes", embedding)
    parameters = {
        "n_labels": c,
        "folds": divide(rows, "label", n_folds, seed, "source") if n_folds > 1 else None,
        "n_folds": n_folds,
        "part": part if n_parts else None,
        "n_parts": n_parts,
        "embedding": embedding,
    }
    return rows.only("label", *(["sample"] if n_parts else [])), layout, parameters


class StateSizeError(DataError):
    """A state is larger than a worker should hold."""


def check_size(n_bytes: int, what: str, embedding: Embedding, fewer: str = "") -> None:
    """Raise a StateSizeError for a state that no worker should hold; `fewer` is another way out."""
    if n_bytes > MAX_BYTES:
        raise StateSizeError(
            f"{what} with {embedding.width} features each make a state of {n_bytes / 2**30:.1f} GB in every "
            f"task: take fewer features,{fewer} or fit with n_bootstrap=0, which makes no folds"
        )


def source_sums(
    block: Block,
    *,
    n_labels: int,
    folds: Folds | None,
    n_folds: int,
    part: np.ndarray | None,
    n_parts: int,
    embedding: Embedding,
) -> dict[str, np.ndarray]:
    """Kernel of the pass: sums by (class, fold, sample), added up by (class, fold) and (class, sample)."""
    label = block.columns["label"]
    group = label.astype(np.int64) * n_folds
    if folds is not None:
        group += folds(block.start, label)
    if part is not None:
        group = group * n_parts + part[block.columns["sample"]]
    group[(label < 0) | ~block.valid] = -1
    n_rows = np.bincount(group[group >= 0])
    present = np.flatnonzero(n_rows)
    position = np.zeros(max(n_rows.size, 1), np.int32)
    position[present] = np.arange(present.size)
    local = np.where(group >= 0, position[group], -1)
    gather = _gather(present, n_labels, n_folds, n_parts)
    sums, n_by_fold = np.zeros((gather.shape[0], embedding.width)), n_labels * n_folds
    for first in range(0, present.size, GROUPS_AT_A_TIME):
        n = min(GROUPS_AT_A_TIME, present.size - first)
        here = np.where((local >= first) & (local < first + n), local - first, -1)
        sums += gather[:, first : first + n] @ embedding.source_sums(block, here, n)
    counts = gather @ n_rows[present]
    return {
        "sums": sums[:n_by_fold].reshape(n_labels, n_folds, embedding.width),
        "counts": counts[:n_by_fold].reshape(n_labels, n_folds),
        "part_sums": sums[n_by_fold:].reshape(n_labels, n_parts, embedding.width),
        "part_counts": counts[n_by_fold:].reshape(n_labels, n_parts),
        "n_invalid": np.bincount(label[~block.valid & (label >= 0)], minlength=n_labels),
        "moments": dispatch.moment_sums(block.x, block.codes("label"), n_labels),
    }


def _gather(groups: np.ndarray, n_labels: int, n_folds: int, n_parts: int) -> sparse.csc_array:
    """Matrix of 0 and 1: sums by (class, fold, sample) to those by (class, fold), then (class, sample)."""
    by_fold, sample = np.divmod(groups, max(n_parts, 1))
    by_part = n_labels * n_folds + by_fold // n_folds * n_parts + sample
    row = np.concatenate([by_fold, by_part]) if n_parts else by_fold
    column = np.arange(row.size) % max(groups.size, 1)
    return sparse.csc_array((np.ones(row.size), (row, column)), (n_labels * (n_folds + n_parts), groups.size))
