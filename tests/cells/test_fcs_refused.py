"""What cannot be read is refused in one line that begins with the path; untrusted numbers cost no memory."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from fcs_bytes import fcs_bytes

from scaleshift.cells.fcs import list_data_sets, read_fcs
from scaleshift.errors import DataError

DATA = Path(__file__).parents[1] / "data"
EVENTS = np.arange(300, dtype=np.float32).reshape(100, 3)
NAMES = ["FSC-A", "FL1-A", "FL2-A"]
HUGE = ["999999999999", "1e9999", "9" * 300, "-1", "0x10", "nan", "", "1e18", "99999999999999999999"]


def written(path, content):
    path.write_bytes(content)
    return path


def refusal(path, **options):
    """The message of the refusal, without the path."""
    with pytest.raises(DataError) as refused:
        read_fcs(path, **options)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"$MODE": "C"}, "has $MODE 'C' (a correlated histogram), not a list of events"),
        ({"$MODE": "u"}, "has $MODE 'U' (uncorrelated histograms), not a list of events"),
        ({"$DATATYPE": "A"}, "has $DATATYPE 'A': values as text, which is not read"),
        ({"$DATATYPE": "X"}, "has $DATATYPE 'X': no type of the standard"),
        ({"$P2DATATYPE": "A"}, "has $P2DATATYPE 'A': values as text"),
        ({"$DATATYPE": "I", "$P2B": "0"}, "$P2B is 0, expected 8 to 64 bits"),
        ({"$DATATYPE": "I", "$P2B": "*"}, "$P2B is missing or no number, expected 8 to 64 bits"),
        ({"$DATATYPE": "I", "$P2B": "128"}, "$P2B is 128, expected 8 to 64 bits"),
        ({"$BYTEORD": "4,1,2,3"}, "has $BYTEORD '4,1,2,3' for values of 32 bits"),
        ({"$BYTEORD": None}, "has $BYTEORD '' for values of 32 bits"),
        ({"$PAR": "0"}, "has $PAR '0', no number of channels"),
        ({"$PAR": "4"}, "promises 4 channels in $PAR, but TEXT does not describe them"),
        ({"$PAR": None}, "has $PAR '', no number of channels"),
        ({"$TOT": "many"}, "has $TOT 'many', no number of events"),
        ({"$TOT": "101"}, "promises 101 events of 12 bytes in $TOT, but there are 100"),
        ({"$TOT": "99"}, "promises 99 events of 12 bytes in $TOT, but there are 100"),
        ({"$TOT": "0"}, "promises 0 events of 12 bytes in $TOT, but there are 100"),
        ({"$PAR": "2"}, "promises 100 events of 8 bytes in $TOT, but there are 150"),
    ],
)
def test_what_is_not_read_is_named(tmp_path, keywords, said):
    assert said in refusal(written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES, keywords=keywords)))


def test_words_in_another_order_have_no_meaning_for_doubles(tmp_path):
    content = fcs_bytes(EVENTS, NAMES, datatype="D", keywords={"$BYTEORD": "3,4,1,2"})
    assert "has $BYTEORD '3,4,1,2' for values of 64 bits" in refusal(written(tmp_path / "a.fcs", content))


def test_packed_bits_are_named(tmp_path):
    odd = {f"$P{i}B": "10" for i in range(1, 4)} | {"$DATATYPE": "I"}
    content = fcs_bytes(EVENTS[:, :3], NAMES, datatype="I", bits=8, keywords=odd)
    said = refusal(written(tmp_path / "a.fcs", content))
    assert "promises 100 events of 6 bytes in $TOT, but there are 50" in said
    assert said.endswith("bits that are packed without gaps ($P1B=10, $P2B=10, $P3B=10) are not read")


@pytest.mark.parametrize("where", ["header", "text", "both"])
def test_offsets_that_fit_nowhere_are_told_both(tmp_path, where):
    wrong = {"header_data": (400, 500)} if where == "header" else {}
    wrong |= {"text_data": (500, 700)} if where != "header" else {}
    wrong |= {"header_data": (400, 500)} if where == "both" else {}
    path = written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES, **wrong))
    if where == "both":
        assert "DATA: bytes 400 to 500 by HEADER, bytes 500 to 700 by TEXT" in refusal(path)
    else:
        np.testing.assert_array_equal(read_fcs(path).events, EVENTS)


@pytest.mark.parametrize("lost", [1, 12, 13, 600, 1199, 1200])
def test_a_cut_file_says_how_many_events_are_left(tmp_path, lost):
    content = fcs_bytes(EVENTS, NAMES)[:-lost]
    said = refusal(written(tmp_path / "a.fcs", content))
    assert f"is cut off: {(1200 - lost) // 12} of the 100 events that $TOT promises are there" in said


def test_a_file_may_end_anywhere(tmp_path):
    content = fcs_bytes(EVENTS[:2], NAMES)
    for end in range(len(content)):
        said = refusal(written(tmp_path / "a.fcs", content[:end]))
        assert ("is empty (0 bytes)" if end == 0 else "FCS" if end < 6 else "is cut off") in said


def test_several_data_sets_must_be_chosen_from(tmp_path):
    path = written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES, following=fcs_bytes(EVENTS, NAMES)))
    assert "holds 2 data sets; pass data_set=0 to data_set=1" in refusal(path)
    assert "has no data_set=2: it holds 2, counted from 0" in refusal(path, data_set=2)
    assert "has no data_set=-1" in refusal(path, data_set=-1)


def test_a_data_set_that_is_cut_off_is_named(tmp_path):
    path = written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES, following=fcs_bytes(EVENTS, NAMES)[:-5]))
    np.testing.assert_array_equal(read_fcs(path, data_set=0).events, EVENTS)
    with pytest.raises(DataError, match=r"a.fcs: data set 1 of 2 is cut off: 99 of the 100 events"):
        list_data_sets(path)


@pytest.mark.parametrize("version", ["FCS1.0", "FCS4.0", "FCS3.9"])
def test_other_versions_are_named(tmp_path, version):
    content = fcs_bytes(EVENTS, NAMES, version=version)
    assert f"has version {version!r}; export it as one of FCS2.0" in refusal(
        written(tmp_path / "a.fcs", content)
    )


def test_what_is_no_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path) == "is a folder: name the files in it"
    assert refusal(tmp_path / "pipe").startswith("is a pipe")
    assert refusal("/dev/null").startswith("is a device")
    assert refusal(tmp_path / "none.fcs").startswith("does not exist")
    assert refusal(tmp_path / ("x" * 300)).startswith("cannot be read (File name too long)")
    with pytest.raises(DataError, match="no file can have this name"):
        read_fcs("a\0b.fcs")
    with pytest.raises(DataError, match='pass "raise" or "rename"'):
        read_fcs(DATA / "e03_float_be.fcs", duplicates="drop")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES))
    path.chmod(0)
    assert refusal(path).startswith("cannot be read (Permission denied)")


def test_a_file_that_shrinks_or_goes_after_it_was_described_is_told(tmp_path):
    path = written(tmp_path / "a.fcs", fcs_bytes(EVENTS, NAMES))
    fcs = read_fcs(path)
    os.truncate(path, fcs.begin + 60)
    np.testing.assert_array_equal(fcs.read(0, 5), EVENTS[:5])
    for slices in ((0, 6), (5, 6), (50, None)):
        with pytest.raises(DataError, match=r"a.fcs: has shrunk since it was described"):
            fcs.read(*slices)
    path.unlink()
    with pytest.raises(DataError, match=r"a.fcs: does not exist"):
        fcs.read(0, 5)


def peak_of(function, *arguments):
    """Most bytes held at a time, and what came of it."""
    tracemalloc.start()
    try:
        try:
            result = function(*arguments)
        except DataError as error:
            result = error
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def read_all(path):
    return [fcs.events.nbytes for fcs in list_data_sets(path, duplicates="rename")]


def bound(path, decoded=0):
    return (1 << 20) + 2 * max(path.stat().st_size, decoded)


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "key", ["$TOT", "$PAR", "$P1B", "$P1R", "$BEGINDATA", "$ENDDATA", "$NEXTDATA", "$BEGINSTEXT"]
)
def test_untrusted_numbers_cost_no_memory(tmp_path, key, number):
    for datatype in ("F", "I"):
        content = fcs_bytes(EVENTS, NAMES, datatype=datatype, keywords={key: number, "$ENDSTEXT": number})
        path = written(tmp_path / "a.fcs", content)
        peak, _ = peak_of(read_all, path)
        assert peak < bound(path)


@pytest.mark.parametrize(
    "offsets", ["99999999", "00000001", "4294967", "-0000058", "   58   ", "\0\0\0\0\0\0\0\0"]
)
@pytest.mark.parametrize("field", range(4))
def test_untrusted_numbers_in_the_header_cost_no_memory(tmp_path, field, offsets):
    content = bytearray(fcs_bytes(EVENTS, NAMES))
    content[10 + 8 * field : 18 + 8 * field] = offsets.encode().rjust(8)
    path = written(tmp_path / "a.fcs", bytes(content))
    peak, _ = peak_of(read_all, path)
    assert peak < bound(path)


@pytest.mark.parametrize("size", [200_000, 4_000_000])
@pytest.mark.parametrize(
    "filling", [b"/", b"a/", b"/a//b", b"k/v/", b"a", "é".encode(), "🧬".encode(), b"1,"]
)
def test_a_text_that_is_made_to_swell_is_refused_or_stays_small(tmp_path, filling, size):
    text = fcs_bytes(EVENTS, NAMES, keywords={"$SPILLOVER": "@"}).replace(
        b"@", filling * (size // len(filling))
    )
    text = text[:18] + f"{text.index(b'$TOT') + 8:8d}{0:8d}{0:8d}".encode() + text[42:]
    path = written(tmp_path / "a.fcs", text)
    peak, result = peak_of(read_all, path)
    assert isinstance(result, DataError)
    assert peak < bound(path)


def test_a_chain_of_tiny_data_sets_ends(tmp_path):
    one = fcs_bytes(EVENTS[:1], NAMES, keywords={"$NEXTDATA": f"{len(fcs_bytes(EVENTS[:1], NAMES)):012d}"})
    path = written(tmp_path / "a.fcs", one * 2500)
    assert refusal(path) == "holds more than 2000 data sets; split it"


@pytest.mark.parametrize(
    ("datatype", "bits"), [("F", None), ("D", None), ("I", 8), ("I", 24), ("I", [8, 16, 32]), ("I", 64)]
)
def test_reading_takes_twice_the_matrix_at_most(tmp_path, datatype, bits):
    events = np.random.default_rng(0).integers(0, 200, (200_000, 3))
    path = written(
        tmp_path / "a.fcs", fcs_bytes(events, NAMES, datatype=datatype, bits=bits, byteord="4,3,2,1")
    )
    fcs = read_fcs(path)
    peak, whole = peak_of(fcs.read)
    assert peak < bound(path, whole.nbytes)
    peak, some = peak_of(fcs.read, 100_000, 100_100)
    np.testing.assert_array_equal(some, events[100_000:100_100])
    assert peak < 1 << 20
