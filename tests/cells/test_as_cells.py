"""Arrays, tables and AnnData objects become the same cells dataset."""

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from label_studies import make_study, set_record

from scaleshift.blocks.rows import as_rows
from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.cells.schema import cells_dataset, check_cells
from scaleshift.cells.selection import select_samples
from scaleshift.errors import DataError, SchemaError

X = np.arange(12, dtype=np.float32).reshape(6, 2)
SAMPLES = ["p10", "p2", "p10", "p2", "p2", "p10"]
LABELS = ["T", "B", None, "T", "B", "B"]
MARKERS = ["CD3", "CD19"]


def frame() -> pd.DataFrame:
    return pd.DataFrame(X, columns=MARKERS).assign(patient=SAMPLES, gate=LABELS)


def annotated() -> anndata.AnnData:
    obs = pd.DataFrame({"patient": SAMPLES, "gate": LABELS}, index=[f"c{i}" for i in range(6)])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=MARKERS))


EXPECTED = as_cells(X, sample=SAMPLES, label=LABELS, marker=MARKERS)


def test_codes_follow_the_natural_order_of_names():
    check_cells(EXPECTED)
    assert EXPECTED["sample"].values.tolist() == ["p2", "p10"]
    assert EXPECTED["sample_code"].values.tolist() == [1, 0, 1, 0, 0, 1]
    assert EXPECTED["label_code"].values.tolist() == [1, 0, -1, 1, 0, 0]
    assert EXPECTED["sample_code"].dtype == EXPECTED["label_code"].dtype == np.int32


@pytest.mark.parametrize(
    "cells",
    [
        as_cells(frame(), sample="patient", label="gate"),
        as_cells(annotated(), sample="patient", label="gate"),
        as_cells(annotated(), sample=SAMPLES, label=pd.Series(LABELS)).drop_vars("patient"),
        as_cells(xr.DataArray(X, dims=("cell", "marker"), coords={"marker": MARKERS}), SAMPLES, LABELS),
        as_cells(da.from_array(X, chunks=(4, 1)), SAMPLES, LABELS, MARKERS).compute(),
        as_cells(X.astype(int), SAMPLES, LABELS, MARKERS),
    ],
    ids=["frame", "anndata", "anndata-values", "xarray", "dask", "integers"],
)
def test_every_kind_of_input_gives_the_same_cells(cells):
    xr.testing.assert_identical(cells, EXPECTED)


def test_dask_stays_lazy_and_float64_stays():
    asked = []

    def block(block_info=None):
        asked.append(block_info)
        return np.ones((3, 2))

    lazy = da.map_blocks(block, chunks=((3, 3), (2,)), meta=np.empty((0, 0)))
    cells = as_cells(lazy)
    assert not asked
    assert cells["X"].dtype == np.float64
    assert cells["X"].chunks == ((3, 3), (2,))


def test_without_samples_and_labels_there_is_one_sample_and_no_label():
    cells = as_cells(X)
    check_cells(cells)
    assert cells["sample"].values.tolist() == ["all"]
    assert cells.sizes["label"] == 0
    assert (cells["label_code"] == -1).all()
    assert cells["marker"].values.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("label", "categories"),
    [([3, 1, 1, 3, 1, 3], [1, 3]), ([True, False] * 3, [False, True]), ([-1, 0, 1] * 2, [-1, 0, 1])],
)
def test_labels_keep_their_type(label, categories):
    cells = as_cells(X, label=label)
    assert cells["label"].values.tolist() == categories
    assert cells["label"].values[cells["label_code"]].tolist() == label


def test_categoricals_keep_their_order_and_unused_categories():
    label = pd.Categorical(["b", "a", "b", "b", "a", "b"], categories=["c", "b", "a"])
    cells = as_cells(X, label=label)
    assert cells["label"].values.tolist() == ["c", "b", "a"]
    assert cells["label_code"].values.tolist() == [1, 2, 1, 1, 2, 1]


