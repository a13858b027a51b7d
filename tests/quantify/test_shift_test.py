"""The label-shift test: quiet under label shift, loud under contamination, and said in words."""

import numpy as np
import pytest
from synthetic import make
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify import remarks
from scaleshift.quantify.baseline import Baseline
from scaleshift.quantify.shift_test import shift_test

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(4_000, [0.7, 0.2, 0.1], seed=1)
FAR = np.full((80, 3), 40.0, "f4")


def p_values(features, eps, draws, n=1_500):
    found = []
    for seed in range(draws):
        problem = make(seed, "far" if eps else "none", eps, n=n)
        model = ss.DFM(features, bandwidth=2.5, n_bootstrap=2, random_state=seed)
        found.append(float(model.fit(problem.x, problem.y).predict(problem.target)["p_value"][0]))
    return np.array(found)


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_under_label_shift_p_is_uniform(features):
    """In 60 draws; benchmarks/intervals.py has more."""
    p = p_values(features, 0, 60)
    assert np.mean(p < 0.05) <= 0.15
    assert 0.3 < np.mean(p < 0.5) < 0.75


@pytest.mark.parametrize(("n", "m"), [(75, 1_000), (1_000, 4)])
def test_few_cells_of_source_or_sample_are_no_reason_to_reject(n, m):
    """Fewer rows than folds, in every class of the source or in the sample."""
    p = []
    for seed in range(25):
        model = ss.DFM(ss.FourierFeatures(100), bandwidth=2.0, n_bootstrap=2, random_state=seed)
        model.fit(*draw(n, [0.3, 0.3, 0.4], seed))
        p.append(model.predict(draw(m, [0.6, 0.3, 0.1], 100 + seed)[0])["p_value"].item())
    assert np.mean(np.array(p) < 0.05) < 0.25


def test_one_cell_has_no_noise_to_compare_with():
    result = ss.DFM(bandwidth=2.0, random_state=0).fit(X, Y).predict(T[:1])
    assert np.isnan(result["p_value"].item())
    assert "label shift rejected" not in result["flag"].item()


@pytest.mark.parametrize(("features", "power"), [("fourier", 0.5), ("landmarks", 0.8)])
def test_a_few_far_cells_are_seen(features, power):
    """3 % of 1 500."""
    assert np.mean(p_values(features, 0.03, 20) < 0.05) >= power


def test_a_class_of_few_source_cells_is_no_reason_to_reject():
    """Its mean embedding is far from the truth, by noise that the null must hold too."""
    p = []
    for seed in range(30):
        x, y = draw(600, [0.5, 0.5, 0], seed)
        few, _ = draw(8, [0, 0, 1], 100 + seed)
        model = ss.DFM("landmarks", bandwidth=2.0, n_bootstrap=2, random_state=seed)
        model.fit(np.vstack([x, few]), np.append(y, ["c"] * 8))
        p.append(float(model.predict(draw(600, [0.3, 0.3, 0.4], 200 + seed)[0])["p_value"][0]))
    assert np.mean(np.array(p) < 0.05) <= 0.17


def test_one_cell_is_not_tested():
    """Of its noise nothing is known: without it every single cell would be rejected."""
    result = ss.DFM("landmarks", bandwidth=2.0, random_state=0).fit(X, Y).predict(T[:1])
    assert np.isnan(result["p_value"][0])
    assert "label shift rejected" not in result["flag"].item()


def test_far_cells_go_unseen_without_the_residual_feature():
    """Their kernel with every landmark is 0, the mixture is only scaled down: what r(x) is for."""
    model = ss.DFM("landmarks", bandwidth=2.0, random_state=0).fit(X, Y)
    states = model.embed(np.concatenate([T, FAR]))
    features = model.embedding_.features(states.sums)[0]
    source = model.embedding_.features(model.source_.sums)
    means = model.embedding_.features(model.source_.means)
    p = {}
    for name, used in (("with", slice(None)), ("without", slice(-1))):
        test = shift_test(means[:, used], source[..., used], model.source_.counts, seed=0)
        target = features[:, used].sum(axis=0) / states.counts.sum()
        found = test(target, test.fit([target])[0], features[:, used], states.counts[0])
        p[name] = found["p_value"]
    assert p["with"] < 0.05 < p["without"]


