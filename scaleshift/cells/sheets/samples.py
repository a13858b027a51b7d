"""Which sample is each file of, and what is known about it? Sample sheets, and their match with files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from scaleshift.blocks.labels import natural_key
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.schema import RESERVED
from scaleshift.cells.sheets.filenames import Pairs, composed, nearest, pair, sample_names
from scaleshift.cells.sheets.tables import (
    MISSING,
    find_column,
    meant_column,
    place_of,
    read_table,
    typed_values,
)
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

# Column names without case and punctuation, best first
FILE = ("filename", "file", "fcsfile", "fcsfilename", "fcs", "filepath", "fcspath", "path")
SAMPLE = ("sampleid", "sample", "samplename", "id")
NO_NAME = MISSING | {"none"}  # what programs write where a sample has no name
SHOWN = 20  # rows without a file that are told one by one


@dataclass(frozen=True)
class SampleSheet:
    """A sample sheet: one entry a row, which is a file or, where files tell their samples, a sample.

    Attributes
    ----------
    path : str
        Of the sheet, for messages.
    files : tuple of str
        As the sheet writes them; each once. Empty where its rows are samples.
    samples : tuple of str
        Sample of each row.
    metadata : dict
        Column name to its values, one a row: int, float, bool or str; None where missing.
    problems : tuple of Problem
        What was renamed, left out or does not agree.
    """

    path: str
    files: tuple[str, ...]
    samples: tuple[str, ...]
    metadata: dict[str, tuple[Any, ...]]
    problems: tuple[Problem, ...] = ()

    @property
    def by_sample(self) -> bool:
        """Whether its rows are samples, whatever files these are in."""
        return not self.files


@dataclass
class Matched:
    """Files and the samples that they belong to.

    Attributes
    ----------
    samples : dict
        Path to the name of its sample; files of one sample follow each other.
    metadata : dict
        Column name to {sample: value}.
    problems : list of Problem
    """

    samples: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_samples(source: str | os.PathLike[str] | pd.DataFrame, samples_told: bool = False) -> SampleSheet:
    """Read a sample sheet: a file a row, its sample, and what else is known about it.

    Parameters
    ----------
    source : path or pandas.DataFrame
        With a column of files (``file_name``, ``file``, ``fcs`` and so on), usually one of samples
        (``sample_id``, ``sample``, ``sample_name``, ``id``), and any others. Without a column of samples
        each file is one, called by its name without the suffix. Several files of a sample are joined in
        the order of the sheet.
    samples_told : bool, default False
        Whether files tell the samples of their rows: the sheet then needs no column of files.

    Returns
    -------
    SampleSheet

    Raises
    ------
    DataError
        If there is no column of files, a cell of files or samples is empty, a sample is called "NA" or the
        like, or a file has two rows that differ.

    Examples
    --------
    >>> sheet = read_samples(pd.DataFrame({"file_name": ["a.fcs", "b.fcs"], "batch": [1, 2]}))
    >>> sheet.samples, sheet.metadata
    (('a', 'b'), {'batch': (1, 2)})
    """
    place, table = place_of(source), read_table(source)
    decimal = table.attrs["decimal"]
    file_column = find_column(table, FILE)
    sample_column = find_column(table, SAMPLE, other_than=file_column)
    of_rows = file_column or (sample_column if samples_told else None)
    if of_rows is None:
        raise _without_files(table, sample_column, place)
    for column in filter(None, (file_column, sample_column)):
        empty = table.index[table[column] == ""]
        if len(empty):
            raise DataError(f"{place}: line {empty[0]}: {column} is empty: fill it in or delete the row")
    if sample_column is None:
        hint = meant_column(table, ["sample_id", "sample_name", *SAMPLE])
        if hint:
            raise DataError(f"{place}: no column of samples{hint}: rename it, or each file would be a sample")
    else:
        _refuse_nameless(table[sample_column], place)
        table[sample_column] = table[sample_column].map(composed)
    table, problems = _each_once(table, of_rows, place, sample_column)
    files = tuple(table[file_column]) if file_column else ()
    samples = tuple(table[sample_column]) if sample_column else tuple(sample_names(files))
    metadata = {
        column: typed_values(table[column], decimal)
        for column in table.columns
        if column not in (file_column, sample_column)
    }
    problems += _remark_gaps(table, metadata, place)
    metadata = _renamed(metadata, place, problems)
    problems += _disagreements(samples, files, metadata, place)
    return SampleSheet(place, files, samples, metadata, tuple(problems))


def _without_files(table: pd.DataFrame, sample_column: str | None, place: str) -> DataError:
    """What to raise for a sheet that does not say which file is meant."""
    hint = meant_column(table, ["file_name", *FILE])
    if sample_column is not None and not hint:
        hint = (
            "; or, where the files are tables of several samples, name their column of samples, "
            "sample=... (--sample)"
        )
    found = ", ".join(map(repr, table.columns))
    return DataError(f"{place}: no column of files, found {found}: call it file_name{hint}")


def _refuse_nameless(samples: pd.Series, place: str) -> None:
    """Samples that are all called NA would become one."""
    nameless = samples.index[samples.str.casefold().isin(NO_NAME)]
    if len(nameless):
        line = nameless[0]
        raise DataError(
            f"{place}: line {line}: {samples.name} is {samples[line]!r}, which stands for no name: "
            "name the sample, or delete the row"
        )


def _remark_gaps(table: pd.DataFrame, metadata: dict[str, tuple[Any, ...]], place: str) -> list[Problem]:
    """Columns that are filled in the first of some rows each, as merged cells are."""
    problems = []
    for column, values in metadata.items():
        filled = [i for i, value in enumerate(values) if value is not None]
        gaps = [second - first for first, second in itertools.pairwise(filled)]
        if not gaps or filled[0] > 0 or min(gaps) < 2:
            continue
        lines = several([str(table.index[i]) for i in filled], 3)
        text = f"the column {column!r} is filled in the first of some rows each (lines {lines})"
        fix = "where one value stands for several rows, as in merged cells, write it into each of them"
        problems.append(Problem("warning", place, text, fix))
    return problems


def _each_once(
    table: pd.DataFrame, column: str, place: str, sample_column: str | None
) -> tuple[pd.DataFrame, list[Problem]]:
    """The table without repeated rows; refuses rows of one file, or sample, that differ."""
    repeated = table[column].duplicated(keep=False)
    rows = table[repeated].drop_duplicates()
    differing = rows[rows[column].duplicated(keep=False)]
    if len(differing):
        name = differing[column].iloc[0]
        alike = differing[differing[column] == name]
        lines, hint = alike.index, ""
        if sample_column not in (None, column) and len(set(alike[sample_column])) > 1:
            hint = (
                f"; or, where it is a table of several samples, take out the column {column} and name the "
                "table's column of samples, sample=... (--sample)"
            )
        raise DataError(
            f"{place}: {name!r} has two rows that differ (lines {lines[0]} and {lines[1]}): delete one{hint}"
        )
    if not repeated.any():
        return table, []
    n_repeated = int(repeated.sum()) - len(rows)
    note = Problem("note", place, f"{n_repeated} repeated rows count once ({rows[column].iloc[0]!r}, ...)")
    return table.drop_duplicates(), [note]


def _renamed(
    metadata: dict[str, tuple[Any, ...]], place: str, problems: list[Problem]
) -> dict[str, tuple[Any, ...]]:
    """Metadata without empty columns and without the names of the layout."""
    named: dict[str, tuple[Any, ...]] = {}
    for column, values in metadata.items():
        if all(value is None for value in values):
            problems.append(Problem("note", place, f"the column {column!r} is empty and left out"))
            continue
        name = column
        while name in RESERVED or (name != column and name in metadata):
            name += "_"
        if name != column:
            problems.append(
                Problem("note", place, f"the column {column!r} is called {name!r}: the study has its own")
            )
        named[name] = values
    return named


def _disagreements(
    samples: Sequence[str], files: Sequence[str], metadata: dict[str, tuple[Any, ...]], place: str
) -> list[Problem]:
    """Columns in which files of one sample differ; a missing value agrees with any."""
    if len(set(samples)) == len(samples):
        return []
    problems = []
    for column, values in metadata.items():
        first: dict[str, tuple[str, Any]] = {}
        for sample, file, value in zip(samples, files, values, strict=True):
            if value is None:
                continue
            other, expected = first.setdefault(sample, (file, value))
            if value != expected:
                text = f"sample {sample!r} has {column} {expected!r} for {other} and {value!r} for {file}"
                fix = "write the same for all files of a sample, or give them samples of their own"
                problems.append(Problem("error", place, text, fix))
                break
    return problems


def match_files(sheet: SampleSheet | None, paths: Sequence[str]) -> Matched:
    """Match the rows of a sheet with files, by path, base name, or base name without suffix.

    A row fits the path of its name that has most of its last folders; of such, one with the same base name,
    else one with the same without suffix; as written, and then whatever the case. A path that fits better
    elsewhere is taken. What stands in a sheet never leads to opening a file: rows choose among `paths`.

    Parameters
    ----------
    sheet : SampleSheet or None
        None, or a sheet of samples: each file that does not tell its samples is one, called by its name
        without the suffix, with the folder in front where two are alike; in natural order.
    paths : sequence of str
        Of the files there are.

    Returns
    -------
    Matched
        Files without a row are left out. Problems: a row without a file and one that fits several (errors),
        rows whose files lie in another folder, files without a row (warnings), and those of the sheet.

    Examples
    --------
    >>> sheet = read_samples(pd.DataFrame({"file": ["a"], "sample": ["s1"], "day": [3]}))
    >>> matched = match_files(sheet, ["data/a.fcs", "data/b.fcs"])
    >>> matched.samples, matched.metadata
    ({'data/a.fcs': 's1'}, {'day': {'s1': 3}})
    >>> print(matched.problems[0])
    data/b.fcs: has no row in table and is left out; add a row for what belongs to the study
    """
    paths = list(dict.fromkeys(os.fspath(path) for path in paths))
    if sheet is None or sheet.by_sample:
        named = sorted(zip(sample_names(paths), paths, strict=True), key=lambda n: (natural_key(n[0]), n))
        matched = Matched({path: name for name, path in named})
        if sheet is not None:
            for column, values in sheet.metadata.items():
                matched.metadata[column] = dict(zip(sheet.samples, values, strict=True))
            matched.problems += sheet.problems
        return matched
    pairs = pair(sheet.files, paths)
    place = {name: i for i, name in reversed(list(enumerate(sheet.samples)))}
    rows = sorted(pairs.found, key=lambda row: (place[sheet.samples[row]], row))
    matched = Matched({paths[pairs.found[row]]: sheet.samples[row] for row in rows})
    for column, values in sheet.metadata.items():
        by_sample = matched.metadata.setdefault(column, {})
        for row in rows:
            if by_sample.get(sheet.samples[row]) is None:
                by_sample[sheet.samples[row]] = values[row]
    matched.problems += [*sheet.problems, *_unclear(sheet, paths, pairs)]
    unclear = {i for fitting in pairs.unclear.values() for i in fitting}
    spare = [path for i, path in enumerate(paths) if path not in matched.samples and i not in unclear]
    lacking = [row for row in range(len(sheet.files)) if row not in pairs.found and row not in pairs.unclear]
    matched.problems += _without_file(sheet, lacking, spare or paths)
    matched.problems += _moved(sheet, paths, pairs)
    matched.problems += _without_row(sheet, spare)
    return matched


def _unclear(sheet: SampleSheet, paths: Sequence[str], pairs: Pairs) -> list[Problem]:
    """Rows that fit several paths, and rows of which several fit one path."""
    problems = []
    rows_of: dict[int, list[int]] = {}
    for row, fitting in pairs.unclear.items():
        if len(fitting) > 1:
            names = " and ".join(paths[i] for i in fitting[:2])
            more = f" ({len(fitting)} files)" if len(fitting) > 2 else ""
            text = f"the row {sheet.files[row]!r} fits {names}{more}"
            problems.append(Problem("error", sheet.path, text, "write the folder into the sheet too"))
        else:
            rows_of.setdefault(fitting[0], []).append(row)
    for i, rows in rows_of.items():
        names = " and ".join(repr(sheet.files[row]) for row in rows[:2])
        fix = "delete one, or give the file that is missing"
        problems.append(Problem("error", sheet.path, f"the rows {names} both fit {paths[i]}", fix))
    return problems


def _without_file(sheet: SampleSheet, rows: Sequence[int], names: Sequence[str]) -> list[Problem]:
    fix = "give the file, mend the name or delete the row"
    problems = []
    for row in rows[:SHOWN]:
        alike = nearest(sheet.files[row], names)
        hint = f", the nearest is {alike}" if alike else ""
        problems.append(Problem("error", sheet.path, f"no file for the row {sheet.files[row]!r}{hint}", fix))
    if len(rows) > SHOWN:
        first, last = sheet.files[rows[SHOWN]], sheet.files[rows[-1]]
        text = f"no file for {len(rows) - SHOWN} more rows, {first!r} to {last!r}"
        problems.append(Problem("error", sheet.path, text, fix))
    return problems


def _moved(sheet: SampleSheet, paths: Sequence[str], pairs: Pairs) -> list[Problem]:
    """Rows that name other folders: files may have been moved, or it is a file of the same name."""
    if not pairs.moved:
        return []
    row, more = min(pairs.moved), len(pairs.moved) - 1
    text = f"the row {sheet.files[row]!r} stands for {paths[pairs.found[row]]}, in another folder"
    text += f" (and {more} more rows)" if more else ""
    fix = "if these are other files, give those that are meant; else write the folders into the sheet"
    return [Problem("warning", sheet.path, text, fix)]


def _without_row(sheet: SampleSheet, paths: Sequence[str]) -> list[Problem]:
    if not paths:
        return []
    text = f"has no row in {sheet.path} and is left out"
    if len(paths) > 1:
        others = ", ".join(paths[1:4]) + (", ..." if len(paths) > 4 else "")
        text += f" (and {len(paths) - 1} more: {others})"
    return [Problem("warning", paths[0], text, "add a row for what belongs to the study")]


def match_samples(sheet: SampleSheet, samples: Mapping[str, str]) -> list[Problem]:
    """What does not match: rows of a sheet of samples that no file has, and samples without a row.

    Parameters
    ----------
    sheet : SampleSheet
    samples : mapping
        Name of each sample that there is to the path of its first file.

    Examples
    --------
    >>> sheet = read_samples(pd.DataFrame({"sample_id": ["s1"], "day": [3]}), samples_told=True)
    >>> print(*match_samples(sheet, {"s1": "t.csv", "s2": "t.csv"}))
    t.csv: sample s2 has no row in table and is left out; add a row for what belongs to the study
    """
    rows = [row for row, name in enumerate(sheet.samples) if name not in samples]
    spare = [name for name in samples if name not in set(sheet.samples)]
    problems = []
    for row in rows[:SHOWN]:
        name = sheet.samples[row]
        text = f"no file has the sample {name!r}{suggestion(name, spare or samples)}"
        problems.append(Problem("error", sheet.path, text, "mend the name or delete the row"))
    if len(rows) > SHOWN:
        text = f"no file has {len(rows) - SHOWN} more samples, to {sheet.samples[rows[-1]]!r}"
        problems.append(Problem("error", sheet.path, text, "mend the names or delete the rows"))
    if spare:
        some = f"sample{'s' * (len(spare) > 1)} {several(spare)}"
        have = "have no row in {} and are left out" if len(spare) > 1 else "has no row in {} and is left out"
        fix = "add a row for what belongs to the study"
        problems.append(Problem("warning", samples[spare[0]], f"{some} {have.format(sheet.path)}", fix))
    return problems
