"""scaleshift label: labels of a study on disk, from a table, gates, a FlowJo workspace or a channel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaleshift.cli import completing, options, printing
from scaleshift.cli.helping import OneOf, Verb, in_section
from scaleshift.doing import doing


def _words(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    """Words between commas."""
    return None if text is None else [word.strip() for word in text.split(",")]


@click.command(
    cls=Verb,
    examples="""
scaleshift label study.zarr labels.csv
scaleshift label study.zarr cells.h5ad --column cell_type --sample donor
scaleshift label study.zarr gates/ --gates "B cells,T cells" --overlap first
scaleshift label study.zarr analysis.wsp --fcs data/
""",
)
@options.store
@click.argument("labels", shell_complete=completing.files)
@in_section(
    "Tables",
    click.option("--column", help="Column of a table with the labels; 'label' where left out."),
    click.option("--sample", help="Column of a table with the samples, where it is not called sample."),
    click.option(
        "--first-event",
        type=OneOf(["0", "1"]),
        help="Number of a file's first event; where left out, the events tell, if they can.",
    ),
    click.option(
        "--unlabelled",
        callback=_words,
        metavar="A,B,...",
        help="Words that mean no label, names of gates too, with commas between them; where left out: "
        "0,ungated,unlabeled,unlabelled,unknown.",
    ),
)
@in_section(
    "Gates",
    click.option(
        "--gates", callback=_words, metavar="A,B,...", help="Only these gates, with commas between them."
    ),
    click.option(
        "--parents", type=click.Path(path_type=Path), help="Sheet with the columns label and parent."
    ),
    click.option(
        "--overlap",
        type=OneOf(["refuse", "first"]),
        help="Cells in two gates neither of which is part of the other: refuse (where left out), or first: "
        "the deeper gate counts, of two as deep the one that stands first, in --gates, else by name, "
        "or in the workspace.",
    ),
    click.option(
        "--fcs",
        multiple=True,
        type=click.Path(path_type=Path),
        help="FCS files of a workspace, or their folder; may be given several times.",
    ),
)
@options.results(options.as_json, options.quiet)
def label(
    store: str,
    labels: str,
    column: str | None,
    sample: str | None,
    unlabelled: Sequence[str] | None,
    first_event: str | None,
    parents: Path | None,
    gates: Sequence[str] | None,
    overlap: str | None,
    fcs: Sequence[Path],
    as_json: bool,
    quiet: bool,
) -> None:
    """Write labels into STORE, in place of those that it has.

    \b
    LABELS is one of
      labels.csv       table with the columns file or sample, event, label (also .tsv, .parquet)
      cells.h5ad       AnnData, also as Zarr: --column of obs, beside sample (and event)
      gates/           a folder with GATE.csv (columns file or sample, event), or SAMPLE/GATE.csv;
                       of gates inside each other the inner one counts
      analysis.wsp     a FlowJo workspace; each cell gets its deepest gate
      channel:NAME     a column of the study that holds whole numbers
      none             takes away the labels that there are

    Without the column event, the rows of each sample are its events in order.
    """
    from scaleshift.cells import label_cells

    with options.computing("local", quiet), doing("finding labels"):
        report = label_cells(
            store,
            labels,
            column=column,
            sample=sample,
            first_event=None if first_event is None else int(first_event),
            parents=parents,
            gates=gates,
            overlap=overlap,
            fcs=list(fcs) or None,
            **({} if unlabelled is None else {"unlabelled": unlabelled}),
        )
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        Console().print(_table(report))
    printing.say(map(_in_words, report["remarks"]), quiet)


def _in_words(remark: Mapping[str, str]) -> str:
    fix = f"; {remark['fix']}" if remark["fix"] else ""
    return f"{remark['level']}: {remark['place']}: {remark['text']}{fix}"


def _table(report: Mapping[str, Any]) -> Table:
    from scaleshift.report.names import printable

    shown = Table(
        title=f"{report['n_labelled']} of {report['n_cells']} cells have a label", title_justify="left"
    )
    parents = bool(report["parents"])
    shown.add_column("label", overflow="fold")
    if parents:
        shown.add_column("part of", overflow="fold")
    shown.add_column("cells", justify="right")
    shown.add_column("samples", justify="right")
    for entry in report["labels"]:
        parent = [Text(printable(entry["parent"] or ""))] if parents else []
        name = Text(printable(entry["label"]))
        shown.add_row(name, *parent, str(entry["n_cells"]), str(entry["n_samples"]))
    without = sum(sample["n_labelled"] < sample["n_cells"] for sample in report["samples"])
    blank = [""] if parents else []
    shown.add_row(Text("unlabelled", "italic"), *blank, str(report["n_unlabelled"]), str(without))
    return shown
