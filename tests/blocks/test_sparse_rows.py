"""Sparse rows give what the same rows give when they are dense, whatever their format and chunks."""

import anndata
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from dask.sizeof import sizeof
from dask.task_spec import Alias
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator

import scaleshift as ss
from scaleshift.blocks import folds, graph, passes, rows, states
from scaleshift.blocks.planner import Planner
from scaleshift.blocks.rows import as_rows, first_rows, with_numbers
from scaleshift.blocks.sparse_rows import nbytes
from scaleshift.errors import DataError
from scaleshift.kernels import dispatch

RNG = np.random.default_rng(0)
N, D = 60, 6
DENSE = RNG.integers(1, 100, (N, D)) * (RNG.random((N, D)) < 0.3)  # whole numbers: sums are exact
DENSE[10:20] = 0  # a block may hold no value
Y = RNG.choice(["a", "b", "c"], N)
SAMPLE = RNG.choice(4, N)
NAMES = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
FORMATS = [getattr(sparse, f"{name}_{kind}") for name in NAMES for kind in ("array", "matrix")]
CHUNKS = [(60,), (7,) * 8 + (4,), (0, 10, 10, 0, 40, 0)]


def kernel(block):
    codes = block.codes("label")
    return {"moments": dispatch.moment_sums(block.x, codes, 3), "n": block.valid.sum()}


def total(found):
    return passes.total(kernel, found, {"moments": (3, 2, found.n_markers), "n": ()})


def lazy(dense, chunks, kind=sparse.csr_array):
    """A Dask array of sparse blocks, as its meta says; `kind` may have no sparse meta of its own."""
    blocks = da.from_array(dense, chunks=(chunks, -1))
    return da.map_blocks(kind, blocks, dtype=dense.dtype, meta=sparse.csr_array((0, 0), dtype=dense.dtype))


def with_holes():
    dense = DENSE.astype(float)
    dense[3, 0], dense[41, 2], dense[41, 4], dense[55, 2] = np.nan, np.inf, -np.inf, np.nan
    return dense


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def tasks(collection):
    (optimized,) = dask.optimize(collection)
    return sum(not isinstance(node, Alias) for node in dict(optimized.__dask_graph__()).values())


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_every_format_gives_the_sums_of_dense_rows(kind, dtype):
    dense = DENSE.astype(dtype)
    found = as_rows(kind(dense), Y, sparse=True)
    assert type(found.x) is sparse.csr_array
    assert found.x.dtype == (np.float64 if dtype in ("f8", "i4") else np.float32)
    assert found.is_sparse
    assert found.is_one_block
    same(total(found), total(as_rows(dense, Y)))


@pytest.mark.parametrize("chunks", CHUNKS, ids=["one", "many", "empty ones"])
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_every_format_of_blocks_gives_the_sums_of_dense_rows(kind, chunks):
    found = as_rows(lazy(DENSE, chunks, kind), Y, sparse=True)
    assert found.x.chunks == (chunks, (D,))
    assert type(found.x._meta) is sparse.csr_array
    assert {type(part) for part in dask.compute(*found.x.to_delayed().ravel())} == {sparse.csr_array}
    same(total(found), total(as_rows(DENSE, Y)))


@given(st.lists(st.integers(0, 25), min_size=1, max_size=8), st.integers(1, N))
@settings(max_examples=15, deadline=None)
def test_any_chunking_gives_the_same(sizes, columns):
    sizes = np.diff(np.clip(np.cumsum([0, *sizes]), 0, N)).tolist()
    chunks = (*sizes, N - sum(sizes))
    found = as_rows(lazy(DENSE, chunks), da.from_array(Y, chunks=columns), sparse=True)
    same(total(found), total(as_rows(DENSE, Y)))


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_unknown_chunks_are_counted_and_chunks_along_the_markers_merged(kind):
    known = da.from_array(DENSE, chunks=(7, 2))
    unknown = known[da.ones(N, chunks=known.chunks[0], dtype=bool)]
    X = da.map_blocks(kind, unknown, dtype=DENSE.dtype, meta=sparse.csr_array((0, 0)))
    with pytest.warns(UserWarning, match="3 chunks along the markers"):
        found = as_rows(X, Y, sparse=True)
    assert found.x.chunks == ((7,) * 8 + (4,), (D,))
    same(total(found), total(as_rows(DENSE, Y)))


