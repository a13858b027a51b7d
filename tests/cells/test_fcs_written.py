"""Files of every type, width, byte order and offset convention read back as they were written."""

import pickle

import numpy as np
import pytest
from fcs_bytes import fcs_bytes

from scaleshift.cells.fcs import list_data_sets, read_fcs
from scaleshift.cells.fcs.reading import Wish, describe_all

NAMES = ["FSC-A", "FL1", "FL2", "Time"]
ORDERS = ["1,2,3,4", "4,3,2,1", "3,4,1,2", "2,1,4,3"]


@pytest.fixture
def written(tmp_path):
    """Write bytes to a file, give its path."""
    count = iter(range(1000))

    def write(content):
        path = tmp_path / f"{next(count)}.fcs"
        path.write_bytes(content)
        return path

    return write


def floats(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)


def integers(bits, n=50, seed=0):
    """Values that use all bits of each channel."""
    tops = [2 ** int(b) for b in np.broadcast_to(bits, 4)]
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, top, n, dtype=np.uint64, endpoint=False) for top in tops], axis=1)


@pytest.mark.parametrize("byteord", ORDERS)
def test_floats_in_any_byte_order(written, byteord):
    events = floats()
    fcs = read_fcs(written(fcs_bytes(events, NAMES, byteord=byteord)))
    assert fcs.events.dtype == np.float32
    np.testing.assert_array_equal(fcs.events, events)


@pytest.mark.parametrize("byteord", ["1,2,3,4", "4,3,2,1", "1,2", "2,1"])
def test_doubles_stay_doubles(written, byteord):
    events = np.random.default_rng(0).normal(size=(50, 4))
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="D", byteord=byteord)))
    assert fcs.events.dtype == np.float64
    np.testing.assert_array_equal(fcs.events, events)


@pytest.mark.parametrize("byteord", ["1,2,3,4", "4,3,2,1", "1,2", "2,1"])
@pytest.mark.parametrize("bits", [8, 16, 24, 32, 40, 48, 64, [8, 24, 32, 16], [24, 24, 64, 8]])
def test_integers_of_any_width_mixed_by_channel(written, byteord, bits):
    events = integers(bits)
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="I", bits=bits, byteord=byteord)))
    assert fcs.events.dtype == (np.float32 if np.max(bits) <= 24 else np.float64)
    np.testing.assert_array_equal(fcs.events, events.astype(np.float64))


@pytest.mark.parametrize("byteord", ["3,4,1,2", "2,1,4,3"])
@pytest.mark.parametrize("bits", [8, 16, 32, [8, 16, 32, 32]])
def test_integers_with_words_in_another_order_than_bytes(written, byteord, bits):
    events = integers(bits)
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="I", bits=bits, byteord=byteord)))
    np.testing.assert_array_equal(fcs.events, events.astype(np.float64))


def test_mixed_types_of_fcs_3_2(written):
    rng = np.random.default_rng(0)
    events = np.stack(
        [rng.normal(size=50), rng.integers(0, 2**16, 50), rng.normal(size=50), rng.normal(size=50)], 1
    )
    content = fcs_bytes(events, NAMES, version="FCS3.2", types="DIFF", byteord="4,3,2,1")
    fcs = read_fcs(written(content))
    assert (fcs.version, fcs.events.dtype) == ("FCS3.2", np.float64)
    np.testing.assert_array_equal(fcs.events[:, :2], events[:, :2])
    np.testing.assert_array_equal(fcs.events[:, 2:], events[:, 2:].astype(np.float32))


def test_ten_bits_that_stand_in_sixteen(written):
    events = integers(10)
    content = fcs_bytes(
        events, NAMES, datatype="I", bits=16, ranges=1024, keywords={"$P1B": "10", "$P2B": "10"}
    )
    fcs = read_fcs(written(content))
    np.testing.assert_array_equal(fcs.events, events.astype(np.float32))
    assert any("$P1B=10, $P2B=10" in warning for warning in fcs.warnings)


