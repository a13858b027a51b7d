"""scaleshift demo: the main job on the small real study that ships with the package."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from scaleshift.cli import options
from scaleshift.cli.quantify import deliver, run
from scaleshift.errors import DataError


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("scaleshift-demo"),
    show_default=True,
    help="Folder for the study, proportions.csv and proportions.png.",
)
@options.all_of(options.as_json, options.quiet)
def demo(output: Path, as_json: bool, quiet: bool) -> None:
    """Quantify the demo study: from labelled cells in a Zarr store to a table, a CSV and a picture.

    Mass cytometry of blood, four gated populations; what no gate holds is the unknown population.
    """
    from scaleshift import datasets

    cells = datasets.load_demo()
    options.make_folder(output)
    store = output / "demo.zarr"
    _write(cells, store)
    names = cells["sample"].values.tolist()
    source = f"sample in ({names[0]}, {names[len(names) // 2]})"
    if not quiet:
        click.echo(f'scaleshift quantify {store} --source "{source}" --output {output}', err=True)
    with options.computing("local", quiet):
        result = run(store, source, None, random_state=0)
    deliver(result, output, as_json, quiet)
    if not quiet:
        click.echo(_beside_gates(result, cells), err=True)


def _write(cells: xr.Dataset, store: Path) -> None:
    """Write the study, or take the one that an earlier demo wrote."""
    from scaleshift.cells import write_cells
    from scaleshift.cells.manifest import read_manifest

    if not store.exists():
        write_cells(cells, store)
        return
    found = read_manifest(store)
    if not found.n_cells:
        raise DataError(f"{store} was not written to the end: delete it, and run the demo again")
    if found.n_cells != cells.sizes["cell"] or list(found.samples) != cells["sample"].values.tolist():
        raise DataError(f"{store} exists and is not the demo study: choose another --output")


def _beside_gates(result: xr.Dataset, cells: xr.Dataset) -> str:
    """How far the estimates are from the shares that the gates gave."""
    label, sample = cells["label_code"].values, cells["sample_code"].values
    errors, ungated = [], []
    for code, name in enumerate(cells["sample"].values):
        if name in result["sample"].values:
            shares = np.bincount(label[sample == code] + 1, minlength=cells.sizes["label"] + 1)
            shares = shares / shares.sum()
            ungated.append(shares[0])
            errors.append(np.abs(result["proportion"].sel(sample=name).values - shares[1:]))
    unknown = result["unknown"].values
    return (
        f"beside the gates: proportions differ by {100 * np.mean(errors):.1f} percentage points on average, "
        f"by {100 * np.max(errors):.1f} at most; unknown {_range(unknown)}, ungated {_range(ungated)}"
    )


def _range(shares: ArrayLike) -> str:
    return f"{100 * np.min(shares):.0f}-{100 * np.max(shares):.0f} %"
