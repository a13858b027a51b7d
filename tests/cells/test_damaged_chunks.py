"""A chunk that is missing or damaged is an error that names it, never wrong numbers."""

import pickle

import numpy as np
import pytest
import zarr
from distributed import Client

from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.errors import DataError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(100, 4)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    write_cells(as_cells(X, np.repeat(["a", "b"], 50), ["T"] * 100), tmp_path / "study.zarr", chunk_cells=16)
    return tmp_path / "study.zarr"


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def emptied(data: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("variable", "chunk"),
    [
        ("X", "X/c/3/0"),
        ("label_code", "obs/label/codes/c/3"),
        ("sample_code", "obs/sample/codes/c/3"),
    ],
)
@pytest.mark.parametrize("damage", [None, halved, flipped, emptied])
def test_the_error_names_store_array_chunk_and_rows(path, variable, chunk, damage):
    file = path / chunk
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes()))
    what = "is missing" if damage is None else "cannot be read"
    cells = open_cells(path)
    name = chunk.split("/c/")[0]
    with pytest.raises(DataError, match=rf"study.zarr: chunk 3 of {name} \(rows 48-63\) {what}") as caught:
        cells[variable].compute()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    cells[variable][:48].compute()


def test_the_last_chunk_ends_with_the_cells(path):
    (path / "X/c/6/0").unlink()
    with pytest.raises(DataError, match=r"chunk 6 of X \(rows 96-99\) is missing"):
        open_cells(path)["X"].compute()


@pytest.mark.parametrize("code", [-2, 5])
def test_a_code_of_no_category_is_an_error(path, code):
    zarr.open_array(path / "obs/label/codes", mode="r+")[70] = code
    with pytest.raises(DataError, match=rf"obs/label/codes holds {code}, expected -1 to 0"):
        open_cells(path)["label_code"].compute()


def test_a_cell_outside_its_sample_is_an_error_when_samples_are_chosen(path):
    zarr.open_array(path / "obs/sample/codes", mode="r+")[70] = 0
    with pytest.raises(DataError, match="disagrees with the sample offsets"):
        open_cells(path, ["b"])["sample_code"].compute()


@pytest.mark.parametrize("chunk", ["X/c/6/0", "obs/sample/codes/c/6"])
def test_appending_to_a_damaged_chunk_is_refused(path, chunk):
    (path / chunk).unlink()
    with pytest.raises(DataError, match=r"chunk 6 of .* is missing"):
        append_cells(as_cells(X, ["c"] * 100), path)


@pytest.mark.parametrize("name", ["var/_index", "obs/label/categories", "uns/scaleshift"])
def test_damaged_names_are_an_error_on_opening(path, name):
    (file,) = (f for f in (path / name / "c").parent.rglob("*") if f.is_file() and f.name != "zarr.json")
    file.write_bytes(flipped(file.read_bytes()))
    with pytest.raises(DataError, match=rf"study.zarr: {name} cannot be read"):
        open_cells(path)


def test_a_store_that_became_shorter_is_an_error(path):
    cells = open_cells(path)
    zarr.open_array(path / "X", mode="r+").resize((90, 4))
    with pytest.raises(DataError, match=r"X has shape \(90, 4\), had \(100, 4\) when opened"):
        cells["X"].compute()


def test_errors_of_workers_in_other_processes_arrive(path):
    (path / "X/c/2/0").unlink()
    with (
        Client(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"),
        pytest.raises(DataError, match=r"study.zarr: chunk 2 of X \(rows 32-47\) is missing"),
    ):
        open_cells(path)["X"].sum().compute()
