"""Distribution feature matching: what it must get right, whatever the input looks like."""

import json

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from synthetic import make

import scaleshift as ss
from scaleshift.kernels.families import KERNELS
from scaleshift.quantify.bandwidth import allocation
from scaleshift.quantify.features.fourier import frequencies
from scaleshift.quantify.result import VARIABLES

RNG = np.random.default_rng(0)
CENTRES = np.array([[-4.0, 0, 0], [0, 4, 0], [4, 0, 4]])


def draw(n, shares, rng=RNG):
    """Three clear classes in three markers."""
    y = rng.choice(3, n, p=shares)
    return (CENTRES[y] + rng.standard_normal((n, 3))).astype("f4"), np.array(["a", "b", "c"])[y]


X, Y = draw(3_000, [0.3, 0.3, 0.4])
T, TY = draw(4_000, [0.7, 0.2, 0.1])
TRUTH = np.array([(label == TY).mean() for label in "abc"])
MODEL = ss.DFM(random_state=0).fit(X, Y)


def proportions(x=X, y=Y, t=T, **settings):
    return ss.DFM(random_state=0, **settings).fit(x, y).predict(t)["proportion"].values[0]


# Accuracy ----------------------------------------------------------------------------------------------


def mean_error(noise, eps, **settings):
    errors = []
    for seed in range(5):
        problem = make(seed, noise, eps)
        model = ss.DFM(n_bootstrap=0, random_state=seed, **settings).fit(problem.x, problem.y)
        errors.append(
            np.linalg.norm(model.predict(problem.target)["proportion"].values[0] - problem.proportions)
        )
    return np.mean(errors)


@pytest.mark.parametrize(
    ("noise", "eps", "bar"), [("none", 0, 0.008), ("background", 0.3, 0.042), ("far", 0.3, 0.035)]
)
def test_soft_fourier_matching_reaches_the_reference(noise, eps, bar):
    assert mean_error(noise, eps) <= bar


def test_hard_matching_cannot_see_far_noise():
    assert mean_error("far", 0.3, soft=False) >= 0.12


def test_fourier_features_converge_to_the_exact_kernel():
    """Distance of iid Fourier proportions to the exact kernel's: falls as 1 / sqrt(D)."""
    problem = make(0, "near", 0.2, n=1_500)
    model = ss.DFM("gaussian", bandwidth=2.5).fit(problem.x, problem.y)
    exact = model.predict(problem.target)["proportion"]
    sizes, seeds = np.array([64, 256, 1024, 4096]), range(12)
    errors = []
    for d in sizes:
        maps = [ss.FourierFeatures(int(d), sampler="iid", random_state=s) for s in seeds]
        models = [ss.DFM(m, bandwidth=2.5, n_bootstrap=0).fit(problem.x, problem.y) for m in maps]
        found = [model.predict(problem.target) for model in models]
        errors.append(np.sqrt(np.mean([((f["proportion"] - exact) ** 2).sum() for f in found])))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35
    assert errors[-1] < 0.02


def test_sobol_frequencies_have_less_kernel_error_than_iid_ones():
    differences = RNG.standard_normal((400, 5))
    exact = np.exp(-(differences**2).sum(axis=1) / 2)

    def error(sampler):
        drawn = [
            frequencies(KERNELS["gaussian"], 500, 5, sampler, np.random.default_rng(s)) for s in range(8)
        ]
        return np.sqrt(np.mean([(np.cos(differences @ w.T).mean(axis=1) - exact) ** 2 for w in drawn]))

    assert error("sobol") < 0.6 * error("iid")
    w = frequencies(KERNELS["gaussian"], 500, 5, "sobol", np.random.default_rng(0))
    np.testing.assert_allclose(w.T @ w / 500, np.eye(5), atol=1e-12)


def test_the_unknown_share_is_what_is_missing():
    far = np.full((1_000, 3), 60.0) + RNG.standard_normal((1_000, 3))
    result = MODEL.predict(np.vstack([T, far]))
    assert abs(float(result["unknown"][0]) - 0.2) < 0.03
    assert np.allclose(result["proportion"].sum("label") + result["unknown"], 1)
    np.testing.assert_allclose(result["proportion_known"].values[0], TRUTH, atol=0.03)


