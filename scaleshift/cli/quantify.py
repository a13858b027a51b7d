"""scaleshift quantify: class proportions of unlabelled samples from the labelled cells of others."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import xarray as xr
from rich.console import Console

from scaleshift.cli import options
from scaleshift.errors import DataError

MIN_WIDTH = 60
METHODS = {"soft-fourier": {"soft": True}, "hard-fourier": {"soft": False}}


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--source", required=True, help='Samples to learn from: "sample in (S1, S2)".')
@click.option("--target", help='Samples to quantify: "sample == S3". All others where left out.')
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="soft-fourier",
    show_default=True,
    help="soft: some cells may belong to no class of the source.",
)
@click.option(
    "--bandwidth", default="auto", show_default=True, help="Of the kernel, in the units of the markers."
)
@click.option(
    "--features",
    "n_features",
    type=click.IntRange(2, 100_000),
    default=1000,
    show_default=True,
    help="Random Fourier features.",
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="What to do with cells that hold NaN or infinite values.",
)
@click.option("--seed", default=0, show_default=True, help="Of the random features.")
@options.all_of(options.output, options.as_json, options.quiet, options.scheduler)
def quantify(
    store: Path,
    source: str,
    target: str | None,
    method: str,
    bandwidth: str,
    n_features: int,
    invalid: str,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    scheduler: str,
) -> None:
    """Class proportions of the samples of STORE.

    STORE is a study written by scaleshift.write_cells. The labelled cells of the source samples are
    learned from; cells without a label are left out. Samples are selected by name: ==, !=, in (a, b),
    joined by "and".

    \b
    scaleshift quantify study.zarr --source "sample in (S01, S09)" --output results
    """
    options.make_folder(output)
    settings = {"bandwidth": _number(bandwidth), "invalid": invalid, "random_state": seed}
    with options.computing(scheduler, quiet):
        result = run(store, source, target, n_features=n_features, **METHODS[method], **settings)
    deliver(result, output, as_json, quiet)


def run(
    store: Path, source: str, target: str | None, *, n_features: int = 1000, **settings: Any
) -> xr.Dataset:
    """Fit on the source samples of a store and predict its target samples."""
    from scaleshift.cells.manifest import read_manifest
    from scaleshift.quantify.dfm import DFM
    from scaleshift.quantify.features import FourierFeatures

    samples = read_manifest(store).samples
    sources = _select(source, samples, "--source")
    others = [name for name in samples if name not in sources]
    targets = others if target is None else _select(target, samples, "--target")
    if not targets:
        raise click.UsageError("--source selects every sample: none is left to quantify; pass --target")
    model = DFM(FourierFeatures(n_features), **settings)
    return model.fit(_open(store, sources)).predict(_open(store, targets))


def _select(text: str, samples: Sequence[Any], option: str) -> list[Any]:
    from scaleshift.cells.selection import select_samples

    try:
        return select_samples(text, {"sample": samples})
    except DataError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _open(store: Path, samples: list[Any]) -> xr.Dataset:
    """These samples of a study, without the labels that none of their cells has."""
    from scaleshift.blocks import passes
    from scaleshift.blocks.rows import as_rows
    from scaleshift.cells import open_cells

    cells = open_cells(store, samples=samples)
    if not cells.sizes["label"]:
        return cells
    used = passes.counts(as_rows(cells), "label") > 0
    return open_cells(store, samples=samples, labels=cells["label"].values[used])


def deliver(result: xr.Dataset, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Print a result, and write it where --output says."""
    from scaleshift import report

    if output is not None:  # first: nobody may be reading what is printed
        report.table(result, output / "proportions.csv")
        report.plot(result, output / "proportions.png")
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        width = max(Console().width, MIN_WIDTH)  # a narrower terminal wraps lines, but no number is cut
        Console(width=width).print(report.text(result, width=width))
    if output is not None and not quiet:
        click.echo(f"wrote {output / 'proportions.csv'} and {output / 'proportions.png'}", err=True)


def to_json(result: xr.Dataset) -> dict[str, Any]:
    """The result for machines; NaN becomes null. Version 1 of the schema."""
    columns = {str(name): variable.values.tolist() for name, variable in result.data_vars.items()}
    scalars = {name: columns.pop(name) for name in list(columns) if not result[name].dims}
    labels = result["label"].values.tolist()
    by_label = [name for name in columns if "label" in result[name].dims]
    samples = []
    for i, sample in enumerate(result["sample"].values.tolist()):
        rest = {name: _plain(values[i]) for name, values in columns.items() if name not in by_label}
        shares = [
            {"label": label, **{name: _plain(columns[name][i][j]) for name in by_label}}
            for j, label in enumerate(labels)
        ]
        samples.append({"sample": sample, **rest, "labels": shares})
    attributes = {str(k): _plain(v) for k, v in {**result.attrs, **scalars}.items()}
    return {"schema": "scaleshift.quantify/1", "attributes": attributes, "samples": samples}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
