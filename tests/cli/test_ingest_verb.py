"""The verbs check and ingest: options reach the import, and what it says reaches the user."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from fcs_bytes import fcs_bytes

import scaleshift as ss
from scaleshift.cells.manifest import read_manifest
from scaleshift.cli import main

CHANNELS, MARKERS = ["Time", "FITC-A", "PE-A", "APC-A"], ["", "CD3", "CD4", "CD8"]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, n in (("a", 30), ("b", 50)):
        (folder / f"{name}.fcs").write_bytes(fcs_bytes(rng.gamma(2, 300, (n, 4)), CHANNELS, MARKERS))
    return folder


def test_a_study_is_made_and_what_was_chosen_is_said(folder, tmp_path):
    result = run("ingest", folder, tmp_path / "s.zarr")
    assert "arcsinh(x / 150) for CD3, CD4, CD8: fluorescence" in result.output
    assert "2 samples, 80 cells, 3 features" in result.output
    assert f"wrote {tmp_path / 's.zarr'}" in result.output


def test_options_reach_the_import(folder, tmp_path):
    options = ["--markers", "CD3,CD4", "--transform", "none", "--transform", "CD4=logicle", "--scaling", "z"]
    report = json.loads(run("ingest", folder, tmp_path / "s.zarr", *options, "--json").stdout)
    assert report["schema"] == "scaleshift.ingest/1"
    assert report["features"] == ["CD3", "CD4"]
    assert report["transform"]["markers"]["CD3"]["name"] == "none"
    assert report["transform"]["markers"]["CD4"]["name"] == "logicle"
    assert report["scaling"] == "z"
    assert ss.open_cells(tmp_path / "s.zarr")["marker"].values.tolist() == ["CD3", "CD4"]


def test_quiet_says_nothing(folder, tmp_path):
    assert run("ingest", folder, tmp_path / "s.zarr", "--quiet").output == ""


def test_wrong_files_are_left_out_on_request(folder, tmp_path):
    (folder / "c.fcs").write_bytes(b"nothing")
    assert "c.fcs: is not an FCS file" in run("ingest", folder, tmp_path / "s.zarr", code=1).output
    result = run("ingest", folder, tmp_path / "s.zarr", "--skip")
    assert f"left out: {folder / 'c.fcs'}" in result.output


def test_labels_come_with_the_import_or_stop_it_before(folder, tmp_path):
    (tmp_path / "labels.csv").write_text("file,event,gate\na.fcs,0,T\na.fcs,1,B\nb.fcs,49,T\n")
    result = run("ingest", folder, tmp_path / "s.zarr", "--labels", tmp_path / "missing.csv", code=1)
    assert "missing.csv does not exist" in result.output
    assert not (tmp_path / "s.zarr").exists()
    options = ["--labels", tmp_path / "labels.csv", "--label-column", "gate"]
    said = run("ingest", folder, tmp_path / "s.zarr", *options).output
    assert "3 of 80 cells have a label" in said
    cells = ss.open_cells(tmp_path / "s.zarr")
    assert cells["label"].values.tolist() == ["B", "T"]
    assert np.flatnonzero(cells["label_code"].values >= 0).tolist() == [0, 1, 79]


def test_two_transforms_for_all_are_wrong_usage(folder, tmp_path):
    options = ["--transform", "none", "--transform", "logicle"]
    assert "expected one for all" in run("ingest", folder, tmp_path / "s.zarr", *options, code=2).output


def test_check_shows_markers_for_machines(folder):
    found = json.loads(run("check", folder, "--json").stdout)
    assert found["samples"] == {"a": 30, "b": 50}
    assert {m["marker"]: m["feature"] for m in found["markers"]} == {
        "Time": False, "CD3": True, "CD4": True, "CD8": True
    }  # fmt: skip


def test_an_interrupted_import_says_how_to_go_on_and_does(folder, tmp_path):
    rng = np.random.default_rng(1)
    for i in range(200):
        (folder / f"{i}.fcs").write_bytes(fcs_bytes(rng.gamma(2, 300, (50, 4)), CHANNELS, MARKERS))
    store = tmp_path / "s.zarr"
    code = (  # a process that a shell put into the background ignores interrupts, and so do its children
        "import signal; from scaleshift.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler); main()"
    )
    arguments = [sys.executable, "-c", code, "ingest", folder, store, "--chunk-cells", "16"]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not store.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "the same command with --resume goes on" in said
    assert "Traceback" not in said
    assert read_manifest(store).n_cells < 10_080
    run("ingest", folder, store, "--chunk-cells", "16", "--resume")
    assert read_manifest(store).n_cells == 10_080


def test_columns_of_text_that_are_left_out_are_told_once(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text("CD3,Probe,Population\n1,p,T\n2,p,B\n")
    said = run("ingest", tmp_path, tmp_path / "s.zarr").output
    assert said.count("left out") == 1
    assert f"note: {tmp_path}/a.csv (and 2 more): columns of text are left out: Probe, Population; " in said
    assert "(--sample NAME) if one of them tells the sample" in said


def test_one_of_a_thing_is_no_plural(tmp_path):
    (tmp_path / "a.csv").write_text("CD3\n1\n")
    assert "1 file, 1 sample, 1 cell can be read\n1 feature: CD3" in run("check", tmp_path).output
    assert "1 sample, 1 cell, 1 feature\n" in run("ingest", tmp_path, tmp_path / "s.zarr").output


@pytest.fixture
def table(tmp_path):
    """One table with the cells of two samples, and their labels."""
    path = tmp_path / "cells.csv"
    path.write_text("Probe,Population,CD3\np1,T,1\np1,B,2\np1,,3\np2,B,4\n")
    return path


def test_the_column_of_the_samples_goes_for_the_labels_too(table, tmp_path):
    options = ["--sample", "Probe", "--labels", table, "--label-column", "Population"]
    assert "3 of 4 cells have a label" in run("ingest", table, tmp_path / "s.zarr", *options).output
    cells = ss.open_cells(tmp_path / "s.zarr")
    assert cells["sample"].values.tolist() == ["p1", "p2"]
    assert cells["label"].values[cells["label_code"].values].tolist() == ["T", "B", "T", "B"]
    assert cells["label_code"].values.tolist() == [1, 0, -1, 0]


def test_labels_whose_samples_are_not_told_name_the_way(table, tmp_path):
    labels, store = tmp_path / "labels.csv", tmp_path / "s.zarr"
    labels.write_text(table.read_text().replace("Probe", "Who"))
    options = ["--sample", "Probe", "--labels", labels, "--label-column"]
    said = run("ingest", table, store, *options, "gate", code=1).output
    assert "no column 'gate'" in said
    assert "--label-column of ingest" in said
    said = run("ingest", table, store, *options, "Population", code=1).output
    assert f"{store} has 2 samples: name the column that tells whose events the rows are" in said
    assert f"run `scaleshift label {store} {labels} --column Population`" in said
    assert "3 of 4 cells" in run("label", store, labels, "--column", "Population", "--sample", "Who").output


def test_a_table_of_labels_with_samples_of_its_own_keeps_them(table, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("sample,Probe,label\np1,x,T\np1,x,B\np1,y,T\np2,y,B\n")
    run("ingest", table, tmp_path / "s.zarr", "--sample", "Probe", "--labels", labels)
    assert ss.open_cells(tmp_path / "s.zarr")["label_code"].values.tolist() == [1, 0, 1, 0]