def test_distance_is_small_under_label_shift_and_large_under_contamination():
    far = np.full((2_000, 3), 60.0)
    clean, contaminated = MODEL.predict(T), MODEL.predict(np.vstack([T, far]))
    assert float(clean["distance"][0]) < 0.05 < 0.2 < float(contaminated["distance"][0])


def test_weights_are_target_share_over_source_share():
    result = MODEL.predict(T)
    expected = result["proportion"].values[0] / (MODEL.class_counts_ / MODEL.class_counts_.sum())
    np.testing.assert_allclose(result["weight"].values[0], expected)
    np.testing.assert_allclose(result["count"].values[0], result["proportion"].values[0] * len(T))


# Invariance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["fourier", "landmarks", "gaussian", "energy", "sliced-energy"])
@pytest.mark.parametrize("chunks", [137, 1_000])
def test_chunking_moves_no_proportion(features, chunks):
    whole = proportions(features=features)
    cut = proportions(da.from_array(X, chunks=(chunks, -1)), da.from_array(Y, chunks=999), features=features)
    targets = proportions(t=da.from_array(T, chunks=(chunks, -1)), features=features)
    np.testing.assert_allclose(cut, whole, atol=1e-7)
    np.testing.assert_allclose(targets, whole, atol=1e-7)


def test_row_order_moves_no_proportion_at_a_given_bandwidth():
    order = RNG.permutation(len(X))
    np.testing.assert_allclose(
        proportions(X[order], Y[order], bandwidth=2.0), proportions(bandwidth=2.0), atol=1e-7
    )


def test_class_order_only_permutes_the_result():
    swapped = np.array([{"a": "z", "b": "b", "c": "a"}[label] for label in Y])
    np.testing.assert_allclose(
        proportions(y=swapped, bandwidth=2.0), proportions(bandwidth=2.0)[[2, 1, 0]], atol=1e-7
    )


def test_a_common_shift_of_all_cells_moves_no_proportion():
    shift = np.array([1e4, -1e4, 0])
    moved = proportions(X.astype(float) + shift, t=T.astype(float) + shift, bandwidth=2.0)
    np.testing.assert_allclose(moved, proportions(bandwidth=2.0), atol=1e-6)


@pytest.mark.parametrize("names", [[3, 7, 10], [False, True, None], ["x", "10", "9"], [0.5, 1.5, -1.0]])
def test_labels_come_out_as_they_came_in(names):
    y = np.array([names["abc".index(label)] for label in Y], dtype=object)
    model = ss.DFM(random_state=0).fit(X, y)
    kept = [name for name in names if name is not None]
    found = model.predict(T)["label"].values
    assert sorted(found.tolist(), key=str) == sorted(kept, key=str)
    assert {type(v) for v in found.tolist()} == {type(v) for v in kept}


def test_unlabelled_source_cells_are_left_out():
    y = Y.astype(object)
    y[:500] = None
    without = proportions(X[500:], Y[500:], bandwidth=2.0)
    np.testing.assert_allclose(proportions(y=y, bandwidth=2.0), without, atol=1e-7)


