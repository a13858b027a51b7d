"""What is known of a parquet file of events, one row an event? Its schema."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.cells.files.described import Described, Group, groups_of
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError

SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class ParquetReader:
    """Reader of the numbers of a parquet file, by whole row groups."""

    path: str
    columns: tuple[str, ...]
    ends: np.ndarray  # (n_row_groups + 1,): row at which each row group starts; the number of rows

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        if stop <= first:
            return np.empty((0, len(self.columns)), np.float32)
        low = int(np.searchsorted(self.ends, first, side="right")) - 1
        high = int(np.searchsorted(self.ends, stop, side="left"))
        with _open(self.path) as file:
            table = file.read_row_groups(
                list(range(low, high)), columns=list(self.columns), use_threads=False
            )
        start = int(self.ends[low])
        piece = table.slice(first - start, stop - first)
        values = [piece.column(name).to_numpy() for name in self.columns]  # nulls become NaN
        return np.stack(values, axis=1).astype(np.float32, copy=False)


def describe(path: str, sample: str | None = None) -> list[Described]:
    """Describe a parquet file.

    Parameters
    ----------
    path : str
    sample : str, optional
        Column that holds the sample of each row; the rows of a sample stand together.

    Raises
    ------
    DataError
        If it is no parquet file, or no column holds numbers.
    """
    with _open(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if sample is not None and sample not in schema.names:
            raise DataError(f"{path}: has no column {sample!r}; it has {', '.join(schema.names[:8])}")
        groups = _groups(path, file, sample) if sample is not None else ()
    numeric = [n for n, t in zip(schema.names, schema.types, strict=True) if n != sample and _is_number(t)]
    repeated = next((name for name in numeric if schema.names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{path}: column {repeated!r} stands twice: rename one of them")
    if not numeric:
        raise DataError(f"{path}: no column holds numbers")
    text = [name for name in schema.names if name not in numeric and name != sample]
    problems = [Problem("note", path, f"columns of text are left out: {', '.join(text)}")] if text else []
    return [
        Described(
            path=path,
            format="parquet",
            cytometer="",
            n_events=metadata.num_rows,
            channels=tuple(numeric),
            markers=("",) * len(numeric),
            reader=ParquetReader(path, tuple(numeric), np.cumsum([0, *counts])),
            fingerprint=f"{os.path.getsize(path)}-{metadata.num_rows}",
            problems=tuple(problems),
            groups=groups,
        )
    ]


def _open(path: str) -> Any:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(f'{path}: reading parquet needs pyarrow: pip install "scaleshift[parquet]"') from None
    try:
        return ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: is no parquet file that can be read ({error})") from None


def _is_number(dtype: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))


def _groups(path: str, file: Any, sample: str) -> tuple[Group, ...]:
    names: dict[Any, int] = {}
    codes = []
    for batch in file.iter_batches(columns=[sample]):
        part, found = pd.factorize(batch.column(0).to_pandas())
        if (part < 0).any():
            raise DataError(f"{path}: {sample} is missing in some rows: every row needs a sample")
        codes.append(np.array([names.setdefault(name, len(names)) for name in found])[part])
    groups = groups_of(np.concatenate(codes) if codes else np.empty(0, np.int64), [str(n) for n in names])
    torn = next((group.sample for group in groups if not isinstance(group.rows, slice)), None)
    if torn is not None:
        raise DataError(
            f"{path}: the rows of {sample} {torn!r} do not stand together: sort the file by {sample}"
        )
    return groups
