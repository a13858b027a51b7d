"""Spotlights by default: they find what is planted, whatever the units, and mean something for any input."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scaleshift as ss
from scaleshift import SpotlightSlicer, checkpoint
from scaleshift.errors import DataError
from scaleshift.kernels.mixture import Outcomes
from scaleshift.slices import spotlight


def planted(seed, share=0.02, n=4_000, d=32, n_clusters=24):
    """Twice the same clusters, one of them rare: there the model is wrong in 65 of 100 rows, else in 10."""
    rng = np.random.default_rng(seed)
    centres = 0.9 * rng.normal(size=(n_clusters, d))
    shares = np.append(share, (1 - share) * rng.dirichlet(np.full(n_clusters - 1, 3.0)))
    for _ in range(2):
        cluster = rng.choice(n_clusters, size=n, p=shares)
        y, X = cluster % 2, centres[cluster] + rng.normal(size=(n, d))
        wrong = rng.random(n) < np.where(cluster == 0, 0.65, 0.1)
        confidence = 0.5 + 0.5 * rng.beta(3, 3, size=n)
        true = np.where(wrong, 1 - confidence, confidence)
        yield X, y, np.where(y == 1, true, 1 - true), cluster == 0


def corners(seed=0, n=3_000):
    """Losses are high in two corners, most in the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 8 * rng.integers(0, 2, (n, 2))
    first, second = (X > 4).all(axis=1), (X[:, 0] > 4) & (X[:, 1] < 4)
    return X, rng.random(n) + 3.0 * first + 1.5 * second, first, second


def fitted(X, losses, **parameters):
    given = {"spotlight_size": 0.1, "n_slices": 2, "num_steps": 200, "random_state": 0} | parameters
    return SpotlightSlicer(**given).fit(embeddings=X, losses=losses)


def memberships(slicer, X):
    return slicer.predict_proba(embeddings=X)


# What it finds -----------------------------------------------------------------------------------------


def test_a_planted_slice_of_two_in_a_hundred_rows_is_found():
    """In 9 of 10 draws one of two spotlights has 8 of its 10 highest rows, and five times its share, in it.

    On rows that the fit has not seen.
    """
    found = 0
    for seed in range(10):
        (X, y, p, _), (X_new, _, _, inside) = planted(seed)
        slicer = SpotlightSlicer(n_slices=2, random_state=seed).fit(None, X, y, p)
        u = memberships(slicer, X_new)
        members = slicer._slices.members(slicer.preparation_.projection(X_new, np.dtype("float32")))
        top = np.array([inside[np.argsort(-column)[:10]].mean() for column in u.T])
        lift = (inside[:, None] & members).sum(axis=0) / np.maximum(members.sum(axis=0), 1) / inside.mean()
        found += bool(((top >= 0.8) & (lift >= 5)).any())
    assert found >= 9


def test_spotlights_follow_each_other_best_first():
    X, losses, first, second = corners()
    slicer = fitted(X, losses, spotlight_size=0.2)  # nearly a corner: little of it is left
    member = slicer.predict(embeddings=X) == 1
    assert first[member[:, 0]].mean() > 0.95
    assert second[member[:, 1]].mean() > 0.95
    assert slicer.mean_losses_[0] > slicer.mean_losses_[1] > losses.mean()


@pytest.mark.parametrize("compat", [None, "spotlight"])
def test_low_losses_are_found_where_they_are_asked_for(compat):
    X, losses, *_ = corners()
    rate = 1e-3 if compat is None else 2e-2  # the published start is far from everything
    low, high = (
        fitted(X, losses, n_slices=1, flip=flip, compat=compat, num_steps=1_000, learning_rate=rate)
        for flip in (True, False)
    )
    assert low.mean_losses_[0] < losses.mean() < high.mean_losses_[0]


def test_the_other_kernel_ends_sharply():
    X, losses, first, _ = corners()
    u = memberships(fitted(X, losses, kernel="epanechnikov", n_slices=1), X)[:, 0]
    assert (u == 0).mean() > 0.5
    assert first[u > 0.5 * u.max()].mean() > 0.95


