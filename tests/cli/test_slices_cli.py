"""scaleshift slices as its users meet it: models, columns of predictions, files, JSON, errors in one line."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift import report
from scaleshift.cli import main
from scaleshift.models import predictions
from scaleshift.slices.inputs import label_column

MARKUP = "[red]CD19[/red] $x$"
MARKERS = ["CD3", MARKUP, "CD45", "Time"]
N = 3_000


def made(n=N, seed=0):
    """Two labels told by CD3; a classifier that is right but for a corner, high in CD45, where it is not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype("f4")
    label = np.where(x[:, 0] > 0, "T", "B").astype(object)
    corner = x[:, 2] > 1.3
    wrong = rng.random(n) < np.where(corner, 0.7, 0.03)
    predicted = np.where(wrong, np.where(label == "T", "B", "T"), label)
    probability = np.where(predicted == "T", 0.9, 0.1)
    return x, label, predicted, probability


def add_column(path, name, values):
    """A column of obs, as AnnData writes it."""
    obs = zarr.open_group(path, mode="r+")["obs"]
    if isinstance(values, pd.Categorical):
        attributes = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        group = obs.create_group(name, attributes=attributes)
        group.create_array("codes", data=np.asarray(values.codes, "i1"), chunks=(700,))
        values, group, name = np.array(values.categories.tolist()), group, "categories"
    else:
        group = obs
    text = values.dtype.kind in "OU"
    array = group.create_array(name, shape=values.shape, dtype=str if text else values.dtype, chunks=(900,))
    array[:] = values


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three samples in chunks of 512 cells; a sixth of the cells is without a label."""
    path = tmp_path_factory.mktemp("slices") / "study.zarr"
    x, label, predicted, probability = made()
    x[:, 3] = probability
    shown = label.copy()
    shown[::6] = None
    sample = np.repeat(["S1", "S2", "S10"], N // 3)
    cells = ss.as_cells(x, sample=sample, label=shown, marker=MARKERS)
    cells = cells.assign_coords(day=("sample", [0, 0, 3]), feature=("marker", [True, True, True, False]))
    ss.write_cells(cells, path, chunk_cells=512)
    add_column(path, "predicted", pd.Categorical(predicted, ["T", "rare", "B"]))
    add_column(path, "as text", predicted)
    add_column(path, "probability", probability)
    add_column(path, "other", np.repeat("granulocyte", N).astype(object))
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def slices(store, *arguments, code=0):
    few = ["--components", "8"]
    few = [] if "--components" in arguments else few
    return run("slices", store, "--slices", "2", *few, *arguments, code=code)


def found(store, *arguments):
    return json.loads(slices(store, *arguments, "--json").stdout)


def best(result):
    """The best slice is the corner that is high in CD45."""
    first = result["slices"][0]
    apart = first["difference"]
    assert max(apart, key=lambda name: abs(apart[name])) == "CD45"
    assert apart["CD45"] > 1
    assert first["error_rate"] > 0.4
    return first


def test_a_table_says_where_the_model_fails_and_files_hold_it(study, tmp_path):
    out = tmp_path / "results"
    shown = slices(study, "--predictions", "predicted", "--output", out, "--memberships")
    assert "errors overall:" in shown.stdout
    assert "CD45 high" in shown.stdout
    assert f"500 of {N} cells have no label: left out" in shown.stderr
    table = pd.read_csv(out / "slices.csv")
    assert len(table) == 2
    assert table.loc[0, "difference: CD45"] > 1
    assert (out / "slices.png").read_bytes().startswith(b"\x89PNG")
    with xr.open_zarr(out / "slices.zarr", consolidated=False) as result:
        assert result["words"].values[0] == table.loc[0, "words"]
        assert result.attrs["predictions"] == "predicted"
    with xr.open_zarr(out / "memberships.zarr", consolidated=False) as stored:
        membership = stored["membership"].values
    assert membership.shape == (N, 2)
    assert membership.dtype == np.float32
    slicer = ss.load(out / "slicer")
    assert slicer.slice_components_.tolist() == table["component"].tolist()
    corner = made()[0][:, 2] > 1.3
    assert membership[corner, 0].mean() > 2 * membership[~corner, 0].mean()


def test_all_ways_to_say_the_predictions_agree(study):
    ways = ["predicted", "as text", "probability", "Time"]
    results = [found(study, "--predictions", way) for way in ways]
    overall = [result["overall"]["overall_error_rate"] for result in results]
    assert overall == pytest.approx([overall[0]] * 4)
    sizes = [best(result)["size"] for result in results]
    assert sizes[0] == sizes[1]
    assert sizes[2] == pytest.approx(sizes[3], rel=0.01)  # float64 and float32 of the same


def test_a_column_of_x_that_predicts_is_no_feature(study):
    shown = slices(study, "--predictions", "Time", "--markers", "CD3,CD45,Time", "--json")
    assert list(json.loads(shown.stdout)["slices"][0]["difference"]) == ["CD3", "CD45"]
    assert "Time is taken as the probability of T, the second label" in shown.stderr
    alone = slices(study, "--predictions", "Time", "--markers", "Time", code=1)
    assert "none is left to slice by" in alone.output


def test_probabilities_of_all_labels_are_named_between_commas(tmp_path):
    x, label, _, probability = made()
    store = tmp_path / "s.zarr"
    wide = np.column_stack([x[:, :3], 1 - probability, probability])
    names = ["CD3", "CD4", "CD45", "pB", "pT"]
    ss.write_cells(ss.as_cells(wide.astype("f4"), label=label, marker=names), store)
    result = found(store, "--predictions", "pB,pT")
    assert set(best(result)["difference"]) == {"CD3", "CD4", "CD45"}
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # that they are in another order is told as a warning
        turned = found(store, "--predictions", "pT,pB")
    assert turned["overall"]["overall_error_rate"] == pytest.approx(
        1 - result["overall"]["overall_error_rate"]
    )


def test_unlabelled_cells_change_no_number(study, tmp_path):
    """Rows without a label at the end: the others keep their numbers, which the draws go by."""
    x, label, predicted, _ = made()
    results = []
    for name, extra in {"labelled": 0, "more": 400}.items():
        rows, names = np.vstack([x, x[:extra] + 5])[:, :3], np.append(label, [None] * extra)
        store = tmp_path / f"{name}.zarr"
        ss.write_cells(ss.as_cells(rows, label=names, marker=["CD3", "CD4", "CD45"]), store)
        add_column(store, "predicted", pd.Categorical(np.append(predicted, predicted[:extra])))
        results.append(found(store, "--predictions", "predicted"))
    for plain, more in zip(results[0]["slices"], results[1]["slices"], strict=True):
        for name in ("size", "error_rate", "p_value", "words"):
            assert more[name] == (pytest.approx(plain[name]) if name != "words" else plain[name])
    assert results[0]["overall"] == pytest.approx(results[1]["overall"])


def test_the_samples_that_a_model_was_trained_on_are_left_out(study):
    some = found(study, "--predictions", "predicted", "--select", "sample != S1 and sample != S2")
    other = found(study, "--predictions", "predicted", "--select", "sample == S10")
    assert some["slices"] == other["slices"]


def test_samples_are_selected_by_their_metadata(study):
    some = found(study, "--predictions", "predicted", "--select", "day == 0")
    assert some["overall"]["n_rows"] == 2 * N // 3 - 334
    assert some["attributes"]["select"] == "day == 0"
    best(some)


def test_memberships_of_selected_samples_have_their_rows(study, tmp_path):
    slices(
        study,
        "--predictions",
        "predicted",
        "--select",
        "sample in (S1, S10)",
        "--output",
        tmp_path,
        "--memberships",
    )
    with xr.open_zarr(tmp_path / "memberships.zarr", consolidated=False) as stored:
        assert stored["membership"].shape == (2 * N // 3, 2)
        assert np.isfinite(stored["membership"].values).all()


def test_names_are_shown_as_they_are(study, tmp_path):
    shown = slices(study, "--predictions", "predicted", "--markers", f"{MARKUP},CD3", "--output", tmp_path)
    assert "Traceback" not in shown.output
    table = pd.read_csv(tmp_path / "slices.csv")
    assert f"difference: {MARKUP}" in table
    result = xr.open_zarr(tmp_path / "slices.zarr", consolidated=False).load()
    result["words"][0] = "[bold]words[/bold]\x1b[31m"
    with (tmp_path / "out.txt").open("w") as out:
        from rich.console import Console

        Console(file=out, width=100).print(report.slice_text(result, width=100))
    text = (tmp_path / "out.txt").read_text()
    assert "[bold]words[/bold]" in text
    assert "\x1b" not in text
    labels = [t.get_text() for axes in report.plot(result).axes for t in axes.get_yticklabels()]
    assert MARKUP in labels


def test_the_same_seed_gives_the_same_output(study):
    assert len({slices(study, "--predictions", "predicted", "--json").stdout for _ in range(2)}) == 1


def test_json_is_versioned_and_has_no_nan(study):
    text = slices(study, "--predictions", "predicted", "--json").stdout
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert result["schema"] == "scaleshift.slices/1"
    assert result["attributes"]["parameters"]["n_mixture_components"] == 8
    assert np.sum(result["slices"][0]["confusion"]) > 0
    assert result["label"] == ["B", "T", "rare"]  # predicted, if never true


def test_quiet_says_nothing_beside_the_table(study, tmp_path):
    assert slices(study, "--predictions", "predicted", "--quiet", "--output", tmp_path).stderr == ""


def test_a_checkpoint_is_taken_up_and_belongs_to_its_job(study, tmp_path):
    given = ["--predictions", "predicted", "--checkpoint", tmp_path / "state"]
    first = found(study, *given)
    assert (tmp_path / "state").exists()
    assert found(study, *given)["slices"][0]["words"] == first["slices"][0]["words"]
    other = slices(study, *given, "--seed", "3", code=1)
    assert "state" in other.output


def test_what_is_written_does_not_depend_on_a_checkpoint(study, tmp_path):
    for name in ("with", "without"):
        given = ["--checkpoint", tmp_path / "state"] if name == "with" else []
        slices(study, "--predictions", "predicted", "--output", tmp_path / name, *given)
    for part in ("slices.zarr/zarr.json", "slicer/zarr.json"):
        assert str(tmp_path) not in (tmp_path / "with" / part).read_text().replace(str(study), "")
    with_, without = ((tmp_path / name / "slices.zarr/zarr.json").read_text() for name in ("with", "without"))
    assert with_ == without


def test_what_an_earlier_run_left_is_replaced_and_what_others_left_is_not(study, tmp_path):
    given = ["--predictions", "predicted", "--output", tmp_path]
    slices(study, *given, "--memberships")
    again = slices(study, *given)
    assert f"removed {tmp_path / 'memberships.zarr'}" in again.stderr
    assert not (tmp_path / "memberships.zarr").exists()
    (tmp_path / "mine" / "slices.zarr").mkdir(parents=True)
    refused = slices(study, "--predictions", "predicted", "--output", tmp_path / "mine", code=1)
    assert "scaleshift did not write it" in refused.output


# Models ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skops():
    return pytest.importorskip("skops.io", reason="needs the extra skops")


def trained(columns, labels=None):
    """A classifier of the study's labels that has seen some columns, where they are not high in CD45."""
    x, label, _, _ = made(seed=1)
    x = pd.DataFrame(x, columns=MARKERS)
    fine = (x["CD45"] < 1.3).to_numpy()
    return LogisticRegression().fit(x.loc[fine, columns], (label if labels is None else labels)[fine])


