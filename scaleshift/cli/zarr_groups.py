"""How does a result become a Zarr group of the --output folder?  As a whole, never in place of a user's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

OURS = "scaleshift_version"  # attribute of what is written here


def write(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset as a Zarr v3 group, which replaces one of an earlier run once it is complete."""
    from scaleshift.blocks import blas

    refuse_foreign(path)
    text = {
        name: values.astype(object) for name, values in dataset.variables.items() if values.dtype.kind == "U"
    }
    dataset = dataset.assign(text)  # of variable length: text of fixed width is outside the Zarr v3 spec
    staged = path.with_name(f".{path.name}-{uuid4().hex}")
    try:
        with blas.one_thread():
            dataset.to_zarr(staged, zarr_format=3, consolidated=False)
        if path.exists():
            shutil.rmtree(path)
        staged.rename(path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def refuse_foreign(path: Path) -> None:
    """Raise DataError where something stands that `write` did not leave."""
    if path.exists() and not is_ours(path):
        raise DataError(
            f"{path} is there, and scaleshift did not write it: choose another --output, or delete it"
        )


def is_ours(path: Path) -> bool:
    """Whether a folder is what `write` leaves."""
    try:
        return OURS in json.loads((path / "zarr.json").read_bytes())["attributes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
