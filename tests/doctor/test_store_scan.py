"""scaleshift doctor STORE: what is damaged is told, all of it, and nothing that is not."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import zarr
from click.testing import CliRunner
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.blocks import graph
from scaleshift.cells import append_cells, as_cells, write_cells
from scaleshift.cells.manifest import RECORD
from scaleshift.cli import main
from scaleshift.doctor import is_fine
from scaleshift.doctor.store import examine_store

N, CHUNK = 400, 64  # rows: samples of 100, 150 and 150 cells, in 7 chunks
MARKERS = ["CD3", "CD4", "CD8"]
ENDS = {"a": (0, 100), "b": (100, 250), "c": (250, 400)}


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """A study of three files, so that there is a checksum of every sample."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3)).astype("f4")
    for name, (start, stop) in ENDS.items():
        pd.DataFrame(x[start:stop], columns=MARKERS).to_csv(folder / f"{name}.csv", index=False)
    files = [folder / f"{name}.csv" for name in ENDS]
    ss.ingest(files, folder / "study.zarr", chunk_cells=CHUNK)
    return folder / "study.zarr"


@pytest.fixture
def study(ingested, tmp_path):
    return shutil.copytree(ingested, tmp_path / "study.zarr")


def findings(path):
    return {section: found for section, found in examine_store(path).items()}


def problems(path):
    return [f for found in findings(path).values() for f in found if f.status == "problem"]


def named(path, name):
    (found,) = [f for of in findings(path).values() for f in of if f.name == name]
    return found


def flip(file, at=None):
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    file.write_bytes(data)


def cut(file):
    file.write_bytes(file.read_bytes()[:-7])


def emptied(file):
    file.write_bytes(b"")


def removed(file):
    file.unlink()


def test_a_study_that_is_whole_is_fine(study):
    found = findings(study)
    assert list(found) == ["study", "chunks", "cells", "files"]
    assert all(map(is_fine, found.values())), problems(study)
    assert found["study"][0].value == "3 samples, 400 cells, 3 markers, 0 labels"
    assert found["chunks"][0].facts["by_array"]["X"] == 7
    assert named(study, "sample checksums").value == "3 of 3 samples are as imported"
    assert [f.name for f in found["files"]] == ["files"]


# Chunks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", ["X", "obs/sample/codes", "obs/label/codes", "obs/_index"])
@pytest.mark.parametrize("damage", [flip, cut, emptied, removed])
def test_a_damaged_chunk_is_told_with_its_rows_and_samples(study, array, damage):
    damage(study / array / ("c/3/0" if array == "X" else "c/3"))
    fault = named(study, f"chunk 3 of {array}")
    assert fault.status == "problem"
    damaged = "is damaged: its checksum is wrong" if damage is flip else "is damaged: it is no whole chunk"
    assert fault.value == f"rows 192-255 of b, c: {'is missing' if damage is removed else damaged}"
    assert fault.facts["rows"] == [192, 256]
    assert fault.facts["samples"] == ["b", "c"]
    assert named(study, "chunks").facts["n_damaged"] == 1


def test_every_byte_of_a_chunk_counts(study):
    file = study / "X/c/2/0"
    whole = file.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 20, 1)):
        flip(file, at)
        assert named(study, "chunk 2 of X").status == "problem"
        file.write_bytes(whole)
    assert not problems(study)


def test_all_damaged_chunks_are_told(study):
    for number in (0, 2, 6):
        flip(study / f"X/c/{number}/0")
    removed(study / "obs/_index/c/4")
    removed(study / "var/_index/c/0")
    told = {f.name for f in problems(study)}
    assert {f"chunk {i} of X" for i in (0, 2, 6)} < told
    assert {"chunk 4 of obs/_index", "chunk 0 of var/_index"} < told
    assert "record" in told  # the names of the markers are a part of it


def test_samples_in_damaged_chunks_cannot_be_compared(study):
    flip(study / "X/c/6/0")
    found = named(study, "sample checksums")
    assert found.status == "problem"
    assert found.value == "2 of 3 samples are as imported; 1 not to be compared, for a damaged chunk"