def test_nullable_columns_become_nan():
    cells = as_cells(pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": np.float32([3, 4])}))
    assert cells["X"].dtype == np.float32
    np.testing.assert_array_equal(cells["X"], [[1, 3], [np.nan, 4]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X[:, 0]}, r"X has 1 dimension\(s\), expected 2 .*X\[:, None\]"),
        ({"X": X.astype(object)}, r"X has dtype object, expected numbers.*astype"),
        ({"X": X.astype(complex)}, "X has dtype complex128"),
        ({"X": scipy.sparse.csr_array(X)}, r"X is sparse \(csr_array\).*toarray"),
        ({"X": da.from_array(X, chunks=3).map_blocks(scipy.sparse.csr_array)}, "X is sparse"),
        ({"X": np.ma.masked_less(X, 3)}, "masked array.*filled"),
        ({"X": X[:0]}, r"shape \(0, 2\)"),
        ({"X": X, "marker": ["CD3"]}, "marker has 1 names, X has 2 columns"),
        ({"X": X, "marker": ["CD3", "CD3"]}, r"marker 'CD3' names columns \[0, 1\]"),
        ({"X": X, "sample": ["a"] * 5}, "sample has 5 values, X has 6 cells"),
        ({"X": X, "label": ["a"] * 7}, "label has 7 values, X has 6 cells"),
        ({"X": X, "label": np.ones((6, 1))}, "labels have 2 dimensions"),
        ({"X": X, "label": pd.to_datetime(["2026-01-01"] * 6)}, "labels are dates or times.*astype"),
        ({"X": X, "sample": "patient"}, "sample='patient' is a name, but X has no columns"),
        ({"X": frame(), "sample": "patients"}, "names no column; did you mean 'patient'"),
        ({"X": annotated(), "label": "gates"}, "label='gates' names no column; did you mean 'gate'"),
        ({"X": frame(), "sample": "patient"}, "column 'gate' of X is (object|str), expected numbers.*label"),
        ({"X": X, "sample": ["a", "a", None, "a", None, "b"]}, r"missing for 2 cells \(first: row 2\)"),
    ],
)
def test_errors_name_the_thing_and_the_way_out(arguments, message):
    with pytest.raises(DataError, match=message):
        as_cells(**arguments)


def test_lazy_labels_stay_lazy_and_unknown_chunks_are_counted(tmp_path):
    x, names = da.from_array(X, chunks=3), da.from_array(np.array(LABELS, object), chunks=2)
    keep = x[:, 0] > 3
    cells = as_cells(x[keep], sample=names[keep], label=names[keep])
    expected = as_cells(X[X[:, 0] > 3], label=np.array(LABELS, object)[X[:, 0] > 3])
    assert isinstance(cells["label_code"].data, da.Array)
    assert cells["label"].values.tolist() == expected["label"].values.tolist()
    np.testing.assert_array_equal(cells["label_code"].values, expected["label_code"].values)


def test_rows_that_pandas_names_differently_are_refused():
    table = pd.DataFrame(X, index=list("abcdef"))
    y = pd.Series(["T", "B"] * 3, index=table.index)
    assert as_cells(table, label=y)["label_code"].values.tolist() == [1, 0] * 3
    for function in (lambda: as_cells(table, label=y[::-1]), lambda: as_rows(table, y[::-1])):
        with pytest.raises(DataError, match=r"different names or order.*label.loc\[X.index\]"):
            function()


def described(**columns):
    """AnnData of 6 cells whose samples are SAMPLES: p10 first, then p2."""
    obs = pd.DataFrame({"patient": SAMPLES} | columns, index=[f"c{i}" for i in range(6)])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=MARKERS))


