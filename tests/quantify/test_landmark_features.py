"""Landmarks: as good as the exact kernel, with a few rows of the source."""

import numpy as np
import pytest
from synthetic import make
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.features.landmarks import embedding, equal_shares

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, _ = draw(1_000, [0.7, 0.2, 0.1], seed=1)


def errors(features, noise, eps):
    found = []
    for seed in range(5):
        problem = make(seed, noise, eps)
        model = ss.DFM(features, n_bootstrap=0, random_state=seed).fit(problem.x, problem.y)
        found.append(
            np.linalg.norm(model.predict(problem.target)["proportion"].values[0] - problem.proportions)
        )
    return np.array(found)


def test_soft_matching_is_as_good_as_with_the_exact_kernel():
    far = errors("landmarks", "far", 0.3).mean()
    assert far <= 0.006
    assert far <= errors("gaussian", "far", 0.3).mean() + 0.002
    assert errors("landmarks", "none", 0).mean() <= 0.008


def test_landmarks_at_every_row_are_the_exact_kernel():
    x, y = X[:300].astype(float), Y[:300]
    exact = ss.DFM("gaussian", bandwidth=2.0).fit(x, y)
    model = ss.DFM(ss.LandmarkFeatures(landmarks=x), bandwidth=2.0, random_state=0).fit(x, y)
    np.testing.assert_allclose(model.gram_, exact.gram_, atol=1e-5)
    np.testing.assert_allclose(model.predict(T)["proportion"], exact.predict(T)["proportion"], atol=1e-4)


def test_features_are_the_kernel_between_landmarks():
    z = X[:50].astype(float)
    found = embedding(z, 2.0)
    kernel = np.exp(-((z[:, None] - z) ** 2).sum(axis=2) / 8)
    features = found.features(np.column_stack([kernel, np.zeros(50)]))[:, :-1]
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-5)


def test_landmarks_are_distinct_source_rows_in_equal_shares():
    model = ss.DFM(ss.LandmarkFeatures(90), random_state=0).fit(np.vstack([X, X[:50]]), np.append(Y, Y[:50]))
    landmarks = model.embedding_.landmarks
    assert len(np.unique(landmarks, axis=0)) == len(landmarks) == 90
    rows = {row.tobytes(): label for row, label in zip(X.astype(float), Y, strict=True)}
    assert sorted(rows[z.tobytes()] for z in landmarks) == ["a"] * 30 + ["b"] * 30 + ["c"] * 30


@pytest.mark.parametrize("counts", [[5], [0, 3], [1, 1, 1], [10**6, 2, 0, 40, 7], list(range(50))])
@pytest.mark.parametrize("m", [1, 7, 128])
def test_shares_are_equal_within_what_classes_have(counts, m):
    counts = np.array(counts)
    share = equal_shares(counts, m)
    assert share.sum() == min(m, counts.sum())
    assert (share <= counts).all()
    open_ = share < counts
    assert not open_.any() or share[open_].max() - share[open_].min() <= 1


def test_chunks_and_seeds():
    import dask.array as da

    whole = ss.DFM("landmarks", random_state=0).fit(X, Y)
    cut = ss.DFM("landmarks", random_state=0).fit(da.from_array(X, chunks=(411, -1)), Y)
    assert np.array_equal(cut.embedding_.landmarks, whole.embedding_.landmarks)
    np.testing.assert_allclose(cut.predict(T)["proportion"], whole.predict(T)["proportion"], atol=1e-7)
    other = ss.DFM("landmarks", random_state=1).fit(X, Y)
    assert not np.array_equal(other.embedding_.landmarks, whole.embedding_.landmarks)


def test_given_landmarks_are_used():
    model = ss.DFM(ss.LandmarkFeatures(landmarks=X[:20]), random_state=0).fit(X, Y)
    assert sorted(model.embedding_.landmarks.tolist()) == sorted(X[:20].astype(float).tolist())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks=0: expected a positive number"),
        ({"n_landmarks": 2.5}, "n_landmarks=2.5"),
        ({"kernel": "box"}, "kernel='box'"),
        ({"landmarks": np.ones((3, 2))}, r"shape \(3, 2\) .*expected numbers, \(n, 3\)"),
        ({"landmarks": np.full((3, 3), np.nan)}, "landmarks hold NaN"),
    ],
)
def test_landmarks_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ss.DataError, match=message):
        ss.DFM(ss.LandmarkFeatures(**settings), random_state=0).fit(X, Y)


def test_fewer_rows_than_landmarks_are_all_taken():
    model = ss.DFM("landmarks", random_state=0).fit(X[:60], Y[:60])
    assert len(model.embedding_.landmarks) == 60
    assert np.isfinite(model.predict(T)["proportion"]).all()
