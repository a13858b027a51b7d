"""Independent refits: the rows gathered once, the same bits for any workers, nothing finished done again."""

import os
import signal
import tempfile
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from scaleshift.blocks import passes, resuming
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 1_000
X = RNG.normal(size=(N, 3))
Y = RNG.choice(["a", "b"], N)


def rows(x=X, chunks=None, **options):
    return as_rows(x if chunks is None else da.from_array(x, chunks=(chunks, -1)), Y, **options)


def mean(tables, key, folder=None):
    """The mean of a bootstrap sample; leaves a file for each key."""
    table = tables["source"]
    if folder is not None:
        Path(tempfile.mkstemp(dir=folder, prefix=f"{key}-")[1])
    drawn = np.random.default_rng(key).integers(0, len(table["x"]), len(table["x"]))
    share = (table["label"][drawn] == 1).mean()
    return {"mean": table["x"][drawn].mean(axis=0), "share": np.array(share)}


def as_expected(found, keys):
    assert list(found) == list(keys)
    table = {"x": X, "label": (Y == "b").astype(int)}
    for key in keys:
        expected = mean({"source": table}, key)
        for name in expected:
            np.testing.assert_array_equal(found[key][name], expected[name])


def folder_of(tmp_path, fingerprint="job", name="means"):
    return resuming.KeptReplicates(resuming.kept_in(tmp_path / "state", fingerprint, 7), name)


@pytest.mark.parametrize("chunks", [None, 130, 1_000])
def test_any_chunks_give_the_bits_of_plain_calls(chunks):
    keys = [5, 3, 40]
    as_expected(passes.replicates(mean, {"source": rows(chunks=chunks)}, keys), keys)


def test_one_thread_gives_the_same_bits():
    with dask.config.set(scheduler="synchronous", num_workers=1):
        as_expected(passes.replicates(mean, {"source": rows(chunks=300)}, range(4)), range(4))


def columns_of(tables, key):
    return {
        name: table[key] for table in tables.values() for key, name in [("row", "row"), ("twice", "twice")]
    }


def twice(name, block, factor):
    """A column beside, and rows that are not wanted."""
    columns = {"twice": factor[0] * block.x[:, 0]}
    return block._replace(columns=columns, valid=block.valid & (block.x[:, 1] > 0))


@pytest.mark.parametrize("size", [1, 200_000])
def test_rows_that_are_not_finite_or_wanted_are_left_out(size):
    x = X.copy()
    x[[3, 500]] = np.nan
    data = {"source": rows(x, chunks=90, invalid="drop")}
    gathered = passes.gather(data, twice, factor=np.full(size, 2.0))
    wanted = np.flatnonzero(x[:, 1] > 0)
    assert gathered.n_invalid == {"source": 2}
    assert gathered.n_rows == {"source": len(wanted)}
    found = passes.replicates(columns_of, gathered, [0])[0]
    np.testing.assert_array_equal(found["row"], wanted)
    np.testing.assert_array_equal(found["twice"], 2 * x[wanted, 0])


def test_rows_that_are_not_finite_are_refused_with_their_place():
    x = X.copy()
    x[500, 1] = np.inf
    with pytest.raises(DataError, match=r"column 1: 1; first rows 500"):
        passes.replicates(mean, {"source": rows(x, chunks=90)}, [0])


