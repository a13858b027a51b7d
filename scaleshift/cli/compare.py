"""scaleshift compare: which method answers best for this study?  A league table on its labelled samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaleshift.cli import completing, html_page, options, printing, zarr_groups
from scaleshift.cli.helping import OneOf, Verb, in_section
from scaleshift.cli.html_page import PAGE
from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.output import plain
from scaleshift.cli.results import LEAGUE
from scaleshift.doing import doing
from scaleshift.quantify.methods import available
from scaleshift.spelling import meant

if TYPE_CHECKING:
    import xarray as xr

TABLE = "league.csv"


def _methods(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    """Names between commas; an unknown one is wrong usage."""
    found = None if text is None else options.names(text)
    unknown = sorted(set(found or ()) - set(available()))
    if unknown or found == []:
        named = ", ".join(unknown) or repr(text)
        hint = meant(unknown[0], available()) if unknown else ""
        raise click.BadParameter(f"{named}: expected some of {', '.join(available())}{hint}")
    return found


@click.command(
    cls=Verb,
    examples="""
scaleshift compare study.zarr --source "gated == true" --output results
scaleshift compare study.zarr --methods soft-landmarks,hard-landmarks
""",
)
@options.store
@in_section(
    "Which samples",
    click.option(
        "--source",
        default=EVERY,
        shell_complete=completing.selection,
        help=f"Samples whose labels are compared on: {options.SELECTION}.",
    ),
    options.markers,
    click.option(
        "--scaling",
        type=OneOf(["none", "robust", "z"]),
        help="Scale the markers of each sample by itself. Where left out: as the study is scaled.",
    ),
    options.invalid,
)
@in_section(
    "How",
    click.option(
        "--methods",
        "names",
        metavar="A,B,...",
        callback=_methods,
        shell_complete=completing.list_of(*available()),
        help="Methods to compare, as --method of quantify names them. Where left out: one of each kind.",
    ),
    click.option(
        "--draws",
        "n_draws",
        type=click.IntRange(1),
        default=5,
        help="Targets with resampled shares, of each source.",
    ),
    click.option(
        "--left-out",
        "n_left_out",
        type=click.IntRange(1),
        default=6,
        help="Classes and samples left out in turn, at most.",
    ),
    click.option(
        "--cells",
        "cells_per_sample",
        type=click.IntRange(100),
        default=5_000,
        help="Cells drawn of each sample.",
    ),
    click.option("--seed", default=0, help="Of the draws and the methods."),
)
@options.results(options.output_of(f"{PAGE}, {TABLE} and {LEAGUE}"), options.as_json, options.quiet)
@options.running(options.scheduler)
def compare(
    store: str,
    source: str,
    names: Sequence[str] | None,
    markers: list[str] | None,
    scaling: str | None,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    scheduler: str,
    **settings: Any,
) -> None:
    """Compare methods on the labelled samples of STORE, and recommend one.

    Each method learns from a part of the labelled cells and answers for another, whose shares are known: with
    shares resampled, with a class left out of the source, and with a sample left out.
    """
    from scaleshift import report
    from scaleshift.quantify import compare as compared

    options.refuse_inside(output, store)
    options.make_folder(output)
    if output is not None:
        html_page.refuse_foreign(output)
        zarr_groups.refuse_foreign(output / LEAGUE)
    with options.computing(scheduler, quiet):
        study = Opening(store, markers, scaling)
        cells = study.labelled(study.select(source, "--source"))
        with doing("comparing"):
            result = compared(names, cells, random_state=seed, **settings)
    remarks = [] if output is None else write(result, output)
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        printing.show(report.league_text, result)
    printing.say(remarks, quiet)


def write(result: xr.Dataset, output: Path) -> list[str]:
    """Write page, table and dataset; the remark returned says what was written."""
    from scaleshift import report

    with html_page.after_all(output, result):
        report.league(result, output / TABLE)
        zarr_groups.write(result, output / LEAGUE)
    return [printing.wrote(output / name for name in (PAGE, TABLE, LEAGUE))]


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The league table for machines, best method first; NaN becomes null. Version 1 of the schema."""
    from scaleshift import report

    found: dict[Any, dict[str, Any]] = {}
    for row in report.league(result).to_dict("records"):
        entry = {str(name): plain(value) for name, value in row.items()}
        of_method = {name: entry.pop(name) for name in ("method", "recommended", "score")}
        found.setdefault(of_method["method"], {**of_method, "settings": []})["settings"].append(entry)
    attributes = {str(name): value for name, value in result.attrs.items()}
    for name in ("samples", "methods"):  # a dataset's attributes are text
        attributes[name] = json.loads(attributes[name])
    return {"schema": "scaleshift.compare/1", "attributes": attributes, "methods": list(found.values())}