def test_many_samples_in_one_pass_equal_each_alone():
    names = np.repeat(["s10", "s2"], len(T) // 2)
    together = MODEL.predict(T, sample=names)
    assert together["sample"].values.tolist() == ["s2", "s10"]
    for name in ("s2", "s10"):
        alone = MODEL.predict(T[names == name])
        np.testing.assert_allclose(
            together["proportion"].sel(sample=name).values, alone["proportion"].values[0], atol=1e-7
        )


# The estimator -----------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    assert np.array_equal(proportions(), proportions())
    assert not np.array_equal(ss.DFM(random_state=1).fit(X, Y).gram_, MODEL.gram_)


def test_follows_the_scikit_learn_protocol():
    model = ss.DFM(ss.FourierFeatures(64, bandwidth=3.0), soft=False)
    copy = clone(model)
    assert copy.get_params()["features__n_features"] == 64
    assert copy.set_params(features__n_features=32).features.n_features == 32
    with pytest.raises(NotFittedError):
        copy.predict(T)
    assert copy.fit(X, Y) is copy
    assert copy.bandwidth_ == 3.0  # the map's own number wins


def test_a_map_without_a_number_takes_the_models_bandwidth():
    assert ss.DFM(ss.FourierFeatures(64), bandwidth=1.5).fit(X, Y).bandwidth_ == 1.5


def test_given_frequencies_are_used():
    frequencies = RNG.standard_normal((40, 3))
    model = ss.DFM(ss.FourierFeatures(frequencies=frequencies)).fit(X, Y)
    np.testing.assert_allclose(model.embedding_.frequencies, frequencies, rtol=1e-7)
    assert abs(model.predict(T)["proportion"].values[0] - TRUTH).max() < 0.05


def test_the_result_describes_itself():
    result = MODEL.predict(T)
    assert set(result.data_vars) == set(VARIABLES)
    assert all(v.attrs["long_name"] and v.attrs["description"] for v in result.data_vars.values())
    assert result.attrs["seed"] == 0
    assert json.loads(result.attrs["parameters"])["soft"] is True


def test_geometry_is_debiased():
    assert MODEL.lambda_min_ <= MODEL.delta_min_ + 1e-12
    assert MODEL.delta_min_ < MODEL.delta_min_plain_
    useless = ss.DFM("gaussian", bandwidth=0.01).fit(RNG.standard_normal((4, 3)), ["a", "a", "b", "b"])
    assert useless.delta_min_plain_ == pytest.approx(0.5)
    assert useless.delta_min_ == pytest.approx(0, abs=1e-9)


def test_two_classes_have_half_their_squared_distance_as_delta_min():
    model = ss.DFM(random_state=0, bandwidth=2.0).fit(X[Y != "c"], Y[Y != "c"])
    g = model.gram_
    assert model.delta_min_plain_ == pytest.approx((g[0, 0] + g[1, 1] - 2 * g[0, 1]) / 2)


# Input that is not as it should be ---------------------------------------------------------------------


def with_nan():
    t = T.copy()
    t[[5, 7], [0, 2]] = np.nan
    return t


def test_nan_rows_are_named_or_dropped_and_counted():
    with pytest.raises(ss.DataError, match="column 0: 1, column 2: 1; first rows 5, 7"):
        MODEL.predict(with_nan())
    result = clone(MODEL).set_params(invalid="drop").fit(X, Y).predict(with_nan())
    assert int(result["n_invalid"][0]) == 2
    assert int(result["n_cells"][0]) == len(T) - 2
    assert str(result["flag"].values[0]) == "cells left out: 2"
    assert abs(result["proportion"].values[0] - TRUTH).max() < 0.03


def test_nan_rows_of_the_source_are_dropped_and_counted():
    x = X.copy()
    x[:3] = np.nan
    model = ss.DFM(random_state=0, invalid="drop").fit(x, Y)
    assert model.n_invalid_ == 3
    assert model.class_counts_.sum() == len(X) - 3


def test_a_one_cell_class_works():
    x, y = np.vstack([X, [[20.0, 20, 20]]]), np.append(Y, "d")
    for features in ("fourier", "landmarks", "gaussian", "energy", "sliced-energy"):
        result = ss.DFM(features, random_state=0).fit(x, y).predict(T)
        assert result["flag"].values.tolist() == ["few source cells: d (1)"]
        found = result["proportion"].values[0]
        assert np.isfinite(found).all()
        assert abs(found[:3] - TRUTH).max() < 0.03
        assert found[3] < 0.02


def test_a_source_of_one_class_works():
    result = ss.DFM(random_state=0).fit(X[Y == "a"], Y[Y == "a"]).predict(T[TY == "a"])
    assert float(result["proportion"][0, 0]) > 0.9


def test_an_empty_sample_is_flagged_and_takes_no_other_with_it():
    names = pd.Categorical(np.where(TY == "a", "s1", "s3"), categories=["s1", "s2", "s3"])
    result = MODEL.predict(T, sample=names)
    assert result["flag"].values.tolist() == ["", "no cells", ""]
    assert np.isnan(result["proportion"].sel(sample="s2")).all()
    assert np.isfinite(result["proportion"].sel(sample="s3")).all()
    assert MODEL.predict(T[:0])["flag"].values.tolist() == ["no cells"]


def test_a_class_without_source_cells_stays_as_nan_with_a_flag():
    y = pd.Categorical(Y, categories=["a", "b", "q", "c"])
    result = ss.DFM(random_state=0).fit(X, y).predict(T)
    assert result["label"].values.tolist() == ["a", "b", "q", "c"]
    assert np.isnan(result["proportion"].sel(label="q").item())
    assert result["flag"].values.tolist() == ["not in the source: q"]
    np.testing.assert_allclose(result["proportion"].sel(label=["a", "b", "c"]).values[0], TRUTH, atol=0.03)


def test_a_label_of_the_target_only_is_flagged_where_it_occurs():
    sample = np.where(np.arange(len(T)) < 1_000, "s1", "s2")
    label = np.where((TY == "c") & (sample == "s2"), "new", TY).astype(object)
    cells = ss.as_cells(T, sample=sample, label=pd.Categorical(label, ["a", "b", "c", "new", "unused"]))
    result = MODEL.predict(cells)
    assert result["label"].values.tolist() == ["a", "b", "c", "new"]
    assert result["flag"].values.tolist() == ["", "not in the source: new"]
    assert np.isnan(result["proportion"].sel(label="new")).all()


def test_labels_of_another_type_in_the_targets_are_refused():
    cells = ss.as_cells(T, label=np.where(TY == "c", 5, 0))
    with pytest.raises(ss.DataError, match="labels of the targets are int64, of the source str"):
        MODEL.predict(cells)


def test_more_classes_than_the_subsample_has_rows_work():
    y = np.arange(6_000) // 2
    counts = np.bincount(y)
    assert allocation(counts).sum() == 2_000
    assert allocation(np.array([10**6, 1, 3, 0])).tolist() == [2_000, 1, 3, 0]


class Reads:
    """Array-like that counts how often a block of it is read."""

    def __init__(self, array):
        self.array, self.n = array, 0
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, index):
        self.n += 1
        return self.array[index]


