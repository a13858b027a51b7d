"""AnnData and other groups that were forged: nothing is unpickled, nothing is read in another place."""

import json
import os
import shutil
import struct

import h5py
import numpy as np
import pytest
import zarr
from danger import chunk_of, edit, pickled


def old(danger):
    pytest.importorskip("anndata")
    path = danger.work / "cells.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=2, attributes={"encoding-type": "anndata"})
    root.create_array("X", data=np.ones((6, 2), "f4"))
    for name, n in {"obs": 6, "var": 2}.items():
        attributes = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
        frame = root.create_group(name, attributes=attributes | {"column-order": []})
        array = frame.create_array("_index", data=np.arange(n))
        array.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    danger.output.mkdir()
    return path


def pickles_in(array, around):
    """A v2 array of objects, whose filter unpickles."""
    metadata = json.loads((array / ".zarray").read_text())
    metadata |= {"dtype": "|O", "filters": [{"id": "pickle"}], "compressor": None, "fill_value": None}
    (array / ".zarray").write_text(json.dumps(metadata))
    for file in array.glob("[0-9]*"):
        file.write_bytes(pickled(around))


@pytest.mark.parametrize("verb", ["ingest", "label"])
@pytest.mark.parametrize("part", ["obs/_index", "var/_index", "X"])
def test_an_old_store_of_pickles_is_not_unpickled(danger, study, monkeypatch, verb, part):
    """Also where numcodecs would do it, as its versions before 0.16 do unasked."""
    numcodecs = pytest.importorskip("numcodecs")
    if hasattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE"):
        monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    path = old(danger)
    if verb == "label" and part != "obs/_index":
        pytest.skip("labels are read of obs alone")
    pickles_in(path / part, danger.root)
    arguments = {
        "ingest": ("ingest", "cells.zarr", "output/new.zarr"),
        "label": ("label", "study.zarr", "cells.zarr", "--column", "_index"),
    }
    if verb == "label":
        attributes = json.loads((path / "obs" / ".zattrs").read_text()) | {"column-order": ["_index"]}
        (path / "obs" / ".zattrs").write_text(json.dumps(attributes))
    assert "the codec 'pickle', which unpickles" in danger.run(
        *arguments[verb], codes=(1,), names="cells.zarr"
    )


def test_an_annotated_store_is_not_read_along_links(danger):
    path = old(danger)
    shutil.move(path / "obs", danger.root / "keep" / "obs")
    os.symlink(danger.root / "keep" / "obs", path / "obs")
    danger.run("ingest", "cells.zarr", "output/new.zarr", codes=(1,), names="a link")


def hdf5(danger):
    anndata = pytest.importorskip("anndata")
    for name in ("cells", "other"):
        cells = anndata.AnnData(np.ones((6, 2), "f4"))
        cells.obs["sample"] = ["S1"] * 6
        cells.write_h5ad((danger.root / "keep" if name == "other" else danger.work) / f"{name}.h5ad")
    danger.output.mkdir()
    return danger.work / "cells.h5ad"


def linked(file, around):
    del file["X"]
    file["X"] = h5py.ExternalLink(around / "keep" / "other.h5ad", "/X")


def linked_twice(file, around):
    del file["X"]
    file["uns/door"] = h5py.ExternalLink(around / "keep" / "other.h5ad", "/")
    file["X"] = h5py.SoftLink("/uns/door/X")


def raw_elsewhere(file, around):
    del file["X"]
    secret = [(str(around / "secret.txt"), 0, 12)]
    file.create_dataset("X", shape=(6, 2), dtype="u1", external=secret)


def virtual(file, around):
    del file["X"]
    layout = h5py.VirtualLayout(shape=(6, 2), dtype="f4")
    layout[:] = h5py.VirtualSource(around / "keep" / "other.h5ad", "X", shape=(6, 2))
    file.create_virtual_dataset("X", layout)


def in_a_circle(file, around):
    file["obs/again"] = file["/"]


@pytest.mark.parametrize("change", [linked, linked_twice, raw_elsewhere, virtual])
def test_an_h5ad_file_is_read_within_itself(danger, change):
    path = hdf5(danger)
    with h5py.File(path, "r+") as file:
        change(file, danger.root)
    text = danger.run("ingest", "cells.h5ad", "output/new.zarr", codes=(1,), names="cells.h5ad")
    assert "lies in another file" in text


def test_a_circle_in_an_h5ad_file_has_an_end(danger):
    path = hdf5(danger)
    with h5py.File(path, "r+") as file:
        in_a_circle(file, danger.root)
    danger.run("ingest", "cells.h5ad", "output/new.zarr", codes=(0, 1))


def test_a_group_with_forged_frames_is_refused(danger):
    path = danger.work / "group.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    blosc = zarr.codecs.BloscCodec(cname="lz4")
    for name, data in {"e": np.random.default_rng(0).normal(size=(50, 2)), "t": np.arange(50) % 2}.items():
        root.create_array(name, data=data, compressors=blosc, dimension_names=("row", "d")[: data.ndim])
    root.create_array("p", data=np.full(50, 0.5), dimension_names=("row",))
    file = chunk_of(path, "e")
    raw = bytearray(file.read_bytes())
    raw[4:8], raw[12:16] = struct.pack("<I", 2**29), struct.pack("<I", 2**29 + 16)
    file.write_bytes(raw)
    given = ["--embeddings", "e", "--targets", "t", "--predictions", "p"]
    danger.run("slices", "group.zarr", *given, codes=(1,), names="group.zarr")
    edit(path / "e", codecs=[{"name": "numcodecs.pickle"}])
    danger.run("slices", "group.zarr", *given, codes=(1,), names="group.zarr")
