"""What is known of an AnnData file, h5ad or Zarr? Its obs and var; X is read by rows."""

from __future__ import annotations

import os
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr
from scipy.sparse import csr_array

from scaleshift.blocks.labels import factorize
from scaleshift.blocks.treatment import TREATMENTS
from scaleshift.cells.arrays import values_by_sample
from scaleshift.cells.fcs.names import numbered
from scaleshift.cells.files.described import Described, Group, Wish, groups_of, reading, rows_read
from scaleshift.cells.manifest import read_manifest, refuse_unfinished
from scaleshift.cells.optional import optional
from scaleshift.cells.problem import Problem
from scaleshift.cells.reader import RECORD, store_at
from scaleshift.errors import DataError, SchemaError, one_line
from scaleshift.spelling import suggestion

SPARSE = {"data": "fiub", "indices": "iu", "indptr": "iu"}  # kinds of the parts of a sparse matrix
COPY = "get a complete copy"
DAMAGED = f"the file is damaged, {COPY}"
SUFFIXES = (".h5ad", ".zarr")
SAMPLE_COLUMNS = ("sample", "sample_id")  # of obs, where the user names none
MAX_TIMES, MAX_BYTES = 20, 4e9  # what interleaved samples may cost: both are passed before they are refused


@dataclass(frozen=True, eq=False)
class AnnotatedReader:
    """Reader of X of an AnnData file, dense or sparse by rows."""

    path: str
    n_columns: int

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        if stop <= first:
            return np.empty((0, self.n_columns), np.float32)
        with reading(self.path), opened(self.path) as root:
            X = root["X"]
            if hasattr(X, "shape"):
                block = X[first:stop]
            else:
                block = _sparse_rows(X, first, stop, self.n_columns, self.path)
        if len(block) < stop - first:
            raise DataError(f"{self.path}: ends at row {first + len(block)}: has the file changed?")
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            return block if block.dtype in (np.float32, np.float64) else block.astype(np.float32)


def claims(path: str) -> bool:
    """Whether a file or a folder is AnnData, by its name."""
    return path.rstrip(os.sep).lower().endswith(SUFFIXES)


def is_study(path: str) -> bool:
    """Whether a folder is a study of scaleshift, finished or not."""
    return os.path.isdir(os.path.join(path, *RECORD.split("/")))


