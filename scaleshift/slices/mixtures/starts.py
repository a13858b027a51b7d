"""Where does expectation-maximisation start?  From responsibilities that a rule gives each row.

Responsibilities of all rows, (n, K), are never held: each start makes those of one block, from the absolute
numbers of its rows, so that nothing depends on the chunking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.cluster import kmeans_plusplus

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Kept, Rows
from scaleshift.blocks.rows import with_numbers
from scaleshift.errors import DataError
from scaleshift.kernels.mixture import responsibility_sums
from scaleshift.slices.mixtures.expectation import Fit
from scaleshift.slices.mixtures.mixture import layout_of, maximise
from scaleshift.slices.mixtures.restarts import clustered
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import outcomes_of
from scaleshift.slices.sampling import Sample
from scaleshift.slices.survey import refuse
from scaleshift.slices.tiles import tiles


class Start(Protocol):
    """Starting responsibilities, by row."""

    @property
    def n_components(self) -> int:
        """K."""

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """Of some rows of a prepared block, (n, K); rows add up to 1."""


@dataclass(frozen=True)
class Confusion:
    """Components take turns at the cells (label, predicted label); noise tells those of a cell apart."""

    n_components: int
    scale: float  # of the noise
    seed: int
    sequence: Sequence | None = None  # numbers in row order in place of those keyed by row

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """Cells, tiled along the components, and noise; rows are normalised before and after."""
        label, prediction = block.columns["label"], block.columns.get("prediction")
        turn, n = np.arange(self.n_components), kind.n_labels
        if prediction is None:
            tiled = (label[:, None] == turn % n).astype(np.float64)
        else:  # the cells that have a turn alone: all C^2 of them may be more than memory holds
            true, predicted = np.divmod(turn % (n * n), n)
            tiled = (label[:, None] == true) * prediction[:, predicted].astype(np.float64)
        mass = tiled.sum(axis=1, keepdims=True)
        # With fewer components than cells some rows have none of their own: noise alone decides.
        tiled = np.divide(tiled, mass, out=np.zeros_like(tiled), where=mass > 0)
        return _normalised(tiled + self._noise(block) * self.scale)

    def _noise(self, block: Block) -> np.ndarray:
        if self.sequence is not None:
            return self.sequence(block.start, len(block.x))
        return uniform(self.seed, block, self.n_components)


@dataclass(frozen=True)
class Random:
    """Uniform random responsibilities."""

    n_components: int
    seed: int

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """Normalised random numbers, keyed by row."""
        return _normalised(uniform(self.seed, block, self.n_components))


@dataclass(frozen=True)
class Nearest:
    """All of a row to its nearest centre."""

    centres: np.ndarray  # (K, d)

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.centres)

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """One-hot."""
        x = block.x.astype(np.float64)
        squares = (self.centres**2).sum(axis=1) - 2 * x @ self.centres.T
        return (squares.argmin(axis=1)[:, None] == np.arange(self.n_components)).astype(np.float64)


@dataclass(frozen=True)
class Chosen:
    """Each component starts from one row, and all others count for none."""

    rows: np.ndarray  # (K,) absolute numbers

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.rows)

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """One-hot for the chosen rows, zero elsewhere."""
        numbers = block.start + np.arange(len(block.x))
        return (numbers[:, None] == self.rows).astype(np.float64)


@dataclass(frozen=True)
class Passed:
    """Responsibilities that the caller has passed in: the column "resp"."""

    n_components: int

    def __call__(self, block: Block, kind: Kind) -> np.ndarray:
        """As they are."""
        found = block.columns["resp"].astype(np.float64)
        fine = ((found >= 0) & (found < np.inf)).all(axis=1)
        refuse(block, np.logical_not(fine), "init_resp is negative or no number")
        return found


@dataclass(frozen=True)
class Sequence:
    """Random numbers drawn one row after the other, (n, K), as one generator draws them for all rows."""

    n_columns: int
    starts: np.ndarray  # (n_blocks,) first rows
    states: list[Any]  # of the generator at each of them

    def __call__(self, start: int, n: int) -> np.ndarray:
        """Numbers of the rows from `start` on, which must lie in one block."""
        block = int(np.searchsorted(self.starts, start, "right")) - 1
        generator = np.random.RandomState()
        generator.set_state(self.states[block])
        before = start - int(self.starts[block])
        return generator.rand(before + n, self.n_columns)[before:]


def sequence(rows: Rows, n_columns: int, random_state: Any) -> Sequence:
    """What `RandomState(random_state).rand(n, n_columns)` would draw, without holding it."""
    generator = np.random.RandomState(random_state)
    sizes = [len(rows.x)] if rows.is_one_block else rows.x.chunks[0]
    states = []
    for size in sizes:
        states.append(generator.get_state())
        for tile in tiles(size):
            generator.rand(tile.stop - tile.start, n_columns)
    return Sequence(n_columns, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), states)


def uniform(seed: int, block: Block, n_columns: int) -> np.ndarray:
    """Random numbers in [0, 1) keyed by row, (n, n_columns)."""
    found = np.empty((len(block.x), n_columns))
    for column in range(n_columns):
        found[:, column] = noise.keys(seed, f"start {column}", block.start, len(block.x)) / 2.0**64
    return found


def with_responsibilities(rows: Rows, resp: Any, n_components: Any) -> Rows:
    """The same rows with starting responsibilities of the caller's."""
    rows = with_numbers(rows, resp=resp)
    shape = rows.columns["resp"].values.shape
    if len(shape) != 2 or shape[1] != n_components:
        raise DataError(
            f"init_resp has the shape {shape}: expected a column for each of n_mixture_components="
            f"{n_components!r}"
        )
    return rows


def begin(kept: Kept, kind: Kind, start: Start, covariance_type: str, d: int, reg_covar: float) -> Fit:
    """The mixture that starting responsibilities make: one pass."""
    layout = layout_of(covariance_type, [start.n_components], d, kind.n_labels, kind.has_errors)
    sums = passes.total(start_leaf, kept, layout, kind=kind, start=start, covariance_type=covariance_type)
    return Fit(maximise(sums, covariance_type, [start.n_components], reg_covar)[0])


def start_leaf(block: Block, kind: Kind, start: Start, covariance_type: str) -> dict[str, np.ndarray]:
    """Sums of one prepared block under the starting responsibilities, some rows at a time."""
    outcomes = outcomes_of(block, kind)
    total: dict[str, np.ndarray] = {}
    for rows in tiles(len(block.x)):
        part = block.rows(rows)
        found = responsibility_sums(part.x, outcomes.rows(rows), start(part, kind), covariance_type)
        total = {name: total.get(name, 0.0) + value for name, value in found.items()}
    return total


def named(name: str, n_components: int, sample: Sample, seed: int) -> Start:
    """The start of scikit-learn's GaussianMixture of that name, from a sample of the rows."""
    x, weight = sample.block.x.astype(np.float64), sample.weight
    generator = np.random.RandomState(seed % 2**32)
    if name == "random_from_data":
        order = generator.choice(len(x), n_components, replace=False)
        return Chosen(sample.row[order])
    if name == "k-means++":
        _, order = kmeans_plusplus(x, n_components, sample_weight=weight, random_state=generator)
        return Chosen(sample.row[order])
    return Nearest(clustered(x, weight, n_components, random_state=generator).cluster_centers_)


def _normalised(r: np.ndarray) -> np.ndarray:
    return r / np.maximum(r.sum(axis=1, keepdims=True), np.finfo(float).tiny)