@pytest.mark.parametrize(
    ("settings", "passes"),
    [
        ({}, 2),
        ({"bandwidth": 2.0}, 1),
        ({"features": "landmarks"}, 2),
        ({"features": "landmarks", "bandwidth": 2.0}, 2),
        ({"features": "gaussian"}, 3),
        ({"features": "gaussian", "bandwidth": 2.0}, 2),
        ({"features": ss.LandmarkFeatures(kernel="matern32")}, 2),
        ({"features": ss.ExactKernel("laplace")}, 3),
        ({"features": "energy"}, 2),
        ({"features": ss.SlicedEnergy(n_directions=8)}, 2),
        ({"features": StandardScaler()}, 2),
    ],
)
def test_passes_over_the_data_are_as_few_as_promised(settings, passes):
    source, target = Reads(X), Reads(T)
    lazy = [
        da.from_array(r, chunks=(1_000, 3), asarray=False, meta=X[:0], name=False) for r in (source, target)
    ]
    model = ss.DFM(random_state=0, **settings).fit(lazy[0], Y)
    assert source.n == 3 * passes
    model.predict(lazy[1], sample=np.arange(len(T)) % 7)
    assert target.n == 4


def test_cells_of_annotated_data_are_quantified():
    annotated = anndata.AnnData(X, obs=pd.DataFrame({"gate": Y}, index=[str(i) for i in range(len(X))]))
    direct = ss.DFM(random_state=0).fit(annotated, annotated.obs["gate"])
    through = ss.DFM(random_state=0).fit(ss.as_cells(annotated, label="gate"))
    assert np.array_equal(direct.gram_, through.gram_)


def test_markers_are_matched_by_name():
    frame = pd.DataFrame(X, columns=["CD3", "CD4", "CD19"])
    model = ss.DFM(random_state=0).fit(frame, Y)
    target = pd.DataFrame(T, columns=["CD3", "CD4", "CD19"])[["CD19", "CD3", "CD4"]].assign(time=1.0)
    expected = model.predict(T)["proportion"].values
    np.testing.assert_allclose(model.predict(target)["proportion"].values, expected, atol=1e-7)
    with pytest.raises(ss.DataError, match=r"lacks the marker\(s\) CD19"):
        model.predict(target.drop(columns="CD19"))


