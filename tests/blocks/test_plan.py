"""What a plan adds up, whatever is computed."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from scaleshift.blocks import planner, probe
from scaleshift.blocks.plan import explain
from scaleshift.blocks.planner import Planner, States
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.sizes import duration, size
from scaleshift.blocks.states import Finish
from scaleshift.errors import ChunkError

N, D, CHUNK = 10_000, 4, 1_000
X = np.random.default_rng(0).normal(size=(N, D))
Y = np.arange(N) % 5


def class_sums(block, weight):
    sums = np.zeros((5, D))
    np.add.at(sums, block.columns["label"], block.x)
    return {"sum": sums * weight.sum()}


def key_sums(block, keys):
    sums = np.zeros((len(keys), D))
    np.add.at(sums, block.columns["sample"], block.x)
    return {"sum": sums}


def slow(arrays):
    norms = [np.linalg.norm(np.outer(one, np.ones(20_000)), axis=0).max() for one in arrays["sum"]]
    return {"norm": np.array(norms)}


class Mean(BaseEstimator):
    """An estimator of which the plan knows nothing."""

    def fit(self, X, y):
        return self

    def _plan(self, rows):
        told = Planner("Mean.fit", rows, "take a smaller mean")
        told.total("class sums", rows.only("label"), class_sums, {"sum": (5, D)}, weight=np.ones(3))
        return told.plan()


def lazy(x=X, chunk=CHUNK):
    return da.from_array(Unread(x), chunks=(chunk, D), asarray=False, meta=x[:0])


class Unread:
    """Array-like that is not in memory, as a store is not."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, index):
        return self.array[index].copy()


def test_any_estimator_can_be_explained():
    plan = explain(Mean(), lazy(), Y)
    (part,) = plan.passes
    assert (part.what, part.over) == ("class sums", ("X", "label"))
    assert (part.n_blocks, part.n_tasks) == (10, 11)
    assert part.n_bytes == X.nbytes  # the labels are in memory
    assert part.result_bytes == 5 * D * 8
    assert str(plan).startswith("Mean.fit: 1 pass over X\n")


def test_other_estimators_are_refused():
    with pytest.raises(TypeError, match="BaseEstimator cannot be explained"):
        explain(BaseEstimator(), X)


def test_seconds_are_those_of_one_block_times_the_blocks():
    told = Planner("", as_rows(lazy(), Y), "")
    told.total("", told.rows.only("label"), class_sums, {"sum": (5, D)}, weight=np.ones(3))
    (part,) = told.passes
    (read, _) = told.block.read(told.rows.only("label"))
    assert part.read_seconds == pytest.approx(10 * read.seconds)
    assert told.block.n_rows == CHUNK


def test_the_largest_block_is_the_one_that_is_read():
    x = lazy().rechunk(((500, 3_000, 6_500), (D,)))
    block = probe.OneBlock(as_rows(x, Y))
    assert (block.number, block.start, block.n_rows) == (2, 3_500, 6_500)
    assert np.array_equal(block.x(as_rows(x, Y)).result, X[3_500:])


def test_time_is_shared_by_threads_in_whole_rounds():
    plan = explain(Mean(), lazy(), Y)
    seconds = plan.cpu_seconds / 10
    for threads, rounds in [(1, 10), (4, 3), (10, 1), (64, 1)]:
        shared = planner.replace(plan, n_threads=threads)
        assert shared.elapsed_seconds == pytest.approx(rounds * seconds)


def test_finishing_is_a_cost_of_each_key():
    sample = np.repeat(np.arange(20), N // 20)
    rows = as_rows(lazy(), None, sample)
    finish = Finish(slow, {"norm": ()}, np.bincount(sample))
    told = Planner("", rows, "")
    told.total("", rows.only("sample"), key_sums, {"sum": (D,)}, keyed="sample", finish=finish)
    (part,) = told.passes
    alone = probe.measured(lambda: slow({"sum": np.ones((1, D))}))
    assert part.finish_seconds == pytest.approx(20 * alone.seconds, rel=2)
    assert part.result_bytes == 20 * 8
    assert part.state_bytes == 0  # every sample lies in one block, so no sums travel


def test_states_of_keys_that_lie_in_several_blocks_travel():
    sample = np.arange(N) % 20
    rows = as_rows(lazy(), None, sample)
    finish = Finish(slow, {"norm": ()}, np.bincount(sample))
    told = Planner("", rows, "")
    told.total("", rows.only("sample"), key_sums, {"sum": (D,)}, keyed="sample", finish=finish)
    (part,) = told.passes
    assert part.state_bytes == 20 * D * 8
    assert part.travel_bytes == 10 * part.state_bytes


def test_states_travel_up_every_level_of_the_tree():
    same = States(waiting=100, largest=100, result=100)
    assert planner._travelling(256, same) == (256 + 16) * 100
    assert planner._merging(256, same) == (16 + 8 + 4) * 100
    growing = States(waiting=100, largest=1_000, result=1_000)
    assert planner._travelling(32, growing) == 32 * 100 + 2 * 1_000
    assert planner._merging(1, same) == planner._travelling(1, same) == 0


def test_a_worker_holds_states_that_wait_or_merge_beside_its_threads():
    same = States(waiting=100, largest=100, result=100)
    alone = planner.room.Room(None, 2)
    assert planner._beside(8, same, 0, alone) == 8 * 100 + 6 * 100  # blocks are done when eight states merge
    assert planner._beside(8, same, 300, alone) == 8 * 100 + 6 * 100 - 2 * 300
    assert planner._beside(8, same, 3_000, alone) == 6 * 100  # those of blocks under way are the threads'
    assert planner._beside(32, same, 0, alone) == 28 * 100 + 2 * 100
    assert planner._beside(32, same, 300, alone) == 28 * 100 + 2 * 100 - 300  # one thread merges
    assert planner._beside(1, same, 300, alone) == 0


def test_memory_of_a_call_counts_what_it_leaves_behind():
    found = probe.measured(lambda: [np.ones(100_000), np.ones(200_000)][0])
    assert 2_400_000 <= found.n_bytes < 2_500_000
    assert found.result.nbytes == 800_000


def test_an_array_in_memory_is_told_from_one_that_is_read():
    assert not planner._is_read(X)
    assert not planner._is_read(da.from_array(X, chunks=(CHUNK, D)))
    assert not planner._is_read(as_rows(lazy()).columns["sample"].values)
    assert planner._is_read(lazy())
    assert planner._is_read(lazy().rechunk((3_000, D)))
    assert planner._is_read(da.map_blocks(np.negative, lazy(), dtype=float))


def test_rows_without_blocks_cost_nothing():
    plan = explain(Mean(), np.empty((0, D)), np.empty(0, int))
    assert plan.n_bytes == 0
    assert "0 rows x 4 columns in 1 block" in str(plan)


def test_sizes_and_times_change_their_unit_before_they_round_to_a_thousand():
    assert [size(n) for n in (0, 999, 999_700, 1_260_000, 5e13)] == [
        "0 B",
        "999 B",
        "1 MB",
        "1.3 MB",
        "50 TB",
    ]
    assert [duration(s) for s in (0, 0.5, 119, 121, 7_100, 7_300)] == [
        "0 s", "0.5 s", "119 s", "2 min", "118 min", "2 h"
    ]  # fmt: skip


def test_a_block_that_does_not_fit_into_memory_is_refused_unread():
    huge = as_rows(da.zeros((10**12, 3), chunks=(10**12, 3), dtype="f4"))
    with pytest.raises(ChunkError, match=r"one block of 1000000000000 rows takes 12000\.0 GB"):
        probe.OneBlock(huge)
