"""Which k features rank best?  SHT-AUC: a step on a block of rows, then the k largest coefficients.

Algorithm 1 of "Stochastic Hard Thresholding Algorithms for AUC Maximization" (SHT-AUC), on the objective of
eq. (3) as the single sum of eq. (5). Class means are those of all rows, never a block's own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift import checkpoint as checkpoints
from scaleshift.auc.descent.epochs import Run, State, Way, begin
from scaleshift.auc.descent.moments import OnMoments
from scaleshift.auc.descent.problem import Parts, Problem, given_of
from scaleshift.auc.descent.stepping import OnChain, OnRows
from scaleshift.blocks import noise
from scaleshift.blocks.block import Rows
from scaleshift.blocks.chained import checked, edges
from scaleshift.blocks.folds import divide
from scaleshift.errors import DataError
from scaleshift.parameters import check, check_switch, is_whole

MOMENT_BLOCKS, MOMENT_COLUMNS, MOMENT_BYTES = 32, 2_000, 512_000_000  # up to which steps need no rows
CHAIN_BYTES = 64_000_000  # of a block, up to which many steps are one task
EPOCHS = 100
N_BLOCKS, RARE_ROWS = 8, 5  # by default: so many blocks, each with so many rows of the rarer class


@dataclass(frozen=True)
class Descent:
    """What SHT-AUC found, and the way there.

    Attributes
    ----------
    coef : numpy.ndarray, shape (n_features,)
        The last iterate, in reciprocal units of X.
    history : numpy.ndarray, shape (n_kept, n_features)
        Iterates, from the start on, in the same units: all n_iter + 1 of them where they fit in 64 MB; else
        one every so many epochs that they do.
    history_steps : numpy.ndarray of int, shape (n_kept,)
        After how many steps each of them stood.
    objective : numpy.ndarray, shape (n_epochs + 1,)
        F over all pairs, without shrinkage, at the start and after every epoch of as many steps as there are
        blocks, and after the last step.
    n_iter : int
        Steps.
    step_size : float
        Of the last step, for the gradient of F by coefficients in units of the features' spread
        (``scale=True``), or of X.
    converged : bool
        Whether an epoch moved no coefficient by more than 1e-6 of the largest; not asked with an `order`.
    """

    coef: np.ndarray
    history: np.ndarray
    history_steps: np.ndarray
    objective: np.ndarray
    n_iter: int
    step_size: float
    converged: bool


@dataclass(frozen=True)
class Contiguous:
    """Blocks of SHT in row order; the remainder joins the last."""

    block_size: int
    n_parts: int

    def __call__(self, start: int, codes: np.ndarray) -> np.ndarray:
        """Block of each row from the absolute row `start` on."""
        return np.minimum((start + np.arange(len(codes))) // self.block_size, self.n_parts - 1)


def descend(
    rows: Rows,
    sign: np.ndarray,
    *,
    k: int,
    block_size: int | None = None,
    step_size: float | None = None,
    max_iter: int | None = None,
    order: Any = None,
    scale: bool = True,
    alpha: float = 0.0,
    start: Any = None,
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Descent:
    """Run SHT-AUC, Algorithm 1: w <- H_k(w - step * gradient of a block's objective), block after block.

    Parameters
    ----------
    rows : Rows
        With a column "label", and "weight", numbers from 0, if rows do not count alike.
    sign : numpy.ndarray of int8, shape (n_labels,)
        +1 for the positive label, -1 for the others.
    k : int
        Coefficients that stay, exactly; of equal ones the first. 0 gives zeros; n_features and more, all.
    block_size : int, optional
        Rows of a block, b: there are max(n // b, 1) blocks, and the remainder joins the last. By default 8
        blocks, or fewer, so that 5 rows of the rarer class are in each. Needed with `order`.
    step_size : float, optional
        For the gradient of F, kept as it is. By default 1 / (2 lambda_max(A)), halved when the mean F of an
        epoch's iterates rises; an epoch that makes it 10 times as large is gone through again.
    max_iter : int, optional
        Steps at most; by default all of `order`, else 100 epochs, fewer if an epoch moves nothing.
    order : array of int, shape (n_steps,), optional
        Block of each step. Blocks then lie in row order. Otherwise they are random parts of the rows with the
        same share of every label, for any chunking, and drawn with equal chance.
    scale : bool, default True
        Whether features are divided by sqrt(diag(S+ + S-)), so that units do not decide; else as they are.
    alpha : float, default 0
        Shrinkage: alpha diag(S+ + S-) is added to S+ + S-.
    start : array-like, shape (n_features,), optional
        First iterate, in reciprocal units of X; by default 0.
    seed : int or None, default 0
        Of blocks and draws; None takes that of the checkpoint, or a fresh one.
    checkpoint : path, optional
        Where the state is kept after every epoch; a killed run goes on from it, to the same bits.

    Returns
    -------
    Descent

    Raises
    ------
    DataError
        Parameters without a meaning, a class without rows, or iterates that are not finite.

    Notes
    -----
    Up to 32 blocks and 2000 features, steps need no rows after one pass. Otherwise each step is one pass over
    its block's rows, or, for small blocks in an `order`, one of many in a task.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.auc.classes import signs
    >>> from scaleshift.blocks.rows import as_rows
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 5)) + y[:, None] * [0.0, 1.0, 0.0, 1.0, 0.0]
    >>> rows = as_rows(X, y)
    >>> found = descend(rows, signs(rows.categories("label")), k=2)
    >>> np.flatnonzero(found.coef).tolist(), bool(found.objective[-1] < found.objective[0])
    ([1, 3], True)
    """
    _check(k, block_size, step_size, max_iter, scale, alpha, order)
    rows = rows.only("label", *({"weight"} & {*rows.columns, *rows.unread}))
    given = given_of(rows, sign)
    resumed = checkpoints.read(checkpoint)
    seed = resumed.seed if seed is None and resumed is not None else noise.seed_of(seed)
    if block_size is None:
        block_size = _block_size(rows, given.mass)
    n_parts = len(edges(rows.x.shape[0], block_size)) - 1
    numbers = _numbers(order, n_parts, max_iter, seed)
    parts: Parts = Contiguous(block_size, n_parts)
    if order is None:
        parts = divide(rows, "label", n_parts, seed, "sht blocks")
    way = _way(rows, given, parts, n_parts, None if order is None else block_size, scale, float(alpha))
    first = _first(start, way.problem)
    job = checkpoints.fingerprint(
        {
            "parameters": [
                str(value) for value in (k, block_size, step_size, bool(scale), float(alpha), seed)
            ],
            "steps": _digest(numbers),
            "start": None if start is None else _digest(np.asarray(start, np.float64)),
            "rows": [rows.x.shape, *way.problem.fingerprint],
        }
    )
    checkpoints.check(resumed, job, checkpoint)
    state = begin(way, first, step_size, seed) if resumed is None else State(**resumed.state)
    run = Run(way, numbers, n_parts, k, adapts=step_size is None, stops=order is None)
    while not state.done:
        state = run.epoch(state)
        described = {name: getattr(state, name) for name in state.__dataclass_fields__}
        checkpoints.write(checkpoint, checkpoints.Checkpoint(job, seed, described))
    unit = way.problem.unit
    return Descent(
        state.v * unit,
        state.history * unit,
        state.history_steps,
        state.objective,
        int(state.t),
        float(state.step),
        bool(state.converged),
    )


# What the steps are ------------------------------------------------------------------------------------


def _check(
    k: Any, block_size: Any, step_size: Any, max_iter: Any, scale: Any, alpha: Any, order: Any
) -> None:
    check("k", k, lambda value: is_whole(value) and value >= 0, "a whole number from 0")
    for name, value in {"block_size": block_size, "max_iter": max_iter}.items():
        check(name, value, lambda v: v is None or (is_whole(v) and v >= 1), "a whole number from 1, or None")
    check("step_size", step_size, lambda v: v is None or 0 < v < np.inf, "a number above 0, or None")
    check_switch("scale", scale)
    check("alpha", alpha, lambda value: 0 <= value < np.inf, "a number from 0")
    if order is not None and block_size is None:
        raise DataError("order names blocks of no known size: give block_size too")


def _block_size(rows: Rows, mass: np.ndarray) -> int:
    """Of 8 blocks, or of fewer where the rarer class has less than 40 rows."""
    n = rows.x.shape[0]
    share = float(mass.min() / mass.sum())
    return max(-(-n // int(np.clip(share * n / RARE_ROWS, 1, N_BLOCKS))), 1)


def _numbers(order: Any, n_parts: int, max_iter: int | None, seed: int) -> np.ndarray:
    """Block of each step."""
    if order is not None:
        return checked(order, n_parts, "block")[:max_iter]
    n_steps = EPOCHS * n_parts if max_iter is None else max_iter
    return noise.generator(seed, "sht").integers(n_parts, size=n_steps)


def _way(
    rows: Rows, given: Any, parts: Parts, n_parts: int, block_size: int | None, scale: bool, alpha: float
) -> Way:
    """The quickest way for this size: all give the same."""
    n, d = rows.x.shape[0], rows.n_markers
    few = rows.is_one_block and n < d  # a step on the rows is less work than one on moments is
    small = n_parts <= MOMENT_BLOCKS and d <= MOMENT_COLUMNS and n_parts * d * d * 8 <= MOMENT_BYTES
    if small and not few:
        return OnMoments(rows, given, parts, n_parts, scale=scale, alpha=alpha)
    if block_size is not None and 2 * block_size * d * 8 <= CHAIN_BYTES:
        return OnChain(rows, given, parts, n_parts, block_size, scale=scale, alpha=alpha)
    return OnRows(rows, given, parts, n_parts, scale=scale, alpha=alpha)


def _first(start: Any, problem: Problem) -> np.ndarray:
    """First iterate in units; constant features have none."""
    d = len(problem.unit)
    if start is None:
        return np.zeros(d)
    w = np.asarray(start, np.float64)
    if w.shape != (d,) or not np.isfinite(w).all():
        raise DataError(f"start: expected {d} finite numbers, one a feature")
    return np.divide(w, problem.unit, out=np.zeros(d), where=problem.unit > 0)


def _digest(array: np.ndarray) -> str:
    return checkpoints.fingerprint({"values": array.tolist()})
