"""A study that was forged ends in one line: no code is run, nothing is read or written elsewhere."""

import json
import os
import shutil
import struct

import google_crc32c
import numpy as np
import pytest
import zarr
from danger import chunk_of, edit, pickled

import scaleshift as ss
from scaleshift.cells.manifest import RECORD
from scaleshift.errors import ScaleshiftError

MARKUP = '<script>alert(1)</script>\x1b[2J\u202e[red]=1+1"\n'


def record(path):
    return json.loads(str(zarr.open_array(str(path), path=RECORD, mode="r")[()]))


def forge(path, **changes):
    """Change the record of a study, checksum included; a function is given what stands there."""
    found = record(path)
    for key, value in changes.items():
        found[key] = value(found[key]) if callable(value) else value
    zarr.open_array(str(path), path=RECORD, mode="r+")[...] = json.dumps(found)


def frame(path, name="X", **fields):
    """Change the header of a chunk that Blosc has packed, and mend its checksum."""
    file = chunk_of(path, name)
    raw = bytearray(file.read_bytes()[:-4])
    for field, value in fields.items():
        at = {"unpacked": 4, "block": 8, "packed": 12}[field]
        raw[at : at + 4] = struct.pack("<I", value)
    file.write_bytes(bytes(raw) + struct.pack("<I", google_crc32c.value(bytes(raw))))


def no_json(path, around):
    (path / "zarr.json").write_bytes(b"\xff\xfe{nothing")


def huge_json(path, around):
    (path / "X" / "zarr.json").write_text("[" + "0," * 5_000_000 + "0]")


def nested_json(path, around):
    (path / "zarr.json").write_text("[" * 200_000 + "]" * 200_000)


def nested_record(path, around):
    zarr.open_array(str(path), path=RECORD, mode="r+")[...] = '{"version": ' + "[" * 200_000


def negative_shape(path, around):
    edit(path / "X", shape=[-120, 3])


def huge_shape(path, around):
    for name in ("X", "obs/sample/codes", "obs/label/codes", "obs/_index"):
        shape = [2**62, 3] if name == "X" else [2**62]
        edit(path / name, shape=shape)

    def longer(samples):
        samples["S2"]["n_cells"] = 2**62 - 60
        return samples

    forge(path, n_cells=2**62, samples=longer)


def huge_names(path, around):
    edit(path / "obs/label/categories", shape=[2**40])
    forge(path, n_labels=2**40)


def huge_markers(path, around):
    edit(path / "var/_index", shape=[2**40])


def no_chunk(path, around):
    edit(path / "X", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 3]}})


def huge_chunk(path, around):
    edit(path / "X", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2**40, 3]}})


def of_objects(path, around):
    edit(path / "X", data_type="object", fill_value=None)


def foreign_type(path, around):
    edit(path / "X", data_type={"name": "os.system", "configuration": {"command": "touch ../canary"}})


def codecs(*names):
    def change(path, around):
        edit(path / "X", codecs=[{"name": name, "configuration": {}} for name in names])
        chunk_of(path).write_bytes(pickled(around))

    return change


def named_offsets(path, around):
    def broken(samples):
        samples["S2"]["offset"] = float("nan")
        return samples

    forge(path, samples=broken)


def overlapping(path, around):
    def broken(samples):
        samples["S2"]["offset"] = 30
        return samples

    forge(path, samples=broken)


def negative_counts(path, around):
    def broken(samples):
        samples["S1"]["n_cells"], samples["S2"]["n_cells"] = 180, -60
        samples["S2"]["offset"] = 180
        return samples

    forge(path, samples=broken)


def words_for_numbers(path, around):
    forge(path, n_cells="many", files={"a": 1}, samples=[1, 2], n_labels=[], study={"id": 1})


def odd_attributes(path, around):
    edit(path / "var", attributes={"column-order": [["x"], {"a": 1}, "../../secret.txt", None]})


def columns_elsewhere(path, around):
    attributes = {"encoding-type": "dataframe", "_index": "_index", "column-order": ["../../keep/mine"]}
    edit(path / "var", attributes=attributes)


def chunk_linked(path, around):
    chunk_of(path).unlink()
    chunk_of(path, "obs/_index").parent.joinpath("x").write_text("")
    (path / "X" / "c" / "0").mkdir(exist_ok=True)
    os.symlink(around / "secret.txt", path / "X" / "c" / "0" / "0")


def folder_linked(path, around):
    shutil.move(path / "X", around / "keep" / "X")
    os.symlink(around / "keep" / "X", path / "X")


def metadata_pipe(path, around):
    (path / "X" / "zarr.json").unlink()
    os.mkfifo(path / "X" / "zarr.json")


def chunk_pipe(path, around):
    file = chunk_of(path)
    file.unlink()
    os.mkfifo(file)


def chunk_device(path, around):
    file = chunk_of(path)
    file.unlink()
    os.symlink("/dev/zero", file)


def other_lengths(path, around):
    edit(path / "obs/label/codes", shape=[20])


def fewer_names(path, around):
    edit(path / "var/_index", shape=[2])


def truncated_frame(path, around):
    file = chunk_of(path)
    raw = file.read_bytes()[:24]
    file.write_bytes(raw + struct.pack("<I", google_crc32c.value(raw)))


