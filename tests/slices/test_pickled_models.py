"""A pickle is run where the user says so, and nowhere else; what was changed or forged never is."""

import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import scaleshift as ss
from scaleshift.cli import main
from scaleshift.errors import DataError
from scaleshift.models import ModelFile, open_model, predictions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)).astype("f4")
Y = np.where(X[:, 0] + 0.7 * RNG.normal(size=400) > 0, "b", "a")
MODEL = LogisticRegression().fit(X[:100], Y[:100])


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


WRITERS = {
    "m.pkl": lambda thing, path: path.write_bytes(pickle.dumps(thing)),
    "old.pickle": lambda thing, path: path.write_bytes(pickle.dumps(thing, protocol=0)),
    "m.joblib": joblib.dump,
    "zipped.joblib": lambda thing, path: joblib.dump(thing, path, compress=3),
}


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    """Writes a thing the way of a suffix, and gives its path."""

    def write(thing):
        WRITERS[request.param](thing, tmp_path / request.param)
        return tmp_path / request.param

    return write


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    samples = np.repeat(["S1", "S2"], 200)
    ss.write_cells(ss.as_cells(X, sample=samples, label=Y, marker=["A", "B", "C"]), path)
    return path


def told(*arguments, code=0):
    found = CliRunner().invoke(main, list(map(str, arguments)))
    assert found.exit_code == code, found.output
    return " ".join(found.output.split())


def test_it_answers_as_the_model_itself(written):
    opened = open_model(written(MODEL), trust_pickle=True)
    np.testing.assert_array_equal(predictions(opened, X), predictions(MODEL, X))


def test_unasked_nothing_of_it_is_run(written, tmp_path, study):
    path = written(Evil(tmp_path / "it-ran"))
    for opened in (open_model, ModelFile.of):
        with pytest.raises(
            DataError, match=r"runs whatever code .*skops.*--trust-pickle .*trust_pickle=True"
        ):
            opened(path)
    for verb in ("slices", "error"):
        assert "not opened" in told(verb, study, "--model", path, code=1)
    assert not (tmp_path / "it-ran").exists()
    with pytest.raises(DataError, match="holds a NoneType, which predicts nothing"):
        open_model(path, trust_pickle=True)
    assert (tmp_path / "it-ran").exists()  # it would have run


def test_the_flag_opens_no_other_kind(tmp_path):
    skops.io.dump(MODEL, tmp_path / "model.skops")
    with pytest.raises(DataError, match="is no pickle, which trust_pickle=True"):
        open_model(tmp_path / "model.skops", trust_pickle=True)
    (tmp_path / "model.pt").write_bytes(pickle.dumps(MODEL))
    with pytest.raises(DataError, match=r"\.pt files can hold code"):
        open_model(tmp_path / "model.pt", trust_pickle=True)
    with pytest.raises(DataError, match=r"is no \.skops file"):
        open_model(tmp_path / "model.pkl", trusted=["a.B"], trust_pickle=True)


@pytest.mark.parametrize("damage", [b"", b"\x80\x05", b"no pickle at all", b"cno_such_module\nThing\n."])
def test_a_damaged_one_is_refused_in_one_line(tmp_path, damage):
    (tmp_path / "m.pkl").write_bytes(damage)
    with pytest.raises(DataError, match=r"m\.pkl cannot be unpickled") as refused:
        open_model(tmp_path / "m.pkl", trust_pickle=True)
    assert "\n" not in str(refused.value)


def test_slices_say_that_it_was_run(study, tmp_path):
    joblib.dump(MODEL, tmp_path / "m.joblib")
    options = ("--components", "5", "--json", "--model", tmp_path / "m.joblib", "--trust-pickle")
    found = CliRunner().invoke(main, ["slices", str(study), *map(str, options)])
    assert found.exit_code == 0, found.output
    assert found.stderr.count("m.joblib is a pickle, and was run, since --trust-pickle") == 1
    assert json.loads(found.stdout)["overall"]["overall_error_rate"] < 0.4


@pytest.mark.parametrize("refit", ["never", "cold"])
def test_error_takes_it_as_any_other_model(study, tmp_path, refit):
    WRITERS["m.pkl"](MODEL, tmp_path / "m.pkl")
    skops.io.dump(MODEL, tmp_path / "m.skops")
    options = ("--source", "sample == S1", "--refit", refit, "--bootstrap", "3", "--json")
    answers = []
    for model in (["m.pkl", "--trust-pickle"], ["m.skops"]):
        given = ["error", study, "--model", tmp_path / model[0], *model[1:], *options]
        found = CliRunner().invoke(main, list(map(str, given)))
        assert found.exit_code == 0, found.output
        assert ("m.pkl is a pickle, and was run" in found.stderr) == (model[0] == "m.pkl")
        answers.append(json.loads(found.stdout)["targets"])
    assert answers[0] == answers[1]


def test_the_flag_goes_with_a_model_file(study):
    assert "--trust-pickle goes with a model file" in told(
        "error", study, "--model", "logistic", "--trust-pickle", code=2
    )
    assert "--trust-pickle goes with --model" in told(
        "slices", study, "--predictions", "p", "--trust-pickle", code=2
    )


