"""Alarms of consecutive updates: what counts, what starts anew, and that a saved state loses nothing."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from scaleshift import persistence
from scaleshift.error.monitor import Monitor
from scaleshift.error.watch import Watch
from scaleshift.errors import DataError


def after(watch, *values, name="A"):
    for value in values:
        watch = watch.updated({name: value})
    return watch


def test_it_rings_at_the_nth_update_above_and_not_before():
    watch = Watch(0.08, n=3)
    rung = [bool(after(watch, *[0.1] * k).ringing()) for k in range(5)]
    assert rung == [False, False, False, True, True]


def test_an_update_that_is_not_above_starts_anew():
    watch = Watch(0.08, n=2)
    assert after(watch, 0.1, 0.07, 0.1).ringing() == []
    assert after(watch, 0.1, 0.07, 0.1, 0.1).ringing() == ["A"]


@pytest.mark.parametrize("value", [0.08, float("nan"), -float("inf"), np.float64("nan")])
def test_what_equals_the_bound_or_is_not_known_is_not_above(value):
    assert after(Watch(0.08), 0.1, value).consecutive == {"A": 0}


def test_targets_are_counted_by_themselves():
    watch = Watch(0.1, n=2).updated({"A": 0.2, "B": 0.2}).updated({"B": 0.3, "C": 0.3})
    assert watch.consecutive == {"A": 1, "B": 2, "C": 1}
    assert watch.ringing() == ["B"]
    assert watch.ringing(["A", "C", "never met"]) == []


def test_another_bound_starts_anew_and_another_number_of_updates_does_not():
    watch = after(Watch(0.1, n=3), 0.2, 0.2)
    assert watch.judging().consecutive == {"A": 2}
    assert watch.judging(n=2).ringing() == ["A"]
    assert watch.judging(above=0.05).consecutive == {}
    assert watch.judging(on="low").consecutive == {}
    assert watch.judging(above=0.1, on="error", n=3) == watch


def test_a_watch_that_is_updated_is_another_one():
    watch = Watch(0.1)
    after(watch, 1.0)
    assert watch.consecutive == {}


@given(st.lists(st.floats(allow_nan=True)), st.integers(1, 4))
def test_the_count_is_the_length_of_the_last_run_above(values, n):
    run = 0
    for value in reversed(values):
        if not value > 0.5:
            break
        run += 1
    watch = after(Watch(0.5, n=n), *values)
    assert watch.consecutive.get("A", 0) == run
    assert bool(watch.ringing()) == (run >= n)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"above": float("nan")}, "expected a finite number"),
        ({"above": float("inf")}, "expected a finite number"),
        ({"above": 0.1, "on": "high"}, "expected one of error, low"),
        ({"above": 0.1, "n": 0}, "expected a number of updates from 1"),
    ],
)
def test_settings_that_would_never_ring_are_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        Watch(**wrong)


def test_what_was_counted_and_answered_comes_back_from_a_saved_state(tmp_path):
    answer = xr.Dataset(
        {
            "error": (("target", "method"), [[0.1, np.nan]], {"long_name": "expected error"}),
            "unreliable": ("target", [True]),
            "flag": ("target", np.array(["few rows: 3; far"], dtype=object)),
        },
        coords={"target": ["site B"], "method": ["direct", "cv"]},
        attrs={"seed": 0, "parameters": "{}"},
    )
    watch = after(Watch(0.05, "low", 2), 0.1, name="site B")
    persistence.save(Monitor(None, None).after(answer, watch, "abc"), tmp_path / "state")
    found = persistence.load(tmp_path / "state")
    assert found.watch == watch
    assert found.is_last("abc")
    assert not found.is_last("abd")
    xr.testing.assert_identical(found.answer, answer)
