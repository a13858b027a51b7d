"""Options that say what study some files make, of the verbs check and ingest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from scaleshift.cli.options import all_of, names


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


describe_study = all_of(
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
    click.option(
        "--transform",
        multiple=True,
        callback=_transform,
        metavar="NAME",
        help="auto, none, arcsinh:COFACTOR or logicle; for one marker MARKER=NAME. Can be repeated.",
    ),
    click.option(
        "--compensation",
        default="auto",
        show_default=True,
        metavar="auto|none|FILE",
        help="By each file's own matrix, not at all, or by the matrix in a CSV file.",
    ),
    click.option(
        "--scaling",
        type=click.Choice(["none", "robust", "z"]),
        default="none",
        show_default=True,
        callback=lambda context, parameter, value: None if value == "none" else value,
        help="Of each sample by itself: by its 1 % and 99 % quantiles, or its mean and deviation.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["raise", "rename"]),
        default="raise",
        show_default=True,
        help="What to do with channels of the same name.",
    ),
    click.option(
        "--data-sets",
        type=click.Choice(["raise", "split"]),
        default="raise",
        show_default=True,
        help="What to do with files that hold several data sets.",
    ),
    click.option("--sample", help="Column that holds the sample of each row, of tables and AnnData files."),
)