# By its file -------------------------------------------------------------------------------------------


def watched(path, tmp_path, **trust):
    model = ss.PredictionError(ModelFile.of(path, **trust), refit="never", random_state=0)
    model.fit(X[100:], Y[100:]).save(tmp_path / "watched")


def test_one_that_was_changed_is_not_run(tmp_path):
    path = tmp_path / "m.pkl"
    WRITERS["m.pkl"](MODEL, path)
    known = ModelFile.of(path, trust_pickle=True)
    path.write_bytes(pickle.dumps(Evil(tmp_path / "it-ran")))
    known = known.trust(trust_pickle=True)
    ss.models.file._opened.cache_clear()  # as in another process
    with pytest.raises(DataError, match="is not the model that was asked before"):
        known.predict_proba(X)
    assert not (tmp_path / "it-ran").exists()


ASKED = """
import json, sys, numpy as np, scaleshift as ss
model = ss.load(sys.argv[1])
try:
    model.predict(np.ones((5, 3)))
except ss.errors.DataError as error:
    print(error)
model.model.trust(**json.loads(sys.argv[2]))
print(float(model.predict(np.ones((5, 3)))["error"].values[0, 0]))
"""


def asked(folder, **trust):
    """What another process is told of a saved model, and its answer as soon as that trusts it."""
    code = [sys.executable, "-c", ASKED, str(folder), json.dumps(trust)]
    done = subprocess.run(code, capture_output=True, text=True, check=True, env=os.environ)
    refused, answer = done.stdout.splitlines()
    return refused, float(answer)


def test_another_process_has_to_be_told_again(tmp_path):
    WRITERS["m.pkl"](MODEL, tmp_path / "m.pkl")
    watched(tmp_path / "m.pkl", tmp_path, trust_pickle=True)
    refused, answer = asked(tmp_path / "watched", trust_pickle=True)
    assert "--trust-pickle" in refused
    assert 0 < answer < 1


def test_a_forged_record_does_not_trust_itself(tmp_path):
    """Trust in the types of a .skops file counts where the user gives it, not where a folder says so."""
    skops.io.dump(DecisionTreeClassifier(max_depth=3).fit(X[:100], Y[:100]), tmp_path / "tree.skops")
    types = ["sklearn.tree._tree.Tree"]
    watched(tmp_path / "tree.skops", tmp_path, trusted=types)
    assert types[0] in (tmp_path / "watched" / "zarr.json").read_text()
    refused, answer = asked(tmp_path / "watched", trusted=types)
    assert "types that are not known to be harmless (sklearn.tree._tree.Tree)" in refused
    assert 0 < answer < 1


def test_a_forged_state_does_not_run_a_pickle(study, tmp_path):
    """A state, and beside it a pickle of which its record has the right checksum."""
    skops.io.dump(MODEL, tmp_path / "m.skops")
    arguments = ["error", study, "--state", tmp_path / "state", "--quiet"]
    told(*arguments, "--model", tmp_path / "m.skops", "--refit", "never", "--source", "sample == S1")
    evil = tmp_path / "evil.pkl"
    evil.write_bytes(pickle.dumps(Evil(tmp_path / "it-ran")))
    text = (tmp_path / "state" / "zarr.json").read_text()
    known = ModelFile.of(tmp_path / "m.skops")
    forged = text.replace("m.skops", "evil.pkl").replace(
        known.checksum, ss.models.file._checksum(evil.read_bytes())
    )
    root = json.loads(forged)
    record = root["attributes"]["scaleshift"]
    record["checksum"] = zlib.crc32(json.dumps(record["object"], sort_keys=True).encode())
    (tmp_path / "state" / "zarr.json").write_text(json.dumps(root))
    assert "evil.pkl is not opened" in told(*arguments, "--target", "sample == S2", code=1)
    assert not (tmp_path / "it-ran").exists()


def test_a_state_is_trusted_anew_by_each_call(study, tmp_path):
    WRITERS["m.pkl"](MODEL, tmp_path / "m.pkl")
    state = ["error", study, "--state", tmp_path / "state", "--target", "sample == S2"]
    told(*state, "--model", tmp_path / "m.pkl", "--refit", "never", "--trust-pickle")
    ss.models.file._trusts.clear()  # as in the process of the next night
    assert "--trust-pickle" in told(*state[:4], "--target", "sample == S1", code=1)
    told(*state[:4], "--target", "sample == S1", "--trust-pickle")


def test_a_state_of_no_file_has_nothing_to_trust(study, tmp_path):
    state = ["error", study, "--state", tmp_path / "state", "--target", "sample == S2"]
    told(*state, "--model", "logistic", "--bootstrap", "2")
    assert "--trust-pickle goes with a model file" in told(*state, "--trust-pickle", code=2)


def test_a_regressor_is_a_regressor(tmp_path):
    y = X @ np.ones(3, "f4")
    joblib.dump(LinearRegression().fit(X[:100], y[:100]), tmp_path / "m.joblib")
    model = ss.PredictionError(ModelFile.of(tmp_path / "m.joblib", trust_pickle=True), refit="never")
    assert model.fit(X[100:], y[100:]).error_cv_ < 1e-6