def test_a_skops_model_is_run_on_the_columns_that_it_names(study, skops, tmp_path):
    model = trained(["Time", "CD3"])  # Time is no feature of the study
    skops.dump(model, tmp_path / "m.skops")
    result = found(study, "--model", tmp_path / "m.skops")
    cells = ss.open_cells(study, markers=["Time", "CD3"])
    labels = label_column(cells["label"].values[cells["label_code"].values], "label")
    asked = predictions(model, cells).compute().argmax(axis=1) != labels.values
    known = cells["label_code"].values >= 0
    assert result["overall"]["overall_error_rate"] == pytest.approx(asked[known].mean(), abs=0.03)
    assert list(result["slices"][0]["difference"]) == MARKERS[:3]


def test_an_onnx_model_and_its_classes(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    data = Path(__file__).parents[1] / "data"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_500, 2)).astype("f4")
    label = np.array(["A", "B", "C"])[
        (x @ np.array([[2.0, -1, 0], [0, 1, -2]]) + [0, 0.5, -0.5]).argmax(axis=1)
    ]
    label = np.where((x > 0.7).all(axis=1), "C", label)  # the model does not know of this corner
    store = tmp_path / "s.zarr"
    ss.write_cells(ss.as_cells(x, label=label, marker=["CD3", "CD19"]), store)
    rates = []
    for name in ("maps", "tensor", "labels", "columns"):
        shown = slices(store, "--model", data / f"logistic_{name}.onnx", "--json")
        rates.append(json.loads(shown.stdout)["overall"]["overall_error_rate"])
        assert ("names no classes: its columns are taken as A, B, C" in shown.stderr) == (
            name in ("tensor", "columns")
        )
    assert rates == pytest.approx([rates[0]] * 4)
    assert rates[0] > 0.03
    few = ss.as_cells(x[label != "C"], label=label[label != "C"], marker=["CD3", "CD19"])
    ss.write_cells(few, tmp_path / "few.zarr")
    assert found(tmp_path / "few.zarr", "--model", data / "logistic_maps.onnx")["label"] == ["A", "B", "C"]
    unnamed = slices(tmp_path / "few.zarr", "--model", data / "logistic_tensor.onnx", code=1)
    assert "expected numbers of shape" in " ".join(unnamed.output.split())