def test_dense_blocks_among_sparse_ones_become_sparse():
    found = as_rows(lazy(DENSE, CHUNKS[1], lambda block: block), Y, sparse=True)
    same(total(found), total(as_rows(DENSE, Y)))


def test_a_block_in_a_pass_is_one_task():
    found = as_rows(lazy(DENSE, CHUNKS[1]), sparse=True)
    leaves = graph.on_blocks(states.first_invalid_leaf, found, 1, np.empty((0, 0), object), {"n": 1})
    dense = as_rows(da.from_array(DENSE, chunks=(CHUNKS[1], -1)))
    assert tasks(leaves) == tasks(
        graph.on_blocks(states.first_invalid_leaf, dense, 1, np.empty((0, 0), object), {"n": 1})
    )


def test_repeated_unsorted_and_explicit_zero_values_count_once_and_stay_as_given():
    row, column = np.nonzero(np.ones((N, D)))
    order = RNG.permutation(2 * row.size)
    value = np.concatenate([DENSE[row, column] - 2.0, np.full(row.size, 2.0)])[order]
    at = (np.tile(row, 2)[order], np.tile(column, 2)[order])
    repeated = sparse.coo_array((value, at), shape=(N, D))
    ends = np.arange(N + 1) * 2 * D
    by_row = np.argsort(at[0], kind="stable")
    unsorted = sparse.csr_array((value[by_row], at[1][by_row], ends), shape=(N, D))
    for part in (unsorted.data, unsorted.indices, unsorted.indptr):
        part.flags.writeable = False  # as on a worker
    given = unsorted.indices.copy()
    expected = total(as_rows(DENSE, Y))
    for X in (repeated, unsorted, da.from_array(unsorted, chunks=(7, -1))):
        found = as_rows(X, Y, sparse=True)
        same(total(found), expected)
    assert np.array_equal(unsorted.indices, given)
    assert repeated.nnz == 2 * row.size


def test_rows_in_memory_are_cut_into_blocks(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 8)
    found = as_rows(sparse.csr_matrix(DENSE), Y, sparse=True)
    assert found.x.chunks[0] == (8,) * 7 + (4,)
    assert found.in_memory
    same(total(found), total(as_rows(DENSE, Y)))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_annotated_data_bring_their_sparse_rows_and_names(kind):
    names = list("uvwxyz")
    adata = anndata.AnnData(kind(DENSE.astype("f4")), var=pd.DataFrame(index=names))
    order = [3, 1, 5]
    markers = tuple(names[i] for i in order)
    for part, X in ((slice(None), adata), (slice(5, 50), adata[5:50])):  # a view has a class of its own
        found = as_rows(X, Y[part], sparse=True).matched(markers, 3)
        expected = as_rows(np.asarray(DENSE[part][:, order]), Y[part])
        assert (found.markers, found.n_markers) == (markers, 3)
        same(total(found), total(expected))
        block = found.loader(found.x, *found.arrays, start=0)
        assert block.x.has_sorted_indices
        assert np.array_equal(block.x.toarray(), DENSE[part][:, order])


def test_annotated_data_on_disk_are_named(tmp_path):
    anndata.AnnData(sparse.csr_matrix(DENSE.astype("f4"))).write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    with pytest.raises(DataError, match=r"sparse and on disk .*X\.to_memory\(\).*read_elem_lazy"):
        as_rows(backed, sparse=True)
    backed.file.close()