def by_sample(p10, p2):
    return [p10 if name == "p10" else p2 for name in SAMPLES]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (by_sample("control", "treated"), ["treated", "control"]),
        (by_sample(0, 7), [7, 0]),
        (by_sample(0.5, 2.0), [2.0, 0.5]),
        (by_sample(True, False), [False, True]),
        (pd.Categorical(by_sample("b", "a"), categories=["c", "b", "a"]), ["a", "b"]),
        (pd.Categorical(by_sample(3, 1)), [1, 3]),
        (pd.array(by_sample("x", "ä"), dtype="string"), ["ä", "x"]),
        (by_sample("control", None), [None, "control"]),
        (pd.array(by_sample(None, True), dtype="boolean"), [True, None]),
    ],
)
def test_columns_of_annotated_data_that_hold_one_value_a_sample_describe_it(column, values):
    found = as_cells(described(arm=column), sample="patient")["arm"]
    assert found.dims == ("sample",)
    assert found.values.tolist() == values
    assert [type(value) for value in found.values.tolist()] == [type(value) for value in values]


@pytest.mark.parametrize("column", [by_sample(np.nan, 0.5), pd.array(by_sample(None, 4), dtype="Int64")])
def test_a_missing_number_that_describes_a_sample_is_nan(column):
    found = as_cells(described(dose=column), sample="patient")["dose"].values
    np.testing.assert_array_equal(np.isnan(found), [False, True])


@pytest.mark.parametrize(
    "column",
    [
        range(6),
        [*by_sample("a", "b")[:5], "c"],
        [None, "b", "a", "b", "b", "a"],  # missing for one cell of p10
        [None] * 6,
        by_sample(1, "a"),
        [[1]] * 6,
        pd.to_datetime(by_sample("2026-01-01", "2026-01-02")),
    ],
    ids=["varies", "one-differs", "one-missing", "empty", "mixed", "lists", "dates"],
)
def test_columns_that_describe_no_sample_are_left_out(column):
    assert list(as_cells(described(other=column), sample="patient").coords) == ["marker", "sample", "label"]


@pytest.mark.parametrize("name", ["X", "cell", "marker", "sample", "label", "label_code", "patient"])
def test_columns_called_like_a_part_of_the_layout_are_left_out(name):
    cells = as_cells(described(**{name: SAMPLES}), sample="patient")
    check_cells(cells)
    assert list(cells.coords) == ["marker", "sample", "label"]


def test_without_samples_what_is_the_same_for_all_cells_describes_the_one():
    cells = as_cells(described(site="north"))
    assert cells["site"].values.tolist() == ["north"]
    assert "patient" not in cells.coords


def test_a_sample_without_cells_has_no_description():
    sample = pd.Categorical(SAMPLES, categories=["p10", "p7", "p2"])
    cells = as_cells(described(arm=by_sample("a", "b")), sample=sample)
    assert cells["arm"].values.tolist() == ["a", None, "b"]


def test_columns_of_a_data_frame_are_markers_and_never_describe_samples():
    table = pd.DataFrame({"CD3": [1.0, 2.0], "day": [4, 4], "patient": ["a", "a"]})
    cells = as_cells(table, sample="patient")
    assert cells["marker"].values.tolist() == ["CD3", "day"]
    assert list(cells.coords) == ["marker", "sample", "label"]


def test_what_describes_samples_comes_back_from_a_store_and_selects_them(tmp_path):
    annotated = described(arm=by_sample("a", None), day=by_sample(4, 5), dose=by_sample(np.nan, 0.5))
    cells = as_cells(annotated, sample="patient")
    write_cells(cells, tmp_path / "study.zarr")
    opened = open_cells(tmp_path / "study.zarr")
    for name in ("arm", "day", "dose"):
        xr.testing.assert_identical(opened[name].drop_vars("sample"), cells[name].drop_vars("sample"))
    table = {name: opened[name].values for name in ("sample", "arm", "day", "dose")}
    assert select_samples("day == 5 and dose == 0.5", table) == ["p2"]


