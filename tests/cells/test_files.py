"""Files of events of every format: which are taken, what is known of them, and what damage says."""

import os
import sys

import numpy as np
import pandas as pd
import pytest
from fcs_bytes import fcs_bytes

import scaleshift as ss
from scaleshift.cells import as_cells, write_cells
from scaleshift.cells.files import FORMATS, describe, find
from scaleshift.cells.files.parquet import BATCH_ROWS
from scaleshift.errors import DataError

EVENTS = np.arange(20.0).reshape(10, 2)


def fcs(path, **options):
    path.write_bytes(fcs_bytes(EVENTS, ["FL1-A", "FL2-A"], **options))
    return str(path)


def frame(n=10):
    values = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)
    return pd.DataFrame(values, columns=["CD3", "CD45.1"])


def study(path):
    write_cells(as_cells(EVENTS, sample=["a"] * 4 + ["b"] * 6, marker=["CD3", "CD4"]), path)


def test_every_format_has_what_a_format_needs():
    for module in FORMATS:
        assert module.SUFFIXES
        assert all(module.claims(f"some{suffix.upper()}") for suffix in module.SUFFIXES)
        assert callable(module.describe)


def test_fcs_files_are_known_by_their_first_bytes_and_tables_that_begin_alike_are_tables(tmp_path):
    assert describe(fcs(tmp_path / "a.csv"))[0].format == "FCS3.1"
    (tmp_path / "b.csv").write_text("FCS-A,FL1\n1,2\n")
    assert describe(str(tmp_path / "b.csv"))[0].format == "CSV"
    fcs(tmp_path / "without_suffix")
    assert [path.rpartition("/")[2] for path in find(tmp_path)[0]] == ["a.csv", "without_suffix"]


def test_the_reader_of_an_fcs_file_travels_without_its_keywords(tmp_path):
    keywords = {"SPILL": "2,FL1-A,FL2-A,1,0.1,0.2,1", "NOTE": "long"}
    path = fcs(tmp_path / "a.fcs", keywords=keywords)
    (file,) = describe(path)
    assert (file.reader.keywords, file.reader.spillover, file.reader.warnings) == ({}, None, [])
    np.testing.assert_array_equal(file.reader.read(2, 5), EVENTS[2:5])
    assert file.spillover.source == f"{path}, SPILL"
    assert file.spillover.matrix.tolist() == [[1, 0.1], [0.2, 1]]


