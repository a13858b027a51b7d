"""What a fit of a named model keeps: passes of the same question, or none are taken."""

import dask.array as da
import numpy as np
import pytest

from scaleshift import PredictionError
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 3))
Y = RNG.random(N) < 1 / (1 + np.exp(-X @ [1.5, -1.0, 0.0]))
GROUPS = RNG.integers(0, 20, N)
FOLDS = np.arange(N) % 4


def splits(fold):
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(4)]


def fit(path, x=X, y=Y, groups=None, noise=None, **given):
    given = {"model": "logistic", "n_bootstrap": 10, "random_state": 0, **given}
    return PredictionError(checkpoint=path, **given).fit(x, y, groups, noise=noise)


def answers(model):
    return model.predict({"far": 2 * X[:100]})["error"].values


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"y": np.roll(Y, 1)}),
        ({}, {"x": X + 1}),
        ({}, {"penalty": "l1"}),
        ({}, {"alpha": 0.1}),
        ({}, {"n_bootstrap": 12}),
        ({}, {"loss": "deviance"}),
        ({}, {"random_state": 1}),
        ({"cv": splits(FOLDS)}, {"cv": splits(np.sort(FOLDS))}),
        ({"groups": GROUPS}, {"groups": GROUPS[::-1]}),
        ({"model": "ols", "y": X[:, 0] + Y}, {"model": "ridge", "y": X[:, 0] + Y}),
    ],
    ids=["labels", "rows", "penalty", "alpha", "replicates", "loss", "seed", "folds", "groups", "model"],
)
def test_the_passes_of_another_question_are_refused(tmp_path, before, after):
    fit(tmp_path / "state", **before)
    with pytest.raises(DataError, match="is of other data or parameters: choose another path, or delete it"):
        fit(tmp_path / "state", **{**before, **after})


@pytest.mark.parametrize("given", [{"method": "all"}, {"level": 0.8}])
def test_what_no_pass_over_the_source_knows_may_change(tmp_path, given):
    fit(tmp_path / "state")
    expected = answers(fit(None, **given))
    np.testing.assert_array_equal(answers(fit(tmp_path / "state", **given)), expected)


def test_a_seed_that_was_drawn_is_kept_and_other_chunks_are_the_same_question(tmp_path):
    first = fit(tmp_path / "state", random_state=None)
    again = fit(tmp_path / "state", da.from_array(X, chunks=(70, -1)), random_state=None)
    assert again.seed_ == first.seed_
    np.testing.assert_array_equal(answers(again), answers(first))


def test_passes_of_a_part_that_is_done_are_forgotten(tmp_path):
    """Newton's second derivatives weigh most: once a fit is found, its parameters are enough."""
    fit(tmp_path / "state")
    names = [path.name for path in (tmp_path / "state").iterdir()]
    assert "pass-0002" in names
    assert not [name for name in names if name.count("-") > 1]


def test_noise_that_was_given_is_part_of_the_question(tmp_path):
    noise = {"train": RNG.random((10, N)), "fresh": RNG.random((10, N))}
    expected = answers(fit(None, noise=noise))
    for _ in range(2):
        np.testing.assert_array_equal(answers(fit(tmp_path / "state", noise=noise)), expected)
    with pytest.raises(DataError, match="is of other data or parameters"):
        fit(tmp_path / "state", noise={**noise, "fresh": noise["train"]})
