"""What cannot fit is refused before it runs, with what would."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.blocks import computing, fitting, passes, room
from scaleshift.blocks.plan import Pass, explain
from scaleshift.blocks.room import Room
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DoesNotFitError, ScaleshiftError
from scaleshift.kernels.reference import to_numpy

N, D = 400_000, 40  # 128 MB of float64
UNWATCHED = dict.fromkeys([f"distributed.worker.memory.{at}" for at in ("target", "spill", "pause")], False)


class NotRead:
    """Array-like whose blocks nobody may read."""

    def __init__(self, shape=(N, D)):
        self.shape, self.dtype, self.ndim = shape, np.dtype("f8"), len(shape)

    def __getitem__(self, index):
        raise AssertionError("a block was read")


class Read:
    """The same of blocks that are read."""

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.ndim = x, x.shape, x.dtype, x.ndim

    def __getitem__(self, index):
        return self.x[index].copy()


def read(x, chunk):
    return da.from_array(Read(x), chunks=(chunk, D), asarray=False, meta=x[:0])


def unread(chunk, n=N):
    return da.from_array(NotRead((n, D)), chunks=(chunk, D), asarray=False, meta=np.empty((0, D)))


def column_sums(block):
    return {"sum": to_numpy(block.x).sum(axis=0)}


@pytest.fixture
def small_worker():
    with (
        dask.config.set(UNWATCHED),
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, memory_limit="100MB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def small_machine(monkeypatch, n_bytes):
    monkeypatch.setattr(room, "limit", lambda: n_bytes)


# A pass ------------------------------------------------------------------------------------------------


def test_a_pass_over_blocks_that_no_worker_can_hold_is_refused_unread(small_worker):
    with pytest.raises(DoesNotFitError) as caught:
        passes.total(column_sums, as_rows(unread(N)), {"sum": (D,)})
    told = str(caught.value)
    assert told.startswith("1 block of 400,000 rows, 130 MB each, would be worked on at once by a worker")
    assert "which has 100 MB; what would fit: chunks of 38,580 rows or fewer, or 518 MB of memory" in told


def test_what_is_said_to_fit_is_not_refused(small_worker):
    room.refuse_blocks(as_rows(unread(38_580)), lambda: small_worker)


def test_a_fit_is_refused_before_anything_of_x_is_read(small_worker):
    y = np.arange(N) % 3
    for job in (
        lambda: ss.DFM(bandwidth=1.0).fit(unread(N), y),
        lambda: ss.SparseAUC(pos_label=1).fit(unread(N), y == 1),
        lambda: passes.map_rows(column_sums, as_rows(unread(N))),
        lambda: passes.keep(as_rows(unread(N)), lambda block: block, row_bytes=8),
    ):
        with pytest.raises(DoesNotFitError, match="what would fit: chunks of"):
            job()


def test_two_threads_hold_two_blocks(monkeypatch):
    small_machine(monkeypatch, 200_000_000)
    half = as_rows(unread(N // 4 * 3, 3 * N))  # 96 MB a block
    for n, refused in [(2, False), (4, True)]:
        with dask.config.set(num_workers=n):
            if refused:
                with pytest.raises(DoesNotFitError, match=r"4 blocks .* by this machine, which has 200 MB"):
                    room.refuse_blocks(half, lambda: None)
            else:
                room.refuse_blocks(half, lambda: None)


def test_states_that_cannot_be_merged_are_refused_unread(monkeypatch):
    small_machine(monkeypatch, 100_000_000)
    rows = as_rows(unread(N // 16))
    with pytest.raises(DoesNotFitError, match=r"\d+ states of 40 MB each would be held at once"):
        passes.total(column_sums, rows, {"sum": (5_000_000,)})


def test_rows_in_memory_are_not_refused(monkeypatch):
    small_machine(monkeypatch, 1_000_000)
    found = passes.total(column_sums, as_rows(np.ones((N, D), "f4")), {"sum": (D,)})
    assert found["sum"].tolist() == [N] * D


def test_workers_without_a_limit_are_trusted():
    with (
        LocalCluster(n_workers=1, processes=False, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert room.of(client).n_bytes is None
        room.refuse_blocks(as_rows(unread(N)), lambda: client)


def test_a_scheduler_is_asked_once_for_many_passes(small_worker):
    asked = []
    told = small_worker.scheduler_info
    small_worker.scheduler_info = lambda **given: asked.append(given) or told(**given)
    for _ in range(5):
        assert room.of(small_worker) == Room(100_000_000, 2, 1, "a worker")
    assert len(asked) == 1


def test_one_large_block_among_small_ones_is_not_counted_once_a_thread(monkeypatch):
    small_machine(monkeypatch, 200_000_000)
    uneven = da.from_array(NotRead(), chunks=((N // 4 * 3, *[N // 40] * 10), D), asarray=False)
    with dask.config.set(num_workers=4):
        room.refuse_blocks(as_rows(uneven), lambda: None)
        small_machine(monkeypatch, 100_000_000)
        with pytest.raises(DoesNotFitError, match=r"4 blocks of up to 300,000 rows, 107 MB in all, would"):
            room.refuse_blocks(as_rows(uneven), lambda: None)


@pytest.mark.parametrize("chosen", ["synchronous", "single-threaded"])
def test_a_scheduler_without_threads_holds_one_block(monkeypatch, chosen):
    small_machine(monkeypatch, 200_000_000)
    with dask.config.set(num_workers=4, scheduler=chosen):
        room.refuse_blocks(as_rows(unread(N // 4 * 3, 3 * N)), lambda: None)


def test_a_client_that_computes_nothing_is_not_asked(small_worker):
    with dask.config.set(scheduler="threads"):
        assert computing.client() is None
    assert computing.client() is small_worker


class Cluster:
    """Workers of any memory and threads, as a scheduler tells of them."""

    status = "running"

    def __init__(self, *workers):
        self.workers = [{"memory_limit": limit, "nthreads": n} for limit, n in workers]

    def scheduler_info(self, n_workers):
        return {"workers": dict(enumerate(self.workers))}


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([(10**9, 1), (64 * 10**9, 16)], (10**9, 1)),
        ([(10**9, 1), (8 * 10**9, 16)], (8 * 10**9, 16)),
        ([(10**9, 2), (0, 64)], (10**9, 2)),
        ([], (None, 1)),
    ],
)
def test_memory_and_threads_are_those_of_one_worker(workers, expected):
    there = Cluster(*workers)
    with dask.config.set(scheduler=there):
        found = room.of(there)
    assert (found.n_bytes, found.n_threads) == expected


def test_workers_that_have_come_since_are_asked_before_a_job_is_refused():
    there = Cluster((100_000_000, 1))
    with dask.config.set(scheduler=there):
        assert room.of(there).n_bytes == 100_000_000
        there.workers[:] = [{"memory_limit": 10**9, "nthreads": 1}]
        room.refuse_blocks(as_rows(unread(N)), computing.client)


# A plan ------------------------------------------------------------------------------------------------


def a_pass(thread_bytes, worker_bytes=0, fixed_bytes=0, state_bytes=0, merge_bytes=0):
    nothing = {"read_seconds": 0.0, "kernel_seconds": 0.0, "finish_seconds": 0.0}
    return Pass(
        "", ("X",), 8, 9, 0, None, **nothing, thread_bytes=thread_bytes, worker_bytes=worker_bytes,
        state_bytes=state_bytes, travel_bytes=0, result_bytes=0, fixed_bytes=fixed_bytes,
        merge_bytes=merge_bytes,
    )  # fmt: skip


def fit_of(*parts, n_bytes=10**9, n_threads=4, whose="a worker"):
    return fitting.fit_of(parts, Room(n_bytes, n_threads, 1, whose), block_rows=100_000)


def test_chunks_and_threads_that_are_said_to_fit_fit_exactly():
    fit = fit_of(a_pass(400_000_000, 100_000_000, 100_000_000), a_pass(50_000_000))
    assert fit.peak() == 300_000_000 + 4 * 400_000_000 + 100_000_000
    assert fit.n_threads == 1
    assert fit.peak(1) <= 10**9 < fit.peak(2)
    rows = fit.chunk_rows
    shrunk = 100_000_000 + 300_000_000 * rows / 100_000
    assert 300_000_000 + 4 * shrunk + 100_000_000 == pytest.approx(10**9, rel=1e-4)


def test_chunks_are_no_way_out_where_states_are_too_large():
    fit = fit_of(a_pass(400_000_000, 0, fixed_bytes=400_000_000))
    assert fit.chunk_rows == 0
    (problem,) = fitting.problems(fit, "", None)
    assert "what would fit: 1 thread, or 1.9 GB of memory" in problem


def test_neither_chunks_nor_threads_help_where_merging_is_too_large():
    fit = fit_of(a_pass(400_000_000, 0, merge_bytes=900_000_000))
    assert (fit.n_threads, fit.chunk_rows) == (0, 0)
    assert fit.peak(1) == 1_200_000_000
    (problem,) = fitting.problems(fit, "", None)
    assert problem.endswith("what would fit: 1.9 GB of memory")


def test_features_that_would_fit_are_told_in_numbers():
    large = a_pass(400_000_000, state_bytes=400_000_000)
    fewer = lambda share: fitting.fewer_of(share, "features", 1_000)  # noqa: E731
    problem, _ = fitting.problems(fit_of(large), "take fewer features", fewer)
    assert "a worker's 1 GB: take fewer features; what would fit: 833 features in place of 1,000" in problem
    assert "or 1.2 GB of memory" in problem


def test_a_plan_that_fits_is_given_back_and_one_that_does_not_raises(monkeypatch):
    x, y = np.random.default_rng(0).normal(size=(60_000, D)), np.arange(60_000) % 3
    lazy = read(x, 30_000)
    model = ss.DFM(ss.FourierFeatures(5_000), bandwidth=5.0)
    plan = explain(model, lazy, y)
    assert plan.check() is plan
    monkeypatch.setattr(room, "free_here", lambda: 41_000_000)
    with pytest.raises(ScaleshiftError) as caught:
        explain(model, lazy, y).check()
    told = str(caught.value)
    assert told.startswith("DFM.fit does not fit: this machine with ")
    assert "may need" in told
    assert "has 41 MB: take fewer threads, or store smaller chunks; what would fit: chunks of about" in told


def test_a_block_that_cannot_be_tried_is_refused_with_the_chunks_that_can(monkeypatch):
    monkeypatch.setattr(room, "free_here", lambda: 10 * 4 * D * 8 * 1_000)
    with pytest.raises(ScaleshiftError, match="what would fit: chunks of 10,000 rows or fewer"):
        explain(ss.DFM(bandwidth=5.0), unread(20_000), np.arange(N) % 3)
    explain(ss.DFM(bandwidth=5.0), read(np.ones((N // 10, D)), 10_000), np.arange(N // 10) % 3)


def test_what_is_said_to_fit_does():
    """The chunks that a plan names are planned again, and fit."""
    x, y = np.random.default_rng(0).normal(size=(200_000, D)), np.arange(200_000) % 3
    plan = explain(ss.DFM(bandwidth=5.0, n_bootstrap=0), read(x, 100_000), y)
    limit = int(0.6 * (plan.room.n_threads * plan.thread_bytes + plan.worker_bytes))
    tight = fitting.fit_of(plan.passes, Room(limit, plan.room.n_threads), plan.block_rows)
    assert fitting.problems(tight, "", None)
    again = explain(ss.DFM(bandwidth=5.0, n_bootstrap=0), read(x, tight.chunk_rows), y)
    assert again.room.n_threads * again.thread_bytes + again.worker_bytes <= 1.1 * limit
