"""The engine's contract: any chunking, one compute, one task a block, no kernel call before it."""

import timeit
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import threadpoolctl
import zarr
from dask.callbacks import Callback
from dask.task_spec import Alias
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleshift.blocks import blas, graph, passes, states
from scaleshift.blocks.block import Column
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N, D, C = 5_003, 3, 4
X = RNG.normal(size=(N, D)) * 10.0 ** np.arange(D)
Y = RNG.choice(["a", "b", "c", "d"], N)
SAMPLE = RNG.choice(7, N)
LAYOUT = {"sum": (C, D), "count": (C,)}


def class_sums(block, n_groups, offset=0.0):
    codes = block.codes("label")
    sums = np.zeros((n_groups, block.x.shape[1]))
    np.add.at(sums, codes[codes >= 0], block.x[codes >= 0] + offset)
    return {"sum": sums, "count": np.bincount(codes[codes >= 0], minlength=n_groups)}


def sample_moments(block, keys):
    codes = block.codes("sample")
    sums = np.zeros((keys.size, block.x.shape[1]))
    np.add.at(sums, codes[codes >= 0], block.x[codes >= 0])
    return {"sum": sums, "start": np.full(keys.size, float(block.start >= 0))}


def row_numbers(block):
    return block.start + np.arange(len(block.x))


def chunked(rows=700, columns=311, x=X, y=Y, sample=SAMPLE, **kwargs):
    return as_rows(
        da.from_array(x, chunks=(rows, -1)),
        da.from_array(y, chunks=columns),
        da.from_array(sample, chunks=columns),
        **kwargs,
    )


def totals(rows):
    return passes.total(class_sums, rows, LAYOUT, n_groups=C)


def tasks(collection):
    (optimized,) = dask.optimize(collection)
    return sum(not isinstance(node, Alias) for node in dict(optimized.__dask_graph__()).values())


@pytest.fixture
def computes(monkeypatch):
    """How often a graph was computed."""
    calls = []
    compute = dask.compute
    monkeypatch.setattr(graph.dask, "compute", lambda *a, **k: calls.append(1) or compute(*a, **k))
    return calls


@given(st.integers(1, N), st.integers(1, N))
@settings(max_examples=15, deadline=None)
def test_any_chunking_gives_the_same_total(rows, columns):
    if rows < 20 or columns < 20:
        rows, columns = rows + 20, columns + 20
    one, many = totals(as_rows(X, Y)), totals(chunked(rows, columns))
    assert np.array_equal(one["count"], many["count"])
    np.testing.assert_allclose(many["sum"], one["sum"], rtol=1e-10)


def test_a_second_run_gives_the_same_bits():
    assert np.array_equal(totals(chunked())["sum"], totals(chunked())["sum"])


def test_folding_blocks_inside_tasks_changes_no_bit(monkeypatch):
    plain = totals(chunked(100))
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)
    monkeypatch.setattr(graph, "n_threads", lambda: 2)
    assert np.array_equal(totals(chunked(100))["sum"], plain["sum"])
    leaves = graph.on_blocks(states.first_invalid_leaf, chunked(100), 1, np.empty((0, 0), object), {"n": 1})
    assert leaves.numblocks[0] == 51
    folded = graph.fold(leaves, partial(states.merge_first, 1))
    assert folded.numblocks[0] == 13  # runs of 4 = the longest with 4 tasks or more for each of 2 threads
    assert tasks(folded) == 13


@pytest.mark.parametrize("seed", [0, 1])
def test_keyed_totals_equal_those_of_each_key_alone(seed):
    keyed = passes.total(sample_moments, chunked(), {"sum": (D,), "start": ()}, keyed="sample")
    assert keyed["key"].tolist() == list(range(7))
    for key, total in zip(keyed["key"], keyed["sum"], strict=True):
        np.testing.assert_allclose(total, X[key == SAMPLE].sum(axis=0), rtol=1e-10)


def answer(state):
    """What a worker makes of some keys' sums: small, and not additive."""
    return {"norm": np.linalg.norm(state["sum"], axis=1), "start": state["start"]}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("chunks", [None, 100, 700])
