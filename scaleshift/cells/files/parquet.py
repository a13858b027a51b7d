"""What is known of a parquet file of events, one row an event? Its schema."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.cells.files.described import (
    TELLS_SAMPLE,
    Described,
    Group,
    Wish,
    fingerprint,
    groups_of,
    reading,
    refuse_torn,
)
from scaleshift.cells.optional import optional
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError, one_line
from scaleshift.spelling import suggestion

SUFFIXES = (".parquet", ".pq")
BATCH_ROWS = 16_384  # decoded at once


@dataclass(frozen=True, eq=False)
class ParquetReader:
    """Reader of the numbers of a parquet file; decodes a row group as far as it is wanted, and once."""

    path: str
    columns: tuple[str, ...]
    ends: np.ndarray  # (n_row_groups + 1,): row at which each row group starts; the number of rows

    def read(self, first: int, stop: int) -> np.ndarray:
        """Rows [first, stop)."""
        out = np.empty((max(stop - first, 0), len(self.columns)), np.float32)
        if not len(out):
            return out
        low = int(np.searchsorted(self.ends, first, side="right")) - 1
        high = int(np.searchsorted(self.ends, stop, side="left"))
        at = int(self.ends[low])  # row at which the next batch starts
        with reading(self.path), _open(self.path) as file:
            batches = file.iter_batches(
                BATCH_ROWS, row_groups=list(range(low, high)), columns=list(self.columns), use_threads=False
            )
            for batch in batches:
                begin, end = max(first, at), min(stop, at + batch.num_rows)
                if begin < end:
                    self._fill(out[begin - first : end - first], batch.slice(begin - at, end - begin))
                at += batch.num_rows
                if at >= stop:
                    return out
        raise DataError(f"{self.path}: ends at row {at}, {stop} were there: has the file changed?")

    def _fill(self, out: np.ndarray, batch: Any) -> None:
        for i, name in enumerate(self.columns):
            column = batch.column(name)
            if str(column.type).startswith("decimal"):
                column = column.cast("float64")
            with np.errstate(over="ignore"):  # beyond float32 is infinite
                out[:, i] = column.to_numpy(zero_copy_only=False)  # nulls become NaN


def claims(path: str) -> bool:
    """Whether a file is parquet, by its name."""
    return path.lower().endswith(SUFFIXES) and not os.path.isdir(path)


def describe(path: str, wish: Wish) -> list[Described]:
    """Describe a parquet file; the rows of a sample stand together where `wish.sample` names their column.

    Raises
    ------
    DataError
        If it is no parquet file, or no column holds numbers.
    """
    sample = wish.sample
    with _open(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if sample is not None and sample not in schema.names:
            raise DataError(f"{path}: has no column {sample!r}{suggestion(sample, schema.names)}")
        groups = _groups(path, file, sample) if sample is not None else ()
    index = [name for name in _index_columns(schema) if name != sample]
    fields = [(n, t) for n, t in zip(schema.names, schema.types, strict=True) if n != sample]
    numeric = [name for name, dtype in fields if name not in index and _is_number(dtype)]
    counts_of = Counter(schema.names)
    repeated = next((name for name in numeric if counts_of[name] > 1), None)
    if repeated is not None:
        raise DataError(f"{path}: column {repeated!r} stands twice: rename one of them")
    if not numeric:
        raise DataError(
            f"{path}: no column holds numbers; convert those of the markers, or leave the file out"
        )
    text = [name for name, _ in fields if name not in numeric and name not in index]
    problems = []
    if text:
        fix = TELLS_SAMPLE if sample is None else ""
        problems.append(Problem("note", path, f"columns of text are left out: {', '.join(text)}", fix))
    if index:
        problems.append(Problem("note", path, f"the index of the table is left out: {', '.join(index)}"))
    return [
        Described(
            path=path,
            format="parquet",
            cytometer="",
            n_events=metadata.num_rows,
            channels=tuple(numeric),
            markers=("",) * len(numeric),
            reader=ParquetReader(path, tuple(numeric), np.cumsum([0, *counts])),
            fingerprint=fingerprint(path),
            problems=tuple(problems),
            groups=groups,
        )
    ]


def _open(path: str) -> Any:
    arrow = optional("pyarrow", "parquet", f"{path}: reading parquet")
    parquet = optional("pyarrow.parquet", "parquet", f"{path}: reading parquet")
    try:
        return parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: is no parquet file that can be read ({one_line(error)}); get a complete copy"
        ) from None


def _index_columns(schema: Any) -> list[str]:
    """Columns that are the index of the pandas frame which was written: row numbers or names, no marker."""
    try:
        columns = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # metadata that are damaged tell nothing
        return []
    return [name for name in columns if isinstance(name, str) and name in schema.names]


def _is_number(dtype: Any) -> bool:
    types = optional("pyarrow.types", "parquet", "reading parquet")
    return bool(types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype))


def _groups(path: str, file: Any, sample: str) -> tuple[Group, ...]:
    names: dict[Any, int] = {}
    codes: list[np.ndarray] = []
    for batch in file.iter_batches(columns=[sample]):
        part, found = pd.factorize(batch.column(0).to_pandas())
        if (part < 0).any():
            first = sum(map(len, codes)) + int(part.argmin())
            raise DataError(
                f"{path}: {sample} is missing, first in row {first}: every row needs a sample; name it, or "
                "leave such rows out"
            )
        codes.append(np.array([names.setdefault(name, len(names)) for name in found], np.int64)[part])
    groups = groups_of(np.concatenate(codes) if codes else np.empty(0, np.int64), [str(n) for n in names])
    refuse_torn(groups, path, sample)
    return groups
