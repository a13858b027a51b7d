"""What do methods of sparse AUC learn, each tuned alike?  Held-out AUC on the same five folds chooses.

`SparseAUC` and its screening choose by their own cross-validation, on folds of their own. All others are
tried with the parameters of their grids; a later stage of a grid goes on from the best of the one before.
Grids are those of the source, thinned; steps of the logistic methods, which it does not name, are tuned too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import l1_min_c

import scaleshift as ss

N_FOLDS = 5
NEGLIGIBLE = 1e-3  # of methods that are not sparse: smaller coefficients do not count as chosen
SIZES = tuple(range(10, 101, 10))
Grid = dict[str, Sequence[Any]]


class Ranking(NamedTuple):
    """What a method has learned."""

    weights: np.ndarray  # (d,) in reciprocal units of X
    chosen: np.ndarray  # (d,) bool
    path: dict[int, np.ndarray] | None = None  # weights by number of features, where one fit has them all


Fit = Callable[..., Ranking]  # what `prepare` makes of x (n, d), y (n,) of 0 and 1, seed, parameters


def as_it_is(x: np.ndarray) -> Any:
    """Rows as they are."""
    return x


def standard(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, and their spread."""
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / spread, spread


def unit_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, rows then of unit length, which the online methods ask for."""
    z, spread = standard(x)
    return z / np.linalg.norm(z, axis=1, keepdims=True), spread


@dataclass(frozen=True)
class Method:
    """How it is fitted, and the stages of its grid; none where it chooses by itself."""

    fit: Fit
    stages: Sequence[Grid] = field(default=())
    sized: bool = False  # whether k is one of its parameters
    prepare: Callable[[np.ndarray], Any] = as_it_is  # once for all parameters

    def rank(self, x: np.ndarray, y: np.ndarray, seed: int, **parameters: Any) -> Ranking:
        """Fit with these parameters."""
        return self.fit(self.prepare(x), y, seed, **parameters)


def sparse_auc(x: np.ndarray, y: np.ndarray, seed: int, **parameters: Any) -> Ranking:
    """`SparseAUC` as it is."""
    model = ss.SparseAUC(random_state=seed, n_halves=0, **parameters).fit(x, y)
    path = model.path_["coef"]
    by_size = {int(k): path.sel(k=k).values for k in path["k"].values}
    return Ranking(model.coef_, model.coef_ != 0, by_size)


def sht(x: np.ndarray, y: np.ndarray, seed: int, *, k: int, n_blocks: int) -> Ranking:
    """SHT-AUC of so many blocks."""
    block_size = max(len(y) // n_blocks, 1)
    return sparse_auc(x, y, seed, k=k, cv=None, solver="sht", block_size=block_size)


def online(estimator: Callable[..., Any], *, sparse: bool, **fixed: Any) -> Fit:
    """A method that goes row by row or block by block; its weights rank standardised rows of any length."""

    def fit(rows: tuple[np.ndarray, np.ndarray], y: np.ndarray, seed: int, **parameters: Any) -> Ranking:
        z, spread = rows
        model = estimator(random_state=seed, **fixed, **parameters).fit(z, y)
        return Ranking(model.coef_ / spread, np.abs(model.coef_) > (0 if sparse else NEGLIGIBLE))

    return fit


def stoiht(rows: Any, y: np.ndarray, seed: int, *, n_blocks: int, **parameters: Any) -> Ranking:
    """StoIHT of the logistic loss, 20 epochs."""
    fit = online(ss.auc.StoIHT, sparse=True, n_passes=20, block_size=max(len(y) // n_blocks, 1))
    return fit(rows, y, seed, **parameters)


def lasso(rows: tuple[np.ndarray, np.ndarray], y: np.ndarray, seed: int, *, times: float) -> Ranking:
    """Logistic regression with an l1 penalty: so many times the smallest C that chooses anything."""
    z, spread = rows
    c = times * l1_min_c(z, y, loss="log")
    model = LogisticRegression(l1_ratio=1, solver="liblinear", C=c, random_state=seed).fit(z, y)
    return Ranking(model.coef_[0] / spread, model.coef_[0] != 0)


STEPS, BLOCKS, PENALTIES = (1.0, 10.0), (1, 4, 10), (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
XI = (1.0, 10.0, 100.0)
SPARSE_AUC = {
    "default": Method(sparse_auc, sized=True),
    "one_se": Method(lambda x, y, seed, **p: sparse_auc(x, y, seed, selection="one_se", **p)),
    "t-screening": Method(lambda x, y, seed, **p: sparse_auc(x, y, seed, solver="screen", **p), sized=True),
}
L0 = {  # the methods that the default is held against
    "SHT": Method(sht, [{"k": SIZES, "n_blocks": (4,)}, {"n_blocks": BLOCKS}], sized=True),
    "StoIHT": Method(
        stoiht,
        [{"k": SIZES, "step_size": STEPS, "n_blocks": (10,)}, {"n_blocks": BLOCKS}],
        sized=True,
        prepare=unit_rows,
    ),
    "HSG-HT": Method(
        online(ss.auc.HSGHT, sparse=True, n_passes=10),
        [{"k": SIZES, "step_size": STEPS}],
        sized=True,
        prepare=unit_rows,
    ),
}


def _by_rows(estimator: Callable[..., Any], stages: Sequence[Grid], **fixed: Any) -> Method:
    return Method(online(estimator, sparse=False, **fixed), stages, prepare=unit_rows)


OTHERS = {
    "SOLAM": _by_rows(ss.auc.SOLAM, [{"radius": (0.1, 1.0, 10.0, 100.0, 1000.0), "xi": XI}]),
    "SPAM l1": _by_rows(ss.auc.SPAM, [{"l1": PENALTIES, "xi": XI}], penalty="l1"),
    "SPAM l2": _by_rows(ss.auc.SPAM, [{"l2": PENALTIES, "xi": XI}], penalty="l2"),
    "SPAM elastic net": _by_rows(
        ss.auc.SPAM, [{"l1": PENALTIES[1:4], "l2": PENALTIES[1:4], "xi": XI}], penalty="elasticnet"
    ),
    "FSAUC": _by_rows(
        ss.auc.FSAUC, [{"radius": (10.0, 100.0, 1000.0)}, {"eta": (1 / 16, 1.0, 16.0)}], n_passes=5
    ),
    "logistic l1": Method(
        lasso, [{"times": (1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 30.0)}], prepare=standard
    ),
}
METHODS = {**SPARSE_AUC, **L0, **OTHERS}


def combinations(grid: Grid) -> list[dict[str, Any]]:
    """Every combination of a grid's values."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def tuned(
    method: Method, x: np.ndarray, y: np.ndarray, seed: int, **fixed: Any
) -> tuple[Ranking, dict[str, Any]]:
    """Fit with the parameters that rank held-out rows best, some of them given; and these parameters."""
    found: dict[str, Any] = {}
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(x, y)
    prepared = [(method.prepare(x[inside]), inside, outside) for inside, outside in folds if method.stages]
    for stage in method.stages:
        tried = [{**found, **some, **fixed} for some in combinations(stage)]
        tried = [some for place, some in enumerate(tried) if some not in tried[:place]]
        auc = np.empty((len(tried), N_FOLDS))
        for row, parameters in enumerate(tried):
            for column, (rows, inside, outside) in enumerate(prepared):
                weights = method.fit(rows, y[inside], seed, **parameters).weights
                auc[row, column] = roc_auc_score(y[outside], x[outside] @ weights)
        found = tried[int(auc.mean(axis=1).argmax())]
    found = {**found, **fixed}
    return method.rank(x, y, seed, **found), found


# What all benchmarks of rankings tell ------------------------------------------------------------------


def population_auc(weights: np.ndarray, shift: np.ndarray) -> Any:
    """AUC of rankings, (..., d), on new rows; .5 of none."""
    length = np.sqrt(2 * (weights**2).sum(axis=-1))
    return ndtr(np.divide(weights @ shift, length, out=np.zeros_like(length), where=length > 0))


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