def test_a_key_is_finished_where_its_last_rows_are(chunks, in_order, monkeypatch):
    sample = np.sort(SAMPLE) if in_order else SAMPLE
    rows = as_rows(X, Y, sample) if chunks is None else chunked(chunks, sample=sample)
    finish = states.Finish(answer, {"norm": (), "start": ()}, passes.counts(rows, "sample"))
    layout = {"sum": (D,), "start": ()}

    def total():
        return passes.total(sample_moments, rows, layout, keyed="sample", finish=finish)

    found = total()
    assert found["key"].tolist() == list(range(7))
    expected = [np.linalg.norm(X[sample == key].sum(axis=0)) for key in range(7)]
    np.testing.assert_allclose(found["norm"], expected, rtol=1e-10)
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)
    monkeypatch.setattr(graph, "n_threads", lambda: 2)
    assert np.array_equal(total()["norm"], found["norm"])


def test_sums_of_finished_keys_travel_no_further():
    """Neighbouring blocks hand on the one key that both may have; all others are answers already."""
    sample = np.sort(SAMPLE)
    rows = as_rows(X, sample=sample)
    finish = states.Finish(answer, {"norm": (), "start": ()}, passes.counts(rows, "sample"))
    layout = {"sum": (D,), "start": ()}
    left, right = (
        states.finished_leaf(
            sample_moments, layout, "sample", rows.loader(X[part], sample[part], start=part.start), finish
        )
        for part in (slice(0, 2_600), slice(2_600, N))
    )
    assert left["key"].tolist() == right["key"].tolist() == [sample[2_600]]
    merged = states.merge_finished(layout, left, right, finish)
    assert merged["key"].size == 0
    assert sorted(merged["done"]) == list(range(7))


def test_a_large_shared_parameter_enters_the_graph_once(stored):
    finish = states.Finish(Heavy(np.ones(200_000)), {"total": ()}, np.array([10_000]))
    with Tasks() as seen:
        found = passes.total(one_sum, stored, {"sum": ()}, keyed="sample", finish=finish)
    assert found["total"].tolist() == [10_000 * D + 1]
    assert seen.n <= 111


def one_sum(block, keys):
    return {"sum": np.full(keys.size, block.x.sum())}


class Heavy:
    """An answer that needs a large array."""

    def __init__(self, array):
        self.array, self.nbytes = array, array.nbytes

    def __call__(self, state):
        return {"total": state["sum"] + self.array[0]}


def test_values_come_in_order_of_first_appearance_with_counts():
    y = np.array(["q", None, "b", "q", "a", "b"], object)
    for column in (Column(y), Column(da.from_array(y, chunks=2))):
        found, counts = passes.values(column)
        assert found.tolist() == ["q", "b", "a"]
        assert counts.tolist() == [2, 2, 1]


@pytest.mark.parametrize(("n", "size"), [(N, N), (N, 700), (60, 3)])
def test_pairs_of_categories_are_counted_in_one_pass_that_reads_no_x(n, size, computes):
    def unread(block):
        raise AssertionError("X was read")

    y = np.where(np.arange(n) % 5 == 0, None, Y[:n].astype(object))
    x = da.from_array(X[:n], chunks=(size, -1)).map_blocks(unread, meta=np.empty((0, 0)))
    rows = as_rows(x, da.from_array(y, chunks=size), da.from_array(SAMPLE[:n], chunks=311))
    computes.clear()
    found = passes.crossed(rows, "sample", "label")
    assert len(computes) == 1
    for sample, counts in enumerate(found.tolist()):
        of_sample = y[SAMPLE[:n] == sample].tolist()
        assert counts == [of_sample.count(label) for label in (None, *"abcd")]
    assert found.tolist() == passes.crossed(as_rows(X[:n], y, SAMPLE[:n]), "sample", "label").tolist()


def test_a_measurement_is_not_taken_for_a_label(monkeypatch):
    monkeypatch.setattr(states, "MAX_VALUES", 50)
    with pytest.raises(DataError, match="is it a measurement"):
        passes.values(Column(da.arange(100, chunks=10)))


