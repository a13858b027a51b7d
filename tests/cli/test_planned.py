"""--plan: what a verb would cost, printed in place of a result."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.blocks import room
from scaleshift.cli import main

N = 3_000
VERBS = {
    "slices": ["--predictions", "probability", "--components", "8"],
    "auc": ["--positive", "rare"],
    "error": ["--model", "multinomial", "--source", "sample == S1", "--target", "sample == S2"],
}
LINEAR = ["--model", "ols", "--outcome", "age", "--source", "sample == S1", "--target", "sample == S2"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 5)).astype("f4")
    label = np.where(x[:, 0] > 1, "rare", "rest")
    x[:, 3] = 1 / (1 + np.exp(-x[:, 1]))
    markers = ["CD3", "CD4", "CD8", "probability", "age"]
    cells = ss.as_cells(x, sample=np.repeat(["S1", "S2"], N // 2), label=label, marker=markers)
    cells = cells.assign_coords(feature=("marker", [True, True, True, False, False]))
    path = tmp_path_factory.mktemp("planned") / "study.zarr"
    ss.write_cells(cells, path, chunk_cells=512)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


@pytest.mark.parametrize(
    ("verb", "options", "job"),
    [
        ("slices", VERBS["slices"], "DominoSlicer.fit"),
        ("auc", VERBS["auc"], "SparseAUC.fit, solver moments"),
        ("error", LINEAR, "PredictionError.fit, ols"),
    ],
)
def test_a_plan_is_printed_and_nothing_is_fitted_or_written(study, tmp_path, verb, options, job):
    told = run(verb, study, *options, "--plan", "--output", tmp_path / "results").stdout
    assert told.startswith(f"{job}: ")
    assert "memory: " in told
    assert not (tmp_path / "results").exists()
    found = json.loads(run(verb, study, *options, "--plan", "--json").stdout)
    assert (found["schema"], found["fits"], found["problems"]) == ("scaleshift.plan/1", True, [])
    assert found["job"] == job
    assert found["totals"]["passes_over_x"] >= 1
    assert found["totals"]["thread_bytes"] == max(part["thread_bytes"] for part in found["passes"])
    assert found["room"]["whose"] == "this machine"


@pytest.mark.parametrize(("verb", "options"), [("slices", VERBS["slices"]), ("auc", VERBS["auc"])])
def test_what_does_not_fit_is_exit_code_1(study, monkeypatch, verb, options):
    monkeypatch.setattr(room, "free_here", lambda: 50_000)
    told = run(verb, study, *options, "--plan", code=1).stdout
    assert "does not fit: this machine with" in told
    assert "what would fit: " in told
    found = json.loads(run(verb, study, *options, "--plan", "--json", code=1).stdout)
    assert found["fits"] is False
    assert "what would fit: " in found["problems"][0]


def test_a_model_without_a_plan_is_an_error_in_a_line(study):
    told = run("error", study, *VERBS["error"], "--plan", code=1)
    assert "explain knows the linear models" in told.output
    assert "Traceback" not in told.output


def test_a_state_that_was_fitted_needs_no_plan(study, tmp_path):
    options = [*LINEAR, "--state", tmp_path / "watched"]
    run("error", study, *options, "--plan")
    assert not (tmp_path / "watched").exists()
    run("error", study, *options, "--quiet")
    told = run("error", study, "--state", tmp_path / "watched", "--plan", code=2)
    assert "--plan is of a fit" in told.output
