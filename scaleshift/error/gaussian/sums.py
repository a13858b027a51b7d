"""What do linear models need to know of rows?  Products of z = (1, x - centre) with itself and with outcomes.

One pass over the source, by fold; with the noise of replicates, where it was given. A target has no outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.buckets import Buckets
from scaleshift.blocks.rows import first_rows
from scaleshift.blocks.statistics import Layout
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch

CENTRE_ROWS = 1_000  # whose mean is the first centre of the sums
FEWEST_ROWS = 3
MOST = 1e300  # sum of squares
ULPS = 8 * np.finfo(np.float64).eps  # of a value: a spread below is none
Sums = dict[str, np.ndarray]


@dataclass(frozen=True)
class Outcomes:
    """Sums of C outcomes of the same rows: the source's own, or those of replicates."""

    cross: np.ndarray  # (K, 1 + p, C) of z outcome', by fold
    square: np.ndarray  # (K, C) of outcomes squared

    def __getitem__(self, columns: slice) -> Outcomes:
        """Some of the outcomes."""
        return Outcomes(self.cross[..., columns], self.square[..., columns])

    @property
    def size(self) -> int:
        """How many there are."""
        return self.square.shape[-1]


@dataclass(frozen=True)
class SourceSums:
    """Sums of the source about its mean, by fold."""

    centre: np.ndarray  # (p,) mean of the rows
    middle: float  # mean of the outcomes
    gram: np.ndarray  # (K, 1 + p, 1 + p)
    outcomes: Outcomes  # C = 1: outcome - middle
    train: Outcomes | None  # C = B: noise that was given
    fresh: Outcomes | None
    n_invalid: int

    @property
    def n(self) -> float:
        """Rows that are learned from."""
        return float(self.gram[:, 0, 0].sum())


def source_sums(rows: Rows, buckets: Buckets | None, given_noise: bool) -> SourceSums:
    """One pass over the source, and a look at its first rows.

    Parameters
    ----------
    rows : Rows
        With the columns "outcome" and "label", and what `buckets` ask for.
    buckets : Buckets or None
        Folds; None: one.
    given_noise : bool
        Whether there are the columns "train" and "fresh".

    Raises
    ------
    DataError
        If nothing can be learned from the rows: they are too few, outcomes are all the same, infinite, or
        numbers too large to be squared.
    """
    noise = ("train", "fresh") if given_noise else ()
    widths = [_width(rows, name) for name in noise]
    if len(set(widths)) > 1:
        raise DataError(
            f"noise has {widths[0]} replicates for 'train' and {widths[1]} for 'fresh': give as many of both"
        )
    beside = [name for name in ("label", "group") if name in rows.columns]
    rows = rows.only("outcome", *beside, *noise)
    centre, middle = _first_means(rows)
    layout = layout_of_source(rows.n_markers, buckets.n if buckets else 1, 1 + sum(widths))
    found = passes.total(
        source_block, rows, layout, buckets=buckets, noise=noise, centre=centre, middle=middle
    )
    _check(found, rows)
    return _about_means(found, centre, middle, widths[0] if widths else None)


def layout_of_source(p: int, k: int, m: int = 1) -> Layout:
    """Shapes of sums of k folds, p features and m outcomes."""
    q = 1 + p
    return {"gram": (k, q, q), "cross": (k, q, m), "square": (k, m), "invalid": ()}


def target_sums(rows: Rows, centre: np.ndarray, noise: bool) -> Sums:
    """Sums of one target about the centre of the source: one pass.

    Returns
    -------
    dict of numpy.ndarray
        "n" rows that are finite, "n_rows" all, "sum" (p,), "scatter" (p, p) of x - centre; with `noise` also
        "noise" (1 + p, B) of z noise' and "noise_square" (B,).
    """
    width = _width(rows, "noise") if noise else 0
    rows = rows.only("noise") if noise else rows.only()
    q = 1 + rows.n_markers
    layout = {"gram": (1, q, q), "cross": (1, q, width), "square": (1, width), "rows": ()}
    found = passes.total(_target_block, rows, layout, centre=centre, noise=noise)
    gram = found["gram"][0]
    if not (np.diag(gram) < MOST).all():
        raise DataError("values of the target are too large: their squares are beyond float64; divide them")
    sums = {"n": gram[0, 0], "n_rows": found["rows"], "sum": gram[0, 1:], "scatter": gram[1:, 1:]}
    if noise:
        sums |= {"noise": found["cross"][0], "noise_square": found["square"][0]}
    return {name: np.array(values) for name, values in sums.items()}


