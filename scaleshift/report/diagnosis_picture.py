"""Which markers moved in which sample?  A heat map, and the verdicts beside it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.report import drawing
from scaleshift.report.diagnosis import required
from scaleshift.report.files import write_png

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure

MOST_MARKERS = 60  # those that moved most anywhere
MOST_SAMPLES = 200
COLUMN, BAR_WIDTH, VERDICT_WIDTH, EXTRA = 0.3, 0.9, 1.5, 1.2  # inches
REACH = (1.0, 3.0)  # standard deviations that have the fullest colour: at least, at most


def diagnosis_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """How far each marker moved in each sample, as a heat map with the verdicts beside it.

    Orange cells moved up, blue ones down, in standard deviations within the classes; the numbers stand in
    the cells where there is room. Hatched: too few cells to tell. Of more than 60 markers those that moved
    most are drawn, of more than 200 samples the first.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.diagnose` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the result is another one, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> from scaleshift.report.diagnosis import _example
    >>> figure = diagnosis_plot(_example())
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['CD3', 'CD4']
    """
    result = required(result)
    n_samples, n_markers = result.sizes["sample"], result.sizes["marker"]
    shift = result["shift"].transpose("sample", "marker").values[:MOST_SAMPLES]
    farthest = np.nanmax(np.abs(np.nan_to_num(shift)), axis=0, initial=0)
    chosen = np.sort(np.argsort(-farthest, kind="stable")[:MOST_MARKERS])
    shift, markers = shift[:, chosen], result["marker"].values[chosen]
    named = drawing.rows(result["sample"].values[:MOST_SAMPLES])
    width = named.name_width + len(markers) * COLUMN + BAR_WIDTH + VERDICT_WIDTH
    longest = min(max((len(str(name)) for name in markers), default=0), drawing.LONGEST_NAME)
    figure = drawing.figure(max(width, 4), max(named.height, 1) + longest * drawing.CHARACTER + EXTRA - 0.4)
    axes = figure.subplots()
    reach = float(np.clip(np.nanmax(np.abs(np.nan_to_num(shift)), initial=0), *REACH))
    drawn = drawing.heat(axes, shift, named, markers, reach)
    if named.step > 0.2:
        drawing.write_numbers(axes, shift, dark=0.7 * reach)
    bar = figure.colorbar(drawn, ax=axes, extend="both", aspect=12, shrink=min(1.0, 2.5 / named.height), anchor=(0, 1))
    bar.set_label("shift in sd within classes", size=drawing.SIZE)
    bar.ax.tick_params(labelsize=drawing.SIZE)
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(len(named.names)), result["verdict"].values[:MOST_SAMPLES].tolist())
    beside.tick_params(length=0, labelsize=named.size)
    beside.spines["right"].set_visible(False)
    title = "how far markers moved"
    title += f": the {len(markers)} that moved most of {n_markers}" if len(markers) < n_markers else ""
    title += f", the first {MOST_SAMPLES} of {n_samples} samples" if n_samples > MOST_SAMPLES else ""
    drawing.finish(axes, title, grid="")
    axes.spines["bottom"].set_visible(False)
    if path is not None:
        write_png(figure, path)
    return figure
