"""A study written to disk comes back as it was, sorted by sample, and other tools read it."""

import warnings
from pathlib import Path

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleshift.cells import as_cells, open_cells, write, write_cells
from scaleshift.cells.manifest import read_manifest
from scaleshift.errors import DataError, SchemaError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3)).astype(np.float32)
SAMPLES = RNG.choice(["s10", "s2", "s1"], 100)
LABELS = RNG.choice(["T", "B", "NK"], 100)
ORDER = np.argsort(pd.Categorical(SAMPLES, ["s1", "s2", "s10"]).codes, kind="stable")


def names(cells: xr.Dataset, what: str) -> list:
    """The sample or label of each cell."""
    return [None if c < 0 else cells[what].values[c] for c in cells[f"{what}_code"].values]


def test_cells_come_back_sorted_by_sample(tmp_path):
    write_cells(as_cells(X, SAMPLES, LABELS, ["a", "b", "c"]), tmp_path / "study.zarr", chunk_cells=16)
    cells = open_cells(tmp_path / "study.zarr").compute()
    np.testing.assert_array_equal(cells["X"], X[ORDER])
    assert names(cells, "sample") == SAMPLES[ORDER].tolist()
    assert names(cells, "label") == LABELS[ORDER].tolist()
    assert cells["sample"].values.tolist() == ["s1", "s2", "s10"]


@pytest.mark.parametrize(
    "values",
    [["b", "a", None], [7, -1, 7], [True, False, None], [0.5, np.nan, -1.5], [None, None, None]],
    ids=["text", "integers", "bools", "floats", "none"],
)
def test_labels_come_back_in_their_type(tmp_path, values):
    given = as_cells(X[:3], label=values)
    write_cells(given, tmp_path / "study.zarr")
    cells = open_cells(tmp_path / "study.zarr").compute()
    xr.testing.assert_equal(cells, given)
    assert cells["label"].dtype.kind == given["label"].dtype.kind


@pytest.mark.parametrize("values", [[10, 2, 10], [True, False, True], ["ß", "a b", "ß"]])
def test_samples_come_back_in_their_type(tmp_path, values):
    given = as_cells(X[:3], sample=values)
    write_cells(given, tmp_path / "study.zarr")
    cells = open_cells(tmp_path / "study.zarr")
    assert cells["sample"].values.tolist() == given["sample"].values.tolist()
    assert cells["sample"].dtype == given["sample"].dtype


def test_metadata_of_samples_comes_back(tmp_path):
    columns = {
        "day": [1, 2, 3],
        "dose": [0.5, np.nan, 2.0],
        "arm": ["x", None, "y"],
        "old": [True, False, True],
    }
    given = as_cells(X, SAMPLES).assign_coords({k: ("sample", v) for k, v in columns.items()})
    write_cells(given, tmp_path / "study.zarr")
    cells = open_cells(tmp_path / "study.zarr")
    for name in columns:
        xr.testing.assert_equal(cells[name].variable, given[name].variable)
    assert read_manifest(tmp_path / "study.zarr").metadata["dose"] == (0.5, None, 2.0)


def test_attributes_tell_where_the_cells_come_from(tmp_path):
    given = as_cells(X, SAMPLES).assign_attrs(transform={"arcsinh": 5})
    write_cells(given, tmp_path / "study.zarr")
    cells = open_cells(tmp_path / "study.zarr")
    assert cells.attrs == {"source": str(tmp_path / "study.zarr"), "transform": {"arcsinh": 5}}
    assert cells["X"].attrs["long_name"] == "marker intensity of each cell"


def test_samples_without_cells_are_listed(tmp_path):
    sample = pd.Categorical(["b", "b", "d"], categories=["a", "b", "c", "d"])
    write_cells(as_cells(X[:3], sample), tmp_path / "study.zarr")
    assert read_manifest(tmp_path / "study.zarr").counts == (0, 2, 0, 1)
    assert open_cells(tmp_path / "study.zarr", samples=["c"]).sizes["cell"] == 0
    np.testing.assert_array_equal(open_cells(tmp_path / "study.zarr", samples=["c", "d"])["X"], X[2:3])


@pytest.mark.filterwarnings("ignore:X has .* chunks along the markers")
@settings(max_examples=25, deadline=None)
@given(
    n_cells=st.integers(1, 60),
    n_samples=st.integers(1, 5),
    blocks=st.lists(st.integers(1, 20), min_size=1),
    chunk=st.integers(1, 25),
    batch=st.integers(1, 50),
    code_blocks=st.integers(0, 30),
    seed=st.integers(0, 2**32),
)
def test_any_blocks_in_any_order_give_the_same_store(
    tmp_path_factory, n_cells, n_samples, blocks, chunk, batch, code_blocks, seed
):
    rng = np.random.default_rng(seed)
    x, sample, label = (
        rng.normal(size=(n_cells, 2)),
        rng.integers(0, n_samples, n_cells),
        rng.choice([-3, 8], n_cells),
    )
    cuts = np.minimum(np.cumsum(np.resize(blocks, n_cells)), n_cells)
    lazy = as_cells(
        da.from_array(x, chunks=(tuple(np.diff(np.unique([0, *cuts])).tolist()), 1)), sample, label
    )
    if code_blocks:
        lazy = lazy.chunk({"cell": code_blocks}).assign(X=lazy["X"])
    path = tmp_path_factory.mktemp("random") / "study.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "BATCH_CELLS", batch)
        write_cells(lazy, path, chunk_cells=chunk)
    cells = open_cells(path).compute()
    order = np.argsort(sample, kind="stable")
    np.testing.assert_array_equal(cells["X"], x[order].astype(np.float32))
    assert names(cells, "sample") == sample[order].tolist()
    assert names(cells, "label") == label[order].tolist()


