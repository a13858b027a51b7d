"""The synthetic suite draws the same problems for ever, and plants what it says."""

import importlib.util
import zlib

import numpy as np
import pytest

from scaleshift import DominoSlicer
from scaleshift.errors import DataError
from scaleshift.slices import metrics, synthetic

CHECKSUMS = {
    ("rare", False): [2364768752, 3523566240],
    ("rare", True): [3083128326, 1811580935],
    ("correlation", False): [3216147969, 4125054536],
    ("correlation", True): [4135529138, 147278252],
    ("noisy", False): [1969470753, 2881659861],
    ("noisy", True): [107896128, 4053161937],
    ("no_slice", False): [4200134322, 3975802790],
    ("no_slice", True): [2304054995, 1666773677],
}


def checksum(part):
    """Of the values to 6 decimals: other machines may round the last digits otherwise."""
    text = b"".join((np.round(values.astype("f8"), 6) + 0.0).tobytes() for values in part.values())
    return zlib.crc32(text)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_a_seed_names_a_problem_for_ever(kind, hard):
    parts = synthetic.make(kind, 100, hard, n=500)
    assert [checksum(part) for part in parts] == CHECKSUMS[kind, hard]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("kind", ["rare", "correlation", "noisy"])
@pytest.mark.parametrize("seed", [0, 129])
def test_problems_are_those_of_the_shared_generator(shared, kind, hard, seed):
    path = shared / "cases" / "slices-suite" / "generate.py"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    spec = importlib.util.spec_from_file_location("generate", path)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for size in ({}, {"n": 300, "d": 5, "n_clusters": 7, "strength": 0.3}):
        for found, expected in zip(
            synthetic.make(kind, seed, hard, **size), generator.make(kind, seed, hard, **size), strict=True
        ):
            assert found.keys() == expected.keys()
            for name in found:
                assert found[name].dtype == expected[name].dtype
                np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("kind", ["rare", "correlation", "noisy"])
def test_the_classifier_fails_in_the_slice(kind, part):
    rows = synthetic.make(kind, 101, n=20_000)[part]
    wrong = rows["pred_probs"].argmax(axis=1) != rows["y"]
    # Of flipped labels (60 %) a classifier with 10 % of errors is wrong in .6 * .9 + .4 * .1 = .58.
    assert wrong[rows["in_slice"]].mean() == pytest.approx(0.58 if kind == "noisy" else 0.65, abs=0.05)
    assert wrong[~rows["in_slice"]].mean() == pytest.approx(0.1, abs=0.01)
    np.testing.assert_allclose(rows["pred_probs"].sum(axis=1), 1)


def test_without_a_slice_errors_are_everywhere():
    fit, test = synthetic.make("no_slice", 100)
    wrong = test["pred_probs"].argmax(axis=1) != test["y"]
    assert not fit["in_slice"].any()
    assert not test["in_slice"].any()
    assert wrong.mean() == pytest.approx(0.1, abs=0.02)
    slicer = DominoSlicer(random_state=0).fit(fit, "X", "y")
    assert metrics.false_discovery_rate(slicer.predict_proba(test, "X", "y"), test["in_slice"]) == 1
    # What a slicer finds there is no worse elsewhere: its slices do not last.
    inside = slicer.predict(test, "X").any(axis=1)
    assert wrong[inside].mean() == pytest.approx(0.1, abs=0.04)


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_the_default_slicer_finds_a_rare_cluster(seed):
    fit, test = synthetic.make("rare", seed)
    slicer = DominoSlicer(random_state=0).fit(fit, "X", "y")
    result = metrics.score(slicer.predict_proba(test, "X", "y"), test["in_slice"])
    assert result["precision_at_k"].max() >= 0.9
    assert result["discovery_rate"] == 1


def test_problems_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="kind='odd': expected one of"):
        synthetic.make("odd", 0)
    with pytest.raises(DataError, match="n=0: expected a whole number from 1"):
        synthetic.make("rare", 0, n=0)
    with pytest.raises(DataError, match="n_clusters=1: a rare cluster needs others"):
        synthetic.make("rare", 0, n_clusters=1)
    with pytest.raises(DataError, match="strength=2: expected a number from 0 to 1"):
        synthetic.make("correlation", 0, strength=2)
