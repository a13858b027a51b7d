"""How does a result become a Zarr group of the --output folder?  As a whole, never in place of a user's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from scaleshift.errors import DataError, one_line

if TYPE_CHECKING:
    import xarray as xr

OURS = "scaleshift_version"  # attribute of what is written here
LARGEST = 2**31  # bytes: a forged store tells any size
ORDER = "variables"  # attribute: their names in order, which a folder does not keep


def write(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset as a Zarr v3 group, which replaces one of an earlier run once it is complete."""
    from scaleshift.blocks import blas

    refuse_foreign(path)
    of_objects = {name: values for name, values in dataset.variables.items() if values.dtype.kind in "UO"}
    dataset = dataset.assign({name: _storable(values) for name, values in of_objects.items()})
    dataset = dataset.assign_attrs({ORDER: json.dumps([str(name) for name in dataset.variables])})
    staged = path.with_name(f".{path.name}-{uuid4().hex}")
    try:
        with blas.one_thread():
            dataset.to_zarr(staged, zarr_format=3, consolidated=False)
        if path.exists():
            shutil.rmtree(path)
        staged.rename(path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _storable(values: xr.Variable) -> xr.Variable:
    """Objects as numbers where all that are known are such, else as text, "" where nothing is known.

    Text is of variable length: that of fixed width is outside the Zarr v3 spec.
    """
    objects = values.values.ravel().tolist()
    known = [value for value in objects if value is not None and value == value]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return values.copy(data=np.array(objects, float).reshape(values.shape))
    told = ["" if value is None or value != value else str(value) for value in objects]
    return values.copy(data=np.array([*told, None], object)[:-1].reshape(values.shape))


def read(path: Path) -> xr.Dataset:
    """A dataset as it was written; what comes from elsewhere is opened with as little trust as any store."""
    import xarray as xr

    from scaleshift.cells.reader import store_at

    try:
        store = store_at(os.fspath(path), read_only=True)
        lazy = xr.open_zarr(store, zarr_format=3, consolidated=False, chunks=None)
        if lazy.nbytes > LARGEST:
            raise DataError(f"{lazy.nbytes:,} bytes are no result")
        found = lazy.load()
    except Exception as error:  # whatever xarray and zarr make of something else
        raise DataError(f"{path} cannot be read as a Zarr v3 group ({one_line(error)})") from error
    order = {name: i for i, name in enumerate(_names(found.attrs.pop(ORDER, "[]")))}
    names = sorted(found.variables, key=lambda name: order.get(str(name), len(order)))
    coordinates = {name: _plain(found.variables[name]) for name in names if name in found.coords}
    data = {name: _plain(found.variables[name]) for name in names if name not in found.coords}
    return xr.Dataset(data, coordinates, found.attrs)


def _plain(values: xr.Variable) -> xr.Variable:
    """Text as objects: Zarr gives numpy's own strings of variable length, which little can handle yet."""
    return values.astype(object) if values.dtype.kind == "T" else values


def _names(text: Any) -> list[str]:
    try:
        return [str(name) for name in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        return []


def refuse_foreign(path: Path) -> None:
    """Raise DataError where something stands that `write` did not leave."""
    if os.path.lexists(path) and not is_ours(path):
        raise DataError(
            f"{path} is there, and scaleshift did not write it: choose another --output, or delete it"
        )


def is_ours(path: Path) -> bool:
    """Whether a folder is what `write` leaves; never one that a link leads to."""
    if path.is_symlink() or not (path / "zarr.json").is_file():  # to open a pipe would wait
        return False
    try:
        return OURS in json.loads((path / "zarr.json").read_bytes())["attributes"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
