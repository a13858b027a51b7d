"""Sliced energy: the exact energy kernel by directions and grids, additive, with intervals and a test."""

import dask.array as da
import numpy as np
import pytest
from synthetic import make
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.features.directions import directions, spread_directions

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(2_000, [0.7, 0.2, 0.1], seed=1)
TRUTH = np.array([(label == TY).mean() for label in "abc"])


def fitted(x=X, y=Y, sample=None, **settings):
    of_map = {name: settings.pop(name) for name in ("origin", "n_directions", "n_bins") if name in settings}
    settings = {"n_bootstrap": 0, "random_state": 0, **settings}
    return ss.DFM(ss.SlicedEnergy(**of_map), **settings).fit(x, y, sample)


def proportions(x=X, y=Y, t=T, **settings):
    return fitted(x, y, **settings).predict(t)["proportion"].values[0]


@pytest.mark.parametrize(
    ("noise", "eps", "known"),
    [
        ("none", 0, 0.0081),
        ("far", 0.3, 0.2818),
        pytest.param("background", 0.3, 0.1450, marks=pytest.mark.slow),
        pytest.param("near", 0.3, 0.2006, marks=pytest.mark.slow),
    ],
)
def test_energy_has_the_known_errors_and_sliced_energy_is_within_two_hundredths_of_it(noise, eps, known):
    """Errors not worse by 15 % or .003, and not better by as much: a lower value would be a fault."""
    errors = []
    for seed in range(5):
        problem = make(seed, noise, eps)
        exact = ss.DFM("energy", n_bootstrap=0).fit(problem.x, problem.y)
        sliced = ss.DFM("sliced-energy", n_bootstrap=0, random_state=seed).fit(problem.x, problem.y)
        states = [model.embed(problem.target) for model in (exact, sliced)]
        for soft in (False, True):
            models = [model.set_params(soft=soft) for model in (exact, sliced)]
            found = [m.predict(s)["proportion"].values[0] for m, s in zip(models, states, strict=True)]
            assert np.abs(found[0] - found[1]).max() < 0.02
        errors.append(np.linalg.norm(found[0] - problem.proportions))
    assert np.mean(errors) == pytest.approx(known, abs=max(0.15 * known, 0.003))


