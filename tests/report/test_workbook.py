"""A result as an Excel workbook, read back as its users open it."""

import hashlib
import sys
import time
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from scaleshift.errors import DataError
from scaleshift.report import excel, table


def written(result, tmp_path, **options):
    """The workbook that `table` writes, opened."""
    table(result, tmp_path / "p.xlsx", **options)
    return openpyxl.load_workbook(tmp_path / "p.xlsx")


def rows(sheet):
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def gates(**columns):
    n = len(columns["sample"])
    defaults = {"estimated": [0.3] * n, "low": [0.1] * n, "high": [0.5] * n, "difference": [0.05] * n}
    return pd.DataFrame(defaults | columns)


def test_a_sheet_answers_each_question(result, tmp_path):
    names = ["percent", "counts", "low", "high", "flags", "about"]
    assert written(result, tmp_path).sheetnames == names


def test_percent_holds_one_row_a_sample_in_full_precision(make_result, tmp_path):
    third = 1 / 3
    sheet = written(make_result([[third, 0.5]], ["S1"], ["B", "T"], flags=["few cells: 12"]), tmp_path)[
        "percent"
    ]
    assert rows(sheet)[0] == ["sample", "day", "B", "T", "unknown", "n_cells", "flag"]
    sample, _, b, t, unknown, n_cells, flag = sheet[2]
    assert (sample.value, t.value, n_cells.value, flag.value) == ("S1", 50, 1000, "few cells: 12")
    assert b.value == pytest.approx(100 / 3, rel=1e-15)
    assert unknown.value == pytest.approx(100 / 6, rel=1e-12)
    assert [cell.data_type for cell in sheet[2]] == ["s", "n", "n", "n", "n", "n", "s"]
    assert b.number_format == "0.00"


def test_the_sheets_of_one_layout_agree_cell_by_cell(result, tmp_path):
    book = written(result, tmp_path)
    assert rows(book["low"])[0] == rows(book["high"])[0] == rows(book["percent"])[0][:5]
    assert rows(book["low"])[1] == ["S1", 0, 20, 45, 24]
    assert rows(book["high"])[1] == ["S1", 0, 30, pytest.approx(55), 26]
    assert rows(book["counts"])[1] == ["S1", 0, 250, 500, 250, 1000]


def test_what_was_not_computed_is_an_empty_cell(result, tmp_path):
    assert rows(written(result, tmp_path)["percent"])[2] == ["S2", 1, None, None, None, 1000, "no cells"]


def test_without_intervals_there_are_no_sheets_of_them(result, tmp_path):
    nothing = {name: result[name] * np.nan for name in result if str(name).endswith(("_low", "_high"))}
    book = written(result.assign(nothing), tmp_path)
    assert book.sheetnames == ["percent", "counts", "flags", "about"]
    assert ["intervals", "none were computed"] in rows(book["about"])


def test_flags_are_a_row_a_reason_with_their_meaning(make_result, tmp_path):
    flag = "few cells: 12; three odd cells"
    sheet = written(make_result([[0.5, 0.5]], ["S1"], ["B", "T"], flags=[flag]), tmp_path)["flags"]
    meaning = "under 50 cells: the intervals say more than the shares"
    assert rows(sheet)[1:] == [["S1", "F", "few cells: 12", meaning], ["S1", "?", "three odd cells", None]]


def test_about_tells_how_the_result_was_made(result, tmp_path):
    attributes = {
        "scaleshift_version": "1.2",
        "citation": "Someone (2023)",
        "parameters": '{"n_bootstrap": 200, "bandwidth": "auto", "resample": null}',
        "seed": 7,
        "source_samples": '["S8", "S9"]',
    }
    found = rows(written(result.assign_attrs(attributes), tmp_path)["about"])
    for row in (
        ["scaleshift_version", "1.2"],
        ["citation", "Someone (2023)"],
        ["parameter n_bootstrap", 200],
        ["parameter bandwidth", "auto"],
        ["seed", 7],
        ["source sample", "S8"],
        ["source sample", "S9"],
    ):
        assert row in found
    assert "parameter resample" not in [name for name, _ in found]  # left to the method


