"""Which method answers where nobody names one, that it is said, and the verb that compares them."""

import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main
from scaleshift.quantify import methods

CENTRES = np.array([[-4.0, 0], [4.0, 0], [0, 6.0]])
TWO = ("hard-landmarks", "soft-landmarks")
THREE = "sample in (S1, S2, S3)"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Five samples, a quarter of whose cells lie far from the three classes; S5 has no labels."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 1_500)
    x = np.vstack([CENTRES, [[0, -12.0]]])[code] + rng.standard_normal((1_500, 2))
    label = np.array(["a", "b", "c", None], object)[code]
    label[1_200:] = None
    path = tmp_path_factory.mktemp("auto") / "study.zarr"
    ss.write_cells(ss.as_cells(x, sample=np.repeat(["S1", "S2", "S3", "S4", "S5"], 300), label=label), path)
    return path


@pytest.fixture(autouse=True)
def _of_two(monkeypatch):
    """Comparisons of two quick methods."""
    monkeypatch.setattr(methods, "LEAGUE", TWO)


def run(*arguments, code=0):
    few = ["--bootstrap", "20"] if arguments[0] == "quantify" and "--model" not in arguments else []
    result = CliRunner().invoke(main, [*map(str, arguments), *few])
    assert result.exit_code == code, result.output
    return result


def test_of_few_labelled_samples_the_default_answers_and_it_is_said(study, tmp_path):
    selected = ["--source", "sample in (S1, S2, S5)", "--output", tmp_path, "--json"]
    found = run("quantify", study, *selected)
    choice = json.loads(found.stdout)["attributes"]["choice"]
    assert choice.startswith(f"{methods.default()}, the default: ")
    assert choice.endswith("labelled cells each, and there are 2")
    assert f"method: {choice}" in found.stderr.splitlines()
    about = [
        [cell.value for cell in row] for row in openpyxl.load_workbook(tmp_path / "proportions.xlsx")["about"]
    ]
    assert ["chosen by --method auto", choice] in about


def test_of_three_labelled_samples_the_one_that_does_best_on_them_answers(study):
    selected = ["--source", THREE, "--target", "sample == S4", "--json"]
    found = run("quantify", study, *selected)
    by_name = run("quantify", study, *selected, "--method", "soft-landmarks")
    auto, named = json.loads(found.stdout), json.loads(by_name.stdout)
    choice = auto["attributes"].pop("choice")
    assert choice.startswith("soft-landmarks, ")  # a quarter of the cells is unknown
    assert "one of 3 samples is left out" in choice
    assert auto == named
    assert f"method: {choice}" in found.stderr
    assert "method:" not in by_name.stderr


def test_quiet_says_no_word_of_the_choice(study):
    assert "method:" not in run("quantify", study, "--source", "sample == S1", "--quiet").stderr


def test_a_model_that_auto_chose_is_saved_and_answers_again(study, tmp_path):
    target = ["--target", "sample == S4", "--json"]
    first = run("quantify", study, "--source", THREE, "--save-model", tmp_path / "model", *target)
    again = run("quantify", study, "--model", tmp_path / "model", *target)
    assert json.loads(again.stdout)["samples"] == json.loads(first.stdout)["samples"]
    assert ss.load(tmp_path / "model").get_params()["n_bootstrap"] == 20


def test_the_settings_are_those_of_the_method_that_was_chosen(study):
    selected = ["--source", THREE, "--target", "sample == S4", "--json", "--level", "0.5", "--seed", "7"]
    parameters = json.loads(run("quantify", study, *selected).stdout)["attributes"]["parameters"]
    assert (parameters["level"], parameters["random_state"]) == (0.5, 7)


@pytest.mark.parametrize(
    ("method", "option", "having"),
    [
        ("auto", "--bandwidth", "soft-landmarks"),
        ("auto", "--features", "soft-fourier"),
        ("bbse", "--bandwidth", "soft-fourier"),
        ("bbse", "--features", "soft-landmarks"),
    ],
)
def test_options_that_a_method_does_not_have_are_wrong_usage(study, method, option, having):
    given = ["--method", method, option, "12"]
    found = run("quantify", study, "--source", "sample == S1", *given, code=2).output
    assert f"{option} does not go with --method {method}: it is for" in found
    assert having in found


def test_what_is_saved_but_no_quantifier_is_refused(study, tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    ss.DFM(n_bootstrap=0).fit(x, np.repeat(["a", "b"], 30)).embed(x).save(tmp_path / "states")
    found = run("quantify", study, "--model", tmp_path / "states", code=1).output
    assert "holds a SampleStates: --model expects a saved quantifier" in found.replace("\n", " ")


def test_the_league_is_printed_best_first_with_the_recommendation_underneath(study):
    shown = run("compare", study, "--draws", "2").stdout
    assert shown.index("soft-landmarks") < shown.index("hard-landmarks")
    assert "recommended: soft-landmarks, " in shown
    assert "sample" in shown


def test_the_league_for_machines_and_as_a_file(study, tmp_path):
    names = ["--methods", "hard-landmarks,soft-fourier,soft-landmarks"]
    found = run("compare", study, "--source", THREE, *names, "--draws", "2", "--json", "--output", tmp_path)
    league = json.loads(found.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert league["schema"] == "scaleshift.compare/1"
    assert league["attributes"]["samples"] == ["S1", "S2", "S3"]
    by_name = {method["method"]: method for method in league["methods"]}
    assert set(by_name) == {"hard-landmarks", "soft-fourier", "soft-landmarks"}
    assert [m["recommended"] for m in by_name.values()].count(True) == 1
    scores = [method["score"] for method in league["methods"]]
    assert scores == sorted(scores)
    table = pd.read_csv(tmp_path / "league.csv")
    assert table["method"].unique().tolist() == list(by_name)
    first = by_name["soft-landmarks"]["settings"][0]
    row = table[(table["method"] == "soft-landmarks") & (table["setting"] == first["setting"])].iloc[0]
    assert row["error"] == pytest.approx(first["error"])
    for name in ("report.html", "league.csv", "league.zarr"):
        assert str(tmp_path / name) in found.stderr
        assert (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--methods", "magic"], "magic: expected some of", 2),
        (["--methods", ","], "expected some of", 2),
        (["--source", "sample == S9"], "no sample has sample 'S9'", 2),
        (["--source", "sample == S5"], "the source has no labels", 1),
        (["--output", "league.csv"], "--output takes a folder", 2),
    ],
)
def test_what_cannot_be_compared_is_one_line_with_the_right_exit_code(study, arguments, message, code):
    found = run("compare", study, *arguments, code=code)
    assert message in found.output
    assert "Traceback" not in found.output


def test_options_reach_the_methods_that_have_them(study):
    given = ["--method", "soft-landmarks", "--features", "12", "--bandwidth", "2.5", "--json"]
    attributes = json.loads(run("quantify", study, "--source", "sample == S1", *given).stdout)["attributes"]
    assert attributes["bandwidth"] == 2.5
    assert "n_landmarks=12" in attributes["parameters"]["features"]
