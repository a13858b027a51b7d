"""scaleshift error as its users meet it: outcomes and targets, alarms, kept states, files, errors."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

import scaleshift as ss
from scaleshift.cli import main

MARKUP = "[red]CD45[/red] $x$"
MARKERS = ["CD3", "CD19", MARKUP, "VIA", "Time"]
N = 300  # cells a sample
SAMPLES = ["A1", "A2", "B1", "B2"]
FEW = ["--bootstrap", "20"]
AGE = ["--model", "ols", "--outcome", "age", *FEW]
LABELS = ["--model", "logistic", "--alpha", "0.01", *FEW]


def made(seed=0, spread=2.0):
    """Sites A and B; B spreads wider. Label, age and VIA depend on the first three markers alike at both."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4 * N, 5)).astype("f4")
    x[2 * N :, :3] *= spread
    age = x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.normal(size=4 * N)
    x[:, 3] = x[:, 0] - x[:, 2] + 0.2 * rng.normal(size=4 * N)
    likely = expit(2 * x[:, 0])
    label = np.where(rng.random(4 * N) < likely, "T cells", "B, naive").astype(object)
    return x, label, age


def add_column(path, name, values):
    """A column of obs, as AnnData writes it."""
    obs = zarr.open_group(path, mode="r+")["obs"]
    if isinstance(values, pd.Categorical):
        attributes = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        obs = obs.create_group(name, attributes=attributes)
        obs.create_array("codes", data=np.asarray(values.codes, "i1"), chunks=(700,))
        name, values = "categories", np.array(values.categories.tolist())
    text = values.dtype.kind in "OU"
    array = obs.create_array(name, shape=values.shape, dtype=str if text else values.dtype, chunks=(500,))
    array[:] = values


def written(path, x, label=None, samples=SAMPLES, age=None):
    cells = ss.as_cells(x, sample=np.repeat(samples, N), label=label, marker=MARKERS)
    cells = cells.assign_coords(
        site=("sample", [name[0] for name in cells["sample"].values.tolist()]),
        feature=("marker", [name != "Time" for name in MARKERS]),
    )
    ss.write_cells(cells, path, chunk_cells=256)
    if age is not None:
        add_column(path, "age", age)
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Site A has outcomes but for a tenth of its cells, site B has none."""
    x, label, age = made()
    without = (np.arange(4 * N) >= 2 * N) | (np.arange(4 * N) % 10 == 0)
    label[without] = None
    age[without] = np.nan
    path = written(tmp_path_factory.mktemp("error") / "study.zarr", x, label, age=age)
    codes = pd.Categorical(np.where(x[:, 0] > 0, "high", "low"), ["never met", "low", "high"])
    codes[without] = None
    add_column(path, "kind", codes)
    return path


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Five days' cells of one sample, day by day: as at home on two, then far out, then as at home."""
    folder = tmp_path_factory.mktemp("days")
    for day, spread in enumerate([1.0, 4.0, 4.0, 4.0, 0.5]):
        x = made(seed=10 + day, spread=spread)[0][2 * N : 3 * N]
        written(folder / f"{day}.zarr", x, samples=["today"])
    return [folder / f"{day}.zarr" for day in range(5)]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    assert "Traceback" not in result.output
    return result


def error(store, *arguments, code=0):
    return run("error", store, *arguments, code=code)


def found(store, *arguments, code=0):
    return json.loads(error(store, *arguments, "--json", code=code).stdout)


def one_line(result):
    return " ".join(result.output.split())


def first(result, target=0):
    """The error of a target by the first method."""
    return result["targets"][target]["methods"][0]["error"]


# Outcomes, source and targets --------------------------------------------------------------------------


