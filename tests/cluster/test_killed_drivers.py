"""A driver that is killed goes on to the same bits, and does no more than one iteration again."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("mortal_fits.py")
ALL = (
    "spotlight",
    "spotlight-published",
    "sht",
    "moments",
    "stream",
    "logistic-l1",
    "multinomial",
    "lasso",
    "ols-groups",
    "refits",
    "dfm",
    "open-set",
)


def runs(name, folder, *kills):
    """What the runs came to: whole ones without and with a checkpoint, killed ones, and the last."""
    command = [sys.executable, SCRIPT, name, folder, *kills]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", ["domino", "logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ALL)]
)
def test_a_killed_driver_goes_on_to_the_same_bits_with_at_most_one_iteration_again(tmp_path, name):
    plain, whole, first, *killed, last = runs(name, tmp_path, "before:2", "at:0.6")
    assert whole["made"] >= 2
    assert whole["digest"] == plain["digest"]  # a checkpoint changes nothing
    assert first["killed"]
    assert last["digest"] == plain["digest"]
    made = first["made"] + sum(run["made"] for run in killed) + last["made"]
    assert made <= whole["made"] + 1 + sum(run["killed"] for run in killed)
    assert last["passes"] <= whole["passes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["domino", "sht", "logistic", "refits"])
def test_a_driver_that_is_killed_again_and_again_from_outside_comes_to_its_end(tmp_path, name):
    shares = np.random.default_rng().uniform(0.2, 0.9, 8)
    plain, whole, *killed, last = runs(name, tmp_path, *(f"at:{share}" for share in shares))
    assert last["digest"] == plain["digest"]
    made = sum(run["made"] for run in killed) + last["made"]
    assert made <= whole["made"] + sum(run["killed"] for run in killed)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        pytest.param("dfm", 0.2, marks=pytest.mark.slow),  # a look at a few rows
        pytest.param("open-set", 0.2, marks=pytest.mark.slow),
        pytest.param("lasso", 1.2, marks=pytest.mark.slow),  # held-out rows are asked again
        pytest.param("moments", 1.2, marks=pytest.mark.slow),
    ],
)
def test_a_driver_that_is_killed_late_does_not_read_its_source_again(tmp_path, name, left):
    *_, killed, last = runs(name, tmp_path, "after:3" if name in ("dfm", "open-set") else "after:2")
    assert killed["killed"]
    assert last["passes"] <= left
