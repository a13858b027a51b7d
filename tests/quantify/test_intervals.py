"""Intervals that cover, from random halves of folds, and that depend on nothing they should not."""

import dask.array as da
import numpy as np
import pytest
from synthetic import make
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.resampling import deviations, halves

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(4_000, [0.7, 0.2, 0.1], seed=1)
SAMPLES = np.repeat([f"s{i}" for i in range(6)], 500)


def fitted(x=X, y=Y, sample=None, **settings):
    return ss.DFM(**{"bandwidth": 2.0, "random_state": 0, **settings}).fit(x, y, sample)


def ends(result):
    return np.stack([result["proportion_low"].values, result["proportion_high"].values])


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_intervals_cover_the_proportions_that_cells_were_drawn_with(features):
    """Of 30 problems with 5 proportions each; benchmarks/intervals.py has more."""
    covered = []
    for seed in range(30):
        problem = make(seed, n=2_000)
        model = ss.DFM(features, bandwidth=2.5, random_state=seed).fit(problem.x, problem.y)
        low, high = ends(model.predict(problem.target))[:, 0]
        covered.append((low <= problem.alpha) & (problem.alpha <= high))
    assert 0.89 <= np.mean(covered) <= 0.99


def test_an_interval_holds_its_estimate_and_is_a_share():
    result = fitted().predict(T)
    low, high = ends(result)
    assert ((low >= 0) & (high <= 1) & (low < high)).all()
    assert (low <= result["proportion"]).all()
    assert (result["proportion"] <= high).all()
    assert float(result["unknown_low"][0]) <= float(result["unknown"][0]) <= float(result["unknown_high"][0])


def test_a_higher_level_is_a_wider_interval():
    widths = [np.diff(ends(fitted(level=level).predict(T)), axis=0).sum() for level in (0.5, 0.95, 0.99)]
    assert widths[0] < widths[1] < widths[2]


def test_width_is_that_of_repeated_draws():
    """Standard deviation of estimates over fresh targets and sources, against the intervals' own."""
    found, half = [], []
    for seed in range(40):
        model = fitted(*draw(1_000, [0.3, 0.3, 0.4], seed=100 + seed), features="landmarks")
        result = model.predict(draw(1_500, [0.5, 0.3, 0.2], seed=200 + seed)[0])
        found.append(result["proportion"].values[0])
        half.append(np.diff(ends(result)[:, 0], axis=0)[0] / 2 / 2.02)
    ratio = np.mean(half, axis=0) / np.std(found, axis=0, ddof=1)
    assert ((ratio > 0.75) & (ratio < 1.35)).all()


def test_no_bootstrap_makes_no_folds_and_the_same_estimate():
    without, with_folds = fitted(n_bootstrap=0), fitted()
    assert without.source_.counts.shape == (3, 1)
    a, b = without.predict(T), with_folds.predict(T)
    np.testing.assert_allclose(a["proportion"], b["proportion"], atol=1e-7)
    np.testing.assert_allclose(a["distance"], b["distance"], atol=1e-6)
    assert np.isnan(ends(a)).all()
    asked_later = with_folds.set_params(n_bootstrap=0).predict(T)
    for name in ("proportion_low", "unknown_low", "unknown_high", "p_value"):
        assert np.isnan(a[name]).all()
        assert np.isnan(asked_later[name]).all()
    assert a.attrs["resampled"] == asked_later.attrs["resampled"] == "none"


def test_the_exact_kernel_has_no_intervals():
    result = fitted(features="gaussian").predict(T)
    assert np.isfinite(result["proportion"]).all()
    assert np.isnan(ends(result)).all()


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
def test_chunks_move_no_interval(features):
    whole = fitted(features=features).predict(T)
    cut = fitted(da.from_array(X, chunks=(137, -1)), da.from_array(Y, chunks=999), features=features)
    np.testing.assert_allclose(ends(cut.predict(da.from_array(T, chunks=(411, -1)))), ends(whole), atol=1e-6)


