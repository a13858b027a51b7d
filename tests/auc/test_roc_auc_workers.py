"""The area under the ROC curve on real workers: the same number, and no rows on the driver."""

import os
import signal
import tracemalloc
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.metrics import roc_auc_score

import scaleshift as ss
from scaleshift.blocks import ranges

N = 1_000_000


@pytest.fixture(scope="module")
def two_processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def columns(n=N):
    """Labels, scores and weights that only workers make, in 10 blocks."""
    random = da.random.default_rng(0)
    y = random.random(n, chunks=n // 10) < 0.1
    return y, random.normal(size=n, chunks=n // 10) + y, random.random(n, chunks=n // 10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"max_fpr": 0.1}, marks=pytest.mark.slow),
        pytest.param({"method": "histogram"}, marks=pytest.mark.slow),
    ],
)
def test_the_driver_never_holds_the_rows(options, two_processes, monkeypatch):
    """Eight times the rows in as many blocks and ranges: it needs no more, not half a byte a row."""
    monkeypatch.setattr(ranges, "MAX_RANGES", 4)
    monkeypatch.setattr(ranges, "RANGE_ROWS", 10_000)
    ss.roc_auc(*columns(N // 8), **options)  # what is imported now is no part of it
    peaks = []
    for n in (N // 8, N):
        tracemalloc.start()
        try:
            found = ss.roc_auc(*columns(n), **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < N / 2
    y, score, weight = dask.compute(*columns())
    expected = roc_auc_score(y, score, sample_weight=weight, max_fpr=options.get("max_fpr"))
    assert abs(float(found["auc"]) - expected) <= float(found["bound"]) + 1e-12


def test_workers_give_the_bits_of_threads(two_processes, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_ROWS", 100_000)
    lazy = columns()
    there = ss.roc_auc(*lazy)
    with dask.config.set(scheduler="threads"):
        assert there.equals(ss.roc_auc(*lazy))


def killing(block, marker, block_info=None):
    """The block; the worker that reads the eighth block kills itself."""
    if block_info[0]["chunk-location"] == (7,) and Path(marker).exists():
        Path(marker).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_killed_worker_changes_no_bit(two_processes, monkeypatch, tmp_path):
    monkeypatch.setattr(ranges, "RANGE_ROWS", 100_000)
    y, score, weight = columns()
    marker = tmp_path / "alive"
    marker.touch()
    mortal = score.map_blocks(killing, str(marker), dtype=score.dtype, meta=np.empty(0))
    found = ss.roc_auc(y, mortal, weight)
    assert not marker.exists()
    with dask.config.set(scheduler="threads"):
        assert found.equals(ss.roc_auc(y, score, weight))
