"""StoIHT: a step on a block's empirical risk, then the k largest coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scaleshift.auc.online.base import ENTRIES, POSITIVE, WHOLE, Meaning, OnlineRanking, State, Task, signed
from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block
from scaleshift.blocks.chained import edges
from scaleshift.kernels.cpu import sequential

LOSSES = ("logistic", "least_squares")


class StoIHT(OnlineRanking):
    """Stochastic iterative hard thresholding of a classification loss: k features, no thought of the AUC.

    A comparator of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (section on experiments):
    Algorithm 1 there with the mean loss of a block in place of f_B, eq. (5).

    Parameters
    ----------
    loss : {"logistic", "least_squares"}, default "logistic"
        The logistic loss has an intercept, which is not thresholded; least squares of +1 and -1 has none.
    k : int, default 10
        Entries of w that stay, the largest in magnitude, of equal ones the first.
    step_size : float, default 1
        Of every step; suits rows of unit length.
    block_size : int, default 100
        Rows of a block; blocks lie in row order, and the remainder joins the last. A step is a mean over the
        labelled rows of its block, in the memory of one task.
    n_passes : int, default 10
        Without `order`: as many steps as there are blocks, so often, each on a block drawn at random.
    order : array of int, shape (n_steps,), optional
        Block numbers of all steps, in place of `n_passes`.
    pos_label : label, optional
        The positive one; the one that sorts last where there are two.
    random_state : None, int or numpy.random.Generator
        Draws the blocks where there is no `order`.

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_features,)
        k entries at most are not 0.
    intercept_ : float
    classes_ : numpy.ndarray
        Labels, the positive one last where there are two.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 3)) + y[:, None] * [1.0, 0.0, 0.0]
    >>> model = StoIHT(k=1, block_size=50, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.coef_).tolist()
    [0]
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {
        "loss": (lambda value: value in LOSSES, "one of " + ", ".join(map(repr, LOSSES))),
        "k": ENTRIES,
        "step_size": POSITIVE,
        "block_size": WHOLE,
        "order": (lambda value: not isinstance(value, str), "block numbers, or None"),
    }
    _goes_by_rows = False

    def __init__(
        self,
        loss: str = "logistic",
        k: int = 10,
        step_size: float = 1.0,
        block_size: int = 100,
        *,
        n_passes: int = 10,
        order: Any = None,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.loss = loss
        self.k = k
        self.step_size = step_size
        self.block_size = block_size
        self.n_passes = n_passes
        self.order = order
        self.pos_label = pos_label
        self.random_state = random_state

    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        parameters = {
            "k": int(self.k),
            "step": float(self.step_size),
            "logistic": self.loss == "logistic",
        }
        n_blocks = len(edges(task.rows.x.shape[0], self.block_size)) - 1
        order = self.order
        if order is None:
            draw = noise.generator(task.seed, "stoiht")
            order = draw.integers(n_blocks, size=self.n_passes * n_blocks)
        order = np.atleast_1d(np.asarray(order))
        state: State = {"w": np.zeros(task.d), "intercept": np.zeros(1)}
        for first in range(0, len(order), n_blocks):  # a graph holds the tasks of one pass
            steps = order[first : first + n_blocks]
            state = passes.chain(
                stoiht_leaf, state, task.kept, steps, block_size=self.block_size, sign=task.sign, **parameters
            )
        return state["w"], float(state["intercept"][0])


def stoiht_leaf(block: Block, state: State, sign: np.ndarray, k: int, step: float, logistic: bool) -> State:
    """The step of one block."""
    sequential.thresholded_step(*signed(block, sign), state["w"], state["intercept"], k, step, logistic)
    return state
