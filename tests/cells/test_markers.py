"""Columns of a study that are not features are kept, shown when asked for, and read by AnnData."""

import anndata
import numpy as np
import pytest
import xarray as xr

from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.errors import DataError, SchemaError


@pytest.fixture
def cells() -> xr.Dataset:
    values = np.arange(15, dtype=np.float32).reshape(5, 3)
    cells = as_cells(values, sample=["a", "a", "b", "b", "b"], marker=["Time", "CD3", "CD4"])
    return cells.assign_coords(
        feature=("marker", [False, True, True]), channel=("marker", ["Time", "FL1-A", "FL2-A"])
    )


def scaled(cells: xr.Dataset) -> xr.Dataset:
    shape = (cells.sizes["sample"], cells.sizes["marker"])
    parts = {"scaling_location": np.zeros(shape), "scaling_scale": np.arange(1.0, 7.0).reshape(shape)}
    return cells.assign({k: (("sample", "marker"), v) for k, v in parts.items()}).assign_attrs(scaling="z")


def test_a_study_opens_with_its_features(cells, tmp_path):
    write_cells(cells, tmp_path / "s.zarr", chunk_cells=2)
    opened = open_cells(tmp_path / "s.zarr")
    assert opened["marker"].values.tolist() == ["CD3", "CD4"]
    assert opened["channel"].values.tolist() == ["FL1-A", "FL2-A"]
    np.testing.assert_array_equal(opened["X"].values, cells["X"].values[:, 1:])


def test_chosen_markers_come_in_the_order_wanted(cells, tmp_path):
    write_cells(cells, tmp_path / "s.zarr", chunk_cells=2)
    opened = open_cells(tmp_path / "s.zarr", samples=["b"], markers=["CD4", "Time"])
    np.testing.assert_array_equal(opened["X"].values, cells["X"].values[2:, [2, 0]])
    assert opened["X"].data[1:3].compute().flags.c_contiguous
    everything = open_cells(tmp_path / "s.zarr", markers="all")
    np.testing.assert_array_equal(everything["X"].values, cells["X"].values)


@pytest.mark.parametrize("markers", [["CD8"], [], ["CD3", "CD3"], "CD3"])
def test_markers_that_the_study_lacks_are_named(cells, tmp_path, markers):
    write_cells(cells, tmp_path / "s.zarr")
    with pytest.raises(DataError, match=r"CD8|give"):
        open_cells(tmp_path / "s.zarr", markers=markers)


def test_anndata_reads_what_is_known_of_the_markers(cells, tmp_path):
    write_cells(scaled(cells), tmp_path / "s.zarr")
    with pytest.warns(anndata.ImplicitModificationWarning, match="Transforming to str index"):
        adata = anndata.read_zarr(tmp_path / "s.zarr")
    assert adata.var["feature"].tolist() == [False, True, True]
    assert adata.var["channel"].tolist() == ["Time", "FL1-A", "FL2-A"]
    assert adata.uns["scaling_scale"].shape == (2, 3)


def test_scaling_is_kept_for_the_samples_and_markers_that_are_opened(cells, tmp_path):
    write_cells(scaled(cells), tmp_path / "s.zarr")
    opened = open_cells(tmp_path / "s.zarr", samples=["b"])
    assert opened.attrs["scaling"] == "z"
    assert opened["scaling_scale"].values.tolist() == [[5.0, 6.0]]
    write_cells(opened, tmp_path / "again.zarr")
    assert open_cells(tmp_path / "again.zarr")["scaling_scale"].values.tolist() == [[5.0, 6.0]]


def test_appended_samples_bring_their_scaling(cells, tmp_path):
    write_cells(scaled(cells), tmp_path / "s.zarr")
    new = scaled(cells).assign_coords(sample=["c", "d"])
    new["sample_code"].attrs.pop("categories")
    append_cells(new, tmp_path / "s.zarr")
    opened = open_cells(tmp_path / "s.zarr", markers="all")
    assert opened["scaling_scale"].values[2:].tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(DataError, match="scaling of the cells is None"):
        append_cells(as_cells([[1, 2, 3]], sample=["e"], marker=["Time", "CD3", "CD4"]), tmp_path / "s.zarr")


def test_scaled_cells_without_their_scaling_are_refused(cells, tmp_path):
    with pytest.raises(SchemaError, match="scaling_location"):
        write_cells(cells.assign_attrs(scaling="z"), tmp_path / "s.zarr")
