"""Sample sheets: what they say, and which file each row means."""

import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells.sheets.filenames import nearest, sample_names
from scaleshift.cells.sheets.samples import match_files, read_samples
from scaleshift.errors import DataError

CATALYST = {
    "file_name": ["PBMC_2.fcs", "PBMC_1.fcs", "PBMC_10.fcs"],
    "sample_id": ["Ref2", "Ref1", "BCR1"],
    "condition": ["Ref", "Ref", "BCR-XL"],
    "patient_id": [2, 1, 1],
}
CYTONORMPY = {
    "file_name": ["Unit1.fcs", "Unit2.fcs"],
    "reference": ["ref", "other"],
    "batch": [1, 2],
}


def sheet(**columns):
    return read_samples(pd.DataFrame(columns))


def errors(matched):
    return [p.text for p in matched.problems if p.level == "error"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "frame"])
def test_a_catalyst_sheet_is_read_from_any_format(tmp_path, kind):
    frame = pd.DataFrame(CATALYST)
    source = tmp_path / f"md.{kind}"
    if kind == "xlsx":
        frame.to_excel(source, index=False)
    elif kind == "frame":
        source = frame
    else:
        frame.to_csv(source, index=False, sep="," if kind == "csv" else "\t")
    read = read_samples(source)
    assert read.files == tuple(CATALYST["file_name"])
    assert read.samples == ("Ref2", "Ref1", "BCR1")
    assert read.metadata == {"condition": ("Ref", "Ref", "BCR-XL"), "patient_id": (2, 1, 1)}
    assert read.problems == ()


def test_in_a_cytonormpy_sheet_the_file_is_the_sample():
    read = sheet(**CYTONORMPY)
    assert read.samples == ("Unit1", "Unit2")
    assert read.metadata == {"reference": ("ref", "other"), "batch": (1, 2)}


@pytest.mark.parametrize("file", ["file", "FileName", "FCS file", "fcs", "File_Name", "fcs.file"])
@pytest.mark.parametrize("sample", ["Sample", "sample_name", "ID", "SampleID", "sample id"])
def test_columns_go_by_their_usual_names(file, sample):
    read = sheet(**{sample: ["s1"], file: ["a.fcs"], "day": [1]})
    assert (read.files, read.samples, read.metadata) == (("a.fcs",), ("s1",), {"day": (1,)})


def test_the_better_synonym_wins_and_the_other_stays():
    assert sheet(id=[7], file=["a.fcs"], sample_id=["s1"]).metadata == {"id": (7,)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"name": ["a.fcs"], "day": [1]},
            "table: no column of files, found 'name', 'day': call it file_name",
        ),
        ({"file": ["a.fcs", None], "day": [1, 2]}, "table: line 2: file is empty"),
        ({"file": ["a.fcs"], "sample": [""]}, "table: line 1: sample is empty"),
        (
            {"file": ["b.fcs", "a.fcs", "a.fcs"], "day": [1, 1, 2]},
            r"table: 'a.fcs' has two rows that differ \(lines 2 and 3\)",
        ),
    ],
)
def test_a_sheet_that_does_not_say_which_file_is_refused(columns, message):
    with pytest.raises(DataError, match=message):
        sheet(**columns)


def test_a_row_that_stands_twice_counts_once():
    read = sheet(file=["a.fcs", "b.fcs", "a.fcs"], day=[1, 2, 1])
    assert read.files == ("a.fcs", "b.fcs")
    assert [str(p) for p in read.problems] == ["table: 1 repeated rows count once ('a.fcs', ...)"]


def test_columns_called_like_the_layout_are_renamed_aloud():
    read = sheet(file=["a.fcs"], sample_id=["s"], label=["x"], X=[1], label_=[2], cell=["c"])
    assert read.metadata == {"label__": ("x",), "X_": (1,), "label_": (2,), "cell_": ("c",)}
    assert [p.level for p in read.problems] == ["note"] * 3


@pytest.mark.parametrize(
    "name", ["feature", "channel", "kind", "marker_class", "scaling_location", "scaling_scale"]
)
def test_columns_called_like_those_of_the_markers_are_renamed_aloud(name):
    read = sheet(file=["a.fcs"], **{name: ["x"]})
    assert read.metadata == {f"{name}_": ("x",)}
    assert str(read.problems[0]).startswith(f"table: the column {name!r} is called '{name}_'")


