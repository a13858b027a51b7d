"""What is minimised, in which units?  Class means, and features by their spread or as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scaleshift.auc.descent.thresholding import hard_threshold
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.rows import first_rows
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

SPREAD = (
    1e-12  # of the second moment about the centre: below this share a feature is constant, but for rounding
)
LEAST = 1e-280  # variance: squares of weights stay in the range of float64
CENTRE_ROWS = 1_000
SIDES = np.array([-1, 0, 1])  # of the signs 0, +1 and -1, the last from the end
Parts = Callable[[int, np.ndarray], np.ndarray]  # first row, label codes -> block of SHT of each row


@dataclass(frozen=True)
class Given:
    """What is known before X is read: who is positive, what each class weighs, and a point near the rows."""

    sign: np.ndarray  # (n_labels,) +1 or -1
    mass: np.ndarray  # (2,) weights of the positives, the negatives
    centre: np.ndarray  # (d,)

    @property
    def factors(self) -> np.ndarray:
        """(2,) 1/r and 1/(1 - r)."""
        return self.mass.sum() / self.mass

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.centre.nbytes


@dataclass(frozen=True)
class Problem:
    """F of eq. (3) as quadratic in v = w / unit: (1 - v'delta)^2 + v'Wv, and a ridge."""

    given: Given
    unit: np.ndarray  # (d,) w = v * unit; 0 leaves a feature out
    offsets: np.ndarray  # (2, d) class means about the centre, in units
    ridge: np.ndarray  # (d,) alpha diag(W), in units
    deviation: np.ndarray  # (d,) square root of diag(W); 1 where it is 0

    @property
    def delta(self) -> np.ndarray:
        """(d,) difference of the class means."""
        return self.offsets[0] - self.offsets[1]

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return 6 * self.unit.nbytes

    def moved(self, v: np.ndarray, pull: np.ndarray, mass: float, step: float, k: int) -> np.ndarray:
        """One step of Algorithm 1 on a block of which (sum of c z (x - mean), sum of weights) is known.

        Nothing moves where a block holds no weight.
        """
        if mass == 0:
            return v
        delta = self.delta
        gradient = 2 * pull / mass - 2 * (1 - v @ delta) * delta + 2 * self.ridge * v
        return hard_threshold(v - step * gradient, k)

    @property
    def fingerprint(self) -> list[float]:
        """Numbers that tell these rows from others, to as many digits as other chunks leave alone."""
        unit = np.where(self.unit > 0, self.unit, 1.0)
        distance, spread = self.delta / unit / self.deviation, np.log(self.deviation)
        numbers = [*distance[:8], np.abs(distance).mean(), *spread[:8], spread.mean()]
        mass = [float(f"{value:.8g}") for value in self.given.mass]
        return [*mass, *(round(float(number), 6) for number in numbers)]

    def objective(self, within: np.ndarray, iterates: np.ndarray) -> np.ndarray:
        """F of some iterates, (n,), with v'Wv of each."""
        return (1 - iterates @ self.delta) ** 2 + within


def problem_of(given: Given, sums: np.ndarray, squares: np.ndarray, *, scale: bool, alpha: float) -> Problem:
    """The problem, of sums (2, d) of rows about the centre by class, and of squares (d,) weighted by c."""
    means = sums / given.mass[:, None]
    second = squares / given.mass.sum()
    variance = second - (means**2).sum(axis=0)  # diag W
    varies = variance > np.maximum(SPREAD * second, LEAST)
    deviation = np.sqrt(np.where(varies, variance, 1.0))
    unit = np.where(varies, 1 / deviation if scale else 1.0, 0.0)
    return Problem(given, unit, means * unit, alpha * (deviation * unit) ** 2, deviation)


# Before X is read --------------------------------------------------------------------------------------


def given_of(rows: Rows, sign: np.ndarray) -> Given:
    """Masses of the classes, by the columns alone where no row is dropped; a centre by the first rows.

    Raises
    ------
    DataError
        If a class has no weight, or weights are negative.
    """
    mass = _masses(rows, sign)
    if not (mass > 0).all():
        raise DataError(
            f"the positive rows weigh {mass[0]:g}, the negative ones {mass[1]:g}: a ranking needs both; "
            "weigh some rows of each above 0"
        )
    first = first_rows(rows, CENTRE_ROWS).astype(np.float64)
    centre = np.median(first, axis=0) if len(first) else np.zeros(rows.n_markers)
    return Given(sign, mass, centre)


def _masses(rows: Rows, sign: np.ndarray) -> np.ndarray:
    if rows.invalid == "raise" and "weight" not in rows.columns:
        by_label = passes.counts(rows, "label")
        return np.array([by_label[sign > 0].sum(), by_label[sign < 0].sum()], np.float64)
    if rows.invalid == "raise":  # rows that X would drop are an error later: only the columns are read
        rows = rows.only("label", "weight").without_x()
    found = passes.total(mass_leaf, rows, {"mass": (2,), "negative": ()}, sign=sign)
    if found["negative"]:
        raise DataError(f"{found['negative']:g} weights are negative or not finite: expected numbers from 0")
    return found["mass"]


def mass_leaf(block: Block, sign: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of the two classes in one block."""
    side, weight = sides(block, sign)
    given = block.columns.get("weight", weight)
    bad = ~((given >= 0) & (given < np.inf)) & (block.columns["label"] >= 0)
    counted = (side >= 0) & ~bad
    mass = np.bincount(side[counted], weight[counted], minlength=2)
    return {"mass": mass, "negative": np.array(bad.sum())}


# Of one block ------------------------------------------------------------------------------------------


def sides(block: Block, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class of each row: 0 positive, 1 negative, -1 neither; and its weight."""
    codes = block.codes("label")
    side = np.where(codes < 0, -1, SIDES[sign[codes]])
    weight = block.columns.get("weight")
    weight = np.ones(len(side)) if weight is None else np.asarray(weight, np.float64)
    return side, np.where(side < 0, 0.0, weight)


def sums_leaf(block: Block, given: Given) -> dict[str, np.ndarray]:
    """Sums by class about the centre, and squares weighted by 1/r and 1/(1 - r), of one block."""
    side, weight = sides(block, given.sign)
    x = block.x
    sums, squares = np.zeros((2, x.shape[1])), np.zeros(x.shape[1])
    for tile in tiles(len(side), x.shape[1]):
        about = to_numpy(x[tile]) - given.centre
        here, w = side[tile], weight[tile]
        for number in range(2):
            sums[number] += np.where(here == number, w, 0.0) @ about
        squares += (w * given.factors[here]) @ about**2
    return {"sums": sums, "squares": squares}


def tiles(n: int, d: int) -> list[slice]:
    """Rows whose float64 copies stay within 8 MB."""
    size = max(1_000_000 // d, 16)
    return [slice(first, first + size) for first in range(0, n, size)]
