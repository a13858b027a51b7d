"""Every kernel by every map: what the map is asked for is what it computes."""

import time

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from synthetic import make
from three_classes import draw

import scaleshift as ss
from scaleshift.kernels.families import KERNELS
from scaleshift.quantify import bandwidth
from scaleshift.quantify.features.fourier import frequencies

X, Y = draw(1_500, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(1_500, [0.7, 0.2, 0.1], seed=1)
TRUTH = np.array([(label == TY).mean() for label in "abc"])
LANDMARKS, FREQUENCIES = X[:40], np.random.default_rng(0).normal(size=(64, 3))
MAPS = {
    **{f"fourier {name}": ss.FourierFeatures(256, kernel=name, random_state=0) for name in KERNELS},
    **{f"landmarks {name}": ss.LandmarkFeatures(kernel=name, landmarks=LANDMARKS) for name in KERNELS},
    **{f"exact {name}": ss.ExactKernel(name) for name in KERNELS},
}


def fitted(features, x=X, y=Y, **settings):
    settings = {"bandwidth": 2.0, "n_bootstrap": 0, "random_state": 0, **settings}
    return ss.DFM(features, **settings).fit(x, y)


def proportions(features, x=X, y=Y, t=T, **settings):
    return fitted(features, x, y, **settings).predict(t)["proportion"].values[0]


# The same kernel by three maps -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("soft", [True, False])
def test_fourier_features_become_the_exact_kernel(kernel, soft):
    """At the same bandwidth the errors of Gram matrix and proportions fall with D, to next to 0."""
    exact = fitted(ss.ExactKernel(kernel), soft=soft)
    expected = exact.predict(T)["proportion"].values[0]
    of_gram, of_proportions = [], []
    for n in (64, 1_024, 8_192):
        models = [fitted(ss.FourierFeatures(n, kernel=kernel, random_state=s), soft=soft) for s in range(4)]
        of_gram.append(np.mean([np.abs(model.gram_ - exact.gram_).max() for model in models]))
        found = [model.predict(T)["proportion"].values[0] for model in models]
        of_proportions.append(np.mean([np.abs(f - expected).max() for f in found]))
    assert of_gram[0] > 2 * of_gram[1] > 3 * of_gram[2]
    assert of_gram[2] < 0.006
    assert of_proportions[2] < 0.004


@pytest.mark.parametrize("kernel", KERNELS)
def test_landmarks_at_every_row_are_the_exact_kernel(kernel):
    x, y = X[:250].astype(float), Y[:250]
    exact = fitted(ss.ExactKernel(kernel), x, y)
    model = fitted(ss.LandmarkFeatures(kernel=kernel, landmarks=x), x, y)
    np.testing.assert_allclose(model.gram_, exact.gram_, atol=1e-5)
    for settings in ({"soft": True}, {"soft": False}):
        found = [m.set_params(**settings).predict(T)["proportion"] for m in (model, exact)]
        np.testing.assert_allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("kind", [ss.FourierFeatures, ss.LandmarkFeatures, ss.ExactKernel])
def test_no_map_ignores_its_kernel_or_its_bandwidth(kind):
    grams = [fitted(kind(kernel=name), bandwidth=s).gram_ for name in KERNELS for s in (1.0, 2.0)]
    for i, gram in enumerate(grams):
        assert min(np.abs(gram - other).max() for other in grams[:i] + grams[i + 1 :]) > 1e-3


def test_the_gaussian_kernel_by_either_name_is_one():
    np.testing.assert_array_equal(fitted("gaussian").gram_, fitted(ss.ExactKernel()).gram_)
    np.testing.assert_array_equal(
        fitted(ss.GaussianKernel(3.0)).gram_, fitted("gaussian", bandwidth=3.0).gram_
    )


# Accuracy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
def test_every_map_finds_the_proportions(features):
    assert np.abs(proportions(features, bandwidth="auto") - TRUTH).max() < 0.03


@pytest.mark.parametrize("sampler", ["sobol", "orthogonal", "iid"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_samplers_differ_in_their_error_only(sampler, kernel):
    features = ss.FourierFeatures(1_000, kernel=kernel, sampler=sampler, random_state=0)
    if sampler == "orthogonal" and kernel in ("laplace", "cauchy"):
        with pytest.raises(ss.DataError, match=f"take 'sobol' or 'iid' for kernel='{kernel}'"):
            fitted(features)
    else:
        np.testing.assert_allclose(proportions(features), proportions(ss.ExactKernel(kernel)), atol=0.015)


def test_sobol_and_orthogonal_frequencies_have_less_kernel_error_than_iid_ones():
    """Between cells about a bandwidth apart; far ones have the error of as many independent frequencies."""
    difference = np.random.default_rng(0).normal(size=(400, 5)) / 2
    exact = np.exp(-(difference**2).sum(axis=1) / 2)

    def error(sampler):
        drawn = [
            frequencies(KERNELS["gaussian"], 500, 5, sampler, np.random.default_rng(s)) for s in range(8)
        ]
        return np.sqrt(np.mean([(np.cos(difference @ w.T).mean(axis=1) - exact) ** 2 for w in drawn]))

    sobol, orthogonal, iid = (error(sampler) for sampler in ("sobol", "orthogonal", "iid"))
    assert sobol < 0.3 * iid
    assert orthogonal < 0.7 * iid


# The bandwidth -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("criterion", ["delta_min", "lambda_min"])
def test_the_automatic_bandwidth_is_the_best_of_the_ladder_for_the_maps_own_kernel(kernel, criterion):
    problem = make(0, n=1_200)
    settings = {"n_bootstrap": 0, "random_state": 0, "criterion": criterion}
    chosen = ss.DFM(ss.ExactKernel(kernel), **settings).fit(problem.x, problem.y)
    worth = {}
    for k in range(-10, 5):
        width = chosen.bandwidth_ * 2 ** (k / 2)
        model = clone(chosen).set_params(bandwidth=width).fit(problem.x, problem.y)
        worth[k] = getattr(model, f"{criterion}_")
    # No one-cell classes, and all rows in the subsample: the same numbers to float32's digits.
    assert worth[0] > max(worth.values()) * (1 - 1e-3)
    assert min(worth.values()) < 0.7 * worth[0]


@pytest.mark.parametrize("kind", [ss.FourierFeatures, ss.LandmarkFeatures, ss.ExactKernel])
def test_every_map_tells_its_kernel_to_the_choice_of_the_bandwidth(kind):
    found = [fitted(kind(kernel=name), bandwidth="auto").bandwidth_ for name in KERNELS]
    expected = [fitted(ss.ExactKernel(name), bandwidth="auto").bandwidth_ for name in KERNELS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert len(set(expected)) > 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_choice_of_a_bandwidth_takes_a_second_or_so(kernel):
    problem = make(0, d=20)
    start = time.process_time()
    bandwidth.best(problem.x[:2_000], problem.y[:2_000], "delta_min", kernel)
    assert time.process_time() - start < 4


# Invariance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
def test_rows_chunks_and_class_names_in_any_order_give_the_same_proportions(features, soft):
    expected = proportions(features, soft=soft)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        proportions(features, X[order], Y[order], T[::-1], soft=soft), expected, atol=1e-7
    )
    x, t = da.from_array(X, chunks=(137, -1)), da.from_array(T, chunks=(411, -1))
    cut = proportions(features, x, Y, t, soft=soft)
    np.testing.assert_allclose(cut, expected, atol=1e-7)
    turned = np.array([{"a": 3, "b": 2, "c": 1}[label] for label in Y])
    np.testing.assert_allclose(proportions(features, y=turned, soft=soft), expected[::-1], atol=1e-7)


@pytest.mark.parametrize("kind", [ss.FourierFeatures, ss.LandmarkFeatures, ss.ExactKernel])
@pytest.mark.parametrize("kernel", ["box", None, ["gaussian"]])
def test_kernels_that_there_are_not_are_refused(kind, kernel):
    with pytest.raises(ss.DataError, match="expected one of gaussian, laplace, matern32, matern52, cauchy"):
        fitted(kind(kernel=kernel))


def test_every_exact_kernel_refuses_large_sources():
    n = 50_001
    with pytest.raises(ss.DataError, match="50001: at most 50000; use features='fourier'"):
        fitted(ss.ExactKernel("cauchy"), np.zeros((n, 1), "f4"), np.zeros(n, int))
