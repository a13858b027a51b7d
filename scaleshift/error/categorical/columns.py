"""What is fitted together?  Columns: fits of replicates, folds and penalties that share passes over the rows.

Labels enter a fit through the sums Z'Y alone, which are made once; each pass gives Z'P of all columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Kept
from scaleshift.blocks.resuming import Walk
from scaleshift.blocks.states import Kernel
from scaleshift.blocks.statistics import Layout
from scaleshift.kernels.logistic import curve_sums, slope_sums

Made = TypeVar("Made")
FAR = -40.0  # intercept of a class without rows: its probability is below the smallest that a loss knows


@dataclass(frozen=True)
class Columns:
    """Fits: what each is fitted to, and how; coordinates class by class, d = m q."""

    sums: np.ndarray  # (n_fits, m, q) Z'Y
    n: np.ndarray  # (n_fits,) rows
    left_out: np.ndarray  # (n_fits,) fold whose rows do not count; -1: none
    ridge: np.ndarray  # (n_fits, d) penalty 1/2 ridge v^2
    lasso: np.ndarray  # (n_fits, d) penalty lasso |v|
    free: np.ndarray  # (n_fits, d) False: the coordinate stays where it starts
    start: np.ndarray  # (n_fits, m, q)

    def __len__(self) -> int:
        return len(self.n)

    def take(self, chosen: np.ndarray) -> Columns:
        """Some of the fits."""
        return Columns(**{name: values[chosen] for name, values in vars(self).items()})

    def penalty(self, theta: np.ndarray) -> np.ndarray:
        """Penalty of parameters (n_fits, d): (n_fits,)."""
        found: np.ndarray = (0.5 * self.ridge * theta**2 + self.lasso * np.abs(theta)).sum(axis=1)
        return found

    def slope(self, fitted: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Gradient of the smooth part of the objective, of Z'P (n_fits, m, q): (n_fits, d)."""
        slope = ((fitted - self.sums) / self.n[:, None, None]).reshape(len(self), -1)
        return np.where(self.free, slope + self.ridge * theta, 0)


@dataclass(frozen=True)
class Curves:
    """Value, gradient and second derivatives of the objective of some columns."""

    value: np.ndarray  # (n_fits,) with all penalties
    slope: np.ndarray  # (n_fits, d) of the smooth part
    curvature: np.ndarray  # (n_fits, d, d) of the smooth part, with the gauge
    fitted: np.ndarray  # (n_fits, m, q) Z'P

    def take(self, chosen: np.ndarray) -> Curves:
        """Those of some of the columns."""
        return Curves(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True)
class Source:
    """The rows that all fits share."""

    kept: Kept
    m: int  # logits: 1 of two classes, else K
    q: int
    walk: Walk

    def total(self, kernel: Kernel, layout: Layout, **parameters: Any) -> dict[str, np.ndarray]:
        """Sums of the next pass."""
        return self.walk.step(lambda: passes.total(kernel, self.kept, layout, **parameters))

    def part(self, function: Callable[[Source, Columns], Made], columns: Columns) -> Made:
        """What some passes give together."""
        return self.walk.part(lambda walk: function(replace(self, walk=walk), columns))

    def slopes(self, theta: np.ndarray, columns: Columns) -> np.ndarray:
        """Gradients of the smooth part at (n_fits, d): one pass."""
        layout = {"slope": (self.m, self.q, len(columns))}
        found = self.total(_slopes, layout, **self._arguments(theta, columns))
        return columns.slope(np.moveaxis(found["slope"], -1, 0), theta)

    def curves(self, theta: np.ndarray, columns: Columns) -> Curves:
        """What Newton's step needs at (n_fits, d): one pass."""
        n_fits, d = theta.shape
        layout = {"slope": (self.m, self.q, n_fits), "curvature": (n_fits, d, d), "total": (n_fits,)}
        found = self.total(_curves, layout, **self._arguments(theta, columns))
        fitted = np.moveaxis(found["slope"], -1, 0)
        fit = np.einsum("cd,cd->c", theta, columns.sums.reshape(n_fits, d))
        value = (found["total"] - fit) / columns.n + columns.penalty(theta)
        curvature = found["curvature"] / columns.n[:, None, None]
        curvature[:, np.arange(d), np.arange(d)] += columns.ridge
        for c in range(n_fits):
            self._hold(curvature[c], columns.free[c], columns.ridge[c] + columns.lasso[c])
        return Curves(value, columns.slope(fitted, theta), curvature, fitted)

    def _arguments(self, theta: np.ndarray, columns: Columns) -> dict[str, Any]:
        masked = (columns.left_out >= 0).any()
        shaped = np.ascontiguousarray(np.moveaxis(theta.reshape(-1, self.m, self.q), 0, -1))
        return {"theta": shaped, "left_out": columns.left_out if masked else None}

    def _hold(self, curvature: np.ndarray, free: np.ndarray, penalty: np.ndarray) -> None:
        """Give curvature to what is held, and to what changes nothing: gradients are 0 there.

        Of parameters without a penalty only differences between classes matter.
        """
        curvature[~free] = 0
        curvature[:, ~free] = 0
        held = np.flatnonzero(~free)
        curvature[held, held] = 1
        if self.m == 1:
            return
        unit = float(np.mean(np.diagonal(curvature))) or 1.0
        for j in range(self.q):
            alike = np.arange(self.m) * self.q + j
            alike = alike[free[alike]]
            if penalty[alike].any():
                continue
            curvature[np.ix_(alike, alike)] += unit / max(len(alike), 1)


def without_lost(columns: Columns, n_by_class: np.ndarray, m: int) -> Columns:
    """The same fits, where the probability of classes without rows is 0: n_by_class (n_fits, K)."""
    lost = n_by_class == 0
    if not lost.any():
        return columns
    free, start = columns.free.copy(), columns.start.copy()
    q = start.shape[2]
    if m == 1:
        constant = lost.any(axis=1)
        free[constant] = False
        start[constant] = 0
        start[constant, 0, 0] = np.where(lost[constant, 1], FAR, -FAR)
    else:
        free &= ~np.repeat(lost, q, axis=1)
        start[lost] = 0
        start[..., 0] = np.where(lost, FAR, start[..., 0])
    return replace(columns, free=free, start=start)


def _slopes(block: Block, theta: np.ndarray, left_out: np.ndarray | None) -> dict[str, np.ndarray]:
    return {"slope": slope_sums(block.x, theta, block.columns["fold"], left_out)}


def _curves(block: Block, theta: np.ndarray, left_out: np.ndarray | None) -> dict[str, np.ndarray]:
    return curve_sums(block.x, theta, block.columns["fold"], left_out)
