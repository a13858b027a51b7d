"""A bar for what takes long, on a terminal; nothing otherwise."""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from rich.console import Console

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows
from scaleshift.cli import progress
from scaleshift.doing import doing, steps

ROOT = str(Path(ss.__file__).parents[1])
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def bar_on(terminal=True):
    bar = progress.ProgressBar()
    bar.console = Console(file=io.StringIO(), force_terminal=terminal, force_interactive=terminal, width=100)
    return bar


def drawn(terminal):
    bar = bar_on(terminal)
    with bar:
        da.ones(100, chunks=1).map_blocks(lambda block: block + 1, dtype=float).sum().compute(
            scheduler="sync"
        )
    return bar.console.file.getvalue()


def frames(text):
    """What stood on the line, one after the other."""
    lines = [line.strip() for line in CODES.sub("", text).replace("\r", "\n").split("\n")]
    return [line for line, before in zip(lines, ["", *lines], strict=False) if line and line != before]


def test_a_long_pass_shows_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert "reading blocks" in drawn(terminal=True)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_short_pass_shows_nothing(terminal):
    assert drawn(terminal) == ""


def test_nothing_is_drawn_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert drawn(terminal=False) == ""


# What is told ------------------------------------------------------------------------------------------


def told(monkeypatch, work):
    """Description and share at each change, while `work()` runs."""
    found = []
    bar = bar_on()
    draw = bar._draw

    def keep():
        draw()
        (task,) = bar._bar.tasks
        found.append((task.description, None if task.total is None else task.completed / task.total))

    monkeypatch.setattr(bar, "_draw", keep)
    with bar:
        work()
    return found


def test_steps_are_named_and_counted(monkeypatch):
    def work():
        with doing("choosing a method"), doing("trials", 4) as advance:
            for _ in range(4):
                advance(1)

    found = told(monkeypatch, work)
    assert ("choosing a method: 0 of 4 trials", 0.0) in found
    assert ("choosing a method: 3 of 4 trials", 0.75) in found
    assert found[-1] == ("reading blocks", None)


def test_a_pass_has_its_number_in_its_step_and_goes_from_nothing_to_all(monkeypatch):
    rows = as_rows(da.ones((40, 2), chunks=(4, 2)))

    def work():
        with doing("learning"):
            for _ in range(3):
                passes.total(lambda block: {"n": np.ones(1)}, rows, {"n": (1,)})

    found = told(monkeypatch, work)
    assert {"learning", "learning, pass 2", "learning, pass 3"} <= {words for words, _ in found}
    shares = [share for words, share in found if words == "learning, pass 2" and share is not None]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


def test_tasks_inside_of_tasks_are_not_counted(monkeypatch):
    """Blocks that are folded inside one task run graphs of their own, on other threads."""
    rows = as_rows(da.ones((640, 2), chunks=(4, 2)))

    def work():
        passes.total(lambda block: {"n": np.ones(600_000)}, rows, {"n": (600_000,)})

    shares = [share for _, share in told(monkeypatch, work) if share is not None]
    assert shares == sorted(shares)
    assert len(shares) < 160  # blocks, each a graph of its own


def test_things_that_are_tasks_of_one_pass_are_counted_as_they_end(monkeypatch):
    def work():
        found = passes.replicates(
            lambda tables, key: {"n": np.ones(1)}, {"source": as_rows(np.ones((3, 1)))}, range(20)
        )
        assert len(found) == 20

    found = told(monkeypatch, work)
    counts = [int(words.split()[0]) for words, _ in found if words.endswith("of 20 refits")]
    assert counts == sorted(counts)
    assert len(set(counts)) > 5


def test_steps_know_those_around_them_also_on_other_threads():
    import contextvars

    with doing("answering"), doing("samples", 3) as advance:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(advance, 2))
        thread.start()
        thread.join()
        assert [(step.what, step.done) for step in steps()] == [("answering", 0), ("samples", 2)]
    assert steps() == ()


# On a cluster ------------------------------------------------------------------------------------------


def slow(block):
    time.sleep(0.1)
    return {"n": np.ones(1)}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.usefixtures("client")
def test_a_pass_on_a_cluster_goes_from_nothing_to_all(monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.05)
    rows = as_rows(da.ones((40, 2), chunks=(1, 2)))

    def work():
        with doing("learning"):
            passes.total(slow, rows, {"n": (1,)})
            passes.total(slow, rows, {"n": (1,)})

    found = told(monkeypatch, work)
    for words in ("learning", "learning, pass 2"):
        shares = [share for told_, share in found if told_ == words and share is not None]
        assert shares == sorted(shares)
        assert len(set(shares)) > 5
        assert shares[0] < 0.5 < shares[-1] <= 1