@pytest.mark.parametrize("origin", [0, [1.0, -2.0, 3.0], 50.0])
def test_more_directions_and_bins_become_the_exact_kernel(origin):
    exact = ss.DFM(ss.EnergyKernel(origin)).fit(X, Y)
    coarse = fitted(origin=origin, n_directions=16, n_bins=8)
    fine = fitted(origin=origin, n_directions=900, n_bins=256)
    errors = [np.abs(model.gram_ - exact.gram_).max() / np.abs(exact.gram_).max() for model in (coarse, fine)]
    assert errors[1] < 0.003
    assert errors[1] < errors[0] / 3
    assert fine.delta_min_ == pytest.approx(exact.delta_min_, rel=0.003)
    assert fine.lambda_min_ == pytest.approx(exact.lambda_min_, rel=0.003)
    found = [model.predict(T)["proportion"].values for model in (fine, exact)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_in_one_marker_one_direction_is_all_there_is():
    x, t = X[:, :1].astype(float), T[:, :1].astype(float)
    exact, model = ss.DFM("energy").fit(x, Y), fitted(x, n_bins=1_000)
    assert model.embedding_.directions.shape == (1, 1)
    np.testing.assert_allclose(model.gram_, exact.gram_, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(model.predict(t)["proportion"], exact.predict(t)["proportion"], atol=1e-4)


def test_features_are_vectors_whose_inner_products_are_the_kernel():
    embedding = fitted(n_directions=900, n_bins=500, origin=[0.5, 1, 0]).embedding_
    rows = X[:30].astype(float)
    phi = embedding.features(embedding.sums(rows, np.arange(30), 30, **embedding.parameters))
    norms = np.linalg.norm(rows - embedding.origin, axis=1)
    kernel = norms[:, None] + norms - np.linalg.norm(rows[:, None] - rows, axis=2)
    np.testing.assert_allclose(phi @ phi.T, kernel, atol=0.02 * kernel.max())
    own = embedding.self_products(embedding.sums(rows, np.arange(30), 30, **embedding.parameters))
    np.testing.assert_allclose(own, 2 * norms, rtol=0.02)


def test_hard_matching_hardly_depends_on_the_origin():
    """To the digits that the bins leave: the origin lies within one of them."""
    for origin in ([1.0, -2.0, 3.0], 50.0, -1e3):
        np.testing.assert_allclose(proportions(origin=origin, soft=False), proportions(soft=False), atol=1e-5)


def test_cells_beyond_the_grid_move_no_proportion_however_far_they_are():
    """Shares depend on products with the source, which ends before the grid does."""
    near, far = (np.concatenate([T, np.full((300, 3), at, "f4")]) for at in (1e7, 1e30))
    for soft in (True, False):
        a, b = proportions(t=near, soft=soft), proportions(t=far, soft=soft)
        np.testing.assert_allclose(a, b, atol=1e-6)
    exact = ss.DFM("energy", soft=False).fit(X, Y).predict(near)["proportion"].values[0]
    np.testing.assert_allclose(proportions(t=near, soft=False), exact, atol=0.02)


@pytest.mark.parametrize("settings", [{}, {"soft": False}])
def test_rows_chunks_and_class_names_in_any_order_give_the_same_proportions(settings):
    expected = proportions(**settings)
    cut = proportions(da.from_array(X, chunks=(137, -1)), t=da.from_array(T, chunks=(411, -1)), **settings)
    np.testing.assert_allclose(cut, expected, atol=1e-9)
    order = np.random.default_rng(0).permutation(len(T))
    np.testing.assert_allclose(proportions(t=T[order], **settings), expected, atol=1e-9)
    grid = fitted().embedding_  # which rows of the source give the range goes by their order
    given = [
        ss.DFM(grid, n_bootstrap=0, random_state=0, **settings).fit(x, y).predict(T)["proportion"].values[0]
        for x, y in (
            (X, Y),
            (X[::-1], Y[::-1]),
            (X, np.array([{"a": 3, "b": 2, "c": 1}[label] for label in Y])),
        )
    ]
    np.testing.assert_allclose(given[1], given[0], atol=1e-9)
    np.testing.assert_allclose(given[2], given[0][::-1], atol=1e-9)


def test_it_has_intervals_that_hold_the_truth_and_a_test():
    result = fitted(n_bootstrap=100).predict(T)
    assert (result["proportion_low"] < [0.7, 0.2, 0.1]).all()
    assert (result["proportion_high"] > [0.7, 0.2, 0.1]).all()
    assert (result["proportion_high"] - result["proportion_low"]).max() < 0.1
    assert float(result["p_value"][0]) > 0.01
    far = np.concatenate([T, np.full((100, 3), 40, "f4")])
    assert float(fitted(n_bootstrap=100).predict(far)["p_value"][0]) < 0.01


def test_states_of_two_halves_add_up_to_the_whole():
    first = fitted(X[:1_500], Y[:1_500], np.repeat("one", 1_500))
    second = ss.DFM(first.embedding_, n_bootstrap=0).fit(X[1_500:], Y[1_500:], np.repeat("two", 1_500))
    both = first.merge(second).predict(T)["proportion"]
    whole = ss.DFM(first.embedding_, n_bootstrap=0).fit(X, Y).predict(T)["proportion"]
    np.testing.assert_allclose(both, whole, atol=1e-9)


def test_states_with_another_origin_are_not_added():
    a, b = fitted(sample=np.repeat("one", 3_000)), fitted(sample=np.repeat("two", 3_000), origin=1.0)
    with pytest.raises(ss.DataError, match="different feature maps"):
        a.merge(b)


@pytest.mark.parametrize("d", [3, 5, 10])
def test_directions_that_repel_each_other_cover_the_sphere_more_evenly(d):
    v = np.random.default_rng(9).normal(size=(1_000, d))
    v /= np.linalg.norm(v, axis=1)[:, None]

    def unevenness(draw):
        drawn = [draw(256, d, np.random.default_rng(seed)) for seed in range(4)]
        return np.mean([np.abs(v @ w.T).mean(axis=1).std() for w in drawn])

    assert unevenness(spread_directions) < 0.6 * unevenness(directions)
    np.testing.assert_allclose(np.linalg.norm(spread_directions(256, d, np.random.default_rng(0)), axis=1), 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_directions": 0}, "n_directions=0: expected a positive number"),
        ({"n_bins": 2.5}, "n_bins=2.5: expected a positive number up to 1000"),
        ({"n_bins": 5_000}, "n_bins=5000"),
        ({"origin": np.inf}, "origin=inf"),
        ({"bandwidth": 1.0}, "the energy kernel has no bandwidth"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ss.DataError, match=message):
        fitted(**settings)


def test_rows_that_do_not_differ_are_refused():
    with pytest.raises(ss.DataError, match="span 0 along a direction"):
        fitted(np.ones((10, 2)), np.repeat([0, 1], 5))


def test_a_marker_that_does_not_vary_does_no_harm():
    x, t = (np.column_stack([rows, np.full(len(rows), 7, "f4")]) for rows in (X, T))
    assert np.abs(proportions(x, t=t) - TRUTH).max() < 0.03
