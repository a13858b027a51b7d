"""How does an answer of scaleshift quantify leave: printed, as files, or as JSON?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaleshift.cli import printing
from scaleshift.cli.output import beside_gates, plain, write
from scaleshift.quantify.flags import codes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LEAST_WIDTH = 60  # columns: shares are narrow


def deliver(
    result: xr.Dataset,
    gated: pd.DataFrame | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    parents: Mapping[Any, Any] | None = None,
) -> None:
    """Print a result, and write it where --output says."""
    from scaleshift import report

    # Written first: nobody may be reading what is printed.
    remarks = [f"method: {result.attrs['choice']}"] if "choice" in result.attrs else []
    remarks += [] if output is None else write(result, output, gated, parents)
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        printing.show(report.text, result, least=LEAST_WIDTH)
        remarks += [] if gated is None else [beside_gates(result, gated)]
    printing.say(remarks, quiet)


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The result for machines; NaN becomes null. Version 1 of the schema."""
    from scaleshift.report.about import LISTS
    from scaleshift.report.metadata import sample_columns

    columns = {str(name): variable.values.tolist() for name, variable in result.data_vars.items()}
    scalars = {name: columns.pop(name) for name in list(columns) if not result[name].dims}
    labels = result["label"].values.tolist()
    by_label = [name for name in columns if "label" in result[name].dims]
    described = {name: values.tolist() for name, values in sample_columns(result, ()).items()}
    samples = []
    for i, sample in enumerate(result["sample"].values.tolist()):
        metadata = {name: plain(values[i]) for name, values in described.items()}
        rest = {name: plain(values[i]) for name, values in columns.items() if name not in by_label}
        shares = [
            {"label": label, **{name: plain(columns[name][i][j]) for name in by_label}}
            for j, label in enumerate(labels)
        ]
        flags = {"flag_codes": codes(rest["flag"])}
        samples.append({"sample": sample, "metadata": metadata, **rest, **flags, "labels": shares})
    attributes = {str(k): plain(v) for k, v in {**result.attrs, **scalars}.items()}
    for name in {"parameters", *LISTS} & set(attributes):  # a dataset's attributes are text
        attributes[name] = json.loads(attributes[name])
    return {"schema": "scaleshift.quantify/1", "attributes": attributes, "samples": samples}