def test_many_samples_have_the_intervals_that_each_has_alone():
    """To the noise of the folds, which are drawn by sample; the estimates are the same."""
    names = np.repeat(["s2", "s10"], len(T) // 2)
    together = fitted().predict(T, sample=names)
    alone = fitted().predict(T[names == "s10"])
    a, b = ends(together.sel(sample="s10")), ends(alone)[:, 0]
    np.testing.assert_allclose(np.diff(a, axis=0), np.diff(b, axis=0), rtol=0.6)


# Drawing samples of the source -------------------------------------------------------------------------


def donors(shift):
    """The source in six samples whose cells lie `shift` apart from each other."""
    moved = X.copy()
    moved += shift * np.random.default_rng(3).normal(size=(6, 3)).repeat(500, axis=0)
    return moved


def test_samples_are_drawn_where_there_are_five_and_cells_else():
    six = fitted(sample=SAMPLES)
    assert six.predict(T).attrs["resampled"] == "samples"
    assert fitted(sample=np.repeat(list("uvwx"), 750)).predict(T).attrs["resampled"] == "cells"
    assert fitted(sample=SAMPLES, resample="cells").predict(T).attrs["resampled"] == "cells"
    with pytest.raises(ss.DataError, match="needs a source of several samples with labels, this one has 1"):
        fitted(resample="samples")


def test_samples_without_labelled_cells_are_no_source_samples():
    some = fitted(y=np.where(np.isin(SAMPLES, ["s1", "s4"]), Y, None), sample=SAMPLES)
    assert some.source_samples_ == ["s1", "s4"]
    assert some.predict(T).attrs["resampled"] == "cells"
    one = fitted(y=np.where(SAMPLES == "s1", Y, None), sample=SAMPLES)
    alone = fitted(X[SAMPLES == "s1"], Y[SAMPLES == "s1"], SAMPLES[SAMPLES == "s1"])
    assert one.source_samples_ == alone.source_samples_ == ["s1"]
    assert one.source_.part_counts.shape == alone.source_.part_counts.shape == (3, 0)


def test_samples_without_labels_are_not_drawn():
    """A study of which one sample is gated, given as a whole."""
    gated = SAMPLES == "s0"
    model = fitted(y=np.where(gated, Y, None), sample=SAMPLES)
    result = model.predict(T)
    assert result.attrs["resampled"] == "cells"
    alone = fitted(X[gated], Y[gated]).predict(T)
    np.testing.assert_allclose(np.diff(ends(result), axis=0), np.diff(ends(alone), axis=0), rtol=0.3)
    with pytest.raises(ss.DataError, match="several samples with labels, this one has 1"):
        model.set_params(resample="samples").predict(T)
    five = fitted(y=np.where(gated, None, Y), sample=SAMPLES).predict(T)
    rest = fitted(X[~gated], Y[~gated], SAMPLES[~gated]).predict(T)
    assert five.attrs["resampled"] == rest.attrs["resampled"] == "samples"
    np.testing.assert_allclose(np.diff(ends(five), axis=0), np.diff(ends(rest), axis=0), rtol=0.5)


def test_samples_that_differ_make_wider_intervals_than_their_cells():
    x = donors(0.7)
    width = {
        resample: np.diff(ends(fitted(x, sample=SAMPLES, resample=resample).predict(T)), axis=0).mean()
        for resample in ("cells", "samples")
    }
    assert width["samples"] > 1.5 * width["cells"]


def test_a_class_of_one_sample_varies_by_its_cells():
    """Drawing samples would never vary it."""
    names = np.where(Y == "c", "s0", SAMPLES)
    by_samples, by_cells = (
        np.diff(ends(fitted(sample=names, resample=resample).predict(T)), axis=0)[0, 0, 2]
        for resample in ("samples", "cells")
    )
    assert by_samples > 0.6 * by_cells
    model = fitted(sample=names)
    sums, counts = model.source_.by_sample()
    np.testing.assert_allclose(counts.sum(axis=1), model.class_counts_)
    np.testing.assert_allclose(sums.sum(axis=1), model.source_.sums.sum(axis=1))


def test_more_samples_than_folds_are_put_together():
    model = fitted(sample=np.arange(3_000) // 30)
    assert model.source_.part_counts.shape == (3, 40)
    assert model.source_.part_counts.sum() == 3_000
    assert len(model.source_samples_) == 100


# Too few of something ----------------------------------------------------------------------------------


def test_a_class_smaller_than_the_folds_is_never_drawn_away():
    x, y = np.vstack([X, [[20.0, 20, 20], [20.5, 20, 20], [20, 20.5, 20]]]), np.append(Y, ["d"] * 3)
    model = fitted(x, y)
    assert model.class_counts_.tolist()[-1] == 3
    target = np.vstack([T, np.full((400, 3), 20.0)])
    low, high = ends(fitted(x, y).predict(target))[:, 0, -1]
    assert 0.05 < low < 400 / 4_400 < high < 0.13  # t with 2 degrees of freedom; drawn away, it would reach 0


def test_intervals_know_how_few_cells_a_class_was_learned_from():
    """Of 40 sources with 12 cells of the last class each."""
    covered = []
    for seed in range(40):
        (x, y), (t, _) = draw(1_000, [0.5, 0.5, 0], seed), draw(1_500, [0.4, 0.3, 0.3], 100 + seed)
        x, y = np.vstack([x, draw(12, [0, 0, 1], 200 + seed)[0]]), np.append(y, ["c"] * 12)
        low, high = ends(fitted(x, y, features="landmarks").predict(t))[:, 0, -1]
        covered.append(low <= 0.3 <= high)
    assert np.mean(covered) >= 0.85


@pytest.mark.parametrize("n_folds", [2, 3, 5, 8, 40])
def test_means_of_random_halves_vary_as_means_of_new_draws(n_folds):
    """Their variance is that of the folds over the number of folds, odd or even."""
    values = np.random.default_rng(0).normal(size=n_folds)
    weights = halves(20_000, n_folds, 0, "test")
    np.testing.assert_allclose(weights.sum(axis=1), n_folds)
    found = np.mean((weights @ values / n_folds - values.mean()) ** 2)
    assert found == pytest.approx(values.var(ddof=1) / n_folds, rel=0.03)


def test_few_source_cells_make_wide_intervals():
    """Fewer in each class than folds; nothing but the source varies."""
    found, half = [], []
    for seed in range(40):
        model = fitted(*draw(75, [0.3, 0.3, 0.4], seed=100 + seed), features=ss.FourierFeatures(100))
        result = model.predict(T)
        found.append(result["proportion"].values[0])
        half.append(np.diff(ends(result)[:, 0], axis=0)[0] / 2 / 2.02)
    ratio = np.mean(half, axis=0) / np.std(found, axis=0, ddof=1)
    assert ((ratio > 0.6) & (ratio < 1.5)).all()


@pytest.mark.parametrize(("n", "used"), [(3, 3), (40, 2), (40, 40), (5, 5), (40, 1)])
def test_deviations_add_up_to_fresh_draws_of_the_folds_that_hold_rows(n, used):
    """The variance of a mean of `used` rows, s^2 / used."""
    x, counts = np.zeros((n, 1)), (np.arange(n) < used).astype(float)
    x[:used, 0] = np.random.default_rng(0).standard_normal(used)
    variance = np.var((halves(20_000, n, 0, "any") - 1) @ deviations(x, counts))
    expected = x[:used].var(ddof=1) / used if used > 1 else 0
    np.testing.assert_allclose(variance, expected, rtol=0.05)


def test_a_sample_of_one_cell_has_an_estimate_without_interval():
    result = fitted().predict(np.vstack([T, T[:1]]), sample=["big"] * len(T) + ["one"])
    assert np.isfinite(result["proportion"]).all()
    assert np.isnan(ends(result.sel(sample="one"))).all()
    assert result["flag"].sel(sample="one").item().startswith("few cells: 1")


@pytest.mark.parametrize("n", [2, 7, 39])
def test_a_sample_of_a_few_cells_has_a_wide_interval(n):
    low, high = ends(fitted().predict(T[:n]))[:, 0]
    assert (high - low).max() > 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bootstrap": -1}, "n_bootstrap=-1: expected 0, or a number of replicates from 2"),
        ({"n_bootstrap": 1}, "n_bootstrap=1"),
        ({"n_bootstrap": 20.0}, "n_bootstrap=20.0"),
        ({"level": 95}, "level=95: expected a number between 0 and 1"),
        ({"resample": "rows"}, "resample='rows': expected None, 'cells' or 'samples'"),
    ],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(ss.DataError, match=message):
        fitted(**settings)


@pytest.mark.parametrize("settings", [{"n_bootstrap": 1}, {"level": 95}, {"resample": "rows"}])
def test_settings_without_meaning_are_refused_by_a_fitted_model_too(settings):
    with pytest.raises(ss.DataError, match=next(iter(settings))):
        fitted().set_params(**settings).predict(T)


def test_a_state_that_no_worker_can_hold_is_refused_with_a_way_out():
    with pytest.raises(ss.DataError, match=r"2500 classes with 4000 features each .* n_bootstrap=0"):
        fitted(X[:2_500], np.arange(2_500), features=ss.FourierFeatures(4_000))
    model = fitted()
    with pytest.raises(ss.DataError, match=r"7000 samples in one block .* fewer samples at a time, or fit"):
        model.predict(np.resize(T, (7_000, 3)), sample=np.arange(7_000))
