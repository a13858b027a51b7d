"""A study opens lazily, one task a block, whole or by sample; what is not a study is refused."""

import json
import os
import pickle
import shutil
import time
import warnings

import anndata
import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from scaleshift.blocks.labels import natural_key
from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.cells.manifest import read_manifest
from scaleshift.cells.reader import read_text
from scaleshift.errors import DataError, SchemaError

RNG = np.random.default_rng(1)
N = 120
X = RNG.normal(size=(N, 3)).astype(np.float32)
SAMPLES = np.repeat([f"s{i}" for i in range(12)], 10)
LABELS = RNG.choice([1, 2, 5], N)
CELLS = as_cells(X, SAMPLES, LABELS, ["a", "b", "c"])


@pytest.fixture
def path(tmp_path):
    write_cells(CELLS, tmp_path / "study.zarr", chunk_cells=16)
    return tmp_path / "study.zarr"


def record_of(path):
    return zarr.open_group(path, mode="r+")["uns/scaleshift"]


def test_a_block_is_a_chunk(path):
    cells = open_cells(path)
    assert cells["X"].chunks == ((16,) * 7 + (8,), (3,))
    assert cells["sample_code"].chunks == cells["label_code"].chunks == ((16,) * 7 + (8,),)


def test_a_block_is_a_shard_where_there_are_shards(path):
    group = zarr.open_group(path, mode="r+")
    attributes = dict(group["X"].attrs)
    group.create_array("X", data=X, chunks=(8, 3), shards=(40, 3), attributes=attributes, overwrite=True)
    cells = open_cells(path)
    assert cells["X"].chunks == ((40, 40, 40), (3,))
    xr.testing.assert_equal(cells.compute(), CELLS)


@pytest.mark.parametrize("chosen", [["s3"], ["s11", "s0", "s5"], [f"s{i}" for i in range(0, 12, 2)]])
def test_chosen_samples_are_those_rows_and_no_others(path, chosen):
    cells = open_cells(path, samples=chosen).compute()
    rows = np.isin(SAMPLES, chosen)
    np.testing.assert_array_equal(cells["X"], X[rows])
    assert cells["sample"].values.tolist() == sorted(chosen, key=lambda name: int(name[1:]))
    assert cells["sample"].values[cells["sample_code"]].tolist() == SAMPLES[rows].tolist()
    assert cells["label"].values[cells["label_code"]].tolist() == LABELS[rows].tolist()
    assert cells["label"].values.tolist() == [1, 2, 5]


def test_every_chunk_is_read_by_one_block_only(path):
    cells = open_cells(path, samples=["s0", "s2", "s4"])  # rows 0-9, 20-29, 40-49 of chunks 0, 1, 2, 3
    assert cells["X"].chunks[0] == (10, 10, 8, 2)