def test_a_sorted_lazy_study_is_read_once(tmp_path):
    read = []

    def block(block_info=None):
        (rows, columns) = block_info[None]["array-location"]
        read.append(rows[0])
        return X[rows[0] : rows[1], columns[0] : columns[1]]

    lazy = da.map_blocks(block, chunks=((25,) * 4, (3,)), meta=np.empty((0, 0), np.float32))
    write_cells(as_cells(lazy, np.sort(SAMPLES)), tmp_path / "study.zarr", chunk_cells=10)
    assert sorted(read) == [0, 25, 50, 75]


def test_a_stretch_of_interleaved_samples_holds_only_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "BATCH_CELLS", 20)
    sizes = []
    rows = write.write_rows
    monkeypatch.setattr(
        write,
        "write_rows",
        lambda group, first, x, *codes: (sizes.append(len(x)), rows(group, first, x, *codes)),
    )
    write_cells(as_cells(da.from_array(X, chunks=(30, 3)), SAMPLES), tmp_path / "study.zarr", chunk_cells=10)
    assert sizes == [20] * 5


def test_anndata_reads_the_same_study(tmp_path):
    label = np.where(LABELS == "NK", None, LABELS)
    write_cells(as_cells(X, SAMPLES, label, ["a", "b", "c"]), tmp_path / "study.zarr", chunk_cells=16)
    with pytest.warns(
        anndata.ImplicitModificationWarning, match="str index"
    ):  # obs/_index is int64 by design
        read = anndata.read_zarr(tmp_path / "study.zarr")
    np.testing.assert_array_equal(read.X, X[ORDER])
    assert read.obs["sample"].tolist() == SAMPLES[ORDER].tolist()
    assert read.obs["sample"].cat.categories.tolist() == ["s1", "s2", "s10"]
    assert read.obs["label"].isna().tolist() == pd.isna(label[ORDER]).tolist()
    assert read.var_names.tolist() == ["a", "b", "c"]
    back = as_cells(read, sample="sample", label="label")
    xr.testing.assert_equal(back, open_cells(tmp_path / "study.zarr").compute())


@pytest.mark.parametrize("label", [[1, 2, 1], [True, False, True], [0.5, 1.5, 0.5], None])
def test_anndata_reads_labels_of_every_type(tmp_path, label):
    write_cells(as_cells(X[:3], label=label), tmp_path / "study.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", anndata.ImplicitModificationWarning)
        read = anndata.read_zarr(tmp_path / "study.zarr")
    assert read.obs["label"].dropna().tolist() == (label or [])


def test_xarray_reads_x(tmp_path):
    write_cells(as_cells(X, SAMPLES), tmp_path / "study.zarr", chunk_cells=16)
    read = xr.open_zarr(tmp_path / "study.zarr", consolidated=False)
    assert read["X"].dims == ("cell", "marker")
    np.testing.assert_array_equal(read["X"], X[ORDER])


def test_the_layout_on_disk_is_the_agreed_one(tmp_path):
    write_cells(as_cells(X, SAMPLES, LABELS), tmp_path / "study.zarr", chunk_cells=16)
    group = zarr.open_group(tmp_path / "study.zarr", mode="r")
    arrays = dict(group.members(max_depth=None))
    assert arrays["X"].dtype == np.float32
    assert arrays["obs/_index"].dtype == np.int64
    assert arrays["X"].chunks == (16, 3)
    for name in ("obs/sample/codes", "obs/label/codes", "obs/_index"):
        assert arrays[name].chunks == (16,)
    assert arrays["X"].shards is None
    for array in (a for a in arrays.values() if isinstance(a, zarr.Array)):
        assert len(array.metadata.dimension_names or ()) == array.ndim
    assert [codec.to_dict()["name"] for codec in arrays["X"].metadata.codecs] == ["bytes", "blosc", "crc32c"]
    assert group.metadata.consolidated_metadata is None
    assert not list(Path(tmp_path).rglob("*.partial"))


def test_the_default_chunk_is_131072_cells(tmp_path):
    write_cells(as_cells(X), tmp_path / "study.zarr")
    assert read_manifest(tmp_path / "study.zarr").chunk == 131_072


def test_a_taken_path_is_left_alone(tmp_path):
    write_cells(as_cells(X), tmp_path / "study.zarr")
    with pytest.raises(DataError, match=r"study.zarr exists already: .*append_cells"):
        write_cells(as_cells(X + 1), tmp_path / "study.zarr")
    np.testing.assert_array_equal(open_cells(tmp_path / "study.zarr")["X"], X)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            as_cells(X.astype(float) * 1e39, marker=["a", "b", "c"]),
            "marker '.' holds .*too large for float32",
        ),
        (
            as_cells(X).assign_coords(on=("sample", pd.to_datetime(["2026-01-01"]))),
            "'on' is datetime64.*convert it to text",
        ),
        (as_cells(X).assign_attrs(transform=np.zeros(2)), "must be JSON values"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(tmp_path, cells, message):
    with pytest.raises(DataError, match=message):
        write_cells(cells, tmp_path / "study.zarr")
    assert not (tmp_path / "study.zarr").exists()  # or it would block the next try


def test_lazy_codes_outside_the_categories_are_refused(tmp_path):
    cells = as_cells(da.from_array(X, chunks=(50, 3)), SAMPLES).chunk({"cell": 50})
    with pytest.raises(SchemaError, match="sample_code holds 3, expected 0 to 2"):
        write_cells(cells.assign(sample_code=cells["sample_code"] + 1), tmp_path / "a.zarr")
    with pytest.raises(SchemaError, match="label_code holds 0, expected -1 to -1"):
        write_cells(cells.assign(label_code=cells["label_code"] + 1), tmp_path / "b.zarr")
