"""How do the compared methods rank, at a glance?  Errors by method, a panel a setting."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from scaleshift.report import drawing
from scaleshift.report.drawing import HIGH, LINE, LOW, Rows
from scaleshift.report.files import write_png
from scaleshift.report.ranking import ranked

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_WIDTH, EXTRA = 2.0, 1.3  # inches
TITLE_WIDTH = 24  # characters


def league_plot(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """A league table as a picture: the score of each method, and its error in each setting.

    Methods stand in rows, the best at the top; the recommended one is orange. Lines are standard errors over
    what is left out, or over draws.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.compare` returns.
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
    >>> import scaleshift as ss
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["a", "b", "c"], 3000)
    >>> X = np.column_stack([y == "a", y == "b"]) * 5 + rng.normal(size=(3000, 2))
    >>> two = {"hard": ss.DFM(soft=False, n_bootstrap=0), "soft": ss.DFM(n_bootstrap=0)}
    >>> figure = ss.report.league_plot(ss.quantify.compare(two, X, y, random_state=0))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['score', 'label shift', 'class left out']
    """
    found = ranked(result)
    named = drawing.rows(found["method"].values)
    settings = found["setting"].values.tolist()
    n = 1 + len(settings)
    height = min(named.height + EXTRA, drawing.LONGEST_FIGURE)
    figure = drawing.figure(named.name_width + n * PANEL_WIDTH, height)
    grid = figure.subplots(1, n, squeeze=False)[0]
    best = found["method"].values == result.attrs["recommendation"]
    score, error, spread = (found[name].values for name in ("score", "error", "error_se"))
    _draw(grid[0], "score", score, np.full(len(score), np.nan), best, named)
    for i, (axes, setting) in enumerate(zip(grid[1:], settings, strict=True)):
        title = textwrap.fill(str(setting), TITLE_WIDTH)
        _draw(axes, title, error[:, i], spread[:, i], best, named, with_names=False)
    advice = f"recommended: {result.attrs['recommendation'] or 'none'}, {result.attrs['reason']}"
    wide = max(int((named.name_width + n * PANEL_WIDTH) / 0.07), 40)
    figure.supxlabel("sum of the absolute errors of the classes' shares, with standard error", size=8)
    figure.suptitle(textwrap.fill(advice, wide), size=9, x=0.01, ha="left", parse_math=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _draw(
    axes: Axes,
    title: str,
    error: np.ndarray,
    spread: np.ndarray,
    best: np.ndarray,
    named: Rows,
    with_names: bool = True,
) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    places = np.arange(len(error))
    drawing.interval(axes, places, error - spread, error + spread, LINE, linewidth=1.3)
    axes.scatter(error, places, s=34, color=np.where(best, HIGH, LOW), zorder=3)
    for place in np.flatnonzero(np.isnan(error)).tolist():
        drawing.say(axes, place, "no answer", named)
    drawing.name_rows(axes, named, shown=with_names)
    drawing.from_zero(axes, error + np.nan_to_num(spread))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    drawing.finish(axes, title)
