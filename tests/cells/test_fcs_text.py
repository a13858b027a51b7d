"""Keywords, names and spillover come out as they were meant, however they are written."""

import numpy as np
import pytest
from fcs_bytes import fcs_bytes

from scaleshift.cells.fcs import read_fcs
from scaleshift.cells.fcs.text import parse_text

EVENTS = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMES = ["FSC-A", "FL1-A", "FL2-A"]


@pytest.fixture
def described(tmp_path):
    """Describe a file of these bytes."""

    def describe(content, **options):
        path = tmp_path / "file.fcs"
        path.write_bytes(content)
        return read_fcs(path, **options)

    return describe


@pytest.mark.parametrize(
    "delimiter", ["/", "|", "\\", "*", "\f", "\x1e", "!", ",", ".", "^", " ", "\t", "\x01", "ÿ"]
)
def test_any_delimiter_may_stand_doubled_inside_of_names_and_values(described, delimiter):
    names = ["FSC-A", f"{delimiter}a{delimiter}{delimiter}b", f"CD4{delimiter}CD8"]
    keywords = {"$COM": f"one{delimiter}two"}
    if delimiter in ",. ":  # those stand in values of required keywords, doubled as well
        names = ["A", "B", "C"]
    fcs = described(fcs_bytes(EVENTS, names, keywords=keywords, delimiter=delimiter, encoding="latin-1"))
    assert fcs.channels == [name.strip(" \t") for name in names]
    assert fcs.keywords["$COM"] == f"one{delimiter}two"
    np.testing.assert_array_equal(fcs.events, EVENTS)


def test_the_last_delimiter_may_be_missing(described):
    fcs = described(fcs_bytes(EVENTS, NAMES, closed=False))
    assert fcs.channels == NAMES
    assert fcs.warnings == []


def test_two_delimiters_after_a_key_are_an_empty_value(described):
    content = fcs_bytes(EVENTS, NAMES, keywords={"$P1S": "", "$P2S": "", "$OP": "", "$P3S": "CD4"})
    fcs = described(content)
    assert (fcs.channels, fcs.markers) == (NAMES, ["", "", "CD4"])
    assert fcs.keywords["$OP"] == ""


def test_keys_have_no_case_and_no_blanks_around_them(described):
    keywords = {"$P1N": None, "  $p1n": "FSC-A", "$Tot": "4", "$TOT": None, "\n$p2S ": "CD3"}
    fcs = described(fcs_bytes(EVENTS, NAMES, keywords=keywords))
    assert (fcs.channels, fcs.markers, fcs.n_events) == (NAMES, ["", "CD3", ""], 4)
    assert all(key == key.strip().upper() for key in fcs.keywords)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_that_are_not_ascii(described, encoding):
    names = ["Größe", "FL1-µ", "TNF-é"]
    fcs = described(fcs_bytes(EVENTS, names, names, encoding=encoding))
    assert fcs.channels == fcs.markers == names


def test_utf_8_beyond_latin(described):
    names = ["前方散乱", "TNF-α", "🧬"]
    assert described(fcs_bytes(EVENTS, names)).channels == names


def test_one_value_that_is_no_utf_8_spoils_no_other():
    keywords, _ = parse_text("/$P1N/α/$OP/".encode() + b"Andr\xe9/")
    assert keywords == {"$P1N": "α", "$OP": "André"}


def test_values_stay_as_they_stand_names_lose_their_blanks(described):
    fcs = described(fcs_bytes(EVENTS, ["FSC-A  ", " FL1-A", "FL2-A"], keywords={"$COM": " note "}))
    assert fcs.channels == NAMES
    assert fcs.keywords["$COM"] == " note "


def test_a_delimiter_that_was_not_doubled_loses_no_channel(described):
    content = fcs_bytes(EVENTS, NAMES, keywords={"$P1N": None, "$FIL": "C:@a@b", "$P1N ": "FSC-A"})
    fcs = described(content.replace(b"@", b"/").replace(b"$P1N /", b"$P1N /"))
    assert fcs.channels == NAMES


def test_a_shifted_text_is_put_right_and_said(described):
    content = fcs_bytes(EVENTS, NAMES, keywords={"$BEGINANALYSIS": "a@b"}).replace(b"@", b"/")
    fcs = described(content)
    assert (fcs.channels, fcs.n_events) == (NAMES, 4)
    assert any("its delimiter '/' inside of values" in warning for warning in fcs.warnings)


def test_a_name_that_is_missing_is_the_marker_or_the_number(described):
    fcs = described(fcs_bytes(EVENTS, ["", "FL1-A", " "], ["CD3", "", ""]))
    assert fcs.channels == ["CD3", "FL1-A", "P3"]
    assert fcs.warnings == ["$P1N, $P3N: is empty or missing; called by $PnS or the number"]


def test_numbered_names_meet_no_other_name(described):
    fcs = described(fcs_bytes(np.zeros((2, 4)), ["CD3", "CD3-1", "CD3", "CD3"]), duplicates="rename")
    assert fcs.channels == ["CD3-2", "CD3-1", "CD3-3", "CD3-4"]


def test_supplemental_keywords_are_added_and_replace_none(described):
    fcs = described(fcs_bytes(EVENTS, NAMES, supplement={"$P2S": "CD3", "$TOT": "1000", "NOTE": "a/b"}))
    assert (fcs.markers, fcs.n_events, fcs.keywords["NOTE"]) == (["", "CD3", ""], 4, "a/b")
    assert fcs.warnings == []


@pytest.mark.parametrize(
    ("begin", "end"), [("60", "1e9"), ("900", "800"), ("-5", "70"), ("3", "40"), ("0", "9" * 20)]
)
def test_a_supplement_that_is_none_is_left_out(described, begin, end):
    fcs = described(fcs_bytes(EVENTS, NAMES, keywords={"$BEGINSTEXT": begin, "$ENDSTEXT": end}))
    assert fcs.channels == NAMES
    assert len(fcs.warnings) == (begin != "0")


@pytest.mark.parametrize("key", ["$SPILLOVER", "SPILL", "spillover"])
def test_spillover_under_any_of_its_names(described, key):
    fcs = described(fcs_bytes(EVENTS, NAMES, keywords={key: "2,FL1-A,FL2-A,1,0.1,0.2,1"}))
    assert fcs.spillover.channels == ("FL1-A", "FL2-A")
    assert fcs.spillover.source == key.upper()
    np.testing.assert_array_equal(fcs.spillover.matrix, [[1, 0.1], [0.2, 1]])


def test_an_identity_is_a_spillover_matrix_too(described):
    fcs = described(fcs_bytes(EVENTS, NAMES, keywords={"$SPILLOVER": "2,FL1-A,FL2-A,1,0,0,1"}))
    np.testing.assert_array_equal(fcs.spillover.matrix, np.eye(2))


@pytest.mark.parametrize(
    "text", ["2,FL1-A,FL2-A,1,0.1", "many", "2,FL1-A,FL2-A,1,a,b,1", "1000000000,a", "-1", ",,,"]
)
def test_a_malformed_spillover_is_a_warning_and_the_next_one_counts(described, text):
    fcs = described(fcs_bytes(EVENTS, NAMES, keywords={"$SPILLOVER": text}))
    assert fcs.spillover is None
    (warning,) = fcs.warnings
    assert warning.startswith("$SPILLOVER")
    np.testing.assert_array_equal(fcs.events, EVENTS)
    both = described(fcs_bytes(EVENTS, NAMES, keywords={"$SPILLOVER": text, "SPILL": "1,FL1-A,1"}))
    assert both.spillover.channels == ("FL1-A",)
