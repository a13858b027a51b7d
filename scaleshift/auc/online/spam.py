"""SPAM: a proximal step a row, for penalties l1, l2 and both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scaleshift.auc.online.base import FROM_ZERO, POSITIVE, Meaning, OnlineRanking, State, Task, signed
from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.kernels.cpu import sequential

PENALTIES = ("l1", "l2", "elasticnet")


class SPAM(OnlineRanking):
    """Stochastic proximal AUC maximisation: steps of size xi / sqrt(t) on F plus a penalty.

    A comparator of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (section on experiments);
    the objective F, eq. (3), plus ``l1 |w|_1 + l2 |w|^2 / 2``. Class means and the share of the positives
    are those of all rows: one pass before the steps.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"}, default "l1"
        "l1" has no l2 part, "l2" no l1 part, whatever the other number is.
    l1 : float, default 1e-3
        Weight of the l1 norm: soft threshold at l1 times the step.
    l2 : float, default 1e-2
        Weight of half the squared norm: division by 1 + l2 times the step.
    xi : float, default 1
        Size of the first step; suits rows of unit length.
    n_passes : int, default 3
        How often the rows are gone through.
    order : None, "random" or array of int, shape (n_visits,), default None
        Rows of one pass: as they lie; shuffled anew for every pass, by `random_state`; or these, by number.
        Where chunks are lazy, orders but None read them again for every 64 MB of rows that are visited.
    pos_label : label, optional
        The positive one; the one that sorts last where there are two.
    random_state : None, int or numpy.random.Generator
        Used by ``order="random"`` alone.

    Attributes
    ----------
    coef_ : numpy.ndarray, shape (n_features,)
        The last iterate.
    intercept_ : float
        0: rankings have none.
    classes_ : numpy.ndarray
        Labels, the positive one last where there are two.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 3)) + y[:, None] * [1.0, 0.0, 0.0]
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> int(np.argmax(SPAM("elasticnet").fit(X, y).coef_))
    0
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {
        "penalty": (lambda value: value in PENALTIES, PENALTIES),
        "l1": FROM_ZERO,
        "l2": FROM_ZERO,
        "xi": POSITIVE,
    }

    def __init__(
        self,
        penalty: str = "l1",
        l1: float = 1e-3,
        l2: float = 1e-2,
        xi: float = 1.0,
        *,
        n_passes: int = 3,
        order: Any = None,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.penalty = penalty
        self.l1 = l1
        self.l2 = l2
        self.xi = xi
        self.n_passes = n_passes
        self.order = order
        self.pos_label = pos_label
        self.random_state = random_state

    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        found = passes.total(sums_leaf, task.kept, {"sums": (2, task.d)}, sign=task.sign)
        n_pos, n_neg = task.counts
        parameters = {
            "means": found["sums"] / [[n_pos], [n_neg]],
            "share": n_pos / (n_pos + n_neg),
            "xi": float(self.xi),
            "l1": 0.0 if self.penalty == "l2" else float(self.l1),
            "l2": 0.0 if self.penalty == "l1" else float(self.l2),
        }
        state: State = {"w": np.zeros(task.d), "t": np.zeros(())}
        for number in range(self.n_passes):
            state = self._pass(spam_leaf, state, task, number, **parameters)
        return state["w"], 0.0


def sums_leaf(block: Block, sign: np.ndarray) -> dict[str, np.ndarray]:
    """Sums of the positive and the negative rows of one block."""
    x, of = signed(block, sign)
    return {
        "sums": np.stack([x[of > 0].sum(axis=0, dtype=np.float64), x[of < 0].sum(axis=0, dtype=np.float64)])
    }


def spam_leaf(block: Block, state: State, sign: np.ndarray, **parameters: Any) -> State:
    """Steps of the rows of one block."""
    t = sequential.spam(*signed(block, sign), state["w"], float(state["t"]), *parameters.values())
    return {**state, "t": np.array(t)}
