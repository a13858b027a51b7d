"""SOLAM: a saddle point problem, one step a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scaleshift.auc.online.base import POSITIVE, Meaning, OnlineRanking, State, Task, signed
from scaleshift.blocks.block import Block
from scaleshift.kernels.cpu import sequential


class SOLAM(OnlineRanking):
    """Stochastic online AUC maximisation: saddle point steps of size xi / sqrt(t), averaged.

    A comparator of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (section on experiments);
    the same objective F, eq. (3), as the value of a saddle point problem in w, a, b and alpha. Not sparse.

    Parameters
    ----------
    radius : float, default 100
        Of the ball that w stays in, in reciprocal units of X; steps start at its edge.
    xi : float, default 10
        Size of the first step; suits rows of unit length.
    n_passes : int, default 3
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
        The average of w, each iterate before its step weighted by the step's size.
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
    >>> int(np.argmax(SOLAM(radius=10, xi=1).fit(X, y).coef_))
    0
    """

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {"radius": POSITIVE, "xi": POSITIVE}

    def __init__(
        self,
        radius: float = 100.0,
        xi: float = 10.0,
        *,
        n_passes: int = 3,
        order: Any = None,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.radius = radius
        self.xi = xi
        self.n_passes = n_passes
        self.order = order
        self.pos_label = pos_label
        self.random_state = random_state

    def _learn(self, task: Task) -> tuple[np.ndarray, float]:
        radius, d = float(self.radius), task.d
        state = {
            "w": np.full(d, radius / np.sqrt(d)),
            "average": np.zeros(d),
            "scalars": np.array([radius, radius, 2 * radius, 0, 0, 0]),
        }
        for number in range(self.n_passes):
            state = self._pass(solam_leaf, state, task, number, xi=float(self.xi), radius=radius)
        return state["average"], 0.0


def solam_leaf(block: Block, state: State, sign: np.ndarray, xi: float, radius: float) -> State:
    """Steps of the rows of one block."""
    scalars = tuple(state["scalars"].tolist())
    found = sequential.solam(*signed(block, sign), state["w"], state["average"], scalars, xi, radius)
    return {**state, "scalars": np.array(found)}