def test_distance_is_the_norm_of_what_no_mixture_explains():
    model = ss.DFM(random_state=0, bandwidth=2.0).fit(X, Y)
    phi = model.embedding_.features(model.source_.means)
    states = model.embed(T)
    own = model.embedding_.features(states.sums[0].sum(axis=0) / len(T))
    hard = ss.DFM(soft=False, random_state=0, bandwidth=2.0).fit(X, Y).predict(T)
    alpha = hard["proportion"].values[0]
    assert float(hard["distance"][0]) == pytest.approx(np.linalg.norm(own - alpha @ phi), abs=1e-8)
    assert float(hard["misfit"][0]) == pytest.approx(float(hard["distance"][0]) / np.linalg.norm(own))


# Flags -------------------------------------------------------------------------------------------------


def test_contamination_is_flagged_and_a_clean_sample_is_not():
    model = ss.DFM("landmarks", random_state=0, bandwidth=2.0).fit(X, Y)
    target = np.concatenate([T, T, np.tile(FAR, (20, 1))])
    result = model.predict(target, sample=["clean"] * len(T) + ["odd"] * (len(T) + 1_600))
    clean, odd = result["flag"].values.tolist()
    assert clean == ""
    assert odd.startswith("label shift rejected: unknown population or shifted sample (misfit ")
    assert "; unknown above baseline: 28." in odd
    assert odd.count("usual up to 5.0 %") == 2


def answers(p_value, misfit=0.5, n=1_000):
    p_value = np.array(p_value, float)
    full = {"misfit": misfit, "n_cells": n, "n_invalid": 0}
    return {"p_value": p_value, **{k: np.full(len(p_value), v, float) for k, v in full.items()}}


def rejected(found):
    return [any(r.startswith("label shift rejected") for r in reasons) for reasons in found]


def test_one_small_p_value_among_many_is_no_discovery():
    unknown = np.zeros((100, 3))
    alone, many = [0.005], [0.005, *np.linspace(0.1, 1, 99)]
    usual = Baseline(0.05, 0.05)
    assert rejected(remarks.sample_reasons(answers(alone), unknown[:1], usual)) == [True]
    assert not any(rejected(remarks.sample_reasons(answers(many), unknown, usual)))


def test_a_misfit_that_source_samples_have_too_is_no_reason():
    usual = Baseline(0.05, 0.3)
    for misfit, expected in ((0.29, False), (0.31, True)):
        found = remarks.sample_reasons(answers([1e-4], misfit), np.zeros((1, 3)), usual)
        assert rejected(found) == [expected]


def test_unknown_is_flagged_where_its_interval_lies_above_the_baseline():
    usual = Baseline(0.10, 0.05)

    def flagged(*unknown):
        found = remarks.sample_reasons(answers([1.0]), np.array([unknown]), usual)[0]
        return any(text.startswith("unknown above baseline") for text in found)

    assert flagged(0.15, 0.12, 0.18)
    assert not flagged(0.15, 0.08, 0.22)
    assert flagged(0.15, np.nan, np.nan)
    assert not flagged(np.nan, np.nan, np.nan)


# What is usual -----------------------------------------------------------------------------------------


def test_source_samples_that_differ_raise_the_baseline():
    names = np.repeat([f"s{i}" for i in range(6)], 500)
    shift = np.random.default_rng(3).normal(size=(6, 3)).repeat(500, axis=0)
    alike = ss.DFM("landmarks", random_state=0, bandwidth=1.5).fit(X, Y, names)
    apart = ss.DFM("landmarks", random_state=0, bandwidth=1.5).fit(X + shift, Y, names)
    assert alike.unknown_baseline_ < 0.05 < apart.unknown_baseline_
    assert alike.misfit_baseline_ < 0.5 * apart.misfit_baseline_