@pytest.mark.parametrize("samples", [None, ["s1", "s2", "s7", "s11"]])
def test_reading_fuses_with_what_comes_after(path, samples):
    cells = open_cells(path, samples)

    def totals(x, codes):
        return np.bincount(codes + 1, x[:, 0], minlength=4)[None]

    x, codes = cells["X"].data, cells["label_code"].data
    result = da.blockwise(
        totals,
        "ij",
        x,
        "ij",
        codes,
        "i",
        adjust_chunks={"i": 1, "j": 4},
        align_arrays=False,
        meta=np.empty((0, 0)),
    )
    (optimized,) = dask.optimize(result)
    assert len(optimized.__dask_graph__()) == x.numblocks[0]
    plain = CELLS.isel(cell=slice(None) if samples is None else np.flatnonzero(np.isin(SAMPLES, samples)))
    expected = np.bincount(plain["label_code"] + 1, plain["X"][:, 0], minlength=4)
    np.testing.assert_allclose(result.sum(0).compute(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "index",
    [np.s_[5:50:3], np.s_[5], np.s_[[5, 8, 30]], np.s_[::-1], np.s_[3:9, [0, 2]], np.s_[:, 1], np.s_[20:39]],
)
@pytest.mark.parametrize("samples", [None, [f"s{i}" for i in range(0, 12, 2)]])
def test_later_selections_of_rows_and_markers_are_right(path, samples, index):
    lazy = open_cells(path, samples)["X"].data
    np.testing.assert_array_equal(lazy[index].compute(), lazy.compute()[index])


def test_opening_reads_no_cells_and_building_a_graph_neither(path):
    for chunk in (path / "X" / "c").rglob("*"):
        if chunk.is_file():
            os.remove(chunk)
    open_cells(path)["X"].mean("cell")


def test_names_of_dask_arrays_are_the_same_for_the_same_study_only(path, tmp_path):
    name = open_cells(path)["X"].data.name
    assert open_cells(path)["X"].data.name == name
    assert open_cells(path, ["s1"])["X"].data.name != name
    os.rename(path, tmp_path / "old.zarr")
    write_cells(CELLS, path, chunk_cells=16)
    assert open_cells(path)["X"].data.name != name


def test_a_rewritten_or_longer_store_is_read_as_it_is_now(path, tmp_path):
    open_cells(path).compute()
    append_cells(as_cells(X[:5] + 1, ["new"] * 5, LABELS[:5], ["a", "b", "c"]), path)
    np.testing.assert_array_equal(open_cells(path)["X"], np.concatenate([X, X[:5] + 1]))
    os.rename(path, tmp_path / "old.zarr")
    write_cells(CELLS.assign(X=CELLS["X"] + 7), path, chunk_cells=9)
    np.testing.assert_array_equal(open_cells(path)["X"], X + 7)


def test_a_dataset_opened_before_survives_pickle(path):
    cells = pickle.loads(pickle.dumps(open_cells(path, ["s3", "s4"])))
    np.testing.assert_array_equal(cells["X"], X[30:50])


def test_a_relative_path_is_made_absolute(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    cells = open_cells("study.zarr")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(cells["X"], X)


def test_the_manifest_tells_what_there_is(path):
    manifest = read_manifest(path)
    assert manifest.samples == tuple(f"s{i}" for i in range(12))
    assert manifest.counts == (10,) * 12
    assert manifest.offsets == tuple(range(0, 120, 10))
    assert (manifest.markers, manifest.labels) == (("a", "b", "c"), (1, 2, 5))
    assert (manifest.n_cells, manifest.chunk) == (120, 16)


@pytest.mark.parametrize("scheme", ["memory://", "file://"])
def test_a_url_is_a_path_too(tmp_path, scheme):
    url = f"{scheme}{tmp_path}/study.zarr"
    write_cells(CELLS, url, chunk_cells=16)
    append_cells(as_cells(X, ["new"] * N, marker=["a", "b", "c"]), url)
    np.testing.assert_array_equal(open_cells(url, ["s3", "new"])["X"], np.concatenate([X[30:40], X]))
    with pytest.raises(DataError, match="exists already"):
        write_cells(CELLS, url)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (["s1", "s33"], "study.zarr: sample 's33' is not known; known: s0, s1"),
        ("s1", r"is one name.*\['s1'\]"),
        ([], "names no sample"),
        ([None], "names no sample"),
    ],
)
def test_unknown_samples_are_refused(path, samples, message):
    with pytest.raises(DataError, match=message):
        open_cells(path, samples)


def changed(path, **values):
    record = record_of(path)
    record[...] = json.dumps(json.loads(record[()]) | values)


def without(path, key):
    record = record_of(path)
    record[...] = json.dumps({k: v for k, v in json.loads(record[()]).items() if k != key})


def resized(path, name, shape):
    zarr.open_array(path / name, mode="r+").resize(shape)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: changed(p, version=99), "layout version 99, this scaleshift reads version 1"),
        (lambda p: changed(p, n_cells=7), "do not add up to 7 cells"),
        (lambda p: changed(p, n_labels=9), "obs/label has 3 categories, uns/scaleshift tells 9"),
        (lambda p: without(p, "files"), "uns/scaleshift lacks files"),
        (lambda p: record_of(p).__setitem__(..., "no json"), "uns/scaleshift is no record of a study"),
        (lambda p: record_of(p).__setitem__(..., "[]"), "uns/scaleshift is no record of a study"),
        (lambda p: resized(p, "X", (100, 3)), "X has 100 rows, uns/scaleshift tells 120"),
        (lambda p: resized(p, "X", (120, 2)), r"X has \(2,\) columns, var/_index 3 names"),
        (lambda p: os.remove(p / "obs" / "label" / "codes" / "zarr.json"), "no array obs/label/codes"),
        (lambda p: (p / "X" / "zarr.json").write_text("{"), "X cannot be opened"),
        (lambda p: (p / "zarr.json").write_text("{"), "is not a Zarr group"),
        (
            lambda p: changed(p, samples={"x": {"offset": 0, "n_cells": 120, "metadata": {}}}),
            "not the samples",
        ),
    ],
)
def test_a_store_that_contradicts_itself_is_refused(path, damage, message):
    damage(path)
    with pytest.raises(SchemaError, match=rf"study.zarr.*{message}"):
        open_cells(path)


