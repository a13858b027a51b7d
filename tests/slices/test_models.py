"""Models as predictions: files that run no code, columns by name, classes in the order that is asked."""

import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.models import open_model, predictions

DATA = Path(__file__).parents[1] / "data"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2)).astype("f4")
LOGITS = X @ np.array([[2.0, -1.0, 0.0], [0.0, 1.0, -2.0]]) + [0.0, 0.5, -0.5]
TRUE = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)  # of the files logistic_*.onnx
Y = np.array(["A", "B", "C"])[LOGITS.argmax(axis=1)]


@pytest.fixture(scope="module")
def onnx():
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")


@pytest.fixture(scope="module")
def skops():
    return pytest.importorskip("skops.io", reason="needs the extra skops")


@pytest.fixture(scope="module")
def fitted():
    return LogisticRegression().fit(X, Y)


# Files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maps", "tensor", "columns"])
@pytest.mark.usefixtures("onnx")
def test_probabilities_of_an_onnx_model_are_those_of_its_formula(name):
    found = predictions(open_model(DATA / f"logistic_{name}.onnx"), X, classes=["A", "B", "C"])
    assert np.abs(found - TRUE).max() < 1e-6


@pytest.mark.usefixtures("onnx")
def test_an_onnx_model_of_maps_names_its_classes():
    model = open_model(DATA / "logistic_maps.onnx")
    assert model.classes_.tolist() == ["A", "B", "C"]
    found = predictions(model, X, classes=["C", "A", "B"])
    assert np.abs(found - TRUE[:, [2, 0, 1]]).max() < 1e-6


@pytest.mark.usefixtures("onnx")
def test_an_onnx_model_of_labels_gives_all_or_nothing():
    found = predictions(open_model(DATA / "logistic_labels.onnx"), X, classes=["C", "A", "B"])
    assert np.array_equal(found, Y[:, None] == np.array(["C", "A", "B"]))
    with pytest.raises(DataError, match=r"logistic_labels.onnx: the predicted label 'C' is not known"):
        predictions(open_model(DATA / "logistic_labels.onnx"), X, classes=["A", "B"])
    with pytest.raises(DataError, match=r"does not tell its classes"):
        predictions(open_model(DATA / "logistic_labels.onnx"), X)


@pytest.mark.usefixtures("onnx")
def test_columns_that_are_not_in_the_order_of_the_classes_are_noticed():
    model = open_model(DATA / "logistic_tensor.onnx")
    with pytest.raises(DataError, match=r"does not have its columns in the order of the classes B, A, C"):
        predictions(model, X, classes=["B", "A", "C"])
    found = predictions(model, X, classes=["B", "A", "C"], columns=["A", "B", "C"])
    assert np.abs(found - TRUE[:, [1, 0, 2]]).max() < 1e-6


@pytest.mark.usefixtures("onnx")
def test_inputs_by_column_are_matched_by_name():
    model = open_model(DATA / "logistic_columns.onnx")
    table = pd.DataFrame({"other": 7.0, "CD19": X[:, 1], "CD3": X[:, 0]}).astype("f4")
    assert np.abs(predictions(model, table, classes=["A", "B", "C"]) - TRUE).max() < 1e-6
    with pytest.raises(DataError, match=r"logistic_columns.onnx: X lacks the marker\(s\) CD19"):
        predictions(model, table.drop(columns="CD19"), classes=["A", "B", "C"])


@pytest.mark.usefixtures("onnx")
def test_an_onnx_file_that_does_not_say_what_is_wanted_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"two_outputs.onnx gives logits .*, embedding .*: expected one"):
        open_model(DATA / "two_outputs.onnx")
    (tmp_path / "cut.onnx").write_bytes((DATA / "logistic_maps.onnx").read_bytes()[:150])
    with pytest.raises(DataError, match=r"cut.onnx cannot be opened by onnxruntime"):
        open_model(tmp_path / "cut.onnx")
    with pytest.raises(DataError, match=r"X has 3 columns, the model was fitted on 2"):
        predictions(open_model(DATA / "logistic_maps.onnx"), np.zeros((4, 3)))


def test_a_skops_file_predicts_as_the_model_that_was_stored(skops, fitted, tmp_path):
    skops.dump(fitted, tmp_path / "model.skops")
    model = open_model(tmp_path / "model.skops")
    assert np.array_equal(predictions(model, X), fitted.predict_proba(X))


def test_types_that_can_run_code_are_refused_by_name(skops, tmp_path):
    model = make_pipeline(FunctionTransformer(_squares), LogisticRegression()).fit(X, Y)
    skops.dump(model, tmp_path / "model.skops")
    with pytest.raises(DataError, match=r"not known to be harmless \(.*_squares\).*to ONNX"):
        open_model(tmp_path / "model.skops")


