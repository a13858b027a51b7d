"""Which files of events are there, and what is known of each? One module a format."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from scaleshift.blocks.labels import natural_key
from scaleshift.cells.fcs.names import Duplicates
from scaleshift.cells.files import annotated, fcs, parquet, tables
from scaleshift.cells.files.described import Described
from scaleshift.cells.problem import Problem
from scaleshift.errors import DataError

FORMATS = (fcs, annotated, parquet, tables)  # in this order a folder is looked through


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[list[str], list[Problem]]:
    """Absolute paths of the files of events, each once, and remarks on what was passed over.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files, folders, patterns such as "day1/*.fcs". Of a folder, not of those in it, the files of one
        format are taken: FCS (also by their first bytes, whatever they are called), else AnnData, else
        parquet, else CSV; a sample sheet beside FCS files is then no data.

    Raises
    ------
    DataError
        If a path does not exist, or a folder holds no such file.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    problems: list[Problem] = []
    for path in [os.fspath(one) for one in given]:
        if os.path.isdir(path) and not path.rstrip(os.sep).endswith(annotated.SUFFIXES):
            taken, left = _of_folder(path)
            found += taken
            if left:
                names = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
                problems.append(Problem("note", path, f"{len(left)} other files are passed over: {names}"))
        elif os.path.lexists(path):
            found.append(path)
        else:
            matches = sorted(glob.glob(path), key=natural_key)
            if not matches:
                raise DataError(f"{path}: no such file or folder")
            found += matches
    return list(dict.fromkeys(os.path.abspath(path) for path in found)), problems


def describe(
    path: str, duplicates: Duplicates = "raise", data_sets: str = "raise", sample: str | None = None
) -> list[Described]:
    """Describe one file of events: one entry, or one a data set.

    Raises
    ------
    DataError
        If it cannot be read; the message starts with the path.
    """
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file")
    try:
        if path.rstrip(os.sep).lower().endswith(annotated.SUFFIXES):
            return annotated.describe(path, sample)
        if path.lower().endswith(parquet.SUFFIXES):
            return parquet.describe(path, sample)
        if path.lower().endswith(tables.SUFFIXES) and not _is_fcs(path):
            return tables.describe(path, sample)
        return fcs.describe(path, duplicates, data_sets)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _of_folder(folder: str) -> tuple[list[str], list[str]]:
    """Files of the first format that occurs, in natural order; and the names of the others."""
    names = sorted((n for n in os.listdir(folder) if not n.startswith(".")), key=natural_key)
    by_format: dict[int, list[str]] = {}
    for name in names:
        path = os.path.join(folder, name)
        suffixes = [i for i, module in enumerate(FORMATS) if name.lower().endswith(module.SUFFIXES)]
        if os.path.isdir(path) and suffixes != [FORMATS.index(annotated)]:
            continue
        by_format.setdefault(0 if _is_fcs(path) else next(iter(suffixes), len(FORMATS)), []).append(name)
    first = min(by_format, default=len(FORMATS))
    if first == len(FORMATS):
        raise DataError(
            f"{folder}: holds no FCS, AnnData, parquet or CSV file; give the folders in it by name"
        )
    left = [name for number, of_format in by_format.items() if number != first for name in of_format]
    return [os.path.join(folder, name) for name in by_format[first]], left


def _is_fcs(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe or a device is not touched
        return False
    try:
        with open(path, "rb") as file:
            return file.read(3) == fcs.MAGIC
    except OSError:
        return False