def test_models_that_do_not_fit_the_study_are_refused_in_words(study, skops, tmp_path):
    skops.dump(trained(["CD3", "CD45"], np.repeat(["T", "NK"], N // 2)), tmp_path / "other.skops")
    text = " ".join(slices(study, "--model", tmp_path / "other.skops", code=1).output.split())
    assert "LogisticRegression knows the classes NK, T, the labels are B, T" in text
    x, label, _, _ = made()
    model = LogisticRegression().fit(pd.DataFrame(x[:, :2], columns=["CD3", "CD44"]), label)
    skops.dump(model, tmp_path / "lacking.skops")
    text = " ".join(slices(study, "--model", tmp_path / "lacking.skops", code=1).output.split())
    assert "LogisticRegression needs the feature(s) CD44, which" in text


def test_a_forest_is_run_once_its_types_are_trusted(study, skops, tmp_path):
    x, label, _, _ = made(seed=1)
    table = pd.DataFrame(x, columns=MARKERS)[["CD3", "CD45"]]
    path = tmp_path / "forest.skops"
    skops.dump(RandomForestClassifier(5, random_state=0).fit(table, label), path)
    refused = " ".join(slices(study, "--model", path, code=1).output.split())
    assert "--trust sklearn.tree._tree.Tree on the command line" in refused
    trusted = ["--trust", "sklearn.tree._tree.Tree"]
    assert found(study, "--model", path, *trusted)["overall"]["overall_error_rate"] < 0.05
    two = ["--trust", "a.B,sklearn.tree._tree.Tree", "--trust", "c.D"]
    assert found(study, "--model", path, *two)["overall"]["overall_error_rate"] < 0.05
    wild = " ".join(slices(study, "--model", path, "--trust", "sklearn.*", code=1).output.split())
    assert "there is no wildcard" in wild


def test_the_slicer_of_an_earlier_run_is_not_the_classifier(study, tmp_path):
    slices(study, "--predictions", "predicted", "--output", tmp_path / "out")
    shown = " ".join(slices(study, "--model", tmp_path / "out" / "slicer", code=1).output.split())
    assert "is a saved DominoSlicer of scaleshift, which ss.load(" in shown
    shown = " ".join(run("quantify", study, "--model", tmp_path / "out" / "slicer", code=1).output.split())
    assert "holds a DominoSlicer: --model expects a saved quantifier" in shown


@pytest.fixture(scope="module")
def with_gaps(tmp_path_factory):
    """The study with NaN in two cells: in a feature, and in a column that is none."""
    path = tmp_path_factory.mktemp("gaps") / "study.zarr"
    x, label, predicted, _ = made()
    x[5, 2] = x[700, 3] = np.nan
    cells = ss.as_cells(x, sample=np.repeat(["S1", "S2"], N // 2), label=label, marker=MARKERS)
    cells = cells.assign_coords(feature=("marker", [True, True, True, False]))
    ss.write_cells(cells, path, chunk_cells=512)
    add_column(path, "predicted", pd.Categorical(predicted, ["T", "B"]))
    return path


def test_rows_of_nan_are_refused_or_left_out(with_gaps, skops, tmp_path):
    given = ["--predictions", "predicted"]
    refused = " ".join(slices(with_gaps, *given, code=1).output.split())
    assert "CD45: 1; first rows 5" in refused
    assert "--invalid drop on the command line" in refused
    shown = slices(with_gaps, *given, "--invalid", "drop", "--json")
    assert "1 row holds NaN or infinite values: left out" in shown.stderr
    best(json.loads(shown.stdout))
    assert json.loads(shown.stdout)["overall"]["n_rows"] == N - 1
    skops.dump(trained(["CD3", "CD45"]), tmp_path / "m.skops")
    skops.dump(trained(["Time", "CD3"]), tmp_path / "time.skops")
    for name, n in {"m.skops": "1 row holds", "time.skops": "2 rows hold"}.items():
        given = ["--model", tmp_path / name]
        refused = " ".join(slices(with_gaps, *given, code=1).output.split())
        assert "NaN or infinite values in rows" in refused
        assert "--invalid drop on the command line" in refused
        shown = slices(with_gaps, *given, "--invalid", "drop", "--json")
        assert f"{n} NaN or infinite values: left out" in shown.stderr
        alone = json.loads(shown.stdout)["overall"]
        assert alone["n_rows"] == N - int(n[0])


def test_a_model_that_is_a_pickle_is_not_opened(study, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it-ran",))

    for name in ("m.pkl", "m.joblib", "m.pt", "m.skops", "m.onnx"):
        (tmp_path / name).write_bytes(pickle.dumps(Evil()))
        slices(study, "--model", tmp_path / name, code=1)
    assert not (tmp_path / "it-ran").exists()


# Groups ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    path = tmp_path_factory.mktemp("group") / "data.zarr"
    x, label, predicted, probability = made()
    data = xr.Dataset(
        {
            "embedding": (("row", "d"), x[:, :3]),
            "target": ("row", label),
            "predicted": ("row", predicted.astype(object)),
            "pred_probs": (("row", "class"), np.column_stack([1 - probability, probability])),
        }
    )
    chunks = {name: {"chunks": (700, *values.shape[1:])} for name, values in data.items()}
    data.to_zarr(path, zarr_format=3, consolidated=False, encoding=chunks)
    return path


@pytest.mark.parametrize("name", ["pred_probs", "predicted"])
def test_any_zarr_group_will_do(group, name):
    given = ["--embeddings", "embedding", "--targets", "target", "--predictions", name]
    first = found(group, *given)["slices"][0]
    apart = first["difference"]
    assert max(apart, key=lambda feature: abs(apart[feature])) == "column 2"
    assert first["error_rate"] > 0.4


def test_a_model_is_run_on_the_embeddings_of_a_group(group, skops, tmp_path):
    x, label, _, _ = made(seed=1)
    skops.dump(LogisticRegression().fit(x[:, :3], label), tmp_path / "m.skops")
    given = ["--embeddings", "embedding", "--targets", "target", "--model", tmp_path / "m.skops"]
    assert found(group, *given)["overall"]["overall_error_rate"] < 0.05


def test_a_group_of_pickles_is_not_opened(tmp_path):
    numcodecs = pytest.importorskip("numcodecs")

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it-ran",))

    path = tmp_path / "old.zarr"
    old = zarr.open_group(path, mode="w", zarr_format=2)
    array = old.create_array("x", shape=(1,), chunks=(1,), dtype="i8", compressors=None)
    metadata = json.loads((path / "x" / ".zarray").read_text())
    metadata |= {
        "dtype": "|O",
        "filters": [{"id": numcodecs.Pickle.codec_id, "protocol": 5}],
        "fill_value": None,
    }
    (path / "x" / ".zarray").write_text(json.dumps(metadata))
    (path / "x" / "0").write_bytes(pickle.dumps(Evil()))
    assert array.path == "x"
    given = ["--embeddings", "x", "--targets", "x", "--predictions", "x"]
    text = slices(path, *given, code=1).output
    assert "cannot be opened as a Zarr v3 group" in " ".join(text.split())
    assert not (tmp_path / "it-ran").exists()


# Wrong usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "pass --model, a model file, or --predictions", 2),
        (["--model", "m.skops", "--predictions", "p"], "not both", 2),
        (["--predictions", "predcited"], "did you mean 'predicted'?", 1),
        (["--predictions", "label"], "are what predictions are compared with", 2),
        (["--predictions", "other"], "no class is the same", 1),
        (["--predictions", "CD3,CD45,Time"], "3 column(s) of probabilities, and 2 labels (B, T)", 1),
        (["--predictions", "CD3"], "are no probabilities", 1),
        (["--predictions", "predicted", "--select", "day == 9"], "no sample has day '9'", 2),
        (["--predictions", "predicted", "--targets", "y"], "--targets goes with --embeddings", 2),
        (["--predictions", "predicted", "--embeddings", "x"], "--embeddings goes with --targets", 2),
        (["--predictions", "predicted", "--memberships"], "--memberships goes with --output", 2),
        (["--predictions", "predicted", "--components", "many"], "expected 'auto' or a whole number", 2),
        (["--predictions", "predicted", "--components", "1"], "--components 1 are fewer than --slices 2", 2),
        (["--predictions", "predicted", "--method", "spotlight"], "--components does not go with", 2),
        (["--predictions", "predicted", "--output", "slices.csv"], "--output takes a folder", 2),
        (["--predictions", "predicted", "--trust", "a.B"], "--trust goes with --model", 2),
        (["--model", "m.skops", "--trust", "sklearn.*"], "No such file", 1),
        (["--model", "m.joblib"], "a joblib file runs whatever code", 1),
        (["--model", "none.skops"], "No such file or directory", 1),
    ],
)
def test_what_cannot_be_done_is_told_with_the_right_exit_code(study, arguments, message, code):
    shown = slices(study, *arguments, code=code)
    assert message in " ".join(shown.output.split())
    assert "Traceback" not in shown.output


def test_a_study_without_labels_is_told_how_to_get_them(tmp_path):
    store = tmp_path / "s.zarr"
    x = np.random.default_rng(0).normal(size=(60, 2))
    label = np.array(["a", "b"] * 15 + [None] * 30, object)
    ss.write_cells(ss.as_cells(x, sample=np.repeat(["s1", "s2"], 30), marker=["p", "q"]), store)
    text = " ".join(slices(store, "--predictions", "p", code=1).output.split())
    assert "has no labels, which predictions are compared with: run `scaleshift label" in text
    store = tmp_path / "t.zarr"
    ss.write_cells(ss.as_cells(x, sample=np.repeat(["s1", "s2"], 30), label=label, marker=["p", "q"]), store)
    text = " ".join(slices(store, "--predictions", "p", "--select", "sample == s2", code=1).output.split())
    assert "no cell of the selected samples has a label" in text


def test_a_column_that_is_too_short_is_named(study, tmp_path):
    store = tmp_path / "s.zarr"
    x, label, _, _ = made(60)
    ss.write_cells(ss.as_cells(x, label=label), store)
    add_column(store, "short", np.zeros(30))
    text = " ".join(slices(store, "--predictions", "short", code=1).output.split())
    assert "obs/short has 30 values, the study 60 cells" in text


def test_the_spotlight_is_a_method_too(study):
    if not hasattr(ss.slices, "SpotlightSlicer"):
        pytest.skip("no SpotlightSlicer in this version")
    shown = run(
        "slices", study, "--predictions", "predicted", "--method", "spotlight", "--slices", "2", "--json"
    )
    best(json.loads(shown.stdout))


def test_the_verb_stands_in_the_list():
    assert "slices      Where does a trained model fail?" in run("--help").stdout


def test_a_chunk_that_cannot_be_read_is_told_with_its_store(tmp_path):
    x, label, _, probability = made(600)
    group = xr.Dataset(
        {"e": (("r", "c"), x), "t": ("r", (label == "T").astype(int)), "p": ("r", probability)}
    )
    for name in ("e", "t", "p"):
        store = tmp_path / f"{name}.zarr"
        group.to_zarr(store, zarr_format=3, consolidated=False)
        chunk = next(path for path in (store / name / "c").rglob("*") if path.is_file())
        chunk.write_bytes(chunk.read_bytes()[:20])
        arguments = ["--embeddings", "e", "--targets", "t", "--predictions", "p"]
        shown = " ".join(slices(store, *arguments, code=1).output.split())
        assert f"{name}.zarr cannot be read (" in shown
        assert "restore it from a copy, or write it again" in shown


def test_results_are_not_written_into_the_study(study):
    for output in (study, study / "results", study / ".." / study.name):
        shown = slices(study, "--predictions", "predicted", "--output", output, code=2)
        assert "lies in STORE itself" in shown.output
    assert not (study / "results").exists()


def test_more_slices_than_components_are_told_in_words_of_the_command_line(study):
    shown = run("slices", study, "--predictions", "predicted", "--slices", "26", code=2)
    assert "--slices 26 are more than 25 --components" in shown.output


def test_a_checkpoint_may_be_an_empty_folder_and_not_one_below_a_file(study, tmp_path):
    (tmp_path / "state").mkdir()
    slices(study, "--predictions", "predicted", "--checkpoint", tmp_path / "state")
    assert (tmp_path / "state" / "zarr.json").exists()
    (tmp_path / "file").write_text("x")
    shown = slices(study, "--predictions", "predicted", "--checkpoint", tmp_path / "file" / "state", code=1)
    assert "cannot be written (Not a directory): choose another path" in " ".join(shown.output.split())