def test_about_begins_with_what_was_asked_whatever_the_order_of_the_attributes(result, tmp_path):
    attributes = {
        "zebra": 1,
        "seed": 7,
        "import_left_out": '["b.fcs", "c.fcs"]',
        "target": "day == 7",
        "study": "data/study.zarr",
        "source_samples": "[]",
        "features": '["CD3"]',
    }
    found = rows(written(result.assign_attrs(attributes), tmp_path)["about"])
    first = [row[0] for row in found].index("study")
    assert found[first : first + 8] == [
        ["study", "data/study.zarr"],
        ["source sample", "none"],
        ["target", "day == 7"],
        ["feature", "CD3"],
        ["left out at import", "b.fcs"],
        ["left out at import", "c.fcs"],
        ["seed", 7],
        ["zebra", 1],
    ]


def test_what_describes_samples_stands_behind_their_names(make_result, tmp_path):
    told = {"donor": ["D1", "=1+1"], "T": [1.5, np.nan], "gated": np.array([True, None], object)}
    result = make_result([[0.25, 0.5]] * 2, ["S1", "S2"], ["B", "T"])
    described = result.drop_vars("day").assign_coords({k: ("sample", v) for k, v in told.items()})
    book = written(described, tmp_path, parents={"B": "all", "T": "all"})
    for name in ("percent", "counts", "low", "high", "percent of parent"):
        assert rows(book[name])[0][:4] == ["sample", "donor", "sample_T", "gated"]
        assert rows(book[name])[1][:4] == ["S1", "D1", 1.5, True]
        assert rows(book[name])[2][:4] == ["S2", "=1+1", None, None]
        assert (book[name]["B3"].data_type, book[name]["B3"].quotePrefix) == ("s", True)


def test_inner_populations_stand_to_the_right_of_the_labels(make_result, tmp_path):
    result = make_result([[0.1, 0.3, 0.2]], ["S1"], ["T", "CD4", "B"]).drop_vars("day")
    parents = {"CD4": "T", "T": "lymphocytes", "B": "lymphocytes"}
    book = written(result, tmp_path, parents=parents)
    headings = ["sample", "T", "CD4", "B", "unknown", "T (all)", "lymphocytes (all)", "n_cells"]
    assert rows(book["percent"])[0] == [*headings, "flag"]
    assert rows(book["percent"])[1][5:7] == [pytest.approx(40), pytest.approx(60)]
    assert rows(book["counts"])[0] == headings
    assert rows(book["counts"])[1][5:7] == [pytest.approx(400), pytest.approx(600)]
    assert rows(book["low"])[0] == headings[:5]  # there are intervals of labels only
    assert "columns with (all)" in [row[0] for row in rows(book["about"])]


def test_per_cent_of_parent_has_a_column_a_population_below_another(result, tmp_path):
    parents = {"B": "lymphocytes", "T": "lymphocytes", "lymphocytes": "cells"}
    sheet = written(result, tmp_path, parents=parents)["percent of parent"]
    assert rows(sheet)[0] == [
        "sample",
        "day",
        "B, % of lymphocytes",
        "T, % of lymphocytes",
        "lymphocytes, % of cells",
    ]
    assert rows(sheet)[1] == ["S1", 0, pytest.approx(100 / 3), pytest.approx(200 / 3), 100]
    assert rows(sheet)[2] == ["S2", 1, None, None, None]


def test_gated_shares_are_a_sheet_in_per_cent_and_a_sentence(result, tmp_path):
    gated = gates(sample=["S1", "S1"], label=["B", "T"], gated=[0.25, np.nan], inside=pd.array([True, None]))
    book = written(result, tmp_path, gated=gated)
    assert rows(book["gated"]) == [
        ["sample", "label", "gated", "estimated", "low", "high", "difference", "inside"],
        ["S1", "B", 25, 30, 10, 50, 5, True],
        ["S1", "T", None, 30, 10, 50, 5, None],
    ]
    assert any(row[0] == "gated" and "100 % of the intervals" in row[1] for row in rows(book["about"]))


def test_heading_and_names_stay_in_sight_and_columns_fit_them(make_result, tmp_path):
    name = "a_rather_long_sample_name_2024"
    for sheet in written(make_result([[0.5, 0.5]], [name], ["B", "T"]), tmp_path):
        assert sheet.freeze_panes == "B2"
        assert sheet["A1"].font.bold
        widths = [dimension.width for dimension in sheet.column_dimensions.values()]
        assert min(widths) >= 9
        assert max(widths) <= 62
    assert openpyxl.load_workbook(tmp_path / "p.xlsx")["percent"].column_dimensions["A"].width > len(name)


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x","y")', "#N/A", "007", "1e5"]
)
def test_a_name_stays_text_whatever_it_looks_like(make_result, tmp_path, name):
    book = written(make_result([[0.25, 0.75]], [name], [name, "T"], flags=[name]), tmp_path)
    sheet = book["percent"]
    for cell in (sheet["A2"], sheet["C1"], sheet["G2"]):
        assert (cell.value, cell.data_type) == (name, "s")
        assert bool(cell.quotePrefix) == name.startswith(("=", "+", "-", "@"))  # after an edit too