def test_a_damaged_record_does_not_stop_the_scan(study):
    flip(study / RECORD / "c")
    flip(study / "X/c/1/0")
    told = {f.name for f in problems(study)}
    assert {"record", "chunk 1 of X", RECORD} <= told


def test_metadata_that_is_damaged_is_told_beside_the_rest(study):
    (study / "obs/label/codes/zarr.json").write_text("{")
    flip(study / "X/c/1/0")
    told = {f.name for f in problems(study)}
    assert {"metadata of obs/label/codes", "chunk 1 of X"} <= told


# What stands in them -----------------------------------------------------------------------------------


def swap(folder, a, b):
    one, other = (folder / name for name in (a, b))
    one.rename(folder / "between")
    other.rename(one)
    (folder / "between").rename(other)


def test_chunks_that_changed_places_are_found_by_the_checksum_of_the_sample(study):
    swap(study / "X/c", "4", "5")  # both of sample c, each with a valid checksum of its own
    (wrong,) = [f for f in problems(study) if f.name.startswith("sample ") and "checksums" not in f.name]
    assert wrong.name == "sample c"
    assert wrong.value == "rows 250-399 are not those that were imported"
    assert named(study, "chunks").status == "ok"


def test_chunks_of_codes_that_changed_places_are_found(study):
    swap(study / "obs/sample/codes/c", "0", "4")
    assert named(study, "chunk 0 of obs/sample/codes").value == (
        "rows 0-63 of a: 64 of its rows are of other samples than the record says, first row 0: code 2, "
        "expected 0"
    )
    swap(study / "obs/_index/c", "1", "2")
    assert "row 64 is 128" in named(study, "chunk 1 of obs/_index").value


def test_codes_of_no_label_are_found(tmp_path):
    cells = as_cells(np.ones((N, 2), "f4"), ["a"] * N, np.array(["T", "B"])[np.arange(N) % 2])
    write_cells(cells, tmp_path / "study.zarr", chunk_cells=CHUNK)
    zarr.open_array(tmp_path / "study.zarr/obs/label/codes", mode="r+")[70] = 5
    found = named(tmp_path / "study.zarr", "chunk 1 of obs/label/codes")
    assert "1 of its codes name no label, first row 70: 5, expected -1 to 1" in found.value
    assert "changed places are not noticed" in named(tmp_path / "study.zarr", "sample checksums").value


def test_values_that_are_not_finite_are_counted_by_column(tmp_path):
    x = np.ones((N, 3), "f4")
    x[[3, 300], 1], x[5, 2] = np.nan, -np.inf
    write_cells(as_cells(x, ["a"] * N, marker=MARKERS), tmp_path / "study.zarr", chunk_cells=CHUNK)
    found = named(tmp_path / "study.zarr", "values")
    assert found.facts["not_finite"] == {
        "CD4": {"nan": 2, "infinite": 0},
        "CD8": {"nan": 0, "infinite": 1},
    }
    assert found.status == "ok"


# Files -------------------------------------------------------------------------------------------------


def test_files_that_do_not_belong_there_are_told_and_harm_nothing(study):
    staged = "0.0123456789abcdef0123456789abcdef.partial"
    (study / "X/c/2" / staged).write_bytes(b"half a chunk")
    (study / "notes.txt").write_text("mine")
    (study / "X/c/9").mkdir()
    (study / "X/c/9/0").write_bytes(b"of no row")
    assert named(study, "staged").facts["files"] == [f"X/c/2/{staged}"]
    assert named(study, "foreign").facts["files"] == ["X/c/9/0", "notes.txt"]
    assert not problems(study)


