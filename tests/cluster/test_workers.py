"""Real workers: the same bits from threads, processes, one worker or two, and after one is killed."""

import os
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.blocks import graph, passes
from scaleshift.blocks.rows import as_rows
from scaleshift.cells.intake.assembly import assemble
from scaleshift.cells.intake.plan import Options, plan_study
from scaleshift.cells.manifest import read_manifest
from scaleshift.cli import main
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.normal(size=(N, 4)).astype("f4") * [1, 10, 100, 1000]
Y = RNG.choice(["a", "b", "c"], N)


def rows():
    return as_rows(da.from_array(X, chunks=(1_000, -1)), da.from_array(Y, chunks=1_500))


def sums(block, n_groups):
    codes = block.codes("label")
    total = np.zeros((n_groups, block.x.shape[1]))
    np.add.at(total, codes[codes >= 0], block.x[codes >= 0])
    return {"sum": total}


def sums_of_a_mortal_worker(block, n_groups, marker):
    """Kills its own worker process at one block in the middle, once."""
    if block.start == 20_000 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sums(block, n_groups)


def total(kernel=sums, **parameters):
    return passes.total(kernel, rows(), {"sum": (3, 4)}, n_groups=3, **parameters)["sum"]


def test_codes_that_another_process_has_written_are_not_read_with_the_old_names(tmp_path):
    path = tmp_path / "study.zarr"
    sample, names = np.repeat(["s1", "s2"], 50), np.array(["A", "B"])
    ss.write_cells(ss.as_cells(X[:100], sample, names[np.arange(100) % 2]), path, chunk_cells=16)
    with Client(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"):
        opened = ss.open_cells(path)
        assert opened["label_code"].data.compute().tolist() == [0, 1] * 50  # the worker has the array open
        events = np.tile(np.arange(50), 2)
        ss.label_cells(
            path, pd.DataFrame({"sample": sample, "event": events, "label": names[1 - events % 2]})
        )
        with pytest.raises(DataError, match=r"study.zarr was written anew since it was opened"):
            opened["label_code"].data.compute()
        assert ss.open_cells(path)["label_code"].data.compute().tolist() == [1, 0] * 50


@pytest.fixture(scope="module")
def alone():
    return total()


@pytest.fixture(scope="module")
def two_processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_two_processes_give_the_bits_of_threads(two_processes, alone):
    assert np.array_equal(total(), alone)


def test_one_threaded_worker_gives_the_bits_of_threads(alone):
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=True),
    ):
        assert np.array_equal(total(), alone)


def test_folded_states_give_the_same_bits_on_workers(two_processes, alone, monkeypatch):
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)
    assert np.array_equal(total(), alone)


def test_a_large_parameter_reaches_the_workers(two_processes):
    found = passes.total(shifted, rows(), {"sum": ()}, offset=np.full(200_000, 3.0))
    assert found["sum"] == 3.0 * 40


def shifted(block, offset):
    return {"sum": offset[-1]}


def test_persisted_rows_are_not_read_again(two_processes, alone, monkeypatch, tmp_path):
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)  # futures cannot be folded into a task: must not break
    source = da.from_array(X, chunks=(1_000, -1)).map_blocks(noted, tmp_path, dtype=X.dtype, meta=X[:0])
    x = source.persist()
    for _ in range(2):
        found = passes.total(sums, as_rows(x, Y), {"sum": (3, 4)}, n_groups=3)["sum"]
        assert np.array_equal(found, alone)
    assert len(list(tmp_path.iterdir())) == 40


def noted(block, folder):
    """The block, and a file that says that it was read."""
    Path(tempfile.mkstemp(dir=folder)[1])
    return block


def test_a_model_on_workers_equals_the_one_on_threads(two_processes):
    lazy, sample = da.from_array(X, chunks=(1_000, -1)), np.repeat(["u", "v"], N // 2)
    on_workers = ss.DFM(random_state=0).fit(lazy, Y)
    here = ss.DFM(random_state=0).fit(X, Y)
    np.testing.assert_allclose(on_workers.gram_, here.gram_, atol=1e-7)
    found, expected = on_workers.predict(lazy, sample=sample), here.predict(X, sample=sample)
    xr.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_killed_worker_changes_no_bit(two_processes, alone, tmp_path):
    before = set(two_processes.run(os.getpid).values())
    marker = tmp_path / "killed"
    assert np.array_equal(total(sums_of_a_mortal_worker, marker=str(marker)), alone)
    assert marker.exists()
    assert set(two_processes.run(os.getpid).values()) != before


def killing(block, marker):
    """The block; the worker that reads it first dies."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_killed_worker_changes_no_interval(two_processes, tmp_path):
    """Answers of finished samples are lost with a worker, and computed again."""
    sample = np.repeat([f"s{i}" for i in range(20)], N // 20)
    model = ss.DFM("landmarks", random_state=0, bandwidth=100.0).fit(X, Y)
    lazy = da.from_array(X, chunks=(1_500, -1))
    marker = tmp_path / "killed"
    mortal = lazy.map_blocks(killing, str(marker), dtype=X.dtype, meta=X[:0])
    found = model.predict(mortal, sample=sample)
    assert marker.exists()
    with dask.config.set(scheduler="threads"):
        assert found.equals(model.predict(lazy, sample=sample))


def test_the_command_line_computes_on_a_scheduler(two_processes, tmp_path):
    study = tmp_path / "study.zarr"
    cells = ss.as_cells(X, sample=np.repeat(["u", "v"], N // 2), label=Y)
    ss.write_cells(cells, study, chunk_cells=5_000)
    arguments = ["quantify", str(study), "--source", "sample == u", "--json"]
    here = CliRunner().invoke(main, arguments)
    there = CliRunner().invoke(main, [*arguments, "--scheduler", two_processes.scheduler.address])
    assert there.exit_code == 0, there.output
    assert there.stdout == here.stdout


def test_a_study_comes_in_on_workers_though_one_is_killed(two_processes, tmp_path):
    """The reader of one file kills its worker, once; other workers write the chunk again."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    for i in range(4):
        frame[i * N // 4 : (i + 1) * N // 4].to_csv(tmp_path / f"s{i}.csv", index=False)
    with dask.config.set(scheduler="threads"):
        plan_here = plan_study(tmp_path, Options())
        assemble(plan_here, str(tmp_path / "here.zarr"), labels=None, chunk_cells=3_000, resume=False)
    plan = plan_study(tmp_path / "*.csv", Options())
    marker = str(tmp_path / "killed")
    parts = [replace(p, file=replace(p.file, reader=MortalReader(p.file.reader, marker))) for p in plan.parts]
    there = tmp_path / "there.zarr"
    assemble(replace(plan, parts=tuple(parts)), str(there), labels=None, chunk_cells=3_000, resume=False)
    assert Path(marker).exists()
    first, second = read_manifest(tmp_path / "here.zarr"), read_manifest(there)
    assert first.checksums == second.checksums
    np.testing.assert_allclose(ss.open_cells(there)["X"].values, X, rtol=1e-6)


@dataclass(frozen=True)
class MortalReader:
    """Reads as another reader does; the worker that reads first dies."""

    reader: Any
    marker: str

    def read(self, first, stop):
        killing(None, self.marker)
        return self.reader.read(first, stop)