def test_int_and_bool_labels_keep_their_type_and_long_numbers_their_digits(make_result, tmp_path):
    assert rows(written(make_result([[0.5, 0.5]], [1], [2, 10]), tmp_path)["counts"])[0][2:4] == [2, 10]
    assert rows(written(make_result([[0.5, 0.5]], ["S"], [False, True]), tmp_path)["low"])[0][2:4] == [
        False,
        True,
    ]
    long = 12345678901234567
    assert rows(written(make_result([[0.5, 0.5]], [long], ["B", "T"]), tmp_path)["percent"])[1][0] == str(
        long
    )


def test_characters_that_a_workbook_cannot_hold_are_replaced(make_result, tmp_path):
    book = written(
        make_result([[0.5, 0.5]], ["a\x00b\x1b\ufffe\udcffc"], ["Zellen \N{GREEK SMALL LETTER GAMMA}δ", "T"]),
        tmp_path,
    )
    assert rows(book["percent"])[1][0] == "a{0}b{0}{0}{0}c".format("\N{REPLACEMENT CHARACTER}")
    assert rows(book["percent"])[0][2] == "Zellen γδ"


def test_a_label_called_unknown_is_not_taken_for_the_unknown_share(make_result, tmp_path):
    sheet = written(make_result([[0.25, 0.5]], ["S1"], ["unknown", "T"]), tmp_path)["percent"]
    assert rows(sheet)[0][2:5] == ["unknown", "T", "unknown (no label)"]


def test_the_same_result_gives_the_same_bytes_at_any_time(result, tmp_path, monkeypatch):
    digests = []
    for now in (1e9, 2e9):  # seconds since 1970
        monkeypatch.setattr(time, "time", lambda now=now: now)
        table(result, tmp_path / "p.xlsx")
        digests.append(hashlib.sha256((tmp_path / "p.xlsx").read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    with zipfile.ZipFile(tmp_path / "p.xlsx") as archive:
        assert archive.testzip() is None
        assert {info.date_time[0] for info in archive.infolist()} == {1980}


def test_pandas_reads_it_as_it_was_written(result, tmp_path):
    long = table(result, tmp_path / "p.xlsx")
    wide = pd.read_excel(tmp_path / "p.xlsx", sheet_name="percent", index_col="sample")
    back = wide[["B", "T"]].to_numpy().ravel() / 100
    np.testing.assert_allclose(back, long["proportion"], rtol=1e-15)


def test_what_excel_cannot_hold_is_refused_with_the_way_out(make_result, result, tmp_path, monkeypatch):
    with pytest.raises(
        DataError, match=r"p\.xlsx: 'nnn.* has 40000 characters, an Excel cell holds 32767.*\.csv"
    ):
        table(make_result([[0.5, 0.5]], ["n" * 40_000], ["B", "T"]), tmp_path / "p.xlsx")
    monkeypatch.setattr(excel, "MAX_ROWS", 3)
    with pytest.raises(DataError, match=r"'percent' would have 4 rows, Excel holds 3: write a \.csv"):
        table(result, tmp_path / "p.xlsx")
    monkeypatch.undo()
    with pytest.raises(DataError, match=r"'percent' would have 16405 columns, Excel holds 16384"):
        table(
            make_result(np.zeros((1, 16_400)), ["S"], np.arange(16_400), unknown=[0.5]), tmp_path / "p.xlsx"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_keeps_the_old_file(make_result, tmp_path):
    target = tmp_path / "p.xlsx"
    target.write_text("old")
    with pytest.raises(DataError):
        table(make_result([[0.5, 0.5]], ["n" * 40_000], ["B", "T"]), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_without_openpyxl_the_way_to_it_is_told(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r'pip install "scaleshift\[excel\]", or give a name in \.csv'):
        table(result, tmp_path / "p.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_result_without_samples_is_a_workbook_of_headings(make_result, tmp_path):
    book = written(make_result(np.zeros((0, 2)), [], ["B", "T"]), tmp_path)
    assert rows(book["percent"]) == [["sample", "day", "B", "T", "unknown", "n_cells", "flag"]]
