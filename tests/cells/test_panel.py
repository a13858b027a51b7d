"""Columns of a study: aligned by name over the files, and which of them are features."""

import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells.sheets.panel import Panel, align, read_panel
from scaleshift.errors import DataError

USUAL = {"FSC-A": "", "FITC-A": "CD4", "PE-A": "CD8", "APC-A": "CD3", "Time": ""}
FIX = "pass markers='common' (--markers common), name it in a panel sheet, or leave the file out"


def file(path, channels, cytometer=""):
    return SimpleNamespace(
        path=path, channels=list(channels), markers=list(channels.values()), cytometer=cytometer
    )


def usual(path, *, without=(), **changes):
    """A file with the usual panel: `FITC_A="CD5"` changes or adds a channel."""
    channels = USUAL | {name.replace("_", "-"): marker for name, marker in changes.items()}
    return file(path, {c: m for c, m in channels.items() if c not in without})


def panel(*rows, header=("fcs_colname", "antigen", "marker_class")):
    return read_panel(pd.DataFrame(rows, columns=header[: len(rows[0])]))


def told(columns, level):
    return [str(p) for p in columns.problems if p.level == level]


def features(columns):
    return [m for m, f in zip(columns.markers, columns.features, strict=True) if f]


def test_columns_are_called_by_marker_else_by_channel():
    columns = align([usual("a.fcs"), usual("b.fcs")])
    assert columns.markers == ("FSC-A", "CD4", "CD8", "CD3", "Time")
    assert columns.channels == tuple(USUAL)
    assert columns.kinds == ("scatter", "marker", "marker", "marker", "time")
    assert columns.features == (False, True, True, True, False)
    assert columns.classes == ("",) * 5
    assert columns.problems == []


@given(st.lists(st.permutations(list(USUAL)), min_size=1, max_size=5))
def test_whatever_the_order_of_the_channels_each_column_is_found(orders):
    files = [file(f"{i}.fcs", {c: USUAL[c] for c in order}) for i, order in enumerate(orders)]
    columns = align(files)
    assert columns.problems == []
    for given_file in files:
        positions = columns.positions[given_file.path]
        assert [given_file.channels[i] for i in positions] == list(columns.channels)
        assert columns.channels == tuple(files[0].channels)


def test_a_marker_may_sit_on_another_channel_in_some_files():
    files = [
        usual("a.fcs"),
        usual("b.fcs", PE_A="CD4", FITC_A="CD8"),
        usual("c.fcs", without=["APC-A"], BV421_A="CD3"),
    ]
    columns = align(files)
    assert features(columns) == ["CD4", "CD8", "CD3"]
    for given_file in files:
        found = [given_file.markers[i] for i in columns.positions[given_file.path]]
        assert [m or "none" for m in found[1:4]] == ["CD4", "CD8", "CD3"]
    (note,) = told(columns, "note")
    assert "'CD4' (FITC-A in a.fcs, PE-A in b.fcs)" in note
    assert "'CD3' (APC-A in a.fcs, BV421-A in c.fcs)" in note


def test_a_channel_without_a_marker_takes_that_of_other_files():
    columns = align([usual("a.fcs"), usual("b.fcs", PE_A="", APC_A="APC-A")])
    assert features(columns) == ["CD4", "CD8", "CD3"]
    assert told(columns, "note") == ["b.fcs: named as in other files: PE-A is 'CD8', APC-A is 'CD3'"]
    assert set(columns.positions) == {"a.fcs", "b.fcs"}


def test_an_isotope_without_a_marker_takes_that_of_other_files_too():
    columns = align([file("a.fcs", {"Ce140Di": "CD19"}), file("b.fcs", {"Ce140Di": ""})])
    assert columns.kinds == ("marker",)
    assert set(columns.positions) == {"a.fcs", "b.fcs"}


def test_spellings_of_one_channel_become_the_most_common():
    files = [usual("a.fcs", PE_A="hla-dr"), usual("b.fcs", PE_A="HLADR"), usual("c.fcs", PE_A="HLADR")]
    columns = align(files)
    assert features(columns) == ["CD4", "HLADR", "CD3"]
    assert told(columns, "note") == ["a.fcs: named as in other files: hla-dr is 'HLADR'"]


def test_another_marker_on_a_channel_is_an_error_that_names_both_files():
    columns = align([usual("a.fcs"), usual("b.fcs"), usual("c.fcs", APC_A="CD19")])
    text = "c.fcs: APC-A is 'CD19', but 'CD3' in a.fcs; say in a panel sheet which antigen it is"
    assert told(columns, "error") == [text]
    assert set(columns.positions) == {"a.fcs", "b.fcs"}
    assert features(columns) == ["CD4", "CD8", "CD3"]


