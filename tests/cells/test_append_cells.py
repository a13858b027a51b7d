"""Samples are appended whole or not at all."""

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from scaleshift.cells import append_cells, as_cells, open_cells, write, write_cells
from scaleshift.cells.manifest import read_manifest
from scaleshift.errors import DataError, SchemaError

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 2)).astype(np.float32)
MARKERS = ["CD3", "CD19"]


def cells_of(rows: slice, sample: list, label: list | None = None, **coordinates: list) -> xr.Dataset:
    x = X[rows]
    label = None if label is None else np.resize(np.array(label, dtype=object), len(x))
    cells = as_cells(x, np.resize(sample, len(x)), label, MARKERS)
    return cells.assign_coords({name: ("sample", v) for name, v in coordinates.items()})


@pytest.fixture
def path(tmp_path):
    write_cells(cells_of(slice(0, 25), ["a", "b"], ["T", "B"]), tmp_path / "study.zarr", chunk_cells=10)
    return tmp_path / "study.zarr"


def content(path) -> pd.DataFrame:
    """Each cell as a row: intensities, sample, label."""
    cells = open_cells(path).compute()
    table = pd.DataFrame(cells["X"].values, columns=cells["marker"].values)
    table["sample"] = cells["sample"].values[cells["sample_code"]]
    codes = cells["label_code"].values
    names = [None if c < 0 else cells["label"].values[c] for c in codes]
    return table.assign(label=pd.Series(names, dtype=object))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("batch", [10, 2_000_000])
def test_new_samples_and_labels_stand_behind_the_old_ones(path, monkeypatch, lazy, batch):
    monkeypatch.setattr(write, "BATCH_CELLS", batch)
    before = content(path)
    new = cells_of(slice(25, 60), ["d", "c"], ["NK", None, "T"])
    append_cells(new.chunk({"cell": 7}) if lazy else new, path)
    after = content(path)
    pd.testing.assert_frame_equal(after[:25], before)
    order = np.argsort(np.resize(["d", "c"], 35), kind="stable")
    np.testing.assert_array_equal(after[MARKERS][25:], X[25:][order])
    assert after["label"][25:].tolist() == np.resize(np.array(["NK", None, "T"], object), 35)[order].tolist()
    assert read_manifest(path).samples == ("a", "b", "c", "d")
    assert read_manifest(path).labels == ("B", "T", "NK")


def test_only_the_last_partial_chunk_is_written_again(path):
    chunks = {i: path / "X" / "c" / str(i) / "0" for i in range(3)}
    before = {i: chunk.stat().st_ino for i, chunk in chunks.items()}
    append_cells(cells_of(slice(25, 50), ["c"]), path)
    assert {i: chunk.stat().st_ino == before[i] for i, chunk in chunks.items()} == {
        0: True,
        1: True,
        2: False,
    }


@pytest.mark.parametrize("n", [1, 5, 6, 15, 16, 35])
def test_any_number_of_cells_can_be_appended_again_and_again(path, n):
    expected = content(path)
    for i in range(3):
        append_cells(cells_of(slice(0, n), [f"new{i}"], ["T"]), path)
        expected = pd.concat(
            [expected, pd.DataFrame(X[:n], columns=MARKERS).assign(sample=f"new{i}", label="T")],
            ignore_index=True,
        )
        pd.testing.assert_frame_equal(content(path), expected)


def test_markers_are_matched_by_name(path):
    append_cells(cells_of(slice(25, 30), ["c"]).isel(marker=[1, 0]), path)
    np.testing.assert_array_equal(open_cells(path, ["c"])["X"], X[25:30])


def test_metadata_columns_are_joined(tmp_path):
    write_cells(cells_of(slice(0, 4), ["a", "b"], day=[1, 2], arm=["x", "y"]), tmp_path / "study.zarr")
    append_cells(cells_of(slice(4, 8), ["c"], day=[3], site=["z"]), tmp_path / "study.zarr")
    manifest = read_manifest(tmp_path / "study.zarr")
    assert manifest.metadata == {"day": (1, 2, 3), "arm": ("x", "y", None), "site": (None, None, "z")}
    assert open_cells(tmp_path / "study.zarr")["day"].values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("label", [[5, 7], [True, False], [0.5], ["x"]])
