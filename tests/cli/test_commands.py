"""The command line as its users meet it: tables, files, JSON, exit codes, errors in one line."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

RNG = np.random.default_rng(0)
CENTRES = np.array([[-4.0, 0], [4.0, 0]])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three samples of two classes; S2 and S10 are gated too, S3 holds a class that S2 lacks."""
    path = tmp_path_factory.mktemp("cli") / "study.zarr"
    x, y, sample = [], [], []
    for name, share in {"S2": 0.5, "S3": 0.9, "S10": 0.2}.items():
        code = (RNG.random(1_500) > share).astype(int)
        x.append(CENTRES[code] + RNG.standard_normal((1_500, 2)))
        y += ["rare" if name == "S3" and i < 20 else "AB"[c] for i, c in enumerate(code)]
        sample += [name] * 1_500
    labels = np.array(y, object)
    ss.write_cells(ss.as_cells(np.vstack(x), sample=sample, label=labels, marker=["CD3", "CD19"]), path)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def test_quantify_prints_a_table_and_writes_a_csv_and_a_picture(study, tmp_path):
    out = tmp_path / "results"
    found = run("quantify", study, "--source", "sample == S2", "--output", out)
    assert "S10" in found.output
    table = pd.read_csv(out / "proportions.csv")
    first = table[(table["sample"] == "S10") & (table["label"] == "A")].iloc[0]
    assert abs(first["proportion"] - 0.2) < 0.03
    assert set(table["sample"]) == {"S3", "S10"}
    assert (out / "proportions.png").read_bytes().startswith(b"\x89PNG")


def labels_of(found, sample=0):
    return {label["label"]: label["proportion"] for label in found["samples"][sample]["labels"]}


def test_labels_that_no_selected_cell_has_are_left_out(study):
    text = run("quantify", study, "--source", "sample == S2", "--target", "sample == S10", "--json").stdout
    assert list(labels_of(json.loads(text))) == ["A", "B"]


def test_a_label_of_the_targets_only_is_flagged(study):
    arguments = ["--source", "sample == S2", "--target", "sample == S3", "--method", "soft-fourier", "--json"]
    found = json.loads(run("quantify", study, *arguments).stdout)
    assert labels_of(found)["rare"] is None
    assert found["samples"][0]["flag"] == "not in the source: rare"


def test_targets_without_any_label_are_the_main_job(tmp_path):
    x = np.vstack([CENTRES[[0, 1] * 200], CENTRES[[0, 0, 0, 1] * 100]]) + RNG.standard_normal((800, 2))
    cells = ss.as_cells(x, sample=["a"] * 400 + ["b"] * 400, label=["A", "B"] * 200 + [None] * 400)
    ss.write_cells(cells, tmp_path / "s.zarr")
    text = run("quantify", tmp_path / "s.zarr", "--source", "sample == a", "--json").stdout
    assert abs(labels_of(json.loads(text))["A"] - 0.75) < 0.05
    failed = run("quantify", tmp_path / "s.zarr", "--source", "sample == b", code=1)
    assert "the source has no labels" in failed.output


def test_a_study_without_labels_is_told_how_to_get_them(tmp_path):
    store = tmp_path / "s.zarr"
    ss.write_cells(ss.as_cells(RNG.standard_normal((40, 2)), sample=["a", "b"] * 20), store)
    failed = run("quantify", store, "--source", "sample == a", code=1).output.replace("\n", "")
    assert f"s.zarr has no labels: run `scaleshift label {store} TABLE` first" in failed
    assert "pass y" not in failed


@pytest.mark.parametrize("name", ["out.xlsx", "proportions.CSV", "out.png"])
@pytest.mark.parametrize("verb", [["quantify", "no.zarr", "--source", "sample == a"], ["demo"]])
def test_an_output_that_is_called_like_a_file_is_refused(tmp_path, name, verb):
    found = run(*verb, "--output", tmp_path / name, code=2)
    assert "--output takes a folder" in found.output
    assert list(tmp_path.iterdir()) == []


def test_all_selects_the_samples_of_the_source_too(study):
    found = run("quantify", study, "--source", "sample == S2", "--target", "all", "--json").stdout
    assert [sample["sample"] for sample in json.loads(found)["samples"]] == ["S2", "S3", "S10"]
    everything = run("quantify", study, "--source", "all", code=2)
    assert "pass --target all" in everything.output


