"""What is known of an AnnData file, h5ad or Zarr? Its obs and var; X is read by rows."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.blocks.labels import factorize, suggestion
from scaleshift.cells.files.described import Described, Group, groups_of
from scaleshift.errors import DataError

SUFFIXES = (".h5ad", ".zarr")
SAMPLE_COLUMNS = ("sample", "sample_id")  # of obs, where the user names none


@dataclass(frozen=True, eq=False)
class AnnotatedReader:
    """Reader of X of an AnnData file, dense or sparse by rows."""

    path: str
    n_columns: int

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        if stop <= first:
            return np.empty((0, self.n_columns), np.float32)
        with opened(self.path) as root:
            block = _matrix(root)[first:stop]
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        return block if block.dtype in (np.float32, np.float64) else block.astype(np.float32)


def describe(path: str, sample: str | None = None) -> list[Described]:
    """Describe an AnnData file; columns of obs that are constant within samples become their metadata.

    Parameters
    ----------
    path : str
        An .h5ad file, or the folder of a Zarr store, v2 or v3.
    sample : str, optional
        Column of obs that holds the sample of each cell. Default: "sample" or "sample_id" where there is
        one, else the file is one sample.

    Raises
    ------
    DataError
        If it is no AnnData file, the column is missing, or X is neither dense nor sparse by rows.
    """
    with opened(path) as root:
        obs, var = _frame(root, "obs", path), _frame(root, "var", path)
        shape = tuple(_matrix(root).shape)
    if shape != (len(obs), len(var)):
        raise DataError(f"{path}: X has shape {shape}, obs and var tell {(len(obs), len(var))}")
    column = sample or next((name for name in SAMPLE_COLUMNS if name in obs.columns), None)
    names = [str(name) for name in var.index]
    return [
        Described(
            path=path,
            format="AnnData",
            cytometer="",
            n_events=shape[0],
            channels=tuple(names),
            markers=("",) * len(names),
            reader=AnnotatedReader(path, shape[1]),
            fingerprint=_fingerprint(path, obs, names, column),
            groups=_groups(path, obs, column) if column is not None else (),
        )
    ]


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The root of an AnnData file, closed afterwards."""
    try:
        import h5py
    except ImportError:
        raise DataError(f'{path}: reading AnnData needs anndata: pip install "scaleshift[anndata]"') from None
    if os.path.isdir(path):
        import zarr

        try:
            yield zarr.open_group(path, mode="r", use_consolidated=False)
        except (FileNotFoundError, ValueError, zarr.errors.BaseZarrError) as error:
            raise DataError(f"{path}: is no Zarr store that can be read ({error})") from error
        return
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"{path}: is no HDF5 file that can be read ({error})") from None
    with file:
        yield file


def _matrix(root: Any) -> Any:
    """X, of which rows can be taken."""
    from anndata.io import sparse_dataset

    X = root["X"]
    if hasattr(X, "shape"):
        return X
    kind = X.attrs.get("encoding-type", "")
    if kind != "csr_matrix":
        raise DataError(f"X is stored as {kind or '?'}: store it dense, or sparse by rows (csr_matrix)")
    return sparse_dataset(X)


def _frame(root: Any, name: str, path: str) -> pd.DataFrame:
    from anndata.io import read_elem

    if name not in root or "X" not in root:
        raise DataError(f"{path}: has no {name if name not in root else 'X'}: it is no AnnData file")
    try:
        return read_elem(root[name])
    except Exception as error:  # whatever anndata makes of a damaged file
        raise DataError(f"{path}: {name} cannot be read: {error}") from error


def _groups(path: str, obs: pd.DataFrame, column: str) -> tuple[Group, ...]:
    if column not in obs.columns:
        raise DataError(f"{path}: obs has no column {column!r}{suggestion(column, obs.columns)}")
    codes, samples = factorize(obs[column], f"{path}: {column}")
    if (codes < 0).any():
        raise DataError(f"{path}: {column} is missing for some cells: every cell needs a sample")
    groups = groups_of(codes, [str(name) for name in samples])
    constant = _constant(obs.drop(columns=column), codes, len(samples))
    return tuple(
        replace(group, metadata={name: values[i] for name, values in constant.items()})
        for i, group in enumerate(groups)
    )


def _constant(obs: pd.DataFrame, codes: np.ndarray, n_samples: int) -> dict[str, list[Any]]:
    """Columns with one value in each sample, as plain values by sample."""
    found = {}
    for name in obs.columns:
        values, categories = pd.factorize(obs[name])
        low, high = np.full(n_samples, len(categories)), np.full(n_samples, -2)
        np.minimum.at(low, codes, values)
        np.maximum.at(high, codes, values)
        if (low[high > -2] == high[high > -2]).all():
            plain = [None if i < 0 else categories[i] for i in high.tolist()]
            found[str(name)] = [v.item() if isinstance(v, np.generic) else v for v in plain]
    return {k: v for k, v in found.items() if all(isinstance(x, str | bool | int | float | None) for x in v)}


def _fingerprint(path: str, obs: pd.DataFrame, names: list[str], column: str | None) -> str:
    size = os.path.getsize(path) if Path(path).is_file() else 0
    samples = zlib.crc32(obs[column].astype(str).str.cat(sep="\n").encode()) if column in obs.columns else 0
    return f"{size}-{len(obs)}-{zlib.crc32(repr(names).encode()):08x}-{samples:08x}"