@given(st.integers(20, N), st.integers(0, 3))
@settings(max_examples=10, deadline=None)
def test_a_sample_is_the_same_rows_for_any_chunking(rows, seed):
    n = np.array([5, 0, 300, 5_000])
    one = passes.sample(as_rows(X, Y), n, by="label", seed=seed)
    many = passes.sample(chunked(rows), n, by="label", seed=seed)
    for name, values in one.items():
        assert np.array_equal(values, many[name])
    assert np.bincount(one["code"], minlength=4).tolist() == [5, 0, 300, int((Y == "d").sum())]
    assert np.array_equal(one["x"], X[one["row"]])


def test_a_sample_by_pairs_holds_what_each_pair_has_for_any_chunking():
    label = np.where(np.arange(N) % 5 == 0, None, Y.astype(object))
    rows = as_rows(X, label, SAMPLE)
    counts = passes.crossed(rows, "sample", "label")
    wanted = np.minimum(np.arange(counts.size).reshape(counts.shape), 30)
    drawn = passes.sample(rows, wanted.ravel(), by=passes.pairs(rows, "sample", "label"))
    found = np.bincount(drawn["code"], minlength=counts.size).reshape(counts.shape)
    np.testing.assert_array_equal(found, np.minimum(wanted, counts))
    sample, code = np.divmod(drawn["code"], counts.shape[1])
    np.testing.assert_array_equal(SAMPLE[drawn["row"]], sample)
    np.testing.assert_array_equal(label[drawn["row"]], np.array([None, "a", "b", "c", "d"])[code])
    lazy = as_rows(da.from_array(X, chunks=(700, D)), label, da.from_array(SAMPLE, chunks=1_100))
    many = passes.sample(lazy, wanted.ravel(), by=passes.pairs(lazy, "sample", "label"))
    for name in ("row", "code", "x"):
        np.testing.assert_array_equal(many[name], drawn[name])