def test_an_empty_column_is_left_out_aloud():
    read = sheet(file=["a.fcs", "b.fcs"], day=[None, "NA"])
    assert read.metadata == {}
    assert "the column 'day' is empty and left out" in str(read.problems[0])


def test_files_of_one_sample_must_agree():
    columns = {"file": ["a.fcs", "b.fcs", "c.fcs"], "sample": ["s1", "s2", "s1"], "batch": [1, 1, 2]}
    (problem,) = sheet(**columns).problems
    assert problem.level == "error"
    assert problem.text == "sample 's1' has batch 1 for a.fcs and 2 for c.fcs"
    assert sheet(**(columns | {"batch": [None, 1, 2]})).problems == ()


def test_files_of_one_sample_follow_each_other_in_the_order_of_the_sheet():
    read = sheet(file=["b.fcs", "c.fcs", "a.fcs"], sample=["s1", "s2", "s1"], batch=[None, 1, 2])
    matched = match_files(read, ["a.fcs", "b.fcs", "c.fcs"])
    assert list(matched.samples.items()) == [("b.fcs", "s1"), ("a.fcs", "s1"), ("c.fcs", "s2")]
    assert matched.metadata == {"batch": {"s1": 2, "s2": 1}}


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ("a.fcs", "/data/day1/a.fcs"),
        ("day1/a.fcs", "/data/day1/a.fcs"),
        ("day1\\a.fcs", "/data/day1/a.fcs"),
        ("./day1/a.fcs", "/data/day1/a.fcs"),
        ("day1/a.fcs", "a.fcs"),
        ("../DAY1/a", "/data/day1/a.fcs"),
        ("data/day1/a.fcs", "../day1/a.fcs"),
        ("gate.csv", "gates/gate.csv.gz"),
        ("/elsewhere/a.fcs", "/data/day1/a.fcs"),
        ("C:\\Users\\me\\a.fcs", "/data/day1/a.fcs"),
        ("a", "/data/day1/a.fcs"),
        ("A.FCS", "/data/day1/a.fcs"),
        ("a.fcs", "/data/day1/a.LMD"),
        ("patient.1", "/data/patient.1.fcs"),
        ("run.001", "run.001"),
        ("Zürich é.fcs", "d/Zürich é.fcs"),
        ("store.zarr", "d/store.zarr/"),
    ],
)
def test_a_row_means_the_file_that_it_fits(row, path):
    matched = match_files(sheet(file=[row], sample=["s"]), [path])
    assert matched.samples == {path: "s"}
    assert matched.problems == []


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ("day1/s1.fcs", "/data/day2/s1.fcs"),
        ("old/day1/s1.fcs", "new/day1/s1.fcs"),
        ("data\\day1\\S1", "data/day2/s1.fcs"),
        ("../../etc/s1.fcs", "/data/day2/s1.fcs"),
        ("/data/day1/s1.fcs", "/data/day2/s1.fcs"),
        ("C:\\data\\day1\\s1.fcs", "C:\\data\\day2\\s1.fcs"),
    ],
)
def test_a_row_that_means_a_file_in_another_folder_is_told(row, path):
    matched = match_files(sheet(file=[row], sample=["s"]), [path])
    assert matched.samples == {path: "s"}
    (problem,) = matched.problems
    assert problem.level == "warning"
    assert problem.text == f"the row {row!r} stands for {path}, in another folder"


def test_a_tree_that_moved_is_told_in_one_line():
    read = sheet(file=[f"old/s{i}.fcs" for i in range(30)], sample=[f"s{i}" for i in range(30)])
    (problem,) = match_files(read, [f"new/s{i}.fcs" for i in range(30)]).problems
    assert problem.text.endswith(
        "the row 'old/s0.fcs' stands for new/s0.fcs, in another folder (and 29 more rows)"
    )


@pytest.mark.parametrize(
    "rows",
    [
        ["C:\\data\\day1\\a.fcs", "C:\\data\\day2\\a.fcs"],
        ["/home/me/day1/a.fcs", "/home/me/day2/a.fcs"],
        ["../day1/a.fcs", "../day2/a.fcs"],
        ["Day1/a", "Day2/a"],
        ["2021/day1/a.fcs", "day2/a.fcs"],
    ],
)
def test_folders_tell_files_of_one_name_apart_wherever_the_sheet_was_written(rows):
    paths = ["/mnt/2021/day2/a.fcs", "/mnt/2021/day1/a.fcs"]
    matched = match_files(sheet(file=rows, sample=["one", "two"]), paths)
    assert matched.samples == {paths[1]: "one", paths[0]: "two"}
    assert matched.problems == []


