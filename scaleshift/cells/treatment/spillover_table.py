"""Which spillover matrix does a table hold?"""

from __future__ import annotations

import csv
import io
import os
import re

from scaleshift.cells.regular import refuse_odd
from scaleshift.cells.text_tables import decode, style_of, without_told
from scaleshift.cells.treatment.compensation import COMPENSATED, Spillover, is_number, numbers
from scaleshift.errors import DataError

AREA = re.compile(r"-[AHW]$", re.IGNORECASE)  # behind the names of fluorochromes
PER_CENT = 100


def read_spillover(path: str | os.PathLike[str]) -> Spillover:
    r"""Read a spillover matrix from a table: a header of channel names, below it a row a channel.

    Parameters
    ----------
    path : str or path-like
        CSV, or separated by tabs or semicolons, then also with decimal commas. The header may start with
        ``#``; a first column of names is allowed, and puts the rows in the order of the header.

    Raises
    ------
    DataError
        If the file cannot be read or holds no square matrix of numbers, its rows have other names than its
        columns, or it is in per cent.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "matrix.csv")
    ...     _ = path.write_text("FITC-A,PE-A\n1,0.2\n0.05,1\n")
    ...     read_spillover(path).matrix.tolist()
    [[1.0, 0.2], [0.05, 1.0]]
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"the spillover matrix is a {type(path).__name__}: expected the path of a table")
    source = os.fspath(path)
    header, *rows = _table(source)
    header[0] = header[0].lstrip("#").strip()
    cells = {len(row) for row in rows}
    named = len(cells) == 1 and (
        not any(is_number(row[0]) for row in rows) or (not header[0] and cells == {len(header)})
    )
    if named and len(header) == len(rows[0]):
        header = header[1:]
    names = [row.pop(0) for row in rows] if named else header
    n = len(header)
    for number, row in enumerate(rows, 1):
        if len(row) != n:
            raise DataError(
                f"{source}: row {number} of the spillover matrix has {len(row)} numbers, expected {n}"
            )
    if len(rows) != n:
        raise DataError(f"{source}: the spillover matrix has {len(rows)} rows, expected {n}, one a channel")
    matrix = numbers(rows, source)
    if names != header and not all(map(is_number, names)):
        matrix = matrix[_order_of_rows(names, header, source)]
    if n and (matrix.diagonal() == PER_CENT).all():
        raise DataError(
            f"{source}: the diagonal of the spillover matrix is {PER_CENT}: it is in per cent; divide its "
            f"numbers by {PER_CENT}"
        )
    return Spillover(tuple(header), matrix, source)


def _order_of_rows(names: list[str], header: list[str], source: str) -> list[int]:
    """The row of each column, by their names; a row may be called FITC where the column is FITC-A."""
    for form in (str, _bare):
        rows, columns = [form(name) for name in names], [form(name) for name in header]
        if sorted(rows) == sorted(columns) and len(set(columns)) == len(columns):
            return [rows.index(name) for name in columns]
    strange = next((name for name in names if _bare(name) not in map(_bare, header)), None)
    if strange is None:
        strange = next(name for i, name in enumerate(names) if _bare(name) in map(_bare, names[:i]))
    raise DataError(
        f"{source}: the row {strange!r} of the spillover matrix is not called like a column of its own "
        f"({', '.join(header[:8])}): name the rows like the columns, or leave their names out"
    )


def _bare(name: str) -> str:
    return AREA.sub("", COMPENSATED.sub("", name, count=1)).casefold()


def _table(source: str) -> list[list[str]]:
    """Cells of a text table, blank lines left out."""
    refuse_odd(source)
    try:
        with open(source, "rb") as file:
            content = file.read()
    except OSError as error:
        raise DataError(
            f"{source}: the spillover matrix cannot be read ({error.strerror}): check its path and "
            "permissions"
        ) from error
    text = without_told(decode(content, source))
    lines = [line for line in text.splitlines() if line.strip(" \t,;")]
    if not lines or "\0" in text:
        raise DataError(f"{source}: no spillover matrix, expected a header of channel names and their rows")
    style = style_of(decode(content, source))
    try:
        table = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=style.delimiter))
    except csv.Error as error:
        raise DataError(f"{source}: the spillover matrix is no table ({error}): save it as CSV") from error
    header, *rows = [[cell.strip() for cell in row] for row in table]
    if style.decimal == ",":
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    return [header, *rows]
