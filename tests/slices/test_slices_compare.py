"""Which slice grew, and what that costs, is what it was made to be."""

import numpy as np
import pytest
from described import BallSlicer, corner, domino
from scipy import stats

import scaleshift as ss
from scaleshift.errors import DataError


@pytest.fixture(scope="module")
def slicer():
    return domino(n_slices=2).fit(corner()[0])


def test_a_slice_that_grew_is_told_with_its_cost(slicer):
    source, target = slicer.describe(corner(seed=1)[0]), slicer.describe(corner(seed=2, share=0.3)[0])
    found = ss.slices.compare(source, target)
    assert float(found["growth_low"][0]) < 0.2 < float(found["growth_high"][0])
    assert float(found["growth_ratio"][0]) == pytest.approx(3.0, rel=0.15)
    assert float(found["q_value"][0]) < 1e-6
    # The target has .2 more of rows that are wrong .495 more often than all of the source.
    assert float(found["cost_of_growth"][0]) == pytest.approx(0.2 * (0.6 - 0.105), abs=0.02)
    assert found["words"].values[0].startswith("grew from ")
    assert " points of error" in found["words"].values[0]


def test_costs_are_their_formulas_and_add_up(slicer):
    source = slicer.describe(corner(seed=1)[0])
    target = slicer.describe(corner(seed=2, share=0.3, rate=0.9)[0])
    found = ss.slices.compare(source, target)
    s, t = source["share"].values, target["share"].values
    before, after = source["error_rate"].values, target["error_rate"].values
    overall = float(source["overall_error_rate"])
    np.testing.assert_allclose(found["cost_of_growth"], (t - s) * (before - overall))
    np.testing.assert_allclose(found["cost_of_change"], t * (after - before))
    assert float(found["total_cost_of_growth"]) == pytest.approx(found["cost_of_growth"].values.sum())
    # With the rows of no slice as one more slice, growth and change are all of the overall change.
    rest_s, rest_t = 1 - s.sum(), 1 - t.sum()
    rest_before = (overall - (s * before).sum()) / rest_s
    rest_after = (float(target["overall_error_rate"]) - (t * after).sum()) / rest_t
    rest = (rest_t - rest_s) * (rest_before - overall) + rest_t * (rest_after - rest_before)
    total = float(found["total_cost_of_growth"] + found["total_cost_of_change"]) + rest
    assert total == pytest.approx(float(target["overall_error_rate"]) - overall)


def test_a_target_without_labels_has_growth_but_no_change(slicer):
    data, _ = corner(seed=2, share=0.3)
    labelled = slicer.describe(data)
    del data["target"]
    source = slicer.describe(corner(seed=1)[0])
    found, other = (ss.slices.compare(source, target) for target in (slicer.describe(data), labelled))
    np.testing.assert_array_equal(found["growth"], other["growth"])
    np.testing.assert_array_equal(found["cost_of_growth"], other["cost_of_growth"])
    assert np.isnan(found["error_target"]).all()
    assert np.isnan(found["cost_of_change"]).all()
    assert np.isnan(found["total_cost_of_change"])
    assert np.isfinite(other["total_cost_of_change"])


def test_the_source_of_the_fit_is_counted_on_held_out_rows(slicer):
    source = slicer.describe()
    found = ss.slices.compare(source, slicer.describe(corner(seed=1)[0]))
    np.testing.assert_array_equal(found["share_source"], source["judging_share"])
    np.testing.assert_array_equal(source["judging_share"], source["share"])
    assert (source["judging_share"] * int(source["n_rows"]) != source["size"]).all()
    assert (found["growth_low"] < 0).all()
    assert (found["growth_high"] > 0).all()
    assert (found["q_value"] > 0.01).all()
    assert found["words"].values[0].startswith("no clear change: from ")


def test_growth_is_tested_exactly(slicer):
    source, target = slicer.describe(corner(n=300, seed=1)[0]), slicer.describe(corner(n=200, seed=2)[0])
    found = ss.slices.compare(source, target)
    for k in range(2):
        a, b = int(source["size"][k]), int(target["size"][k])
        tails = [
            stats.fisher_exact([[b, 200 - b], [a, 300 - a]], side).pvalue for side in ("less", "greater")
        ]
        assert float(found["p_value"][k]) == pytest.approx(min(1, 2 * min(tails)))


def test_growth_without_a_cause_is_not_found():
    slicer = domino(n_slices=2).fit(corner(n=1_000)[0])
    false = 0
    for seed in range(40):
        source, target = (slicer.describe(corner(n=1_000, seed=2 * seed + i + 10)[0]) for i in (0, 1))
        false += bool((ss.slices.compare(source, target)["q_value"] <= 0.05).any())
    assert false <= stats.binom.ppf(0.999, 40, 0.05)


def test_losses_are_compared_where_there_are_no_errors():
    def draw(seed, share):
        data, there = corner(seed=seed, share=share)
        return {"embedding": data["embedding"], "loss": np.where(there, 5.0, 1.0)}

    slicer = domino(n_slices=1).fit(draw(0, 0.1), losses="loss")
    source, target = (slicer.describe(draw(s, share), losses="loss") for s, share in ((1, 0.1), (2, 0.3)))
    found = ss.slices.compare(source, target)
    assert found.attrs["measure"] == "mean loss"
    assert float(found["cost_of_growth"][0]) == pytest.approx(0.2 * (5 - 1.4), abs=0.15)
    assert "of loss" in found["words"].values[0]


def test_a_slice_that_the_target_lacks_costs_it_nothing():
    data, there = corner()
    balls = BallSlicer([[5.0, 5.0, 0.0, 0.0]], [3.0]).fit(data)
    none = {name: values[~there] for name, values in data.items()}
    none["embedding"] = np.clip(none["embedding"], -2, 2)
    found = ss.slices.compare(balls.describe(), balls.describe(none))
    assert float(found["share_target"][0]) == 0.0
    assert float(found["cost_of_change"][0]) == 0.0
    assert float(found["cost_of_growth"][0]) < 0
    assert "saves" in found["words"].values[0]
    assert found["flag"].values[0] == "no rows in the target"


def test_slices_of_different_fits_are_refused(slicer):
    other = domino(n_slices=2, random_state=5).fit(corner(seed=3)[0])
    with pytest.raises(
        DataError, match=r"slices of different fits: source by the fit .* of Domino and target"
    ):
        ss.slices.compare(slicer.describe(), other.describe())
    with pytest.raises(DataError, match="target is no description of slices"):
        ss.slices.compare(slicer.describe(), slicer)
    with pytest.raises(DataError, match="level=1"):
        ss.slices.compare(slicer.describe(), slicer.describe(), level=1)


def test_a_saved_slicer_is_the_same_fit(slicer, tmp_path):
    slicer.save(tmp_path / "slicer")
    again = ss.load(tmp_path / "slicer")
    assert np.isfinite(ss.slices.compare(slicer.describe(), again.describe())["growth"]).all()