@pytest.mark.parametrize("chunks", [None, *CHUNKS], ids=["memory", "one", "many", "empty ones"])
def test_rows_that_are_not_finite_give_the_message_of_dense_rows(chunks):
    dense = with_holes()
    X = sparse.csr_array(dense) if chunks is None else lazy(dense, chunks)
    with pytest.raises(DataError) as expected:
        total(as_rows(dense, Y, SAMPLE))
    with pytest.raises(DataError) as found:
        total(as_rows(X, Y, SAMPLE, sparse=True))
    assert str(found.value) == str(expected.value)
    assert "column 0: 1, column 2: 2, column 4: 1; first rows 3 (sample" in str(found.value)


def invalid_kernel(block):
    return {"by_column": block.invalid_by_column, "n": (~block.valid).sum(), "sum": block.x.sum(axis=0)}


@pytest.mark.parametrize("take", [None, ("f", "c", "a")])
@pytest.mark.parametrize("chunks", [None, *CHUNKS], ids=["memory", "one", "many", "empty ones"])
def test_rows_that_are_not_finite_are_dropped_and_counted(chunks, take):
    dense = with_holes()
    X = sparse.csr_array(dense) if chunks is None else lazy(dense, chunks)
    given = X.copy()
    answers = []
    for table, sparse_too in ((X, True), (dense, False)):
        found = as_rows(table, Y, invalid="drop", sparse=sparse_too)
        if take:
            found = rows.replace(found, markers=tuple("abcdef")).matched(take, 3)
        d = found.n_markers
        layout = {"by_column": (d,), "n": (), "sum": (d,)}
        answers.append({**total(found), **passes.total(invalid_kernel, found, layout)})
    same(*answers)
    assert answers[0]["n"] == 3
    if chunks is None:
        assert np.array_equal(X.toarray(), given.toarray(), equal_nan=True)  # the user's stay as they are


def test_finite_values_whose_sum_overflows_are_valid():
    large = sparse.csr_array(np.full((3, 2), 3e38, np.float32))
    found = as_rows(large, sparse=True)
    block = found.loader(found.x, *found.arrays, start=0)
    assert block.valid.all()
    assert not block.invalid_by_column.any()


@pytest.mark.parametrize("chunks", [None, *CHUNKS], ids=["memory", "one", "many", "empty ones"])
def test_draws_folds_and_results_by_row_are_those_of_dense_rows(chunks):
    dense = with_holes()
    X = sparse.csr_array(dense) if chunks is None else lazy(dense, chunks)
    found = as_rows(X, Y, SAMPLE, invalid="drop", sparse=True)
    expected = as_rows(dense, Y, SAMPLE, invalid="drop")
    for by in (None, "label"):
        drawn = passes.sample(found, 5, by, seed=1)
        assert isinstance(drawn["x"], np.ndarray)
        same(drawn, passes.sample(expected, 5, by, seed=1))
    weights = np.arange(1.0, D + 1)
    by_row = [passes.map_rows(_score, part, weights=weights).compute() for part in (found, expected)]
    np.testing.assert_array_equal(*by_row)
    assert np.isnan(by_row[0]).sum() == 3
    keyed = [passes.total(_by_key, r, {"sum": (2, D)}, keyed="sample") for r in (found, expected)]
    same(*keyed)
    divided = [folds.divide(part, "label", 3, seed=0, stream="folds") for part in (found, expected)]
    codes = np.unique(Y, return_inverse=True)[1]
    assert np.array_equal(*(part(0, codes[: (chunks or [N])[0]]) for part in divided))


def _score(block, weights):
    return block.x @ weights


def _by_key(block, keys):
    return {"sum": dispatch.moment_sums(block.x, block.codes("sample"), len(keys))}


def _doubled(block, by):
    return block._replace(x=by * block.x)


def test_kept_blocks_are_sparse():
    for found in (
        as_rows(sparse.csr_array(DENSE), Y, sparse=True),
        as_rows(lazy(DENSE, (20, 40)), Y, sparse=True),
    ):
        kept = passes.keep(found, _doubled, 8 * D, by=2.0)
        assert kept.held
        result = passes.total(kernel, kept, {"moments": (3, 2, D), "n": ()})
        np.testing.assert_array_equal(result["moments"][:, 0], 2 * total(as_rows(DENSE, Y))["moments"][:, 0])
    assert sizeof(sparse.csr_array(DENSE.astype(float))) >= nbytes(sparse.csr_array(DENSE.astype(float)))


