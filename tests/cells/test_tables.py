"""Sheets of any make come in as text, or are refused by line and column."""

import datetime
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells.sheets.tables import read_table, typed_values
from scaleshift.errors import DataError, ScaleshiftError

PLAIN = "file_name,sample_id,day\na.fcs,s1,3\nb.fcs,s2,10\n"
ROWS = [["a.fcs", "s1", "3"], ["b.fcs", "s2", "10"]]


def write(tmp_path, content, name="sheet.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def workbook(tmp_path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
    path = tmp_path / "sheet.xlsx"
    book.save(path)
    return path


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";"),
        "sep=;\n" + PLAIN.replace(",", ";"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace(",", "\t").encode("utf-16"),
        "\n\n" + PLAIN.replace("\na", "\n,,\n\n   \na"),
        PLAIN.replace("\n", ",,\n"),
        PLAIN.replace("a.fcs", '" a.fcs"'),
        PLAIN.removesuffix("\n"),
        '"","file_name","sample_id","day"\n"1","a.fcs","s1",3\n"2","b.fcs","s2",10\n',
    ],
    ids=["csv", "tsv", "semicolons", "sep=", "windows", "old mac", "bom", "utf-16", "blank lines",
         "empty columns", "quotes", "no end of line", "row names"],
)  # fmt: skip
def test_text_of_any_make_gives_the_same_table(tmp_path, content):
    table = read_table(write(tmp_path, content))
    assert table.columns.tolist() == ["file_name", "sample_id", "day"]
    assert table.to_numpy().tolist() == ROWS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"])
def test_names_keep_their_letters_in_every_encoding(tmp_path, encoding):
    table = read_table(write(tmp_path, "file,centre\na.fcs,Zürich é\n".encode(encoding)))
    assert table["centre"].tolist() == ["Zürich é"]


def test_the_index_has_the_lines_of_the_file(tmp_path):
    table = read_table(write(tmp_path, 'file,note\n\na.fcs,"two\nlines"\nb.fcs,x\n'))
    assert table.index.tolist() == [4, 5]
    assert table["note"].tolist() == ["two\nlines", "x"]


def test_a_delimiter_in_a_name_or_a_text_parts_no_cells(tmp_path):
    table = read_table(write(tmp_path, '"file, name";note\na.fcs;x, y, z\n'))
    assert table.columns.tolist() == ["file, name", "note"]
    assert table.to_numpy().tolist() == [["a.fcs", "x, y, z"]]
    table = read_table(write(tmp_path, "file, its name;note, or none\na.fcs;x\n"))
    assert table.columns.tolist() == ["file, its name", "note, or none"]