def test_a_spotlight_has_the_weight_that_it_must():
    X, losses, *_ = corners()
    for size in (0.02, 0.1, 0.3):
        slicer = fitted(X, losses, spotlight_size=size, holdout=0, n_slices=1)
        assert slicer.weights_[0] >= 0.95 * size * len(X)
        np.testing.assert_allclose(slicer.weights_[0], memberships(slicer, X).sum(), rtol=1e-4)


def test_it_has_that_weight_on_all_rows_not_on_the_sample_alone():
    X, losses, *_ = corners(n=40_000)
    slicer = fitted(X, losses, spotlight_size=0.05, num_steps=50)
    mass = len(X) * (1 - slicer.holdout)
    np.testing.assert_allclose(np.array(slicer.weights_) / mass, 1.05 * 0.05, rtol=0.03)


def test_describe_tells_a_slice_from_chance():
    X, losses, *_ = corners()
    told = fitted(X, losses, spotlight_size=0.2).describe(embeddings=X, losses=losses)
    assert told.attrs["method"] == "Spotlight"
    assert (told["p_value"] < 1e-6).values[0]
    nothing = np.random.default_rng(1).permutation(losses)
    assert (fitted(X, nothing).describe(embeddings=X, losses=nothing)["p_value"] > 0.001).all()


# What must not matter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lambda X: X + 1e4, lambda X: 1e-3 * X, lambda X: 1e3 * X - 7e4])
def test_units_and_origin_of_the_embeddings_do_not_matter(change):
    X, losses, *_ = corners()
    plain, changed = fitted(X, losses), fitted(change(X), losses)
    np.testing.assert_allclose(memberships(changed, change(X)), memberships(plain, X), atol=0.01)
    np.testing.assert_allclose(changed.means_, change(np.array(plain.means_)), rtol=1e-3)


def test_units_and_origin_of_the_losses_do_not_matter():
    X, losses, *_ = corners()
    plain = memberships(fitted(X, losses), X)
    for changed in (2.0**-20 * losses, 2.0**13 * losses):  # without any rounding
        np.testing.assert_allclose(memberships(fitted(X, changed), X), plain, atol=1e-9)
    for changed in (1e-6 * losses, 1e4 * losses, losses - 100, losses + 1e3):  # prepared as float32
        np.testing.assert_allclose(memberships(fitted(X, changed), X), plain, atol=0.05)


def test_constant_columns_do_not_matter():
    X, losses, *_ = corners()
    wider = np.column_stack([X, np.full(len(X), 3.0), np.zeros(len(X))])
    np.testing.assert_allclose(
        memberships(fitted(wider, losses), wider), memberships(fitted(X, losses), X), atol=0.01
    )
    as_they_are = fitted(wider, losses, n_pca_components=None)
    assert np.isfinite(memberships(as_they_are, wider)).all()


@pytest.mark.parametrize("chunk", [1_000, 333])
def test_chunks_do_not_matter(chunk):
    X, losses, *_ = corners()
    whole = fitted(X, losses)
    parts = fitted(da.from_array(X, chunks=(chunk, 2)), da.from_array(losses, chunks=chunk))
    np.testing.assert_allclose(memberships(parts, X), memberships(whole, X), atol=0.01)
    lazy = memberships(parts, da.from_array(X, chunks=(chunk, 2)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), memberships(parts, X), atol=1e-12)


def test_a_membership_is_the_row_s_own():
    X, losses, *_ = corners()
    slicer = fitted(X, losses)
    u = memberships(slicer, X)
    assert ((u >= 0) & (u <= 1)).all()
    np.testing.assert_allclose(memberships(slicer, X[7:20]), u[7:20], rtol=1e-12)


def test_a_row_without_weight_does_not_exist():
    X, losses, *_ = corners()
    weight = np.append(np.ones(len(X)), np.zeros(50))
    more = np.concatenate([X, np.full((50, 2), 40.0)])
    slicer = SpotlightSlicer(0.1, num_steps=200, n_slices=2, random_state=0, holdout=0)
    slicer.fit(embeddings=more, losses=np.append(losses, np.full(50, 1e3)), sample_weight=weight)
    without = fitted(X, losses, holdout=0)
    np.testing.assert_allclose(memberships(slicer, X), memberships(without, X), atol=0.01)


