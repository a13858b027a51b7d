"""What does a pass of the fit see of a block?  Projected embeddings, and their outcomes, in one dtype."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.mixture import Outcomes
from scaleshift.parameters import is_whole
from scaleshift.slices.outcomes import Found, Kind
from scaleshift.slices.projection import Projection
from scaleshift.slices.survey import checked_weight, held_out, stratum

FARTHEST = 1e18  # of an embedding from the mean


@dataclass(frozen=True)
class Preparation:
    """Everything that makes prepared blocks of raw ones."""

    kind: Kind
    projection: Projection
    dtype: str  # of numpy
    seed: int
    holdout: float  # share of rows that the fit does not see

    def __post_init__(self) -> None:
        """Refuse what no fit leaves, but a damaged file may hold."""
        fine = self.dtype in ("float32", "float64") and is_whole(self.seed) and 0 <= self.holdout < 1
        if not fine or not isinstance(self.projection, Projection):
            raise ValueError("the preparation of rows is none that a fit leaves")

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.projection.nbytes

    @property
    def row_bytes(self) -> int:
        """Of a prepared row."""
        numbers = self.projection.n_columns + (self.kind.n_labels if self.kind.has_errors else 0) + 4
        return numbers * np.dtype(self.dtype).itemsize + 5


def prepare(block: Block, preparation: Preparation) -> Block:
    """Project a block's embeddings and make columns of its outcomes.

    Columns are label (n,) codes, prediction (n, C), extra (n, 2) error and loss (0 where there is none),
    weight (n,), and held (n,) bool: rows that the fit does not see.
    """
    found, dtype = preparation.kind.outcome(block), np.dtype(preparation.dtype)
    weight = checked_weight(block)
    extra = np.zeros((len(block.x), 2), dtype)
    for column, values in enumerate((found.error, found.loss)):
        if values is not None:
            extra[:, column] = np.where(weight > 0, values, 0)  # of weight 0: may lack a label
    columns = {
        "extra": extra,
        "weight": weight.astype(dtype),
        "held": held_out(block, preparation.seed, preparation.holdout),
    }
    if "resp" in block.columns:  # starting responsibilities
        columns["resp"] = block.columns["resp"]
    if found.label is not None:
        columns["label"] = found.label.astype(np.int32)
    if found.prediction is not None:
        columns["prediction"] = found.prediction.astype(dtype)
    return block._replace(x=_projected(block, preparation.projection, dtype), columns=columns)


def _projected(block: Block, projection: Projection, dtype: np.dtype) -> np.ndarray:
    """Embeddings of a block in the dtype, whose squares it can hold."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = projection(block.x, dtype)
    if len(x) and not max(x.max(), -x.min()) < FARTHEST:  # NaN is too far as well
        row = block.start + int(np.flatnonzero(~(abs(x) < FARTHEST).all(axis=1))[0])
        raise DataError(
            f"the embedding of row {row} is farther than {FARTHEST:g} from the mean: mend it, or leave it out"
        )
    return x


def fitted_weight(block: Block) -> np.ndarray:
    """Weights of a prepared block's rows, 0 for those that the fit does not see, in the block's dtype."""
    return np.where(block.columns["held"], 0, block.columns["weight"])


def outcomes_of(block: Block, kind: Kind) -> Outcomes:
    """Outcomes of a prepared block as the kernels take them, rows held out with weight 0."""
    known = known_outcomes(block, kind)
    return known._replace(weight=fitted_weight(block), extra=block.columns["extra"])


def known_outcomes(block: Block, kind: Kind) -> Outcomes:
    """What is known of a prepared block's rows beside their embeddings, for memberships."""
    return Outcomes(block.columns.get("label"), kind.n_labels, block.columns.get("prediction"))


def strata_of(block: Block, kind: Kind) -> np.ndarray:
    """Strata of a prepared block's rows, -1 for those that the fit does not see."""
    columns = block.columns
    found = Found(columns["label"], None, columns["extra"][:, 0], None)
    return np.where(fitted_weight(block) > 0, stratum(kind, found), -1)
