"""Damaged files raise our errors and no others, at once and without memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from fcs_bytes import fcs_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleshift.cells.fcs import list_data_sets, read_fcs
from scaleshift.errors import ScaleshiftError

DATA = Path(__file__).parents[1] / "data"
EVENTS = np.arange(60.0).reshape(20, 3)
NAMES = ["FSC-A", "FL1-A", "Time"]
TWO = fcs_bytes(EVENTS, NAMES, following=fcs_bytes(EVENTS, NAMES, datatype="D"))
SEEDS = [
    fcs_bytes(EVENTS, NAMES, markers=["", "CD3", ""], keywords={"$SPILLOVER": "2,FSC-A,FL1-A,1,.1,0,1"}),
    fcs_bytes(EVENTS, NAMES, datatype="I", bits=[8, 24, 32], byteord="4,3,2,1", keywords={"$P1E": "4,1"}),
    fcs_bytes(EVENTS, NAMES, types="FID", version="FCS3.2", supplement={"$P1S": "a//b", "$TIMESTEP": "0.1"}),
    fcs_bytes(EVENTS, NAMES, datatype="I", bits=32, byteord="3,4,1,2", keywords={"$P1G": "2"}),
    TWO,
    *(
        (DATA / name).read_bytes()
        for name in ("e18_delim_star_escaped.fcs", "e24_log_pne_40.fcs", "flowio_variable_int.fcs")
    ),
]
KEYS = [
    *(b"$TOT", b"$PAR", b"$MODE", b"$DATATYPE", b"$BYTEORD", b"$BEGINDATA", b"$ENDDATA", b"$NEXTDATA"),
    *(b"$BEGINSTEXT", b"$ENDSTEXT", b"$P1B", b"$P1R", b"$P1E", b"$P1G", b"$P2N", b"$TIMESTEP", b"$SPILLOVER"),
]
NUMBERS = [
    "0",
    "1",
    "-1",
    "7",
    "58",
    "99999999",
    "999999999999",
    "1e9999",
    "nan",
    "",
    "//",
    "\0",
    "٣",
    "1_0",
    "4,3,2,1",
]


def text_length(seed):
    return int(seed[18:26]) + 1


@st.composite
def damaged(draw):
    """A seed with some bytes changed, a number replaced, something cut out, or its end cut off."""
    seed = draw(st.sampled_from(SEEDS))
    content = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.integers(0, min(len(content), text_length(seed)) - 1 if content else 0))
        match draw(st.sampled_from(["flip", "set", "number", "keyword", "keyword", "cut", "end"])):
            case "flip" if content:
                content[where] ^= 1 << draw(st.integers(0, 7))
            case "set" if content:
                content[where] = draw(st.sampled_from(b"/0139 $\0\xff|"))
            case "number":
                digits = [i for i in range(where, min(where + 200, len(content))) if 48 <= content[i] < 58]
                if digits:
                    content[digits[0] : digits[0] + 1] = draw(st.sampled_from(NUMBERS)).encode()
            case "keyword":
                at = content.find(draw(st.sampled_from(KEYS)))
                if at >= 0:
                    value = content.find(seed[int(seed[10:18])], at) + 1
                    content[value : value + draw(st.integers(0, 3))] = draw(st.sampled_from(NUMBERS)).encode()
            case "cut":
                del content[where : where + draw(st.integers(1, 60))]
            case "end":
                del content[draw(st.integers(0, len(content))) :]
    return bytes(content)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "damaged.fcs"


@settings(max_examples=1500, derandomize=True, deadline=2000, suppress_health_check=list(HealthCheck))
@given(content=damaged(), raw=st.booleans(), data_set=st.sampled_from([None, 0, 1]))
def test_damaged_files_raise_our_errors_only(path, content, raw, data_set):
    path.write_bytes(content)
    decoded, said = 0, []
    tracemalloc.start()
    try:
        for describe in (
            lambda: [read_fcs(path, raw=raw, data_set=data_set)],
            lambda: list_data_sets(path, raw=raw, duplicates="rename"),
        ):
            try:
                for fcs in describe():
                    assert len(fcs.channels) == len(fcs.markers) == len(set(fcs.channels))
                    events = fcs.read(fcs.n_events // 2)
                    decoded = max(decoded, fcs.events.nbytes)
                    assert events.shape == (fcs.n_events - fcs.n_events // 2, len(fcs.channels))
            except ScaleshiftError as error:
                said.append(str(error))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(message.startswith(f"{path}: ") and "\n" not in message for message in said)
    assert peak < (1 << 20) + 2 * max(len(content), decoded)