@pytest.mark.parametrize("stored", [24, 32])
def test_twenty_bits_stand_where_the_size_of_data_tells(written, stored):
    events = integers(20)
    odd = {f"$P{i}B": "20" for i in range(1, 5)}
    content = fcs_bytes(events, NAMES, datatype="I", bits=stored, ranges=2**20, keywords=odd)
    np.testing.assert_array_equal(read_fcs(written(content)).events, events.astype(np.float32))


def test_doubles_under_the_type_of_floats_are_told_by_their_size(written):
    events = np.random.default_rng(0).normal(size=(50, 4))
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="D", keywords={"$DATATYPE": "F"})))
    np.testing.assert_array_equal(fcs.events, events)


@pytest.mark.parametrize("byteord", ["1,2,3,4", "4,3,2,1"])
@pytest.mark.parametrize("bits", [16, 24, [16, 32, 16, 8]])
def test_bits_above_the_range_are_masked_away_from_integers(written, byteord, bits):
    stored, ranges = integers(bits), [1024, 1000, 2**16, 5]
    kept = stored & np.array([1023, 1023, 2**16 - 1, 7], np.uint64)
    for raw in (True, False):
        content = fcs_bytes(stored, NAMES, datatype="I", bits=bits, ranges=ranges, byteord=byteord)
        np.testing.assert_array_equal(read_fcs(written(content), raw=raw).events, kept.astype(np.float64))


def test_the_range_decides_whether_float32_is_exact(written):
    events = integers(24)
    for top, dtype in ((2**24, np.float32), (2**25, np.float64)):
        fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="I", bits=32, ranges=top)))
        assert fcs.events.dtype == dtype


def test_floats_are_never_clipped_at_the_range(written):
    events = floats() * 1e6
    events[0] = [np.nan, np.inf, -np.inf, -1.0]
    fcs = read_fcs(written(fcs_bytes(events, NAMES, ranges=1024)))
    np.testing.assert_array_equal(fcs.events, events)


def test_a_range_that_is_none_keeps_all_bits_and_says_so(written):
    events = integers(16)
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype="I", ranges=["0", "NA", 65536, 65536])))
    np.testing.assert_array_equal(fcs.events, events.astype(np.float32))
    assert fcs.warnings == [
        "$P1R: is '0', no range; all stored bits were kept",
        "$P2R: is 'NA', no range; all stored bits were kept",
    ]


def test_amplifiers_gains_and_the_clock_are_applied_unless_raw(written):
    events = integers(10)
    keywords = {"$P1E": "4,0", "$P2E": "3.5,0.1", "$P3G": "4", "$P4G": "9", "$TIMESTEP": "0.01"}
    path = written(fcs_bytes(events, NAMES, datatype="I", ranges=1024, keywords=keywords))
    x = events.astype(np.float64)
    expected = [10 ** (4 * x[:, 0] / 1024), 10 ** (3.5 * x[:, 1] / 1024) * 0.1, x[:, 2] / 4, x[:, 3] * 0.01]
    np.testing.assert_array_equal(read_fcs(path).events, np.stack(expected, 1).astype(np.float32))
    np.testing.assert_array_equal(read_fcs(path, raw=True).events, x)


@pytest.mark.parametrize(
    ("keywords", "warning"),
    [
        ({"$P1G": "0"}, "$P1G: is '0'; taken as 1"),
        ({"$P1G": "much", "$P2G": "much"}, "$P1G, $P2G: is 'much'; taken as 1"),
        ({"$TIMESTEP": "soon"}, "$TIMESTEP: is 'soon', no number above 0; Time was left as it is stored"),
        ({"$TIMESTEP": ""}, "$TIMESTEP: is '', no number above 0; Time was left as it is stored"),
        ({"$P1E": "log"}, "$P1E: is 'log', no pair of numbers; taken as linear"),
        ({"$P1E": "4,1", "$P1R": "all"}, "$P1E: is '4,1' without a range in $PnR; taken as linear"),
    ],
)
def test_keywords_without_sense_leave_values_alone_and_are_told(written, keywords, warning):
    events = integers(10)
    path = written(fcs_bytes(events, NAMES, datatype="I", ranges=1024, keywords=keywords))
    assert warning in read_fcs(path).warnings
    np.testing.assert_array_equal(read_fcs(path).events, events.astype(np.float32))
    assert not any("$P1G" in told or "$TIMESTEP" in told for told in read_fcs(path, raw=True).warnings)


