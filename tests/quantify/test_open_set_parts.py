"""The parts of the default procedure: estimators, landmarks, strata, prototypes, and finished draws."""

import dask.array as da
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from three_classes import draw

from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.states import Finish
from scaleshift.quantify.open_set import estimators
from scaleshift.quantify.open_set.alignment import class_shifts, recentring
from scaleshift.quantify.open_set.estimators import Seen, rates
from scaleshift.quantify.open_set.landmarks import Landmarks, spread
from scaleshift.quantify.open_set.passing import learn_source
from scaleshift.quantify.open_set.profile import Profile, quantile
from scaleshift.quantify.open_set.strata import allocation, strata
from scaleshift.quantify.prototypes import learn_prototypes

PREDICTED = np.array([[[80.0, 20, 0], [10, 85, 5], [0, 10, 90]]])
CLEAR = PREDICTED * np.array([0.95, 0.9, 0.97])[:, None]
SHARES = np.array([0.5, 0.2, 0.1])  # and .2 unknown


# Estimators --------------------------------------------------------------------------------------------


def gaussians(n, shares, seed):
    """Cells of three overlapping classes on a line, and their posteriors under equal shares."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    x = 2 * y + rng.standard_normal(n)
    density = np.exp(-((x[:, None] - 2 * np.arange(3)) ** 2) / 2)
    return y, density / density.sum(axis=1, keepdims=True)


def test_least_squares_recovers_a_mixture_of_the_sources_rates():
    source = rates(PREDICTED, CLEAR)
    clear = SHARES @ source.clear[0]
    posteriors = np.eye(3)
    seen = Seen(clear[None], clear[None], posteriors)
    found, _ = estimators.opened(seen, source)
    np.testing.assert_allclose(found[1, 0], SHARES, atol=1e-9)
    whole = SHARES / SHARES.sum() @ source.predicted[0]
    found, _ = estimators.closed(Seen(whole[None], whole[None], posteriors), source)
    np.testing.assert_allclose(found[1, 0], SHARES / SHARES.sum(), atol=1e-9)


def test_the_source_itself_gives_its_own_shares_back():
    n = PREDICTED[0].sum(axis=1)
    source = rates(PREDICTED * 3, CLEAR * 3)
    clear = n / n.sum() @ source.clear[0]
    found, _ = estimators.opened(Seen(clear[None], clear[None], np.eye(3)), source)
    for estimate in (found[0, 0], found[1, 0]):
        assert estimate.sum() == pytest.approx(1, abs=0.01)


def test_the_median_lies_among_the_three_and_has_the_middle_total():
    rng = np.random.default_rng(0)
    source = rates(PREDICTED, CLEAR)
    seen = Seen(0.3 * rng.dirichlet(np.ones(3), 20), 0.3 * rng.dirichlet(np.ones(3), 20), np.eye(3))
    found, _ = estimators.opened(seen, source)
    totals = found.sum(axis=2)
    np.testing.assert_allclose(totals[3], np.median(totals[:3], axis=0))
    assert (found >= 0).all()
    assert (totals <= 1 + 1e-9).all()


def test_replicates_are_solved_as_they_are_alone():
    rng = np.random.default_rng(1)
    source = rates(np.repeat(PREDICTED, 4, 0), np.repeat(CLEAR, 4, 0))
    predicted = 0.8 * rng.dirichlet(np.ones(3), 4)
    _, posteriors = gaussians(50, [1 / 3] * 3, 2)
    kinds = 0.8 * rng.dirichlet(np.ones(50), 4)
    found, steps = estimators.opened(Seen(predicted, kinds, posteriors), source)
    one = Seen(predicted[2:3], kinds[2:3], posteriors)
    alone, _ = estimators.opened(one, source.replicates(slice(1)), steps)
    np.testing.assert_allclose(found[:, 2], alone[:, 0], atol=1e-12)


def test_a_class_without_cells_in_a_half_has_the_rates_of_all():
    halves = np.concatenate([PREDICTED, PREDICTED])
    halves[1, 2] = 0
    found = rates(halves, halves * 0.9)
    np.testing.assert_allclose(found.predicted[1, 2], found.predicted[0, 2])
    np.testing.assert_allclose(found.flagged, 0.1)


def test_prototypes_stand_for_all_cells():
    """Within .01 of EM on every cell, also where the shares differ much from those learned from."""
    code, learned_from = gaussians(6_000, [1 / 3] * 3, 0)
    prototypes = learn_prototypes(learned_from, code, seed=0)
    assert len(prototypes) == 256
    y, posterior = gaussians(5_000, [0.8, 0.15, 0.05], 1)
    kind = prototypes.nearest(posterior)
    n = np.bincount(kind, minlength=256)
    sums = np.array([np.bincount(kind, column, 256) for column in posterior.T]).T
    start = np.full((1, 3), 1 / 3)
    few = Seen(np.zeros((1, 3)), n[None] / 5_000, sums / np.maximum(n, 1)[:, None])
    every = Seen(np.zeros((1, 3)), np.full((1, 5_000), 1 / 5_000), posterior)
    found, _ = estimators.expectation_maximisation(few, start, 100)
    expected, _ = estimators.expectation_maximisation(every, start, 100)
    np.testing.assert_allclose(found, expected, atol=0.01)
    np.testing.assert_allclose(found[0], np.bincount(y) / 5_000, atol=0.03)


def test_em_leaves_what_no_cell_tells_as_in_the_source():
    posteriors = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])  # the first two classes look alike
    seen = Seen(np.zeros((1, 3)), np.array([[0.9, 0.1]]), posteriors)
    found, _ = estimators.expectation_maximisation(seen, np.array([[0.2, 0.1, 0.7]]), None)
    np.testing.assert_allclose(found[0], [0.6, 0.3, 0.1], atol=1e-9)


# Novelty and alignment ---------------------------------------------------------------------------------


def test_novelty_is_the_distance_to_the_nearest_landmark_in_its_spread():
    rng = np.random.default_rng(0)
    z, place, scale = rng.normal(size=(40, 3)), rng.normal(size=(7, 3)), rng.uniform(0.5, 2, (7, 3))
    landmarks = Landmarks(place, scale, np.zeros(7, int), np.arange(7), by_sample=False)
    distance = np.sqrt((((z[:, None] - place) / scale) ** 2).sum(axis=2).min(axis=1) / 3)
    np.testing.assert_allclose(landmarks.novelty(z), distance, atol=1e-9)


def test_no_landmark_is_near_itself():
    place = np.arange(6.0)[:, None]
    part = np.array([0, 0, 0, 1, 1, 1])
    landmarks = Landmarks(place, np.ones((6, 1)), part, np.arange(10, 16), by_sample=False)
    z = np.r_[place, [[0.0]]]
    found = landmarks.held_out(z, np.r_[part, 0], np.r_[np.arange(10, 16), 99])
    np.testing.assert_allclose(found, [3, 2, 1, 1, 2, 3, 0])
    by_sample = Landmarks(place, np.ones((6, 1)), part, np.arange(10, 16), by_sample=True)
    np.testing.assert_allclose(by_sample.held_out(z, np.r_[part, 0], np.arange(7)), [3, 2, 1, 1, 2, 3, 3])
    np.testing.assert_allclose(by_sample.novelty(z), [1.5, 1, 0.5, 0.5, 1, 1.5, 1.5])


def test_spread_has_a_floor():
    z = np.r_[np.zeros((50, 1)), np.random.default_rng(0).normal(size=(50, 1))]
    found = spread(z, np.repeat([0, 1], 50), np.ones(100), 3)
    pooled = z[50:].std() / np.sqrt(2)
    np.testing.assert_allclose(found[:, 0], [0.3 * pooled, z[50:].std(), 0.3 * pooled])


def usual(unknown=-1):
    medians = np.array([[0.0, 0.0], [5.0, 5.0], [np.nan, np.nan]])
    return Profile(medians, np.array([2.0, 2.0, 2.0]), np.ones((3, 2)), unknown)


def test_class_shifts_follow_near_cells_only_and_are_clipped():
    z = np.r_[np.tile([[0.5, 9.0]], (50, 1)), np.tile([[40.0, 0.0]], (49, 1))]
    novelty = np.repeat([1.0, 99.0], [50, 49])
    shift = class_shifts(z, np.zeros(99, int), novelty, usual())
    np.testing.assert_allclose(shift[0], [0.25, 0.775])  # 50 cells: half; 9 is clipped to 1.55
    np.testing.assert_array_equal(shift[1:], 0)
    np.testing.assert_array_equal(class_shifts(z, np.zeros(99, int), novelty, usual(unknown=0)), 0)


def test_recentring_follows_most_cells():
    z = np.r_[np.full((900, 2), 0.4), np.full((100, 2), 3.0)]
    found = recentring(z, np.repeat([0, 1], [900, 100]), usual())
    np.testing.assert_allclose(found, [0.4, 0.4])


def test_quantiles_by_weight_are_those_of_repeated_values():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=30), rng.integers(1, 5, 30)
    repeated = np.repeat(values, weight)
    assert quantile(values, weight.astype(float), 0.5) == pytest.approx(np.median(repeated))
    expected = np.quantile(repeated, 0.95, method="averaged_inverted_cdf")
    assert quantile(values, weight.astype(float), 0.95) == pytest.approx(expected)


# Strata and draws --------------------------------------------------------------------------------------


def test_parts_are_samples_where_each_leaves_enough_of_every_class():
    x, y = draw(300, [1 / 3] * 3, seed=0)
    sample = np.repeat(["S1", "S2", "S3"], 100)
    found, counts = strata(as_rows(x, y, sample), "auto", seed=0)
    assert found.by_sample
    assert found.n_parts == 3
    assert counts.sum() == 300
    one, _ = strata(as_rows(x, y), "auto", seed=0)
    assert not one.by_sample
    assert one.n_parts == 5
    y[200:] = "c"
    y[:200] = np.where(y[:200] == "c", "a", y[:200])
    alone, _ = strata(as_rows(x, y, sample), "auto", seed=0)  # without S3 there is no c
    assert not alone.by_sample


def test_allocation_fills_up_to_the_total():
    counts = np.random.default_rng(0).integers(0, 1_000, 50)
    for total in (100, 5_000, 10**6):
        found = allocation(counts, total)
        assert found.sum() <= total
        assert (found <= counts).all()
        assert len(set(found[found < counts])) <= 1
        if total > counts.sum():
            np.testing.assert_array_equal(found, counts)


def _digest(drawn):
    return {"sum": drawn["x"].sum(axis=0), "n": len(drawn["x"])}


@pytest.mark.parametrize("contiguous", [True, False])
def test_draws_are_finished_by_stratum_in_any_chunking(contiguous):
    x = np.random.default_rng(0).normal(size=(5_000, 2))
    x[7] = np.nan
    names = np.repeat(list("abcde"), 1_000)
    if not contiguous:
        names = np.random.default_rng(1).permutation(names)
    plain = as_rows(x, None, names, invalid="drop").only("sample")
    drawn = passes.sample(plain, 300, by="sample", seed=3)
    expected = np.array([drawn["x"][drawn["code"] == code].sum(axis=0) for code in range(5)])
    for chunk in (5_000, 777, 100):
        rows = as_rows(da.from_array(x, chunks=(chunk, 2)), None, names, invalid="drop")
        finish = Finish(_digest, {"sum": (2,), "n": ()}, passes.counts(rows, "sample"))
        found = passes.sample(rows.only("sample"), 300, by="sample", seed=3, finish=finish)
        np.testing.assert_array_equal(found["key"], np.arange(5))
        np.testing.assert_array_equal(found["n"], 300)
        np.testing.assert_array_equal(found["sum"], expected)


def _parity(block):
    return np.arange(block.start, block.start + len(block.x)) % 2


def test_strata_can_be_made_of_a_block():
    rows = as_rows(da.from_array(np.arange(100.0)[:, None], chunks=(30, 1)))
    drawn = passes.sample(rows, np.array([3, 4]), by=_parity)
    np.testing.assert_array_equal(drawn["code"], [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(drawn["x"][:, 0] % 2, drawn["code"])


# What is learned ---------------------------------------------------------------------------------------


def test_the_classifiers_answer_together_as_their_mean():
    x, y = draw(3_000, [1 / 3] * 3, seed=0)
    learned, _ = learn_source(as_rows(x, y), "auto", None, 16, seed=0)
    z = learned.scorer.standardised(draw(500, [1 / 3] * 3, seed=1)[0])
    assert len(learned.scorer.models) == 5
    assert len(learned.scorer.together) == 1
    mean = np.mean([model.log_posterior(z) for model in learned.scorer.models], axis=0)
    expected = mean - mean.max(axis=1, keepdims=True)
    found = learned.scorer.logits(z)
    likely = expected > -100
    np.testing.assert_allclose(
        (found - found.max(axis=1, keepdims=True))[likely], expected[likely], atol=1e-7
    )


def test_no_row_is_judged_by_what_has_learned_it():
    """A classifier that remembers its rows predicts them all: held out it errs."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 2)), rng.choice(["a", "b"], 400)
    _, scored = learn_source(as_rows(x, y), "auto", KNeighborsClassifier(1), 16, seed=0)
    assert 0.4 < np.mean(scored.predicted == scored.code) < 0.6