# Who belongs -------------------------------------------------------------------------------------------


def test_rows_belong_to_the_spotlights_whose_light_they_are_in():
    X, losses, *_ = corners()
    slicer = fitted(X, losses, n_slices=4)
    assigned, u = slicer.predict(embeddings=X), memberships(slicer, X)
    projected = slicer.preparation_.projection(X, np.dtype("float32"))
    slices = slicer._slices
    members = slices.members(projected)
    np.testing.assert_array_equal(assigned == 1, members)
    np.testing.assert_array_equal(slicer.describe()["size"], assigned.sum(axis=0))
    np.testing.assert_array_equal(u, slices.memberships(projected, Outcomes()))
    order = np.argsort(-slices.typicality(projected)[:, 0])  # by distance from the mean, as the light
    assert (np.diff(u[order, 0]) <= 1e-9).all()
    assert slices.centres.shape == (4, 2)


# Any input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compat", [None, "spotlight"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize(
    "change",
    {
        "all equal": lambda losses: np.full_like(losses, 2.0),
        "all zero": np.zeros_like,
        "negative": lambda losses: -losses,
        "one row": lambda losses: np.eye(1, len(losses), 5)[0],
        "huge": lambda losses: 1e30 * (losses > 1),
    }.items(),
    ids=lambda item: item[0],
)
def test_any_losses_give_numbers(change, kernel, compat):
    X, losses, *_ = corners(n=300)
    slicer = fitted(X, change[1](losses), kernel=kernel, compat=compat, num_steps=50, n_slices=3)
    u = memberships(slicer, X)
    assert np.isfinite(u).all()
    assert np.isfinite(slicer.means_).all()
    assert len(slicer.weights_) == len(slicer.objective_traces_) == 3


@pytest.mark.parametrize("size", [1.0, 0.97, 0.5])
def test_a_spotlight_may_be_as_large_as_all(size):
    X, losses, *_ = corners(n=300)
    u = memberships(fitted(X, losses, spotlight_size=size, n_slices=1, holdout=0), X)
    assert u.mean() > 0.8 * size


def test_embeddings_of_one_column_and_all_alike():
    losses = np.random.default_rng(0).random(200)
    assert np.isfinite(memberships(fitted(np.arange(200.0)[:, None], losses), np.ones((3, 1)))).all()
    same = np.ones((200, 3))
    assert np.isfinite(memberships(fitted(same, losses), same)).all()


def test_labels_of_any_kind_and_tables():
    (X, y, p, _), _ = planted(0, n=600, d=4)
    names = np.array(["cat", "dog"])[y]
    table = {"embedding": X, "target": names, "pred_probs": np.column_stack([1 - p, p])}
    slicer = SpotlightSlicer(0.1, 50, n_slices=2, random_state=1).fit(table)
    assert slicer.classes_.tolist() == ["cat", "dog"]
    assert slicer.predict(table).shape == (600, 2)
    frame = pd.DataFrame({"embedding": list(X), "target": y.astype(bool), "pred_probs": p})
    again = SpotlightSlicer(0.1, 50, n_slices=2, random_state=1).fit(frame)
    np.testing.assert_allclose(again.means_, slicer.means_, rtol=1e-6, atol=1e-6)


def test_residuals_of_a_regression():
    X, _, first, _ = corners()
    rng = np.random.default_rng(0)
    target = rng.normal(size=len(X))
    predicted = target + rng.normal(size=len(X)) * np.where(first, 3.0, 0.3)
    slicer = SpotlightSlicer(0.1, 200, n_slices=1, random_state=0).fit(None, X, target, predicted)
    assert first[slicer.predict(embeddings=X)[:, 0] == 1].mean() > 0.95