def test_a_sentence_says_what_to_expect_and_files_hold_it(study, tmp_path):
    out = tmp_path / "results"
    shown = error(study, *AGE, "--output", out)
    assert shown.stdout.startswith("expected error on 'target': ")
    assert "60 of 600 source cells have no age: left out" in shown.stderr
    table = pd.read_csv(out / "error.csv")
    assert table["method"].tolist() == ["direct", "decomposed"]
    assert (out / "error.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_zarr(out / "error.zarr", consolidated=False) as stored:
        assert stored["error"].values.ravel() == pytest.approx(table["error"].to_numpy())
        assert stored.attrs["outcome"] == "age"
    assert ss.load(out / "fitted").n_features_in_ == 4
    assert f"and {out / 'fitted'}" in shown.stderr


def test_the_numbers_are_those_of_the_library(study):
    """The verb's own handling of cells changes nothing."""
    result = found(study, *AGE)
    age = made()[2]
    cells = [ss.open_cells(study, names) for names in (["A1", "A2"], ["B1", "B2"])]
    y = np.where(np.arange(2 * N) % 10 == 0, np.nan, age[: 2 * N])
    model = ss.PredictionError("ols", n_bootstrap=20, random_state=0).fit(cells[0], y)
    expected = model.predict(cells[1])
    told = [method["error"] for method in result["targets"][0]["methods"]]
    assert told == pytest.approx(expected["error"].values.ravel().tolist(), rel=1e-9)
    in_sample = [method["error_in_sample"] for method in result["methods"]]
    assert in_sample == pytest.approx(expected["error_in_sample"].values.tolist(), rel=1e-9)


def test_labels_are_the_outcome_where_none_is_named(study):
    shown = error(study, *LABELS, "--json")
    result = json.loads(shown.stdout)
    assert result["attributes"]["loss"] == "counting"
    assert result["attributes"]["outcome"] == "label"
    assert 0.02 < first(result) < 0.3
    assert "60 of 600 source cells have no label: left out" in shown.stderr


def test_a_categorical_of_obs_is_an_outcome_too_without_categories_that_no_cell_has(study):
    result = found(study, *LABELS, "--outcome", "kind")
    assert result["attributes"]["outcome"] == "kind"
    assert first(result) < 0.1


def test_a_marker_that_is_predicted_is_no_feature(study):
    result = found(study, "--model", "ols", "--outcome", "VIA", *FEW, "--source", "site == A")
    assert result["attributes"]["features"] == ["CD3", "CD19", MARKUP]
    assert first(result) == pytest.approx(0.04, rel=0.3)
    text = one_line(error(study, "--model", "ols", "--outcome", "VIA", "--markers", "CD3,VIA", code=2))
    assert "VIA is the --outcome: it cannot be one of --markers too" in text


def test_samples_are_targets_of_their_own(study):
    result = found(study, *AGE, "--by-sample")
    assert [one["target"] for one in result["targets"]] == ["B1", "B2"]
    assert [one["n_rows"] for one in result["targets"]] == [N, N]
    together = found(study, *AGE)
    assert first(together) == pytest.approx((first(result) + first(result, 1)) / 2, rel=1e-6)


def test_source_and_target_are_selected_by_metadata(study):
    said = found(study, *AGE, "--source", "site == A", "--target", "site == B")
    assert said["targets"] == found(study, *AGE)["targets"]
    held_out = found(study, *AGE, "--target", "sample == A2")
    assert held_out["targets"][0]["n_rows"] == N
    both = error(study, *AGE, "--source", "site == A", "--target", "sample == A2")
    assert "A2: learned from, and predicted too" in both.stderr


def test_a_sample_without_cells_takes_no_other_with_it(tmp_path):
    x = made()[0]
    cells = ss.as_cells(x, sample=pd.Categorical(np.repeat(SAMPLES, N), [*SAMPLES, "empty"]), marker=MARKERS)
    ss.write_cells(cells, tmp_path / "s.zarr", chunk_cells=256)
    shown = error(tmp_path / "s.zarr", "--model", "ols", "--outcome", "VIA", *FEW, "--source", "sample == A1")
    assert "empty: no cells, left out" in shown.stderr


def test_cells_of_a_sample_are_taken_as_independent_unless_it_is_said_that_they_are_not(study):
    assert "--groups sample takes those of a sample as not independent" in error(study, *AGE).stderr
    assert "--groups sample" not in error(study, *AGE, "--groups", "sample", "--cv", "2").stderr
    assert "--groups sample" not in error(study, *AGE, "--source", "sample == A1").stderr


def test_methods_are_named_in_their_order(study):
    result = found(study, *LABELS, "--method", "decomposed,average_confidence,cv,direct")
    names = [one["method"] for one in result["targets"][0]["methods"]]
    assert names == ["decomposed", "average_confidence", "cv", "direct"]
    wrong = error(study, *LABELS, "--method", "bootstrap", code=2)
    assert "'bootstrap': expected all, or some of direct, decomposed" in one_line(wrong)


def test_json_is_versioned_and_has_no_nan(study):
    text = error(study, *AGE, "--method", "direct,average_confidence", "--json").stdout
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert result["schema"] == "scaleshift.error/1"
    assert result["attributes"]["parameters"]["n_bootstrap"] == 20
    assert result["source"]["error_cv"] > 0
    assert set(result["targets"][0]) >= {"target", "n_rows", "far", "unreliable", "flag", "methods"}
    assert list(result["targets"][0]["by_feature"]) == MARKERS[:4]
    assert result["alarm"] == {
        "above": None,
        "on": None,
        "for": None,
        "consecutive": {},
        "ringing": False,
        "ringing_targets": [],
    }


def test_the_same_seed_gives_the_same_output_and_quiet_says_nothing_beside_it(study, tmp_path):
    assert len({error(study, *LABELS, "--json").stdout for _ in range(2)}) == 1
    assert error(study, *AGE, "--quiet", "--output", tmp_path).stderr == ""


def test_rows_of_nan_are_refused_or_left_out(tmp_path):
    x, label, _ = made()
    x[7, 2] = x[-5, 1] = np.nan
    label[2 * N :] = None
    store = written(tmp_path / "s.zarr", x, label)
    assert "first rows 7" in one_line(error(store, *LABELS, code=1))
    shown = error(store, *LABELS, "--invalid", "drop", "--json")
    result = json.loads(shown.stdout)
    assert result["targets"][0]["n_invalid"] == 1
    assert result["targets"][0]["n_rows"] == 2 * N - 1
    assert "1 source cell holds NaN" in shown.stderr


# Model files -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skops():
    return pytest.importorskip("skops.io", reason="needs the extra skops")


def test_the_estimator_of_a_skops_file_is_refitted(study, skops, tmp_path):
    """What it was fitted to does not count, its parameters do."""
    x = pd.DataFrame(made()[0][:, [4, 0]], columns=["Time", "CD3"])
    skops.dump(LinearRegression().fit(x, np.zeros(len(x))), tmp_path / "m.skops")
    given = ["--outcome", "age", *FEW, "--model", tmp_path / "m.skops", "--generator", "plugin"]
    out = tmp_path / "out"
    shown = error(study, *given, "--output", out)
    result = xr.open_zarr(out / "error.zarr", consolidated=False)
    assert json.loads(result.attrs["features"]) == ["Time", "CD3"]
    noise = 0.09 + 0.25 * 1.0  # of age, and of CD19, which the model does not see
    assert result["error"].values.ravel()[0] == pytest.approx(noise, rel=0.4)
    assert shown.stderr.endswith(
        "what was learned of the model is not saved: refits need the source's cells\n"
    )
    assert not (out / "fitted").exists()
    kept = one_line(error(study, *given, "--state", tmp_path / "state", code=2))
    assert "--state keeps no model that is refitted" in kept
    assert "pass --refit never" in kept
    assert "sklearn" not in kept
    assert not (tmp_path / "state").exists()


def test_a_model_file_that_stays_as_it_is_can_be_watched(study, skops, tmp_path):
    x, label, _ = made()
    skops.dump(LogisticRegression().fit(x[:, [0, 1]], label), tmp_path / "m.skops")
    state = ["--state", tmp_path / "state", "--markers", "CD3,CD19", "--json"]
    model = ["--model", tmp_path / "m.skops", "--refit", "never", *FEW]
    first = error(study, *model, *state, "--alarm-above", "0", code=3)
    assert json.loads(first.stdout)["alarm"]["ringing"]
    again = error(study, "--state", tmp_path / "state", "--json", code=3)
    assert json.loads(again.stdout)["targets"] == json.loads(first.stdout)["targets"]


def test_a_model_that_predicts_labels_needs_labels_and_one_of_numbers_numbers(study, skops, tmp_path):
    x, label, age = made()
    for name, model in (("c", LogisticRegression().fit(x, label)), ("r", LinearRegression().fit(x, age))):
        skops.dump(model, tmp_path / f"{name}.skops")
    regressor, classifier = tmp_path / "r.skops", tmp_path / "c.skops"
    assert "predicts numbers: name with --outcome" in one_line(error(study, "--model", regressor, code=2))
    text = one_line(error(study, "--model", classifier, "--outcome", "VIA", code=2))
    assert "VIA is a marker, and --model" in text
    text = one_line(error(study, "--model", regressor, "--outcome", "kind", code=2))
    assert "--outcome kind is text, and --model" in text


def test_an_onnx_model_is_taken_as_it_is_and_it_is_said(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    data = Path(__file__).parents[1] / "data"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2)).astype("f4")
    scores = x @ np.array([[2.0, -1, 0], [0, 1, -2]]) + [0, 0.5, -0.5] + rng.gumbel(size=(900, 3))
    label = np.array(["A", "B", "C"], object)[scores.argmax(axis=1)]
    label[600:] = None
    store = tmp_path / "s.zarr"
    sample = np.repeat(["S1", "S2", "S3"], 300)
    ss.write_cells(ss.as_cells(x, sample=sample, label=label, marker=["CD3", "CD19"]), store)
    shown = error(store, "--model", data / "logistic_maps.onnx", *FEW, "--json")
    assert "is an ONNX model, which cannot be refitted" in shown.stderr
    assert 0.1 < first(json.loads(shown.stdout)) < 0.6
    refused = error(store, "--model", data / "logistic_maps.onnx", "--refit", "cold", code=2)
    assert "cannot be refitted" in one_line(refused)


