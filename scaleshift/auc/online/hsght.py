"""HSG-HT: logistic steps on batches that grow, then the k largest coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scaleshift.auc.online.base import ENTRIES, POSITIVE, Meaning, OnlineRanking, State, Task, signed
from scaleshift.blocks.block import Block
from scaleshift.kernels.cpu import sequential

FROM_ONE: Meaning = (lambda value: 1 <= value < np.inf, "a number from 1")


class HSGHT(OnlineRanking):
    """Hybrid stochastic gradient hard thresholding: the logistic loss, batches that grow within a pass.

    A comparator of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (section on experiments).

    Parameters
    ----------
    k : int, default 10
        Entries of w that stay, the largest in magnitude, of equal ones the first.
    step_size : float, default 1
        Of every step; suits rows of unit length.
    tau : float, default 10
        Rows of the first batch of every pass, from 1.
    zeta : float, default 1.033
        Factor from 1 by which batches grow; batch t = 0, 1, ... has floor(tau zeta^t) labelled rows, the
        last one what is left. A pass ends where one row at most is left.
    n_passes : int, default 5
        How often the rows are gone through.
    order : None, "random" or array of int, shape (n_visits,), default None
        Rows of one pass: as they lie; shuffled anew for every pass, by `random_state`; or these, by number.
        Rows sorted by class need "random". Where chunks are lazy, orders but None read them again for every
        64 MB of rows that are visited.
    pos_label : label, optional
        The positive one; the one that sorts last where there are two.
    random_state : None, int or numpy.random.Generator
        Used by ``order="random"`` alone.

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_features,)
        k entries at most are not 0.
    intercept_ : float
        Not thresholded.
    classes_ : numpy.ndarray
        Labels, the positive one last where there are two.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 3)) + y[:, None] * [1.0, 0.0, 0.0]
    >>> np.flatnonzero(HSGHT(k=1).fit(X, y).coef_).tolist()
    [0]
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {
        "k": ENTRIES,
        "step_size": POSITIVE,
        "tau": FROM_ONE,
        "zeta": FROM_ONE,
    }

    def __init__(
        self,
        k: int = 10,
        step_size: float = 1.0,
        tau: float = 10.0,
        zeta: float = 1.033,
        *,
        n_passes: int = 5,
        order: Any = None,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.k = k
        self.step_size = step_size
        self.tau = tau
        self.zeta = zeta
        self.n_passes = n_passes
        self.order = order
        self.pos_label = pos_label
        self.random_state = random_state

    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        parameters = {
            "n_rows": task.visits,
            "k": int(self.k),
            "step": float(self.step_size),
            "tau": float(self.tau),
            "zeta": float(self.zeta),
        }
        w, intercept = np.zeros(task.d), 0.0
        for number in range(self.n_passes):
            state = {"w": w, "gradient": np.zeros(task.d), "scalars": np.array([intercept, 0, 0, 0, 0, 0.0])}
            state = self._pass(hsght_leaf, state, task, number, **parameters)
            w, intercept = state["w"], float(state["scalars"][0])
        return w, intercept


def hsght_leaf(block: Block, state: State, sign: np.ndarray, **parameters: Any) -> State:
    """Rows of one block, which may end batches and begin others."""
    scalars = tuple(state["scalars"].tolist())
    found = sequential.growing_batches(
        *signed(block, sign), state["w"], state["gradient"], scalars, *parameters.values()
    )
    return {**state, "scalars": np.array(found)}