@pytest.mark.parametrize("labels", [LABELS, [7, 7, None, -1, 7, -1], [True, False, None, True, True, False]])
def test_annotated_data_read_from_a_store_makes_the_same_cells(tmp_path, labels):
    x = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    x[3, 1] = np.nan
    names = ["пациент 2" if name == "p2" else "患者10" for name in SAMPLES]
    cells = as_cells(x, sample=names, label=labels, marker=["CD3 – ε", "β2m"])
    write_cells(cells, tmp_path / "study.zarr")
    with pytest.warns(anndata.ImplicitModificationWarning, match="str index"):
        read = anndata.read_zarr(tmp_path / "study.zarr")
    assert read.X.dtype == np.float32
    np.testing.assert_array_equal(read.X, open_cells(tmp_path / "study.zarr")["X"].values)
    order = np.argsort(cells["sample_code"].values, kind="stable")
    np.testing.assert_array_equal(read.X, x[order])  # bit for bit, sample after sample
    assert read.var_names.tolist() == ["CD3 – ε", "β2m"]
    assert isinstance(read.obs["label"].dtype, pd.CategoricalDtype)
    assert read.obs["sample"].tolist() == [names[row] for row in order]
    assert read.obs["label"].isna().tolist() == [labels[row] is None for row in order]
    back = as_cells(read, sample="sample", label="label")
    xr.testing.assert_identical(back, open_cells(tmp_path / "study.zarr").compute().drop_attrs(deep=False))


def test_views_of_annotated_data_are_not_sparse():
    view = annotated()[1:4]
    assert as_cells(view)["X"].shape == (3, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.drop_vars("label_code"), "no variable 'label_code'"),
        (lambda c: c.drop_vars("marker"), "no coordinate 'marker'"),
        (lambda c: c.assign(X=c["X"].T), "X has dimensions .*expected"),
        (lambda c: c.assign(X=c["X"].astype("int32")), "X is int32"),
        (lambda c: c.assign(label_code=c["label_code"].astype("int64")), "label_code is int64"),
        (lambda c: c.assign(sample_code=c["sample_code"] + 1), "sample_code holds 2, expected 0 to 1"),
        (lambda c: c.assign(label_code=c["label_code"] - 1), "label_code holds -2, expected -1 to 1"),
        (lambda c: c.assign_coords(sample=["a", "a"]), "sample 'a' stands twice"),
        (lambda c: c.assign_coords(marker=[1, 2]), "markers must be text"),
        (lambda c: c["X"], "expected an xarray.Dataset"),
    ],
)
def test_check_finds_what_is_not_the_layout(change, message):
    with pytest.raises(SchemaError, match=message):
        check_cells(change(EXPECTED))


def test_metadata_must_not_shadow_the_layout():
    names = {"marker": MARKERS, "sample": ["a"], "label": ["T"]}
    codes = np.zeros(6, np.int32)
    for name in ("label", "feature", "channel", "scaling_scale"):
        with pytest.raises(SchemaError, match=f"column '{name}', a name of the layout"):
            cells_dataset(X, codes, codes, **names, metadata={name: ["x"]})
    with pytest.raises(SchemaError, match="column 'feature', a name of the layout"):
        check_cells(EXPECTED.assign_coords(feature=("sample", ["x", "y"])))


@pytest.mark.parametrize("name", ["feature", "kind", "channel", "marker_class", "scaling_location"])
def test_columns_of_obs_with_reserved_names_are_left_out(tmp_path, name):
    path, arms = tmp_path / "study.zarr", ["x", "x", "y"]
    obs = pd.DataFrame({"sample": ["a", "a", "b"], name: arms, "arm": arms}, list("123"))
    write_cells(as_cells(anndata.AnnData(X[:3], obs), sample="sample"), path)
    append_cells(as_cells(X[:2], ["c", "c"], marker=["0", "1"]), path)
    opened = open_cells(path)
    assert opened["arm"].values.tolist() == ["x", "y", None]
    assert name not in opened.coords or opened[name].dims == ("marker",)


def test_a_store_of_an_earlier_version_with_a_reserved_name_opens_without_it(tmp_path):
    path = make_study(tmp_path / "study.zarr", x=X, sample=SAMPLES, files=())
    set_record(path, metadata={"feature": ("x", "y"), "arm": ("x", "y")})
    opened = open_cells(path)
    assert "feature" not in opened.coords
    assert opened["arm"].values.tolist() == ["x", "y"]
