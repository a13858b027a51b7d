import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift import spelling
from scaleshift.blocks import labels
from scaleshift.errors import DataError

TYPES = [
    (["b", "a", None], ["a", "b"]),
    (["S10", "S2", "S1"], ["S1", "S2", "S10"]),
    ([3, -1, None], [-1, 3]),
    ([True, False, None], [False, True]),
    (np.array([2.0, np.nan, 1.0]), [1.0, 2.0]),
    (pd.Series([2, pd.NA, 1], dtype="Int64"), [1, 2]),
    (pd.Series(["b", pd.NA], dtype="string"), ["b"]),
]


@pytest.mark.parametrize(("values", "expected"), TYPES)
def test_labels_come_out_in_their_type_and_order(values, expected):
    codes, categories = labels.factorize(values)
    assert categories.tolist() == expected
    assert [type(v) for v in categories.tolist()] == [type(v) for v in expected]
    known = [None if c < 0 else categories.tolist()[c] for c in codes]
    assert known == [None if pd.isna(v) else v for v in list(values)]


def test_a_categorical_keeps_its_order_and_its_empty_categories():
    codes, categories = labels.factorize(pd.Categorical(["z", None, "a"], categories=["z", "q", "a"]))
    assert categories.tolist() == ["z", "q", "a"]
    assert codes.tolist() == [0, -1, 2]


def test_minus_one_is_an_ordinary_label():
    codes, categories = labels.factorize(np.array([-1, 4, -1]))
    assert categories.tolist() == [-1, 4]
    assert codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("mixed", [["a", 1], ["a", True], [1, "1"], [True, 2]])
def test_labels_of_mixed_types_are_refused(mixed):
    with pytest.raises(DataError, match="labels mix"):
        labels.factorize(mixed)
    with pytest.raises(DataError, match="labels mix"):
        labels.factorize(pd.Categorical(mixed, categories=list(dict.fromkeys(mixed))))


def test_natural_order_is_total_and_takes_any_text():
    names = ["CD4²", "s01", "s1", "s" + "9" * 5_000, "s2", "", "10", "²", "٣"]
    assert labels.order(names).tolist() == labels.order(names[::-1]).tolist()


def test_an_unknown_label_is_named_with_the_closest_one():
    with pytest.raises(DataError, match=r"'Bcell' is not known; did you mean 'Bcells'"):
        labels.encode(["Bcell"], np.array(["Bcells", "Tcells"]))


@pytest.mark.parametrize(
    ("name", "hint"), [("S1", "did you mean 'S01'"), ("cd3", "did you mean 'CD3'"), ("CD8", "known: ")]
)
def test_a_suggestion_has_the_same_numbers(name, hint):
    assert hint in spelling.suggestion(name, ["S01", "S02", "CD3", "CD19"])


@pytest.mark.parametrize("values", [["a", "\ud800"], pd.Categorical(["\udfff b"])])
def test_halves_of_characters_are_refused(values):
    with pytest.raises(DataError, match="is no valid text: surrogates not allowed"):
        labels.factorize(values)


def test_two_dimensional_labels_are_refused():
    with pytest.raises(DataError, match="2 dimensions"):
        labels.factorize(np.zeros((3, 1)))


# numpy strings end at a NUL, and halves of characters (category Cs) are refused
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)


@given(st.lists(st.one_of(st.none(), TEXT), max_size=30))
def test_encoding_then_looking_up_gives_the_labels_back(values):
    codes, categories = labels.factorize(values)
    assert [None if c < 0 else str(categories[c]) for c in codes] == [
        None if v is None else str(np.array([v])[0]) for v in values
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([pd.Timestamp("2026-01-01"), None], "of type Timestamp are not supported"),
        (np.array(["2026-01-01"], "M8[D]"), "dates or times"),
        ([[1], [2]], "cannot be compared|dimensions"),
        ([(1, 2), (3, 4)], "of type tuple|dimensions"),
        (np.array([2**63, 1], "u8"), "beyond 64 bits"),
        (np.random.default_rng(0).random(2_000), "are they a measurement"),
        ("gate", "is one name"),
    ],
)
def test_what_is_no_label_is_refused(values, message):
    with pytest.raises(DataError, match=message):
        labels.factorize(values)


def test_masked_labels_are_missing():
    codes, categories = labels.factorize(np.ma.masked_array([5, 6, 7], mask=[False, True, False]))
    assert codes.tolist() == [0, -1, 1]
    assert categories.tolist() == [5, 7]


def test_half_precision_labels_come_out_as_numbers():
    assert labels.factorize(np.array([2.0, 1.5], "f2"))[1].tolist() == [1.5, 2.0]