def test_data_above_a_third_of_the_memory_is_refused_before_it_is_read():
    n = psutil.virtual_memory().total // 3 // 8
    large = as_rows(da.zeros((n, 1), chunks=(n // 10, 1)))
    with pytest.raises(DataError, match=r"source \d.* GiB.*more than a third .* this machine.*fewer rows"):
        passes.gather({"source": large})


def test_wide_columns_count_as_data():
    n = psutil.virtual_memory().total // 3 // 8 // 100
    noise = da.zeros((n, 100), chunks=(n // 10, 100))
    with pytest.raises(DataError, match="more than a third"):
        passes.gather({"source": with_numbers(as_rows(da.zeros((n, 1), chunks=(n // 10, 1))), noise=noise)})


def test_finished_keys_are_not_computed_again(tmp_path):
    done = tmp_path / "done"
    done.mkdir()
    first = passes.replicates(mean, {"source": rows()}, range(3), kept=folder_of(tmp_path), folder=str(done))
    found = passes.replicates(mean, {"source": rows()}, range(12), kept=folder_of(tmp_path), folder=str(done))
    as_expected(found, range(12))
    assert len(first) == 3
    assert len(list(done.iterdir())) == 12


def mortal(tables, key, folder):
    if key == 9 and len(list(Path(folder).iterdir())) >= 9:
        raise KeyboardInterrupt
    return mean(tables, key, folder)


def test_what_was_finished_before_an_end_is_kept(tmp_path):
    done = tmp_path / "done"
    done.mkdir()
    with dask.config.set(scheduler="synchronous", num_workers=1):
        with pytest.raises(KeyboardInterrupt):
            passes.replicates(
                mortal, {"source": rows()}, range(12), kept=folder_of(tmp_path), folder=str(done)
            )
        for path in done.iterdir():
            path.unlink()
        found = passes.replicates(
            mean, {"source": rows()}, range(12), kept=folder_of(tmp_path), folder=str(done)
        )
    as_expected(found, range(12))
    assert sorted(int(path.name.split("-")[0]) for path in done.iterdir()) == [9, 10, 11]


def test_another_job_is_refused_and_another_name_is_another_result(tmp_path):
    passes.replicates(mean, {"source": rows()}, range(3), kept=folder_of(tmp_path))
    assert folder_of(tmp_path, name="medians").read() == {}
    with pytest.raises(DataError, match="is of other data or parameters"):
        folder_of(tmp_path, fingerprint="another")


def test_the_seed_of_a_folder_is_kept(tmp_path):
    folder_of(tmp_path)
    assert resuming.seed_of(tmp_path / "state", None) == 7
    assert resuming.seed_of(tmp_path / "state", 3) == 3


@pytest.mark.parametrize("threads", [1, 7])
def test_it_stops_early_at_the_same_key_for_any_number_of_threads(threads):
    """Rounds of 8 keys are asked of, however many a wave has computed."""
    asked = []

    def enough(results):
        asked.append(list(results))
        return len(results) >= 16

    with dask.config.set(num_workers=threads):
        as_expected(passes.replicates(mean, {"source": rows()}, range(50), enough=enough), range(16))
    assert asked == [list(range(8)), list(range(16))]


def test_a_rule_that_is_never_met_leaves_all_keys():
    as_expected(
        passes.replicates(mean, {"source": rows()}, range(20), enough=lambda results: False), range(20)
    )


@pytest.fixture(scope="module")
def two_processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def noted(block, folder):
    """The block, and a file that says that it was read."""
    Path(tempfile.mkstemp(dir=folder)[1])
    return block


def test_workers_give_the_same_bits_and_read_once_for_all_waves(two_processes, tmp_path):
    x = da.from_array(X, chunks=(100, -1)).map_blocks(noted, str(tmp_path), dtype=X.dtype, meta=X[:0])
    found = passes.replicates(mean, {"source": as_rows(x, Y)}, range(20), enough=lambda results: False)
    as_expected(found, range(20))
    assert len(list(tmp_path.iterdir())) == 10


def test_rows_in_memory_go_to_the_workers_without_a_warning(two_processes):
    x = np.zeros((400_000, 4))  # above what distributed warns of
    found = passes.replicates(process, {"source": as_rows(x)}, [0])
    assert found[0]["pid"] != os.getpid()
    assert found[0]["n"] == 400_000


def places(tables, key):
    return {"aligned": np.array([array.flags.aligned for array in tables["source"].values()])}


def test_rows_that_have_travelled_lie_as_blas_needs_them(two_processes):
    """Else numpy adds in another order: other bits on the worker that did not gather them."""
    for _ in range(3):
        found = passes.replicates(places, {"source": rows(chunks=100)}, range(6))
        assert all(result["aligned"].all() for result in found.values())


def process(tables, key):
    return {"pid": os.getpid(), "n": len(tables["source"]["x"])}


def killing(tables, key, marker):
    """Kills its own worker process at one key in the middle, once."""
    if key == 13 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return mean(tables, key)


def test_a_killed_worker_changes_no_bit(two_processes, tmp_path):
    marker = tmp_path / "killed"
    data = {"source": rows(chunks=100)}
    found = passes.replicates(killing, data, range(20), enough=lambda results: False, marker=str(marker))
    assert marker.exists()
    as_expected(found, range(20))


def test_rows_that_died_with_their_worker_are_gathered_again(tmp_path):
    read, marker = tmp_path / "read", tmp_path / "killed"
    read.mkdir()
    x = da.from_array(X, chunks=(100, -1)).map_blocks(noted, str(read), dtype=X.dtype, meta=X[:0])
    alone = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**alone) as cluster, Client(cluster):
        data, never = {"source": as_rows(x, Y)}, lambda results: False
        found = passes.replicates(killing, data, range(20), enough=never, marker=str(marker))
    as_expected(found, range(20))
    assert len(list(read.iterdir())) == 20


def test_data_above_a_third_of_a_worker_is_refused(two_processes):
    limit = min(worker["memory_limit"] for worker in two_processes.scheduler_info()["workers"].values())
    n = limit // 3 // 8
    with pytest.raises(DataError, match="of a worker"):
        passes.gather({"source": as_rows(da.zeros((n, 1), chunks=(n // 10, 1)))})