def test_a_sample_is_not_biased_towards_any_rows():
    hits = np.zeros(N)
    for seed in range(300):
        hits[passes.sample(as_rows(X), 500, seed=seed)["row"]] += 1
    expected = 300 * 500 / N
    assert abs(hits[: N // 2].mean() - expected) < 0.5
    assert 0.9 < hits.var() / (expected * (1 - 500 / N)) < 1.1


def test_map_rows_is_lazy_and_keeps_the_order():
    for rows in (as_rows(X), chunked()):
        numbers = passes.map_rows(row_numbers, rows, dtype=np.int64)
        assert isinstance(numbers, da.Array)
        assert numbers.compute().tolist() == list(range(N))


# How the graph looks -----------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    x = zarr.create_array(str(tmp_path / "x"), shape=(10_000, D), chunks=(100, D), dtype="f4")
    y = zarr.create_array(str(tmp_path / "y"), shape=(10_000,), chunks=(100,), dtype="i4")
    x[:], y[:] = 1, 2
    return as_rows(da.from_zarr(x, inline_array=True), da.from_zarr(y, inline_array=True))


class Tasks(Callback):
    """Counts the tasks that ran."""

    def _start_state(self, graph, state):
        self.n = sum(not isinstance(node, Alias) for node in graph.values())


def test_a_pass_over_100_stored_blocks_is_110_tasks_at_most(stored):
    with Tasks() as seen:
        passes.total(class_sums, stored, {"sum": (1, D), "count": (1,)}, n_groups=1)
    assert 101 <= seen.n <= 110


def test_a_large_parameter_enters_the_graph_once(stored, computes):
    with Tasks() as seen:
        result = passes.total(shifted_sum, stored, {"sum": ()}, offset=np.ones(200_000))
    assert seen.n <= 111
    assert result["sum"] == 10_000 * D + 100
    assert len(computes) == 1


def shifted_sum(block, offset):
    return {"sum": block.x.sum() + offset[0]}


@pytest.mark.parametrize("name", ["name", "dtype", "token", "x", "columns", "meta"])
def test_a_kernel_may_call_its_parameters_as_it_likes(name):
    for rows in (as_rows(X, Y), chunked()):
        found = passes.total(echo, rows, {"sum": ()}, **{name: 5})["sum"]
        assert found == 5 * (1 if rows.is_one_block else rows.x.numblocks[0])


def echo(block, **parameters):
    return {"sum": sum(parameters.values())}


def test_large_keyed_states_are_folded_too(monkeypatch):
    layout = {"sum": (D,), "start": ()}
    plain = passes.total(sample_moments, chunked(100), layout, keyed="sample")
    folds = []
    fold = graph.fold
    monkeypatch.setattr(graph, "FOLD_BYTES", 0)
    monkeypatch.setattr(graph, "fold", lambda *a: folds.append(1) or fold(*a))
    folded = passes.total(sample_moments, chunked(100), layout, keyed="sample")
    assert folds == [1]
    assert all(np.array_equal(folded[name], plain[name]) for name in plain)


def test_a_pass_adds_or_merges_not_both():
    with pytest.raises(ValueError, match="a pass adds arrays of a layout"):
        passes.total(echo, chunked(), {"sum": ()}, merge=np.add)
    with pytest.raises(ValueError, match="a pass adds arrays of a layout"):
        passes.total(echo, chunked(), None, merge=np.add, keyed="sample")


def test_blas_gets_its_threads_back_whoever_ends_last():
    controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
    with controller.limit(limits=2):
        before = [library.num_threads for library in controller.lib_controllers]
        first, second = blas.one_thread(), blas.one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert all(library.num_threads == 1 for library in controller.lib_controllers)
        second.__exit__(None, None, None)
        assert [library.num_threads for library in controller.lib_controllers] == before


def test_samples_of_different_streams_are_independent():
    rows = as_rows(X)
    drawn = [set(passes.sample(rows, 500, stream=stream)["row"]) for stream in ("a", "b")]
    assert len(drawn[0] & drawn[1]) < 100


def test_map_rows_is_one_task_a_block(stored):
    assert tasks(passes.map_rows(row_numbers, stored)) == 100
    assert tasks(passes.map_rows(row_numbers, stored, 1)) == 100


def test_one_pass_is_one_compute(computes):
    rows = chunked()
    computes.clear()
    totals(rows)
    assert len(computes) == 1


def test_building_a_graph_never_calls_a_kernel():
    calls = []
    lazy = passes.map_rows(lambda block: calls.append(1) or block.x, chunked(), D)
    assert calls == []
    lazy.compute()
    assert len(calls) == 8


def test_one_block_in_memory_is_a_plain_call(computes):
    totals(as_rows(X, Y))
    assert computes == []


def test_one_block_in_memory_costs_less_than_a_tenth_of_a_millisecond():
    rows = as_rows(X[:50], Y[:50])
    seconds = timeit.repeat(lambda: passes.total(echo, rows, {"sum": ()}), number=10, repeat=50)
    assert min(seconds) / 10 < 1e-4


def test_large_input_in_memory_is_cut_into_blocks():
    rows = as_rows(np.ones((200_000, 1), np.float32), np.zeros(200_000, int))
    assert rows.x.numblocks == (4, 1)
    assert totals_of_one(rows)["count"].tolist() == [200_000]


def totals_of_one(rows):
    return passes.total(class_sums, rows, {"sum": (1, 1), "count": (1,)}, n_groups=1)


# Rows that are not finite -------------------------------------------------------------------------------


def with_holes():
    x = X.copy()
    x[[3, 4_000, 5_000], [0, 2, 2]] = np.nan, np.inf, -np.inf
    return x


@pytest.mark.parametrize("chunks", [None, 700])
def test_invalid_rows_are_named_by_column_and_row(chunks):
    rows = as_rows(with_holes(), Y) if chunks is None else chunked(chunks, x=with_holes())
    with pytest.raises(
        DataError,
        match=r"column 0: 1, column 2: 2; first rows 3( \(sample \d\))?, 4000( \(sample \d\))?, 5000",
    ):
        totals(rows)
    with pytest.raises(DataError, match="NaN or infinite values"):
        passes.sample(rows, 3)


@pytest.mark.parametrize("chunks", [None, 700])
def test_dropped_rows_count_nowhere(chunks):
    keep = np.isfinite(with_holes()).all(axis=1)
    expected = totals(as_rows(X[keep], Y[keep]))
    kwargs = {"invalid": "drop"}
    rows = as_rows(with_holes(), Y, **kwargs) if chunks is None else chunked(chunks, x=with_holes(), **kwargs)
    found = totals(rows)
    assert np.array_equal(found["count"], expected["count"])
    np.testing.assert_allclose(found["sum"], expected["sum"], rtol=1e-10)
    assert not set(passes.sample(rows, N)["row"]) & {3, 4_000, 5_000}
    assert np.isnan(passes.map_rows(row_numbers, rows).compute()[[3, 4_000, 5_000]]).all()


def test_integer_results_of_dropped_rows_need_a_fill():
    rows = chunked(700, x=with_holes(), invalid="drop")
    with pytest.raises(TypeError, match="Cannot cast"):
        passes.map_rows(row_numbers, rows, dtype=np.int64)
    filled = passes.map_rows(row_numbers, rows, dtype=np.int64, fill=-1).compute()
    assert np.flatnonzero(filled < 0).tolist() == [3, 4_000, 5_000]


def test_map_rows_names_the_invalid_row_it_met():
    with pytest.raises(DataError, match="rows 4000"):
        passes.map_rows(row_numbers, chunked(700, x=with_holes())).blocks[5].compute()


def _shifted(block, by):
    return block._replace(x=block.x + by)


def _sum(block, weight=None):
    return {"sum": block.x.sum(axis=0), "proba": block.columns["proba"].sum(axis=0)}


@pytest.mark.parametrize("chunks", [None, 7, 50])
def test_kept_blocks_give_what_prepared_rows_give(chunks):
    X = np.random.default_rng(0).normal(size=(50, 3))
    P = np.random.default_rng(1).normal(size=(50, 2))
    given = (X, P) if chunks is None else (da.from_array(X, chunks=chunks), da.from_array(P, chunks=9))
    rows = with_numbers(as_rows(given[0]), proba=given[1])
    kept = passes.keep(rows, _shifted, row_bytes=40, by=2.0)
    found = passes.total(_sum, kept, {"sum": (3,), "proba": (2,)})
    np.testing.assert_allclose(found["sum"], (X + 2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found["proba"], P.sum(axis=0), rtol=1e-12)


def test_blocks_that_do_not_fit_are_made_again_by_every_pass(monkeypatch):
    made = []

    def counted(block):
        made.append(block.start)
        return block

    rows = with_numbers(as_rows(da.ones((50, 3), chunks=(25, 3))), proba=np.ones((50, 2)))
    kept = passes.keep(rows, counted, row_bytes=2**60)
    assert not kept.held
    for _ in range(2):
        passes.total(_sum, kept, {"sum": (3,), "proba": (2,)})
    assert sorted(made) == [0, 0, 25, 25]


def test_a_sample_of_kept_blocks_brings_columns_along():
    X = np.arange(100.0)[:, None]
    rows = with_numbers(as_rows(da.from_array(X, chunks=30)), proba=np.c_[X, -X])
    drawn = passes.sample(passes.keep(rows, _shifted, 24, by=1.0), 10, columns=("proba",))
    np.testing.assert_array_equal(drawn["x"][:, 0], drawn["row"] + 1.0)
    np.testing.assert_array_equal(drawn["proba"], np.c_[drawn["row"], -drawn["row"]])
    np.testing.assert_array_equal(drawn["row"], passes.sample(as_rows(X), 10)["row"])


def test_kept_rows_that_are_not_finite_are_refused_by_name():
    X = np.ones((50, 2))
    X[33, 1] = np.nan
    rows = with_numbers(as_rows(da.from_array(X, chunks=20)), proba=np.ones((50, 2)))
    kept = passes.keep(rows, _shifted, 24, by=0.0)
    with pytest.raises(DataError, match="column 1: 1; first rows 33"):
        passes.total(_sum, kept, {"sum": (2,), "proba": (2,)})


def test_workers_without_a_memory_limit_hold_no_blocks_and_give_the_same():
    rows = with_numbers(as_rows(da.ones((50, 3), chunks=(25, 3))), proba=np.ones((50, 2)))
    options = {"n_workers": 1, "processes": False, "memory_limit": None, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        kept = passes.keep(rows, _shifted, 40, by=1.0)
        assert not kept.held
        found = passes.total(_sum, kept, {"sum": (3,), "proba": (2,)})
    assert found["sum"].tolist() == [100.0] * 3