def test_a_panel_settles_what_a_channel_shows():
    files = [usual("a.fcs"), usual("b.fcs", APC_A="CD3e clone X")]
    columns = align(files, panel(("APC-A", "CD3e")))
    assert features(columns) == ["CD4", "CD8", "CD3e"]
    assert set(columns.positions) == {"a.fcs", "b.fcs"}
    assert told(columns, "error") == []


def test_a_marker_that_stands_twice_names_no_column():
    columns = align([usual("a.fcs", APC_A="CD4")])
    assert features(columns) == ["FITC-A", "CD8", "APC-A"]
    assert "a.fcs: 'CD4' names FITC-A and APC-A: they are called by their channels" in told(columns, "note")


def test_of_area_and_height_the_area_keeps_the_marker():
    columns = align([file("a.fcs", {"FITC-H": "CD4", "FITC-A": "CD4", "PE-A": "CD8"})])
    assert dict(zip(columns.channels, columns.markers, strict=True))["FITC-A"] == "CD4"
    assert features(columns) == ["CD4", "CD8"]
    assert told(columns, "note") == ["study: no features, since they repeat a detector's pulse: FITC-H"]


def test_a_marker_called_like_another_channel_gives_way_to_it():
    columns = align([file("a.fcs", {"FITC-A": "", "PE-A": "FITC-A"})])
    assert columns.markers == ("FITC-A", "PE-A")


def test_a_file_that_lacks_a_marker_is_an_error_with_a_way_out():
    columns = align([usual("a.fcs"), usual("b.fcs"), usual("c.fcs", without=["APC-A"])])
    assert told(columns, "error") == [f"c.fcs: lacks the marker 'CD3'; {FIX}"]
    assert set(columns.positions) == {"a.fcs", "b.fcs"}
    assert features(columns) == ["CD4", "CD8", "CD3"]


def test_what_may_stand_for_a_missing_marker_is_suggested():
    files = [
        usual("a.fcs"),
        usual("b.fcs"),
        usual("c.fcs", without=["APC-A"], BV421_A="CD 3"),
        usual("d.fcs", APC_A="FITC dump", PE_A="CD3"),
    ]
    errors = told(align(files), "error")
    assert errors[0] == f"c.fcs: lacks the marker 'CD3' (it has 'CD 3'); {FIX}"
    assert errors[1] == f"d.fcs: lacks the marker 'CD8' (PE-A is 'CD3' here); {FIX}"
    assert len(errors) == 2


def test_a_marker_that_few_files_have_is_told_of_these():
    columns = align([usual("a.fcs"), usual("b.fcs"), usual("c.fcs", BV421_A="CD19")])
    assert not told(columns, "error")
    (warning,) = told(columns, "warning")
    assert warning.startswith("c.fcs: has what most files lack: 'CD19' (in 1 of 3 files); it does not enter")
    assert features(columns) == ["CD4", "CD8", "CD3"]
    assert set(columns.positions) == {"a.fcs", "b.fcs", "c.fcs"}


def test_common_markers_are_those_of_all_files():
    files = [usual("a.fcs"), usual("b.fcs", BV421_A="CD19"), usual("c.fcs", without=["APC-A"])]
    columns = align(files, markers="common")
    assert features(columns) == ["CD4", "CD8"]
    assert set(columns.positions) == {"a.fcs", "b.fcs", "c.fcs"}
    dropped = "CD3 (in 2 of 3 files), CD19 (in 1 of 3 files)"
    assert told(columns, "warning") == [f"study: not in all files and left out: {dropped}"]
    assert told(columns, "error") == []


def test_nothing_in_common_is_an_error():
    columns = align([file("a.fcs", {"FITC-A": "CD4"}), file("b.fcs", {"PE-A": "CD8"})], markers="common")
    assert told(columns, "error")[0].startswith("study: no marker to learn from; name the markers in a panel")


def test_markers_are_chosen_by_marker_or_channel_name():
    columns = align([usual("a.fcs"), usual("b.fcs")], markers=["APC-A", "cd4", "FSC-A"])
    assert features(columns) == ["FSC-A", "CD4", "CD3"]
    assert columns.problems == []


