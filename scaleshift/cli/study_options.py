"""Options that say what study some files make, of the verbs check and ingest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from scaleshift.cli import completing
from scaleshift.cli.helping import OneOf, in_section
from scaleshift.cli.options import names


def _transform(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> Any:
    """One choice for all markers, or some by name."""
    by_name = dict(text.split("=", 1) for text in given if "=" in text)
    general = [text for text in given if "=" not in text]
    if len(general) > 1:
        raise click.BadParameter(f"{' and '.join(general)}: expected one for all, others as MARKER=TRANSFORM")
    every = general[0] if general else "auto"
    return by_name | {"default": every} if by_name else every


def _markers(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    """The word "common", or names."""
    return text if text is None or text == "common" else names(text)


describe_study = in_section(
    "What the files hold",
    click.option(
        "--meta",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Sample sheet, CSV, TSV or XLSX: file_name, sample_id, and any other columns.",
    ),
    click.option(
        "--panel",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Panel sheet: fcs_colname, antigen, marker_class.",
    ),
    click.option(
        "--markers",
        callback=_markers,
        metavar="common|A,B,...",
        help="Features: those that all files have, or these. Where left out: all, which all files must have.",
    ),
    click.option("--sample", help="Column that holds the sample of each row, of tables and AnnData files."),
    click.option(
        "--duplicates",
        type=OneOf(["raise", "rename"]),
        default="raise",
        help="What to do with channels of the same name.",
    ),
    click.option(
        "--data-sets",
        type=OneOf(["raise", "split"]),
        default="raise",
        help="What to do with files that hold several data sets.",
    ),
)
treat = in_section(
    "What is done to intensities",
    click.option(
        "--transform",
        multiple=True,
        callback=_transform,
        metavar="NAME",
        shell_complete=completing.some_of("auto", "none", "arcsinh:", "logicle"),
        help="auto, none, arcsinh:COFACTOR or logicle; for one marker MARKER=NAME. Can be repeated. Where "
        "left out: auto, by the instrument.",
    ),
    click.option(
        "--compensation",
        default="auto",
        metavar="auto|none|FILE",
        shell_complete=completing.some_of("auto", "none"),
        help="By each file's own matrix, not at all, or by the matrix in a CSV file.",
    ),
    click.option(
        "--scaling",
        type=OneOf(["none", "robust", "z"]),
        default="none",
        callback=lambda context, parameter, value: None if value == "none" else value,
        help="Of each sample by itself: by its 1 % and 99 % quantiles, or its mean and deviation.",
    ),
)