def test_one_source_sample_has_the_default_baseline():
    for sample in (None, np.repeat("s", len(X))):
        model = ss.DFM(random_state=0, bandwidth=2.0).fit(X, Y, sample)
        assert (model.unknown_baseline_, model.misfit_baseline_) == (0.05, 0.05)
    assert float(model.predict(T)["unknown_baseline"]) == 0.05
    hard = ss.DFM(soft=False, bandwidth=2.0).fit(X, Y).predict(T)
    assert np.isnan(hard["unknown_baseline"])


def test_a_class_that_one_sample_alone_has_is_not_its_unknown():
    names = np.where(Y == "c", "only", np.repeat(["s1", "s2"], 1_500))
    model = ss.DFM("landmarks", random_state=0, bandwidth=2.0).fit(X, Y, names)
    assert model.unknown_baseline_ < 0.05


# Classes that cannot be told apart ---------------------------------------------------------------------


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_of_two_coincident_classes_the_sum_is_right_and_it_is_said(features):
    rng = np.random.default_rng(5)
    split = np.where((Y == "a") & (rng.random(len(Y)) < 0.5), "a2", Y)
    model = ss.DFM(features, random_state=0, bandwidth=2.0).fit(X, split)
    assert model.confounded_ == [["a", "a2"]]
    result = model.predict(T)
    truth = np.array([(label == TY).mean() for label in "abc"])
    found = result["proportion"].values[0]
    np.testing.assert_allclose([found[0] + found[1], *found[2:]], truth, atol=0.02)
    flag = result["flag"].item()
    assert flag.startswith("not identifiable: a + a2 = ")
    assert flag.endswith("how it is divided is not known")
    low, high = (float(end) / 100 for end in flag.split("(")[1].split(")")[0].split(" to "))
    assert low < truth[0] < high
    assert high - low < 0.06


def test_a_class_like_nothing_is_confounded_with_the_unknown():
    """Cells so scattered that their mean embedding vanishes."""
    scattered = np.random.default_rng(0).uniform(-1e4, 1e4, (300, 3))
    model = ss.DFM("landmarks", random_state=0, bandwidth=2.0)
    model.fit(np.vstack([X, scattered]), np.append(Y, ["d"] * 300))
    assert model.confounded_ == [["d", "unknown"]]
    target = np.vstack([T, np.random.default_rng(1).uniform(-1e4, 1e4, (1_000, 3))])
    result = model.predict(target)
    both = float(result["unknown"][0] + result["proportion"].sel(label="d")[0])
    assert 0.15 < both < 0.25
    assert f"not identifiable: d + unknown = {100 * both:.1f} % (" in result["flag"].item()
    assert "not identifiable" not in model.set_params(soft=False).predict(target)["flag"].item()
    assert ss.DFM(soft=False, random_state=0, bandwidth=2.0).fit(X, Y).confounded_ == []


def test_a_class_that_is_called_unknown_is_not_taken_for_the_unknown_cells():
    scattered = np.random.default_rng(0).uniform(-1e4, 1e4, (300, 3))
    y = np.where(Y == "a", "unknown", Y)
    model = ss.DFM("landmarks", random_state=0, bandwidth=2.0)
    model.fit(np.vstack([X, scattered]), np.append(y, ["d"] * 300))
    assert model.confounded_ == [["d", "unknown cells"]]
    result = model.predict(T)
    both = float(result["unknown"][0] + result["proportion"].sel(label="d")[0])
    assert both < 0.05 < result["proportion"].sel(label="unknown").item()
    assert f"d + unknown cells = {100 * both:.1f} %" in result["flag"].item()


def test_classes_that_are_clear_are_not_confounded():
    assert ss.DFM(random_state=0).fit(X, Y).confounded_ == []


def test_small_classes_are_named():
    y = Y.copy().astype("U3")
    y[:12] = "few"
    flags = ss.DFM(random_state=0, bandwidth=2.0).fit(X, y).predict(T)["flag"].item()
    assert "few source cells: few (12)" in flags
