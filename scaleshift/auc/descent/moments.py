"""How are steps taken without the rows?  On one matrix and two sums of every block, found in one pass."""

from __future__ import annotations

import numpy as np

from scaleshift.auc.descent.problem import Given, Parts, problem_of, sides, tiles
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.kernels import dispatch
from scaleshift.kernels.reference import to_numpy


class OnMoments:
    """Steps on the driver, any number of them."""

    def __init__(self, rows: Rows, given: Given, parts: Parts, n_parts: int, *, scale: bool, alpha: float):
        d = rows.n_markers
        layout = {"scatter": (n_parts, d, d), "sums": (n_parts, 2, d), "mass": (n_parts, 2)}
        found = passes.total(moments_leaf, rows, layout, given=given, parts=parts, n_parts=n_parts)
        sums, scatter = found["sums"].sum(axis=0), found["scatter"]
        squares = np.einsum("bjj->j", scatter)
        self.problem = problem_of(given, sums, squares, scale=scale, alpha=alpha)
        unit, factors = self.problem.unit, given.factors
        scatter *= unit
        scatter *= unit[:, None]
        self.scatter = scatter  # (n_parts, d, d) weighted by 1/r and 1/(1 - r)
        self.sums = found["sums"] * unit * factors[:, None]  # (n_parts, 2, d), so weighted too
        self.mass = found["mass"]  # (n_parts, 2)
        self.whole = scatter.sum(axis=0) / given.mass.sum()  # W and the squares of the offsets

    def walk(self, v: np.ndarray, numbers: np.ndarray, step: float, k: int) -> np.ndarray:
        """Iterates after each of some steps on blocks of these numbers, (n_steps, d)."""
        trace = np.empty((len(numbers), len(v)))
        for t, number in enumerate(numbers):
            mass = float(self.mass[number].sum())
            v = self.problem.moved(v, self._pull(v, number), mass, step, k)
            trace[t] = v
        return trace

    def _pull(self, v: np.ndarray, number: int) -> np.ndarray:
        support = np.flatnonzero(v)
        pull = v[support] @ self.scatter[number][support]
        of_mass = self.mass[number] * self.problem.given.factors
        for mean, sums, mass in zip(self.problem.offsets, self.sums[number], of_mass, strict=True):
            at_mean = mean @ v
            pull += mean * (mass * at_mean - sums @ v) - sums * at_mean
        return pull

    def within(self, iterates: np.ndarray) -> np.ndarray:
        """The quadratic forms v'Wv of some iterates, (n,)."""
        support = np.flatnonzero(iterates.any(axis=0))
        v = iterates[:, support]
        about = ((v @ self.problem.offsets[:, support].T) ** 2).sum(axis=1)
        return ((v @ self.whole[np.ix_(support, support)]) * v).sum(axis=1) - about

    def spread(self, u: np.ndarray) -> np.ndarray:
        """W u."""
        offsets = self.problem.offsets
        return self.whole @ u - offsets.T @ (offsets @ u)


def moments_leaf(block: Block, given: Given, parts: Parts, n_parts: int) -> dict[str, np.ndarray]:
    """Of every block of SHT, what rows of one block of the data add."""
    side, weight = sides(block, given.sign)
    part = np.where(weight > 0, parts(block.start, block.columns["label"]), -1)
    x = block.x
    found = dispatch.scatter_sums(x, part, n_parts, given.centre, weight * given.factors[side])
    sums, mass = np.zeros((n_parts * 2, x.shape[1])), np.zeros(n_parts * 2)
    kind = np.where(part < 0, -1, 2 * part + side)
    for tile in tiles(len(side), x.shape[1]):
        member = np.zeros((n_parts * 2, len(kind[tile])))
        inside = np.flatnonzero(kind[tile] >= 0)
        member[kind[tile][inside], inside] = weight[tile][inside]
        sums += member @ (to_numpy(x[tile]) - given.centre)
        mass += member.sum(axis=1)
    d = x.shape[1]
    return {
        "scatter": found["scatter"],
        "sums": sums.reshape(n_parts, 2, d),
        "mass": mass.reshape(n_parts, 2),
    }
