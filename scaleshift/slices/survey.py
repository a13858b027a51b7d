"""What is there to learn from?  Moments of the embeddings and counts of the outcomes, in one pass.

The first pass of every fit: it refuses rows that nothing can be learned from; later ones need not look.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.slices.outcomes import Found, Kind

TILE = 2_048  # rows whose products are added at a time, in float64
MANY_LABELS = 50  # with more, strata are right and wrong alone


class Survey(NamedTuple):
    """What the first pass found."""

    n_rows: int  # with a weight
    mass: float  # sum of the weights
    mean: np.ndarray  # (d,)
    scatter: np.ndarray  # (d, d) of products about the mean, or (d,) of squares: weighted means
    strata: np.ndarray  # (n_strata,) rows of each
    error: float  # mean of the errors, NaN without
    loss: float  # mean of the losses, NaN without

    @property
    def fingerprint(self) -> list[float]:
        """Numbers that tell these rows from others."""
        diagonal = self.scatter if self.scatter.ndim == 1 else np.diagonal(self.scatter)
        return [float(self.n_rows), self.mass, *self.mean[:8].tolist(), *diagonal[:8].tolist(), self.loss]


def survey(rows: Rows, kind: Kind, products: bool) -> Survey:
    """Pass over the rows once.

    Parameters
    ----------
    rows : Rows
        As the kind's `rows` gives them.
    kind : Kind
    products : bool
        Whether products of all pairs of columns are wanted, for a projection; else squares.

    Raises
    ------
    DataError
        For losses that are not finite, labels that are missing, weights that are negative; names the first
        rows.
    """
    state = passes.total(look, rows, None, merge=merge, kind=kind, products=products)
    mass = max(state["mass"], np.finfo(float).tiny)
    n_rows = int(state["strata"].sum())
    return Survey(
        n_rows,
        float(state["mass"]),
        state["mean"],
        state["scatter"] / mass,
        state["strata"],
        float(state["error"] / mass),
        float(state["loss"] / mass),
    )


def look(block: Block, kind: Kind, products: bool) -> dict[str, Any]:
    """Moments of one block about its own mean, and its counts."""
    found = kind.outcome(block)
    weight = checked_weight(block)
    _check(block, found)
    x = to_numpy(block.x)
    mass = weight.sum()
    mean = np.zeros(x.shape[1])
    for tile, w in _tiles(x, weight):
        mean += w @ tile
    mean /= mass if mass else 1.0
    scatter = np.zeros((x.shape[1],) * (2 if products else 1))
    for tile, w in _tiles(x, weight):
        tile -= mean
        tile *= np.sqrt(w)[:, None]
        scatter += tile.T @ tile if products else np.einsum("ij,ij->j", tile, tile)  # a symmetric product
    return {
        "mass": mass,
        "mean": mean,
        "scatter": scatter,
        "strata": np.bincount(stratum(kind, found)[weight > 0], minlength=n_strata(kind)),
        "error": np.nan if found.error is None else weight @ found.error,
        "loss": np.nan if found.loss is None else weight @ found.loss,
    }


def merge(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Moments of both about their common mean (Chan, Golub and LeVeque 1979)."""
    mass = a["mass"] + b["mass"]
    share = b["mass"] / mass if mass else 0.0
    delta = b["mean"] - a["mean"]
    between = a["mass"] * share * (np.outer(delta, delta) if a["scatter"].ndim == 2 else delta * delta)
    return {
        "mass": mass,
        "mean": a["mean"] + share * delta,
        "scatter": a["scatter"] + b["scatter"] + between,
        **{name: a[name] + b[name] for name in ("strata", "error", "loss")},
    }


def _tiles(x: np.ndarray, weight: np.ndarray) -> Any:
    """Some rows at a time in float64, which the caller may overwrite, and their weights."""
    for start in range(0, len(x), TILE):
        yield np.array(x[start : start + TILE], np.float64), weight[start : start + TILE]


def checked_weight(block: Block) -> np.ndarray:
    """Weights of the rows of a block, 0 for those that are not finite."""
    weight = block.columns.get("weight")
    if weight is None:
        return block.valid.astype(np.float64)
    _refuse(block, ~(np.isfinite(weight) & (weight >= 0)), "sample_weight is negative or not finite")
    return weight.astype(np.float64) * block.valid


def _check(block: Block, found: Found) -> None:
    if found.label is not None:
        _refuse(block, found.label < 0, "targets are missing")
    if found.loss is not None:
        _refuse(block, ~np.isfinite(found.loss), "losses are NaN or infinite")


def _refuse(block: Block, bad: np.ndarray, what: str) -> None:
    if bad.any():
        rows = np.flatnonzero(bad)
        first = ", ".join(str(block.start + int(row)) for row in rows[:5])
        raise DataError(
            f"{what} in {len(rows)} of the rows {block.start} to {block.start + len(bad) - 1}, first in "
            f"{first}: mend them, or leave these rows out"
        )


# Strata: what a sample must not miss -------------------------------------------------------------------


def n_strata(kind: Kind) -> int:
    """Labels, each right and wrong; of many labels right and wrong alone."""
    if not kind.has_errors:
        return kind.n_labels
    return 2 * kind.n_labels if kind.n_labels <= MANY_LABELS else 2


def stratum(kind: Kind, found: Found) -> np.ndarray:
    """Stratum of each row, (n,)."""
    assert found.label is not None
    if not kind.has_errors:
        return found.label
    wrong = np.zeros(len(found.label), np.int64) if found.error is None else found.error.astype(np.int64)
    return wrong if kind.n_labels > MANY_LABELS else 2 * found.label.astype(np.int64) + wrong
