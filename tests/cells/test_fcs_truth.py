"""Real and edge files read to their truth, and to what FlowIO reads where FlowIO is right."""

import hashlib
import json
import warnings
from contextlib import contextmanager
from pathlib import Path

import flowio
import numpy as np
import pytest

from scaleshift.cells.fcs import list_data_sets, read_fcs
from scaleshift.errors import DataError

DATA = Path(__file__).parents[1] / "data"
LOCAL = json.loads((DATA / "fcs_truth.json").read_text())
# FlowIO follows the offsets of TEXT and reads values shifted by 23 (cytoflow_cyan)
FLOWIO_IS_WRONG = {"cytoflow_cyan.fcs"}


@contextmanager
def noted(name):
    """Whatever fails inside tells the file."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while reading {name}")
        raise


def digest(events):
    return hashlib.sha256(np.ascontiguousarray(events, "<f8").tobytes()).hexdigest()


def check_file(path, truth):
    """Every fact of one file, or one line that says why it cannot be read."""
    if not truth["readable"]:
        with pytest.raises(DataError) as refused:
            read_fcs(path)
        assert str(refused.value).startswith(f"{path}: ")
        assert "\n" not in str(refused.value)
        return
    (facts,) = truth["data_sets"]
    duplicates = "rename" if len(set(facts["names"])) < len(facts["names"]) else "raise"
    fcs = read_fcs(path, raw=True, duplicates=duplicates)
    events = fcs.events
    assert events.shape == (fcs.n_events, len(fcs.channels)) == (facts["events"], facts["channels"])
    assert duplicates == "rename" or fcs.channels == facts["names"]
    if facts.get("markers"):
        assert fcs.markers == [(marker or "").strip() for marker in facts["markers"]]
    assert fcs.version == facts.get("version", fcs.version)
    if "matrix_sha256" in facts:
        assert digest(events) == facts["matrix_sha256"]
    if "preprocessed" in facts:
        scaled = read_fcs(path, duplicates=duplicates).events
        np.testing.assert_allclose(scaled[0], facts["preprocessed"]["row_first"], rtol=1e-6)
        np.testing.assert_allclose(
            scaled.sum(axis=0, dtype="f8"), facts["preprocessed"]["column_sum"], rtol=1e-6
        )


def check_against_flowio(path):
    """Stored values bit for bit, scaled ones to the precision of the matrix; None where FlowIO gives up."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings(action="ignore"):
            other = flowio.FlowData(file, ignore_offset_error=True, ignore_offset_discrepancy=True)
            stored = other.as_array(preprocess=False)
    except Exception:  # whatever FlowIO makes of files that it does not read
        return None
    fcs = read_fcs(path, raw=True, duplicates="rename")
    assert digest(fcs.events) == digest(stored)
    try:
        scaled = other.as_array()
    except ValueError:  # a $TIMESTEP that is text
        return True
    ours = read_fcs(path, duplicates="rename").events
    np.testing.assert_allclose(ours, scaled, rtol=1e-6 if ours.dtype == np.float32 else 1e-12)
    return True


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_a_file_that_ships_with_the_tests_reads_to_its_truth(name):
    check_file(DATA / name, LOCAL[name])


@pytest.mark.parametrize("name", sorted(name for name in LOCAL if LOCAL[name]["readable"]))
def test_a_file_that_ships_with_the_tests_reads_as_flowio_reads_it(name):
    read = check_against_flowio(DATA / name)
    # FlowIO has no file with offsets of zeros, and none whose events begin between those of HEADER and TEXT
    assert read or name in {"e14_header_zero_offsets.fcs"}


def test_every_reference_file_reads_to_its_truth(shared):
    truth = json.loads((shared / "fcs" / "truth.json").read_text())
    names = [name for name, facts in truth.items() if facts["group"] != "spillover matrix"]
    assert len(names) == 48
    for name in names:
        with noted(name):
            check_file(shared / "fcs" / name, truth[name])


def test_every_reference_file_reads_as_flowio_reads_it(shared):
    truth = json.loads((shared / "fcs" / "truth.json").read_text())
    compared = 0
    for name, facts in truth.items():
        if facts.get("readable") and facts["group"] != "spillover matrix" and name not in FLOWIO_IS_WRONG:
            with noted(name):
                compared += check_against_flowio(shared / "fcs" / name) is not None
    assert compared >= 40


def test_offsets_of_which_neither_is_always_right_are_told():
    fcs = read_fcs(DATA / "e15_header_off_by_one.fcs")
    (warning,) = fcs.warnings
    assert "HEADER puts DATA at bytes 658 to 4657" in warning
    assert "TEXT puts DATA at bytes 657 to 4656" in warning


def test_a_cut_file_tells_how_many_events_are_there():
    with pytest.raises(DataError, match=r"e26_truncated.fcs: is cut off: 149 of the 200 events"):
        read_fcs(DATA / "e26_truncated.fcs")


def test_another_kind_of_file_is_told_by_its_first_bytes():
    with pytest.raises(DataError, match=r"is not an FCS file \(a ZIP archive\): it begins with b'PK"):
        read_fcs(DATA / "e34_not_fcs.fcs")


def test_names_that_stand_twice_are_named_or_numbered():
    path = DATA / "e11_dup_pnn.fcs"
    with pytest.raises(DataError, match=r"'CD3' \(channels 2, 3\); pass duplicates=\"rename\""):
        read_fcs(path)
    fcs = read_fcs(path, duplicates="rename")
    assert fcs.channels == ["FSC-A", "CD3-1", "CD3-2", "PE-A", "Time"]
    assert any("'CD3' (channels 2, 3)" in warning for warning in fcs.warnings)


def test_a_clean_file_has_no_warnings():
    assert read_fcs(DATA / "tidytof_aml_healthy.fcs").warnings == []
    assert read_fcs(DATA / "flowio_B01_KC.fcs").warnings == []


def test_spillover_is_found_under_its_names():
    new, old = (
        read_fcs(DATA / "flowio_B01_KC.fcs").spillover,
        read_fcs(DATA / "flowkit_index_sorted.fcs").spillover,
    )
    assert (len(new.channels), new.matrix.shape) == (8, (8, 8))
    assert (len(old.channels), old.matrix.shape) == (6, (6, 6))
    assert read_fcs(DATA / "tidytof_aml_healthy.fcs").spillover is None


def test_one_data_set_is_a_list_of_one():
    (fcs,) = list_data_sets(DATA / "flowkit_line100.fcs")
    assert (fcs.data_set, fcs.n_data_sets, fcs.n_events) == (0, 1, 100)
