"""scaleshift auc as its users meet it: labels and their typos, rare gates, files, JSON, errors."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

MARKUP = "[red]CD56[/red] $x$"
MARKERS = ["CD3", MARKUP, "CD45", "CD4", "CD8", "Time"]
N = 3_000


def made(n=N, seed=0):
    """NK, 4 % of the cells, are high in CD56 and low in CD3; every sixth cell is without a label."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).astype("f4")
    rare = rng.random(n) < 0.04
    label = np.where(rare, "NK", np.where(rng.random(n) < 0.5, "T cells", "B, naive")).astype(object)
    x[rare, 1] += 2
    x[rare, 0] -= 1
    label[::6] = None
    return x, label


def written(path, x, label, sample=None, markers=MARKERS):
    cells = ss.as_cells(x, sample=sample, label=label, marker=markers)
    cells = cells.assign_coords(feature=("marker", [name != "Time" for name in markers]))
    ss.write_cells(cells, path, chunk_cells=512)
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three samples in chunks of 512 cells; no cell of the last one has a label."""
    x, label = made()
    sample = np.repeat(["S1", "S2", "S10"], N // 3)
    label[2 * N // 3 :] = None
    cells = ss.as_cells(x, sample=sample, label=label, marker=MARKERS)
    cells = cells.assign_coords(
        day=("sample", [0, 0, 3]), feature=("marker", [name != "Time" for name in MARKERS])
    )
    path = tmp_path_factory.mktemp("auc") / "study.zarr"
    ss.write_cells(cells, path, chunk_cells=512)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    assert "Traceback" not in result.output
    return result


def auc(store, *arguments, positive="NK", code=0):
    return run("auc", store, "--positive", positive, *arguments, code=code)


def found(store, *arguments, **options):
    return json.loads(auc(store, *arguments, "--json", **options).stdout)


def one_line(result):
    return " ".join(result.output.split())


def test_a_table_says_what_ranks_the_rare_cells_and_files_hold_it(study, tmp_path):
    out = tmp_path / "results"
    shown = auc(study, "--selection", "one_se", "--output", out)
    assert "NK over B, naive, T cells: held-out AUC 0.9" in shown.stdout
    assert MARKUP in shown.stdout
    table, path = pd.read_csv(out / "features.csv"), pd.read_csv(out / "path.csv")
    assert table["feature"].tolist()[:2] == [MARKUP, "CD3"]
    assert set(table["feature"]) == set(MARKERS) - {"Time"}
    assert path["k"].tolist() == [1, 2, 3, 4, 5]
    assert path.loc[path["selected"], "features"].tolist() == [f"CD3; {MARKUP}"]
    assert (out / "auc.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_zarr(out / "features.zarr", consolidated=False) as features:
        assert features.sizes == {"feature": 5}
        assert features.attrs["negative"] == "B, naive, T cells"
        assert float(features["auc"]) > 0.9
    with xr.open_zarr(out / "path.zarr", consolidated=False) as stored:
        assert stored["auc"].values == pytest.approx(path["auc"].to_numpy())
    assert shown.stderr.strip().endswith(f"and {out / 'ranking'}")


def test_the_numbers_are_those_of_the_library(study, tmp_path):
    """The verb's own handling of labels changes nothing: same cells, same folds, same ranking."""
    out = tmp_path / "results"
    result = found(study, "--select", "day == 0", "--output", out)
    cells = ss.open_cells(study, ["S1", "S2"])
    known = cells["label"].values[cells["label_code"].values]
    y = np.where(cells["label_code"].values < 0, None, np.where(known == "NK", "NK", "not NK"))
    model = ss.SparseAUC(pos_label="NK", random_state=0).fit(cells, y)
    assert result["ranking"]["auc"] == pytest.approx(model.auc_, abs=1e-12)
    weights = {row["feature"]: row["coef"] for row in result["features"]}
    assert [weights[name] for name in cells["marker"].values] == pytest.approx(model.coef_.tolist())
    saved = ss.load(out / "ranking")
    assert saved.classes_.tolist() == ["not NK", "NK"]
    scores = saved.decision_function(cells).compute()
    rare = (cells["label_code"].values >= 0) & (known == "NK")
    assert float(ss.roc_auc(rare, scores)["auc"]) > 0.9


