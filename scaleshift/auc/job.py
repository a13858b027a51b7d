"""What does a fit have to do?  Parameters and rows, checked and brought together."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from scaleshift.auc.contrasts import Contrasts, contrasts
from scaleshift.auc.fitting import Task
from scaleshift.auc.labelled import learned_from
from scaleshift.auc.selection import Options, divided, re_paired
from scaleshift.auc.solvers import SPARSE
from scaleshift.auc.solving import Job, state_bytes
from scaleshift.auc.stability import halves
from scaleshift.blocks import passes
from scaleshift.blocks.block import Rows
from scaleshift.blocks.buckets import Buckets, group_buckets, random_buckets
from scaleshift.errors import DataError
from scaleshift.parameters import is_whole

OF_DESCENTS = (5, 10, 20, 30, 40, 50, 60, 80, 100)  # each is a run of its own
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 60, 80, 100)
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
FEW_BYTES = 160_000_000  # of sums, up to which there are two buckets a fold, for more halves and more folds
MOST_BYTES = 256_000_000  # up to which "auto" sums covariances of all features
FEW_ROWS, AGAIN = 100, 2  # rows of a side, below which folds are paired again, so often, to choose by


class Asked(Protocol):
    """Parameters of an estimator."""

    k: Any
    alpha: Any
    solver: str
    positive: bool
    cv: Any
    pos_label: Any
    scale: bool
    multi_class: str
    selection: str
    n_halves: int
    n_screened: int
    debias: bool
    warm_start: bool
    block_size: int | None
    step_size: float | None
    max_iter: int | None
    order: Any
    checkpoint: Any


def job_of(asked: Asked, rows: Rows, weighted: bool, seed: int) -> tuple[str, Job]:
    """Name of the solver, and what it has to do: a look at the labels alone."""
    if "label" not in rows.columns:
        raise DataError(
            "y is missing, and X brings no labels: SparseAUC requires y to be passed, but the target y is "
            "None; pass one label a row"
        )
    if asked.cv is None and asked.k is None:
        raise DataError("k=None is chosen by cross-validation, and cv=None: give k, or cv=5")
    if asked.solver == "sht":
        _check_descents(asked)
    names = [name for name in ("label", "weight", "group") if name in rows.columns]
    rows = learned_from(rows.only(*names), weighted=weighted)
    question = contrasts(rows.categories("label"), asked.pos_label, asked.multi_class)
    n_classes = len(rows.categories("label"))
    # With an order, blocks are those of the rows as they stand: parts of the rows would make others of them.
    ordered = asked.solver == "sht" and asked.order is not None
    n_folds, rarest = 0, 0
    if asked.cv is not None and not ordered:
        by_label = passes.counts(rows, "label")
        rarest = rarest_side(by_label, question)
        n_folds = _n_folds(rows.categories("label"), by_label, rarest, asked.cv)
    name, n_buckets = _solver(asked, rows, n_classes, n_folds)
    buckets: Buckets | None = None
    if n_folds:
        if "group" in rows.columns:
            buckets = group_buckets(rows, n_buckets, seed, question.sign)
        else:
            buckets = random_buckets(rows, n_buckets, seed)
        n_buckets, n_folds = buckets.n, min(n_folds, buckets.n)
    task = task_of(asked, name, rows.n_markers, n_folds, n_buckets, rarest, seed)
    fits = int(np.sqrt(MOST_BYTES / state_bytes(n_classes, n_buckets, 1)))
    n_screened = min(asked.n_screened, rows.n_markers, fits)
    steps = {part: getattr(asked, part) for part in ("block_size", "step_size", "max_iter", "order")}
    steps["start"] = _start(asked, question, rows.n_markers)
    return name, Job(rows, weighted, question, buckets, task, n_screened, seed, steps, asked.checkpoint)


def _check_descents(asked: Asked) -> None:
    """Refuse what the source's algorithm knows nothing of, where it would be taken no notice of."""
    odd = [name for name in ("positive", "debias") if getattr(asked, name)]
    if asked.alpha is not None and np.size(asked.alpha) > 1:
        odd.append("alpha of several values")
    if odd:
        raise DataError(f"solver='sht' knows no {odd[0]}: leave it out, or take solver='moments'")


