"""From a folder of FCS files with faults to proportions: the same as by way of arrays."""

import json
import re

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner
from fcs_bytes import fcs_bytes

import scaleshift as ss
from scaleshift.cli import main

SAMPLES = ["S01", "S02", "S05", "S09", "S11", "S13"]
MISSING = "S05"  # lacks a marker


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Six samples of the demo as FCS files, channels shuffled; one lacks a marker, two more are broken."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "fcs").mkdir()
    cells = ss.datasets.load_demo()
    markers = cells["marker"].values.tolist()
    rng = np.random.default_rng(0)
    labels = []
    for name in SAMPLES:
        rows = cells["sample_code"].values == cells["sample"].values.tolist().index(name)
        order = rng.permutation(len(markers))
        order = order[order != len(markers) - 1] if name == MISSING else order
        channels = [f"Ch{i}Di" for i in order]
        content = fcs_bytes(cells["X"].values[rows][:, order], channels, [markers[i] for i in order])
        (folder / "fcs" / f"{name}.fcs").write_bytes(content)
        code = cells["label_code"].values[rows]
        label = np.where(code < 0, "ungated", cells["label"].values[code])
        labels.append(pd.DataFrame({"file": f"{name}.fcs", "event": np.arange(len(code)), "label": label}))
    (folder / "fcs" / "empty.fcs").write_bytes(b"")
    (folder / "fcs" / "cut.fcs").write_bytes(content[:-1000])
    pd.concat(labels).to_csv(folder / "labels.csv", index=False)
    label = np.where(cells["label_code"].values < 0, None, cells["label"].values[cells["label_code"].values])
    arrays = ss.as_cells(
        cells["X"].values[:, :-1], cells["sample"].values[cells["sample_code"].values], label, markers[:-1]
    )
    ss.write_cells(arrays, folder / "arrays.zarr")
    return folder


def test_check_names_all_problems(study):
    result = run("check", study / "fcs", code=1)
    lines = {
        line.split()[1]: line for line in result.output.splitlines() if re.match("ok|warning|error", line)
    }
    assert set(lines) == {f"{name}.fcs" for name in [*SAMPLES, "empty", "cut"]}
    assert lines[f"{MISSING}.fcs"].startswith("error")
    assert "lacks the marker" in lines[f"{MISSING}.fcs"]
    assert "--markers common" in lines[f"{MISSING}.fcs"]
    assert "empty" in lines["empty.fcs"]
    assert "cut off" in lines["cut.fcs"]
    assert all(lines[f"{name}.fcs"].startswith("ok") for name in SAMPLES if name != MISSING)
    assert "3 to mend" in result.output
    problems = json.loads(run("check", study / "fcs", "--json", code=1).output)["problems"]
    assert len([p for p in problems if p["level"] == "error"]) == 3


def test_nothing_is_written_while_files_are_wrong(study, tmp_path):
    result = run("ingest", study / "fcs", tmp_path / "s.zarr", code=1)
    assert "problems to mend" in result.output
    assert not (tmp_path / "s.zarr").exists()


def test_proportions_are_those_of_the_arrays(study, tmp_path):
    store, table = tmp_path / "s.zarr", {}
    run("ingest", study / "fcs", store, "--skip", "--markers", "common", "--transform", "none")
    run("label", store, study / "labels.csv")
    for path in (store, study / "arrays.zarr"):
        output = tmp_path / path.stem
        selected = ["--source", "sample in (S01, S09)", "--target", "sample in (S02, S05, S11, S13)"]
        markers = ["--markers", "m0,m1,m2,m3,m4,m5,m6"]  # random features go by the order of the markers
        run("quantify", path, *selected, *markers, "--method", "soft-fourier", "--output", output)
        table[path] = pd.read_csv(output / "proportions.csv")
    by_files, by_arrays = table.values()
    assert by_files["sample"].tolist() == by_arrays["sample"].tolist()
    np.testing.assert_allclose(by_files["proportion"], by_arrays["proportion"], atol=1e-12)
    np.testing.assert_allclose(by_files["unknown"], by_arrays["unknown"], atol=1e-12)


def test_tables_name_files_and_what_was_done_to_them(study, tmp_path):
    store, output = tmp_path / "s.zarr", tmp_path / "out"
    treated = ["--transform", "arcsinh:5", "--transform", "m0=none"]
    run("ingest", study / "fcs", store, "--skip", "--markers", "common", *treated)
    run("label", store, study / "labels.csv")
    run("quantify", store, "--source", "sample in (S01, S09)", "--bootstrap", "0", "--output", output)
    table = pd.read_csv(output / "proportions.csv").set_index("sample")
    assert set(table.loc["S02", "file_name"]) == {"S02.fcs"}
    rows = [
        [cell.value for cell in row] for row in openpyxl.load_workbook(output / "proportions.xlsx")["about"]
    ]
    for row in (
        ["compensation", "none"],
        ["target", "all samples but those of the source"],
        ["left out at import", "cut.fcs"],
        ["left out at import", "empty.fcs"],
    ):
        assert row in rows
    (done,) = (value for name, value in rows if name == "transform")
    assert "none: m0" in done.split("; ")
    assert "arcsinh(x / 5): m" in done
    assert any(name == "remark at import" and value.startswith("error: cut.fcs: ") for name, value in rows)
    assert not any(str(study) in str(value) for _, value in rows)  # where files lay says nothing