def overlong_frame(path, around):
    frame(path, unpacked=2**29, packed=2**29 + 16)


def packed_twice(path, around):
    blosc = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle"}}
    edit(path / "X", codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, blosc, blosc])


def codes_beyond(path, around):
    codes = zarr.open_array(str(path), path="obs/label/codes", mode="r+")
    codes[5] = 2**30


FORGED = [
    no_json,
    huge_json,
    nested_json,
    nested_record,
    negative_shape,
    huge_shape,
    huge_names,
    huge_markers,
    no_chunk,
    huge_chunk,
    of_objects,
    foreign_type,
    pytest.param(codecs("numcodecs.pickle"), id="codec_pickle"),
    pytest.param(codecs("os.system"), id="codec_of_a_foreign_package"),
    pytest.param(codecs("bytes", "numcodecs.n5_wrapper"), id="codec_not_known"),
    named_offsets,
    overlapping,
    negative_counts,
    words_for_numbers,
    odd_attributes,
    columns_elsewhere,
    chunk_linked,
    folder_linked,
    metadata_pipe,
    chunk_pipe,
    chunk_device,
    other_lengths,
    fewer_names,
    truncated_frame,
    overlong_frame,
    packed_twice,
    codes_beyond,
]


@pytest.mark.parametrize("change", FORGED)
def test_a_forged_study_is_refused_in_one_line(danger, study, change):
    change(study, danger.root)
    danger.run(
        *("quantify", "study.zarr", "--source", "sample == S1", "--method", "cc", "--bootstrap", "0"),
        *("--output", "output"),
        codes=(1, 2),
        names="study.zarr",
    )


@pytest.mark.parametrize("change", [huge_shape, overlong_frame])
def test_so_it_is_in_a_process_with_little_memory(danger, study, change):
    change(study, danger.root)
    danger.alone("quantify", "study.zarr", "--source", "sample == S1", "--method", "cc", names="study.zarr")


@pytest.mark.parametrize("part", ["obs/label", "obs/label/categories", "obs/label/codes", "uns/scaleshift"])
def test_labels_are_not_written_along_links(danger, study, part):
    """What a folder of the study is linked to is neither replaced nor deleted."""
    shutil.copytree(study / part, danger.root / "keep" / "part")
    shutil.rmtree(study / part)
    os.symlink(danger.root / "keep" / "part", study / part)
    (danger.work / "labels.csv").write_text("sample,event,label\nS1,0,T\n")
    danger.run("label", "study.zarr", "labels.csv", codes=(1,), names="a link")


def test_samples_are_not_appended_along_links(danger, study):
    shutil.copytree(study / "X", danger.root / "keep" / "X")
    shutil.rmtree(study / "X")
    os.symlink(danger.root / "keep" / "X", study / "X")
    before = danger.around()
    cells = ss.as_cells(
        np.ones((5, 3), "f4"), sample=["S3"] * 5, label=["T"] * 5, marker=["CD3", "CD4", "CD8"]
    )
    with pytest.raises(ScaleshiftError, match="a link"):
        ss.append_cells(cells, study)
    assert danger.around() == before


def test_marked_up_samples_and_metadata_are_shown_harmless(danger, study):
    """Legal, and answered: names are shown without what a terminal or a browser would obey."""
    found = record(study)
    found["samples"] = {MARKUP: found["samples"]["S1"], "S2": found["samples"]["S2"]}
    found["files"] = [{"path": MARKUP, "sample": MARKUP, "n_events": 60}]
    found["compensation"] = MARKUP
    found["transform"] = {"name": MARKUP}
    zarr.open_array(str(study), path=RECORD, mode="r+")[...] = json.dumps(found)
    names = zarr.open_array(str(study), path="obs/sample/categories", mode="r+")
    names[0] = MARKUP
    text = danger.run(
        *("quantify", "study.zarr", "--source", "sample == S2", "--method", "cc", "--output", "output"),
        codes=(0,),
    )
    assert "<script>" in text
    assert ss.open_cells(study)["sample"].values.tolist() == [MARKUP, "S2"]
    danger.run("quantify", "study.zarr", "--source", "sample == S3", codes=(2,))


def test_a_shard_with_a_forged_frame_is_refused(danger, study):
    X = zarr.open_group(study, mode="r")["X"][:]
    attributes = dict(zarr.open_group(study, mode="r")["X"].attrs)
    group = zarr.open_group(study, mode="r+")
    blosc = zarr.codecs.BloscCodec(cname="lz4")
    made = {"chunks": (8, 3), "shards": (64, 3), "compressors": blosc, "overwrite": True}
    group.create_array("X", data=X, attributes=attributes, **made)
    arguments = ("quantify", "study.zarr", "--source", "sample == S1", "--method", "cc", "--bootstrap", "0")
    danger.run(*arguments, codes=(0,))
    file = chunk_of(study)
    raw = bytearray(file.read_bytes())
    at = struct.unpack("<Q", raw[-132:-124])[0]  # of the first chunk in the index: 8 pairs and a checksum
    raw[at + 4 : at + 8], raw[at + 12 : at + 16] = struct.pack("<I", 2**29), struct.pack("<I", 2**29 + 16)
    file.write_bytes(raw)
    danger.run(*arguments, codes=(1,), names="no whole chunk")