def test_parts_of_a_block_and_first_rows_are_those_of_dense_rows():
    found, expected = as_rows(sparse.csc_array(DENSE), Y, sparse=True), as_rows(DENSE, Y)
    blocks = [part.loader(part.x, *part.arrays, start=100) for part in (found, expected)]
    for chosen in (slice(None, 7), slice(5, 30), slice(58, None), slice(4, 4)):
        a, b = (block.rows(chosen) for block in blocks)
        assert np.array_equal(a.x.toarray(), b.x)
        assert a.start == b.start
        assert np.array_equal(a.columns["label"], b.columns["label"])
    dense = with_holes()
    for X in (sparse.csr_array(dense), lazy(dense, CHUNKS[2])):
        few = first_rows(as_rows(X, sparse=True), 5)
        assert isinstance(few, np.ndarray)
        np.testing.assert_array_equal(few, first_rows(as_rows(dense), 5))


def test_columns_beside_sparse_rows_may_be_lazy():
    proba = RNG.random((N, 2))
    found = with_numbers(
        as_rows(sparse.csr_array(DENSE), sparse=True), proba=da.from_array(proba, chunks=(9, 2))
    )
    result = passes.total(_beside, found, {"sum": (D,), "proba": (2,)})
    np.testing.assert_allclose(result["proba"], proba.sum(axis=0))
    np.testing.assert_array_equal(result["sum"], DENSE.sum(axis=0))
    found = as_rows(sparse.csr_array(DENSE), da.from_array(Y, chunks=9), sparse=True).only("label")
    same(total(found), total(as_rows(DENSE, Y)))


def _beside(block):
    return {"sum": block.x.sum(axis=0), "proba": block.columns["proba"].sum(axis=0)}


def test_dense_rows_stay_dense_where_sparse_ones_are_taken():
    for X in (DENSE, da.from_array(DENSE, chunks=(7, -1)), pd.DataFrame(DENSE)):
        found = as_rows(X, Y, sparse=True)
        assert not found.is_sparse
        assert total(found)["n"] == N


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.csr_array], ids=["coo_matrix", "csr_array"])
@pytest.mark.parametrize("sparse_too", [False, True])
def test_sparse_blocks_of_an_array_that_says_it_is_dense_are_refused(kind, sparse_too):
    X = da.map_blocks(kind, da.from_array(DENSE, chunks=(7, -1)), dtype=float, meta=np.empty((0, 0)))
    message = rf"a block of X is sparse \({kind.__name__}\).*block\.toarray\(\).*meta=scipy\.sparse"
    found = as_rows(X, Y, sparse=sparse_too)
    with pytest.raises(DataError, match=message):
        total(found)
    with pytest.raises(DataError, match=message):
        ss.explain(Mean(), X, Y)
    told = da.map_blocks(sparse.csr_array, X, meta=sparse.csr_array((0, 0)))  # the way out
    same(total(as_rows(told, Y, sparse=True)), total(as_rows(DENSE, Y)))


@pytest.mark.parametrize(
    ("X", "name"),
    [
        (sparse.csr_array(DENSE), "csr_array"),
        (sparse.coo_matrix(DENSE), "coo_matrix"),
        (anndata.AnnData(sparse.csr_matrix(DENSE.astype("f4"))), "csr_matrix"),
        (lazy(DENSE, CHUNKS[1]), "Array"),
    ],
    ids=["csr", "coo", "anndata", "dask"],
)
def test_who_does_not_ask_for_sparse_rows_gets_none(X, name):
    message = rf"X is sparse \({name}\): make it dense first, with X\.toarray\(\)"
    for call in (as_rows, ss.DFM().fit, lambda X, y: ss.explain(ss.DFM(), X, y)):
        with pytest.raises(DataError, match=message):
            call(X, Y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.csr_array(DENSE.astype(complex)), "X has dtype complex128"),
        (sparse.coo_array(np.arange(3)), r"X has 1 dimension\(s\)"),
        (sparse.csr_array((3, 0)), "X has no columns"),
    ],
)
def test_odd_sparse_arrays_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        as_rows(X, sparse=True)


