"""Which files of events are there, and what is known of each? One module a format."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from scaleshift.blocks.labels import natural_key
from scaleshift.cells.fcs.names import Duplicates
from scaleshift.cells.files import annotated, fcs, parquet, tables
from scaleshift.cells.files.described import Described, Wish, reading
from scaleshift.cells.problem import Problem
from scaleshift.cells.regular import refuse_odd
from scaleshift.errors import DataError

FORMATS = (fcs, annotated, parquet, tables)  # the first that claims a path, or occurs in a folder, has it
KINDS = "FCS, AnnData, parquet or CSV"


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[list[str], list[Problem]]:
    """Absolute paths of the files of events, each once, and remarks on what was passed over.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files, folders, patterns such as "day1/*.fcs". Of a folder, not of those in it, the files of one
        format are taken: FCS (also by their first bytes, whatever they are called), else AnnData, else
        parquet, else CSV; a sample sheet beside FCS files is then no data. Studies of scaleshift are
        passed over, unless they are named.

    Raises
    ------
    DataError
        If a path does not exist, or a folder holds no such file.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    problems: list[Problem] = []
    for path in [os.fspath(one) for one in given]:
        if os.path.isdir(path) and _format_of(path) is None:
            taken, remarks = _of_folder(path)
            found += taken
            problems += remarks
        elif os.path.lexists(path):
            found.append(path)
        else:
            matches = sorted(glob.glob(path, recursive=True), key=natural_key)
            if not matches:
                raise DataError(
                    f"{path}: no such file or folder; check the name, or the folder it is looked for in"
                )
            found += matches
    return list(dict.fromkeys(os.path.abspath(path) for path in found)), problems


def describe(
    path: str, duplicates: Duplicates = "raise", data_sets: str = "raise", sample: str | None = None
) -> list[Described]:
    """Describe one file of events: one entry, or one a data set.

    Parameters
    ----------
    path : str
        A file that no format claims is taken for FCS.
    duplicates, data_sets, sample
        As in `Wish`.

    Raises
    ------
    DataError
        If it cannot be read; the message starts with the path.
    """
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file; check the name, or the folder it is looked for in")
    refuse_odd(path, folders=True)
    number = _format_of(path)
    with reading(path):
        return FORMATS[number or 0].describe(path, Wish(duplicates, data_sets, sample))


def holds_events(path: str) -> bool:
    """Whether a local path is a file of events, by its name, or a folder with some; a store of Zarr is none.

    Examples
    --------
    >>> holds_events("no/such/folder")
    False
    """
    if os.path.isfile(path):
        return _format_of(path) is not None and not path.lower().endswith(".zarr")
    if not os.path.isdir(path) or _format_of(path) is not None:
        return False
    try:
        return bool(_of_folder(path)[0])
    except (DataError, OSError):
        return False


def _format_of(path: str) -> int | None:
    """Number of the format that claims a path."""
    return next((number for number, module in enumerate(FORMATS) if module.claims(path)), None)


def _of_folder(folder: str) -> tuple[list[str], list[Problem]]:
    """Files of the first format that occurs, in natural order; remarks on the others."""
    names = sorted((n for n in os.listdir(folder) if not n.startswith(".")), key=natural_key)
    problems: list[Problem] = []
    by_format: dict[int, list[str]] = {}
    for name in names:
        path = os.path.join(folder, name)
        number = _format_of(path)
        if annotated.is_study(path):
            text = "is a study of scaleshift: passed over, since it is not named itself"
            problems.append(Problem("note", path, text))
        elif number is not None or not os.path.isdir(path):
            by_format.setdefault(len(FORMATS) if number is None else number, []).append(name)
    first = min(by_format, default=len(FORMATS))
    if first == len(FORMATS):
        raise DataError(f"{folder}: holds no {KINDS} file; give the folders in it by name")
    left = [name for number, of_format in by_format.items() if number != first for name in of_format]
    if left:
        some = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
        problems.append(Problem("note", folder, f"{len(left)} other files are passed over: {some}"))
    return [os.path.join(folder, name) for name in by_format[first]], problems
