"""Which k variables make a quadratic smallest?  Forward steps and exact exchanges, along a path of sizes.

Minimises w'Mw - 2 c'w over vectors with at most k entries that are not 0. Beside the support S goes one
array, inv(M_SS) M_S. From it come, for all variables at once, what one outside would gain and what any
exchange of one for another would do: steps are exact, and cost O(k p). That variables are exchanged until no
exchange helps is the idea of splicing (Zhu et al. 2020, "A polynomial algorithm for best-subset selection
problem"), which goes by approximate gains.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

COLLINEAR = 1e-9  # of its own variance: what a variable must have left beside the support
PROGRESS = 1e-10  # of the objective: what a step must gain
LEAVING, CANDIDATES = 6, 32  # variables whose exchanges in pairs are tried
FEW = 2_000  # subsets, of which each is tried
BEYOND = 5  # the largest size: from where the way back begins


def best_subsets(
    matrix: np.ndarray, gain: np.ndarray, sizes: Sequence[int], *, positive: bool = False
) -> np.ndarray:
    """Weights of the best subsets found of each size.

    Parameters
    ----------
    matrix : numpy.ndarray, shape (p, p)
        M, symmetric and positive semidefinite. A variable whose diagonal entry is 0 is never chosen.
    gain : numpy.ndarray, shape (p,)
        c.
    sizes : sequence of int
        Ascending, from 0; above p they mean p.
    positive : bool, default False
        Whether no weight may be below 0.

    Returns
    -------
    numpy.ndarray of float64, shape (n_sizes, p)
        Fewer entries than asked are not 0 where every further variable depends linearly on those chosen, or
        would make nothing smaller.

    Notes
    -----
    No exchange of one variable for another makes a solution better, and none is worse than that of the size
    before it.

    Examples
    --------
    >>> M = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> best_subsets(M, np.array([1.0, 0.9, 0.5]), [1, 2]).round(3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.5]]
    """
    matrix, gain = np.ascontiguousarray(matrix, np.float64), np.asarray(gain, np.float64)
    found = np.zeros((len(sizes), len(gain)))
    for row, support in enumerate(_path(Support(matrix, gain, positive), list(sizes))):
        found[row, support.chosen] = support.weights
    return found


def forward_subsets(
    matrix: np.ndarray, gain: np.ndarray, sizes: Sequence[int], *, positive: bool = False
) -> np.ndarray:
    """The same by forward steps alone: the variables that each help most, one after the other.

    Examples
    --------
    >>> M = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> forward_subsets(M, np.array([1.0, 0.9, 0.5]), [1, 2]).round(3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.5]]
    """
    matrix, gain = np.ascontiguousarray(matrix, np.float64), np.asarray(gain, np.float64)
    found, support = np.zeros((len(sizes), len(gain))), Support(matrix, gain, positive)
    for row, size in enumerate(sizes):
        support = support.grown(size)
        found[row, support.chosen] = support.weights
    return found


def _path(support: Support, sizes: list[int]) -> list[Support]:
    """The best found of each size: upwards from none, and down again by elimination, which finds others."""
    best = []
    for size in sizes:
        support = settled(support.grown(size))
        best.append(support)
    support = support.grown(sizes[-1] + BEYOND)
    for row in reversed(range(len(sizes))):
        while len(support.chosen) > sizes[row]:
            support = support.without_the_least()
        if set(support.chosen) == set(best[row].chosen):
            continue  # settled already
        found = settled(support)
        if found.is_better(best[row]):
            best[row] = found
    for row, size in enumerate(sizes):
        if size and 0 < math.comb(len(support.gain), size) <= FEW:
            best[row] = best[row].best_of_all(size)
        if row and best[row - 1].is_better(best[row]):
            best[row] = best[row - 1]
    return best


def settled(support: Support) -> Support:
    """The support after all exchanges that make the objective smaller."""
    while True:
        better = support.exchanged() or support.exchanged_in_pairs()
        if better is None or not better.is_better(support):
            return support
        support = better


class Support:
    """Chosen variables, their best weights, and what every variable would change."""

    def __init__(self, matrix: np.ndarray, gain: np.ndarray, positive: bool, chosen: Sequence[int] = ()):
        self.matrix, self.gain, self.positive = matrix, gain, positive
        self.least = COLLINEAR * np.diagonal(matrix)
        self._take(list(chosen))
        self._kept_positive()

    def _kept_positive(self) -> Support:
        """The same, without those whose weight would be below 0 where none may be."""
        while self.positive and self.weights.size and self.weights.min() <= 0:
            self._take(self._not_negative())
        return self

    def _take(self, chosen: list[int]) -> None:
        """Make these the support, from scratch."""
        self.chosen = chosen
        beside = self.matrix[chosen]  # (k, p): rows of a symmetric matrix lie together in memory
        self.inverse = np.linalg.inv(beside[:, chosen])
        self.projected = self.inverse @ beside
        self.left = np.diagonal(self.matrix) - np.einsum("kp,kp->p", self.projected, beside)
        self._solve()

    def _solve(self) -> None:
        self.weights = self.inverse @ self.gain[self.chosen]
        self.residual = self.gain - self.weights @ self.matrix[self.chosen]
        self.objective = -float(self.weights @ self.gain[self.chosen])

    def _not_negative(self) -> list[int]:
        """Those of the chosen that stay where no weight may be below 0."""
        among = self.matrix[np.ix_(self.chosen, self.chosen)]
        root = np.linalg.cholesky(among)
        weights, _ = nnls(root.T, np.linalg.solve(root, self.gain[self.chosen]))
        return [j for j, weight in zip(self.chosen, weights, strict=True) if weight > 0]

    def is_better(self, other: Support) -> bool:
        """Whether the objective is smaller, by more than rounding."""
        return self.objective < other.objective - PROGRESS * abs(other.objective)

    # Steps ---------------------------------------------------------------------------------------------

    def grown(self, size: int) -> Support:
        """With the variables, up to so many, that each make the objective smallest."""
        support = self
        while len(support.chosen) < size:
            gains = support.gains(support.residual, support.left)
            gains[support.chosen] = 0
            j = int(gains.argmax())
            if not gains[j] > PROGRESS * abs(support.objective):
                break
            larger = support.replaced([], [j]) if self.positive else support._with(j)
            if not larger.is_better(support):
                break
            support = larger
        return support

    def _with(self, j: int) -> Support:
        """One variable more, in O(k p)."""
        across, left = self.projected[:, j], self.left[j]
        row = (self.matrix[j] - across @ self.matrix[self.chosen]) / left
        beside = -across / left
        more = copy.copy(self)
        more.chosen = [*self.chosen, j]
        more.left = self.left - left * row * row
        more.projected = np.vstack([self.projected - np.outer(across, row), row])
        more.inverse = np.block(
            [[self.inverse - np.outer(across, beside), beside[:, None]], [beside, np.array([[1 / left]])]]
        )
        more._solve()
        return more

    def without_the_least(self) -> Support:
        """Without the variable that costs least."""
        least = int((self.weights**2 / np.diagonal(self.inverse)).argmin())
        kept = [place for place in range(len(self.chosen)) if place != least]
        column, own, row = self.inverse[kept, least], self.inverse[least, least], self.projected[least]
        fewer = copy.copy(self)
        fewer.chosen = [self.chosen[place] for place in kept]
        fewer.inverse = self.inverse[np.ix_(kept, kept)] - np.outer(column, column) / own
        fewer.projected = self.projected[kept] - np.outer(column / own, row)
        fewer.left = self.left + row * row / own
        fewer._solve()
        return fewer._kept_positive()

    def gains(self, residual: np.ndarray, left: np.ndarray) -> np.ndarray:
        """What every variable makes the objective smaller by, beside a support that leaves so much of it."""
        useful = left > self.least
        if self.positive:
            useful &= residual > 0
        return np.divide(residual * residual, left, out=np.zeros_like(left), where=useful)

    def exchanged(self) -> Support | None:
        """After the best exchange of one variable for another; None where none is better."""
        if not self.chosen:
            return None
        gains = self._gains_of_exchange()
        place, j = np.unravel_index(gains.argmax(), gains.shape)
        if not gains[place, j] > PROGRESS * abs(self.objective):
            return None
        found = self.replaced([int(place)], [int(j)])
        return found if found.is_better(self) else None  # a weight may have had to be above 0

    def _gains_of_exchange(self) -> np.ndarray:
        """What the objective falls by where each of the chosen is replaced by each other variable: (k, p)."""
        own = np.diagonal(self.inverse)[:, None]  # (k, 1)
        # Without one of them: what is left of every variable, and its residual.
        residual = self.residual + self.projected * (self.weights[:, None] / own)
        left = self.left + self.projected**2 / own
        gains = self.gains(residual, left) - self.weights[:, None] ** 2 / own
        gains[:, self.chosen] = -np.inf
        return gains

    def exchanged_in_pairs(self) -> Support | None:
        """After the best exchange of two variables for two others, of those that cost least and promise most.

        Where at most 6 are chosen of at most 32, these are all.
        """
        cost = self.weights**2 / np.diagonal(self.inverse)
        gains = self.gains(self.residual, self.left)
        gains[self.chosen] = -1
        others = np.argsort(-gains, kind="stable")[: min(CANDIDATES, len(gains) - len(self.chosen))]
        if len(others) < 2:
            return None
        beside = self.projected[:, others]  # (k, m)
        left = self.matrix[np.ix_(others, others)] - beside.T @ self.matrix[self.chosen][:, others]
        best, found = PROGRESS * abs(self.objective), None
        for pair in itertools.combinations(np.argsort(cost, kind="stable")[:LEAVING].tolist(), 2):
            out = list(pair)
            own = np.linalg.inv(self.inverse[np.ix_(out, out)])
            without = own @ beside[out]
            gain = self._gains_of_pairs(
                self.residual[others] + self.weights[out] @ without,
                left + beside[out].T @ without,
                self.least[others],
            )
            gain -= self.weights[out] @ own @ self.weights[out]
            i, j = np.unravel_index(gain.argmax(), gain.shape)
            if gain[i, j] > best:
                best, found = gain[i, j], (pair, (int(others[i]), int(others[j])))
        return None if found is None else self.replaced(*found)

    def _gains_of_pairs(self, residual: np.ndarray, left: np.ndarray, least: np.ndarray) -> np.ndarray:
        """What every two of m variables make the objective smaller by together: (m, m)."""
        own = np.diagonal(left)
        determinant = own[:, None] * own - left**2
        squares = residual[:, None] ** 2 * own
        gain = squares + squares.T - 2 * np.outer(residual, residual) * left
        useful = determinant > COLLINEAR * np.outer(own, own)
        useful &= (own > least) & (own > least)[:, None]
        if self.positive:  # both weights; one of the residuals may be negative
            weights = residual[:, None] * own - left * residual
            useful &= (weights > 0) & (weights.T > 0)
        return np.divide(gain, determinant, out=np.zeros_like(gain), where=useful)

    def replaced(self, places: Sequence[int], others: Sequence[int]) -> Support:
        """With other variables than those in some places of the support, from scratch."""
        kept = [j for place, j in enumerate(self.chosen) if place not in places]
        return Support(self.matrix, self.gain, self.positive, [*kept, *others])

    def best_of_all(self, size: int) -> Support:
        """The best of all supports of a size, where it is better: few enough to try each."""
        every = np.array(list(itertools.combinations(range(len(self.gain)), size)))  # (n, size)
        among = self.matrix[every[:, :, None], every[:, None, :]]
        own = np.linalg.eigvalsh(among)[:, 0] > COLLINEAR * among.max(axis=(1, 2))
        if not own.any():
            return self
        every, gain = every[own], self.gain[every[own]]
        weights = np.linalg.solve(among[own], gain[:, :, None])[:, :, 0]
        objective = -(weights * gain).sum(axis=1)
        if self.positive:
            objective[weights.min(axis=1) < 0] = 0
        found = self.replaced(range(len(self.chosen)), every[objective.argmin()].tolist())
        return found if found.is_better(self) else self