def test_an_output_that_cannot_be_made_is_told_before_anything_runs(study, tmp_path, monkeypatch):
    monkeypatch.setattr("scaleshift.cli.quantify.run", lambda *a, **k: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    found = run("quantify", study, "--source", "sample == S2", "--output", tmp_path / "file" / "out", code=1)
    assert "choose another folder" in found.output


def test_json_is_versioned_and_has_no_nan(study):
    arguments = ["--source", "sample == S2", "--target", "sample == S10", "--bootstrap", "0", "--json"]
    text = run("quantify", study, *arguments).stdout
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["schema"] == "scaleshift.quantify/1"
    (sample,) = found["samples"]
    assert sample["n_cells"] == 1_500
    assert sample["p_value"] is None
    assert {"label", "proportion", "proportion_low"} <= set(sample["labels"][0])


def test_the_same_seed_gives_the_same_output(study):
    outputs = {run("quantify", study, "--source", "sample == S2", "--json").stdout for _ in range(2)}
    assert len(outputs) == 1


@pytest.mark.parametrize("method", ["soft-fourier", "hard-landmarks", "bbse"])
def test_a_saved_model_answers_as_the_one_that_was_fitted(study, tmp_path, method):
    target = ["--target", "sample == S10", "--json"]
    learn = ["--source", "sample == S2", "--method", method, "--level", "0.5", "--bootstrap", "50"]
    learn += ["--save-model", tmp_path / "model"]
    first = json.loads(run("quantify", study, *learn, *target).stdout)
    again = json.loads(run("quantify", study, "--model", tmp_path / "model", *target).stdout)
    assert first["attributes"].pop("source") == "sample == S2"
    assert again["attributes"].pop("model") == str(tmp_path / "model")
    assert again == first
    assert set(first["attributes"]) >= {"seed", "bandwidth", "unknown_baseline"}


def test_a_model_quantifies_all_samples_where_none_are_chosen(study, tmp_path):
    learn = ["--source", "sample == S2", "--save-model", tmp_path / "model", "--bootstrap", "0", "--json"]
    learn += ["--method", "soft-fourier"]
    run("quantify", study, *learn)
    found = json.loads(run("quantify", study, "--model", tmp_path / "model", "--json").stdout)
    assert [sample["sample"] for sample in found["samples"]] == ["S2", "S3", "S10"]
    assert found["samples"][0]["p_value"] is None  # saved without folds
    silent = run("quantify", study, "--model", tmp_path / "model", "--alarm", "S", code=1)
    assert "was fitted without folds" in silent.output


def test_the_module_is_the_command():
    found = subprocess.run([sys.executable, "-m", "scaleshift", "--help"], capture_output=True, check=True)
    assert b"scaleshift quantify study.zarr" in found.stdout


def test_an_alarm_is_exit_code_3(study):
    arguments = ["quantify", study, "--source", "sample == S2", "--target", "sample == S3", "--json"]
    arguments += ["--method", "soft-fourier"]
    found = json.loads(run(*arguments, "--alarm", "a, x", code=3).stdout)
    assert found["samples"][0]["flag_codes"] == ["A"]
    assert found["attributes"]["source_samples"] == ["S2"]
    assert found["attributes"]["parameters"]["soft"] is True
    run(*arguments, "--alarm", "EX", code=0)


def test_intervals_are_in_the_json_and_the_table(study, tmp_path):
    arguments = ["--source", "sample == S2", "--target", "sample == S10", "--output", tmp_path]
    arguments += ["--method", "soft-fourier"]
    run("quantify", study, *arguments)
    row = pd.read_csv(tmp_path / "proportions.csv").iloc[0]
    assert row["proportion_low"] < row["proportion"] < row["proportion_high"]
    assert 0 < row["p_value"] <= 1


def test_hard_matching_has_no_unknown_share(study):
    text = run("quantify", study, "--source", "sample==S2", "--json", "--method", "hard-fourier").stdout
    found = json.loads(text)
    assert found["samples"][0]["unknown"] is None


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--source", "sample == S4"], "S4", 2),
        (["--source", "donor == 1"], "donor", 2),
        (["--source", "sample = S2"], "sample = S2", 2),
        (["--source", "sample != S99"], "no sample has sample 'S99'", 2),
        (["--source", "sample in (S2, S3, S10)"], "none is left to quantify", 2),
        (["--source", "sample == S2", "--bandwidth", "wide"], "expected 'auto' or a positive number", 2),
        (["--source", "sample == S2", "--method", "magic"], "magic", 2),
        ([], "pass --source, the samples to learn from, or --model", 2),
        (["--model", "m", "--source", "sample == S2"], "--source does not go with --model", 2),
        (["--model", "m", "--bandwidth", "2"], "--bandwidth does not go with --model", 2),
        (["--model", "m", "--save-model", "n"], "--save-model does not go with --model", 2),
        (["--model", "no-such-model"], "no-such-model", 1),
        (["--source", "sample == S2", "--bootstrap", "1"], "1 replicate has no spread: expected 0, or 2", 2),
        (["--source", "sample == S2", "--level", "95"], "95.0 is not in the range 0<x<1", 2),
        (["--source", "sample == S2", "--alarm", "s", "--bootstrap", "0"], "--bootstrap 0 leaves out", 2),
        (
            ["--source", "sample == S2", "--alarm", "SZ"],
            "no flag has the letter Z; there are E (no cells)",
            2,
        ),
        (
            ["--source", "sample == S2", "--resample", "samples", "--method", "soft-fourier"],
            "needs a source of several samples",
            1,
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_right_exit_code(study, arguments, message, code):
    found = run("quantify", study, *arguments, code=code)
    assert message in found.output
    assert "Traceback" not in found.output


def test_a_scheduler_that_does_not_answer_is_one_line(study, monkeypatch):
    monkeypatch.setattr("scaleshift.cluster.existing.SECONDS", 0.3)
    arguments = ["--source", "sample == S2", "--scheduler", "tcp://127.0.0.1:1"]
    found = run("quantify", study, *arguments, code=1).output
    assert "no Dask scheduler answers" in found
    assert "Traceback" not in found


def test_a_store_that_is_none_is_named(tmp_path):
    for place in (tmp_path / "nothing.zarr", tmp_path):
        assert str(place) in run("quantify", place, "--source", "sample == a", code=1).output


def test_a_damaged_store_is_named_with_its_chunk(study, tmp_path):
    copy = tmp_path / "cut.zarr"
    shutil.copytree(study, copy)
    (copy / "X" / "c" / "0" / "0").unlink()
    found = run("quantify", copy, "--source", "sample == S2", code=1)
    assert "cut.zarr: chunk 0 of X" in found.output.replace("\n", "")


def test_nan_cells_are_an_error_or_a_flag(tmp_path):
    x = np.vstack([CENTRES[[0, 1] * 100], CENTRES[[0, 1] * 50]]) + RNG.standard_normal((300, 2))
    x[250] = np.nan
    cells = ss.as_cells(x, sample=["a"] * 200 + ["b"] * 100, label=["A", "B"] * 150, marker=["m", "n"])
    ss.write_cells(cells, tmp_path / "s.zarr")
    arguments = ["quantify", tmp_path / "s.zarr", "--source", "sample == a"]
    assert "m: 1, n: 1" in run(*arguments, code=1).output
    found = json.loads(run(*arguments, "--invalid", "drop", "--json", "--method", "soft-fourier").stdout)
    assert found["samples"][0]["n_invalid"] == 1
    assert found["samples"][0]["flag"] == "cells left out: 1"


def test_the_demo_runs_and_runs_again(tmp_path):
    for _ in range(2):
        found = run("demo", "--output", tmp_path / "demo")
        assert "beside the gates" in found.output
    table = pd.read_csv(tmp_path / "demo" / "proportions.csv")
    assert {"sample", "label", "proportion", "unknown", "flag"} <= set(table)
    assert (tmp_path / "demo" / "proportions.png").exists()


def test_the_demo_does_not_touch_a_study_that_is_not_its_own(study, tmp_path):
    shutil.copytree(study, tmp_path / "demo.zarr")
    assert "is not the demo study" in run("demo", "--output", tmp_path, code=1).output


def test_works_as_an_installed_command_and_tells_its_version():
    found = subprocess.run(
        [sys.executable, "-c", "from scaleshift.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ss.__version__ in found.stdout


def test_asking_for_help_imports_nothing_heavy():
    code = (
        "import sys; from scaleshift.cli import main\n"
        "try: main(['quantify', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'sklearn', 'matplotlib', 'cupy', 'anndata'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_results_are_written_even_if_nobody_reads_what_is_printed(study, tmp_path):
    command = [sys.executable, "-c", "from scaleshift.cli import main; main()", "quantify", str(study)]
    command += ["--source", "sample == S2", "--output", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.close()
    process.wait()
    assert len(pd.read_csv(tmp_path / "out" / "proportions.csv")) == 6


def test_no_number_is_cut_on_a_narrow_terminal(study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    found = run("quantify", study, "--source", "sample == S2", "--target", "sample == S10")
    wide = json.loads(
        run("quantify", study, "--source", "sample == S2", "--target", "sample == S10", "--json").stdout
    )
    assert f"{100 * labels_of(wide)['A']:.1f}" in found.output


@pytest.mark.parametrize("verb", [("quantify", "--source", "sample == S2"), ("compare",)])
@pytest.mark.parametrize("inside", [(), ("deep", "results")])
def test_results_do_not_become_a_part_of_the_study(study, verb, inside):
    before = sorted(study.rglob("*"))
    found = run(*verb, study, "--output", study.joinpath(*inside), code=2)
    assert "lies in STORE itself: choose a folder beside it" in " ".join(found.output.split())
    assert sorted(study.rglob("*")) == before


def test_files_without_a_store_are_told_what_is_missing(tmp_path):
    (tmp_path / "a.csv").write_text("CD3,CD4\n1,2\n")
    found = " ".join(run("ingest", tmp_path / "a.csv", code=2).output.split())
    assert "give files or folders, then STORE, the study that they become" in found
