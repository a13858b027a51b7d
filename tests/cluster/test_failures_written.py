"""A study that is changed as a job reads it: the state that was opened, or an error; never a mix."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError, ScaleshiftError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)).astype("f4")
SAMPLE, LABEL = np.repeat(["a", "b"], 200), np.tile(["B", "T"], 200)


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def one_worker():
    """Of one thread: it takes the blocks in their order."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def written(path, x=X):
    ss.write_cells(ss.as_cells(x, SAMPLE, LABEL), path, chunk_cells=20)


def summed(block, path, change):
    """The sum; at the first block that is read, something happens to the study."""
    try:
        os.close(os.open(f"{path}.changed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        change(Path(path), (block.start // 20 + 10) % 20)
    return {"sum": block.x.sum(axis=0, dtype="f8")}


def total(path, change, columns=True):
    cells = ss.open_cells(path)
    rows = as_rows(cells) if columns else as_rows(cells["X"])
    return passes.total(summed, rows, {"sum": (3,)}, path=str(path), change=change)["sum"]


def lose_a_chunk(path, number):
    (path / f"X/c/{number}/0").unlink()


def damage_a_chunk(path, number):
    file = path / f"X/c/{number}/0"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)


def write_other_cells(path, number):
    shutil.rmtree(path)
    written(path, -2 * X)


def append(path, number):
    with dask.config.set(scheduler="threads"):
        ss.cells.append_cells(ss.as_cells(X, ["c"] * 400, LABEL), path)


def nothing(path, number):
    pass


def label(path, number):
    table = pd.DataFrame({"sample": SAMPLE, "event": np.tile(range(200), 2), "label": "other"})
    with dask.config.set(scheduler="threads"):
        ss.label_cells(path, table)


@pytest.mark.parametrize(
    ("change", "what"), [(lose_a_chunk, "is missing"), (damage_a_chunk, "cannot be read")]
)
def test_a_chunk_that_goes_bad_in_mid_job_is_named(one_worker, tmp_path, change, what):
    written(tmp_path / "s.zarr")
    expected = rf"s.zarr: chunk \d+ of X \(rows \d+-\d+\) {what}"
    with pytest.raises(DataError, match=expected):
        total(tmp_path / "s.zarr", change)


@pytest.mark.parametrize("columns", [True, False], ids=["with labels", "X alone"])
def test_a_study_that_is_replaced_in_mid_job_is_refused(one_worker, tmp_path, columns):
    written(tmp_path / "s.zarr")
    with pytest.raises(DataError, match=r"s.zarr was written anew since it was opened: open it again"):
        total(tmp_path / "s.zarr", write_other_cells, columns)
    assert np.allclose(ss.open_cells(tmp_path / "s.zarr")["X"].sum(axis=0), -2 * X.sum(axis=0), atol=1e-4)


def test_new_labels_in_mid_job_are_refused(one_worker, tmp_path):
    written(tmp_path / "s.zarr")
    with pytest.raises(DataError, match=r"s.zarr was written anew since it was opened: open it again"):
        total(tmp_path / "s.zarr", label)


def test_an_append_in_mid_job_changes_nothing(one_worker, tmp_path):
    written(tmp_path / "s.zarr")
    written(tmp_path / "alone.zarr")
    found = total(tmp_path / "s.zarr", append)
    assert np.array_equal(found, total(tmp_path / "alone.zarr", nothing))
    assert ss.open_cells(tmp_path / "s.zarr").sizes["cell"] == 800


WRITER = """
import sys, shutil, numpy as np, pandas as pd, scaleshift as ss
path, how = sys.argv[1:]
x, sample = np.load(path + ".npy"), np.repeat(["a", "b"], 200)
names = np.array(["B", "T"])
print("ready", flush=True)
for i in range(1, 10**6):
    if how == "label":
        event = np.tile(np.arange(200), 2)
        table = {"sample": sample, "event": event, "label": names[(event + i) % 2]}
        ss.label_cells(path, pd.DataFrame(table))
    elif how == "replace":
        shutil.rmtree(path)
        sign = 1 - 2 * (i % 2)
        ss.write_cells(ss.as_cells(sign * x, sample, np.tile(["B", "T"], 200)), path, chunk_cells=20)
    else:
        ss.cells.append_cells(ss.as_cells(x[:30], [f"more {i}"] * 30, ["B"] * 30), path)
"""


@pytest.mark.parametrize("how", [*map(slow, ["label", "append"]), "replace"])
def test_a_fit_beside_a_writer_gives_one_of_the_states_or_says_that_it_changed(tmp_path, how):
    path = tmp_path / "s.zarr"
    written(path)
    np.save(f"{path}.npy", X)
    states = []
    for sign, labels in [(1, LABEL), (-1, LABEL), (1, np.roll(LABEL, 1))]:
        written(tmp_path / f"{len(states)}.zarr", sign * X)
        if sign == 1 and labels is not LABEL:
            shutil.rmtree(tmp_path / "2.zarr")
            ss.write_cells(ss.as_cells(X, SAMPLE, labels), tmp_path / "2.zarr", chunk_cells=20)
        states.append(class_sums(tmp_path / f"{len(states)}.zarr"))
    seen, refused = set(), []
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), how], stdout=subprocess.PIPE) as writer:
        try:
            writer.stdout.readline()
            for _ in range(60):
                try:
                    found = class_sums(path)
                except ScaleshiftError as error:
                    refused.append(str(error))
                else:
                    seen.add(
                        next((i for i, state in enumerate(states) if np.array_equal(found, state)), None)
                    )
            assert writer.poll() is None
        finally:
            writer.kill()
    assert None not in seen
    assert not [message for message in refused if not SAID.search(message)]
    assert refused or len(seen) > 1 or how == "append"


SAID = re.compile(
    "written anew since|open it again|interrupted, or is still under way|does not exist|is missing|"
    "holds no finished sample|is not a Zarr group|has no array|cannot be opened|has no uns/scaleshift|damaged"
)


def class_sums(path):
    """Sums of each label in the samples that were there at first: (2, 3)."""
    rows = as_rows(ss.open_cells(path, samples=["a", "b"]))
    return passes.total(by_label, rows, {"sum": (2, 3)})["sum"]


def by_label(block):
    sums = np.zeros((2, 3))
    np.add.at(sums, block.columns["label"], block.x)
    return {"sum": sums}