def test_floats_are_linear_whatever_the_amplifier_says(written):
    events = floats()
    fcs = read_fcs(written(fcs_bytes(events, NAMES, keywords={"$P1E": "4,1"})))
    np.testing.assert_array_equal(fcs.events, events)
    assert fcs.warnings == ["$P1E: is '4,1' for floats, which are linear; left aside"]


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(
    "header",
    [(0, 0), (None, None), (99_999_999, 99_999_999), (0, 99_999_999), (5, 5), (10**7, 9), (10**7, 10**7)],
)
def test_offsets_that_the_header_cannot_tell_stand_in_text(written, header, exclusive):
    events = floats()
    fcs = read_fcs(written(fcs_bytes(events, NAMES, header_data=header, exclusive_end=exclusive, gap=17)))
    np.testing.assert_array_equal(fcs.events, events)
    assert fcs.warnings == []


@pytest.mark.parametrize("text", [(None, None), ("", ""), ("x", "y"), (0, 0)])
def test_offsets_that_text_does_not_tell_stand_in_the_header(written, text):
    events = floats()
    fcs = read_fcs(written(fcs_bytes(events, NAMES, text_data=text, gap=17)))
    np.testing.assert_array_equal(fcs.events, events)
    assert fcs.warnings == []


def test_an_end_that_is_no_end_is_told_by_the_number_of_events(written):
    events = floats()
    whole = fcs_bytes(events, NAMES)
    begin = int(whole[26:34])
    for end in (begin, begin - 1, 0):
        content = fcs_bytes(events, NAMES, header_data=(0, 0), text_data=(begin, end))
        np.testing.assert_array_equal(read_fcs(written(content)).events, events)


def test_without_any_offset_data_that_fill_the_rest_of_the_file_are_read(written):
    events = floats()
    content = fcs_bytes(events, NAMES, header_data=(0, 0), text_data=(0, 0))
    np.testing.assert_array_equal(read_fcs(written(content)).events, events)
    np.testing.assert_array_equal(read_fcs(written(content + b"00001234")).events, events)  # a checksum


def test_bytes_left_over_after_the_last_event_are_told(written):
    events = floats()
    fcs = read_fcs(written(fcs_bytes(events, NAMES, exclusive_end=8) + b"00001234"))
    np.testing.assert_array_equal(fcs.events, events)
    assert fcs.warnings == ["DATA is 8 bytes longer than $TOT = 50 events; they were left aside"]


def test_the_number_of_events_may_be_missing_as_in_fcs_2(written):
    events = integers(16)
    content = fcs_bytes(events, NAMES, version="FCS2.0", datatype="I", keywords={"$TOT": None})
    fcs = read_fcs(written(content))
    np.testing.assert_array_equal(fcs.events, events.astype(np.float32))
    assert fcs.warnings == ["$TOT is missing; DATA holds 50 events"]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("datatype", ["I", "F", "D"])
def test_no_event_and_one_event_are_files_too(written, n, datatype):
    events = np.arange(4.0)[None].repeat(n, axis=0).reshape(n, 4)
    fcs = read_fcs(written(fcs_bytes(events, NAMES, datatype=datatype)))
    assert fcs.n_events == n
    assert fcs.events.shape == (n, 4)
    np.testing.assert_array_equal(fcs.events, events)