def test_chosen_markers_are_required_of_every_file():
    columns = align([usual("a.fcs"), usual("b.fcs", without=["PE-A", "Time"])], markers=["CD8"])
    assert told(columns, "error") == [
        "b.fcs: lacks the marker 'CD8'; take it out of markers, or leave the file out"
    ]
    assert columns.markers == ("FSC-A", "CD4", "CD8", "CD3", "Time")


@pytest.mark.parametrize(
    ("markers", "message"),
    [
        (["CD88"], "markers: no file has 'CD88'; known: CD4, CD8, CD3"),
        (["cd-4"], "markers: no file has 'cd-4'; did you mean 'CD4'?"),
        ("CD4", "markers='CD4': pass a list of names, 'common', or None"),
        ([], "markers names none: pass at least one"),
    ],
)
def test_markers_that_no_file_has_are_refused(markers, message):
    with pytest.raises(DataError, match="^" + message.replace("?", r"\?")):
        align([usual("a.fcs")], markers=markers)


def test_other_columns_are_kept_where_all_files_have_them():
    columns = align([usual("a.fcs", FSC_W=""), usual("b.fcs", without=["Time"], FSC_W=""), usual("c.fcs")])
    assert columns.markers == ("FSC-A", "CD4", "CD8", "CD3")
    assert told(columns, "note") == ["study: not in all files, no features, and left out: Time, FSC-W"]


def test_features_without_a_marker_name_are_listed_where_others_have_one():
    columns = align([file("a.fcs", {"FITC-A": "CD4", "PE-A": ""})])
    assert features(columns) == ["CD4", "PE-A"]
    assert told(columns, "note") == [
        "study: features all the same, though without a marker name: PE-A: choose with markers=[...] or a "
        "panel sheet"
    ]
    assert align([file("a.fcs", {"FITC-A": "", "PE-A": ""})]).problems == []


def test_mass_and_fluorescence_do_not_mix():
    mass = file("m.fcs", {"Ce140Di": "CD4", "Yb172Di": "CD8"})
    columns = align([usual("a.fcs"), usual("b.fcs"), mass])
    assert told(columns, "error") == [
        "m.fcs: is mass cytometry, 2 others are fluorescence cytometry, on another scale; "
        "make a study of each kind"
    ]
    assert set(columns.positions) == {"a.fcs", "b.fcs"}
    columns = align([usual("a.fcs"), mass], markers=["CD4", "CD8"])
    assert set(columns.positions) == {"a.fcs", "m.fcs"}
    assert len(told(columns, "warning")) == 1


def test_isotopes_without_any_marker_are_no_features():
    columns = align([file("m.fcs", {"Time": "", "Ce140Di": "", "Yb172Di": "Yb172Di"})])
    assert features(columns) == []
    assert told(columns, "error")[0].startswith("study: no marker to learn from")
    columns = align(
        [file("m.fcs", {"Ce140Di": "", "Yb172Di": ""})], panel(("Ce140Di", "CD19"), ("Yb172Di", "CD8"))
    )
    assert features(columns) == ["CD19", "CD8"]


def test_nothing_to_align_gives_no_columns():
    assert align([]).markers == ()


names = st.sampled_from(["", "CD3", "CD4", "cd-4", "FITC-A", "PE-A", "DNA1"])
layouts = st.dictionaries(
    st.sampled_from(["FITC-A", "PE-A", "APC-A", "Time", "CD3", "Ir191Di"]), names, min_size=1
)
rows = st.lists(
    st.tuples(st.sampled_from(["FITC-A", "PE-A", "CD3"]), names), unique_by=lambda r: r[0], min_size=1
)


@given(st.lists(layouts, min_size=1, max_size=6), st.none() | rows, st.sampled_from([None, "common"]))
def test_a_file_is_aligned_column_by_column_or_its_error_is_told(channels, sheet, markers):
    files = [file(f"{i}.fcs", c) for i, c in enumerate(channels)]
    columns = align(files, panel(*sheet) if sheet else None, markers)
    assert len(set(columns.markers)) == len(columns.markers)
    assert len(columns.features) == len(columns.kinds) == len(columns.classes) == len(columns.channels)
    for given_file in files:
        positions = columns.positions.get(given_file.path)
        if positions is None:
            assert told(columns, "error")
        else:
            assert positions.shape == (len(columns.markers),)
            assert len(set(positions.tolist())) == len(positions)
            assert all(0 <= i < len(given_file.channels) for i in positions)
    assert all("\n" not in str(p) for p in columns.problems)


# Panel sheets