def test_the_row_that_names_a_folder_leaves_the_other_file_to_the_row_that_names_none():
    read = sheet(file=["a.fcs", "day1/a.fcs"], sample=["one", "two"])
    assert match_files(read, ["day1/a.fcs", "a.fcs"]).samples == {"a.fcs": "one", "day1/a.fcs": "two"}


def test_the_better_fit_takes_the_file():
    read = sheet(file=["day1/a.fcs", "day2/a.fcs"], sample=["one", "two"])
    paths = ["x/day2/a.fcs", "x/day1/a.fcs"]
    assert match_files(read, paths).samples == {paths[1]: "one", paths[0]: "two"}
    read = sheet(file=["A.fcs", "a.fcs"], sample=["upper", "lower"])
    assert match_files(read, ["a.fcs", "A.fcs"]).samples == {"A.fcs": "upper", "a.fcs": "lower"}


def test_a_row_of_another_folder_does_not_take_a_file_that_is_meant_by_name():
    read = sheet(file=["day1/a.fcs", "day2/a.fcs"], sample=["one", "two"])
    matched = match_files(read, ["x/day2/a.fcs"])
    assert matched.samples == {"x/day2/a.fcs": "two"}
    assert errors(matched) == ["no file for the row 'day1/a.fcs', the nearest is x/day2/a.fcs"]


def test_a_row_without_a_file_names_the_nearest():
    read = sheet(file=["patient_12.fcs", "patient_2.fcs"], sample=["s12", "s2"])
    matched = match_files(read, ["patient_2.fcs", "patient12.fcs", "patient_1.fcs"])
    (problem,) = [p for p in matched.problems if p.level == "error"]
    assert (problem.place, problem.text) == (
        "table",
        "no file for the row 'patient_12.fcs', the nearest is patient12.fcs",
    )
    assert matched.samples == {"patient_2.fcs": "s2"}


def test_files_without_a_row_are_left_out_aloud():
    matched = match_files(sheet(file=["a.fcs"]), ["b.fcs", "a.fcs", "c.fcs"])
    assert matched.samples == {"a.fcs": "a"}
    (problem,) = matched.problems
    assert problem.level == "warning"
    assert str(problem).startswith("b.fcs: has no row in table and is left out (and 1 more: c.fcs)")


def test_a_row_that_fits_two_files_names_both():
    matched = match_files(sheet(file=["a.fcs"]), ["day1/a.fcs", "day2/a.fcs"])
    assert errors(matched) == ["the row 'a.fcs' fits day1/a.fcs and day2/a.fcs"]
    assert matched.samples == {}
    assert len(matched.problems) == 1


def test_two_rows_that_fit_one_file_are_both_named():
    matched = match_files(sheet(file=["x/a.fcs", "y/a.fcs"]), ["a.fcs"])
    assert errors(matched) == ["the rows 'x/a.fcs' and 'y/a.fcs' both fit a.fcs"]


def test_without_a_column_of_samples_files_of_one_name_stay_apart():
    matched = match_files(sheet(file=["day1/a.fcs", "day2/a.fcs"]), ["day2/a.fcs", "day1/a.fcs"])
    assert matched.samples == {"day1/a.fcs": "day1/a", "day2/a.fcs": "day2/a"}


def test_without_a_sheet_samples_are_files_in_natural_order():
    matched = match_files(None, ["d/S10.fcs", "d/S2.fcs", "d/S2.fcs"])
    assert list(matched.samples.items()) == [("d/S2.fcs", "S2"), ("d/S10.fcs", "S10")]
    assert matched.metadata == {}
    assert matched.problems == []


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/day1/s1.fcs", "x/day2/s1.fcs"], ["day1/s1", "day2/s1"]),
        (["a/day1/s1.fcs", "b/day1/s1.fcs", "b/day1/s2.fcs"], ["a/day1/s1", "b/day1/s1", "s2"]),
        (["s1.fcs", "day2/s1.fcs"], ["s1", "day2/s1"]),
        (["s1.fcs", "s1.lmd"], ["s1.fcs", "s1.lmd"]),
        (["run.001", "run.002"], ["run.001", "run.002"]),
    ],
)
def test_equal_names_get_the_folder_in_front(paths, names):
    assert sample_names(paths) == names