def task_of(
    asked: Asked, solver: str, n_features: int, n_folds: int, n_buckets: int, rarest: int, seed: int
) -> Task:
    """What is asked of every contrast."""
    sizes, only = _sizes(asked.k, n_features, solver)
    alphas = (0.0,) if solver == "sht" and asked.alpha is None else _alphas(asked.alpha, n_folds)
    return Task(
        Options(sizes, alphas, bool(asked.scale), bool(asked.positive), bool(asked.debias)),
        asked.selection,
        only,
        divided(n_buckets, n_folds) if n_folds else [],
        re_paired(n_folds, AGAIN) if rarest < FEW_ROWS and n_buckets == 2 * n_folds else [],
        halves(n_buckets, asked.n_halves // 2, seed) if n_buckets > 2 and asked.n_halves > 1 else [],
    )


def _start(asked: Asked, question: Contrasts, n_features: int) -> np.ndarray | None:
    """Weights of an earlier fit to start from: of the same contrast alone."""
    earlier = getattr(asked, "coef_", None) if asked.warm_start else None
    fits = earlier is not None and earlier.shape == (n_features,) and question.kind == "binary"
    return earlier if fits else None


def rarest_side(by_label: np.ndarray, question: Contrasts) -> int:
    """Rows of the rarer side of the contrast that has fewest."""
    return min(int(by_label[sign == side].sum()) for sign in question.sign for side in (-1, 1))


def _n_folds(categories: np.ndarray, by_label: np.ndarray, rarest: int, cv: Any) -> int:
    """As many as asked for, or as the rarest side of a contrast has rows."""
    if rarest < 2:
        raise DataError(
            f"label {categories[by_label.argmin()].item()!r} has {by_label.min()} row(s): cross-validation "
            "needs 2 of each; leave the label out, or give k and cv=None"
        )
    return min(cv, rarest) if is_whole(cv) else len(cv)


def _solver(asked: Asked, rows: Rows, n_classes: int, n_folds: int) -> tuple[str, int]:
    """The solver and the number of buckets, by the size of their sums."""
    d, fewest = rows.n_markers, max(n_folds, 1)
    name = asked.solver
    if name == "auto":
        fits = state_bytes(n_classes, fewest, d) <= MOST_BYTES and not rows.is_sparse
        name = "moments" if fits else "stream"
    if rows.is_sparse and name not in SPARSE:
        raise DataError(
            f"solver={name!r} does not take sparse rows: take {' or '.join(map(repr, SPARSE))}, or make "
            "them dense, with X.toarray()"
        )
    if name == "sht" or not n_folds:
        return name, n_folds or 1
    summed = {"moments": d, "stream": min(d, asked.n_screened), "screen": 1}[name]
    few = is_whole(asked.cv) and state_bytes(n_classes, 2 * n_folds, summed) <= FEW_BYTES
    return name, 2 * n_folds if few else n_folds


def _sizes(k: Any, n_features: int, solver: str) -> tuple[tuple[int, ...], int | None]:
    """Numbers of features, and the place of the one that is given."""
    if k is None:
        grid = OF_DESCENTS if solver == "sht" and n_features > OF_DESCENTS[0] else SIZES
        return tuple(size for size in grid if size <= n_features), None
    given = sorted({min(int(size), n_features) for size in np.atleast_1d(k)})
    if np.ndim(k):
        return tuple(given), None
    if solver == "sht":
        return tuple(given), 0
    sizes = (*(size for size in SIZES if size < given[0]), given[0])
    return sizes, len(sizes) - 1


def _alphas(alpha: Any, n_folds: int) -> tuple[float, ...]:
    if alpha is None:
        return ALPHAS if n_folds else (0.0,)
    given = tuple(sorted({float(value) for value in np.atleast_1d(alpha)}))
    if len(given) > 1 and not n_folds:
        raise DataError("alpha names several values, which cross-validation chooses from: give cv too")
    return given
