"""Whatever a user passes as X, y and sample becomes aligned blocks, or an error that says what to do."""

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.cells import as_cells
from scaleshift.errors import ChunkError, DataError

X = np.arange(40.0).reshape(20, 2)
Y = np.repeat(["a", "b"], 10)


def unknown(array, chunks):
    lazy = da.from_array(array, chunks=chunks)
    return lazy[da.ones(len(array), chunks=lazy.chunks[0], dtype=bool)]


def total(rows):
    return passes.total(sums, rows, {"sum": (rows.n_markers,), "n": ()})


def sums(block):
    return {"sum": block.x.sum(axis=0), "n": len(block.x)}


@pytest.mark.parametrize(
    "x",
    [
        X,
        X.astype("f4"),
        X.astype(int),
        X.tolist(),
        np.asfortranarray(X),
        pd.DataFrame(X, columns=["m", "n"]),
        xr.DataArray(X, dims=("cell", "marker"), coords={"marker": ["m", "n"]}),
        da.from_array(X, chunks=(7, 2)),
        unknown(X, (7, 2)),
    ],
    ids=["float64", "float32", "int", "list", "fortran", "pandas", "xarray", "dask", "unknown chunks"],
)
def test_every_kind_of_array_gives_the_same_sums(x):
    found = total(as_rows(x))
    assert found["sum"].tolist() == X.sum(axis=0).tolist()
    assert found["n"] == 20


def test_columns_of_unknown_chunks_are_counted_and_aligned():
    rows = as_rows(unknown(X, (6, 2)), unknown(Y, 9))
    assert rows.x.chunks[0] == rows.columns["label"].values.chunks[0]
    assert passes.counts(rows, "label").tolist() == [10, 10]


def test_chunks_along_the_markers_are_merged_with_a_warning():
    with pytest.warns(UserWarning, match="2 chunks along the markers"):
        rows = as_rows(da.from_array(X, chunks=(5, 1)))
    assert total(rows)["sum"].tolist() == X.sum(axis=0).tolist()


def test_markers_in_another_order_are_matched_by_name():
    frame = pd.DataFrame(X[:, ::-1], columns=["n", "m"]).assign(extra=1.0)
    rows = as_rows(frame).matched(("m", "n"), 2)
    assert rows.n_markers == 2
    assert total(rows)["sum"].tolist() == X.sum(axis=0).tolist()


def test_a_missing_marker_is_named_with_the_closest_one():
    rows = as_rows(pd.DataFrame(X, columns=["CD3", "CD19"]))
    with pytest.raises(DataError, match=r"lacks the marker\(s\) CD-3 .* did you mean 'CD3'"):
        rows.matched(("CD-3", "CD19"), 2)


def test_without_names_the_number_of_columns_must_match():
    with pytest.raises(DataError, match="X has 2 columns, the model was fitted on 3"):
        as_rows(X).matched(("a", "b", "c"), 3)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, 0], r"1 dimension.*X\[:, None\]"),
        (X.astype(object), r"dtype object.*astype"),
        (X.astype(str), r"dtype <U"),
        (X[:, :0], "no columns"),
        (pd.DataFrame({"m": [1.0], "donor": ["x"]}), "column 'donor' of X is (object|str), expected numbers"),
        (pd.DataFrame(X, columns=["m", "m"]), r"marker 'm' names columns \[0, 1\]"),
        (pd.DataFrame({"m": [1j]}), "column 'm' of X is complex128"),
        (pd.DataFrame(X, columns=["m", 2]), "column name 2, expected text"),
        (pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("m", 1), ("n", 2)])), "column name"),
        ([[1.0, 2.0], [3.0]], "no table of numbers"),
        (np.ma.masked_less(X, 3), "masked array"),
        (da.from_array(X, chunks=5).map_blocks(np.ma.masked_invalid), "masked array"),
        (zarr.create_array({}, shape=(3, 2), dtype="f4"), "Array: pass numpy, or dask"),
        (xr.Dataset({"Y": ("cell", np.ones(3))}), "no variable X"),
    ],
)
def test_what_cannot_be_rows_is_refused_by_name(x, message):
    with pytest.raises(DataError, match=message):
        as_rows(x)


