"""Sheets, panels and tables that were forged: refused in one line, or read as the text that they are."""

import io
import os
import zipfile

import numpy as np
import pytest
import zarr
from fcs_bytes import fcs_bytes

import scaleshift as ss

CHANNELS = ["CD3", "CD4", "CD8"]
NS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = f'<worksheet xmlns="{NS}"><sheetData>{{}}</sheetData></worksheet>'
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
def folder(danger):
    """Two FCS files to make a study of, and one outside that no sheet may bring in."""
    (danger.work / "data").mkdir()
    for i, place in enumerate(("work/data/a.fcs", "work/data/b.fcs", "keep/other.fcs")):
        x = np.random.default_rng(i).normal(size=(20, 3)).astype("f4")
        (danger.root / place).write_bytes(fcs_bytes(x, CHANNELS))
    danger.output.mkdir()
    return danger


def ingested(danger, sheet, codes=(1,), names=None):
    return danger.run(
        "ingest", "data", "output/study.zarr", "--meta", sheet, codes=codes, names=names or sheet
    )


def workbook(sheet, more=()):
    """A workbook whose first sheet is this XML."""
    openpyxl = pytest.importorskip("openpyxl")
    made, book = io.BytesIO(), openpyxl.Workbook()
    book.active.append(["file_name", "sample_id"])
    book.save(made)
    forged = io.BytesIO()
    with (
        zipfile.ZipFile(made) as old,
        zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for name in old.namelist():
            new.writestr(name, sheet if name.endswith("sheet1.xml") else old.read(name))
        for name, content in more:
            new.writestr(name, content)
    return forged.getvalue()


def row(number, *texts):
    cells = "".join(
        f'<c r="{chr(65 + i)}{number}" t="inlineStr"><is><t>{text}</t></is></c>'
        for i, text in enumerate(texts)
    )
    return f'<row r="{number}">{cells}</row>'


FILES = row(1, "file_name", "sample_id") + row(2, "a.fcs", "A") + row(3, "b.fcs", "B")
XXE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file://{}/secret.txt">]>'
LAUGHS = "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 30)
)
TEXTS = {
    "nulls": b"file_name,sample_id\na.fcs,A\0B\nb.fcs,B\n",
    "million_columns": b",".join(b"c%d" % i for i in range(10**6)) + b"\n" + b"," * (10**6 - 1) + b"1\n",
    "million_columns_alike": b",".join([b"c"] * 10**6) + b"\nx\n",
    "open_quote": b'file_name,sample_id\n"a.fcs,A\nb.fcs,B\n' + b"x" * 10**6,
    "long_cell": b"file_name,sample_id\na.fcs," + b"x" * 10**7 + b"\nb.fcs,B\n",
    "wrong_suffix": b"FCS3.1    " + b" " * 100,
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_forged_text_is_refused(folder, what):
    (folder.work / "sheet.csv").write_bytes(TEXTS[what])
    ingested(folder, "sheet.csv")


BOOKS = {
    "endless_rows": SHEET.format(FILES + row(9_999_999_999, "c.fcs")),
    "wide_rows": SHEET.format(
        "".join(f'<row r="{i}"><c r="XFD{i}"><v>1</v></c></row>' for i in range(1, 9000))
    ),
    "laughs": LAUGHS + "]>" + SHEET.format(row(1, "file_name", "sample_id") + row(2, "&a29;", "A")),
    "no_xml": "nothing of the sort",
    "deep": SHEET.format("<a>" * 100_000),
}


@pytest.mark.parametrize("what", BOOKS)
def test_a_forged_workbook_is_refused(folder, what):
    (folder.work / "sheet.xlsx").write_bytes(workbook(BOOKS[what]))
    ingested(folder, "sheet.xlsx")


def test_a_bomb_is_not_unpacked(folder):
    (folder.work / "sheet.xlsx").write_bytes(workbook(SHEET.format(FILES), [("xl/x.bin", bytes(2**29))]))
    ingested(folder, "sheet.xlsx", names="unpacks to")


def test_an_entity_brings_no_file(folder):
    sheet = XXE.format(folder.root) + SHEET.format(FILES.replace(">A<", ">&e;<"))
    (folder.work / "sheet.xlsx").write_bytes(workbook(sheet))
    ingested(folder, "sheet.xlsx", codes=(0, 1), names="sheet.xlsx")


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/stdin", "pipe"])
def test_a_device_is_no_sheet(folder, name):
    if name == "pipe":
        os.mkfifo(folder.work / "pipe")
    folder.run("ingest", "data", "output/study.zarr", "--meta", name, names=name)


@pytest.mark.parametrize(
    "name",
    [
        "../../keep/other.fcs",
        "{root}/keep/other.fcs",
        "/etc/passwd",
        "/dev/zero",
        "data/../../../keep/other.fcs",
    ],
)
def test_a_file_elsewhere_is_not_brought_in(folder, name):
    """A sheet chooses among the files that the user names: it opens none."""
    name = name.format(root=folder.root)
    (folder.work / "sheet.csv").write_text(f"file_name,sample_id\na.fcs,A\nb.fcs,B\n{name},C\n")
    assert name in ingested(folder, "sheet.csv", codes=(0, 1))
    if (folder.output / "study.zarr").exists():
        assert ss.open_cells(folder.output / "study.zarr")["sample"].values.tolist() == ["A", "B"]


FORMULAS = {
    "formula": '=HYPERLINK("http://x","y")',
    "command": "=cmd|' /C calc'!A0",
    "at": "@SUM(1)",
    "plus": "+1+cmd",
    "html": MARKUP,
    "rich": "[red]x[/red][link=http://x]y[/link]",
    "math": "$\\frac{1}{0}$",
    "folders": "../../../etc/cron.d/x",
    "absolute": "/tmp/x",
    "emoji": ":smile: %s {0} {{x}}",
}


@pytest.mark.parametrize("what", FORMULAS)
def test_a_marked_up_sample_is_text(folder, what):
    """In the study as it stands in the sheet, whatever follows; and no file is called after it."""
    quoted = FORMULAS[what].replace('"', '""')
    (folder.work / "sheet.csv").write_text(f'file_name,sample_id\na.fcs,"{quoted}"\nb.fcs,B\n')
    ingested(folder, "sheet.csv", codes=(0,))
    assert FORMULAS[what] in ss.open_cells(folder.output / "study.zarr")["sample"].values.tolist()


def test_escape_sequences_in_a_sheet_reach_no_terminal(folder):
    (folder.work / "sheet.csv").write_bytes(
        "file_name,sample_id,d\u202eay\na.fcs,\x1b]0;x\x07\x1b[2JA,1\nc\x1b[31m.fcs,B,2\n".encode()
    )
    ingested(folder, "sheet.csv", codes=(0, 1))
    folder.run("check", "data", "--meta", "sheet.csv", codes=(0, 1), errors=False)


PANELS = {
    "nulls": b"fcs_colname,antigen\nCD3,\0\n",
    "class": b"fcs_colname,antigen,marker_class\nCD3,CD3,__import__('os').system('touch ../canary')\n",
}


@pytest.mark.parametrize("what", PANELS)
def test_a_forged_panel_is_refused(folder, what):
    (folder.work / "panel.csv").write_bytes(PANELS[what])
    folder.run("ingest", "data", "output/study.zarr", "--panel", "panel.csv", codes=(1,), names="panel.csv")


def test_what_no_file_has_is_left_out(folder):
    (folder.work / "panel.csv").write_text("fcs_colname,antigen\n../../secret.txt,CD3\n")
    (folder.work / "sheet.csv").write_bytes(b"file_name,sample_id\na.fcs,\x81\x8d\x8f\n")
    arguments = ("ingest", "data", "output/study.zarr", "--panel", "panel.csv", "--meta", "sheet.csv")
    assert "no file has '../../secret.txt'" in folder.run(*arguments, codes=(0,))


def test_a_matrix_is_no_device(folder):
    folder.run("ingest", "data", "output/study.zarr", "--compensation", "/dev/zero", names="/dev/zero")


def test_conditions_run_no_code(danger, study):
    for text in (
        "__import__('os').system('touch ../canary') == 1",
        "sample == @open('x')",
        "sample in (" * 500,
    ):
        danger.run("quantify", "study.zarr", "--source", text, codes=(2,))
    assert zarr.open_group(study, mode="r")["X"].shape == (120, 3)


def test_a_table_of_many_columns_is_read_in_time(folder):
    (folder.work / "data" / "wide.csv").write_text(",".join(f"c{i}" for i in range(150_000)) + "\n")
    folder.run("check", "data/wide.csv", codes=(0, 1), errors=False)
    (folder.work / "data" / "alike.csv").write_text(",".join(["c"] * 150_000) + "\n1\n")
    folder.run("check", "data/alike.csv", codes=(1,), names="stands twice")