def test_a_catalyst_panel_names_markers_and_classes(tmp_path):
    frame = pd.DataFrame(
        {
            "fcs_colname": ["CD3(110:114)Dd", "pS6(Yb172)Dd"],
            "antigen": ["CD3", "pS6"],
            "marker_class": ["type", "State"],
        }
    )
    frame.to_excel(tmp_path / "panel.xlsx", index=False)
    read = read_panel(tmp_path / "panel.xlsx")
    expected = Panel(
        str(tmp_path / "panel.xlsx"),
        {"CD3(110:114)Dd": "CD3", "pS6(Yb172)Dd": "pS6"},
        {"CD3(110:114)Dd": "type", "pS6(Yb172)Dd": "state"},
    )
    assert read == expected
    columns = align([file("a.fcs", {"pS6(Yb172)Dd": "", "CD3(110:114)Dd": ""})], read)
    assert (columns.markers, columns.classes) == (("pS6", "CD3"), ("state", "type"))
    assert columns.features == (True, True)


@pytest.mark.parametrize("channel", ["fcs_colname", "Channel", "fluor", "metal", "Channel Name"])
@pytest.mark.parametrize("antigen", ["antigen", "Marker", "target"])
def test_panel_columns_go_by_their_usual_names(channel, antigen):
    assert panel(("FITC-A", "CD4"), header=(channel, antigen)).antigens == {"FITC-A": "CD4"}


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([("a", "b")], ("name", "antigen"), "table: no column of channels, found 'name', 'antigen': call it"),
        ([("a", "b")], ("channel", "name"), "table: no column of antigens, found 'channel', 'name'"),
        ([("a", "b"), ("", "c")], ("channel", "antigen"), "table: line 2: channel is empty"),
        ([("a", "b"), ("a", "c")], ("channel", "antigen"), "table: line 2: 'a' stands twice in channel"),
        (
            [("a", "b", "lineage")],
            ("channel", "antigen", "class"),
            "table: line 1: class is 'lineage', expected",
        ),
        (
            [("a", "b", "type"), ("c", "b", "state")],
            ("channel", "antigen", "class"),
            "table: line 2: 'b' is 'state' here and something else above",
        ),
    ],
)
def test_a_panel_that_does_not_say_what_it_should_is_refused(rows, header, message):
    with pytest.raises(DataError, match=message):
        panel(*rows, header=header)


def test_a_panel_means_channels_then_markers_whatever_the_case_last():
    files = [file("a.fcs", {"FITC-A": "x", "x": "", "PE-A": "cd8", "apc-a": ""})]
    columns = align(files, panel(("x", "CD4"), ("CD8", "CD8a"), ("APC-A", "CD3")))
    assert columns.markers == ("x", "CD4", "CD8a", "CD3")


def test_one_antigen_may_have_other_channels_in_other_files():
    files = [usual("a.fcs"), usual("b.fcs", without=["APC-A"], BV421_A="")]
    columns = align(files, panel(("APC-A", "CD3"), ("BV421-A", "CD3")))
    assert features(columns) == ["CD4", "CD8", "CD3"]
    assert columns.positions["b.fcs"].tolist() == [0, 1, 2, 4, 3]


def test_one_antigen_on_two_channels_of_a_file_is_an_error():
    columns = align([usual("a.fcs", BV421_A=""), usual("b.fcs")], panel(("APC-A", "CD3"), ("BV421-A", "CD3")))
    assert told(columns, "error") == [
        "a.fcs: the panel calls both APC-A and BV421-A 'CD3'; "
        "delete a row of the panel, or give them different antigens"
    ]
    assert set(columns.positions) == {"b.fcs"}


def test_an_antigen_that_stands_twice_is_found_beside_what_may_stand_twice():
    sheet = panel(("Ir191Di", "DNA"), ("Ir193Di", "DNA"), ("Ce140Di", "CD19"), ("Yb172Di", "CD19"))
    columns = align([file("m.fcs", {"Ir191Di": "", "Ir193Di": "", "Ce140Di": "", "Yb172Di": ""})], sheet)
    assert told(columns, "error")[0].startswith("m.fcs: the panel calls both Ce140Di and Yb172Di 'CD19'")
    assert columns.positions == {}


def test_what_is_no_antigen_may_stand_twice_in_a_panel():
    sheet = panel(("Ir191Di", "DNA", "none"), ("Ir193Di", "DNA", "none"), ("Ce140Di", "CD19", "type"))
    columns = align([file("m.fcs", {"Ir191Di": "", "Ir193Di": "", "Ce140Di": ""})], sheet)
    assert columns.markers == ("Ir191Di", "Ir193Di", "CD19")
    assert features(columns) == ["CD19"]
    assert told(columns, "error") == []


