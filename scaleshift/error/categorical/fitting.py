"""Which model do the rows give, and which its folds?  Fits over a path of penalties, and the choice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scaleshift.blocks.block import Block
from scaleshift.error.categorical.chord import chord
from scaleshift.error.categorical.columns import Columns, Source, without_lost
from scaleshift.error.categorical.frame import Counted
from scaleshift.error.categorical.newton import Fitted, newton
from scaleshift.error.categorical.scoring import losses
from scaleshift.error.family import Settings
from scaleshift.error.losses import Loss
from scaleshift.errors import DataError
from scaleshift.kernels.logistic import logits

N_ALPHAS = 20
RIDGE_PATH = (1e1, 1e-5)  # by the curvature of the model without features
LASSO_PATH = 1e-3  # smallest penalty of a path by the largest, which leaves no feature
RELAXED_RIDGE = 1e-6  # of refits without penalty
SEPARATED_RIDGE = 1e-3  # of separated labels, by spread of a feature: weights stay below sqrt(2 log K / 1e-3)


@dataclass(frozen=True)
class Setting:
    """What all fits of one source have in common."""

    counted: Counted
    settings: Settings
    classes: np.ndarray
    folds: bool

    @property
    def m(self) -> int:
        """Logits of a row."""
        return 1 if self.settings.model == "logistic" else len(self.classes)

    @property
    def q(self) -> int:
        """Parameters of a logit."""
        return self.counted.frame.q

    @property
    def n_folds(self) -> int:
        """0 without cross-validation."""
        return len(self.counted.n) if self.folds else 0

    @property
    def unit(self) -> np.ndarray:
        """What a penalised weight of z is in penalised units: (q,), 0 of the intercept."""
        factor = self.counted.frame.factor
        return np.concatenate([[0.0], np.where(factor > 0, 1.0 if self.settings.scale else factor, 1.0)])

    def sums(self, by_class: np.ndarray) -> np.ndarray:
        """Z'Y of sums of z by class: (..., K, q) -> (..., m, q)."""
        return by_class[..., 1:, :] if self.m == 1 else by_class

    def ridge(self, alpha: np.ndarray) -> np.ndarray:
        """Second derivatives of an l2 penalty: (n,) -> (n, d)."""
        return np.tile(np.multiply.outer(alpha, self.unit**2), self.m)

    def penalties(self, alpha: np.ndarray) -> dict[str, np.ndarray]:
        """Penalties of each fit, (n,) -> (n, d)."""
        none = np.zeros((len(alpha), self.m * self.q))
        if self.settings.penalty == "l2":
            return {"ridge": self.ridge(alpha), "lasso": none}
        return {"ridge": none, "lasso": np.tile(np.multiply.outer(alpha, self.unit), self.m)}

    def columns(self, alpha: np.ndarray, left_out: np.ndarray, start: np.ndarray) -> Columns:
        """Fits to the source's own labels, one for each penalty and fold that is left out."""
        every = self.counted.sums.sum(axis=0)
        by_class = np.stack([every - self.counted.sums[f] if f >= 0 else every for f in left_out])
        n_by_class = np.rint(by_class[..., 0])
        columns = Columns(
            sums=self.sums(by_class),
            n=np.maximum(n_by_class.sum(axis=1), 1),
            left_out=left_out,
            **self.penalties(alpha),
            free=np.ones((len(alpha), self.m * self.q), bool),
            start=start.copy(),
        )
        return without_lost(columns, n_by_class, self.m)


@dataclass(frozen=True)
class Chosen:
    """The model of all rows and those of the folds, at one penalty."""

    alpha: float
    theta: np.ndarray  # (m, q)
    of_folds: np.ndarray  # (n_folds, m, q)


def null_start(setting: Setting, n: int) -> np.ndarray:
    """Parameters of n models that know the shares of the classes alone: (n, m, q)."""
    share = setting.counted.n.sum(axis=0)
    logit = np.log(share / share.sum())
    start = np.zeros((n, setting.m, setting.q))
    start[..., 0] = logit[1] - logit[0] if setting.m == 1 else logit - logit.mean()
    return start


def alphas(setting: Setting) -> np.ndarray:
    """Penalties of the path, descending: (n,)."""
    given = setting.settings.alpha
    if given is not None:
        return np.array([float(given)])
    if not setting.folds:
        raise DataError("alpha=None is chosen by cross-validation: give folds (cv=5), or a number as alpha")
    unit = setting.unit[1:]
    by_class = setting.counted.sums.sum(axis=0)
    n = by_class[:, 0].sum()
    if setting.settings.penalty == "l1":
        # Of the model without features, whose fitted sums of z are 0: z is centred.
        largest = float((np.abs(setting.sums(by_class)[:, 1:]) / n / unit).max(initial=0)) or 1.0
        return largest * np.geomspace(1, LASSO_PATH, N_ALPHAS)
    share = by_class[:, 0] / n
    scale = float(np.mean(share * (1 - share)) * np.mean(1 / unit**2)) or 1.0
    return scale * np.geomspace(*RIDGE_PATH, N_ALPHAS)