def test_labels_of_any_type_join_an_unlabelled_study(tmp_path, label):
    write_cells(cells_of(slice(0, 25), ["a"]), tmp_path / "study.zarr", chunk_cells=10)
    append_cells(cells_of(slice(25, 40), ["b"], label), tmp_path / "study.zarr")
    table = content(tmp_path / "study.zarr")
    assert table["label"][:25].isna().all()
    assert table["label"][25:].tolist() == np.resize(label, 15).tolist()


def test_unused_categories_of_known_samples_are_passed_over(path):
    sample = pd.Categorical(["c"] * 5, categories=["a", "b", "c", "d"])
    append_cells(as_cells(X[:5], sample, marker=MARKERS), path)
    assert read_manifest(path).samples == ("a", "b", "c", "d")
    assert read_manifest(path).counts[2:] == (5, 0)


def test_anndata_reads_what_was_appended(path):
    append_cells(cells_of(slice(25, 60), ["c"], ["NK"]), path)
    with pytest.warns(anndata.ImplicitModificationWarning):
        read = anndata.read_zarr(path)
    assert read.obs["label"].tolist() == content(path)["label"].tolist()
    assert read.obs_names.tolist() == [str(i) for i in range(60)]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (cells_of(slice(0, 5), ["c", "b"]), r"sample 'b' is in .*study.zarr already"),
        (cells_of(slice(0, 5), [3]), r"samples of the cells are int, of .*study.zarr str"),
        (cells_of(slice(0, 5), ["c"], [3]), r"labels of the cells are int, of .*study.zarr str"),
        (as_cells(X, marker=["CD3", "cd-19"]), r"marker 'CD19' of .* is missing; did you mean 'cd-19'"),
        (as_cells(X[:, [0, 1, 1]], marker=["CD3", "CD19", "CD4"]), r"marker 'CD4' is not in .*drop_sel"),
        (cells_of(slice(0, 5), ["c"]).assign_attrs(transform="log"), r"transform of the cells is 'log', of"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path, cells, message):
    path = tmp_path / "study.zarr"
    write_cells(cells_of(slice(0, 25), ["a", "b"], ["T", "B"]).assign_attrs(transform="arcsinh"), path, 10)
    before = content(path)
    with pytest.raises(DataError, match=message):
        append_cells(cells, path)
    pd.testing.assert_frame_equal(content(path), before)


def test_there_must_be_a_study_to_append_to(tmp_path):
    with pytest.raises(SchemaError, match="does not exist"):
        append_cells(cells_of(slice(0, 5), ["c"]), tmp_path / "study.zarr")


def test_an_append_that_fails_half_way_leaves_the_study_as_it_was(path, monkeypatch):
    monkeypatch.setattr(write, "BATCH_CELLS", 10)

    def block(block_info=None):
        if block_info[None]["chunk-location"][0] == 2:
            raise RuntimeError("the disk is gone")
        return np.ones((10, 2), np.float32)

    before = content(path)
    lazy = da.map_blocks(block, chunks=((10,) * 3, (2,)), meta=np.empty((0, 0), np.float32))
    with pytest.raises(RuntimeError, match="the disk is gone"):
        append_cells(as_cells(lazy, ["c"] * 30, ["NK"] * 30, MARKERS), path)
    pd.testing.assert_frame_equal(content(path), before)
    with pytest.warns(anndata.ImplicitModificationWarning):
        assert anndata.read_zarr(path).n_obs == 25
    append_cells(cells_of(slice(25, 60), ["c"], ["NK"]), path)
    np.testing.assert_array_equal(content(path)[MARKERS][25:], X[25:])
