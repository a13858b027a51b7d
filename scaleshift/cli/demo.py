"""scaleshift demo: the main job on the small real study that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scaleshift.cli import options
from scaleshift.cli.choice import Wanted
from scaleshift.cli.helping import Verb
from scaleshift.cli.opening import Opening
from scaleshift.cli.output import gated_shares
from scaleshift.cli.quantified import deliver
from scaleshift.cli.quantify import run
from scaleshift.doing import doing
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr


@click.command(
    cls=Verb,
    examples="""
scaleshift demo
scaleshift demo --output somewhere
""",
)
@options.results(
    click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("scaleshift-demo"),
        callback=options.folder,
        help="Folder for the study, the page, the tables and the picture.",
    ),
    options.as_json,
    options.quiet,
)
def demo(output: Path, as_json: bool, quiet: bool) -> None:
    """Quantify the demo study: from labelled cells in a Zarr store to a page, tables and a picture.

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
        result = run(Opening(store), source, None, Wanted())
        with doing("counting gates"):
            gated = gated_shares(result, store)
    deliver(result, gated, output, as_json, quiet)


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
