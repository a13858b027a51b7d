"""Which cells scaleshift error learns from and predicts: known outcomes, sample sheets, nights of a state."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner
from scipy.special import expit

import scaleshift as ss
from scaleshift.cli import main

MARKERS = ["CD3", "CD19"]
N = 200  # cells a sample
SAMPLES = ["A1", "A2", "B1", "B2"]
FEW = ["--bootstrap", "20", "--json"]
AGE = ["--model", "ols", "--outcome", "age", *FEW]
LABELS = ["--model", "logistic", "--alpha", "0.01", *FEW]
SITE_A = ["--source", "site == A"]


def written(path, samples=SAMPLES, seed=0, spread=1.0, label=None, age=None, sheet=None, empty=()):
    """Cells whose label and age depend on CD3 alike everywhere; `label` and `age` say who has one."""
    rng = np.random.default_rng(seed)
    n = len(samples) * N
    x = (spread * rng.normal(size=(n, 2))).astype("f4")
    labels = np.where(rng.random(n) < expit(2 * x[:, 0]), "T", "B").astype(object)
    ages = x[:, 0] + 0.5 * rng.normal(size=n)
    has = None if label is None else np.where(label, labels, None)
    sample = pd.Categorical(np.repeat(samples, N), [*samples, *empty])
    cells = ss.as_cells(x, sample=sample, label=has, marker=MARKERS)
    names = cells["sample"].values.tolist()
    cells = cells.assign_coords(site=("sample", [name[0] for name in names]))
    if sheet is not None:
        cells = cells.assign_coords(dose=("sample", [sheet.get(name) for name in names]))
    ss.write_cells(cells, path, chunk_cells=64)
    if age is not None:
        values = np.where(age, ages, np.nan)
        zarr.open_group(path, mode="r+")["obs"].create_array("age", data=values, chunks=(150,))
    return path


def of(*names):
    """Which cells are of these samples."""
    return np.isin(np.repeat(SAMPLES, N), names)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """B1 has labels and ages in every other cell, none in its first 100; B2 has neither."""
    half = of("A1", "A2") | (of("B1") & (np.arange(4 * N) % 2 == 0) & (np.arange(4 * N) >= 2 * N + 100))
    return written(tmp_path_factory.mktemp("targets") / "study.zarr", label=half, age=half)


def error(store, *arguments, code=0):
    result = CliRunner().invoke(main, ["error", str(store), *map(str, arguments)])
    assert result.exit_code == code, result.output + str(result.exception)
    assert "Traceback" not in result.output
    return result


def found(store, *arguments, code=0):
    return json.loads(error(store, *arguments, code=code).stdout)


def one_line(result):
    return " ".join(result.output.split())


# Known outcomes of targets -----------------------------------------------------------------------------


def test_what_is_observed_stands_beside_what_is_expected(study, tmp_path):
    shown = error(study, *LABELS[:-1], *SITE_A, "--by-sample", "--output", tmp_path / "out")
    assert " observed " in shown.stdout
    with xr.open_zarr(tmp_path / "out" / "error.zarr", consolidated=False) as stored:
        assert stored["n_observed"].values.tolist() == [50, 0]
        observed = float(stored["observed"][0])
        assert np.isnan(stored["observed"][1])
        assert stored["observed_se"].dims == ("target",)
    assert pd.read_csv(tmp_path / "out" / "error.csv")["observed"].tolist()[0] == pytest.approx(observed)
    told = found(study, *LABELS, *SITE_A, "--by-sample")["targets"]
    assert told[0]["observed"] == pytest.approx(observed)
    assert (told[1]["observed"], told[1]["n_observed"]) == (None, 0)
    cells = ss.open_cells(study, ["A1", "A2"]), ss.open_cells(study, ["B1"])
    model = ss.PredictionError("logistic", alpha=0.01, n_bootstrap=20, random_state=0).fit(cells[0])
    assert observed == pytest.approx(float(model.observed(cells[1])["error"]))


def test_numbers_are_observed_too_and_nothing_is_where_nothing_is_known(study):
    (target,) = found(study, *AGE, *SITE_A)["targets"]
    assert target["n_observed"] == 50
    assert target["observed"] == pytest.approx(0.25, rel=0.6)
    (target,) = found(study, *AGE, *SITE_A, "--target", "sample == B2")["targets"]
    assert "observed" not in target


def test_cells_without_a_label_are_counted_aloud_where_others_of_their_target_have_one(study):
    said = "150 of 200 target cells have no label"
    assert said in error(study, *LABELS, *SITE_A, "--by-sample").stderr
    assert "350 of 400 target cells have no label" in error(study, *LABELS, *SITE_A).stderr
    assert "no label:" not in error(study, *LABELS, *SITE_A, "--target", "sample == B2").stderr
    assert "no label:" not in error(study, *AGE, *SITE_A).stderr


@pytest.mark.parametrize("given", [LABELS, AGE])
def test_labelled_only_predicts_the_cells_that_are_observed(study, given):
    shown = error(study, *given, *SITE_A, "--by-sample", "--labelled-only")
    (target,) = json.loads(shown.stdout)["targets"]
    assert (target["target"], target["n_rows"], target["n_observed"]) == ("B1", 50, 50)
    assert f"B2: no cell has a {'label' if given is LABELS else 'age'}, left out" in shown.stderr
    assert "target cells have no label" not in shown.stderr
    refused = error(study, *given, *SITE_A, "--target", "sample == B2", "--labelled-only", code=1)
    assert "leave --labelled-only out" in refused.stderr


def test_the_errors_of_labelled_cells_are_those_of_the_library(study):
    (target,) = found(study, *LABELS, *SITE_A, "--target", "sample == B1", "--labelled-only")["targets"]
    cells = ss.open_cells(study, ["A1", "A2"]), ss.open_cells(study, ["B1"]).compute()
    model = ss.PredictionError("logistic", alpha=0.01, n_bootstrap=20, random_state=0).fit(cells[0])
    rows = cells[1]["X"].values[cells[1]["label_code"].values >= 0]
    expected = model.predict({"target": rows})["error"].values.ravel().tolist()
    assert [one["error"] for one in target["methods"]] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("given", [LABELS, AGE])
def test_samples_without_any_outcome_are_targets_where_none_is_chosen(study, given):
    told = found(study, *given, "--by-sample")
    assert [one["target"] for one in told["targets"]] == ["B2"]


def test_where_every_sample_has_outcomes_one_has_to_choose(tmp_path):
    store = written(tmp_path / "s.zarr", label=np.ones(4 * N, bool))
    refused = error(store, *LABELS, code=2)
    assert refused.stdout == ""
    assert "every sample is learned from: none is left to predict; pass --target" in one_line(refused)


# Outcomes of the sample sheet --------------------------------------------------------------------------


def test_a_number_of_the_sample_sheet_is_an_outcome(tmp_path):
    sheet = {"A1": 1.0, "A2": 3.0, "B1": 5.0}
    store = written(tmp_path / "s.zarr", sheet=sheet, label=np.ones(4 * N, bool))
    told = found(store, "--model", "ols", "--outcome", "dose", *FEW, "--by-sample")
    assert [one["target"] for one in told["targets"]] == ["B2"]
    assert told["targets"][0]["methods"][0]["error"] == pytest.approx(8 / 3, rel=0.1)  # variance of 1, 3, 5
    cells = ss.open_cells(store, ["A1", "A2", "B1"])
    model = ss.PredictionError("ols", n_bootstrap=20, random_state=0)
    model.fit(cells, np.repeat([1.0, 3.0, 5.0], N))
    expected = model.predict(ss.open_cells(store, ["B2"]))["error"].values.ravel()
    assert [m["error"] for m in told["targets"][0]["methods"]] == pytest.approx(expected.tolist(), rel=1e-9)
    text = one_line(error(store, "--model", "ols", "--outcome", "site", code=2))
    assert "--outcome site is text in the sample sheet" in text


# Nights of a state -------------------------------------------------------------------------------------


@pytest.fixture
def state(study, tmp_path):
    """A state that was fitted by sample, with an alarm that rings."""
    given = ["--state", tmp_path / "state", "--by-sample", "--alarm-above", "0.0001"]
    error(study, *AGE, *SITE_A, *given, code=3)
    return ["--state", tmp_path / "state", "--json"]


def test_a_state_keeps_that_samples_are_targets_of_their_own(state, study, tmp_path):
    night = written(tmp_path / "night.zarr", ["B2", "C1"], seed=1)
    told = found(night, *state, code=3)
    assert [(t["target"], t["n_rows"]) for t in told["targets"]] == [("B2", 2 * N), ("C1", N)]
    error(night, *state, "--by-sample", code=3)  # as it was fitted
    error(study, *AGE, "--state", tmp_path / "together")
    refused = error(night, "--state", tmp_path / "together", "--by-sample", "--json", code=2)
    assert "was fitted without --by-sample; leave --by-sample out" in one_line(refused)
    assert refused.stdout == ""


def test_what_is_observed_in_an_update_is_of_its_cells(state, tmp_path):
    night = written(tmp_path / "n.zarr", ["B1"], seed=1, age=np.arange(N) < 30)
    shown = error(night, *state, code=3)
    assert "observed: of the cells of this update alone" in shown.stderr
    (target,) = json.loads(shown.stdout)["targets"]
    assert (target["n_rows"], target["n_observed"]) == (2 * N, 30)
    zarr.open_group(night, mode="r+")["obs/age"][30:90] = 1.0  # which came in later
    shown = error(night, *state, code=3)
    assert "not added again" in shown.stderr
    assert json.loads(shown.stdout)["targets"][0]["n_observed"] == 90
    without = written(tmp_path / "without.zarr", ["B1"], seed=2)
    assert "observed" not in found(without, *state, code=3)["targets"][0]


def test_a_state_forgets_what_it_was_told_to_and_says_so(state, tmp_path):
    nights = [written(tmp_path / f"{i}.zarr", ["B1"], seed=i) for i in range(1, 5)]
    first = error(nights[0], *state, code=3)
    assert "--forget 0: all cells since the start count" in first.stderr
    shown = error(nights[1], *state, "--forget", "1", code=3)
    assert "--forget 1: the cells of this update alone count" in shown.stderr
    assert json.loads(shown.stdout)["targets"][0]["n_rows"] == N
    kept = error(nights[2], *state, code=3)
    assert json.loads(kept.stdout)["targets"][0]["n_rows"] == N
    part = error(nights[3], *state, "--forget", "0.25", code=3)
    assert "--forget 0.25: 25 % of what earlier updates have told is forgotten" in part.stderr
    assert json.loads(part.stdout)["targets"][0]["n_rows"] == 1.75 * N


def test_with_forget_1_three_bad_nights_in_a_row_ring(study, tmp_path):
    state = ["--state", tmp_path / "state", "--json"]
    fit = found(study, *LABELS, *SITE_A, "--target", "sample == B2", *state[:2])
    bound = ["--alarm-above", fit["targets"][0]["methods"][0]["error"] * 0.8, "--for", "3", "--forget", "1"]
    codes = []
    for i, spread in enumerate([1.0, 4.0, 1.0, 1.0, 1.0]):  # labels far from the boundary are clear
        night = written(tmp_path / f"{i}.zarr", ["B2"], seed=9 + i, spread=spread)
        result = CliRunner().invoke(main, ["error", str(night), *map(str, [*state, *bound])])
        codes.append(result.exit_code)
    assert codes == [0, 0, 0, 0, 3]


def test_a_night_without_cells_leaves_the_state_as_it_was(state, study, tmp_path):
    night = written(tmp_path / "full.zarr", ["B2"], seed=1)
    before = found(night, *state, code=3)
    empty = written(tmp_path / "empty.zarr", ["Z"], seed=1, empty=["B1", "B2"])
    record = (tmp_path / "state" / "zarr.json").read_bytes()
    target = ["--target", "sample in (B1, B2)"]
    shown = error(empty, *state, *target)
    told = json.loads(shown.stdout)
    assert told["targets"] == before["targets"]
    assert told["alarm"]["ringing"] is False
    assert told["alarm"]["consecutive"] == before["alarm"]["consecutive"]
    assert "no cells: the state is as it was" in shown.stderr
    assert (tmp_path / "state" / "zarr.json").read_bytes() == record
    assert "ALARM" not in error(empty, *state[:2], *target).stdout
    error(empty, "--model", "ols", "--outcome", "CD3", *FEW, "--source", "sample == Z", *target, code=1)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--outcome", "agee"], "did you mean 'age'?", 2),
        (["--outcome", "age", "--source", "site == B", "--target", "all", "--markers", "no"], "no", 1),
        (["--outcome", "age", "--source", "sample == B2"], "no cell of the samples with sample == B2", 1),
    ],
)
def test_under_json_an_error_prints_nothing_but_its_message_and_code(study, arguments, message, code):
    refused = error(study, "--model", "ols", *arguments, "--json", code=code)
    assert refused.stdout == ""
    assert message in refused.stderr