@pytest.mark.parametrize("kind", [RandomForestClassifier, MLPClassifier])
def test_types_are_trusted_by_name_alone(skops, tmp_path, kind):
    small = {"n_estimators": 5} if kind is RandomForestClassifier else {"max_iter": 400, "tol": 1e-2}
    model, path = kind(random_state=0, **small).fit(X, Y), tmp_path / "model.skops"
    skops.dump(model, path)
    with pytest.raises(DataError) as refused:
        open_model(path)
    names = skops.get_untrusted_types(file=path)
    assert f"trusted={json.dumps(names)} in open_model" in str(refused.value)
    assert f"--trust {','.join(names)} on the command line" in str(refused.value)
    opened = open_model(path, trusted=names)
    assert np.array_equal(predictions(opened, X), model.predict_proba(X))
    assert isinstance(open_model(path, trusted={*names, "module.NotInTheFile"}), kind)
    with pytest.raises(DataError, match=rf"harmless \({names[0]}\)"):
        open_model(path, trusted=[name.rsplit(".", 1)[0] for name in names])  # their modules do not do


@pytest.mark.parametrize(
    "trusted", [["*"], ["sklearn.*"], "sklearn.tree._tree.Tree", True, [None], [""], ["a.B;ls"], ["a b"]]
)
def test_trust_has_no_wildcards(skops, fitted, tmp_path, trusted):
    skops.dump(fitted, tmp_path / "model.skops")
    with pytest.raises(DataError, match=r"expected a list of full names of types.*no wildcard"):
        open_model(tmp_path / "model.skops", trusted=trusted)


def test_trust_is_for_skops_files():
    with pytest.raises(DataError, match=r"logistic_maps.onnx is no .skops file, of which trusted="):
        open_model(DATA / "logistic_maps.onnx", trusted=["sklearn.tree._tree.Tree"])


def test_names_in_a_forged_file_are_not_offered_to_the_shell(skops, fitted, tmp_path):
    """What the file calls its types is shown, and never as a command to copy."""
    content = {}
    skops.dump(fitted, tmp_path / "fine.skops")
    with zipfile.ZipFile(tmp_path / "fine.skops") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(content["schema.json"])
    schema["__module__"] = "x$(touch it-ran)\x1b[31m"
    path = tmp_path / "forged.skops"
    path.write_bytes(_archive({**content, "schema.json": json.dumps(schema)}))
    with pytest.raises(DataError, match=r"not known to be harmless") as refused:
        open_model(path)
    assert "--trust" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_saved_slicer_is_no_classifier(tmp_path):
    slicer = ss.DominoSlicer(n_slices=1, n_mixture_components=2, random_state=0)
    for name in ("slicer", "slicer.skops"):
        slicer.save(tmp_path / name)
        with pytest.raises(DataError, match=r"is a saved DominoSlicer of scaleshift, which ss.load\(.*opens"):
            open_model(tmp_path / name)


def _squares(x):
    return x**2


def test_a_skops_file_that_is_none_is_refused(skops, tmp_path):
    path = tmp_path / "model.skops"
    for content in (b"", b"PK\x03\x04 cut", _archive({"readme.txt": "no schema"})):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"model.skops is no skops file, or a damaged one"):
            open_model(path)
    skops.dump(StandardScaler().fit(X), path)
    with pytest.raises(DataError, match=r"holds a StandardScaler, which predicts nothing"):
        open_model(path)


def _archive(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize(
    "name",
    ["m.pkl", "m.pickle", "m.joblib", "m.sav", "m.pt", "m.pth", "m.bin", "m", "m.PKL", "m.skops", "m.onnx"],
)
def test_no_pickle_is_opened_unasked(tmp_path, name):
    marker, path = tmp_path / "it-ran", tmp_path / name
    path.write_bytes(pickle.dumps(Evil(marker)))
    with pytest.raises(DataError, match=r"not opened|no skops file|cannot be opened|cannot be imported"):
        open_model(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes())
    assert marker.exists()  # it would have run


def test_what_is_refused_says_why_and_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"a joblib file runs whatever code .*skops.io.dump"):
        open_model("model.joblib")
    with pytest.raises(DataError, match=r"No such file"):
        open_model(tmp_path / "none.skops")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(DataError, match=r"is a folder"):
        open_model(tmp_path / "folder.onnx")


@pytest.mark.parametrize(("module", "suffix"), [("onnxruntime", "onnx"), ("skops.io", "skops")])
def test_a_missing_package_is_an_error_with_the_command(tmp_path, monkeypatch, module, suffix):
    monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(b"anything")
    with pytest.raises(DataError, match=rf'pip install "scaleshift\[{suffix}\]"'):
        open_model(path)