def test_arrays_of_the_package_sparse_are_refused_with_the_way_out():
    package = pytest.importorskip("sparse")
    one = package.COO.from_numpy(DENSE)
    many = da.from_array(DENSE, chunks=(7, -1)).map_blocks(package.COO.from_numpy)
    for X, call in ((one, "X."), (many, r"X\.map_blocks\(lambda block: block\.")):
        with pytest.raises(DataError, match=rf"package sparse\).*{call}tocsr\(\)"):
            as_rows(X, sparse=True)
        with pytest.raises(DataError, match=rf"package sparse\).*{call}todense\(\)"):
            as_rows(X)
    same(total(as_rows(many.map_blocks(lambda b: b.tocsr()), Y, sparse=True)), total(as_rows(DENSE, Y)))


class Mean(BaseEstimator):
    """An estimator that takes sparse rows, and says so as scikit-learn's do."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        return self

    def _plan(self, found):
        told = Planner("Mean.fit", found, "")
        told.sample("draw", found.only("label"), np.array([3]), None)
        told.total("sums", found.only("label"), kernel, {"moments": (3, 2, D), "n": ()})
        return told.plan()


def test_plans_count_the_bytes_of_stored_values():
    wide = sparse.random_array((4_000, 500), density=0.01, format="csr", rng=RNG)
    y = np.arange(4_000) % 3
    stored = da.from_array(Unread(wide), chunks=(1_000, -1), asarray=False, meta=sparse.csr_array((0, 0)))
    plan = ss.explain(Planned(), stored, y)
    (part,) = plan.passes
    assert part.n_bytes == pytest.approx(nbytes(wide), rel=0.1)
    assert plan.block_bytes == pytest.approx(nbytes(wide) / 4, rel=0.1)
    assert part.thread_bytes < 4_000 * 500 * 8 / 8
    assert (part.n_blocks, part.n_tasks) == (4, 5)
    assert plan.n_bytes == part.n_bytes
    # What is in memory is not read.
    (part,) = ss.explain(Planned(), wide, y).passes
    assert (part.n_bytes, part.n_tasks) == (0, 0)
    assert [part.n_bytes for part in ss.explain(Mean(), lazy(DENSE, CHUNKS[1]), Y).passes] == [0, 0]


class Planned(Mean):
    def _plan(self, found):
        told = Planner("", found, "")
        d = found.n_markers
        told.total("sums", found.only("label"), kernel, {"moments": (3, 2, d), "n": ()})
        return told.plan()


class Unread:
    """Array-like that is not in memory, as a store is not."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, index):
        return self.array[index]


def test_workers_give_the_same():
    expected, draw = total(as_rows(DENSE, Y)), passes.sample(as_rows(DENSE, Y), 5, "label")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": True}
    with LocalCluster(**options) as cluster, Client(cluster):
        found = as_rows(lazy(DENSE, CHUNKS[2], sparse.coo_array), da.from_array(Y, chunks=9), sparse=True)
        same(total(found), expected)
        same(passes.sample(found, 5, "label"), draw)
        result = passes.map_rows(_score, found, weights=np.ones(D)).compute()
        np.testing.assert_array_equal(result, DENSE.sum(axis=1))
        kept = passes.keep(found, _doubled, 8 * D, by=1.0)
        for _ in range(2):
            same(passes.total(kernel, kept, {"moments": (3, 2, D), "n": ()}), expected)
        with pytest.raises(DataError, match="column 0: 1, column 2: 2, column 4: 1; first rows 3, 41, 55"):
            total(as_rows(lazy(with_holes(), CHUNKS[1]), Y, sparse=True))
