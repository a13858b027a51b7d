"""Labels replace those of a study as a whole; an interruption is seen, and mended by doing it again."""

import json
import os
import subprocess
import sys
import textwrap

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr
from label_studies import COUNTS, EVENTS, RNG, SAMPLES, N, X, labels_of, make_study, set_record

from scaleshift.cells import append_cells, as_cells, label_cells, open_cells
from scaleshift.cells.labels import codes as label_codes
from scaleshift.cells.labels import label
from scaleshift.cells.manifest import read_manifest
from scaleshift.errors import DataError, SchemaError

OLD = RNG.choice(["old", "older"], N)
NEW = RNG.choice([3, 1, 22], N)
TABLE = pd.DataFrame({"sample": SAMPLES, "event": EVENTS, "label": NEW})


@pytest.fixture
def path(tmp_path):
    return make_study(tmp_path / "study.zarr", label=OLD)


@pytest.mark.parametrize("batch", [1, 1_000_000])
def test_new_labels_stand_in_place_of_the_old_ones(path, monkeypatch, batch):
    monkeypatch.setattr(label, "BATCH", batch)
    label_cells(path, TABLE[10:])
    assert labels_of(path) == [None] * 10 + NEW[10:].tolist()
    assert open_cells(path)["label"].values.tolist() == [1, 3, 22]
    np.testing.assert_array_equal(open_cells(path)["X"], X)
    with pytest.warns(anndata.ImplicitModificationWarning):
        assert anndata.read_zarr(path).obs["label"].tolist()[10:] == NEW[10:].tolist()


@pytest.mark.parametrize("batch", [1, 1_000_000])
def test_the_report_counts_cells_by_label_and_sample(path, monkeypatch, batch):
    monkeypatch.setattr(label, "BATCH", batch)
    chosen = TABLE[TABLE["sample"] != "S2"]
    report = label_cells(path, chosen, parents={"22": "T", "T": "all", "x": "all"})
    assert json.loads(json.dumps(report)) == report
    counts = chosen["label"].value_counts()
    samples = chosen.groupby("label")["sample"].nunique()
    assert report["labels"] == [
        {"label": v, "parent": "T" if v == 22 else None, "n_cells": counts[v], "n_samples": samples[v]}
        for v in (1, 3, 22)
    ]
    for entry in report["samples"]:
        of_sample = chosen[chosen["sample"] == entry["sample"]]
        assert entry["n_cells"] == COUNTS[entry["sample"]]
        assert entry["n_labelled"] == len(of_sample)
        assert entry["labels"] == {str(k): v for k, v in of_sample["label"].value_counts().items()}
    assert report["samples_without_labels"] == ["S2"]
    assert (report["n_labelled"], report["n_unlabelled"]) == (N - 25, 25)
    assert report["remarks"][-1]["text"] == "1 samples have no label: S2"
    assert report["parents"] == {"22": "T", "T": "all"}


def test_parents_are_kept_with_the_study_until_it_is_labelled_again(path, tmp_path):
    assert "parents" not in open_cells(path).attrs
    sheet = tmp_path / "parents.csv"
    pd.DataFrame({"Label": [22, 3, "T"], "Parent": ["T", "", "all"]}).to_csv(sheet, index=False)
    label_cells(path, TABLE, parents=sheet)
    assert open_cells(path).attrs["parents"] == {"22": "T", "T": "all"}
    append_cells(as_cells(X[:3], ["new"] * 3, [1, 1, 4], ["CD3", "CD19"]), path)
    assert read_manifest(path).parents == {"22": "T", "T": "all"}
    assert labels_of(path)[-3:] == [1, 1, 4]
    label_cells(path, TABLE)
    assert "parents" not in open_cells(path).attrs


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "b", "b": "c", "c": "a"}, r"'a' is its own ancestor \('a' -> 'b' -> 'c' -> 'a'\)"),
        (pd.DataFrame({"label": ["a"]}), "table: has no column 'parent'"),
        ("missing.csv", "missing.csv: does not exist, expected a sheet"),
    ],
)
def test_parents_that_make_no_hierarchy_are_refused(path, parents, message):
    with pytest.raises(DataError, match=message):
        label_cells(path, TABLE, parents=parents)


def test_a_study_without_labels_gets_some_and_loses_them_again_on_request_only(tmp_path):
    path = make_study(tmp_path / "study.zarr")
    label_cells(path, TABLE)
    assert labels_of(path) == NEW.tolist()
    with pytest.raises(DataError, match=r"the table labels no cell; pass 'none' in its place"):
        label_cells(path, TABLE[:0])
    nothing = TABLE.assign(label=np.where(NEW == 1, "", "Unknown"))
    n = (NEW != 1).sum()
    with pytest.raises(
        DataError, match=rf"labels no cell: taken as unlabelled: 'Unknown' \({n} times\); .*''"
    ):
        label_cells(path, nothing)
    assert labels_of(path) == NEW.tolist()
    assert label_cells(path, "none")["n_labelled"] == 0
    assert labels_of(path) == [None] * N


@pytest.mark.parametrize("child", ["CD4 naiv", "cd4 naive"])
def test_a_misspelt_child_is_refused_with_the_label_that_it_resembles(path, child):
    table = TABLE.assign(label=np.where(NEW == 1, "CD4 naive", "CD8 naive"))
    parents = {child: "CD4", "CD8 naive": "CD8", "CD4": "T", "NK": "all"}
    with pytest.raises(DataError, match=rf"parents names '{child}', .*did you mean 'CD4 naive'"):
        label_cells(path, table, parents=parents)
    assert set(labels_of(path)) == {"old", "older"}
    label_cells(path, table, parents=parents | {"CD4 naive": "CD4"})


