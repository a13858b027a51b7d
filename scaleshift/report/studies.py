"""What study do files make, and what was said of them?  Of `check` and `ingest`, and the labels of cells."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from scaleshift.blocks.sizes import count
from scaleshift.errors import DataError
from scaleshift.report import drawing
from scaleshift.report.drawing import GREY, HIGH, LOW
from scaleshift.report.files import save_csv, write_png
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure

    from scaleshift.cells.problem import Problem

FINDINGS = ("level", "place", "text", "fix")
LABELS = ("label", "parent", "n_cells", "n_samples")
LEVELS = {"error": "to mend", "warning": "warnings", "note": "notes"}
MOST_SAMPLES = 200
WIDTH, EXTRA = 5.0, 1.0  # inches


# What check and ingest say -----------------------------------------------------------------------------


def study_table(study: Any, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """What there is to say of the files, in rows: the worst first.

    Parameters
    ----------
    study : StudyPlan or IngestReport
        What `scaleshift.check` or `scaleshift.ingest` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns level ("error", "warning", "note"), place (file, sheet or sample), text, fix. No rows where
        there is nothing to say.

    Examples
    --------
    >>> list(study_table(_example()))
    ['level', 'place', 'text', 'fix']
    """
    rows = [problem.to_json() for problem in _sorted(study.problems)]
    return save_csv(pd.DataFrame(rows, columns=list(FINDINGS), dtype=object), path)


def study_text(study: Any, *, width: int | None = None) -> Printed:
    """Samples, cells and features of a study, what was chosen, and what there is to say of its files.

    Parameters
    ----------
    study : StudyPlan or IngestReport
        What `scaleshift.check` or `scaleshift.ingest` returns.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Examples
    --------
    >>> print(study_text(_example(), width=60))
    1 sample, 2 cells; 2 features: CD3, CD4
    """
    told = _told(study)
    head = f"{_size(told)}; {count(len(told.features), 'feature', 'features')}: {', '.join(told.features)}"
    listed = Table.grid(padding=(0, 1, 0, 0))
    listed.add_column(no_wrap=True)
    listed.add_column(overflow="fold")
    for problem in _sorted(study.problems):
        listed.add_row(Text(f"{problem.level}:"), Text(printable(problem)))
    said = [Text(printable(line)) for line in study.said]
    found = [listed] if study.problems else []
    return Printed(Text(printable(head), "bold"), *said, *found, width=width)


def study_plot(study: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Cells of each sample, as bars; orange where there is something to look at.

    Parameters
    ----------
    study : StudyPlan or IngestReport
        What `scaleshift.check` or `scaleshift.ingest` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If there are no samples, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> study_plot(_example()).axes[0].get_title(loc="left")
    '1 sample, 2 cells'
    """
    told = _told(study)
    odd = {told.samples[p.place] for p in study.problems if p.level != "note" and p.place in told.samples}
    number = {level: sum(p.level == level for p in study.problems) for level in LEVELS}
    doubts = [f"{n} {LEVELS[level]}" for level, n in number.items() if n and level != "note"]
    title = ", ".join([_size(told), *doubts])
    colours = [HIGH if sample in odd else LOW for sample in told.counts]
    legend = {"to look at: see the table": HIGH} if odd else {}
    return _bars(list(told.counts), {"": (list(told.counts.values()), colours)}, title, legend, path)


class _Told(NamedTuple):
    counts: Mapping[str, int]  # cells by sample
    features: Sequence[str]
    samples: Mapping[str, str]  # by path


def _told(study: Any) -> _Told:
    """What a plan and a report both know, each in its own words."""
    if hasattr(study, "counts"):
        columns = study.columns
        used = [
            name for name, is_feature in zip(columns.markers, columns.features, strict=True) if is_feature
        ]
        return _Told(study.counts, used, {part.file.path: part.sample for part in study.parts})
    counts: dict[str, int] = dict.fromkeys(study.samples, 0)
    for file in study.files:
        counts[file["sample"]] = counts.get(file["sample"], 0) + file["n_events"]
    return _Told(counts, study.features, {file["path"]: file["sample"] for file in study.files})


def _size(told: _Told) -> str:
    samples = count(len(told.counts), "sample", "samples")
    return f"{samples}, {count(sum(told.counts.values()), 'cell', 'cells')}"


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: list(LEVELS).index(problem.level))


# What label_cells says ---------------------------------------------------------------------------------