# Alarms ------------------------------------------------------------------------------------------------


def test_an_alarm_rings_where_the_error_of_a_target_is_above(study):
    expected = first(found(study, *AGE))
    below, above = str(expected * 0.99), str(expected * 1.01)
    rung = error(study, *AGE, "--alarm-above", below, code=3)
    assert "ALARM: the error is above" in rung.stdout
    assert "target" in rung.stdout
    assert "ALARM" not in error(study, *AGE, "--alarm-above", above).stdout
    low = ["--alarm-on", "low", "--alarm-above"]
    error(study, *AGE, *low, below)
    rung = found(study, *AGE, *low, str(expected * 0.5), code=3)["alarm"]
    assert rung == {
        "above": expected * 0.5,
        "on": "low",
        "for": 1,
        "consecutive": {"target": 1},
        "ringing": True,
        "ringing_targets": ["target"],
    }


def test_results_are_written_and_printed_though_the_alarm_rings(study, tmp_path):
    result = found(study, *AGE, "--alarm-above", "0", "--output", tmp_path / "out", code=3)
    assert result["alarm"]["ringing"]
    assert (tmp_path / "out" / "error.csv").exists()


def test_what_is_not_known_does_not_ring_and_it_is_said(study):
    shown = error(study, *AGE, "--method", "average_confidence,direct", "--alarm-above", "0")
    assert "target: the error is not known, which counts as not above 0" in shown.stderr


