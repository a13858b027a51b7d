"""scaleshift label: a table of what was labelled, JSON for machines, remarks aside, errors in one line."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

X = np.random.default_rng(4).normal(size=(60, 2))
SAMPLES = ["S1"] * 20 + ["S2"] * 40


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.zarr"
    ss.write_cells(ss.as_cells(X, sample=SAMPLES, marker=["CD3", "CD19"]), path)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def write_table(path, **columns):
    pd.DataFrame({"sample": ["S1", "S1", "S2"], "event": [1, 2, 40]} | columns).to_csv(path, index=False)
    return path


def test_labels_are_written_and_shown(study, tmp_path):
    table = write_table(tmp_path / "t.csv", gate=["T [bold]x", "none", "B"])
    options = ["--column", "gate", "--first-event", "1", "--unlabelled", "none, nothing"]
    found = run("label", study, table, *options)
    rows = [line.split() for line in found.stdout.splitlines()]
    assert found.stdout.startswith("2 of 60 cells have a label")
    assert ["│", "B", "│", "1", "│", "1", "│"] in rows
    assert ["│", "T", "[bold]x", "│", "1", "│", "1", "│"] in rows
    assert ["│", "unlabelled", "│", "58", "│", "2", "│"] in rows
    assert "note: " in found.stderr
    assert "'none' (1 times)" in found.stderr
    assert ss.open_cells(study)["label_code"].values[[0, 59]].tolist() == [1, 0]


def test_json_and_quiet_are_for_machines(study, tmp_path):
    table = write_table(tmp_path / "t.csv", label=["a", "unknown", "b"])
    parents = tmp_path / "parents.csv"
    parents.write_text("label,parent\na,all\n")
    found = run("label", study, table, "--first-event", "1", "--parents", parents, "--json", "--quiet")
    assert found.stderr == ""
    report = json.loads(found.stdout)
    assert report["schema"] == "scaleshift.label/1"
    assert report["labels"][0] == {"label": "a", "parent": "all", "n_cells": 1, "n_samples": 1}
    assert report["parents"] == {"a": "all"}
    assert "part of" in run("label", study, table, "--first-event", "1", "--parents", parents).stdout


def test_gates_are_chosen_by_name(study, tmp_path):
    for gate, events in {"A": [0, 1], "B": [1, 2], "C": [3]}.items():
        (tmp_path / "gates" / "S1").mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"event": events}).to_csv(tmp_path / "gates" / "S1" / f"{gate}.csv", index=False)
    failed = run("label", study, tmp_path / "gates", code=1)
    assert "1 cells lie in both gates 'A' and 'B'" in failed.output
    assert len(failed.output.splitlines()) == 1
    run("label", study, tmp_path / "gates", "--gates", "A,C")
    assert ss.open_cells(study)["label_code"].values[:5].tolist() == [0, 0, -1, 1, -1]
    run("label", study, tmp_path / "gates", "--gates", "B,A", "--overlap", "first")
    assert ss.open_cells(study)["label_code"].values[:3].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv"], "nothing.csv does not exist: expected a table"),
        (["channel:CD4"], "has no column 'CD4'; known: CD3, CD19"),
        (["channel:CD3"], "so it is a measurement"),
        (["channel:CD3", "--column", "x"], "column= goes with a table"),
    ],
)
def test_what_fails_is_one_line_and_exit_code_1(study, arguments, message):
    failed = run("label", study, *arguments, code=1)
    assert message in failed.output
    assert len(failed.output.splitlines()) == 1


def test_the_verb_is_listed():
    assert "scaleshift label" in run("--help").output
    assert "channel:NAME" in run("label", "--help").output


def test_where_events_do_not_tell_their_first_number_the_option_is_named(study, tmp_path):
    table = write_table(tmp_path / "t.csv", label=["a", "b", "c"], event=[1, 2, 39])
    failed = run("label", study, table, code=1)
    assert "may count from 0 or from 1" in failed.output
    assert "--first-event" in failed.output
    assert len(failed.output.splitlines()) == 1
    run("label", study, table, "--first-event", "0")
    last = run("label", study, write_table(table, label=["a", "b", "c"]))
    assert "events count from 1: there is event 40 of sample 'S2', which has 40 events" in last.stderr


def test_labels_are_taken_away_on_request(study, tmp_path):
    run("label", study, write_table(tmp_path / "t.csv", label=["a", "b", "c"]))
    (tmp_path / "empty.csv").write_text("sample,event,label\n")
    failed = run("label", study, tmp_path / "empty.csv", code=1)
    assert "empty.csv labels no cell; pass 'none'" in failed.output
    assert run("label", study, "none").stdout.startswith("0 of 60 cells have a label")


def test_control_codes_of_names_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "study.zarr"
    ss.write_cells(ss.as_cells(X, sample=["S1"] * 20 + ["\x1b[31mred\r"] * 40), path)
    table = tmp_path / "t.csv"
    pd.DataFrame({"sample": ["S1"], "event": [0], "label": ["T\x1b[1m"]}).to_csv(table, index=False)
    found = run("label", path, table)
    assert "1 samples have no label: \N{REPLACEMENT CHARACTER}[31mred" in found.stderr
    assert "\x1b" not in found.output
