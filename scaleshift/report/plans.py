"""What will a job cost, pass by pass?  A plan of `explain`, in rows and as bars."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.text import Text

from scaleshift.report import drawing
from scaleshift.report.drawing import GREEN, GREY, LOW, ORANGE
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure

    from scaleshift.blocks.plan import Plan

PARTS = {"reading": ("read_seconds", GREY), "computing": ("kernel_seconds", LOW), "finishing": ("finish_seconds", ORANGE)}
DRIVER = "on the driver"
PANEL_WIDTH, EXTRA = 3.4, 1.3  # inches


def plan_table(plan: Plan, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Passes in rows, with all that the plan knows of each.

    Parameters
    ----------
    plan : Plan
        What `scaleshift.explain` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns what, over, n_blocks, n_tasks, bytes and seconds of a pass, times, and cpu_seconds of all times.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> plan = ss.explain(ss.DFM(), np.zeros((1_000, 3)), np.repeat(["a", "b"], 500))
    >>> plan_table(plan)["what"].tolist()[:2]
    ['labels counted', 'labelled rows drawn']
    """
    rows = [{**asdict(part), "over": ", ".join(part.over), "cpu_seconds": part.cpu_seconds} for part in plan.passes]
    return save_csv(pd.DataFrame(rows), path)


def plan_text(plan: Plan, *, width: int | None = None) -> Printed:
    """The plan as it prints itself.

    Parameters
    ----------
    plan : Plan
        What `scaleshift.explain` returns.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> plan = ss.explain(ss.DFM(), np.zeros((1_000, 3)), np.repeat(["a", "b"], 500))
    >>> print(str(plan_text(plan, width=100)).splitlines()[0])
    DFM.fit: 2 passes over X, 2 over a column alone
    """
    return Printed(Text(str(plan), no_wrap=True, overflow="ignore"), width=width)


def plan_plot(plan: Plan, path: str | os.PathLike[str] | None = None) -> Figure:
    """Core time and memory of each pass, as bars.

    Parameters
    ----------
    plan : Plan
        What `scaleshift.explain` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> plan = ss.explain(ss.DFM(), np.zeros((1_000, 3)), np.repeat(["a", "b"], 500))
    >>> [axes.get_title(loc="left") for axes in plan_plot(plan).axes]
    ['core time', 'memory of a thread']
    """
    named = drawing.rows([*(_name(part) for part in plan.passes), DRIVER])
    figure = drawing.figure(named.name_width + 2 * PANEL_WIDTH, named.height + EXTRA)
    time, memory = figure.subplots(1, 2)
    start = [0.0] * len(plan.passes)
    for name, (field, colour) in PARTS.items():
        spent = [part.times * getattr(part, field) for part in plan.passes]
        time.barh(range(len(spent)), spent, left=start, height=0.7, color=colour, label=name)
        start = [a + b for a, b in zip(start, spent, strict=True)]
    time.barh(len(start), plan.driver_seconds, height=0.7, color=GREEN, label=DRIVER)
    memory.barh(range(len(start)), [part.thread_bytes for part in plan.passes], height=0.7, color=LOW)
    for axes, title in ((time, "core time"), (memory, "memory of a thread")):
        _in_units(axes, axes is memory)
        drawing.name_rows(axes, named, shown=axes is time)
        axes.set_xlim(left=0)
        drawing.finish(axes, title)
    head = str(plan).splitlines()[:2] + [f"does not fit: {problem}" for problem in plan.problems]
    figure.suptitle("\n".join(head), size=9, x=0.01, ha="left", parse_math=False)
    figure.legend(loc="outside lower left", ncols=4, fontsize=drawing.SIZE, frameon=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _name(part: Any) -> str:
    times = f", {part.times} times" if part.times > 1 else ""
    return f"{part.what}{times}"


def _in_units(axes: Any, is_memory: bool) -> None:
    """Seconds, or bytes in steps of a thousand."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter("B" if is_memory else "s", sep=" "))