def test_with_for_it_rings_after_so_many_updates_in_a_row(study, days, tmp_path):
    """Days 1 to 3 are far out, day 4 is not; the past is all but forgotten."""
    state = ["--state", tmp_path / "state"]
    at_home = first(found(study, *AGE, "--target", "sample == A2"))
    alarm = ["--alarm-above", str(2 * at_home), "--for", "3"]
    fit = found(study, *AGE, *state, *alarm, "--target", "sample == A2")
    assert fit["alarm"]["consecutive"] == {"target": 0}
    far_out = first(found(days[1], *AGE, "--state", shutil.copytree(tmp_path / "state", tmp_path / "copy")))
    assert far_out > at_home
    bound = ["--alarm-above", str((at_home + far_out) / 2)]
    codes, counts = [0, 0, 0, 3, 0], []
    for day, code in zip(days, codes, strict=True):
        alarm = found(day, *state, *bound, "--forget", "0.99", code=code)["alarm"]
        assert alarm["for"] == 3
        counts.append(alarm["consecutive"]["target"])
    assert counts == [0, 1, 2, 3, 0]


# States ------------------------------------------------------------------------------------------------


def test_a_state_is_fitted_once_and_then_needs_neither_model_nor_source(study, days, tmp_path):
    state = tmp_path / "deep" / "state"
    one = found(study, *AGE, "--state", state)
    assert one["targets"] == found(study, *AGE)["targets"]
    two = found(days[1], "--state", state)
    assert two["targets"][0]["n_rows"] == 3 * N
    assert two["attributes"]["model"] == "ols"
    assert first(two) > first(one)
    forgot = found(days[2], "--state", state, "--forget", "0.5")
    assert forgot["targets"][0]["n_rows"] == 1.5 * N + N
    refused = one_line(error(days[3], "--state", state, "--by-sample", code=2))
    assert "was fitted without --by-sample; leave --by-sample out, or choose another --state" in refused


