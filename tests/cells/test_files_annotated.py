"""AnnData files: rows of X as they are kept, samples in any order, and what stands in the way."""

import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import scaleshift as ss
from scaleshift.cells.files import annotated, describe
from scaleshift.errors import DataError

X = np.random.default_rng(0).poisson(0.6, (60, 4)).astype(np.float32)
SAMPLES = np.array(["a", "b", "c"])[np.arange(60) % 3]


def write(tmp_path, x, suffix=".h5ad", **obs):
    path = tmp_path / f"t{suffix}"
    frame = pd.DataFrame(obs, index=[f"c{i}" for i in range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = anndata.AnnData(x, frame, pd.DataFrame(index=["CD3", "CD4", "CD8", "CD19"]))
        adata.write_h5ad(path) if suffix == ".h5ad" else adata.write_zarr(path)
    return str(path)


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, lambda x: sp.csr_matrix(x.astype(np.int64))])
def test_any_rows_are_those_of_the_whole(tmp_path, suffix, kind):
    (file,) = describe(write(tmp_path, kind(X), suffix))
    assert file.groups == ()
    for first, stop in [(0, 60), (7, 8), (59, 60), (5, 5), (10, 40)]:
        block = file.reader.read(first, stop)
        assert block.dtype == np.float32
        np.testing.assert_array_equal(block, X[first:stop])


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_x_by_columns_is_refused_by_path(tmp_path, suffix):
    path = write(tmp_path, sp.csc_matrix(X), suffix)
    with pytest.raises(DataError, match=rf"^{path}: X is stored as csc_matrix: store it dense, or"):
        describe(path)


def test_what_h5py_says_of_damage_becomes_an_error_by_path(tmp_path):
    path = write(tmp_path, sp.csr_matrix(X))
    (file,) = describe(path)
    with h5py.File(path, "a") as root:
        del root["X/data"]
    with pytest.raises(DataError, match=rf"^{path}: cannot be read"):
        file.reader.read(0, 10)
    with pytest.raises(DataError, match=rf"^{path}: data cannot be read"):
        describe(path)
    with h5py.File(path, "a") as root:
        del root["X"]
        root["X"] = X[:, 0]
    with pytest.raises(DataError, match=rf"^{path}: X is float32 of shape \(60,\), expected a matrix"):
        describe(path)


def test_what_is_constant_in_samples_is_theirs_but_for_names_of_the_layout(tmp_path):
    arm = np.array(["x", "y", "x"])[np.arange(60) % 3]
    depth = np.arange(60)
    path = write(tmp_path, X, sample=SAMPLES, arm=arm, label=arm, marker=arm, X=arm, depth=depth)
    (file,) = describe(path)
    assert [dict(g.metadata) for g in file.groups] == [{"arm": "x"}, {"arm": "y"}, {"arm": "x"}]
    ss.ingest(path, tmp_path / "study.zarr")
    cells = ss.open_cells(tmp_path / "study.zarr")
    assert cells["arm"].values.tolist() == ["x", "y", "x"]
    np.testing.assert_array_equal(cells["X"].values, X[np.argsort(SAMPLES, kind="stable")])


def test_interleaved_samples_are_refused_where_they_would_cost_much_and_only_there(tmp_path, monkeypatch):
    path = write(tmp_path, X, sample=SAMPLES)
    assert len(describe(path)[0].groups) == 3
    monkeypatch.setattr(annotated, "MAX_TIMES", 2)
    assert len(describe(path)[0].groups) == 3
    monkeypatch.setattr(annotated, "MAX_BYTES", 1000)
    with pytest.raises(
        DataError, match=r"interleaved: .* the file 3 times; sort its cells first: .*\['sample'\].argsort"
    ):
        describe(path)
    together = write(tmp_path, X, sample=np.sort(SAMPLES))
    assert len(describe(together)[0].groups) == 3


def test_a_study_whose_writing_was_interrupted_is_not_taken(tmp_path):
    ss.write_cells(ss.as_cells(X, SAMPLES), tmp_path / "s.zarr")
    record = tmp_path / "s.zarr" / "uns" / "scaleshift" / "c"
    record.write_bytes(b"")
    with pytest.raises(DataError, match=rf"^{tmp_path / 's.zarr'}"):
        describe(str(tmp_path / "s.zarr"))


