"""Ctrl-C and SIGTERM end a verb with one line that says how to go on, soon, and without a traceback."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import scaleshift as ss

SIGNALS = [  # of Ctrl-C the fit without a checkpoint tells too
    pytest.param(signal.SIGINT, 130, "interrupted", marks=pytest.mark.slow),
    (signal.SIGTERM, 143, "terminated"),
]
STOPPED = """
    import os, signal, sys
    import scaleshift.cli
    from scaleshift import checkpoint

    # A process that a shell put into the background ignores interrupts, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    number, left, write = int(sys.argv.pop(1)), int(sys.argv.pop(1)), checkpoint.write

    def write_and_be_stopped(*given):
        global left
        if left == 0:
            os.kill(os.getpid(), number)
        left -= 1
        write(*given)

    checkpoint.write = write_and_be_stopped
    scaleshift.cli.main()
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("stopped") / "study.zarr"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_500, 3)).astype("f4")
    wrong = rng.random(1_500) < np.where(x[:, 2] > 1, 0.7, 0.05)
    label = np.where(x[:, 0] > 0, "T", "B")
    ss.write_cells(ss.as_cells(x, np.repeat(["S1", "S2", "S3"], 500), label), path, chunk_cells=512)
    obs = zarr.open_group(path, mode="r+")["obs"]
    obs.create_array("predicted", data=np.where(wrong, label[::-1], label).astype(np.dtypes.StringDType()))
    return path


def stopped(number, after, *arguments):
    """Run a verb that gets a signal when it writes its checkpoint after so many others."""
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), int(number), after, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_a_fit_with_a_checkpoint_says_that_the_same_command_goes_on(study, tmp_path, number, code, word):
    command = ["slices", study, "--predictions", "predicted", "--checkpoint", tmp_path / "state"]
    done = stopped(number, 1, *command)
    assert done.returncode == code
    assert done.stderr == f"{word}: the same command goes on from {tmp_path / 'state'}\n"
    assert done.stdout == ""


def test_sums_that_are_kept_are_gone_on_from(study, tmp_path):
    command = ["auc", study, "--positive", "T", "--features", "2", "--checkpoint", tmp_path / "state"]
    done = stopped(signal.SIGTERM, 1, *command)
    assert done.returncode == 143
    assert done.stderr == f"terminated: the same command goes on from {tmp_path / 'state'}\n"


def test_a_checkpoint_that_holds_nothing_yet_is_not_promised(study, tmp_path):
    command = ["slices", study, "--predictions", "predicted", "--checkpoint", tmp_path / "state"]
    done = stopped(signal.SIGTERM, 0, *command)
    assert (
        done.stderr == f"terminated: {tmp_path / 'state'} holds nothing yet; the same command begins anew\n"
    )


def test_a_fit_without_a_checkpoint_names_the_option(study):
    done = stopped(signal.SIGINT, 1, "slices", study, "--predictions", "predicted")
    assert done.returncode == 130
    assert done.stderr == (
        "interrupted: nothing of the fit is kept; with --checkpoint PATH the same command goes on where it "
        "was stopped\n"
    )


WAITING = """
    import os, signal, sys, threading, time
    import click, dask
    from scaleshift.cli import Commands, options

    @click.group(cls=Commands)
    def main():
        pass

    @main.command()
    @click.argument("scheduler")
    def wait(scheduler):
        with options.computing(scheduler, quiet=False):
            threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()
            dask.compute(dask.delayed(time.sleep)(60), dask.delayed(time.sleep)(60))

    main()
"""


def seconds_of_waiting(scheduler):
    begin = time.monotonic()
    command = [sys.executable, "-c", textwrap.dedent(WAITING), "wait", scheduler]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 143
    assert done.stderr == "terminated\n"
    return time.monotonic() - begin


def test_threads_at_work_do_not_hold_a_process_that_was_stopped():
    assert seconds_of_waiting("local") < 40


@pytest.mark.slow
def test_a_cluster_at_work_does_not_hold_a_process_that_was_stopped():
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert seconds_of_waiting(cluster.scheduler_address) < 40
        assert not any(client.processing().values())  # nothing waits there for a driver that is gone