def test_umlauts_of_a_mac_and_of_excel_are_one(tmp_path):
    files = ({"path": "/x/Gro\u0308\u00dfe.fcs", "sample": "Mu\u0308ller", "n_events": 4},)
    path = make_study(tmp_path / "study.zarr", x=X[:4], sample=["Mu\u0308ller"] * 4, files=files)
    words = ["f\u00fcr", "fu\u0308r", "Ungated", "f\u00fcr"]
    for column, name in {"file": "Gr\u00f6\u00dfe", "sample": "M\u00fcller"}.items():
        table = pd.DataFrame({column: name, "event": range(4), "label": words})
        label_cells(path, table, parents={"fu\u0308r": "all"})
        assert labels_of(path) == ["f\u00fcr", "f\u00fcr", None, "f\u00fcr"]
        assert open_cells(path).attrs["parents"] == {"f\u00fcr": "all"}


def test_datasets_that_were_opened_before_give_no_wrong_labels(path):
    before = open_cells(path)
    assert before["label_code"].values.min() == 0  # the array is open now
    label_cells(path, TABLE)
    with pytest.raises(DataError, match="was written anew since it was opened: open it again"):
        before["label_code"].compute()


def test_a_full_temporary_folder_is_told(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(label_codes.os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"labels need 0 MB in .* \(No space left on device\): .*TMPDIR"):
        label_cells(path, TABLE)


def test_a_channel_of_whole_numbers_labels_the_cells(tmp_path):
    gate = np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(0, 4, N)).astype(np.float32)
    path = make_study(tmp_path / "study.zarr", x=np.column_stack([X, gate]), markers=["CD3", "CD19", "gate"])
    report = label_cells(path, "channel:gate")
    assert labels_of(path) == [int(v) if v > 0 else None for v in gate]
    assert report["unlabelled_words"] == {"0": (gate == 0).sum()}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CD3", r"column 'CD3' holds -?[0-9.]+, so it is a measurement: expected whole numbers"),
        ("many", r"column 'many' holds very many different numbers, so it is a measurement"),
        ("huge", r"column 'huge' holds inf, so"),
        ("CD33", r"has no column 'CD33'; known: CD3, many, huge"),
    ],
)
def test_a_channel_that_was_measured_is_refused(tmp_path, name, message):
    x = np.column_stack([RNG.normal(size=2_000), np.arange(2_000), np.full(2_000, np.inf)])
    path = make_study(
        tmp_path / "study.zarr", x=x, sample=["s"] * 2_000, files=(), markers=["CD3", "many", "huge"]
    )
    with pytest.raises(DataError, match=message):
        label_cells(path, f"channel:{name}")


@pytest.mark.parametrize("labels", ["nothing.csv", [1, 2], 5])
def test_what_is_no_source_of_labels_is_refused(path, labels):
    with pytest.raises(DataError, match=r"does not exist: expected a table|labels is a \w+: expected a path"):
        label_cells(path, labels)


def test_there_must_be_a_study(tmp_path):
    with pytest.raises(SchemaError, match="does not exist: expected a study"):
        label_cells(tmp_path / "study.zarr", TABLE)


def test_damaged_label_chunks_are_mended(path):
    for i in (0, 7):
        (path / f"obs/label/codes/c/{i}").write_bytes(b"damaged")
    label_cells(path, TABLE)
    assert labels_of(path) == NEW.tolist()


def test_cells_behind_the_committed_ones_are_left_alone(path):
    for name in ("X", "obs/sample/codes", "obs/label/codes", "obs/_index"):  # as a killed append leaves them
        array = zarr.open_array(path / name, mode="r+")
        array.resize((N + 100, *array.shape[1:]))
    label_cells(path, TABLE)
    assert labels_of(path) == NEW.tolist()


KILLED = """
    import shutil, sys
    from mortal import survives
    from scaleshift.cells import label_cells
    from scaleshift.cells.labels import label

    folder, table = sys.argv[1:]
    label.BATCH = 1

    for step in range(200):
        path = f"{folder}/{step}.zarr"
        shutil.copytree(f"{folder}/study.zarr", path)
        if survives(lambda: label_cells(path, table), step, within=".zarr"):
            print(step)
            break
"""


def test_labelling_killed_at_any_point_leaves_old_labels_new_ones_or_a_refusal(path, tmp_path):
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    arguments = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), str(tmp_path / "table.csv")]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    steps = int(subprocess.run(arguments, check=True, capture_output=True, text=True, env=here).stdout)
    assert steps > 10
    refused = []
    for step in range(steps + 1):
        killed = tmp_path / f"{step}.zarr"
        if read_manifest(killed).labelling:
            refused.append(step)
            with pytest.raises(SchemaError, match=r"run label_cells \(scaleshift label\) again"):
                open_cells(killed)
        else:
            assert labels_of(killed) in (OLD.tolist(), NEW.tolist())
        if step % 3 == 0:
            label_cells(killed, TABLE)
            assert labels_of(killed) == NEW.tolist()
    assert len(refused) > 8
    with pytest.raises(SchemaError, match="writing its labels was interrupted"):
        append_cells(as_cells(X[:3], ["new"] * 3, marker=["CD3", "CD19"]), tmp_path / f"{refused[-1]}.zarr")


def test_a_marked_study_is_refused_and_its_record_stays_small(path):
    assert "labelling" not in str(zarr.open_array(path / "uns/scaleshift", mode="r")[()])
    set_record(path, labelling=True)
    with pytest.raises(SchemaError, match="writing its labels was interrupted, or is still under way"):
        open_cells(path)