def damaged(tmp_path, change):
    path = write(tmp_path, sp.csr_matrix(X))
    with h5py.File(path, "a") as root:
        change(root)
    return path


def put(name, values):
    def change(root):
        del root[name]
        root[name] = values

    return change


CSR = sp.csr_matrix(X)
FALLING = np.concatenate([CSR.indptr[:30], CSR.indptr[29::-1], [CSR.nnz]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("X/indices", np.full(CSR.nnz, 99)), "row 0 of X has a value in a column that is not there"),
        (put("X/indices", np.r_[CSR.indices[:-1], -1]), "row 59 of X has a value in a column that is not"),
        (put("X/indices", np.full(CSR.nnz, 2**60)), r"a column that is not there \(4 are\)"),
        (put("X/indptr", CSR.indptr * 1000), "rows 0-59 of X do not lie within its values"),
        (put("X/indptr", FALLING), "rows 0-59 of X do not lie within its values"),
        (put("X/indptr", CSR.indptr - 5), "rows 0-59 of X do not lie within its values"),
        (put("X/indptr", CSR.indptr[:-1]), "X has 60 rows, but 60 entries in indptr"),
        (put("X/indptr", CSR.indptr.astype(float)), "indptr of X is no list of numbers"),
        (put("X/indices", np.zeros((CSR.nnz, 2), int)), "indices of X is no list of numbers"),
        (put("X/data", [b"a"] * CSR.nnz), "data of X is no list of numbers"),
        (put("X/data", CSR.data[:-1]), "the file is damaged"),
        (put("X", h5py.SoftLink("/nowhere")), "X cannot be read"),
        (put("obs", h5py.SoftLink("/nowhere")), "obs cannot be read"),
        (put("X/data", h5py.ExternalLink("/nowhere", "/x")), "X/data lies in another file"),
        (put("obs", 1), "obs is no table"),
        (put("var", np.arange(4)), "var is no table"),
    ],
)
def test_what_a_damaged_file_says_is_not_believed(tmp_path, change, message):
    path = damaged(tmp_path, change)
    with pytest.raises(DataError, match=rf"^{path}: .*{message}") as caught:
        describe(path)[0].reader.read(0, 60)
    assert "\n" not in str(caught.value)


def test_names_of_var_that_stand_twice_are_refused_or_numbered(tmp_path):
    path = str(tmp_path / "t.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(X, var=pd.DataFrame(index=["CD3", "CD4", "CD3", "CD3-1"])).write_h5ad(path)
    with pytest.raises(DataError, match=rf"^{path}: has names of var twice: 'CD3'; pass duplicates='rename'"):
        describe(path)
    (file,) = describe(path, duplicates="rename")
    assert file.channels == ("CD3-2", "CD4", "CD3-3", "CD3-1")
    assert [p.text for p in file.problems] == ["names of var stood twice and were numbered: 'CD3'"]
    np.testing.assert_array_equal(file.reader.read(0, 60), X)


THINGS = "X cell marker label sample_code label_code channel kind feature marker_class scaling_scale"


@pytest.mark.parametrize("name", THINGS.split())
@pytest.mark.parametrize("scaling", [None, "z"])
def test_a_study_opens_whatever_its_obs_call_things(tmp_path, name, scaling):
    path = write(tmp_path, X, ".zarr", sample=SAMPLES, arm=SAMPLES, **{name: SAMPLES})
    ss.ingest(path, tmp_path / "study.zarr", scaling=scaling)
    cells = ss.open_cells(tmp_path / "study.zarr", markers="all").compute()
    assert cells["arm"].values.tolist() == ["a", "b", "c"]
    assert cells["marker"].values.tolist() == ["CD3", "CD4", "CD8", "CD19"]
    assert cells["X"].shape == (60, 4)
    assert name not in cells.variables or "sample" not in cells[name].dims or name.startswith("scaling")


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_values_beyond_float32_are_counted_and_warn_nobody(tmp_path, dtype):
    values = X.astype(dtype)
    if dtype is np.float64:
        values[3, 1] = 1e300
    path = write(tmp_path, values)
    report = ss.ingest(path, tmp_path / "study.zarr")
    assert report.files[0]["invalid"] == ({"CD4": 1} if dtype is np.float64 else {})
