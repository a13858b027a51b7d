"""The selection language: what it chooses, and where it says no."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.cells.selection import select_samples
from scaleshift.errors import DataError

TABLE = {
    "sample": ["s1", "s2", "s3", "s 4"],
    "day": np.array([0, 3, 3, 10]),
    "dose": [0.5, np.nan, 1.0, 2.0],
    "arm": ["control", "drug", None, "drug"],
    "treated": [False, True, True, True],
}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("day == 3", ["s2", "s3"]),
        ("day == 3.0", ["s2", "s3"]),
        ("day != 3", ["s1", "s 4"]),
        ("sample in (s1, 's 4')", ["s1", "s 4"]),
        ('day in (0, 10) and arm == "drug"', ["s 4"]),
        ("day!=0 and day!=10 and treated==TRUE", ["s2", "s3"]),
        ("'arm' != control", ["s2", "s 4"]),
        ("dose != 0.5", ["s3", "s 4"]),
        ("  arm in(drug,control)  ", ["s1", "s2", "s 4"]),
    ],
)
def test_selections_choose_in_table_order(text, chosen):
    assert select_samples(text, TABLE) == chosen


def test_names_come_back_in_their_type():
    assert select_samples("sample != 2", {"sample": np.array([1, 2, 10])}) == [1, 10]


def test_digits_are_text_in_a_column_of_text():
    assert select_samples("sample == 1", {"sample": pd.Series(["1", "01"])}) == ["1"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("dya == 3", "no column 'dya'; did you mean 'day'?", 0),
        ("arm == durg", "no sample has arm 'durg'; did you mean 'drug'?", 7),
        ("day == x", "no sample has day 'x'", 7),
        ("day == 4", "no sample has day '4'; known: 0, 3, 10", 7),
        ("treated == 1", "no sample has treated '1'; known: False, True", 11),
        ("day = 3", "expected ==, found a single =", 4),
        ("day ! 3", "expected !=, found a single !", 4),
        ("day == 3 or day == 0", "expected 'and' or the end", 9),
        ("day == 3 and", "expected the name of a column", 12),
        ("day", "expected ==, != or in", 3),
        ("", "expected the name of a column", 0),
        ("day in 3", "expected ( and a list of values", 7),
        ("day in (0", "expected , or )", 9),
        ("day in (0,)", "expected a value", 10),
        ("arm == 'drug", "the quote ' is not closed", 7),
        ("s2", "s2 is a sample: sample == s2", 0),
        ("s 4", "s 4 is a sample: sample == 's 4'", 0),
        ("sample == s 4", "no sample has sample 's'; names with blanks need quotes: 's 4'", 10),
        ("sample in (s1, s 4)", "no sample has sample 's'; names with blanks need quotes: 's 4'", 15),
        ("sample in (s1 4)", "expected , or ); names with blanks need quotes", 14),
    ],
)
def test_errors_point_at_the_place(text, message, place):
    with pytest.raises(DataError) as caught:
        select_samples(text, TABLE)
    first, shown, caret = str(caught.value).split("\n")
    assert first.removeprefix("selection: ").startswith(message)
    assert shown == f"  {text}"
    assert caret == " " * (place + 2) + "^"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Pat 01 / Tag 0", "'Pat 01 / Tag 0'"),
        ("Paul (2)", "'Paul (2)'"),
        ("CD4 high, day 3", "'CD4 high, day 3'"),
    ],
)
def test_a_name_without_its_quotes_is_shown_with_them(name, shown):
    table = {"sample": ["P1", "P2", name], "time of day": [1, 2, 3]}
    for text in (f"sample == {name}", f"sample in ({name}, P1)", name):
        with pytest.raises(DataError) as caught:
            select_samples(text, table)
        assert shown in str(caught.value)
    with pytest.raises(DataError, match="no column 'time'; names with blanks need quotes: 'time of day'"):
        select_samples("time of day == 1", table)
    assert select_samples(f"sample == {shown}", table) == [name]


def test_a_selection_of_nothing_lists_what_there_is():
    with pytest.raises(DataError, match="chooses no sample; there is day: 0, 3, 10; arm: control, drug"):
        select_samples("day == 0 and arm == drug", TABLE)


WORDS = st.sampled_from(
    ["day", "arm", "==", "!=", "in", "(", ")", ",", "and", "3", "drug", "'", '"', "=", " "]
)


@given(st.text() | st.lists(WORDS).map(" ".join) | st.lists(WORDS).map("".join))
def test_random_text_raises_nothing_but_data_errors(text):
    try:
        chosen = select_samples(text, TABLE)
    except DataError:
        return
    assert set(chosen) <= set(TABLE["sample"])


def test_a_number_of_ten_thousand_digits_is_an_unknown_value():
    with pytest.raises(DataError, match="no sample has day"):
        select_samples("day == " + "9" * 10_000, TABLE)


def test_text_that_looks_like_code_is_only_text():
    with pytest.raises(DataError, match="no column"):
        select_samples("__import__", TABLE)
