"""How do sheets of plain values become an .xlsx file?  Typed cells, Excel's limits, the same bytes."""

from __future__ import annotations

import datetime
import io
import itertools
import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scaleshift.errors import DataError
from scaleshift.report.files import FORMULA_STARTS

MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 1_048_576, 16_384, 32_767
EXACT_DIGITS = 10**15  # Excel keeps 15 digits of a number: longer ones are names
NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LONG_AGO = datetime.datetime(1980, 1, 1)  # the first day that a zip file knows
NARROWEST, WIDEST, WIDEST_HEADING = 9, 60, 24  # characters


class Sheet(NamedTuple):
    """A table: one heading a column, rows of plain values; None, NaN and infinity are empty cells."""

    name: str
    headings: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    formats: Sequence[str]  # number format of each column


def write_workbook(sheets: Sequence[Sheet], path: Path, shown: Path) -> None:
    """Write sheets with a frozen heading and first column; the same sheets give the same bytes.

    Text stays text, also where it looks like a formula, an error or a number.

    Parameters
    ----------
    sheets : sequence of Sheet
    path : path
        The file to write.
    shown : path
        What errors call it.

    Raises
    ------
    DataError
        Without openpyxl, or where Excel could not hold a sheet.
    """
    try:
        import openpyxl
        from openpyxl.writer.excel import ExcelWriter
    except ImportError:
        raise DataError(
            f'{shown}: workbooks need openpyxl: pip install "scaleshift[excel]", or give a name in .csv'
        ) from None
    for sheet in sheets:  # all of them first: half a workbook cannot be closed
        _check(sheet, shown)
    workbook = openpyxl.Workbook(write_only=True)
    workbook.properties.creator = "scaleshift"
    workbook.properties.created = workbook.properties.modified = LONG_AGO
    for sheet in sheets:
        _fill(workbook.create_sheet(sheet.name), sheet)
    packed = io.BytesIO()  # and the disk may be full, when openpyxl would leave its generators half way
    with _Archive(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        ExcelWriter(workbook, archive).write_data()
    path.write_bytes(packed.getbuffer())


class _Archive(zipfile.ZipFile):
    """A zip file that forgets when its members were written."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *arguments: Any, **options: Any) -> None:
        """Write a member from memory."""
        super().writestr(_member(zinfo_or_arcname), data)

    def write(self, filename: Any, arcname: Any = None, *arguments: Any, **options: Any) -> None:
        """Write a member from a file, which openpyxl keeps a sheet in."""
        with open(filename, "rb") as source, self.open(_member(arcname), "w", force_zip64=True) as target:
            while piece := source.read(2**20):
                target.write(piece)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, LONG_AGO.timetuple()[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info


def _check(sheet: Sheet, shown: Path) -> None:
    """Refuse what Excel could not hold."""
    size = {"rows": (len(sheet.rows) + 1, MAX_ROWS), "columns": (len(sheet.headings), MAX_COLUMNS)}
    for what, (found, most) in size.items():
        if found > most:
            raise DataError(
                f"{shown}: the sheet {sheet.name!r} would have {found} {what}, Excel holds {most}: "
                "write a .csv, or fewer samples or labels at a time"
            )
    for value in itertools.chain(sheet.headings, *sheet.rows):
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise DataError(
                f"{shown}: {value[:40]!r}... on the sheet {sheet.name!r} has {len(value)} characters, "
                f"an Excel cell holds {MAX_TEXT}: write a .csv, or shorten the name"
            )


def _fill(worksheet: Any, sheet: Sheet) -> None:
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    worksheet.freeze_panes = "B2"
    for column, width in enumerate(_widths(sheet), start=1):
        worksheet.column_dimensions[get_column_letter(column)].width = width
    headings = [_cell(worksheet, value, "General") for value in sheet.headings]
    for cell in filter(None, headings):
        cell.font = Font(bold=True)
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    worksheet.append(headings)
    for row in sheet.rows:
        values = zip(row, sheet.formats, strict=True)
        worksheet.append([_cell(worksheet, value, format_) for value, format_ in values])


def _cell(worksheet: Any, value: Any, format_: str) -> Any:
    """A cell of the value's type; None for an empty one."""
    from openpyxl.cell import WriteOnlyCell

    value = _plain(value)
    if value is None:
        return None
    if not isinstance(value, str):
        cell = WriteOnlyCell(worksheet, value)
        if format_ != "General":
            cell.number_format = format_
        return cell
    cell = WriteOnlyCell(worksheet, NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value))
    cell.data_type = "s"  # openpyxl takes "=1+1" for a formula, "#N/A" for an error
    if value.startswith(FORMULA_STARTS):
        cell.quotePrefix = True  # text too after someone has edited the cell
    return cell


def _plain(value: Any) -> Any:
    """A text, number or bool; None for empty text and what is not finite; text where Excel would round."""
    if isinstance(value, np.generic):
        value = value.item()
    if value == "" or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, int) and abs(value) >= EXACT_DIGITS:
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _widths(sheet: Sheet) -> list[int]:
    """Characters of each column: its texts and its heading, within limits; headings wrap."""
    widths = []
    for column, heading in enumerate(sheet.headings):
        texts = (row[column] for row in itertools.islice(sheet.rows, 1_000))
        widest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        widest = max(widest, min(len(str(heading)), WIDEST_HEADING), NARROWEST - 2)
        widths.append(min(widest, WIDEST) + 2)
    return widths
