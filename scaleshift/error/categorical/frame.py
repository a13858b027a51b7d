"""In which units are rows handled?  Centred, by their training spread: z = (1, (x - centre) * factor)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.rows import first_rows
from scaleshift.errors import DataError
from scaleshift.kernels.logistic import group_sums
from scaleshift.kernels.reference import to_numpy

CENTRE_ROWS = 1_000  # whose mean is the centre of the first sums
CONSTANT = 1e-12  # spread of a column by its size: below, it is a constant and has no weight


@dataclass(frozen=True)
class Frame:
    """Units of z."""

    centre: np.ndarray  # (p,)
    factor: np.ndarray  # (p,) 1 / standard deviation; 0 of constant columns

    @property
    def q(self) -> int:
        """Parameters of one logit."""
        return len(self.centre) + 1

    def z(self, x: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """Rows in these units, (n, q); zeros where they do not count."""
        x = to_numpy(x)
        found = np.empty((len(x), self.q))
        found[:, 0] = 1
        np.subtract(x, self.centre, out=found[:, 1:])
        found[:, 1:] *= self.factor
        if counts is not None and not counts.all():
            found[~counts] = 0
        return found

    def plain(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts in units of X: (..., q) -> (..., p), (...)."""
        weights = theta[..., 1:] * self.factor
        return weights, theta[..., 0] - weights @ self.centre


@dataclass(frozen=True)
class Counted:
    """What one pass tells of the source."""

    frame: Frame
    sums: np.ndarray  # (n_folds, K, q) of z, by fold and class; one fold where there are none
    n_invalid: int

    @property
    def n(self) -> np.ndarray:
        """Rows by fold and class, (n_folds, K)."""
        return self.sums[..., 0]


def prepared(block: Block, frame: Frame, buckets: Buckets | None) -> Block:
    """A block in units of z, with the columns "label" and "fold"; rows without a label do not count."""
    label = block.codes("label").astype(np.int64)
    fold = np.zeros(len(label), np.int64) if buckets is None else np.asarray(buckets(block), np.int64)
    columns = {"label": label, "fold": np.where(label < 0, -1, fold)}
    return block._replace(x=frame.z(block.x, label >= 0), columns=columns)


def counted(rows: Rows, buckets: Buckets | None, n_classes: int) -> Counted:
    """Sums, means and spreads of the source: one pass."""
    first = to_numpy(first_rows(rows, CENTRE_ROWS)).astype(np.float64)
    rough = first.mean(axis=0) if len(first) else np.zeros(rows.n_markers)
    frame = Frame(rough, np.ones(rows.n_markers))
    n_folds = 1 if buckets is None else buckets.n
    layout = {"sums": (n_folds * n_classes, frame.q), "squares": (frame.q,), "n_invalid": ()}
    found = passes.total(
        _count, rows, layout, frame=frame, buckets=buckets, n_folds=n_folds, n_classes=n_classes
    )
    sums = found["sums"].reshape(n_folds, n_classes, frame.q)
    total = sums.sum(axis=(0, 1))
    n = total[0]
    if not n:
        raise DataError("no row of the source has both a label and finite values: nothing can be learned")
    mean = total[1:] / n
    variance = found["squares"][1:] / n - mean**2
    centre = rough + mean
    size = np.abs(centre) + np.abs(mean)
    varies = variance > np.maximum(CONSTANT * size, 1e-150) ** 2 + 1e-15 * mean**2
    if not np.isfinite(variance).all():
        column = int(np.flatnonzero(~np.isfinite(variance))[0])
        raise DataError(f"values of column {column} are too large: their squares overflow; divide them")
    factor = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    sums = sums.copy()
    sums[..., 1:] = (sums[..., 1:] - sums[..., :1] * mean) * factor
    return Counted(Frame(centre, factor), sums, int(found["n_invalid"]))


def _count(
    block: Block, frame: Frame, buckets: Buckets | None, n_folds: int, n_classes: int
) -> dict[str, np.ndarray]:
    ready = prepared(block, frame, buckets)
    label, fold = ready.columns["label"], ready.columns["fold"]
    group = np.where(label < 0, -1, fold * n_classes + label)
    return {
        "sums": group_sums(ready.x, group, n_folds * n_classes),
        "squares": np.einsum("ij,ij->j", ready.x, ready.x),
        "n_invalid": np.array(float((~block.valid).sum())),
    }