def test_updates_are_as_one_answer_for_all_their_cells(study, tmp_path):
    state = ["--state", tmp_path / "state"]
    found(study, *AGE, *state, "--target", "sample == B1")
    both = found(study, *state, "--target", "sample == B2")
    assert first(both) == pytest.approx(first(found(study, *AGE, "--source", "site == A")), rel=1e-9)


def test_an_update_that_is_run_twice_is_added_once_and_rings_again(study, days, tmp_path):
    state = ["--state", tmp_path / "state"]
    error(study, *AGE, *state, "--alarm-above", "0.0001", code=3)
    once = error(days[1], *state, "--json", code=3)
    shutil.copytree(days[1], tmp_path / "restored.zarr")  # the same cells, from elsewhere
    again = error(tmp_path / "restored.zarr", *state, "--json", code=3)
    assert "they are not added again" in again.stderr
    one, two = json.loads(once.stdout), json.loads(again.stdout)
    assert two["targets"] == one["targets"]
    assert two["alarm"] == one["alarm"]
    assert two["alarm"]["consecutive"] == {"target": 2}
    assert found(days[2], *state, code=3)["alarm"]["consecutive"] == {"target": 3}


def test_the_bound_of_a_state_is_kept_and_another_one_starts_anew(study, days, tmp_path):
    state = ["--state", tmp_path / "state"]
    error(study, *AGE, *state, "--alarm-above", "0.0001", "--for", "2")
    assert found(days[0], *state, code=3)["alarm"]["for"] == 2
    assert found(days[1], *state, "--alarm-above", "0.001")["alarm"]["consecutive"] == {"target": 1}
    near = error(days[1], *state, "--for", "3")
    assert "no alarm yet: the error is above 0.001: target (1 of 3 updates)" in near.stdout


def test_what_was_learned_from_is_no_target_of_an_update(study, tmp_path):
    state = ["--state", tmp_path / "state"]
    error(study, *AGE, *state, "--target", "sample == B1")
    assert found(study, *state)["targets"][0]["n_rows"] == 3 * N


def test_a_failed_update_leaves_the_state_as_it_was(study, tmp_path):
    state = ["--state", tmp_path / "state"]
    error(study, *AGE, *state)
    x = made()[0]
    x[3, 1] = np.nan
    store = written(tmp_path / "bad.zarr", x)
    before = (tmp_path / "state" / "zarr.json").read_bytes()
    error(store, *state, code=1)
    assert (tmp_path / "state" / "zarr.json").read_bytes() == before
    assert found(store, *state, "--invalid", "drop")["targets"][0]["n_rows"] == 2 * N + 4 * N - 1


