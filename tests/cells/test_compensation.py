"""Spillover is taken out as the reference does, and put back; what cannot be is refused by name."""

import json
import warnings

import flowio
import flowkit
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scaleshift.cells.treatment.compensation import (
    Spillover,
    already_compensated,
    compensate,
    positions,
    spill_over,
)
from scaleshift.cells.treatment.spillover_table import read_spillover
from scaleshift.errors import DataError, SchemaError


def read(path):
    """Events, $PnN, $PnS and the spillover text, by an independent reader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = flowio.FlowData(str(path), ignore_offset_error=True)
    text = data.text.get("spillover", data.text.get("spill", ""))
    return data.as_array(preprocess=False), list(data.pnn_labels), list(data.pns_labels), text


def test_compensated_events_are_raw_times_the_inverse(shared):
    name = "e20_spill_identity_comma_names.fcs"
    events, channels, markers, text = read(shared / "fcs" / name)
    spillover = Spillover.parse(text, name)
    columns = positions(spillover, channels, markers, name)
    assert [channels[i] for i in columns] == ["FITC-A", "PE-A"]
    truth = json.loads((shared / "fcs" / "truth.json").read_text())[name]["comp_row0"]
    got = compensate(events.astype(np.float32), columns, spillover)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got[0, columns], truth, rtol=1e-6)
    np.testing.assert_array_equal(got[:, [0, 1, 4]], events[:, [0, 1, 4]].astype(np.float32))


def test_a_real_file_is_compensated_as_flowkit_does(shared):
    path = shared / "fcs" / "flowkit_comp_example.fcs"
    _, channels, markers, _ = read(path)
    table = shared / "fcs" / "flowkit_comp_complete_example.csv"
    spillover = read_spillover(table)
    assert len(spillover.channels) == 14
    columns = positions(spillover, channels, markers, path.name)
    theirs = flowkit.Matrix(table.read_text(), list(spillover.channels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file's end offset
        sample = flowkit.Sample(path, ignore_offset_error=True)
    sample.apply_compensation(theirs)
    expected = sample.get_events(source="comp")
    preprocessed = sample.get_events(source="raw")
    got = compensate(preprocessed, columns, spillover)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert np.abs(got - preprocessed).max() > 100


def test_a_spillover_with_a_channel_that_the_file_lacks_is_refused_by_name(shared):
    name = "e19_spill_missing_channel.fcs"
    _, channels, markers, text = read(shared / "fcs" / name)
    with pytest.raises(
        DataError, match=rf"{name}: lacks the channel\(s\) APC-A of the spillover matrix from"
    ) as e:
        positions(Spillover.parse(text, f"{name}, $SPILLOVER"), channels, markers, name)
    assert "\n" not in str(e.value)


def test_the_matrix_of_another_panel_is_refused_by_its_channels(shared):
    other = read_spillover(shared / "fcs" / "flowkit_den_comp_null_channel.csv")
    assert other.channels[0] == "CD8 PerCP-Cy55 FLR-A"  # the header starts with "# "
    _, channels, markers, _ = read(shared / "fcs" / "flowkit_comp_example.fcs")
    with pytest.raises(DataError, match=r"lacks the channel\(s\) CD8 PerCP-Cy55 FLR-A, IL2 BV421 FLR-A, "):
        positions(other, channels, markers, "a.fcs")


def test_a_file_that_flowjo_compensated_is_not_compensated_twice(shared):
    _, channels, markers, text = read(shared / "fcs" / "e30_fjcomp_names.fcs")
    assert already_compensated(channels, markers) == ["FJComp-FITC-A", "FJComp-PE-A"]
    with pytest.raises(DataError, match=r"is compensated already, .*'FJComp-FITC-A'.*compensation='none'"):
        positions(Spillover.parse(text, "e30"), channels, markers, "e30")


@pytest.mark.parametrize("name", ["Comp-FITC-A", "FJComp-FITC-A", "comp-FITC-A", "<FITC-A>"])
def test_names_of_compensated_channels(name):
    assert already_compensated(["FSC-A", name], ["", ""]) == [name]
    assert already_compensated(["FSC-A", "FITC-A"], ["", "<none>"]) == []


@pytest.mark.parametrize(
    "name",
    [
        "fcsparser_fortessa.fcs",
        "flowio_B01_KC.fcs",
        "flowkit_comp_example.fcs",
        "flowkit_index_sorted.fcs",
        "peacoqc_111.fcs",
    ],
)
def test_spillovers_of_real_files_find_their_channels(shared, name):
    events, channels, markers, text = read(shared / "fcs" / name)
    spillover = Spillover.parse(text, name)
    columns = positions(spillover, channels, markers, name)
    assert [channels[i] for i in columns] == list(spillover.channels)
    assert np.isfinite(compensate(events, columns, spillover)).all()


# Names -------------------------------------------------------------------------------------------------

SOME = ["FSC-A", "FITC-A", "PE-A", "7"]


def named(*names):
    return Spillover(names, np.eye(len(names)), "matrix.csv")


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["PE-A", "FITC-A"], [2, 1]),
        (["Comp-PE-A", "FJComp-FITC-A"], [2, 1]),
        (["CD3", "PE-A"], [1, 2]),  # by $PnS where no $PnN has the name
        (["2", "3"], [1, 2]),  # numbers of channels
        (["7"], [3]),  # unless a channel is called so
        ([" PE-A "], [2]),
    ],
)
def test_channels_are_found_by_name_then_marker_then_number(names, columns):
    found = positions(named(*names), SOME, ["", "CD3", "", ""], "a.fcs")
    assert found.tolist() == columns
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["PE-B"], r"a.fcs: lacks the channel\(s\) PE-B of .*matrix.csv; did you mean 'PE-A'\?"),
        (["9", "0"], r"lacks the channel\(s\) 9, 0"),
        (["FITC-A", "CD3"], "'FITC-A' and 'CD3' .* are both the channel 'FITC-A'"),
        (["SS"], r"2 channels are called 'SS'.*\(PE-A, 7\)"),
    ],
)
def test_names_that_do_not_fit_are_told(names, message):
    with pytest.raises(DataError, match=message):
        positions(named(*names), SOME, ["", "CD3", "SS", "SS"], "a.fcs")


# Reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "0", "-1,a,1", "99999999999,a", "1001,a", "٣,a,1"),  # no number of channels
        *("2,a,b,1,0,0", "2,a,b,1,0,0,1,1", "1,a, b,1"),  # too few, too many, a comma in a name
        *("2,a,b,1,0,x,1", "2,a,b,1,0,nan,1", "1,a,inf", "2,a,a,1,0,0,1"),
    ],
)
def test_a_malformed_spillover_is_one_line_that_names_the_file(text):
    with pytest.raises(DataError, match=r"^a\.fcs: [^\n]*$"):
        Spillover.parse(text, "a.fcs")


def test_channel_names_may_be_numbers_and_blanks_do_not_count():
    spillover = Spillover.parse(" 2, 3 ,4\n, 1 ,.1, 0,1e0 ", "a.fcs")
    assert spillover.channels == ("3", "4")
    assert spillover.matrix.tolist() == [[1, 0.1], [0, 1]]
    assert not spillover.is_identity
    assert Spillover.parse("2,a,b,1,0,0,1", "a.fcs").is_identity


@pytest.mark.parametrize(
    "content",
    [
        "A-1,B,C\n1,.1,.2\n0,1,.3\n0,0,1\n",
        "# A-1,B,C\n1,.1,.2\n0,1,.3\n0,0,1\n\n",
        "\ufeffA-1\tB\tC\r\n1\t.1\t.2\r\n0\t1\t.3\r\n0\t0\t1\r\n",
        ",A-1,B,C\nA-1,1,.1,.2\nB,0,1,.3\nC,0,0,1\n",
        "A-1,B,C\nA-1,1,.1,.2\nB,0,1,.3\nC,0,0,1\n",  # as R writes row names
        ",A-1,B,C\nC,0,0,1\nA-1,1,.1,.2\nB,0,1,.3\n",  # rows in another order
        '"fluorochrome";"A-1";"B";"C"\n"A-1";1;.1;.2\n"B";0;1;.3\n"C";0;0;1\n',
        ",A-1,B,C\n1,1,.1,.2\n2,0,1,.3\n3,0,0,1\n",  # as R numbers rows
        ",A-1,B,C\nComp-C-A,0,0,1\nComp-A-1-A,1,.1,.2\nComp-B-A,0,1,.3\n",
    ],
)
def test_tables_of_all_kinds_hold_the_same_matrix(tmp_path, content):
    path = tmp_path / "matrix.csv"
    path.write_text(content, encoding="utf-8")
    expected = Spillover(("A-1", "B", "C"), np.array([[1, 0.1, 0.2], [0, 1, 0.3], [0, 0, 1]]), "x")
    assert read_spillover(path) == expected
    assert read_spillover(path).source == str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no spillover matrix"),
        ("\0\0", "no spillover matrix"),
        ("A,B\n1,0\n", "has 1 rows, expected 2"),
        ("A,B\n1,0\n0\n", "row 2 of the spillover matrix has 1 numbers, expected 2"),
        ("A,B\n1,0\n0,x\n", "holds 'x', expected a number"),
        ("A,A\n1,0\n0,1\n", "has the channel 'A' twice"),
        (",A,B\nx,1,0\ny,0,1\n", r"the row 'x' of the spillover matrix .* \(A, B\): name the rows like"),
        (",APC,FITC,PE\nPE-A,0,0,1\nAPC-A,1,0,0\nFITC-B,0,1,0\n", "the row 'FITC-B' of the spillover"),
        (",A,B\nA,1,0\nA,0,1\n", "the row 'A' of the spillover matrix is not called like a column of"),
        ("A,B\n100,10\n0,100\n", "is in per cent; divide its numbers by 100"),
        ("A,B\n1,nan\n0,1\n", "from 'A' to 'B' is nan"),
    ],
)
def test_a_table_that_is_no_matrix_is_told(tmp_path, content, message):
    (tmp_path / "m.csv").write_text(content)
    with pytest.raises(DataError, match=rf"m\.csv: .*{message}"):
        read_spillover(tmp_path / "m.csv")
    with pytest.raises(DataError, match=r"none\.csv: .*cannot be read"):
        read_spillover(tmp_path / "none.csv")


def test_a_matrix_is_kept_as_json():
    spillover = Spillover.parse("2,FITC-A,PE-A,1,0.2,0.05,1", "a.fcs")
    again = Spillover.from_json(json.loads(json.dumps(spillover.to_json())))
    assert again == spillover
    assert hash(again) == hash(spillover)
    assert again.source == spillover.source
    assert again != Spillover(spillover.channels, np.eye(2), "other")
    assert again != "text"
    for broken in (None, {}, {"channels": ["a"], "matrix": [[1, 2]], "source": "x"}, {"channels": 3}):
        with pytest.raises(SchemaError, match="no spillover matrix"):
            Spillover.from_json(broken)


# Arithmetic --------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, (3, 3), elements=st.floats(0, 0.3)),
    arrays(np.float32, (5, 4), elements=st.floats(-1e5, 1e5, width=32)),
)
@settings(max_examples=60, deadline=None)
def test_spilling_over_undoes_compensation(off_diagonal, events):
    matrix = off_diagonal.copy()
    np.fill_diagonal(matrix, 1)
    spillover, columns = Spillover(("a", "b", "c"), matrix, "x"), np.array([3, 0, 2])
    compensated = compensate(events.astype(np.float64), columns, spillover)
    again = spill_over(compensated, columns, spillover)
    np.testing.assert_allclose(again, events, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(again[:, 1], events[:, 1])


def test_blocks_of_rows_do_not_show_and_the_input_stays():
    rng = np.random.default_rng(0)
    events = rng.normal(1e3, 1e3, (40_000, 5)).astype(np.float32)
    before = events.copy()
    matrix = np.eye(3) + 0.1 * rng.random((3, 3))
    spillover, columns = Spillover(("a", "b", "c"), matrix, "x"), np.array([4, 1, 0])
    got = compensate(events, columns, spillover)
    np.testing.assert_array_equal(events, before)
    expected = events[:, columns].astype(np.float64) @ np.linalg.inv(matrix)
    np.testing.assert_allclose(got[:, columns], expected, rtol=1e-6, atol=1e-3)
    assert compensate(events, columns, spillover, out=events) is events
    np.testing.assert_array_equal(events, got)


def test_integers_become_float64_and_no_events_stay_none():
    spillover, columns = Spillover.parse("2,a,b,1,0.5,0,1", "x"), np.array([0, 1])
    assert compensate(np.array([[2, 2]]), columns, spillover).tolist() == [[2.0, 1.0]]
    assert compensate(np.empty((0, 2), np.float32), columns, spillover).shape == (0, 2)


def test_values_that_are_not_finite_spoil_their_own_event_only():
    spillover, columns = Spillover.parse("2,a,b,1,0.5,0,1", "x"), np.array([0, 1])
    got = compensate(np.array([[np.inf, 2.0, 1], [4.0, 3.0, np.nan]]), columns, spillover)
    assert got[1, :2].tolist() == [4.0, 1.0]
    assert not np.isfinite(got[0, :2]).all()
    assert got[0, 2] == 1


@pytest.mark.parametrize(
    ("matrix", "why"),
    [
        ([[1, 1], [1, 1]], "condition number"),
        ([[1, 0], [0, 0]], "the row of 'b' is 0"),
        ([[1, 1], [1, 1 + 1e-9]], "condition number is"),
    ],
)
def test_a_matrix_that_cannot_be_inverted_is_refused_by_name(matrix, why):
    spillover = Spillover(("a", "b"), np.array(matrix, np.float64), "bad.csv")
    with pytest.raises(DataError, match=rf"bad\.csv: .*cannot be inverted.*{why}"):
        compensate(np.ones((2, 2)), np.array([0, 1]), spillover)
