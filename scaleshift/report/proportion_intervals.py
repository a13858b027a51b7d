"""How sure are the proportions, sample by sample?  A dot and its interval, a panel a label."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from scaleshift.report import drawing
from scaleshift.report.drawing import FLAG_COLOUR, LOW, Rows
from scaleshift.report.files import write_png
from scaleshift.report.names import short
from scaleshift.report.proportions import require

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = ("proportion", "proportion_low", "proportion_high", "unknown", "unknown_low", "unknown_high")
MOST_LABELS = 32
MOST_SAMPLES = 200
MOST_COLUMNS, FEW_COLUMNS = 8, 3
PANEL_WIDTH, PANEL_EXTRA, FOOT = 2.2, 0.65, 0.4  # inches
LONGEST_TITLE = 28  # characters


def interval_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """Proportions with their intervals: a panel for each label, a row for each sample.

    Each panel has a scale of its own, so that rare labels are seen too. The last panel is the unknown share,
    where it was estimated. Dots of samples with a flag are open and red; a sample without an estimate says
    so. A single sample has one panel, with its labels as rows. Of more than 32 labels the most frequent are
    drawn, of more than 200 samples the first.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label).
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the result lacks a variable, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> import scaleshift as ss
    >>> y = np.repeat(["B", "T"], [300, 700])
    >>> X = np.where(y == "T", 5, 0)[:, None] + np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = ss.ClassifyAndCount(random_state=0).fit(X, y)
    >>> figure = ss.report.interval_plot(model.predict(X, sample=np.arange(1000) % 2))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['B', 'T']
    """
    shown, said = _shown(result)
    panels = _of_labels(shown) if shown.sizes["sample"] != 1 else _of_sample(shown)
    n = max(len(panels.titles), 1)
    columns = _columns(n, len(panels.names))
    lines = math.ceil(n / columns)
    named = drawing.rows(panels.names, (drawing.LONGEST_FIGURE - FOOT) / lines - PANEL_EXTRA)
    size = named.name_width + columns * PANEL_WIDTH, lines * (named.height + PANEL_EXTRA) + FOOT
    figure = drawing.figure(max(size[0], 4), max(size[1], 1.6))
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for i, axes in enumerate(grid):
        if i < len(panels.titles):
            _draw(axes, panels, i, named, with_names=i % columns == 0)
        else:
            axes.remove()
    if panels.flagged.any():
        drawn = [axes for axes in figure.axes if axes.get_legend_handles_labels()[0]]
        figure.legend(*drawn[0].get_legend_handles_labels(), loc="outside lower left", fontsize=8, frameon=False)
    if said:
        figure.suptitle(said, size=9, x=0.01, ha="left")
    if path is not None:
        write_png(figure, path)
    return figure


class _Panels(NamedTuple):
    titles: list[str]
    names: list[str]  # of rows
    share: np.ndarray  # (n_rows, n_panels, 3): estimate, lower and upper end
    flagged: np.ndarray  # (n_rows,)


def _shown(result: xr.Dataset) -> tuple[xr.Dataset, str]:
    """What is drawn, and what is said of what is not."""
    require(result, *SHARES, "flag")
    result, said = result.transpose("sample", "label", ...), []
    n_samples, n_labels = result.sizes["sample"], result.sizes["label"]
    if n_labels > MOST_LABELS:
        mean = np.nan_to_num(result["proportion"].values).mean(axis=0)
        result = result.isel(label=np.sort(np.argsort(-mean, kind="stable")[:MOST_LABELS]))
        said.append(f"the {MOST_LABELS} most frequent of {n_labels} labels")
    if n_samples > MOST_SAMPLES:
        result = result.isel(sample=slice(MOST_SAMPLES))
        said.append(f"the first {MOST_SAMPLES} of {n_samples} samples")
    return result, ", ".join(said)


def _of_labels(result: xr.Dataset) -> _Panels:
    """A panel a label, and one of the unknown share where there is one; a row a sample."""
    of_label = np.stack([result[name].values for name in SHARES[:3]], axis=-1)
    unknown = np.stack([result[name].values for name in SHARES[3:]], axis=-1)
    titles = [str(name) for name in result["label"].values]
    if np.isfinite(unknown[:, 0]).any():
        of_label, titles = np.concatenate([of_label, unknown[:, None]], axis=1), [*titles, "unknown"]
    names = [str(name) for name in result["sample"].values]
    return _Panels(titles, names, of_label, result["flag"].values != "")


def _of_sample(result: xr.Dataset) -> _Panels:
    """The same of a single sample: one panel, a row a label."""
    labels = _of_labels(result)
    flagged = np.repeat(labels.flagged, len(labels.titles))
    return _Panels(labels.names, labels.titles, labels.share.transpose(1, 0, 2), flagged)


def _columns(n_panels: int, n_rows: int) -> int:
    """Panels side by side: about as many inches as there are from top to bottom."""
    height = min(n_rows * 0.2, 6) + PANEL_EXTRA
    square = round(math.sqrt(n_panels * height / PANEL_WIDTH))
    return min(max(square, FEW_COLUMNS), MOST_COLUMNS, n_panels)


def _draw(axes: Axes, panels: _Panels, panel: int, named: Rows, with_names: bool) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    share, low, high = panels.share[:, panel].T
    places = np.arange(len(share))
    size = min(5.0, max(72 * named.step * 0.6, 1.5))
    drawing.interval(axes, places, low, high, LOW, linewidth=size / 3, alpha=0.7)
    for chosen, style in (
        (~panels.flagged, {"color": LOW}),
        (panels.flagged, {"color": FLAG_COLOUR, "markerfacecolor": "white", "label": "has a flag: see the table"}),
    ):
        if (chosen & np.isfinite(share)).any():
            axes.plot(share[chosen], places[chosen], "o", markersize=size, zorder=3, **style)
    for place in np.flatnonzero(np.isnan(share)).tolist():
        drawing.say(axes, place, "no estimate", named)
    drawing.name_rows(axes, named, shown=with_names)
    drawing.from_zero(axes, np.concatenate([share, low, high]))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    drawing.finish(axes, short(panels.titles[panel], LONGEST_TITLE))