def test_links_are_problems(study, tmp_path):
    chunk = study / "X/c/2/0"
    chunk.rename(tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    (study / "obs/more").symlink_to(tmp_path, target_is_directory=True)
    unread, chunks, sample, links = problems(study)
    assert (unread.name, chunks.facts["n_damaged"]) == ("chunk 2 of X", 1)
    assert f"is not read: {chunk} is a link" in unread.value
    assert "1 not to be compared, for a damaged chunk" in sample.value
    assert (links.name, links.facts["files"]) == ("links", ["X/c/2/0", "obs/more"])


def test_cells_that_are_not_committed_are_told(study):
    group = zarr.open_group(study, mode="r+")
    for name in ("X", "obs/sample/codes", "obs/label/codes", "obs/_index"):
        array = group[name]
        array.resize((N + 2 * CHUNK, *array.shape[1:]))
        array[N:] = 0
    found = named(study, "not committed")
    assert found.facts["n_files"] == 8  # two chunks of each array; those before it hold committed rows too
    assert "X/c/7/0" in found.facts["files"]
    assert not problems(study)


def test_an_import_that_was_killed_is_a_problem(study):
    record = json.loads(str(zarr.open_array(study / RECORD, mode="r")[()]))
    zarr.open_array(study / RECORD, mode="r+")[...] = json.dumps(record | {"awaited": 5})
    assert named(study, "import").value == "3 of 5 samples are here: under way, or interrupted"
    assert named(study, "import").status == "problem"


def test_an_import_that_was_killed_before_its_first_sample_is_told_with_its_chunks(study):
    path = study / RECORD
    record = json.loads(str(zarr.open_array(path, mode="r")[()]))
    nothing = {"awaited": 3, "n_cells": 0, "samples": {}, "files": []}
    zarr.open_array(path, mode="r+")[...] = json.dumps(record | nothing)
    (study / "X/c/3/0").unlink()  # not written yet
    assert named(study, "import").value == "0 of 3 samples are here: under way, or interrupted"
    assert named(study, "not committed").facts["n_files"] == 4 * 7 - 1
    assert "scaleshift ingest --resume" in named(study, "not committed").advice
    assert [f.name for f in problems(study)] == ["import"]


def test_a_study_that_grew_has_no_checksum_of_what_was_appended(study):
    cells = as_cells(np.ones((30, 3), "f4"), ["d"] * 30, marker=MARKERS)
    append_cells(cells, study)
    assert not problems(study)
    assert named(study, "sample checksums").value == "3 of 4 samples are as imported; 1 without a checksum"


# Models and others -------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 3))
    ss.DFM(bandwidth=2.0).fit(x, np.arange(200) % 2).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_is_read_as_a_whole(model):
    (found,) = findings(model)["model"]
    assert (found.status, found.value) == ("ok", "a DFM, record and arrays undamaged")


def test_a_checkpoint_is_called_one(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    ss.SparseAUC(checkpoint=tmp_path / "kept").fit(x, y)
    found = [f for of in findings(tmp_path / "kept").values() for f in of]
    assert {(f.name, f.status) for f in found} == {("checkpoint", "ok")}
    assert {f.value for f in found} == {"record and arrays undamaged"}


def test_all_damaged_arrays_of_a_model_are_told(model):
    chunks = [path for path in model.glob("arrays-*/*/c/**/*") if path.is_file()][:2]
    for chunk in chunks:
        flip(chunk)
    (model / ".model-left").mkdir()
    found = findings(model)["model"]
    assert [f.status for f in found] == ["problem", "problem", "missing"]
    for chunk in chunks:
        name = chunk.relative_to(model).parts[1]
        assert any(f"/{name} cannot be read" in f.value for f in found)
    assert found[-1].facts["files"] == [".model-left"]


def test_a_damaged_record_of_a_model_is_told(model):
    text = (model / "zarr.json").read_text()
    (model / "zarr.json").write_text(text.replace("2.0", "3.0"))
    (found,) = problems(model)
    assert "the checksum does not match" in found.value
    (model / "zarr.json").write_text("{")
    (found,) = problems(model)
    assert "its record is damaged" in found.value


def test_a_folder_of_saved_states_is_looked_through(model):
    (found,) = findings(model.parent).values()
    assert found[0].status == "ok"


def test_a_group_of_another_tool_is_read_and_its_lack_of_checksums_told(tmp_path):
    group = zarr.create_group(tmp_path / "other.zarr", zarr_format=3)
    group.create_array("x", data=np.arange(1_000.0), chunks=(100,))
    group.create_array("empty", shape=(100,), dtype="f4", chunks=(10,))
    assert not problems(tmp_path / "other.zarr")
    assert named(tmp_path / "other.zarr", "no checksum").facts["arrays"] == ["empty", "x"]
    cut(tmp_path / "other.zarr/x/c/3")
    assert "rows 300-399: cannot be read" in named(tmp_path / "other.zarr", "chunk 3 of x").value


def test_chunks_that_another_tool_calls_otherwise_are_not_foreign(tmp_path):
    group = zarr.create_group(tmp_path / "other.zarr", zarr_format=3)
    for name, separator in (("v2", "."), ("v2", "/"), ("default", ".")):
        keys = {"name": name, "separator": separator}
        title = f"{name}{len(list(group))}"
        group.create_array(title, data=np.ones((20, 3)), chunks=(10, 3), chunk_key_encoding=keys)
    assert [f.name for f in findings(tmp_path / "other.zarr")["files"]] == ["files"]


def test_a_url_without_a_store_is_told():
    (found,) = problems("memory://nothing")
    assert found.value == "memory://nothing is no Zarr group: is missing"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_bytes(b"\x89HDF"), "is a file, no Zarr store"),
        (lambda path: path.mkdir(), "is no Zarr v3 store: nothing to scan"),
        (lambda path: zarr.create_group(path, zarr_format=2), "Zarr v2, which is not scanned"),
    ],
)
def test_what_is_no_store_is_said_in_a_word(tmp_path, make, said):
    make(tmp_path / "thing")
    (found,) = problems(tmp_path / "thing")
    assert said in found.value