def test_a_study_in_the_folder_of_the_data_is_no_data(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    study(tmp_path / "study.zarr")
    paths, problems = find(tmp_path)
    assert paths == [str(tmp_path / "a.csv")]
    assert [(p.level, p.place) for p in problems] == [("note", str(tmp_path / "study.zarr"))]
    ss.ingest(tmp_path, tmp_path / "new.zarr")
    assert ss.ingest(tmp_path, tmp_path / "new.zarr", resume=True).samples == ("a",)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(DataError, match="holds no FCS, AnnData, parquet or CSV file"):
        find(tmp_path)


def test_a_study_that_is_named_is_data_with_its_samples(tmp_path):
    study(tmp_path / "study.zarr")
    assert find(tmp_path / "study.zarr") == ([str(tmp_path / "study.zarr")], [])
    report = ss.ingest(tmp_path / "study.zarr", tmp_path / "new.zarr")
    assert report.samples == ("a", "b")
    np.testing.assert_array_equal(ss.open_cells(tmp_path / "new.zarr")["X"].values, EVENTS)


def test_a_study_that_was_treated_says_so(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    ss.ingest(tmp_path / "a.csv", tmp_path / "study.zarr", transform="arcsinh:5")
    ((file),) = describe(str(tmp_path / "study.zarr"))
    (problem,) = file.problems
    assert problem.level == "warning"
    assert "treated already (transform)" in problem.text


@pytest.mark.parametrize("row_group_size", [1, 7_000, BATCH_ROWS, 10**6])
def test_any_rows_of_parquet_are_those_of_the_whole(tmp_path, row_group_size):
    n = 50 if row_group_size == 1 else 40_000
    table, path = frame(n), str(tmp_path / "t.parquet")
    table.to_parquet(path, row_group_size=row_group_size)
    (file,) = describe(path)
    assert file.channels == ("CD3", "CD45.1")
    edges = [0, 1, n // 3, 7_000, BATCH_ROWS, n - 1, n]
    for first in edges:
        for stop in edges:
            read = file.reader.read(min(first, n), min(stop, n))
            np.testing.assert_array_equal(read, table.to_numpy()[first:stop])


def test_parquet_of_other_numbers_is_float32_and_nulls_are_nan(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    decimals = pa.array([None, 2]).cast(pa.decimal128(21, 2))
    table = {"i": pa.array([1, None]), "d": decimals, "f": pa.array([0.5, 1.5]), "t": ["x", "y"]}
    parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    (file,) = describe(str(tmp_path / "t.parquet"))
    assert file.channels == ("i", "d", "f")
    events = file.reader.read(0, 2)
    assert events.dtype == np.float32
    np.testing.assert_array_equal(events, [[1, np.nan, 0.5], [np.nan, 2, 1.5]])


def test_a_damaged_row_group_is_told_by_its_file(tmp_path):
    path = tmp_path / "t.parquet"
    frame(20_000).to_parquet(path, row_group_size=5_000)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 30_000] = bytes(30_000)
    path.write_bytes(content)
    (file,) = describe(str(path))
    with pytest.raises(DataError, match=rf"^{path}: cannot be read") as caught:
        file.reader.read(0, 20_000)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"t\.parquet: "):
        ss.ingest(path, tmp_path / "study.zarr")


def test_a_parquet_file_that_shrank_is_told(tmp_path):
    path = tmp_path / "t.parquet"
    frame(100).to_parquet(path)
    (file,) = describe(str(path))
    frame(60).to_parquet(path)
    with pytest.raises(DataError, match=r"ends at row 60, 100 were there"):
        file.reader.read(0, 100)


@pytest.mark.parametrize(
    ("name", "module", "extra"), [("t.parquet", "pyarrow", "parquet"), ("t.h5ad", "h5py", "anndata")]
)
def test_a_package_that_is_missing_is_named_with_its_extra(tmp_path, monkeypatch, name, module, extra):
    (tmp_path / name).write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=rf'{name}: .* needs {module}, .*"scaleshift\[{extra}\]"'):
        describe(str(tmp_path / name))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.h5ad", "t.fcs", "t.zarr", "other"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"PAR1" + bytes(50) + b"PAR1", b"FCS3.1", b"a,b\n1\n"])
def test_what_is_none_of_the_formats_is_an_error_that_starts_with_the_path(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"^{tmp_path / name}: ") as caught:
        describe(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.fcs", "a.csv", "a.parquet", "a.h5ad", "a.zarr", "a"])
def test_pipes_and_devices_are_refused_and_never_opened(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=rf"^{tmp_path / name}: is a pipe: write it to a file first"):
        describe(str(tmp_path / name))
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match=rf"^{tmp_path / name}: is a device, not a file"):
        describe(str(tmp_path / name))


@pytest.mark.parametrize("argument", ["meta", "panel", "compensation"])
def test_pipes_are_no_sheets_and_no_matrices(tmp_path, argument):
    fcs(tmp_path / "a.fcs")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=rf"{tmp_path / 'pipe.csv'}: is a pipe"):
        ss.ingest(tmp_path / "a.fcs", tmp_path / "s.zarr", **{argument: str(tmp_path / "pipe.csv")})


@pytest.mark.parametrize("index", [[5, 7], ["x", "y"], pd.Index([5, 7], name="cell_id"), pd.RangeIndex(2)])
def test_the_index_of_a_pandas_frame_is_no_marker(tmp_path, index):
    path = str(tmp_path / "t.parquet")
    pd.DataFrame({"CD3": [1.0, 2.0], "CD4": [3.0, 1e300]}, index=index).to_parquet(path)
    (file,) = describe(path)
    assert file.channels == ("CD3", "CD4")
    np.testing.assert_array_equal(file.reader.read(0, 2), np.float32([[1, 3], [2, np.inf]]))
    told = [p.text for p in file.problems]
    assert told == [] if isinstance(index, pd.RangeIndex) else told[0].startswith("the index of the table is")


def test_the_index_of_a_pandas_frame_may_hold_the_samples(tmp_path):
    path = str(tmp_path / "t.parquet")
    pd.DataFrame({"CD3": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="sample")).to_parquet(path)
    (file,) = describe(path, sample="sample")
    assert [group.sample for group in file.groups] == ["a", "b"]
    assert file.problems == ()