def test_short_rows_are_filled_up(tmp_path):
    assert read_table(write(tmp_path, "file,day,dose\na.fcs,1\n"))["dose"].tolist() == [""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty, expected column names"),
        (" \n,,\n", "is empty, expected column names"),
        ("file,sample\n", "has column names but no rows"),
        ("a.fcs,s1\nb.fcs,s2\n", "line 1 looks like data ('a.fcs'), expected column names"),
        ("1,2\n3,4\n", "line 1 looks like data ('1'), expected column names"),
        ("file,day,day\na.fcs,1,2\n", "line 1: the column 'day' stands twice (columns 2 and 3)"),
        ("file,day\na.fcs,1\nb.fcs,1,2\n", "line 3 has 3 cells, the header 2"),
        ("file,,day\na.fcs,x,2\n", "line 1: column 2 has no name, but values"),
        ('file,day\na.fcs,"1\n', "unexpected end of data: is a quote not closed?"),
        (b"FCS3.0         58    1024", "is an FCS file, expected a sheet"),
        (b"file\0name", "is no text, expected a sheet"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "is an old or protected Excel file: save it as .xlsx"),
        (b"PK\x03\x04 not a zip file", "cannot be read as XLSX (BadZipFile)"),
        (b"\xff\xfe\x00\xd8", "is no valid text"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_sheet_and_a_folder_are_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv: does not exist"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_excel_values_come_as_they_would_be_typed(tmp_path):
    row = ["a.fcs", 3.0, 2.5, True, datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12, 30), None, 7]
    header = ["file", "whole", "half", "yes", "date", "time", "none", "int"]
    table = read_table(workbook(tmp_path, [header, row]))
    values = ["a.fcs", "3", "2.5", "True", "2024-05-01", "2024-05-01 12:30:00", "", "7"]
    assert table.to_numpy().tolist() == [values]


def test_the_first_excel_sheet_with_content_is_read(tmp_path):
    path = workbook(tmp_path, [], [[None, None]], [["file", "day"], [], ["a.fcs", 1]], [["other"], ["x"]])
    table = read_table(path)
    assert table.columns.tolist() == ["file", "day"]
    assert table.index.tolist() == [3]


def test_excel_files_are_known_by_content_not_by_suffix(tmp_path):
    path = workbook(tmp_path, [["file"], ["a.fcs"]])
    assert read_table(path.rename(tmp_path / "sheet.csv"))["file"].tolist() == ["a.fcs"]


def test_formulas_give_their_stored_values_and_errors_are_named(tmp_path):
    path = workbook(tmp_path, [["file", "day"], ["a.fcs", "#REF!"]])
    with pytest.raises(DataError, match="line 2, column 2: the formula gives #REF!"):
        read_table(path)
    path = _with_stored_value(tmp_path, workbook(tmp_path, [["file", "day"], ["a.fcs", "=1+2"]]), 3)
    assert read_table(path)["day"].tolist() == ["3"]


def _with_stored_value(tmp_path, path, value):
    """The workbook as Excel would save it: a formula with its value."""
    changed = tmp_path / "stored.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            assert b"<v>3</v>" not in content
            content = content.replace(b"<f>1+2</f><v />", f"<f>1+2</f><v>{value}</v>".encode())
            content = content.replace(b"<f>1+2</f><v></v>", f"<f>1+2</f><v>{value}</v>".encode())
            new.writestr(name, content)
    return changed


def test_excel_without_openpyxl_says_how_to_install(tmp_path, monkeypatch):
    path = workbook(tmp_path, [["file"], ["a.fcs"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r'unlike CSV, needs openpyxl, .*pip install "scaleshift\[excel\]"'):
        read_table(path)


def test_a_frame_stands_in_for_a_file():
    frame = pd.DataFrame(
        {"file": ["a.fcs", "b.fcs"], "day": [1.0, np.nan], "arm": pd.Categorical(["x", None]), "n": [1, 2]}
    )
    table = read_table(frame)
    assert table.to_numpy().tolist() == [["a.fcs", "1", "x", "1"], ["b.fcs", "", "", "2"]]
    assert read_table(frame.set_index("file"))["file"].tolist() == ["a.fcs", "b.fcs"]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "", "-3"], (1, None, -3)),
        (["1", "2.5", "1e-05"], (1.0, 2.5, 1e-05)),
        (["TRUE", "false", "NA"], (True, False, None)),
        (["007", "8"], ("007", "8")),
        (["0.5", "0"], (0.5, 0.0)),
        (["1", "x"], ("1", "x")),
        (["1E5", "2E5"], ("1E5", "2E5")),  # wells
        (["none", "drug"], ("none", "drug")),
        (["12345678901234567890"], (12345678901234567890.0,)),
        (["inf", "1"], ("inf", "1")),
    ],
)
def test_columns_get_the_type_of_all_their_values(texts, values):
    typed = typed_values(texts)
    assert typed == values
    assert [type(v) for v in typed] == [type(v) for v in values]


def test_decimal_commas_are_read_in_sheets_with_semicolons(tmp_path):
    table = read_table(write(tmp_path, "file;dose\na.fcs;0,5\nb.fcs;2\n"))
    assert typed_values(table["dose"], table.attrs["decimal"]) == (0.5, 2.0)
    table = read_table(write(tmp_path, 'file,days\na.fcs,"0,5"\n'))
    assert typed_values(table["days"], table.attrs["decimal"]) == ("0,5",)


@given(st.lists(st.integers(-(10**17), 10**17)) | st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_survive_as_text(numbers):
    assert typed_values([repr(n) for n in numbers]) == tuple(numbers)


@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", b"\xff\xfe", b"file,day\n"]))
def test_any_bytes_give_a_table_or_one_of_our_errors(tmp_path_factory, content, start):
    path = tmp_path_factory.mktemp("sheets") / "sheet.csv"
    path.write_bytes(start + content)
    try:
        found = read_table(path)
    except ScaleshiftError as error:
        found = str(error)
    assert found.startswith(f"{path}: ") if isinstance(found, str) else len(found)