def test_a_row_without_a_sample_is_refused():
    sample = ["s1"] * 10 + [None] + ["s2"] * 9
    for x, names in (
        (X, sample),
        (da.from_array(X, chunks=(7, 2)), da.from_array(np.array(sample, object), 6)),
    ):
        with pytest.raises(DataError, match="row 10 has no sample"):
            total(as_rows(x, sample=names))


@pytest.mark.parametrize(("name", "code"), [("label", 2), ("label", -3), ("sample", 5), ("sample", -1)])
def test_a_code_that_names_no_category_is_refused(name, code):
    cells = as_cells(X, sample=Y, label=Y)
    cells[f"{name}_code"][7] = code
    with pytest.raises(DataError, match=f"row 7 has (the {name} code {code}|no sample)"):
        total(as_rows(cells.chunk({"cell": 5})))


def test_a_dataset_whose_names_moved_apart_from_its_codes_is_refused():
    cells = as_cells(X, sample=["P"] * 8 + ["Q"] * 12, label=Y)
    moved = [cells.sel(sample=["Q", "P"]), cells.sortby("label", ascending=False), cells.sel(sample=["P"])]
    for wrong in moved:
        with pytest.raises(DataError, match="were selected, sorted or renamed"):
            as_rows(wrong)
    assert passes.counts(as_rows(cells.isel(cell=slice(4, 12))), "sample").tolist() == [4, 4]


def test_codes_in_memory_stay_narrow_beside_lazy_rows():
    rows = as_rows(da.from_array(X, chunks=(5, 2)), Y)
    assert rows.columns["label"].values.dtype == np.int8


def test_annotated_data_and_missing_values_of_pandas_come_in():
    annotated = anndata.AnnData(X.astype("f4"), var=pd.DataFrame(index=["CD3", "CD19"]))
    rows = as_rows(annotated)
    assert rows.markers == ("CD3", "CD19")
    assert total(rows)["sum"].tolist() == X.sum(axis=0).tolist()
    frame = pd.DataFrame({"CD3": pd.array([1.0, None], dtype="Float64"), "CD19": [1, 2]})
    with pytest.raises(DataError, match="CD3: 1; first rows 1"):
        total(as_rows(frame))


@pytest.mark.parametrize("y", [Y[:-1], da.from_array(Y[:-1], chunks=3)])
def test_lengths_that_differ_are_told(y):
    with pytest.raises(ChunkError, match="label has 19 values, X has 20 rows"):
        as_rows(X, y)


def test_labels_of_any_kind_agree():
    for y in (Y, list(Y), pd.Series(Y), pd.Categorical(Y), da.from_array(Y, chunks=3), xr.DataArray(Y)):
        rows = as_rows(X, y)
        assert rows.categories("label").tolist() == ["a", "b"]
        assert passes.counts(rows, "label").tolist() == [10, 10]


def test_unlabelled_rows_have_no_code():
    rows = as_rows(X, [None] * 5 + [1] * 15)
    assert passes.counts(rows, "label").tolist() == [15]


def test_without_samples_all_rows_are_one():
    for x in (X, da.from_array(X, chunks=(3, 2))):
        assert as_rows(x).categories("sample").tolist() == ["all"]


def test_no_rows_are_no_error_yet():
    rows = as_rows(np.empty((0, 2)), np.empty(0))
    assert total(rows)["n"] == 0


def test_a_wrong_word_for_invalid_is_refused():
    with pytest.raises(DataError, match="'skip': expected 'raise' or 'drop'"):
        as_rows(X, invalid="skip")


def test_arrays_in_memory_are_cut_into_views():
    X = np.ones((200_000, 3), np.float32)
    rows = with_numbers(as_rows(X), proba=np.ones((200_000, 2)))
    blocks = [node.value for node in dict(rows.x.__dask_graph__()).values()]
    assert [len(block) for block in blocks] == list(rows.x.chunks[0])
    assert all(np.shares_memory(block, X) for block in blocks)
