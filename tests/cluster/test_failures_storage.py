"""File systems that fail for a while, and full disks: waited for, or said in a line; nothing half taken."""

import errno
import os
import re
import subprocess
import sys
from typing import ClassVar

import fsspec
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fsspec.implementations.local import LocalFileSystem

import scaleshift as ss
from scaleshift.cells import reader, transient
from scaleshift.cli import main
from scaleshift.errors import DataError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(100, 4)).astype("f4")


class UnsteadyFileSystem(LocalFileSystem):
    """Local files; reads that FAILURES names fail so often, then no more."""

    protocol = "unsteady"
    failures: ClassVar[dict[str, list[BaseException]]] = {}

    def cat_file(self, path, start=None, end=None, **kwargs):
        for ending, errors in self.failures.items():
            if path.endswith(ending) and errors:
                raise errors.pop()
        return super().cat_file(path, start, end, **kwargs)


fsspec.register_implementation("unsteady", UnsteadyFileSystem, clobber=True)


@pytest.fixture
def study(tmp_path, monkeypatch):
    ss.write_cells(
        ss.as_cells(X, np.repeat(["a", "b"], 50), ["T"] * 100), tmp_path / "s.zarr", chunk_cells=16
    )
    monkeypatch.setattr(UnsteadyFileSystem, "failures", {})
    monkeypatch.setattr(transient, "WAITS", (0.0, 0.0, 0.0))
    reader.forget_arrays()
    return f"unsteady://{tmp_path}/s.zarr"


def fails(ending, *errors):
    UnsteadyFileSystem.failures[ending] = list(errors)


STALE, IO = OSError(errno.ESTALE, "Stale file handle"), OSError(errno.EIO, "Input/output error")
PASSING = [STALE, IO, TimeoutError("timed out"), ConnectionResetError(errno.ECONNRESET, "reset by peer")]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_an_error_that_passes_is_waited_for(study, error):
    cells = ss.open_cells(study)
    fails("X/c/3/0", error, error, error)
    assert np.array_equal(cells["X"].values, X)
    assert UnsteadyFileSystem.failures["X/c/3/0"] == []


@pytest.mark.parametrize(
    "file", ["zarr.json", "uns/scaleshift/c", "obs/label/codes/c/2", "obs/label/codes/zarr.json"]
)
def test_names_codes_and_the_record_are_waited_for_too(study, file):
    fails(file, IO, STALE)
    cells = ss.open_cells(study)
    assert cells["label_code"].values.tolist() == [0] * 100
    assert np.array_equal(cells["X"].values, X)


def test_a_record_that_cannot_be_read_for_a_while_is_not_taken_for_another_study(study):
    cells = ss.open_cells(study)
    fails("uns/scaleshift/c", IO, IO)
    assert cells["label_code"].values.tolist() == [0] * 100


def test_an_error_that_stays_names_the_chunk_and_the_file_system(study):
    cells = ss.open_cells(study)
    fails("X/c/3/0", *[IO] * 100)
    expected = (
        r"chunk 3 of X \(rows 48-63\) cannot be read: .*Input/output.*; its file system failed several times"
    )
    with pytest.raises(DataError, match=expected):
        cells["X"].compute()
    assert len(UnsteadyFileSystem.failures["X/c/3/0"]) == 96  # one try, and three more


def test_a_missing_chunk_is_not_waited_for(study):
    cells = ss.open_cells(study)
    fails("X/c/3/0", *[FileNotFoundError("gone")] * 9)
    with pytest.raises(DataError, match=r"chunk 3 of X .* is missing: .*restore it"):
        cells["X"].compute()
    assert len(UnsteadyFileSystem.failures["X/c/3/0"]) == 8


# Full disks ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1.5 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small tmpfs cannot be mounted here: needs Linux and root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


BIG = RNG.normal(size=(200_000, 4)).astype("f4")
FULL = r"cannot be written, the disk is full \(No space left on device\): make room, then"


def fill(disk):
    """No room is left."""
    file = os.open(disk / "fill", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for size in (65_536, 4_096, 1):
        try:
            while True:
                os.write(file, b"0" * size)
        except OSError:
            pass
    os.close(file)


def make_room(disk):
    subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)


def test_a_study_that_does_not_fit_is_gone_and_can_be_written_when_there_is_room(small_disk):
    path = small_disk / "s.zarr"
    with pytest.raises(DataError, match=f"^{path} {FULL} write it again$"):
        ss.write_cells(ss.as_cells(BIG), path, chunk_cells=10_000)
    assert list(small_disk.iterdir()) == []
    make_room(small_disk)
    ss.write_cells(ss.as_cells(BIG), path, chunk_cells=10_000)
    assert np.array_equal(ss.open_cells(path)["X"].values, BIG)