def test_another_fit_than_the_one_that_is_kept_is_refused(study, tmp_path):
    state = ["--state", tmp_path / "state"]
    error(study, *AGE, *state)
    assert "AGAIN" not in error(study, *AGE, *state).stdout  # the same command is no other fit
    text = one_line(error(study, *state, "--bootstrap", "30", code=2))
    assert "--bootstrap 30: " in text
    assert "was fitted with 20; leave --bootstrap out, or choose another --state" in text
    assert "was fitted with ols" in one_line(error(study, *state, "--model", "ridge", code=2))


def test_a_folder_of_something_else_is_no_state(study, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    assert "mine" in one_line(error(study, *AGE, "--state", tmp_path / "mine", code=1))
    (tmp_path / "empty").mkdir()
    error(study, *AGE, "--state", tmp_path / "empty")
    error(study, *AGE, "--output", tmp_path / "out")
    text = one_line(error(study, "--state", tmp_path / "out" / "fitted", code=1))
    assert "holds a PredictionError: choose another folder" in text


# Wrong usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "pass --model: a name or a file of a model", 2),
        (["--model", "olss"], "did you mean 'ols'?", 2),
        (["--model", "m.pkl"], "a pickle file runs whatever code", 1),
        (["--model", "ols", "--trust", "a.B"], "--trust goes with a model file", 2),
        (["--model", "ols"], "name with --outcome a numeric column of obs, or a marker", 2),
        (["--model", "ols", "--outcome", "agee"], "did you mean 'age'?", 2),
        (["--model", "ols", "--outcome", "sample"], "a cell's sample is no outcome", 2),
        (["--model", "logistic", "--outcome", "VIA"], "VIA is a marker", 2),
        ([*AGE, "--source", "site == C"], "no sample has site 'C'", 2),
        ([*AGE, "--target", "sit == A"], "did you mean 'site'?", 2),
        ([*AGE, "--target", "all"], "none is left to learn from", 2),
        ([*AGE, "--source", "all", "--target", "site == C"], "no sample has site 'C'", 2),
        ([*AGE, "--source", "site == B"], "no cell of the samples with site == B has a age", 1),
        (["--model", "ols", "--outcome", "VIA"], "every sample is learned from", 2),
        ([*AGE, "--markers", "CD33"], "CD33", 1),
        ([*AGE, "--for", "3", "--alarm-above", "0.1"], "--state DIR keeps", 2),
        ([*AGE, "--alarm-on", "low"], "go with --alarm-above", 2),
        ([*AGE, "--alarm-above", "nan"], "expected a finite number", 2),
        ([*AGE, "--forget", "0.2"], "--forget is of updates", 2),
        (["--state", "nowhere"], "is not there yet: pass --model", 2),
        ([*AGE, "--cv", "1"], "1 fold leaves nothing to learn from", 2),
        ([*AGE, "--output", "error.png"], "--output takes a folder", 2),
    ],
)
def test_what_cannot_be_done_is_told_with_the_right_exit_code(study, arguments, message, code):
    assert message in one_line(error(study, *arguments, code=code))


def test_results_and_states_are_not_written_into_the_study(study):
    assert "lies in STORE itself" in error(study, *AGE, "--output", study / "out", code=2).output
    assert "lies in STORE itself" in error(study, *AGE, "--state", study / "state", code=2).output
    assert not (study / "out").exists()


def test_results_of_others_are_not_replaced(study, tmp_path):
    (tmp_path / "error.zarr").mkdir()
    assert "scaleshift did not write it" in one_line(error(study, *AGE, "--output", tmp_path, code=1))
    assert not (tmp_path / "error.csv").exists()


def test_a_study_without_labels_is_told_how_to_get_them(tmp_path):
    store = written(tmp_path / "s.zarr", made()[0])
    assert "has no labels: run `scaleshift label" in one_line(error(store, *LABELS, code=1))


def test_the_verb_stands_in_the_list():
    text = run("--help").stdout
    assert "error       How wrong will a model be on samples without labels?" in text
