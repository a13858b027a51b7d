"""How does a ranking look?  Its AUC by number of features, and the features that it has chosen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.blocks.sizes import count
from scaleshift.report import drawing
from scaleshift.report.auc import FEATURES, OF_RANKING, PATH, Contrast, contrasts, same_contrasts
from scaleshift.report.auc_words import chosen, number, positive_of, selected
from scaleshift.report.drawing import GREY, HIGH, LINE, LOW
from scaleshift.report.files import write_png
from scaleshift.report.names import short

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 20  # features of a panel
MOST_CONTRASTS = 12
LONGEST_NAME, LONGEST_TITLE = 32, 40  # characters
SHORT_NAMES = 1.0  # inches
PATH_WIDTH, BARS_WIDTH, BAR, EXTRA, LEAST = 4.4, 5.2, 0.2, 1.0, 2.8  # inches
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10_000)
MOST_TICKS = 9


def auc_plot(result: xr.Dataset, path_: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """A ranking as a picture: held-out AUC by number of features, and the features of the chosen one.

    On the left the AUC on rows that a fold's ranking has not seen, with standard errors over the folds; the
    chosen number of features is marked. On the right the weights of the (at most 20) features that weigh
    most, and how stably each is chosen. Several contrasts have a row each, the first 12 of them.

    Parameters
    ----------
    result : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns.
    path_ : xarray.Dataset
        Its ``path_``.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If either is another dataset, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> from scaleshift.report.auc import _example, _example_path
    >>> figure = auc_plot(_example(), _example_path())
    >>> [axes.get_title(loc="left") for axes in figure.axes[:2]]
    ['T: AUC by number of features', '1 feature, held-out AUC 0.910']
    """
    every = contrasts(result, (*FEATURES, *OF_RANKING), "features", "describe()")
    paths = same_contrasts(every, path_)
    shown, n = every[:MOST_CONTRASTS], min(len(every), MOST_CONTRASTS)
    bars = _bars(shown)
    right_width = BARS_WIDTH + _names(shown)
    figure = drawing.figure(PATH_WIDTH + right_width, n * max(bars * BAR + EXTRA, LEAST))
    grid = figure.subplots(n, 2, squeeze=False, width_ratios=[PATH_WIDTH, right_width])
    for (left, right), (name, one), (_, part) in zip(grid, shown, paths, strict=False):
        _draw_path(left, part, _positive(one, name))
        _draw_features(right, one, bars)
    return _finished(figure, len(every), path)


def ranking_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    r"""Weights of the chosen features, without the path behind them: `auc_plot` draws both.

    Parameters
    ----------
    result : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If it is another dataset, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> from scaleshift.report.auc import _example
    >>> ranking_plot(_example()).axes[0].get_title(loc="left")
    'T\n1 feature, held-out AUC 0.910'
    """
    every = contrasts(result, (*FEATURES, *OF_RANKING), "features", "describe()")
    shown = every[:MOST_CONTRASTS]
    bars = _bars(shown)
    figure = drawing.figure(BARS_WIDTH + _names(shown), len(shown) * (bars * BAR + EXTRA))
    for axes, (name, one) in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
        _draw_features(axes, one, bars, f"{_positive(one, name)}\n")
    return _finished(figure, len(every), path)


def path_plot(path_: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """AUC by number of features, without the features themselves: `auc_plot` draws both.

    Parameters
    ----------
    path_ : xarray.Dataset
        ``path_`` of a `SparseAUC`.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If it is another dataset, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> from scaleshift.report.auc import _example_path
    >>> path_plot(_example_path()).axes[0].get_title(loc="left")
    'AUC by number of features'
    """
    every = contrasts(path_, PATH, "path", "path_")
    shown = every[:MOST_CONTRASTS]
    figure = drawing.figure(PATH_WIDTH, len(shown) * LEAST)
    for axes, (name, one) in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
        _draw_path(axes, one, _positive(one, name))
    return _finished(figure, len(every), path)


def _bars(shown: list[Contrast]) -> int:
    """Rows of features that a panel has room for."""
    return max(min(len(chosen(one)), MOST_BARS) for _, one in shown)


def _names(shown: list[Contrast]) -> float:
    """Inches that the names of features need, beyond what is there for short ones."""
    names = [str(one["feature"].values[i]) for _, one in shown for i in chosen(one)[:MOST_BARS]]
    longest = min(max(map(len, names), default=0), LONGEST_NAME)
    return max(longest * drawing.CHARACTER - SHORT_NAMES, 0.0)


def _finished(figure: Figure, n_contrasts: int, path: str | os.PathLike[str] | None) -> Figure:
    """Say what is not drawn, and write the figure."""
    if n_contrasts > MOST_CONTRASTS:
        figure.suptitle(f"the first {MOST_CONTRASTS} of {n_contrasts} contrasts", size=9, x=0.01, ha="left")
    if path is not None:
        write_png(figure, path)
    return figure


def _positive(one: xr.Dataset, name: str | None) -> str:
    """What a contrast is called: by its name, or the positive label."""
    return short(positive_of(one) if name is None else name, LONGEST_TITLE)


def _draw_path(axes: Axes, path: xr.Dataset, positive: str) -> None:
    """AUC by number of features, the chosen one marked."""
    held_out = bool(np.isfinite(path["auc"].values).any())
    values = path["auc" if held_out else "auc_binormal"].values
    known = np.isfinite(values)
    sizes, values = path["k"].values[known], values[known]
    error = np.nan_to_num(path["auc_se"].values[known]) if held_out else np.zeros(len(values))
    # A dozen sizes are drawn one by one; error bars of values next to 1 may reach beyond it, the axis not.
    axes.errorbar(
        sizes, values, error, color=LINE, linewidth=1.2, marker="o", markersize=3.5, ecolor="0.6", capsize=2
    )
    here = selected(path)[known]
    for k, value in zip(sizes[here], values[here], strict=True):
        axes.axvline(k, color=HIGH, linestyle="--", linewidth=1, zorder=0)
        axes.plot(k, value, marker="o", markersize=9, color=HIGH, markerfacecolor="none", markeredgewidth=1.8)
    _sized(axes, sizes)
    low, high = float((values - error).min()), float((values + error).max())
    margin = max(0.08 * (high - low), 0.002)
    axes.set_ylim(low - margin, min(high + margin, max(1.0, high) + 0.3 * margin))
    if low - margin < 0.5:
        axes.axhline(0.5, color=GREY, linewidth=1, zorder=0)
    axes.ticklabel_format(axis="y", useOffset=False)
    told = ", ".join(str(k) for k in sizes[here].tolist())
    axes.set_xlabel(f"number of features (dashed: {told}, chosen)" if told else "number of features", size=8)
    axes.set_ylabel(
        "held-out AUC ± standard error" if held_out else "AUC of the rows learned from, if normal", size=8
    )
    title = f"{positive}: AUC by number of features" if positive else "AUC by number of features"
    drawing.finish(axes, title, grid="y")
    axes.tick_params(axis="y", labelsize=drawing.SIZE)


def _sized(axes: Axes, sizes: np.ndarray) -> None:
    """A logarithmic axis of whole numbers."""
    from matplotlib.ticker import NullFormatter, NullLocator

    axes.set_xscale("log")
    low, high = int(sizes.min()), int(sizes.max())
    ticks = [size for size in SIZES if low <= size <= high] or [low]
    apart = ticks[:: max(1, -(-len(ticks) // MOST_TICKS))]
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(apart, [str(tick) for tick in apart])
    axes.set_xlim(low / 1.15, high * 1.15)


def _draw_features(axes: Axes, one: xr.Dataset, bars: int, above: str = "") -> None:
    """Weights of the features that weigh most, the largest at the top; stability at the right end."""
    from matplotlib.ticker import MaxNLocator

    features = chosen(one)
    shown = features[:MOST_BARS]
    weights, stability = one["coef_scaled"].values[shown], one["stability"].values[shown]
    places = np.arange(len(shown))
    axes.barh(places, weights, color=[HIGH if w > 0 else LOW for w in weights], height=0.7)
    names = [short(one["feature"].values[i], LONGEST_NAME) for i in shown]
    axes.set_yticks(places, names, size=8, parse_math=False)
    axes.set_ylim(max(bars, 6) - 0.5, -0.7)
    axes.axvline(0, color="black", linewidth=0.8)
    reach = np.abs(weights).max(initial=0) * 1.08 or 1.0
    axes.set_xlim(-reach if (weights < 0).any() else 0, reach if (weights > 0).any() or not len(shown) else 0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel("weight of one standard deviation  (right of 0: more of it ranks higher)", size=8)
    if np.isfinite(stability).any():
        beside = axes.secondary_yaxis("right")
        beside.set_yticks(places, ["-" if np.isnan(s) else f"{s:.2f}" for s in stability], size=8)
        beside.tick_params(length=0)
        beside.spines["right"].set_visible(False)
        axes.set_title("stability", size=8, loc="right")
    n, auc = len(features), float(one["auc"])
    title = above + count(n, "feature", "features")
    title += f", held-out AUC {number(auc)}" if np.isfinite(auc) else ""
    drawing.finish(axes, f"{title} (the first {MOST_BARS})" if n > MOST_BARS else title, grid="")
