"""What a fit of a quantifier keeps: passes of the same question, or none are taken."""

import dask.array as da
import numpy as np
import pytest
from sklearn.preprocessing import SplineTransformer

import scaleshift as ss
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 600
Y = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, 3)) + 2 * (Y[:, None] == np.arange(3))
SAMPLE = np.repeat(["s1", "s2"], N // 2)


def fit(path, kind=ss.DFM, x=X, y=Y, sample=SAMPLE, **given):
    return kind(**{"random_state": 0, **given}, checkpoint=path).fit(x, y, sample)


def proportions(model):
    return model.predict(X[:200]).proportion.values


@pytest.mark.parametrize("kind", [ss.DFM, ss.OpenSetQuantifier])
@pytest.mark.parametrize(
    "after",
    [
        {"y": np.roll(Y, 1)},
        {"x": X[:, ::-1]},
        {"sample": SAMPLE[::-1]},
        {"random_state": 1},
        {"n_bootstrap": 0},
        {"invalid": "drop"},
    ],
    ids=["labels", "rows", "samples", "seed", "folds", "invalid"],
)
def test_the_passes_of_another_question_are_refused(tmp_path, kind, after):
    fit(tmp_path / "state", kind)
    with pytest.raises(DataError, match="is of other data or parameters: choose another path, or delete it"):
        fit(tmp_path / "state", kind, **after)


def test_the_passes_of_other_maps_landmarks_and_quantifiers_are_refused(tmp_path):
    other = "is of other data or parameters"
    fit(tmp_path / "map", features=ss.FourierFeatures(n_features=20))
    for features in ("fourier", ss.FourierFeatures(n_features=22)):
        with pytest.raises(DataError, match=other):
            fit(tmp_path / "map", features=features)
    fit(tmp_path / "landmarks", ss.OpenSetQuantifier)
    for kind, given in ((ss.OpenSetQuantifier, {"n_landmarks": 64}), (ss.DFM, {})):
        with pytest.raises(DataError, match=other):
            fit(tmp_path / "landmarks", kind, **given)


@pytest.mark.parametrize(
    ("kind", "given"),
    [(ss.DFM, {"level": 0.5, "soft": False, "n_bootstrap": 50}), (ss.OpenSetQuantifier, {"unknown": False})],
)
def test_what_no_pass_over_the_source_knows_may_change(tmp_path, kind, given):
    fit(tmp_path / "state", kind)
    expected = proportions(fit(None, kind, **given))
    np.testing.assert_array_equal(proportions(fit(tmp_path / "state", kind, **given)), expected)


@pytest.mark.parametrize("kind", [ss.DFM, ss.OpenSetQuantifier])
def test_a_seed_that_was_drawn_is_kept_and_the_model_is_saved_as_ever(tmp_path, kind):
    first = fit(tmp_path / "state", kind, random_state=None)
    again = fit(tmp_path / "state", kind, da.from_array(X, chunks=(70, -1)), random_state=None)
    assert again.seed_ == first.seed_
    again.save(tmp_path / "model")
    for model in (again, ss.load(tmp_path / "model")):
        np.testing.assert_array_equal(proportions(model), proportions(first))


def test_a_map_of_ones_own_which_is_code_cannot_be_kept(tmp_path):
    with pytest.raises(DataError, match=r"cannot keep this fit: .*UserEmbedding.*; or leave checkpoint out"):
        fit(tmp_path / "state", features=SplineTransformer())