def test_cells_of_a_dataset_bring_their_labels_along():
    cells = ss.as_cells(X, sample=np.repeat(["u", "v"], 1_500), label=Y, marker=["p", "q", "r"])
    model = ss.DFM(random_state=0).fit(cells)
    assert model.source_samples_ == ["u", "v"]
    assert model.markers_ == ("p", "q", "r")
    np.testing.assert_allclose(model.gram_, MODEL.gram_, rtol=1e-6)  # rows are added by sample


def test_an_outlier_far_beyond_all_others_is_one_cell_and_no_more():
    t = T.copy()
    t[0] = 3e30
    np.testing.assert_allclose(
        MODEL.predict(t)["proportion"].values[0], MODEL.predict(T)["proportion"].values[0], atol=1e-3
    )


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({}, None, "has no labels"),
        ({}, np.full(len(X), np.nan), "none of the source's 3000 rows has a label"),
        (
            {"features": "furrier"},
            Y,
            "'furrier': expected a feature map, a model's embedding_ or one of fourier, landmarks",
        ),
        ({"bandwidth": "automatic"}, Y, "'automatic': expected 'auto' or a positive number"),
        ({"bandwidth": 0.0}, Y, "positive number"),
        ({"bandwidth": None}, Y, "bandwidth=None: expected 'auto'"),
        ({"bandwidth": np.inf}, Y, "bandwidth=inf: expected 'auto'"),
        ({"features": ss.FourierFeatures(bandwidth="median")}, Y, "bandwidth='median': expected 'auto'"),
        ({"features": ["fourier"]}, Y, "expected a feature map, a model's embedding_ or"),
        ({}, ["a"] + [None] * (len(X) - 1), "needs 2 labelled, finite rows, found 1"),
        ({"criterion": "max", "bandwidth": 1.0}, Y, "'max': expected one of delta_min, lambda_min"),
        ({"features": ss.FourierFeatures(101)}, Y, "n_features=101: expected an even number"),
        ({"features": ss.FourierFeatures(100.0)}, Y, "n_features=100.0: expected an even number"),
        ({"features": ss.FourierFeatures(frequencies=np.ones((0, 3)))}, Y, r"shape \(0, 3\)"),
        (
            {"features": ss.FourierFeatures(frequencies=np.full((2, 3), np.nan))},
            Y,
            "frequencies: out of the range",
        ),
        ({"bandwidth": 1e-300}, Y, "bandwidth=1e-300: out of the range of float32"),
        ({"bandwidth": 1e300}, Y, "bandwidth=1e\\+300: out of the range"),
        ({"random_state": "a"}, Y, "random_state='a': expected None"),
        ({"features": ss.FourierFeatures(kernel="box")}, Y, "kernel='box'"),
        ({"features": ss.FourierFeatures(sampler="dice")}, Y, "sampler='dice'"),
        (
            {"features": ss.FourierFeatures(frequencies=np.ones((3, 2)))},
            Y,
            r"shape \(3, 2\) .*expected numbers, \(n, 3\)",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(settings, y, message):
    with pytest.raises(ss.DataError, match=message):
        ss.DFM(**settings).fit(X, y)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = ss.DFM(random_state=0).fit(X, Y)
    before = model.predict(T)
    with pytest.raises(ss.DataError, match="NaN"):
        model.set_params(random_state=1).fit(with_nan(), TY)
    assert model.set_params(random_state=0).predict(T).equals(before)
    new = ss.DFM()
    with pytest.raises(ss.DataError, match="NaN"):
        new.fit(with_nan(), TY)
    with pytest.raises(NotFittedError):
        new.predict(T)


@pytest.mark.parametrize("features", ["fourier", "landmarks", "gaussian", "energy", "sliced-energy"])
def test_values_that_overflow_are_refused(features):
    with pytest.raises(ss.DataError, match="scale near 1"):
        ss.DFM(features).fit(X.astype(float) * 1e160, Y)


def test_the_exact_kernel_refuses_large_sources():
    n = 50_001
    with pytest.raises(ss.DataError, match="50001: at most 50000; use features='fourier'"):
        ss.DFM("gaussian", bandwidth=1.0).fit(np.zeros((n, 1), "f4"), np.zeros(n, int))


def test_cells_that_do_not_differ_need_a_bandwidth():
    with pytest.raises(ss.DataError, match="pass a number"):
        ss.DFM().fit(np.ones((10, 2)), np.repeat([0, 1], 5))