@pytest.mark.usefixtures("client")
def test_a_pass_on_a_cluster_that_fails_ends_the_questions(monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.05)

    def fail(block):
        time.sleep(0.2)
        raise ValueError("no")

    def work():
        with pytest.raises(ValueError, match="no"):
            passes.total(fail, as_rows(da.ones((4, 2), chunks=(1, 2))), {"n": (1,)})

    assert told(monkeypatch, work)[-1] == ("reading blocks", None)
    deadline = time.monotonic() + 10
    while _asking() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _asking()


def _asking():
    return [thread for thread in threading.enumerate() if thread.name == "scaleshift-progress"]


def test_a_worker_that_dies_does_not_end_the_bar(monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.05)
    rows = as_rows(da.ones((30, 2), chunks=(1, 2)))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())

        def work():
            timer = threading.Timer(0.7, os.kill, (workers[0], 9))
            timer.start()
            found = passes.total(slow, rows, {"n": (1,)})
            timer.join()
            assert found["n"] == 30

        found = [share for _, share in told(monkeypatch, work) if share is not None]
    assert found[-1] > 0.5
    assert len(set(found)) > 3


def test_of_a_large_graph_a_thousand_keys_are_asked_about():
    keys = progress.spread((da.ones(4_500, chunks=1).map_blocks(lambda block: block),))
    assert 800 < len(keys) <= progress.MOST_KEYS
    assert len(progress.spread((da.ones(3, chunks=1).sum(),))) >= 4
    assert progress.spread(()) == []


# The command -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("progress") / "study.zarr"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6_000, 3))
    label = np.array(["A", "B"])[rng.integers(0, 2, 6_000)]
    x[label == "A"] += 2
    cells = ss.as_cells(x, sample=np.repeat(["S1", "S2", "S3"], 2_000), label=label)
    ss.write_cells(cells, path, chunk_cells=500)
    return path


AT_ONCE = """
from scaleshift.cli import main, progress
progress.DELAY = progress.PAUSE = 0.05
main(prog_name="scaleshift")
"""


def on_a_terminal(*arguments):
    """Run the command with standard error on a terminal; what it says there, and on standard output."""
    there, here = pty.openpty()
    said = []

    def read():
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(there, 65_536):
                said.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": ROOT}
    called = [sys.executable, "-c", AT_ONCE, *map(str, arguments)]
    done = subprocess.run(called, stdout=subprocess.PIPE, stderr=here, env=environment, check=False)
    os.close(here)
    reader.join()
    os.close(there)
    text = b"".join(said).decode()
    assert done.returncode == 0, text
    return text, done.stdout.decode()


LEARN = ("quantify", "--source", "sample == S1", "--method", "cc", "--bootstrap", "0")


def test_on_a_terminal_the_steps_are_shown_and_json_stays_pure(study, tmp_path):
    text, out = on_a_terminal(*LEARN, study, "--json", "--output", tmp_path / "out")
    assert json.loads(out)["schema"] == "scaleshift.quantify/1"
    shown = frames(text)
    assert any(line.startswith("learning from the source") for line in shown)
    assert any(re.match(r"answering: \d of 2 samples", line) for line in shown)
    assert "wrote " in shown[-2]  # the bar is gone
    assert "in a browser" in shown[-1]


READ = ("doctor", "--scheduler", "processes", "--json")


def test_on_a_cluster_the_same_and_the_dashboard_once(study):
    text, out = on_a_terminal(*READ, study)
    assert json.loads(out)["schema"] == "scaleshift.doctor/1"
    assert text.count("Dask's dashboard: http://127.0.0.1:") == 1
    assert any(line.startswith("reading the store") for line in frames(text))


@pytest.mark.parametrize("command", [(*LEARN, "--json"), READ])
def test_quiet_says_nothing_at_all(study, command):
    text, out = on_a_terminal(*command, study, "--quiet")
    assert text == ""
    assert json.loads(out)["schema"].startswith("scaleshift.")


def test_without_a_terminal_nothing_is_drawn(study):
    called = [sys.executable, "-c", AT_ONCE, *READ, str(study)]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run(called, capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout)["schema"] == "scaleshift.doctor/1"
    assert done.stderr == ""


def test_a_plan_is_printed_once_the_bar_is_gone(study):
    text, out = on_a_terminal(*LEARN, study, "--plan", "--json")
    assert json.loads(out)["schema"] == "scaleshift.plan/1"
    assert "schema" not in text