def fitted_path(source: Source, setting: Setting, path: np.ndarray) -> tuple[Fitted, np.ndarray]:
    """Models of all rows, (n_alphas, m, q), and of the folds, (n_folds, n_alphas, m, q)."""
    n = len(path)
    whole = setting.columns(path, np.full(n, -1), null_start(setting, n))
    models = newton(source, whole)
    _refuse_separated(models, path)
    if not setting.n_folds:
        return models, np.empty((0, *models.theta.shape))
    theta = models.theta.reshape(n, -1)
    size = max(1, 64_000_000 // (8 * theta.shape[1] ** 2))
    near: list[np.ndarray] = []
    for first in range(0, n, size):
        part = np.arange(first, min(first + size, n))
        near += list(source.curves(theta[part], whole.take(part)).curvature)
    left_out = np.repeat(np.arange(setting.n_folds), n)
    which = np.tile(np.arange(n), setting.n_folds)
    columns = setting.columns(path[which], left_out, models.theta[which])
    folds = bounded(source, setting, columns, chord(source, columns, near, which)).theta
    return models, folds.reshape(setting.n_folds, n, setting.m, setting.q)


def _refuse_separated(models: Fitted, path: np.ndarray) -> None:
    if not models.converged.all():
        alpha = path[~models.converged][0]
        raise DataError(
            f"with alpha={alpha:g} the fit does not come to an end: a plane separates the labels (or "
            "nearly), so that weights grow without bound; give alpha > 0, as 1e-3, or alpha=None, or fewer "
            "features"
        )


def bounded(source: Source, setting: Setting, columns: Columns, fitted: Fitted) -> Fitted:
    """The same fits; those whose labels are separated, with a small l2 penalty that bounds them."""
    rest = np.flatnonzero(~fitted.converged)
    if not rest.size:
        return fitted
    weights = np.tile(np.arange(setting.q) > 0, setting.m)
    ridge = np.tile(SEPARATED_RIDGE * weights, (len(rest), 1))
    again = replace(columns.take(rest), ridge=ridge, lasso=np.zeros_like(ridge))
    theta = fitted.theta.copy()
    theta[rest] = newton(source, again).theta
    return Fitted(theta, fitted.converged)


def relaxed(source: Source, setting: Setting, chosen: Chosen) -> np.ndarray:
    """Refits without penalty of the model of all rows and of each fold: (1 + n_folds, m, q).

    On the features that penalty="l1" has chosen, or on all. A tiny l2 penalty bounds separated labels.
    """
    whole = _relaxed_columns(setting, chosen.theta[None], np.array([-1]))
    refit = newton(source, whole).theta
    n = len(chosen.of_folds)
    if not n:
        return refit
    folds = _relaxed_columns(setting, chosen.of_folds, np.arange(n))
    if not folds.free.all():
        return np.concatenate([refit, newton(source, folds).theta])
    folds = replace(folds, start=np.repeat(refit, n, axis=0))
    near = source.curves(refit.reshape(1, -1), whole).curvature
    return np.concatenate([refit, chord(source, folds, list(near), np.zeros(n, np.int64)).theta])


def _relaxed_columns(setting: Setting, models: np.ndarray, left_out: np.ndarray) -> Columns:
    """Refits that start from models, (n, m, q), on their supports."""
    n = len(models)
    columns = setting.columns(np.zeros(n), left_out, models)
    ridge = setting.ridge(np.full(n, RELAXED_RIDGE))
    support = models != 0
    support[..., 0] = True
    free = columns.free & (support.reshape(n, -1) | (setting.settings.penalty == "l2"))
    return replace(columns, ridge=ridge, lasso=np.zeros_like(ridge), free=free)


# Held-out rows -----------------------------------------------------------------------------------------


def held_out(
    source: Source, models: np.ndarray, loss: Loss, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses of rows by the models of their own folds: one pass.

    Parameters
    ----------
    source : Source
    models : numpy.ndarray, shape (n_folds, n_models, m, q)
    loss : Loss
    classes : numpy.ndarray, shape (K,)

    Returns
    -------
    loss, deviance : numpy.ndarray, shape (n_folds, n_models)
        Sums over the rows of each fold.
    n : numpy.ndarray, shape (n_folds,)
    """
    shape = models.shape[:2]
    layout = {"loss": shape, "deviance": shape, "n": shape[:1]}
    theta = np.ascontiguousarray(np.moveaxis(models, 1, -1))  # (n_folds, m, q, n_models)
    found = source.total(_held_out, layout, theta=theta, loss=loss, classes=classes)
    return found["loss"], found["deviance"], found["n"]


def _held_out(block: Block, theta: np.ndarray, loss: Loss, classes: np.ndarray) -> dict[str, np.ndarray]:
    n_folds, _, _, n_models = theta.shape
    found = {"loss": np.zeros((n_folds, n_models)), "deviance": np.zeros((n_folds, n_models))}
    n = np.zeros(n_folds)
    label, fold = block.columns["label"], block.columns["fold"]
    for f in range(n_folds):
        rows = np.flatnonzero(fold == f)
        n[f] = len(rows)
        if not len(rows):
            continue
        each = logits(block.x[rows], theta[f])
        at = label[rows], np.arange(len(rows))
        found["loss"][f] = losses(loss, each, classes)[at].sum(axis=0)
        found["deviance"][f] = losses("deviance", each, classes)[at].sum(axis=0)
    return {**found, "n": n}
