"""A worker that is killed in mid pass, or whose blocks travel, changes no bit of any kind of pass or fit."""

import os
import signal
import tempfile
import warnings
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from sklearn.exceptions import ConvergenceWarning

import scaleshift as ss
from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows
from scaleshift.blocks.states import Finish

RNG = np.random.default_rng(0)
N, N_BLOCKS, WIDTH = 6_000, 20, 9
X = (RNG.normal(size=(N, WIDTH)) * 10.0 ** RNG.integers(-2, 3, WIDTH)).astype("f4")
Y = RNG.choice(["a", "b"], N, p=[0.2, 0.8])
X[Y == "a", 0] += 1
SAMPLE = np.repeat([f"s{i}" for i in range(6)], N // 6)
CODES = np.repeat(np.arange(6), N // 6)
ON_THREADS = {"scheduler": "threads", "num_workers": 2}


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def two_processes():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def read(block, folder, deadly):
    """The block, and a file that says that it was read; the worker that reads the `deadly`-th one dies."""
    os.close(tempfile.mkstemp(dir=folder, prefix="read")[0])
    if len(list(Path(folder).glob("read*"))) >= deadly:
        try:
            os.close(os.open(Path(folder) / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def mortal(folder, deadly=7):
    """X, of which one read kills its worker."""
    lazy = da.from_array(X, chunks=(N // N_BLOCKS, -1))
    return lazy.map_blocks(read, str(folder), deadly, dtype=X.dtype, meta=X[:0])


def here():
    """X for the threads of this process, where nothing is deadly."""
    return da.from_array(X, chunks=(N // N_BLOCKS, -1))


def products(block):
    """Sums whose bits change where an array is not aligned."""
    return {"gram": block.x.T @ block.x, "sum": block.x.sum(axis=0), "all": np.cos(block.x).sum()}


LAYOUT = {"gram": (WIDTH, WIDTH), "sum": (WIDTH,), "all": ()}


def keyed(block, keys):
    sums = np.zeros((len(keys), WIDTH))
    np.add.at(sums, block.columns["sample"], block.x)
    return {"sum": sums}


def squares(sums):
    return {"square": np.einsum("ki,kj->kij", sums["sum"], sums["sum"])}


FINISH = Finish(squares, {"square": (WIDTH, WIDTH)}, np.full(6, N // 6))


def drawn_mean(drawn):
    return {"gram": drawn["x"].T @ drawn["x"]}


DRAWN = Finish(drawn_mean, {"gram": (WIDTH, WIDTH)}, np.full(6, N // 6))


def stepped(block, state, rate):
    w = state["w"] + rate * (block.x.T @ (block.x @ state["w"]) + 1)
    return {"w": w / np.linalg.norm(w)}


def refit(tables, key):
    chosen = np.random.default_rng(key).integers(0, N, 500)
    x = tables["source"]["x"][chosen]
    return {"coef": x.T @ x, "mean": tables["source"]["x"].mean(axis=0)}


def scaled(block, by):
    return block._replace(x=block.x * by)


def scores(block, weights):
    return block.x @ weights


PASSES = {
    "total": lambda x: passes.total(products, as_rows(x), LAYOUT),
    "keyed": lambda x: passes.total(keyed, as_rows(x, sample=SAMPLE), {"sum": (WIDTH,)}, keyed="sample"),
    "finished": lambda x: passes.total(
        keyed, as_rows(x, sample=SAMPLE), {"sum": (WIDTH,)}, keyed="sample", finish=FINISH
    ),
    "sample": lambda x: passes.sample(as_rows(x, Y), 100, by="label", seed=3),
    "drawn": lambda x: passes.sample(as_rows(x, sample=SAMPLE), 50, by="sample", finish=DRAWN),
    "map_rows": lambda x: {
        "score": passes.map_rows(scores, as_rows(x), weights=np.linspace(0, 1, WIDTH)).compute()
    },
    "keep": lambda x: passes.total(
        products, passes.keep(as_rows(x), scaled, 4 * WIDTH, by=np.float32(3)), LAYOUT
    ),
    "chain": lambda x: passes.chain(
        stepped, {"w": np.ones(WIDTH)}, as_rows(x), np.arange(12), block_size=500, rate=0.1
    ),
    "replicates": lambda x: {
        f"{name} {key}": value
        for key, found in passes.replicates(refit, {"source": as_rows(x)}, range(4)).items()
        for name, value in found.items()
    },
}


@pytest.mark.parametrize(
    "name",
    [
        slow(name) if name in ("total", "keyed", "sample", "map_rows", "replicates") else name
        for name in PASSES
    ],
)
def test_a_pass_whose_worker_is_killed_gives_the_bits_of_threads(two_processes, tmp_path, name):
    found = PASSES[name](mortal(tmp_path))
    assert (tmp_path / "killed").exists()
    with dask.config.set(ON_THREADS):
        expected = PASSES[name](here())
    assert_same_bits(found, expected)


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    different = [name for name in found if found[name].tobytes() != expected[name].tobytes()]
    assert not different


def auc(x, solver):
    model = ss.SparseAUC(k=3, solver=solver, random_state=0, cv=3).fit(x, Y == "a")
    return {"coef": model.coef_, "intercept": model.intercept_, "objective": model.objective_}


def domino(x):
    slicer = ss.DominoSlicer(2, n_pca_components=4, n_mixture_components=4, max_iter=5, tol=0, random_state=0)
    y = da.from_array((Y == "a").astype(int), chunks=N // N_BLOCKS)
    p = da.from_array(RNG_SCORES, chunks=N // N_BLOCKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        slicer.fit(embeddings=x, targets=y, pred_probs=p)
    return {name: getattr(slicer, name) for name in ("weights_", "means_", "covariances_", "lower_bounds_")}


def spotlight(x):
    losses = da.from_array(RNG_SCORES, chunks=N // N_BLOCKS)
    slicer = ss.SpotlightSlicer(0.1, num_steps=6, n_slices=2, random_state=0)
    slicer.fit(embeddings=x, losses=losses)
    return {
        f"{name} {i}": np.asarray(values)
        for name in ("means_", "precisions_", "objective_traces_")
        for i, values in enumerate(getattr(slicer, name))
    }


def error(x):
    model = ss.PredictionError("ols", n_bootstrap=10, random_state=0)
    result = model.fit(x, X[:, 1].astype("f8") + RNG_SCORES).predict(x)
    return {name: result[name].values for name in ("error", "error_drawn")}


def quantified(x):
    model = ss.DFM("landmarks", n_bootstrap=20, random_state=0, bandwidth=100.0)
    result = model.fit(x, Y).predict(x, sample=SAMPLE)
    return {name: result[name].values for name in ("proportion", "proportion_low", "proportion_high")}


RNG_SCORES = np.random.default_rng(1).random(N)
FITS = {
    "auc by moments": lambda x: auc(x, "moments"),
    "auc by sht": lambda x: auc(x, "sht"),
    "auc by screen": lambda x: auc(x, "screen"),
    "domino": domino,
    "spotlight": spotlight,
    "error": error,
    "proportions": quantified,
}


@pytest.mark.parametrize("name", [*map(slow, FITS)])
def test_a_fit_whose_worker_is_killed_gives_the_bits_of_threads(two_processes, tmp_path, name):
    found = FITS[name](mortal(tmp_path, deadly=N_BLOCKS + 3))
    assert (tmp_path / "killed").exists()
    with dask.config.set(ON_THREADS):
        expected = FITS[name](here())
    assert_same_bits(found, expected)


def test_kept_blocks_that_die_with_their_worker_are_read_again(two_processes, tmp_path):
    kept = passes.keep(as_rows(mortal(tmp_path, deadly=10**9)), scaled, 4 * WIDTH, by=np.float32(3))
    assert kept.held
    before = passes.total(products, kept, LAYOUT)
    assert len(list(tmp_path.glob("read*"))) == N_BLOCKS
    holders = [address for holds in two_processes.who_has(kept.x).values() for address in holds]
    pids = two_processes.run(os.getpid, workers=holders[:1])
    os.kill(*pids.values(), signal.SIGKILL)
    assert_same_bits(passes.total(products, kept, LAYOUT), before)
    assert len(list(tmp_path.glob("read*"))) > N_BLOCKS
    with dask.config.set(ON_THREADS):
        kept_here = passes.keep(as_rows(here()), scaled, 4 * WIDTH, by=np.float32(3))
        assert_same_bits(before, passes.total(products, kept_here, LAYOUT))


@pytest.mark.parametrize("name", ["total", "keep", "chain"])
def test_persisted_blocks_that_travel_give_the_same_bits(two_processes, name):
    """What has come from another worker lies at any byte: it must be summed as what lies well."""
    two_processes.wait_for_workers(2, timeout=60)
    one, other = list(two_processes.nthreads())
    x = here().astype("f8")
    on_one = two_processes.persist(x, workers=[one], allow_other_workers=False)
    travelled = on_one.map_blocks(as_it_is, dtype=x.dtype, meta=X[:0].astype("f8"))
    on_other = two_processes.persist(travelled, workers=[other], allow_other_workers=False)
    wait(on_other)
    found = PASSES[name](on_other)
    with dask.config.set(ON_THREADS):
        expected = PASSES[name](x)
    assert_same_bits(found, expected)


def as_it_is(block):
    return block


def weighted(block, weights):
    return {"gram": weights.T @ weights, "cos": np.cos(weights).sum(axis=0)}


def test_a_large_parameter_lies_well_on_every_worker(two_processes):
    weights = np.random.default_rng(5).normal(size=(40_000, WIDTH))
    layout = {"gram": (WIDTH, WIDTH), "cos": (WIDTH,)}
    found = passes.total(weighted, as_rows(here()), layout, weights=weights)
    with dask.config.set(ON_THREADS):
        expected = passes.total(weighted, as_rows(here()), layout, weights=weights)
    assert_same_bits(found, expected)


def test_results_lie_well_on_the_driver(two_processes, tmp_path):
    """Small solves after a pass give the bits that they give without a cluster."""
    found = passes.total(products, as_rows(mortal(tmp_path, deadly=10**9)), {"all": (), **LAYOUT})
    assert all(array.flags.aligned for array in found.values())