def mean_products(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """U, the mean of zz' over a target, (1 + p, 1 + p); NaN where it has no rows."""
    n, q = float(sums["n"]), 1 + len(sums["sum"])
    products = np.empty((q, q))
    products[0, 0], products[0, 1:], products[1:, 0] = n, sums["sum"], sums["sum"]
    products[1:, 1:] = sums["scatter"]
    return products / n if n > 0 else np.full((q, q), np.nan)


def source_block(
    block: Block, buckets: Buckets | None, noise: tuple[str, ...], centre: np.ndarray, middle: float
) -> dict[str, Any]:
    """Sums of one block, by fold."""
    y = np.asarray(block.columns["outcome"], np.float64)
    fold = np.zeros(len(y), np.int64) if buckets is None else buckets(block)
    fold = np.where(learned(block), fold, -1)
    right = [(y - middle)[:, None], *(np.asarray(block.columns[name], np.float64) for name in noise)]
    outcomes = np.concatenate(right, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # `_check` tells
        found = dispatch.regression_sums(block.x, outcomes, fold, buckets.n if buckets else 1, centre)
    return {**found, "invalid": (~block.valid).sum()}


def learned(block: Block) -> np.ndarray:
    """Which rows have an outcome and are finite: (n,) bool."""
    known = block.valid & ~np.isnan(block.columns["outcome"])
    return known & (block.columns["label"] >= 0) if "label" in block.columns else known


def _target_block(block: Block, centre: np.ndarray, noise: bool) -> dict[str, Any]:
    """Sums of one block of a target."""
    outcomes = block.columns["noise"] if noise else np.empty((len(block.valid), 0))
    group = np.where(block.valid, 0, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        found = dispatch.regression_sums(block.x, outcomes, group, 1, centre)
    return {**found, "rows": len(block.valid)}


def _width(rows: Rows, name: str) -> int:
    """Replicates of a column of noise."""
    values = rows.columns[name].values
    if values.ndim != 2:
        raise DataError(f"noise {name!r} has {values.ndim} dimension(s): expected (replicates, rows)")
    return int(values.shape[1])


def _first_means(rows: Rows) -> tuple[np.ndarray, float]:
    """A point near the rows, and a number near the outcomes: the nearer, the less is lost to rounding."""
    few = first_rows(rows, CENTRE_ROWS)
    centre = few.mean(axis=0, dtype=np.float64) if len(few) else np.zeros(rows.n_markers)
    y = first_rows(rows.only("outcome").without_x(), CENTRE_ROWS).astype(np.float64)
    y = y[y != 0]  # in place of those that are missing
    return centre, float(y.mean()) if y.size else 0.0


def _check(found: Mapping[str, np.ndarray], rows: Rows) -> None:
    """Refuse sums from which nothing follows."""
    n = found["gram"][:, 0, 0].sum()
    if n < FEWEST_ROWS:
        raise DataError(
            f"{n:g} rows are finite and have an outcome, {FEWEST_ROWS} are needed: give more, or mend values "
            "that are NaN or infinite"
        )
    if not found["square"][:, 0].sum() < MOST:
        raise DataError(
            "outcomes are infinite, or too large to be squared in float64: leave these rows out (their "
            "outcome NaN), or divide all by a number"
        )
    squares = np.einsum("kjj->j", found["gram"])[1:]
    large = np.flatnonzero(~(squares < MOST))
    if large.size:
        name = rows.markers[large[0]] if rows.markers else f"column {large[0]}"
        raise DataError(
            f"the values of {large.size} column(s), first {name}, are too large: their squares are beyond "
            "float64; divide them, or leave the columns out"
        )
    if not np.isfinite(found["square"]).all():
        raise DataError("noise is not finite: give standard normal numbers")


def _about_means(
    found: Mapping[str, np.ndarray], centre: np.ndarray, middle: float, width: int | None
) -> SourceSums:
    """The same sums about the means of all rows (Chan, Golub, LeVeque 1979)."""
    gram, cross, square = found["gram"], found["cross"].copy(), found["square"].copy()
    n = gram[:, 0, 0].sum()
    moved, risen = gram[:, 0, 1:].sum(axis=0) / n, cross[:, 0, 0].sum() / n
    square[:, 0] += risen * (risen * gram[:, 0, 0] - 2 * cross[:, 0, 0])
    cross[:, :, 0] -= risen * gram[:, :, 0]
    cross[:, 1:] -= moved[:, None] * cross[:, :1]
    if not square[:, 0].sum() > n * (ULPS * (abs(middle) + abs(risen))) ** 2:
        raise DataError("all outcomes are the same: there is no error to predict")
    total = SourceSums(
        centre + moved,
        middle + float(risen),
        _moved(gram, moved),
        Outcomes(cross[..., :1], square[:, :1]),
        None,
        None,
        int(found["invalid"]),
    )
    if width is None:
        return total
    parts = [Outcomes(cross[..., here], square[:, here]) for here in _halves(width)]
    return replace(total, train=parts[0], fresh=parts[1])


def _halves(width: int) -> tuple[slice, slice]:
    return slice(1, 1 + width), slice(1 + width, 1 + 2 * width)


def _moved(gram: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Products about a centre that is moved by so much: (K, q, q)."""
    gram = gram.copy()
    for part in gram:  # one after the other: they are large
        outer = np.outer(part[1:, 0], by)
        part[1:, 1:] -= outer
        part[1:, 1:] -= outer.T
        part[1:, 1:] += part[0, 0] * np.outer(by, by)
        part[1:, 0] -= part[0, 0] * by
        part[0, 1:] = part[1:, 0]
    return gram
