"""How are steps taken over the rows?  Many in a task, or each as a pass over its block's rows.

Rows are prepared once, about the centre and in units, and stay in memory where they fit. No array has d x d.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.auc.descent.problem import Given, Parts, Problem, problem_of, sides, sums_leaf, tiles
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.chained import State
from scaleshift.kernels.reference import to_numpy

ROW_BYTES = 40  # of a prepared row, beside its features


class OnRows:
    """Each step is a pass over the rows of its block, wherever they are: sums meet on the driver."""

    SORTED = True  # rows by block of SHT

    def __init__(self, rows: Rows, given: Given, parts: Parts, n_parts: int, *, scale: bool, alpha: float):
        d = rows.n_markers
        found = passes.total(sums_leaf, rows, {"sums": (2, d), "squares": (d,)}, given=given)
        self.problem = problem_of(given, found["sums"], found["squares"], scale=scale, alpha=alpha)
        itemsize = 4 if rows.x.dtype == np.float32 else 8
        parameters = {"problem": self.problem, "parts": parts, "by_part": self.SORTED}
        self.kept = passes.keep(rows, prepared_leaf, d * itemsize + ROW_BYTES, **parameters)

    def walk(self, v: np.ndarray, numbers: np.ndarray, step: float, k: int) -> np.ndarray:
        """Iterates after each of some steps on blocks of these numbers, (n_steps, d)."""
        trace = np.empty((len(numbers), len(v)))
        for t, number in enumerate(numbers):
            pull, mass = self._pull(v, int(number))
            v = self.problem.moved(v, pull, mass, step, k)
            trace[t] = v
        return trace

    def _pull(self, v: np.ndarray, number: int | None) -> tuple[np.ndarray, float]:
        layout = {"pull": (len(v),), "mass": ()}
        found = passes.total(pull_leaf, self.kept, layout, problem=self.problem, v=v, number=number)
        return found["pull"], float(found["mass"])

    def within(self, iterates: np.ndarray) -> np.ndarray:
        """The quadratic forms v'Wv of some iterates, (n,): one pass."""
        support = np.flatnonzero(iterates.any(axis=0))
        given: dict[str, Any] = {"problem": self.problem, "support": support, "v": iterates[:, support]}
        found = passes.total(within_leaf, self.kept, {"within": (2, len(iterates))}, **given)
        return (found["within"] / self.problem.given.mass[:, None]).sum(axis=0)

    def spread(self, u: np.ndarray) -> np.ndarray:
        """W u: one pass."""
        pull, mass = self._pull(u, None)
        return pull / mass


class OnChain(OnRows):
    """Blocks that lie in row order: the iterate goes from block to block, many steps a task."""

    SORTED = False

    def __init__(
        self,
        rows: Rows,
        given: Given,
        parts: Parts,
        n_parts: int,
        block_size: int,
        *,
        scale: bool,
        alpha: float,
    ):
        super().__init__(rows, given, parts, n_parts, scale=scale, alpha=alpha)
        self.block_size = block_size

    def walk(self, v: np.ndarray, numbers: np.ndarray, step: float, k: int) -> np.ndarray:
        """Iterates after each of some steps on blocks of these numbers, (n_steps, d)."""
        state = {"v": v, "trace": np.empty((len(numbers), len(v))), "t": np.zeros((), int)}
        given = {"problem": self.problem, "step": step, "k": k}
        found = passes.chain(step_leaf, state, self.kept, numbers, block_size=self.block_size, **given)
        return found["trace"]


def prepared_leaf(block: Block, problem: Problem, parts: Parts, by_part: bool) -> Block:
    """Rows about the centre, in units; those that count alone, by part, or all as they lie."""
    given = problem.given
    side, weight = sides(block, given.sign)
    part = parts(block.start, block.columns["label"])
    x = block.x
    chosen = np.arange(len(side))
    if by_part:
        chosen = chosen[weight > 0]
        chosen = chosen[np.argsort(part[chosen], kind="stable")]
    ready = np.empty((len(chosen), x.shape[1]), np.float32 if x.dtype == np.float32 else np.float64)
    for tile in tiles(len(chosen), x.shape[1]):
        ready[tile] = (to_numpy(x[chosen[tile]]) - given.centre) * problem.unit
    columns = {"side": side[chosen], "weight": weight[chosen], "part": part[chosen]}
    return block._replace(x=ready, columns=columns, valid=block.valid[chosen])


def pull_leaf(block: Block, problem: Problem, v: np.ndarray, number: int | None) -> dict[str, np.ndarray]:
    """Sum of c z (x - mean), z = v'(x - mean), over rows of one block of SHT, or of all."""
    if number is not None:
        first, last = np.searchsorted(block.columns["part"], [number, number + 1])
        block = block.rows(slice(int(first), int(last)))
    return pulled(block, problem, v)


def pulled(block: Block, problem: Problem, v: np.ndarray) -> dict[str, np.ndarray]:
    """The same of all rows of a prepared block."""
    support = np.flatnonzero(v)
    at_mean = problem.offsets @ v
    pull, by_class = np.zeros(len(v)), np.zeros(2)
    for tile in tiles(len(block.x), len(v)):
        x = block.x[tile].astype(np.float64, copy=False)
        side, weight = block.columns["side"][tile], block.columns["weight"][tile]
        narrow = 2 * len(support) < len(v)
        z = (x[:, support] @ v[support] if narrow else x @ v) - at_mean[side]
        z *= weight * problem.given.factors[side]
        pull += z @ x
        by_class += np.bincount(np.maximum(side, 0), z, minlength=2)  # those of neither class weigh nothing
    return {"pull": pull - by_class @ problem.offsets, "mass": block.columns["weight"].sum()}


def step_leaf(block: Block, state: State, problem: Problem, step: float, k: int) -> State:
    """The step on one block of SHT."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = pulled(block, problem, state["v"])
        v = problem.moved(state["v"], found["pull"], float(found["mass"]), step, k)
    state["trace"][int(state["t"])] = v
    return {**state, "v": v, "t": state["t"] + 1}


def within_leaf(block: Block, problem: Problem, support: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """Squares of scores about those of the class means, by class, of iterates with this support."""
    within = np.zeros((2, len(v)))
    at_mean = problem.offsets[:, support] @ v.T  # (2, n)
    for tile in tiles(len(block.x), max(block.x.shape[1], len(v))):
        side, weight = block.columns["side"][tile], block.columns["weight"][tile]
        x = block.x[tile][:, support].astype(np.float64, copy=False)
        squares = (x @ v.T - at_mean[side]) ** 2
        for number in range(2):
            within[number] += np.where(side == number, weight, 0.0) @ squares
    return {"within": within}
