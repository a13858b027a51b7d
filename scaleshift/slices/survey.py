"""What is there to learn from?  Moments of the embeddings and counts of the outcomes, in one pass.

The first pass of every fit: it refuses rows that nothing can be learned from; later ones need not look.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.resuming import factors, short, sums_told
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.slices.outcomes import Found, Kind
from scaleshift.slices.tiles import tiles

LARGEST = 1e34  # variance of embeddings: float32 holds squares of the rows
ADDED = ("n_rows", "strata", "error", "loss", "n_invalid", "ordered", "columns")  # of blocks
LARGEST_LOSS = 1e30  # that float32 holds, with room for sums
LEAST_SPREAD = 1e-3  # of a column's mean: of less, sums about the mean are rounding errors
WEIGHTS = (1e-10, 1e30)  # of the mean weight: mixtures add tiny numbers, and float32 ends
MANY_LABELS = 50  # with more, strata are right and wrong alone


class Survey(NamedTuple):
    """What the first pass found."""

    n_rows: int  # with a weight
    mass: float  # sum of the weights
    mean: np.ndarray  # (d,)
    scatter: np.ndarray  # (d, d) of products about the mean, or (d,) of squares: weighted means
    strata: np.ndarray  # (n_strata,) rows of each that the fit sees: those held out have no say in a sample
    error: float  # mean of the errors, NaN without
    loss: float  # mean of the losses, NaN without
    n_invalid: int  # rows that are not finite, which may be left out
    ordered: np.ndarray  # (1 + d,) sum of weights and mean, each row times a factor of its own
    columns: np.ndarray  # sums of what came beside the embeddings, the same way

    @property
    def n_fitted(self) -> int:
        """Rows with a weight that the fit sees."""
        return int(self.strata.sum())

    @property
    def variances(self) -> np.ndarray:
        """Of the embeddings' columns, (d,)."""
        return self.scatter if self.scatter.ndim == 1 else np.diagonal(self.scatter)

    @property
    def variance(self) -> float:
        """Mean of the embeddings' columns."""
        return float(self.variances.mean())

    @property
    def fingerprint(self) -> list[Any]:
        """What tells these rows from others, their order too, to digits that other chunks leave alone."""
        deviation = np.sqrt(np.maximum(self.variances, np.finfo(float).tiny))
        # Means near 0 are rounding errors: digits count from the point, where columns have a spread of 1.
        spread = np.maximum(deviation, LEAST_SPREAD * abs(self.mean))
        share, ordered = self.ordered[0], (self.ordered[1:] - self.ordered[0] * self.mean) / spread
        number = factors(0, len(self.mean))  # the order of columns counts as well
        means = [number @ ordered, number @ (self.mean / spread), number @ np.log(spread)]
        points = [share, *np.divide(means, len(self.mean))]
        counts = [self.n_rows, self.n_invalid, len(self.mean), *self.strata.tolist()]
        totals = (float(f"{number:.8g}") for number in (self.mass, self.error, self.loss))
        return [*counts, *(round(float(point), 8) for point in points), *totals, *short(self.columns)]


def survey(rows: Rows, kind: Kind, products: bool, seed: int = 0, holdout: float = 0.0) -> Survey:
    """Pass over the rows once.

    Parameters
    ----------
    rows : Rows
        As the kind's `rows` gives them.
    kind : Kind
    products : bool
        Whether products of all pairs of columns are wanted, for a projection; else squares.
    seed, holdout : int, float
        Which share of the rows the fit will not see.

    Raises
    ------
    DataError
        For losses that are not finite, labels that are missing, weights that are negative; names the first
        rows.
    """
    held: dict[str, Any] = {"seed": seed, "holdout": holdout}
    state = passes.total(look, rows, None, merge=merge, kind=kind, products=products, **held)
    mass = max(float(state["mass"]), float(np.finfo(float).tiny))
    if not (abs(state["scatter"]).max(initial=0) / mass < LARGEST):  # NaN is too large as well
        raise DataError("squares of the embeddings overflow: bring their columns to a scale near 1")
    n_rows = int(state["n_rows"])
    if n_rows and not WEIGHTS[0] < mass / n_rows < WEIGHTS[1]:
        raise DataError(
            f"sample_weight is {mass / n_rows:.3g} in the mean: bring it to a scale near 1, by dividing it "
            "by that"
        )
    return Survey(
        n_rows=int(state["n_rows"]),
        mass=float(state["mass"]),
        mean=state["mean"],
        scatter=state["scatter"] / mass,
        strata=state["strata"],
        error=float(state["error"] / mass),
        loss=float(state["loss"] / mass),
        n_invalid=int(state["n_invalid"]),
        ordered=state["ordered"] / mass,
        columns=state["columns"],
    )