def test_the_panel_decides_what_is_a_feature():
    sheet = panel(("PE-A", "CD8", "none"), ("FSC-A", "size", "type"), ("FITC-A", "CD4", ""))
    columns = align([usual("a.fcs")], sheet)
    assert features(columns) == ["size", "CD4", "CD3"]
    assert told(columns, "note") == [
        "study: features all the same, though not in table: CD3: "
        "give those that are none the class none there"
    ]


def test_rows_of_the_panel_that_no_file_has_are_told_with_the_nearest():
    columns = align([usual("a.fcs")], panel(("APC-B", "CD3"), ("FITC-A", "CD4"), ("xyz", "CD9")))
    (warning,) = told(columns, "warning")
    assert warning == "table: no file has 'APC-B' (did you mean 'APC-A'?), 'xyz'; mend or delete these rows"


# Many files


def test_errors_are_told_of_each_file():
    files = [usual(f"{i}.fcs") for i in range(1000)]
    files += [usual(f"x{i}.fcs", without=["APC-A"]) for i in range(480)]
    columns = align(files)
    errors = told(columns, "error")
    assert errors[:2] == [f"x{i}.fcs: lacks the marker 'CD3'; {FIX}" for i in range(2)]
    assert len(errors) == 480
    assert len(columns.positions) == 1000


def test_thirty_thousand_files_take_less_than_a_second():
    rng = np.random.default_rng(0)
    channels = {"Time": "", "Event_length": ""} | {f"Er{162 + i % 9}Di{i}": f"M{i}" for i in range(50)}
    layouts = [dict(rng.permutation(list(channels.items())).tolist()) for _ in range(5)]
    files = [file(f"{i}.fcs", layouts[i % 5]) for i in range(30_000)]
    start = time.process_time()
    columns = align(files)
    assert time.process_time() - start < 1
    assert len(columns.positions) == 30_000
    assert columns.problems == []


def test_a_panel_that_contradicts_the_files_is_told():
    swapped = panel(("FITC-A", "CD8"), ("PE-A", "cd-4"), ("APC-A", "CD3"))
    columns = align([usual("a.fcs"), usual("b.fcs")], swapped)
    assert columns.markers == ("FSC-A", "CD8", "cd-4", "CD3", "Time")
    assert told(columns, "warning") == [
        "a.fcs: the panel gives FITC-A 'CD8', which is PE-A's marker in the file (and 1 more); "
        "mend the panel, unless the file is wrong",
        "a.fcs: the panel gives PE-A 'cd-4', which is FITC-A's marker in the file (and 1 more); "
        "mend the panel, unless the file is wrong",
    ]


def test_the_marker_of_a_panel_stays_where_the_file_has_it_elsewhere_too():
    columns = align([usual("a.fcs")], panel(("FITC-A", "CD8")))
    assert columns.markers == ("FSC-A", "CD8", "PE-A", "CD3", "Time")
    assert "the panel gives FITC-A 'CD8', which is PE-A's marker in the file" in told(columns, "warning")[0]


def test_a_panel_that_agrees_or_names_the_height_of_a_pulse_is_no_contradiction():
    files = [usual("a.fcs", FITC_H="CD4"), usual("b.fcs", FITC_A="")]
    columns = align(files, panel(("FITC-A", "CD4"), ("PE-A", "CD8"), ("APC-A", "CD3")))
    assert told(columns, "warning") == []


@pytest.mark.parametrize("antigen", ["FSC-A", "Time", "Violet"])
def test_an_antigen_called_like_another_column_is_told_and_not_used(antigen):
    columns = align([usual("a.fcs", Violet="")], panel(("FITC-A", antigen)))
    assert columns.markers == ("FSC-A", "FITC-A", "CD8", "CD3", "Time", "Violet")
    assert "FITC-A" in features(columns)
    assert told(columns, "warning") == [
        f"a.fcs: the panel calls FITC-A {antigen!r}, which is another column's name; "
        "it stays 'FITC-A': give it an antigen of its own"
    ]


def test_umlauts_of_a_mac_and_of_excel_are_one():
    files = [file("a.fcs", {"Gru\u0308n-A": "CD4"}), file("b.fcs", {"Gr\u00fcn-A": "CD4"})]
    columns = align(files, panel(("Gru\u0308n-A", "Ko\u0308der")), markers=["Ko\u0308der"])
    assert (columns.markers, columns.channels) == (("K\u00f6der",), ("Gr\u00fcn-A",))
    assert columns.problems == []
