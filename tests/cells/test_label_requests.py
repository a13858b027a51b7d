"""Labels that no study could get are refused before there is one."""

import sys

import anndata
import numpy as np
import pandas as pd
import pytest

from scaleshift.cells import as_cells, label_cells, open_cells, write_cells
from scaleshift.cells.labels.sources import check_request
from scaleshift.errors import DataError

TABLE = pd.DataFrame({"file": ["a.fcs"], "event": [0], "label": ["T"]})


@pytest.fixture
def sources(tmp_path):
    """What labels may come from, by name."""
    (tmp_path / "gates" / "S1").mkdir(parents=True)
    TABLE.to_csv(tmp_path / "gates" / "S1" / "T.csv")
    TABLE.to_parquet(tmp_path / "gates" / "B.parquet")
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    TABLE.to_parquet(tmp_path / "t.parquet")
    cells = anndata.AnnData(np.zeros((1, 1)), TABLE.set_axis(["c1"]))
    cells.write_h5ad(tmp_path / "t.h5ad")
    (tmp_path / "w.wsp").write_text("<Workspace/>")
    names = ("t.csv", "t.parquet", "t.h5ad", "gates", "w.wsp")
    return {"frame": TABLE, "channel": "channel:gate"} | {name: tmp_path / name for name in names}


@pytest.mark.parametrize("name", ["frame", "channel", "t.csv", "t.parquet", "t.h5ad", "gates"])
def test_what_may_be_there_passes(sources, name):
    check_request(sources[name])


def test_a_workspace_passes_with_the_files_that_it_is_told_of(sources, tmp_path):
    pytest.importorskip("flowkit")
    check_request(sources["w.wsp"], fcs=tmp_path, gates=["T"])
    with pytest.raises(DataError, match="nowhere does not exist"):
        check_request(sources["w.wsp"], fcs=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("t.csv", {"column": "gate"}, r"t.csv has no column 'gate'.*--column"),
        ("frame", {"column": "gate"}, "the table has no column 'gate'"),
        ("t.csv", {"gates": ["T"]}, "gates= goes with a folder of gates or a workspace"),
        ("gates", {"gates": ["NK"]}, "gates of .*'NK' is not there"),
        ("gates", {"column": "label"}, "column= goes with a table"),
        ("channel", {"first_event": 1}, "first_event= goes with event numbers"),
        ("gates", {"overlap": "last"}, "overlap is 'last', expected one of refuse, first"),
    ],
)
def test_options_must_go_with_the_source(sources, name, options, message):
    with pytest.raises(DataError, match=message):
        check_request(sources[name], **options)


def test_what_is_not_there_or_is_no_source_is_named(sources, tmp_path):
    with pytest.raises(DataError, match=r"nowhere.wsp does not exist: expected a table"):
        check_request(tmp_path / "nowhere.wsp")
    with pytest.raises(DataError, match="labels is a list: expected a path"):
        check_request(["T", "B"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty holds no table of a gate"):
        check_request(tmp_path / "empty")
    (tmp_path / "gates" / "NK.tsv").write_text("file\tnumber\na.fcs\t1\n")
    with pytest.raises(DataError, match=r"NK.tsv has no column 'event'"):
        check_request(tmp_path / "gates")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("w.wsp", "flowkit", "flowjo"),
        ("t.parquet", "pyarrow.parquet", "parquet"),
        ("gates", "pyarrow.parquet", "parquet"),
        ("t.h5ad", "anndata.io", "anndata"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(sources, name, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    with pytest.raises(DataError, match=rf"{name}.* needs {module.partition('.')[0]}.*scaleshift\[{extra}\]"):
        check_request(sources[name])


def test_the_column_with_the_samples_may_have_any_name(tmp_path):
    table = pd.DataFrame({"donor": ["b", "a", "b"], "event": [0, 0, 1], "gate": ["T", "B", "T"]})
    write_cells(as_cells([[1.0], [2.0], [3.0]], sample=["a", "b", "b"]), tmp_path / "study.zarr")
    label_cells(tmp_path / "study.zarr", table, column="gate", sample="donor")
    cells = open_cells(tmp_path / "study.zarr")
    assert cells["label"].values[cells["label_code"].values].tolist() == ["B", "T", "T"]
    with pytest.raises(DataError, match=r"has no column 'doner' of samples; did you mean 'donor'\?"):
        label_cells(tmp_path / "study.zarr", table, column="gate", sample="doner")
