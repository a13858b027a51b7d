"""Jobs that are killed, workers that come and go, a driver that never rests: small versions of benchmarks."""

import adaptive
import driver_kills
import jobs
import kills
import numpy as np
import pytest
import soak
from slices_out_of_core import make_store
from stores import in_child, make_study

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    in_child(make_study, path, 3_000_000, jobs.MARKERS, jobs.CLASSES, 65_536)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "store.zarr"
    in_child(make_store, path, 1_000_000, jobs.COLUMNS)
    return path


def killed(job, seconds, n_kills, folder):
    """What a job gives on threads, what with kills, and what was seen."""
    expected = jobs.digest(job.run())
    times = np.linspace(0, 0.8 * seconds, n_kills + 1)[1:].tolist()
    _, found, seen = kills.one_run(job, times, 0, folder)
    return expected, found, seen


def test_three_kills_in_a_pass_change_no_bit(study, tmp_path):
    expected, found, seen = killed(jobs.class_sums(study, 15), 15, 3, tmp_path)
    assert seen["kills"] == 3
    assert seen["workers_seen"] >= 4  # nannies started others
    assert seen["tasks_interrupted"] + seen["tasks_recomputed"] > 0
    assert found == expected


def test_kept_blocks_that_die_with_their_worker_change_no_bit(store, tmp_path):
    expected, found, seen = killed(jobs.mixture(store, 10), 10, 2, tmp_path)
    assert seen["kills"] == 2
    assert seen["tasks_recomputed"] > 0  # the prepared blocks at least
    assert found == expected


def test_refits_that_die_with_their_worker_change_no_bit(tmp_path):
    expected, found, seen = killed(jobs.refits(10), 10, 2, tmp_path)
    assert seen["kills"] == 2
    assert found == expected


@pytest.mark.parametrize("name", ["class sums", "mixture", "refits"])
def test_workers_that_come_and_go_change_no_bit(name, study, store, tmp_path):
    job = {
        "class sums": lambda: jobs.class_sums(study, 8, workers=1),
        "mixture": lambda: jobs.mixture(store, 8, workers=1),
        "refits": lambda: jobs.refits(8, workers=1),
    }[name]()
    found = adaptive.measured(job, tmp_path)
    assert found["equal"]
    assert found["workers_seen"] == 2
    assert found["retired_in_mid_job"]
    assert found["held_elsewhere"] + found["held_done_with"] == found["held"]  # nothing is lost
    if name == "mixture":
        assert found["held_elsewhere"] > 0  # kept blocks, which the next iteration asks for
        assert found["held_computed_again"] == 0


def test_a_driver_that_never_rests_leaves_nothing_behind(tmp_path):
    in_child(soak.make, tmp_path, 30_000)
    times, seen = soak.soak(tmp_path, 20)
    found = soak.verdict(times, seen)
    assert not seen["tasks"].any()
    assert not seen["futures"].any()
    for name, one in found["counts"].items():
        if not name.endswith("threads"):  # pools of them fill for longer than this
            assert one["grown"] <= 0, name


@pytest.mark.parametrize("name", list(driver_kills.COMMANDS))
def test_a_driver_that_is_killed_goes_on_from_its_last_unit(name, tmp_path):
    command = driver_kills.COMMANDS[name]
    found = driver_kills.killed_driver(command, 2, 2 * command.share, 0, tmp_path / "job")
    assert found["kills"] >= 1
    assert found["lost_at_most"] <= command.at_most
    assert found["equal"]