# Predictions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [600, 100, (1, 599), (0, 250, 0, 350)])
def test_chunks_change_nothing(fitted, chunks):
    lazy = predictions(fitted, da.from_array(X, chunks=(chunks, -1)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (600, 3)
    assert np.array_equal(lazy.compute(), fitted.predict_proba(X))


def test_classes_come_in_the_order_that_is_asked(fitted):
    found = predictions(fitted, X, classes=["C", "A", "B"])
    assert np.array_equal(found, fitted.predict_proba(X)[:, [2, 0, 1]])


def test_rows_that_are_not_finite_are_not_shown_to_the_model(fitted):
    x = X.copy()
    x[[0, 431]] = [np.nan, np.inf], [0, np.nan]
    expected = fitted.predict_proba(X).astype(np.float64)
    expected[[0, 431]] = 1 / 3
    for rows in (x, da.from_array(x, chunks=(100, -1))):
        assert np.array_equal(np.asarray(predictions(fitted, rows, invalid="drop")), expected)
        with pytest.raises(DataError, match=r"NaN or infinite"):
            np.asarray(predictions(fitted, rows))


def test_columns_are_matched_by_name():
    table = pd.DataFrame(X, columns=["CD3", "CD19"])
    model = LogisticRegression().fit(table, Y)
    turned = xr.DataArray(
        da.from_array(np.column_stack([X[:, 1], np.zeros(600), X[:, 0]]), chunks=(200, -1)),
        dims=("cell", "marker"),
        coords={"marker": ["CD19", "CD45", "CD3"]},
    )
    assert np.allclose(predictions(model, turned).compute(), model.predict_proba(table), atol=1e-7)
    with pytest.raises(DataError, match=r"LogisticRegression: X lacks the marker\(s\) CD3"):
        predictions(model, turned[:, :2])


def test_a_model_without_probabilities_gives_all_or_nothing():
    model = LinearSVC(random_state=0).fit(X, Y)
    found = predictions(model, X)
    assert np.array_equal(found.argmax(axis=1), np.searchsorted(model.classes_, model.predict(X)))
    assert set(np.unique(found)) == {0.0, 1.0}


def test_a_regressor_gives_its_numbers():
    model = LinearRegression().fit(X, X[:, 0])
    lazy = predictions(model, da.from_array(X, chunks=(100, -1)))
    assert lazy.shape == (600,)
    assert np.allclose(lazy.compute(), X[:, 0], atol=1e-6)


def test_a_single_probability_is_that_of_the_second_class(fitted):
    class Second:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, x):
            return np.full(len(x), 0.25)

    assert predictions(Second(), X)[0].tolist() == [0.75, 0.25]


class Given:
    """A model that says what it was told to."""

    def __init__(self, answer, classes=("A", "B")):
        self.answer, self.classes_ = answer, np.array(classes)

    def predict_proba(self, x):
        return self.answer(x)


def _failing(x):
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: np.ones((len(x), 3)), r"Given.predict_proba gave an array of shape \(600, 3\)"),
        (lambda x: np.ones((3, 2)), r"shape \(3, 2\).*expected numbers of shape \(600, 2\)"),
        (lambda x: np.full((len(x), 2), np.nan), r"gave NaN or infinite values, first in row 0"),
        (lambda x: np.full((len(x), 2), "a"), r"dtype <U1"),
        (_failing, r"Given.predict_proba failed \(RuntimeError: out of memory\)"),
    ],
)
def test_what_is_no_prediction_is_named(answer, message):
    with pytest.raises(DataError, match=message):
        predictions(Given(answer), X)


def test_a_wrong_row_in_a_later_block_is_named_by_its_number():
    def late(x):
        found = np.full((len(x), 2), 0.5)
        found[x[:, 0] == 99] = np.nan
        return found

    x = X.copy()
    x[431, 0] = 99
    lazy = predictions(Given(late), da.from_array(x, chunks=(100, -1)))
    with pytest.raises(DataError, match=r"first in row 431"):
        lazy.compute()


def test_other_classes_are_named_on_both_sides(fitted):
    with pytest.raises(DataError, match=r"knows the classes A, B, C, the labels are A, B, D: relabel"):
        predictions(fitted, X, classes=["A", "B", "D"])
    numbered = LogisticRegression().fit(X, (Y == "A").astype(int))
    with pytest.raises(DataError, match=r"knows the classes 0, 1, the labels are 0, 1 \(int against str\)"):
        predictions(numbered, X, classes=["0", "1"])


@pytest.mark.parametrize("thing", [LogisticRegression, object(), "model.skops", None])
def test_what_is_no_model_is_refused(thing):
    with pytest.raises(DataError, match=r"predict"):
        predictions(thing, X)


def test_a_worker_predicts_by_models_of_all_kinds(fitted):
    models = {"object": (fitted, fitted.predict_proba(X))}
    if _has("onnxruntime"):
        models["onnx"] = (open_model(DATA / "logistic_maps.onnx"), TRUE)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=True),
    ):
        for model, expected in models.values():
            lazy = predictions(model, da.from_array(X, chunks=(200, -1)))
            assert np.abs(lazy.compute() - expected).max() < 1e-6


def _has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True