def test_an_append_that_does_not_fit_leaves_the_study_as_it_was(small_disk):
    path, more = small_disk / "s.zarr", ss.as_cells(BIG, ["more"] * len(BIG))
    ss.write_cells(ss.as_cells(X), path, chunk_cells=10_000)
    opened = ss.open_cells(path)
    with pytest.raises(DataError, match=f"^{path} {FULL} append again"):
        ss.cells.append_cells(more, path)
    assert np.array_equal(opened["X"].values, X)
    assert ss.open_cells(path).sizes["cell"] == len(X)
    make_room(small_disk)
    ss.cells.append_cells(more, path)
    assert np.array_equal(ss.open_cells(path)["X"].values, np.concatenate([X, BIG]))


def test_labels_that_do_not_fit_are_not_half_taken(small_disk):
    path = small_disk / "s.zarr"
    ss.write_cells(ss.as_cells(X, ["a"] * 100, ["T"] * 100), path)
    table = pd.DataFrame({"sample": "a", "event": range(100), "label": ["B", "T"] * 50})
    fill(small_disk)
    with pytest.raises(DataError, match=f"^{path} {FULL} label it again"):
        ss.label_cells(path, table)
    assert ss.open_cells(path)["label"].values.tolist() == [
        "T"
    ]  # no room for the first mark: nothing is changed
    make_room(small_disk)
    ss.label_cells(path, table)
    assert ss.open_cells(path)["label_code"].values.tolist() == [0, 1] * 50


def test_a_model_that_does_not_fit_leaves_the_old_one(small_disk):
    path, y = small_disk / "model", np.repeat(["a", "b"], 50)
    ss.BBSE().fit(X, y).save(path)
    fill(small_disk)
    with pytest.raises(DataError, match=f"^{path} {FULL} save the model again$"):
        ss.ClassifyAndCount().fit(X, y).save(path)
    assert type(ss.load(path)) is ss.BBSE
    assert {file.name for file in small_disk.iterdir()} == {"fill", "model"}
    assert sum(file.name.startswith((".", "arrays")) for file in path.iterdir()) == 1
    make_room(small_disk)
    ss.ClassifyAndCount().fit(X, y).save(path)
    assert type(ss.load(path)) is ss.ClassifyAndCount


def test_an_import_that_does_not_fit_goes_on_when_there_is_room(small_disk, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for i in range(3):
        frame = pd.DataFrame(BIG[i * 50_000 : (i + 1) * 50_000], columns=list("abcd"))
        frame.to_csv(files / f"f{i}.csv", index=False)
    path = small_disk / "s.zarr"
    expected = rf"^{path}: cannot be written \(No space left on device\); .*resume=True"
    with pytest.raises(DataError, match=expected):
        ss.ingest(files, path, chunk_cells=20_000)
    make_room(small_disk)
    ss.ingest(files, path, chunk_cells=20_000, resume=True)
    assert np.allclose(ss.open_cells(path)["X"].values, BIG[:150_000], atol=1e-5)


def test_results_that_do_not_fit_are_one_line_and_no_file(small_disk, tmp_path):
    cells = ss.as_cells(X, np.repeat(["u", "v"], 50), np.tile(["a", "b"], 50))
    ss.write_cells(cells, tmp_path / "study.zarr")
    out = small_disk / "out"
    out.mkdir()
    fill(small_disk)
    arguments = ["quantify", str(tmp_path / "study.zarr"), "--source", "sample == u", "--output", str(out)]
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 1
    kept = out / "unfinished"
    said = rf"Error: checkpoint='{kept}/job' cannot be written \(No space left on device\)"
    assert re.search(said, found.output)
    assert list(out.iterdir()) in ([], [kept])
    assert not kept.exists() or list(kept.iterdir()) == []
    make_room(small_disk)
    assert CliRunner().invoke(main, arguments).exit_code == 0


@pytest.mark.parametrize("name", ["table.csv", "table.xlsx", "picture.png"])
def test_a_table_or_picture_that_does_not_fit_leaves_the_old_one(small_disk, name):
    result = ss.BBSE().fit(X, np.repeat(["a", "b"], 50)).predict(X)
    write = ss.report.plot if name.endswith("png") else ss.report.table
    (small_disk / name).write_text("old")
    fill(small_disk)
    with pytest.raises(DataError, match=f"^{small_disk / name} {FULL} write it again$"):
        write(result, small_disk / name)
    assert (small_disk / name).read_text() == "old"
    assert {file.name for file in small_disk.iterdir()} == {"fill", name}