names = st.lists(st.text("ab1.", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@given(st.lists(names.filter(lambda n: n.strip("./")), unique=True, max_size=6))
def test_different_paths_have_different_samples(paths):
    clean = {tuple(part for part in path.split("/") if part != ".") for path in paths}
    if len(clean) == len(paths):
        assert len(set(sample_names(paths))) == len(paths)


@given(st.permutations([f"d{i % 3}/f{i // 3}.fcs" for i in range(9)]), st.randoms(use_true_random=False))
def test_the_order_of_the_files_does_not_matter(paths, random):
    rows = list(paths)
    random.shuffle(rows)
    matched = match_files(sheet(file=rows, sample=[f"s{i}" for i in range(9)]), paths)
    assert list(matched.samples) == rows
    assert matched.problems == []


def test_nothing_that_a_sheet_names_is_opened(tmp_path):
    secret = tmp_path / "secret.fcs"
    secret.mkdir()  # opening it would raise
    matched = match_files(sheet(file=[str(secret), "../secret.fcs"]), ["a.fcs"])
    assert len(errors(matched)) == 2
    assert matched.samples == {}


def test_thousands_of_rows_without_a_file_are_told_in_few_lines():
    read = sheet(file=[f"patient-{i:05d}.fcs" for i in range(3_000)])
    matched = match_files(read, [f"patient_{i:05d}.fcs" for i in range(3_000)])
    assert len(matched.problems) == 22
    assert "no file for the row 'patient-00000.fcs', the nearest is patient_00000.fcs" in errors(matched)[0]
    assert errors(matched)[20].startswith("no file for 2980 more rows, 'patient-00020.fcs' to")


def test_the_nearest_of_very_many_names_is_found():
    many = [f"x{i:05d}_tube.fcs" for i in range(5_000)]
    assert nearest("x03217-tube.fcs", many) == "x03217_tube.fcs"


def test_a_sheet_in_excel_has_its_place_in_errors(tmp_path):
    book = openpyxl.Workbook()
    for row in (["File", "Day"], ["a.fcs", 1], [], ["a.fcs", 2]):
        book.active.append(row)
    book.save(tmp_path / "md.xlsx")
    with pytest.raises(DataError, match=r"md\.xlsx: 'a\.fcs' has two rows that differ \(lines 2 and 4\)"):
        read_samples(tmp_path / "md.xlsx")


@pytest.mark.parametrize("name", ["NA", "nan", "None", "n/a", "NULL"])
def test_a_sample_called_like_a_missing_value_is_refused(name):
    with pytest.raises(DataError, match=rf"table: line 2: sample_id is '{name}', which stands for no name"):
        sheet(file=["a.fcs", "b.fcs", "c.fcs"], sample_id=["s1", name, name])
    assert sheet(file=["a.fcs"], sample_id=["Nan1"]).samples == ("Nan1",)


def test_umlauts_of_a_mac_and_of_excel_are_one():
    of_mac, of_excel = "Mu\u0308ller", "M\u00fcller"
    matched = match_files(sheet(file=[f"{of_excel}.fcs"], sample=[of_mac]), [f"d/{of_mac}.fcs"])
    assert matched.samples == {f"d/{of_mac}.fcs": of_excel}
    assert matched.problems == []
    assert list(match_files(None, [f"d/{of_mac}.fcs"]).samples.values()) == [of_excel]


@pytest.mark.parametrize("days", [["1", "", "", "2", ""], ["1", "", "2", "", "3"]])
def test_a_column_filled_in_the_first_of_some_rows_is_told(days):
    files = [f"{i}.fcs" for i in range(5)]
    (problem,) = sheet(file=files, day=days, arm=["x", "x", "", "y", ""]).problems
    assert problem.level == "warning"
    assert "the column 'day' is filled in the first of some rows each (lines 1, " in problem.text
    assert "merged cells" in problem.fix


@pytest.mark.parametrize("days", [["", "1", "", "2", ""], ["1", "", "", "", ""], ["1", "1", "", "", "2"]])
def test_missing_values_elsewhere_are_nothing_to_tell(days):
    assert sheet(file=[f"{i}.fcs" for i in range(5)], day=days).problems == ()
