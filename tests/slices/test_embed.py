"""Embeddings by a user's function: the same for any chunks, lazy where X is, errors that name it."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.errors import DataError
from scaleshift.slices import embed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1_000, 3))


def squares(x):
    return np.column_stack([x, (x**2).sum(axis=1)])


@pytest.mark.parametrize("chunks", [1_000, 333, (1, 999), (0, 400, 0, 600)])
def test_chunks_change_nothing(chunks):
    lazy = embed(squares, da.from_array(X, chunks=(chunks, -1)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (1_000, 4)
    assert lazy.dtype == np.float32
    assert np.array_equal(lazy.compute(), squares(X).astype("f4"))


def test_what_is_in_memory_comes_out_in_memory():
    for given in (X, X.tolist(), pd.DataFrame(X), xr.DataArray(X, dims=("row", "feature"))):
        found = embed(squares, given)
        assert isinstance(found, np.ndarray)
        assert np.array_equal(found, squares(X).astype("f4"))


def test_a_study_is_embedded_lazily(tmp_path):
    ss.write_cells(ss.as_cells(X.astype("f4"), sample=np.repeat(["s1", "s2"], 500)), tmp_path / "s.zarr")
    cells = ss.open_cells(tmp_path / "s.zarr")
    lazy = embed(squares, cells, dtype="float64")
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), squares(X.astype("f4")).astype("f8"))


def test_more_rows_than_a_block_in_memory_are_cut_and_come_back_in_order():
    many = RNG.normal(size=(150_000, 1))
    sizes = []

    def noted(x):
        sizes.append(len(x))
        return 2 * x

    assert np.array_equal(embed(noted, many, dtype="f8"), 2 * many)
    assert max(sizes) < 100_000


def test_the_function_is_called_on_a_few_rows_only_where_columns_are_not_said():
    called = []

    def noted(x):
        called.append(len(x))
        return x

    source = da.from_array(X, chunks=(100, -1))
    embed(noted, source, n_columns=3)
    assert called == []
    embed(noted, source)
    assert called == [8]


def test_rows_and_embeddings_of_a_slicer_fit_together():
    target = (X[:, 0] > 0).astype(int)
    wrong = (X**2).sum(axis=1) > 6
    lazy = embed(squares, da.from_array(X, chunks=(250, -1)))
    probability = np.where(wrong, 1 - target, target).astype(float)
    slicer = ss.DominoSlicer(n_slices=1, n_mixture_components=6, random_state=0)
    slicer.fit(None, lazy, target, probability)
    inside = np.asarray(slicer.predict(None, lazy, target, probability))[:, 0] == 1
    assert wrong[inside].mean() > 2 * wrong.mean()


def one_dimension(x):
    return x[:, 0]


def too_few_rows(x):
    return x[1:]


def sums_alone(x):
    return x.sum(axis=0, keepdims=True)


def text(x):
    return np.full(x.shape, "a")


def not_finite(x):
    return np.log(np.where(x > -np.inf, np.nan, x))


def failing(x):
    raise RuntimeError("the network has no weights")


def ragged(x):
    return [[1.0], [1.0, 2.0]]


def too_large(x):
    return np.full(x.shape, 1e300)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            one_dimension,
            r"one_dimension gave an array of shape \(8,\) .*reshape a single column",
        ),
        (too_few_rows, r"too_few_rows gave 7 rows for the rows 0 to 7: expected as many as it got, 8"),
        (sums_alone, r"sums_alone gave 1 rows"),
        (text, r"text gave an array of shape .* and dtype <U1"),
        (not_finite, r"not_finite gave NaN or infinite values .* first 0, 1"),
        (failing, r"failing failed \(RuntimeError: the network has no weights\) for the rows 0 to 7"),
        (ragged, r"asarray failed|ragged"),
        (too_large, r"too_large gave NaN or infinite values \(float32\)"),
    ],
)
def test_a_function_that_gives_no_embeddings_is_named(function, message):
    with pytest.raises(DataError, match=message):
        embed(function, X)


def test_a_failure_in_a_later_block_names_its_rows():
    def picky(x):
        if len(x) > 8 and (x > 2.9).any():
            raise ValueError("too bright")
        return x

    bright = X.copy()
    bright[450] = 3.0
    lazy = embed(picky, da.from_array(np.clip(bright, -3, 3), chunks=(100, -1)))
    with pytest.raises(DataError, match=r"picky failed \(ValueError: too bright\) for the rows \d00 to \d99"):
        lazy.compute(scheduler="synchronous")


def test_columns_that_differ_between_blocks_are_told():
    lazy = embed(lambda x: x[:, : 1 + len(x) % 2], da.from_array(X[:201], chunks=(100, -1)), n_columns=1)
    with pytest.raises(DataError, match=r"gave 2 columns for the rows 200 to 200: expected 1"):
        lazy.compute()


def test_rows_that_are_not_finite_are_refused_by_their_numbers():
    bad = X.copy()
    bad[5, 1] = np.nan
    with pytest.raises(DataError, match=r"NaN or infinite values in rows 5"):
        embed(squares, bad)


def test_no_rows_have_no_columns_unless_these_are_said():
    with pytest.raises(DataError, match=r"X has no rows to call squares on: pass n_columns="):
        embed(squares, X[:0])
    assert embed(squares, X[:0], n_columns=4).shape == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_columns": 0}, "n_columns=0"),
        ({"n_columns": 2.5}, "n_columns=2.5"),
        ({"dtype": int}, "embeddings are float32 or float64"),
    ],
)
def test_arguments_without_a_meaning_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        embed(squares, X, **arguments)
    with pytest.raises(DataError, match="expected a callable"):
        embed("squares", X)


def test_a_worker_embeds_too():
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=True),
    ):
        lazy = embed(lambda x: 3 * x, da.from_array(X, chunks=(300, -1)))
        assert np.array_equal(lazy.compute(), (3 * X).astype("f4"))