@pytest.mark.parametrize("data", [(0, 0), (None, None)])
def test_no_event_needs_no_offsets(written, data):
    events = np.empty((0, 4))
    assert read_fcs(written(fcs_bytes(events, NAMES, header_data=data, text_data=data))).events.shape == (
        0,
        4,
    )


def test_each_preamble_is_read_once():
    content = b""
    for _ in range(5):
        content = fcs_bytes(np.ones((3, 2)), ["a", "b"], following=content)
    begins: list[int] = []

    def read(begin, end):
        if end - begin > 3:  # else it is looked whether a data set begins there
            begins.append(begin)
        return content[begin:end]

    files = describe_all(read, len(content), Wish("a.fcs", False, "raise"))
    assert [fcs.n_data_sets for fcs in files] == [5] * 5
    assert len(begins) == len(set(begins)) == 10  # HEADER and TEXT


def test_several_data_sets_are_counted_and_chosen(written):
    first, second, third = floats(5, 1), floats(7, 2), integers(16, 9)
    last = fcs_bytes(third, NAMES, datatype="I", byteord="2,1")
    path = written(fcs_bytes(first, NAMES, following=fcs_bytes(second, NAMES, following=last)))
    for number, events in enumerate((first, second, third)):
        fcs = read_fcs(path, data_set=number)
        assert (fcs.data_set, fcs.n_data_sets, fcs.n_events) == (number, 3, len(events))
        np.testing.assert_array_equal(fcs.events, events.astype(np.float32))
    listed = list_data_sets(path)
    assert [fcs.n_events for fcs in listed] == [5, 7, 9]
    assert len({fcs.text_crc for fcs in listed}) == 3


@pytest.mark.parametrize(
    "next_data", ["-100", "1", "58", "999999", "10000000000000000000000", "1e9999", "soon"]
)
def test_a_next_data_set_that_is_none_is_left_out(written, next_data):
    events = floats()
    path = written(fcs_bytes(events, NAMES, keywords={"$NEXTDATA": next_data}))
    fcs = read_fcs(path)
    assert (fcs.n_data_sets, len(list_data_sets(path))) == (1, 1)
    np.testing.assert_array_equal(fcs.events, events)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("datatype", ["F", "I", "D"])
def test_slices_equal_the_whole(written, datatype, raw):
    events = integers([16, 32, 24, 8], 30_000) if datatype == "I" else floats(30_000)
    bits = [16, 32, 24, 8] if datatype == "I" else None
    keywords = {"$P1E": "4,1", "$P3G": "3"}
    fcs = read_fcs(
        written(fcs_bytes(events, NAMES, datatype=datatype, bits=bits, keywords=keywords)), raw=raw
    )
    whole = fcs.events
    for first, stop in ((0, 1), (7, 20_001), (29_999, None), (100, 100), (5, 2), (40_000, None), (-3, None)):
        np.testing.assert_array_equal(fcs.read(first, stop), whole[first:stop])


def test_a_description_travels_without_the_events(written):
    fcs = read_fcs(written(fcs_bytes(floats(30_000), NAMES, markers=["", "CD3", "CD4", ""])))
    sent = pickle.dumps(fcs)
    assert len(sent) < 5000
    back = pickle.loads(sent)
    for attribute in (
        "path",
        "version",
        "n_events",
        "channels",
        "markers",
        "keywords",
        "warnings",
        "text_crc",
    ):
        assert getattr(back, attribute) == getattr(fcs, attribute)
    np.testing.assert_array_equal(back.read(10, 20), fcs.read(10, 20))


def test_the_fingerprint_changes_with_header_and_text_only(written):
    events = floats()
    one = read_fcs(written(fcs_bytes(events, NAMES))).text_crc
    assert read_fcs(written(fcs_bytes(events + 1, NAMES))).text_crc == one
    assert read_fcs(written(fcs_bytes(events, NAMES, keywords={"$DATE": "x"}))).text_crc != one