def test_an_hdf5_file_is_sent_to_ingest(tmp_path):
    (tmp_path / "cells.h5ad").write_bytes(b"\x89HDF")
    (found,) = problems(tmp_path / "cells.h5ad")
    assert "scaleshift ingest makes a study of it" in found.advice


# The verb ----------------------------------------------------------------------------------------------


def doctor(*arguments, code=0):
    result = CliRunner().invoke(main, ["doctor", *map(str, arguments)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.stdout


def test_the_verb_ends_with_1_on_problems_and_lists_every_chunk(study):
    assert "problem" not in doctor(study)
    for number in range(3):
        flip(study / f"X/c/{number}/0")
    told = doctor(study, code=1)
    assert all(f"chunk {number} of X" in told for number in range(3))
    found = json.loads(doctor(study, "--json", code=1))
    assert (found["schema"], found["fine"]) == ("scaleshift.doctor/1", False)
    chunks = [f["facts"]["chunk"] for f in found["sections"]["chunks"] if "chunk" in f["facts"]]
    assert chunks == [[0, 0], [1, 0], [2, 0]]


def test_a_scheduler_goes_with_a_store():
    result = CliRunner().invoke(main, ["doctor", "--scheduler", "tcp://127.0.0.1:1"])
    assert result.exit_code == 2
    assert "--scheduler goes with STORE" in result.output


def test_workers_find_the_same(study):
    flip(study / "X/c/1/0")
    swap(study / "X/c", "4", "5")
    here = examine_store(study)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        assert graph.client() is not None
        assert examine_store(study) == here


def test_a_url_is_scanned_without_its_files(study):
    flip(study / "X/c/1/0")
    found = examine_store(f"local://{study}")
    assert list(found) == ["study", "chunks", "cells"]
    assert found["chunks"][0].name == "chunk 1 of X"


def test_nothing_of_a_store_is_changed_by_a_scan(study):
    def state():
        files = sorted(path for path in study.rglob("*") if path.is_file())
        return {path: (path.read_bytes(), os.stat(path).st_mtime_ns) for path in files}

    before = state()
    examine_store(study)
    assert state() == before


def test_an_import_that_was_killed_is_scanned(tmp_path):
    """Chunks of samples that are not finished belong to none; some of them are there."""
    path = tmp_path / "study.zarr"
    ss.write_cells(ss.as_cells(np.ones((40, 2)), np.repeat(["a", "b"], 20)), path, chunk_cells=16)
    group = zarr.open_group(path, mode="r+")
    for name in ("X", "obs/sample/codes", "obs/label/codes", "obs/_index"):
        array = group[name]
        array.resize((160, *array.shape[1:]))
    (path / "X/c/2/0").unlink()  # it holds the last committed rows, and more
    assert named(path, "chunk 2 of X").facts["samples"] == ["b"]