def label_table(report: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Labels in rows, with their cells and samples.

    Parameters
    ----------
    report : dict
        What `scaleshift.label_cells` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns label, parent, n_cells, n_samples.

    Examples
    --------
    >>> label_table(_labelled())["n_cells"].tolist()
    [2]
    """
    return save_csv(pd.DataFrame(report["labels"], columns=list(LABELS)), path)


def label_text(report: Mapping[str, Any], *, width: int | None = None) -> Printed:
    """Labels for the terminal, and remarks.

    Parameters
    ----------
    report : dict
        What `scaleshift.label_cells` returns.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Examples
    --------
    >>> print(label_text(_labelled(), width=60))
    2 of 3 cells have a label
    <BLANKLINE>
     label  cells  samples
     ─────────────────────
     B          2        1
    <BLANKLINE>
    """
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("label", overflow="fold")
    for heading in ("cells", "samples"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for entry in report["labels"]:
        shown.add_row(*map(Text, (printable(entry["label"]), str(entry["n_cells"]), str(entry["n_samples"]))))
    n_cells = report["n_labelled"] + report["n_unlabelled"]
    head = Text(f"{report['n_labelled']} of {n_cells} cells have a label", "bold")
    remarks = [Text(printable(f"{r['level']}: {r['place']}: {r['text']}")) for r in report.get("remarks", ())]
    return Printed(head, shown, *remarks, width=width)


def label_plot(report: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> Figure:
    """Cells of each sample with a label and without, as bars.

    Parameters
    ----------
    report : dict
        What `scaleshift.label_cells` returns.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object.

    Raises
    ------
    DataError
        If there are no samples, the suffix is not ``.png`` or the folder is missing.

    Examples
    --------
    >>> [text.get_text() for text in label_plot(_labelled()).legends[0].get_texts()]
    ['with a label', 'without']
    """
    names = [str(sample["sample"]) for sample in report["samples"]]
    n = np.array([[sample["n_labelled"], sample["n_cells"]] for sample in report["samples"]], float).reshape(
        -1, 2
    )
    parts = {"with a label": (n[:, 0].tolist(), LOW), "without": ((n[:, 1] - n[:, 0]).tolist(), GREY)}
    legend = {name: str(colour) for name, (_, colour) in parts.items()}
    n_cells = report["n_labelled"] + report["n_unlabelled"]
    return _bars(names, parts, f"{report['n_labelled']} of {n_cells} cells have a label", legend, path)


# The bars of both --------------------------------------------------------------------------------------


def _bars(
    names: Sequence[str],
    parts: Mapping[str, tuple[list[float], Any]],
    title: str,
    legend: Mapping[str, str],
    path: str | os.PathLike[str] | None,
) -> Figure:
    """Stacked bars of cells, one a sample."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import EngFormatter, MaxNLocator

    if not names:
        raise DataError("there are no samples to draw: see the table for what is to be mended")
    named = drawing.rows(names[:MOST_SAMPLES])
    figure = drawing.figure(named.name_width + WIDTH, named.height + EXTRA)
    axes = figure.subplots()
    start = np.zeros(len(named.names))
    for n_cells, colours in parts.values():
        shown = np.array(n_cells[:MOST_SAMPLES], float)
        colour = colours if isinstance(colours, str) else colours[:MOST_SAMPLES]
        axes.barh(range(len(shown)), shown, left=start, height=0.7, color=colour)
        start = start + shown
    drawing.name_rows(axes, named)
    axes.set_xlim(0, max(1.05 * start.max(), 1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_xlabel("cells", size=drawing.SIZE)
    drawing.finish(axes, title + (f": the first {MOST_SAMPLES} samples" if len(names) > MOST_SAMPLES else ""))
    if legend:
        handles = [Patch(color=colour) for colour in legend.values()]
        figure.legend(handles, list(legend), loc="outside lower left", ncols=2, fontsize=8, frameon=False)
    if path is not None:
        write_png(figure, path)
    return figure


def _example() -> Any:
    """A study of one file, for the examples of this page."""
    from scaleshift.cells.intake.report import IngestReport

    files = ({"path": "s1.csv", "sample": "s1", "n_events": 2},)
    treatment = {"transform": None, "compensation": "none", "scaling": None}
    names = {"markers": ("CD3", "CD4"), "features": ("CD3", "CD4"), "samples": ("s1",)}
    told = {"said": (), "left_out": (), "problems": ()}
    return IngestReport(store="study.zarr", n_cells=2, files=files, **treatment, **names, **told)  # type: ignore


def _labelled() -> dict[str, Any]:
    """One label, for the examples of this page."""
    label = {"label": "B", "parent": None, "n_cells": 2, "n_samples": 1}
    samples = [{"sample": "S1", "n_cells": 3, "n_labelled": 2}]
    return {"labels": [label], "samples": samples, "n_labelled": 2, "n_unlabelled": 1, "remarks": []}
