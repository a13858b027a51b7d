"""A frozen model that is known by its file: saved, loaded, watched; never another one in its place."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import skops.io
import xarray as xr
from sklearn.linear_model import LinearRegression, LogisticRegression

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.models import file

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=300) > 0, "b", "a")


@pytest.fixture
def path(tmp_path):
    skops.io.dump(LogisticRegression().fit(X[:100], Y[:100]), tmp_path / "model.skops")
    return tmp_path / "model.skops"


def frozen(model, **options):
    return ss.PredictionError(model, refit="never", random_state=0, **options).fit(X[100:], Y[100:])


def test_it_answers_as_the_model_itself(path):
    by_file, itself = frozen(ss.models.ModelFile.of(path)), frozen(ss.models.open_model(path))
    xr.testing.assert_equal(by_file.predict({"t": X + 1}), itself.predict({"t": X + 1}))


def test_a_saved_watch_goes_on(path, tmp_path):
    fitted = frozen(ss.models.ModelFile.of(path), method=("direct", "average_confidence"))
    fitted.update({"t": X[:50] + 1})
    fitted.save(tmp_path / "watched")
    loaded = ss.load(tmp_path / "watched")
    xr.testing.assert_identical(loaded.update({"t": X + 1}), fitted.update({"t": X + 1}))


def test_a_file_that_is_gone_or_another_is_refused(path, tmp_path):
    frozen(ss.models.ModelFile.of(path)).save(tmp_path / "watched")
    skops.io.dump(LogisticRegression().fit(X[:50], Y[:50]), tmp_path / "other.skops")
    shutil.copy(tmp_path / "other.skops", path)
    file._opened.cache_clear()  # as in the process of the next night
    with pytest.raises(DataError, match="is not the model that was asked before"):
        ss.load(tmp_path / "watched").update({"t": X})
    path.unlink()
    with pytest.raises(DataError, match=r"model\.skops: No such file"):
        ss.load(tmp_path / "watched").update({"t": X})


def test_it_travels_as_the_model(path):
    known = ss.models.ModelFile.of(path)
    assert isinstance(pickle.loads(pickle.dumps(known)), LogisticRegression)
    assert known.classes_.tolist() == ["a", "b"]


def test_numbers_are_watched_too(tmp_path):
    y = X @ np.ones(3) + RNG.normal(size=300)
    skops.io.dump(LinearRegression().fit(X[:100], y[:100]), tmp_path / "numbers.skops")
    model = ss.PredictionError(ss.models.ModelFile.of(tmp_path / "numbers.skops"), refit="never")
    model.fit(X[100:], y[100:]).save(tmp_path / "watched")
    found = ss.load(tmp_path / "watched").predict(X)
    assert found["error"].loc["target", "direct"].item() == pytest.approx(model.error_cv_)


def test_an_onnx_model_is_known_by_its_file(tmp_path):
    path = Path(__file__).parents[1] / "data" / "logistic_columns.onnx"
    known = ss.models.ModelFile.of(path)
    x = RNG.normal(size=(200, known.n_features_in_ or len(known.feature_names_in_)))
    most = known.predict_proba(x).argmax(axis=1)
    most[:20] = np.arange(20) % known.predict_proba(x).shape[1]
    ss.PredictionError(known, refit="never").fit(x, most).save(tmp_path / "watched")
    assert np.isfinite(ss.load(tmp_path / "watched").predict(x)["error"].loc["target", "direct"])