def test_what_is_not_a_store_is_refused(tmp_path):
    with pytest.raises(SchemaError, match=r"nothing.zarr does not exist: expected a study"):
        open_cells(tmp_path / "nothing.zarr")
    assert not (tmp_path / "nothing.zarr").exists()
    (tmp_path / "file.zarr").write_text("text")
    with pytest.raises(SchemaError, match=r"file.zarr is not a Zarr group"):
        open_cells(tmp_path / "file.zarr")
    zarr.create_group(tmp_path / "two.zarr", zarr_format=2)
    with pytest.raises(SchemaError, match=r"two.zarr is a Zarr v2 store"):
        open_cells(tmp_path / "two.zarr")


def test_files_in_place_of_a_store_are_told_the_way_in(tmp_path):
    folder = tmp_path / "my data"
    folder.mkdir()
    with pytest.raises(SchemaError, match=r"is not a Zarr group.*uns/scaleshift\)$"):
        open_cells(folder)
    (folder / "a.fcs").write_text("FCS3.0")
    for path in (folder, folder / "a.fcs"):
        with pytest.raises(SchemaError) as caught:
            open_cells(path)
        assert str(caught.value).endswith(f"make one of the files: scaleshift ingest '{path}' study.zarr")


def test_a_misspelt_store_is_told_the_study_beside_it(path):
    (path.parent / "stduy").mkdir()  # is none
    with pytest.raises(SchemaError, match=r"does not exist: expected .*; did you mean 'study\.zarr'\?$"):
        open_cells(path.parent / "stduy.zarr")
    with pytest.raises(SchemaError, match=r"no such/x does not exist: expected .*uns/scaleshift\)$"):
        open_cells(path.parent / "no such" / "x")


def test_a_plain_anndata_store_is_refused_with_the_way_in(path, tmp_path):
    with pytest.warns(anndata.ImplicitModificationWarning):
        study = anndata.read_zarr(path)
    plain = anndata.AnnData(study.X, obs=study.obs)
    for name, data in {"plain": plain, "rewritten": study}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # AnnData's own, about sharding, metadata and this setting
            with anndata.settings.override(zarr_write_format=3):
                data.write_zarr(tmp_path / f"{name}.zarr")
    with pytest.raises(SchemaError, match=r"plain.zarr has no uns/scaleshift.*as_cells\(anndata.read_zarr"):
        open_cells(tmp_path / "plain.zarr")
    with pytest.raises(
        SchemaError, match=r"another tool has rewritten this study.*as_cells\(anndata.read_zarr"
    ):
        open_cells(tmp_path / "rewritten.zarr")


def test_labels_that_are_not_chosen_count_as_unlabelled(tmp_path):
    cells = as_cells(np.zeros((5, 1)), label=["a", "b", None, "c", "b"])
    write_cells(cells, tmp_path / "s.zarr")
    opened = open_cells(tmp_path / "s.zarr", labels=["c", "b"])
    assert opened["label"].values.tolist() == ["b", "c"]
    assert opened["label_code"].values.tolist() == [-1, 0, -1, 1, 0]
    with pytest.raises(DataError, match=r"label 'd' is not known"):
        open_cells(tmp_path / "s.zarr", labels=["d"])


def test_a_study_that_was_written_anew_is_not_read_under_its_old_names(tmp_path):
    path = tmp_path / "s.zarr"
    write_cells(as_cells(np.zeros((4, 1)), sample=["a", "a", "b", "b"]), path)
    opened = open_cells(path, samples=["a"])
    shutil.rmtree(path)
    write_cells(as_cells(np.ones((4, 1)), sample=["x", "x", "y", "y"]), path)
    with pytest.raises(DataError, match="was written anew since it was opened"):
        opened["X"].compute()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"zarr_format": 3}'])
def test_a_damaged_record_is_a_schema_error(path, damage):
    (path / "uns" / "scaleshift" / "zarr.json").write_text(damage)
    with pytest.raises(SchemaError, match="study"):
        open_cells(path)


def test_the_record_of_many_samples_is_read_at_once_and_by_zarr_too(tmp_path):
    names = [f"Ä{i}" for i in range(20_000)]
    write_cells(as_cells(np.zeros((20_000, 1)), names), tmp_path / "study.zarr")
    start = time.process_time()
    assert open_cells(tmp_path / "study.zarr")["sample"].values.tolist() == sorted(names, key=natural_key)
    assert time.process_time() - start < 3  # zarr's own way takes longer with every letter
    small = tmp_path / "small.zarr"
    write_cells(as_cells([[1.0]], ["Ä"]), small)
    array = zarr.open_array(small, path="uns/scaleshift", mode="r")
    assert read_text(array) == str(array[()])