def look(block: Block, kind: Kind, products: bool, seed: int = 0, holdout: float = 0.0) -> dict[str, Any]:
    """Moments of one block about its own mean, and its counts."""
    found = kind.outcome(block)
    weight = checked_weight(block)
    _check(block, kind, found, weight)
    found = _weighted(found, weight)
    seen = (weight > 0) & ~held_out(block, seed, holdout)
    return {
        **_moments(to_numpy(block.x), weight, products, factors(block.start, len(weight))),
        "n_rows": int((weight > 0).sum()),
        "strata": np.bincount(stratum(kind, found)[seen], minlength=n_strata(kind)),
        "error": np.nan if found.error is None else weight @ found.error,
        "loss": np.nan if found.loss is None else weight @ found.loss,
        "n_invalid": int((~block.valid).sum()),
        "columns": np.array(list(sums_told(block).values())),
    }


def _moments(x: np.ndarray, weight: np.ndarray, products: bool, factor: np.ndarray) -> dict[str, Any]:
    """Sum of weights, mean and scatter about it; not finite where squares overflow. Sums with factors too."""
    mass = weight.sum()
    mean, scatter = np.zeros(x.shape[1]), np.zeros((x.shape[1],) * (2 if products else 1))
    factor = factor * weight
    ordered = np.concatenate([[factor.sum()], mean])
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in tiles(len(x)):
            tile = x[rows].astype(np.float64)
            mean += weight[rows] @ tile
            ordered[1:] += factor[rows] @ tile
        mean /= mass if mass else 1.0
        for rows in tiles(len(x)):
            tile = x[rows] - mean  # float64
            tile *= np.sqrt(weight[rows])[:, None]
            scatter += tile.T @ tile if products else np.einsum("ij,ij->j", tile, tile)  # symmetric
    return {"mass": mass, "mean": mean, "scatter": scatter, "ordered": ordered}


def merge(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Moments of both about their common mean (Chan, Golub and LeVeque 1979)."""
    mass = a["mass"] + b["mass"]
    share = b["mass"] / mass if mass else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        delta = b["mean"] - a["mean"]
        between = a["mass"] * share * (np.outer(delta, delta) if a["scatter"].ndim == 2 else delta * delta)
        scatter = a["scatter"] + b["scatter"] + between
    return {
        "mass": mass,
        "mean": a["mean"] + share * delta,
        "scatter": scatter,
        **{name: a[name] + b[name] for name in ADDED},
    }


def held_out(block: Block, seed: int, share: float) -> np.ndarray:
    """Which rows of a block the fit does not see, (n,) bool: a hash of the absolute row."""
    if not share:
        return np.zeros(len(block.x), bool)
    return noise.keys(seed, "holdout", block.start, len(block.x)) < np.uint64(share * 2.0**64)


def checked_weight(block: Block) -> np.ndarray:
    """Weights of the rows of a block, 0 for those that are not finite."""
    weight = block.columns.get("weight")
    if weight is None:
        return block.valid.astype(np.float64)
    refuse(block, ~(np.isfinite(weight) & (weight >= 0)), "sample_weight is negative or not finite")
    return weight.astype(np.float64) * block.valid


def _check(block: Block, kind: Kind, found: Found, weight: np.ndarray) -> None:
    """Rows of weight 0 may lack what they like: nothing is learned from them."""
    if found.label is not None:
        refuse(block, (found.label < 0) & (weight > 0), kind.MISSING)
    if found.loss is not None:
        refuse(block, ~np.isfinite(found.loss) & (weight > 0), "losses are NaN or infinite")
        too_large = (abs(found.loss) > LARGEST_LOSS) & (weight > 0)
        refuse(block, too_large, f"losses are beyond {LARGEST_LOSS:g}, where numbers overflow,")


def _weighted(found: Found, weight: np.ndarray) -> Found:
    """The same with errors and losses of 0 where the weight is: a NaN would not vanish by it."""
    error, loss = (None if v is None else np.where(weight > 0, v, 0.0) for v in (found.error, found.loss))
    return found._replace(error=error, loss=loss)


def refuse(block: Block, bad: np.ndarray, what: str) -> None:
    """Raise for bad rows of a block, naming the first."""
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
