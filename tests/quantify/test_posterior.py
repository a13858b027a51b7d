"""Posteriors of single cells under their sample's proportions."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from synthetic import make
from three_classes import draw

import scaleshift as ss

X, Y = draw(5_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(4_000, [0.7, 0.2, 0.1], seed=1)
MAPS = ["fourier", "landmarks", "gaussian"]
HARD = {name: ss.DFM(name, soft=False, random_state=0, n_bootstrap=0).fit(X, Y) for name in MAPS}
SOFT = {name: ss.DFM(name, random_state=0, n_bootstrap=0).fit(X, Y) for name in MAPS}
RNG = np.random.default_rng(3)


def refuse(*_, **__):
    raise AssertionError("something was computed")


def two_gaussians(n, share, rng=RNG):
    """Of unit variance, 3 apart."""
    y = rng.random(n) < share
    return np.where(y, 1.5, -1.5)[:, None] + rng.standard_normal((n, 1)), np.where(y, "b", "a")


def bayes(x, share):
    b, a = share * norm.pdf(x[:, 0] - 1.5), (1 - share) * norm.pdf(x[:, 0] + 1.5)
    return b / (a + b)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_posteriors_of_two_gaussians_agree_with_bayes(features, share):
    """Within .06, .01 on average, for bandwidths from half a class's sd to thrice as much.

    Fourier features have an error that the tails of narrow kernels drown in: there, up to 2 sd from a class.
    """
    rng = np.random.default_rng(3)
    x, y = two_gaussians(8_000, 0.5, rng)
    target, _ = two_gaussians(4_000, share, rng)
    for bandwidth in (0.5, 1, 3, "auto"):
        model = ss.DFM(features, False, bandwidth, random_state=0, n_bootstrap=0).fit(x, y)
        error = np.abs(model.posterior(target).sel(label="b").values - bayes(target, share))
        inside = np.abs(target[:, 0]) < (3.5 if features == "fourier" else np.inf)
        assert error[inside].max() < 0.06
        assert error.mean() < 0.01


@pytest.mark.parametrize("features", MAPS)
def test_posteriors_follow_the_proportions_of_the_cells_own_sample(features):
    x = np.repeat([[-2.0, 2.0, 0.0]], 2, axis=0)  # between a and b
    model = HARD[features]
    result = model.predict(np.concatenate([T, X]), sample=np.repeat(["S1", "S2"], [len(T), len(X)]))
    found = model.posterior(x, result, sample=["S2", "S1"]).sel(label=["a", "b"]).values
    odds = found[:, 0] / found[:, 1]
    alpha = result["proportion"].sel(label=["a", "b"])
    ratio = (alpha[:, 0] / alpha[:, 1]).sel(sample=["S2", "S1"]).values
    assert odds[1] / odds[0] == pytest.approx(ratio[1] / ratio[0], rel=1e-5)


@pytest.mark.parametrize("features", MAPS)
def test_mean_posteriors_are_the_proportions(features):
    found = HARD[features].posterior(T)
    expected = HARD[features].predict(T)["proportion"].values[0]
    np.testing.assert_allclose(found.mean("cell"), expected, atol=0.01)
    assert (np.array(found.label)[found.values.argmax(axis=1)] == TY).mean() > 0.995


@pytest.mark.parametrize("model", [*HARD.values(), *SOFT.values()])
def test_posteriors_are_distributions(model):
    found = model.posterior(T[:700]).values
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("features", MAPS)
def test_far_cells_are_unknown_to_soft_models(features):
    far = (np.array([12.0, -9, 7]) + RNG.standard_normal((1_000, 3))).astype("f4")
    found = SOFT[features].posterior(np.concatenate([T, far]))
    assert found.label.values.tolist() == ["a", "b", "c", "unknown"]
    unknown = found.sel(label="unknown").values
    assert unknown[: len(T)].mean() < 0.01
    assert unknown[len(T) :].mean() > 0.999


def test_a_sample_without_unknown_share_has_no_unknown_cells():
    result = SOFT["landmarks"].predict(T)
    none = result.assign(unknown=0 * result["unknown"])
    assert SOFT["landmarks"].posterior(T, none).sel(label="unknown").values.max() == 0


def test_posteriors_of_being_unknown_add_up_to_the_unknown_share():
    for noise in ("far", "background"):
        for seed in range(3):
            problem = make(seed, noise, 0.3)
            model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(problem.x, problem.y)
            result = model.predict(problem.target)
            found = model.posterior(problem.target, result).sel(label="unknown").values.mean()
            assert found == pytest.approx(result["unknown"].item(), rel=0.2)


def test_the_name_of_the_unknown_cells_gives_way_to_a_label():
    y = np.where(Y == "c", "unknown", Y)
    found = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X, y).posterior(T[:10])
    assert found.label.values.tolist() == ["a", "b", "unknown", "unknown cells"]


def test_labels_keep_their_type():
    y = np.array([1, 2, 3])[np.searchsorted(["a", "b", "c"], Y)]
    for soft in (True, False):
        model = ss.DFM("landmarks", soft=soft, random_state=0, n_bootstrap=0).fit(X, y)
        found = model.posterior(T[:10])
        assert found.label.values.tolist() == ([1, 2, 3, "unknown"] if soft else [1, 2, 3])
        assert found.sel(label=2).shape == (10,)


# Lazy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", MAPS)
def test_posteriors_are_lazy_once_proportions_are_given(features):
    x = da.from_array(T, chunks=(900, 3))
    result = SOFT[features].predict(x)
    with dask.config.set(scheduler=refuse):
        found = SOFT[features].posterior(x, result)
    assert found.chunks == (x.chunks[0], (4,))
    np.testing.assert_allclose(found, SOFT[features].posterior(T, result), atol=2e-5)


def test_a_block_is_read_where_it_is_asked_for():
    read = []

    def reading(block, block_info=None):
        read.append(block_info[0]["chunk-location"][0])
        return block

    x = da.from_array(T, chunks=(1_000, 3)).map_blocks(reading, meta=T[:0])
    found = SOFT["landmarks"].posterior(x, SOFT["landmarks"].predict(T))
    found[2_000:2_010].compute()
    assert set(read) == {2}


def test_predicting_first_is_the_same():
    model = SOFT["landmarks"]
    xr.testing.assert_allclose(model.posterior(T), model.posterior(T, model.predict(T)), rtol=1e-12)


def test_a_saved_model_gives_the_same_bits(tmp_path):
    for name, model in SOFT.items():
        model.save(tmp_path / name)
        xr.testing.assert_identical(
            ss.load(tmp_path / name).posterior(T).compute(), model.posterior(T).compute()
        )


def test_rows_are_on_their_own():
    whole = HARD["landmarks"].posterior(T, HARD["landmarks"].predict(T)).values
    order = RNG.permutation(len(T))
    shuffled = HARD["landmarks"].posterior(T[order], HARD["landmarks"].predict(T)).values
    np.testing.assert_allclose(shuffled, whole[order], atol=1e-5)


# Classifiers -------------------------------------------------------------------------------------------


def test_a_classifier_is_corrected_as_saerens_does():
    rng = np.random.default_rng(4)
    x, y = two_gaussians(6_000, 0.3, rng)
    target, _ = two_gaussians(4_000, 0.05, rng)
    classifier = LogisticRegression().fit(*two_gaussians(6_000, 0.3, rng))
    model = ss.BBSE(classifier, cv="prefit", random_state=0, n_bootstrap=0).fit(x, y)
    result = model.predict(target)
    found = model.posterior(target, result).sel(label="b").values
    share = result["proportion"].sel(label="b").item()
    assert np.abs(found - bayes(target, share)).max() < 0.05
    whole = classifier.predict_proba(target)[:, 1]
    beta = (y == "b").mean()
    ours = whole * share / beta
    expected = ours / (ours + (1 - whole) * (1 - share) / (1 - beta))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kernel_map", [None, ss.FourierFeatures(64)])
def test_soft_models_of_a_classifier_have_no_unknown_cells(kernel_map):
    features = ss.ClassifierFeatures(output="logit", kernel_map=kernel_map)
    model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(X, Y)
    found = model.posterior(T[:500])
    assert found.label.values.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.sum("label"), 1, atol=1e-12)


def test_negative_proportions_count_as_none():
    model = ss.BBSE(positive=False, random_state=0, n_bootstrap=0).fit(X, Y)
    result = model.predict(T)
    negative = result.assign(proportion=result["proportion"] * 0 + np.array([1.1, -0.1, 0.0]))
    found = model.posterior(T[:100], negative)
    np.testing.assert_array_equal(found.sel(label="a"), 1)


# What may go wrong -------------------------------------------------------------------------------------


def test_where_no_class_has_a_density_the_posterior_is_the_prior():
    model = HARD["gaussian"]
    result = model.predict(T)
    found = model.posterior([[1e4, 1e4, 1e4]], result.assign_coords(sample=["all"]))
    np.testing.assert_allclose(found.values[0], result["proportion"].values[0], atol=1e-12)


def test_rows_that_are_not_finite():
    broken = T[:4].copy()
    broken[1, 0] = np.nan
    model = ss.DFM("landmarks", random_state=0, n_bootstrap=0, invalid="drop").fit(X, Y)
    assert np.isnan(model.posterior(broken).values).any(axis=1).tolist() == [False, True, False, False]
    with pytest.raises(ss.DataError, match="rows 1"):
        SOFT["landmarks"].posterior(broken, SOFT["landmarks"].predict(T)).compute()


def test_a_class_without_source_cells_has_no_posterior():
    keep = Y != "b"
    labels = pd.Categorical(Y[keep], categories=["a", "b", "c"])
    model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X[keep], labels)
    assert model.posterior(T).sel(label="b").values.max() == 0


@pytest.mark.parametrize(
    "model",
    [ss.DFM("energy"), ss.DFM("sliced-energy", n_bootstrap=0), ss.DFM(StandardScaler()), ss.HDx()],
    ids=["energy", "sliced energy", "transformer", "HDx"],
)
def test_features_that_are_no_density_have_no_posteriors(model):
    model = clone(model).set_params(random_state=0).fit(X[:600], Y[:600])
    result = model.predict(T[:200])
    for of_cells in (
        lambda: model.posterior(T[:200], result),
        lambda: ss.quantify.novelty(model, T[:200]),
        lambda: ss.quantify.diagnose(model, T[:200]),
    ):
        with pytest.raises(ss.DataError, match=r"densit.*: fit a DFM with features='landmarks' or 'fourier'"):
            of_cells()


def test_proportions_of_other_samples_or_models_are_refused():
    model = SOFT["landmarks"]
    other = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X, np.where(Y == "a", "x", Y))
    with pytest.raises(ss.DataError, match=r"lack the sample\(s\) S9: pass what predict gave for X"):
        model.posterior(T, model.predict(T), sample=np.repeat(["S9"], len(T)))
    with pytest.raises(ss.DataError, match=r"lack the label\(s\) a"):
        model.posterior(T, other.predict(T))