@pytest.mark.parametrize("compat", [None, "spotlight"])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"spotlight_size": 0}, "spotlight_size=0"),
        ({"spotlight_size": 1.5}, "spotlight_size=1.5"),
        ({"spotlight_size": 1e-4}, "less than one row"),
        ({"num_steps": 0}, "num_steps=0"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"n_slices": 0}, "n_slices=0"),
        ({"kernel": "box"}, "kernel='box'"),
        ({"decay": 0}, "decay=0"),
        ({"patience": -1}, "patience=-1"),
        ({"barrier_scale": -1}, "barrier_scale=-1"),
        ({"flip": "yes"}, "flip='yes'"),
        ({"holdout": 1}, "holdout=1"),
        ({"n_pca_components": 0}, "n_pca_components=0"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(changed, words, compat):
    X, losses, *_ = corners(n=300)
    with pytest.raises(DataError, match=words):
        fitted(X, losses, compat=compat, **changed)


def test_losses_that_are_none_are_refused_by_row():
    X, losses, *_ = corners(n=300)
    losses[17] = np.nan
    with pytest.raises(DataError, match="17"):
        fitted(X, losses)
    with pytest.raises(DataError, match="compat='domino'"):
        fitted(X, np.ones(300), compat="domino")
    with pytest.raises(DataError, match="nothing says where the model fails"):
        SpotlightSlicer().fit(embeddings=X)
    with pytest.raises(NotFittedError):
        SpotlightSlicer().predict(embeddings=X)


# Told, stopped, saved ----------------------------------------------------------------------------------


def test_explain_tells_the_passes():
    X, losses, *_ = corners(n=600)
    X = da.from_array(X, chunks=(200, 2))
    told = ss.explain(SpotlightSlicer(0.1, 30, n_slices=2, compat="spotlight"), X, losses=losses)
    times = {part.what: (part.times, part.at_most) for part in told.passes}
    assert times["steps"] == (60, 60)
    assert times["light"][0] == 2
    told = ss.explain(SpotlightSlicer(0.1, 30, n_slices=2), X, losses=losses)
    slicer = fitted(X, losses, num_steps=30)
    taken = sum(
        len(objectives) - len(rates)
        for objectives, rates in zip(slicer.objective_traces_, slicer.learning_rate_traces_, strict=True)
    )
    refinement = next(part for part in told.passes if part.what == "refinement")
    assert taken <= refinement.at_most


class KilledError(Exception):
    """Instead of a signal."""


@pytest.mark.parametrize("compat", [None, "spotlight"])
@pytest.mark.parametrize("kill_at", [1, 4, 9])
def test_a_killed_fit_goes_on_bit_for_bit(tmp_path, monkeypatch, compat, kill_at):
    X, losses, *_ = corners(n=600)
    parameters = {"compat": compat, "num_steps": 12, "n_slices": 3, "learning_rate": 0.01}
    whole = fitted(X, losses, **parameters)
    write, written = checkpoint.write, []

    def write_and_die(path, state):
        write(path, state)
        written.append(1)
        if len(written) == kill_at:
            raise KilledError

    monkeypatch.setattr(spotlight, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "write", write_and_die)
    path = tmp_path / "state"
    with pytest.raises(KilledError):
        fitted(X, losses, **parameters, checkpoint=path)
    monkeypatch.setattr(checkpoint, "write", write)
    resumed = fitted(X, losses, **parameters, checkpoint=path)
    for name in ("means_", "precisions_", "weights_", "objective_traces_", "learning_rate_traces_"):
        for a, b in zip(getattr(whole, name), getattr(resumed, name), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
    with pytest.raises(DataError, match="other data or parameters"):
        fitted(X, losses + 1, **parameters, checkpoint=path)


@pytest.mark.parametrize("compat", [None, "spotlight"])
def test_saved_and_loaded_it_says_the_same(tmp_path, compat):
    X, losses, *_ = corners(n=300)
    slicer = fitted(X, losses, num_steps=20, compat=compat)
    slicer.save(tmp_path / "model")
    again = ss.load(tmp_path / "model")
    assert again.get_params() == slicer.get_params() == clone(slicer).get_params()
    np.testing.assert_array_equal(memberships(again, X), memberships(slicer, X))
    np.testing.assert_array_equal(again.means_, slicer.means_)