def test_cells_without_a_label_are_negatives_where_it_is_said_so(study):
    without, against = found(study), found(study, "--against-unlabelled")
    n = made()[1][: 2 * N // 3]
    labelled = sum(name is not None for name in n)
    rare = int(sum(name == "NK" for name in n))
    sides = ("weight_positive", "weight_negative")
    assert [without["ranking"][name] for name in sides] == [rare, labelled - rare]
    assert [against["ranking"][name] for name in sides] == [rare, len(n) - rare]
    assert against["attributes"]["negative"] == "B, naive, T cells, cells without a label"
    text = auc(study, "--against-unlabelled").stderr
    assert "no cell of S10 has a label: left out" in text
    assert "--against-unlabelled counts them" not in text
    assert "1334 of 3000 cells have no label: left out (--against-unlabelled counts" in auc(study).stderr


def test_a_study_of_one_gate_has_everything_else_for_negatives(tmp_path):
    x, label = made()
    store = written(tmp_path / "s.zarr", x, np.where(label == "NK", "NK", None))
    refused = auc(store, code=1)
    assert "'NK' is the only label of" in one_line(refused)
    assert "--against-unlabelled counts the cells without one" in one_line(refused)
    result = found(store, "--against-unlabelled")
    assert result["features"][0]["feature"] == MARKUP
    assert result["attributes"]["negative"] == "cells without a label"


def test_negatives_are_named_between_commas_or_one_by_one_even_with_commas_in_a_name(study):
    some = found(study, "--negative", "T cells")
    n = sum(name == "T cells" for name in made()[1][: 2 * N // 3])
    assert some["ranking"]["weight_negative"] == n
    assert some["attributes"]["negative"] == "T cells"
    both = found(study, "--negative", "B, naive", "--negative", "T cells")
    assert both["features"] == found(study)["features"]
    alone = found(study, "--negative", "NK", positive="T cells")
    assert alone["ranking"]["weight_positive"] == n
    split = auc(study, "--negative", "T cells,B", code=2)
    assert "the study has no label 'B'" in one_line(split)


def test_which_label_is_negative_is_not_changed_by_their_order(study):
    """The AUC of A over B is that of B over A: the weights turn their signs."""
    one = found(study, "--negative", "T cells", "--features", "2")
    other = found(study, "--negative", "NK", "--features", "2", positive="T cells")
    weights = [{row["feature"]: row["coef"] for row in result["features"]} for result in (one, other)]
    for name, weight in weights[0].items():
        assert weights[1][name] == pytest.approx(-weight, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", [int, bool])
def test_labels_that_are_numbers_are_named_as_they_are_written(tmp_path, kind):
    x, label = made()
    numbers = pd.array([None if name is None else kind(name == "NK") for name in label])
    store = written(tmp_path / "s.zarr", x, numbers)
    result = found(store, "--output", tmp_path / "out", positive=str(kind(1)))
    assert result["features"][0]["feature"] == MARKUP
    assert ss.load(tmp_path / "out" / "ranking").classes_.tolist() == [kind(0), kind(1)]
    three = pd.array([None if name is None else 3 * (name == "NK") + (name == "T cells") for name in label])
    store = written(tmp_path / "three.zarr", x, three)
    result = found(store, "--output", tmp_path / "out", positive="3")
    assert ss.load(tmp_path / "out" / "ranking").classes_.tolist() == ["not 3", 3]
    assert result["attributes"]["negative"] == "0, 1"


def test_ten_rare_cells_are_ranked_and_said_to_be_few(tmp_path):
    x, label = made()
    label = np.where((label == "NK") & (np.cumsum(label == "NK") > 10), "T cells", label)
    shown = auc(written(tmp_path / "s.zarr", x, label), "--features", "2")
    assert "10 positives" in shown.stdout
    assert "10 positives are few" in shown.stdout
    four = np.where((label == "NK") & (np.cumsum(label == "NK") > 4), "T cells", label)
    shown = auc(written(tmp_path / "t.zarr", x, four), "--features", "1")
    assert "--cv 5: 4 folds, as many as there are positive cells" in shown.stderr


def test_too_few_cells_are_told_with_label_and_counts(tmp_path):
    x, label = made()
    label = np.where((label == "NK") & (np.cumsum(label == "NK") > 1), "T cells", label)
    store = written(tmp_path / "s.zarr", x, label, np.repeat(["S1", "S2"], N // 2))
    text = one_line(auc(store, code=1))
    assert "'NK' has 1 cell(s) in" in text
    assert f"T cells {sum(label == 'T cells')}" in text
    assert "without a label 500" in text
    assert "'NK' has 0 cell(s) in the samples with sample == S2" in one_line(
        auc(store, "--select", "sample == S2", code=1)
    )
    text = one_line(auc(store, "--negative", "NK", code=1, positive="T cells"))
    assert "there are 1 negative cell(s)" in text
    assert "or --against-unlabelled" in text


def test_samples_are_selected_and_columns_chosen(study):
    some = found(study, "--select", "sample == S1", "--markers", "Time,CD3")
    assert {row["feature"] for row in some["features"]} == {"Time", "CD3"}
    assert some["attributes"]["select"] == "sample == S1"
    assert some["ranking"]["weight_positive"] == sum(made()[1][: N // 3] == "NK")


def test_the_number_of_features_is_given_or_chosen_from(study):
    assert [row["selected"] for row in found(study, "--features", "3")["features"]] == 3 * [True] + 2 * [
        False
    ]
    some = found(study, "--features", "1, 4")
    assert [entry["k"] for entry in some["path"]] == [1, 4]
    assert len(some["path"][1]["coef"]) == 4
    assert "--features 40: the study has 5" in auc(study, "--features", "40").stderr


def test_without_cross_validation_no_auc_is_claimed(study):
    shown = auc(study, "--features", "2", "--cv", "0")
    assert "no held-out AUC" in shown.stdout
    assert "without cross-validation nothing is held out" in " ".join(shown.stdout.split())
    result = found(study, "--features", "2", "--cv", "0")
    assert result["ranking"]["auc"] is None
    assert result["features"][0]["stability"] is None


@pytest.mark.parametrize("solver", ["moments", "stream", "screen", "sht"])
def test_solvers_have_their_names(study, solver):
    result = found(study, "--solver", solver)
    assert result["attributes"]["solver"] == solver
    assert result["features"][0]["feature"] == MARKUP


def test_json_is_versioned_and_has_no_nan(study):
    text = auc(study, "--features", "1", "--cv", "0", "--json").stdout
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert result["schema"] == "scaleshift.auc/1"
    assert result["attributes"]["positive"] == "NK"
    assert list(result["path"][0]["coef"]) == [MARKUP]
    assert result["attributes"]["parameters"]["cv"] is None


def test_the_same_seed_gives_the_same_output(study):
    assert len({auc(study, "--json").stdout for _ in range(2)}) == 1


def test_quiet_says_nothing_beside_the_table(study, tmp_path):
    assert auc(study, "--quiet", "--output", tmp_path).stderr == ""


def test_results_of_an_earlier_run_are_replaced_and_those_of_others_are_not(study, tmp_path):
    auc(study, "--output", tmp_path / "out", "--features", "1")
    auc(study, "--output", tmp_path / "out", "--features", "2")
    assert pd.read_csv(tmp_path / "out" / "features.csv")["selected"].sum() == 2
    assert ss.load(tmp_path / "out" / "ranking").k_ == 2
    for name in ("features.zarr", "path.zarr"):
        (tmp_path / name / name).mkdir(parents=True)
        refused = auc(study, "--output", tmp_path / name, code=1)
        assert "scaleshift did not write it" in one_line(refused)
        assert not (tmp_path / name / "features.csv").exists()  # told before the fit
    (tmp_path / "mine" / "ranking").mkdir(parents=True)
    assert "expected a folder that the save method" in one_line(
        auc(study, "--output", tmp_path / "mine", code=1)
    )


def test_results_are_not_written_into_the_study(study):
    assert "lies in STORE itself" in auc(study, "--output", study / "out", code=2).output
    assert not (study / "out").exists()


def test_a_fit_with_a_checkpoint_gives_the_same_numbers_twice(study, tmp_path):
    given = ["--features", "2", "--checkpoint", tmp_path / "state"]
    first, again = found(study, *given), found(study, *given)
    assert (tmp_path / "state").exists()
    assert first == again
    assert first["features"] == found(study, "--features", "2")["features"]
    for other in (["--negative", "T cells"], ["--select", "sample == S1"]):
        assert "is of other data or parameters" in one_line(auc(study, *given, *other, code=1))


def test_rows_of_nan_are_refused_or_left_out(tmp_path):
    x, label = made()
    x[7, 2] = np.nan
    store = written(tmp_path / "s.zarr", x, label)
    assert "CD45: 1; first rows 7" in one_line(auc(store, code=1))
    result = found(store, "--invalid", "drop")
    n = sum(name is not None for name in label)
    assert result["ranking"]["weight_positive"] + result["ranking"]["weight_negative"] == n - 1


def test_a_chunk_that_cannot_be_read_is_told_with_its_store(tmp_path):
    x, label = made(600)
    store = written(tmp_path / "s.zarr", x, label)
    chunk = max((p for p in (store / "X" / "c").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:20])
    assert "s.zarr" in one_line(auc(store, code=1))


# Wrong usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--positive", "nk"], "the study has no label 'nk'; did you mean 'NK'?", 2),
        (["--positive", "NK", "--negative", "T cell"], "did you mean 'T cells'?", 2),
        (["--positive", "NK", "--negative", "T cells,NK"], "'NK' is the positive label", 2),
        (["--positive", "NK", "--negative", ","], "names no label", 2),
        ([], "Missing option '--positive'", 2),
        (["--positive", "NK", "--cv", "1"], "1 fold leaves nothing to learn from", 2),
        (["--positive", "NK", "--cv", "0"], "pass --features N", 2),
        (["--positive", "NK", "--features", "many"], "expected a whole number from 1", 2),
        (["--positive", "NK", "--features", "0"], "expected a whole number from 1", 2),
        (["--positive", "NK", "--select", "day == 9"], "no sample has day '9'", 2),
        (["--positive", "NK", "--markers", "CD33"], "CD33", 1),
        (["--positive", "NK", "--output", "auc.png"], "--output takes a folder", 2),
        (["--positive", "NK", "--solver", "lasso"], "expected one of auto, moments", 2),
        (["--positive", "NK", "--select", "day == 3"], "'NK' has 0 cell(s) in the samples with day == 3", 1),
    ],
)
def test_what_cannot_be_done_is_told_with_the_right_exit_code(study, arguments, message, code):
    assert message in one_line(run("auc", study, *arguments, code=code))


def test_a_study_without_labels_is_told_how_to_get_them(tmp_path):
    store = written(tmp_path / "s.zarr", made(60)[0], None)
    assert "has no labels: run `scaleshift label" in one_line(auc(store, code=1))


def test_the_verb_stands_in_the_list():
    assert "auc         Which few features rank a rare label above all others?" in run("--help").stdout


def test_folds_of_whole_samples_are_said_and_tell_of_samples_not_seen(tmp_path):
    x, label = made()
    store = written(tmp_path / "s.zarr", x, label, np.tile(["S1", "S2", "S3"], N // 3))
    shown = auc(store, "--features", "1", "--by-sample")
    assert "--cv 5: 3 folds, as many as there are samples" in shown.stderr
    assert "same samples" not in shown.stderr
