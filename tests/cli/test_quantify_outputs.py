"""Samples chosen by what describes them, and what is left in the output folder."""

import importlib.util
import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

RNG = np.random.default_rng(0)
CENTRES = np.array([[-4.0, 0], [4.0, 0]])
SHARES = {"S1": 0.5, "S2": 0.8, "S3": 0.3, "S4": 0.6}
DESCRIBED = {
    "day": [0, 0, 7, 7],
    "arm": ["control", "treated one", None, "control"],
    "gated": [True, True, False, True],
}

ALWAYS = {"report.html", "proportions.csv", "proportions.png", "proportions.zarr"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Four samples with metadata; S3 has no labels."""
    code = np.concatenate([(RNG.random(500) > share).astype(int) for share in SHARES.values()])
    sample = np.repeat(list(SHARES), 500)
    label = np.where(sample == "S3", None, np.array(["A", "B"], object)[code])
    cells = ss.as_cells(CENTRES[code] + RNG.standard_normal((2_000, 2)), sample=sample, label=label)
    described = cells.assign_coords({name: ("sample", values) for name, values in DESCRIBED.items()})
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    ss.write_cells(described, path)
    return path


def run(*arguments, code=0):
    found = CliRunner().invoke(main, ["quantify", *map(str, arguments), "--bootstrap", "20"])
    assert found.exit_code == code, found.output
    return found


def quantified(study, folder, *selection):
    run(study, *selection, "--output", folder)
    return pd.read_csv(folder / "proportions.csv")["sample"].unique().tolist()


@pytest.mark.parametrize(
    ("selection", "samples"),
    [
        (["--source", "gated == true and day == 0"], ["S3", "S4"]),
        (["--source", "day == 0", "--target", "arm == control"], ["S1", "S4"]),
        (["--source", "sample == S1", "--target", 'arm in ("treated one") and day != 7'], ["S2"]),
        (["--source", "arm != control"], ["S1", "S3", "S4"]),  # S3 has no arm
    ],
)
def test_samples_are_chosen_by_what_describes_them(study, tmp_path, selection, samples):
    assert quantified(study, tmp_path, *selection) == samples


def test_a_saved_model_takes_targets_by_what_describes_them(study, tmp_path):
    run(study, "--source", "day == 0", "--save-model", tmp_path / "model")
    assert quantified(study, tmp_path, "--model", tmp_path / "model", "--target", "gated == false") == ["S3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dya == 0", "no column 'dya'; did you mean 'day'?"),
        ("day == 5", "no sample has day '5'; known: 0, 7"),
        ("day == 0 and gated == false", "chooses no sample; there is day: 0, 7; gated: True, False"),
    ],
)
def test_what_no_sample_has_is_wrong_usage_and_named(study, text, message):
    assert message in run(study, "--source", text, code=2).output


def test_the_output_folder_holds_tables_picture_workbook_and_gated_shares(study, tmp_path):
    found = run(study, "--source", "day == 0", "--output", tmp_path)
    names = [*ALWAYS, "gated.csv", "proportions.xlsx"]
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    assert all(str(tmp_path / name) in found.output for name in names)
    gated = pd.read_csv(tmp_path / "gated.csv").set_index(["sample", "label"])
    assert abs(gated.loc[("S4", "A"), "gated"] - 0.6) < 0.06
    assert abs(gated.loc[("S4", "A"), "difference"]) < 0.05
    assert np.isnan(gated.loc[("S3", "A"), "gated"])
    book = openpyxl.load_workbook(tmp_path / "proportions.xlsx")
    assert book["percent"]["A2"].value == "S3"
    assert book["gated"]["A2"].value == "S3"
    assert ["source sample", "S2"] in [[cell.value for cell in row] for row in book["about"]]
    assert "beside the gates: proportions differ by" in found.output


def test_without_gated_targets_nothing_is_said_of_gates(study, tmp_path):
    found = run(study, "--source", "day == 0", "--target", "sample == S3", "--output", tmp_path)
    assert not (tmp_path / "gated.csv").exists()
    assert "gated" not in openpyxl.load_workbook(tmp_path / "proportions.xlsx").sheetnames
    assert "gates" not in found.output


def test_gated_samples_that_were_learned_from_are_named(study):
    found = run(study, "--source", "day == 0", "--target", "arm == control")
    assert "beside the gates (S1 learned from): proportions differ" in found.output


def test_quiet_says_nothing_of_files_and_gates(study, tmp_path):
    found = run(study, "--source", "day == 0", "--output", tmp_path, "--quiet")
    assert "wrote" not in found.output
    assert "gates" not in found.output


def test_without_openpyxl_the_rest_is_written(study, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "openpyxl" else find(name, *a)
    )
    found = run(study, "--source", "day == 0", "--output", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*ALWAYS, "gated.csv"}
    assert 'proportions.xlsx needs openpyxl: pip install "scaleshift[excel]"' in found.output


def test_what_an_earlier_run_left_is_not_taken_for_this_ones(study, tmp_path, monkeypatch):
    run(study, "--source", "day == 0", "--output", tmp_path)
    monkeypatch.setattr("scaleshift.report.excel.MAX_ROWS", 1)
    found = run(study, "--source", "day == 0", "--target", "sample == S3", "--output", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == ALWAYS
    for name in ("gated.csv", "proportions.xlsx"):
        assert f"removed {tmp_path / name}: an earlier run wrote it" in found.stderr


def test_a_file_of_the_user_stays_whatever_its_name(study, tmp_path):
    mine = {"gated.csv": "file,event,label\n", "proportions.xlsx": "a workbook"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    found = run(study, "--source", "day == 0", "--target", "sample == S3", "--output", tmp_path)
    assert (tmp_path / "gated.csv").read_text() == mine["gated.csv"]
    assert "removed" not in found.output


def test_what_describes_samples_is_in_the_tables_and_in_the_json(study, tmp_path):
    found = run(study, "--source", "day == 0", "--output", tmp_path, "--json")
    of_sample = {sample["sample"]: sample["metadata"] for sample in json.loads(found.stdout)["samples"]}
    assert of_sample["S3"] == {"day": 7, "arm": None, "gated": False}
    table = pd.read_csv(tmp_path / "proportions.csv")
    assert table.columns.tolist()[-3:] == ["day", "arm", "gated"]
    assert table.loc[table["sample"] == "S4", "arm"].tolist() == ["control", "control"]
    sheet = openpyxl.load_workbook(tmp_path / "proportions.xlsx")["percent"]
    assert [cell.value for cell in sheet[1]][:5] == ["sample", "day", "arm", "gated", "A"]
    assert [cell.value for cell in sheet[2]][:4] == ["S3", 7, None, False]


def test_about_tells_what_was_selected_and_how_cells_were_treated(study, tmp_path):
    run(study, "--source", "day == 0", "--target", "all", "--scaling", "z", "--output", tmp_path)
    sheet = openpyxl.load_workbook(tmp_path / "proportions.xlsx")["about"]
    rows = [[cell.value for cell in row] for row in sheet]
    for row in (
        ["study", str(study)],
        ["source", "day == 0"],
        ["source sample", "S1"],
        ["target", "all"],
        ["feature", "0"],
        ["transform", "not known"],
        ["scaling", "each sample by its own mean and standard deviation"],
        ["seed", 0],
        ["scaleshift_version", ss.__version__],
    ):
        assert row in rows
    assert not any(value == "null" for _, value in rows)


def test_a_workbook_that_excel_cannot_hold_does_not_take_the_rest_with_it(study, tmp_path, monkeypatch):
    monkeypatch.setattr("scaleshift.report.excel.MAX_ROWS", 2)
    found = run(study, "--source", "day == 0", "--output", tmp_path)
    assert "left out: " in found.output
    assert "Excel holds 2" in found.output
    assert not (tmp_path / "proportions.xlsx").exists()
    assert (tmp_path / "gated.csv").exists()


def test_a_run_that_fails_leaves_no_empty_folder_of_its_own(study, tmp_path):
    (tmp_path / "old").mkdir()
    for name in ("new/inner", "old", "old/inner"):
        run(study, "--source", "sample == S3", "--output", tmp_path / name, code=1)  # has no labels
        run(study, "--source", "sample == S9", "--output", tmp_path / name, code=2)
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]
    run(study, "--source", "sample == S1", "--output", tmp_path / "new/inner")
    assert (tmp_path / "new/inner/proportions.csv").is_file()