def describe(path: str, wish: Wish) -> list[Described]:
    """Describe an AnnData file; columns of obs that are constant within samples become their metadata.

    It may be an .h5ad file or the folder of a Zarr store, v2 or v3; also a study of scaleshift, whose samples
    are all finished. `wish.sample` is the column of obs that holds the sample of each cell; by default
    "sample" or "sample_id" where there is one, else the file is one sample.

    Raises
    ------
    DataError
        If it is no AnnData file, the column is missing, X is neither dense nor sparse by rows, or the
        samples are so interleaved that reading them one by one would take too long.
    """
    problems = _study_remarks(path) if is_study(path) else ()
    with opened(path) as root:
        obs, var = _frame(root, "obs", path), _frame(root, "var", path)
        shape, row_bytes = _shape(_member(root, "X", path), path)
    if shape != (len(obs), len(var)):
        raise DataError(f"{path}: X has shape {shape}, obs and var tell {(len(obs), len(var))}: {DAMAGED}")
    column = wish.sample or next((name for name in SAMPLE_COLUMNS if name in obs.columns), None)
    groups = _groups(path, obs, column) if column is not None else ()
    _refuse_costly(groups, path, column, shape[0], row_bytes)
    names, renamed = _names(var, wish, path)
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
            problems=(*problems, *renamed),
            groups=groups,
        )
    ]


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The root of an AnnData file, closed afterwards."""
    if os.path.isdir(path):
        try:
            root = zarr.open_group(store_at(path, read_only=True), mode="r", use_consolidated=False)
        except (FileNotFoundError, ValueError, zarr.errors.BaseZarrError) as error:
            raise DataError(
                f"{path}: is no Zarr store that can be read ({one_line(error)}): {COPY}"
            ) from error
        yield root
        return
    h5py = optional("h5py", "anndata", f"{path}: reading AnnData")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DataError(f"{path}: is no HDF5 file that can be read ({one_line(error)}): {COPY}") from None
    with file:
        refuse_links(file, path)
        yield file


def refuse_links(file: Any, path: str) -> None:
    """Raise DataError for an HDF5 file parts of which lie in other files, to which it may point at will."""
    h5py = optional("h5py", "anndata", f"{path}: reading AnnData")

    def check(name: str, part: Any) -> None:
        if isinstance(part, h5py.Group):
            links = {each: part.get(each, getlink=True) for each in part}
            elsewhere = [each for each, link in links.items() if isinstance(link, h5py.ExternalLink)]
        else:
            elsewhere = [""] if part.is_virtual or part.external else []
        if elsewhere:
            place = "/".join(filter(None, (name, elsewhere[0])))
            raise DataError(f"{path}: {place} lies in another file: write one that holds all of it")

    check("", file)
    file.visititems(check)


def _shape(X: Any, path: str) -> tuple[tuple[int, ...], float]:
    """Shape of X, of which rows can be taken, and the bytes of a row, as it is kept."""
    if hasattr(X, "shape"):
        if len(X.shape) != 2 or X.dtype.kind not in "fiub":
            raise DataError(f"{path}: X is {X.dtype} of shape {X.shape}, expected a matrix of numbers")
        return tuple(X.shape), X.shape[1] * X.dtype.itemsize
    kind = X.attrs.get("encoding-type", "")
    if kind != "csr_matrix":
        raise DataError(
            f"{path}: X is stored as {kind or '?'}: store it dense, or sparse by rows (csr_matrix)"
        )
    parts = {name: _member(X, name, path) for name in ("data", "indices", "indptr")}
    for name, part in parts.items():
        if not hasattr(part, "shape") or part.ndim != 1 or part.dtype.kind not in SPARSE[name]:
            raise DataError(f"{path}: {name} of X is no list of numbers: {DAMAGED}")
    shape = tuple(int(n) for n in X.attrs["shape"])
    if parts["indptr"].shape != (shape[0] + 1,):
        raise DataError(
            f"{path}: X has {shape[0]} rows, but {parts['indptr'].shape[0]} entries in indptr: {DAMAGED}"
        )
    if parts["data"].shape != parts["indices"].shape:
        n, found = parts["data"].shape[0], parts["indices"].shape[0]
        raise DataError(f"{path}: X has {n} values and {found} columns of them: {DAMAGED}")
    stored = sum(parts[name].shape[0] * parts[name].dtype.itemsize for name in ("data", "indices"))
    return shape, stored / max(shape[0], 1)


def _sparse_rows(X: Any, first: int, stop: int, n_columns: int, path: str) -> np.ndarray:
    """Rows of a matrix that is stored sparse by rows; reads their part of it.

    What it says is checked: scipy takes it at its word, and writes to wherever it points.
    """
    ends = np.asarray(X["indptr"][first : stop + 1]).astype(np.int64)
    if (
        len(ends) != stop - first + 1
        or ends[0] < 0
        or ends[-1] > X["data"].shape[0]
        or (np.diff(ends) < 0).any()
    ):
        raise DataError(f"{path}: rows {first}-{stop - 1} of X do not lie within its values: {DAMAGED}")
    part = slice(int(ends[0]), int(ends[-1]))
    data, indices = np.asarray(X["data"][part]), np.asarray(X["indices"][part])
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        row = first + int(np.searchsorted(ends - ends[0], _strange(indices, n_columns), side="right")) - 1
        raise DataError(
            f"{path}: row {row} of X has a value in a column that is not there ({n_columns} are): {DAMAGED}"
        )
    rows = data, indices, ends - ends[0]
    return csr_array(rows, shape=(len(ends) - 1, n_columns)).toarray()


def _strange(indices: np.ndarray, n_columns: int) -> int:
    return int(np.argmax((indices < 0) | (indices >= n_columns)))


def _names(var: pd.DataFrame, wish: Wish, path: str) -> tuple[list[str], tuple[Problem, ...]]:
    """Names of the columns of X, each once."""
    names = [str(name) for name in var.index]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if not twice:
        return names, ()
    told = ", ".join(map(repr, twice[:5])) + (", ..." if len(twice) > 5 else "")
    if wish.duplicates == "raise":
        raise DataError(
            f"{path}: has names of var twice: {told}; pass duplicates='rename' (--duplicates rename)"
        )
    text = f"names of var stood twice and were numbered: {told}"
    return numbered(names, frozenset(twice)), (Problem("warning", path, text),)


def _member(group: Any, name: str, path: str) -> Any:
    """A part of a file; DataError where it is missing, or a link to nothing."""
    try:
        return group[name]
    except Exception as error:
        raise DataError(f"{path}: {name} cannot be read ({one_line(error)}): {COPY}") from error


def _frame(root: Any, name: str, path: str) -> pd.DataFrame:
    read_elem = optional("anndata.io", "anndata", f"{path}: reading AnnData").read_elem
    for wanted in (name, "X"):
        if wanted not in root:
            raise DataError(f"{path}: has no {wanted}: it is no AnnData file; leave it out")
    try:
        with warnings.catch_warnings():  # about older ways to write it
            warnings.simplefilter("ignore")
            frame = read_elem(_member(root, name, path))
    except DataError:
        raise
    except Exception as error:  # whatever anndata makes of a damaged file
        raise DataError(f"{path}: {name} cannot be read ({one_line(error)}): {COPY}") from error
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"{path}: {name} is no table: it is no AnnData file, or damaged; {COPY}")
    return frame


def _groups(path: str, obs: pd.DataFrame, column: str) -> tuple[Group, ...]:
    if column not in obs.columns:
        raise DataError(f"{path}: obs has no column {column!r}{suggestion(column, obs.columns)}")
    codes, samples = factorize(obs[column], f"{path}: {column}")
    if (codes < 0).any():
        raise DataError(
            f"{path}: {column} is missing for {(codes < 0).sum()} cells, first in row {codes.argmin()}: "
            "every cell needs a sample; name it, or leave these rows out"
        )
    groups = groups_of(codes, [str(name) for name in samples])
    constant = values_by_sample(obs, codes, len(samples), but=(column,))
    return tuple(
        replace(group, metadata={name: values[i] for name, values in constant.items()})
        for i, group in enumerate(groups)
    )


def _refuse_costly(
    groups: tuple[Group, ...], path: str, column: str | None, n_rows: int, row_bytes: float
) -> None:
    """Raise DataError where reading sample after sample means to read the file very often."""
    n_read = sum(rows_read(group.rows) for group in groups)
    if n_read > MAX_TIMES * n_rows and n_read * row_bytes > MAX_BYTES:
        reader = "read_zarr" if os.path.isdir(path) else "read_h5ad"
        raise DataError(
            f"{path}: the cells of its {len(groups)} samples are interleaved: reading one after the other "
            f"would read {n_read * row_bytes / 1e9:.0f} GB, the file {n_read / n_rows:.0f} times; sort its "
            f"cells first: adata = anndata.{reader}(path), then "
            f"adata[adata.obs[{column!r}].argsort(kind='stable')].copy().write_h5ad(another_path)"
        )


def _study_remarks(path: str) -> tuple[Problem, ...]:
    """What to know of a study that is taken as data; DataError where it is not finished."""
    try:
        manifest = read_manifest(path)
        refuse_unfinished(manifest)
    except SchemaError as error:
        raise DataError(str(error)) from error
    done = [name for name in TREATMENTS if getattr(manifest, name) not in (None, "none")]
    if not done:
        return ()
    text = f"is a study whose intensities are treated already ({', '.join(done)})"
    return (Problem("warning", path, text, "pass transform='none' and compensation='none'"),)


def _fingerprint(path: str, obs: pd.DataFrame, names: list[str], column: str | None) -> str:
    size = os.path.getsize(path) if Path(path).is_file() else 0
    samples = zlib.crc32(obs[column].astype(str).str.cat(sep="\n").encode()) if column in obs.columns else 0
    return f"{size}-{len(obs)}-{zlib.crc32(repr(names).encode()):08x}-{samples:08x}"
