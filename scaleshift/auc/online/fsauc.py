"""FSAUC: stages of saddle point steps near their start, in an l1 ball."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scaleshift.auc.online.base import POSITIVE, Meaning, OnlineRanking, State, Task, signed
from scaleshift.blocks.block import Block
from scaleshift.kernels.cpu import sequential


class FSAUC(OnlineRanking):
    """Fast stochastic AUC maximisation: stages of equal length, each nearer to where it starts.

    A comparator of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (section on experiments);
    the objective F, eq. (3), as a saddle point problem, with w in an l1 ball.

    Parameters
    ----------
    radius : float, default 10
        Of the l1 ball that w stays in, in reciprocal units of X.
    eta : float, default 1
        Step of the first stage; suits rows of unit length.
    delta : float, default 0.1
        Probability with which the bounds behind the stages' radii and steps may fail, in (0, 1).
    n_passes : int, default 10
        How often the rows are gone through; all visits are divided into floor(log2(2 N / log2 N) / 2) - 1
        stages, one at least.
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
        The average of the last stage.
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
    >>> int(np.argmax(FSAUC().fit(X, y).coef_))
    0
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {
        "radius": POSITIVE,
        "eta": POSITIVE,
        "delta": (lambda value: 0 < value < 1, "a probability between 0 and 1"),
    }

    def __init__(
        self,
        radius: float = 10.0,
        eta: float = 1.0,
        delta: float = 0.1,
        *,
        n_passes: int = 10,
        order: Any = None,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.radius = radius
        self.eta = eta
        self.delta = delta
        self.n_passes = n_passes
        self.order = order
        self.pos_label = pos_label
        self.random_state = random_state

    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        visits, d = self.n_passes * task.visits, task.d
        n_stages = max(int(np.log2(2 * visits / np.log2(visits)) / 2) - 1, 1)
        away = 2 * np.sqrt(3) * self.radius
        scalars = [0.0] * 11 + [self.eta, away, 2 * np.sqrt(2) * away, 0.0, 9.0]
        state = {
            "w": np.zeros(d),
            "start": np.zeros(d),
            "average": np.zeros(d),
            "sums": np.zeros((2, d)),
            "scalars": np.array(scalars),
        }
        parameters = {
            "stages": (n_stages, visits // n_stages),
            "limit": float(self.radius),
            "delta": float(self.delta),
        }
        for number in range(self.n_passes):
            state = self._pass(fsauc_leaf, state, task, number, **parameters)
        return state["w"], 0.0


def fsauc_leaf(
    block: Block, state: State, sign: np.ndarray, stages: tuple[int, int], limit: float, delta: float
) -> State:
    """Steps of the rows of one block."""
    arrays = (state[name] for name in ("w", "start", "average", "sums"))
    scalars = tuple(state["scalars"].tolist())
    found = sequential.fsauc(*signed(block, sign), *arrays, scalars, stages, limit, delta)
    return {**state, "scalars": np.array(found)}
