"""Which intervals are too wide to be of use, and what a result knows of its samples."""

import numpy as np
import pytest
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify.flags import codes
from scaleshift.quantify.remarks import label_reasons


def shares(*of_sample):
    """One sample: (share, low, high) of each name and set."""
    return np.array([of_sample], float)


def test_an_interval_over_half_of_the_scale_is_a_reason():
    found = label_reasons(
        ["B", "T", "unknown"], [], shares((0.3, 0, 1), (0.5, 0.3, 0.7), (0.2, 0, 0.6)), [100]
    )
    assert found == [["wide interval: B 30.0 % (0.0 to 100.0), unknown 20.0 % (0.0 to 60.0)"]]
    assert codes(found[0][0]) == ["W"]


def test_labels_of_a_set_that_looks_alike_and_few_cells_have_their_own_reason():
    alike = shares((0.3, 0, 1), (0.5, 0, 1), (0.2, 0.1, 0.3), (0.8, 0.7, 0.9))
    (found,) = label_reasons(["B", "T", "unknown"], [["B", "T"]], alike, [100])
    assert [codes(reason) for reason in found] == [["I"]]
    assert label_reasons(["B", "unknown"], [], shares((0.3, 0, 1), (0, 0, 0)), [49]) == [[]]


def test_without_intervals_none_is_wide():
    assert label_reasons(
        ["B", "unknown"], [], shares((0.3, np.nan, np.nan), (0.7, np.nan, np.nan)), [100]
    ) == [[]]


@pytest.mark.parametrize("soft", [True, False])
def test_classes_that_overlap_need_many_cells(soft):
    """Their centres lie a third of a standard deviation apart: told apart, but not by 200 cells."""
    rng, flags = np.random.default_rng(0), {}
    for n in (200, 4_000):
        source, target = rng.standard_normal((2, 2 * n, 2))
        source[n:, 0] += 0.35
        target[n:, 0] += 0.35
        model = ss.DFM(bandwidth=1.5, soft=soft, random_state=0).fit(source, np.repeat(["a", "b"], n))
        flags[n] = model.predict(target)["flag"].item()
    assert codes(flags[200]) == ["W"]
    assert flags[4_000] == ""


def test_what_cells_know_of_their_samples_comes_along():
    x, y = draw(400, [0.3, 0.3, 0.4], seed=0)
    cells = ss.as_cells(x, sample=np.repeat(["s1", "s2"], 200), label=y)
    told = {"donor": ("sample", ["D1", None]), "flag": ("sample", [1, 2])}
    described = cells.assign_coords(told)
    model = ss.DFM(bandwidth=2.0, n_bootstrap=0, random_state=0).fit(described)
    result = model.predict(described)
    assert result["donor"].values.tolist() == ["D1", None]
    assert result["sample_flag"].values.tolist() == [1, 2]  # the result has a flag of its own
    assert result["flag"].values.tolist() == ["", ""]
    assert set(model.predict(x).coords) == {"sample", "label"}
