"""Transforms are what the references say, come back, are chosen aloud and are kept as JSON."""

import json
import tracemalloc

import numpy as np
import pytest
from flowutils import transforms as reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scaleshift.cells.treatment import logicle
from scaleshift.cells.treatment.transform import (
    Arcsinh,
    Identity,
    Logicle,
    Transform,
    from_json,
    inverse_columns,
    resolve,
    to_json,
    transform_columns,
)
from scaleshift.errors import DataError, SchemaError

finite = st.floats(-1e7, 1e7)


@st.composite
def scales(draw):
    """Parameters of a logicle scale."""
    M = draw(st.floats(1, 8))
    W = draw(st.floats(0, M / 2))
    A = draw(st.floats(-W, M - 2 * W))
    assume(-W <= A <= M - 2 * W and M + A > 0.5)
    return 10 ** draw(st.floats(0, 7)), W, M, A


# Logicle -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("T", "W", "M", "A"),
    [
        (262_144, 0.5, 4.5, 0),
        (1_000, 1, 4, 1),
        (262_144, 0, 4.5, 0),
        (1e5, 1.5, 5, -0.5),
        (262_144, 2.25, 4.5, 0),
        (10_000, 1, 4, 0.5),
    ],
)
def test_logicle_is_that_of_the_reference(T, W, M, A):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, T / 100, 5_000), rng.uniform(-T, T, 5_000), [0, T, 1e-3, -1e-3]])
    expected = reference._logicle(x, t=T, w=W, m=M, a=A)
    np.testing.assert_allclose(logicle.forward(x, T, W, M, A), expected, rtol=0, atol=1e-12)
    places = np.linspace(-0.3, 1.2, 3_001)
    expected = reference._logicle_inverse(places, t=T, w=W, m=M, a=A)
    np.testing.assert_allclose(logicle.inverse(places, T, W, M, A), expected, rtol=1e-10, atol=1e-10 * T)


@given(scales(), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_logicle_comes_back(scale, values):
    x = np.array(values)
    slope = logicle.inverse(np.nextafter(logicle.coefficients(*scale).x1 + 1e-3, 1), *scale) * 1e3
    again = logicle.inverse(logicle.forward(x, *scale), *scale)
    np.testing.assert_allclose(again, x, rtol=1e-12, atol=1e-14 * slope)


@given(scales())
@settings(max_examples=100, deadline=None)
def test_logicle_has_its_landmarks_and_is_symmetric_about_zero(scale):
    T, W, M, A = scale
    at_zero = (W + A) / (M + A)
    np.testing.assert_allclose(logicle.forward([T, 0.0], *scale), [1, at_zero], atol=1e-12)
    x = np.geomspace(T * 1e-6, T, 20)
    up, down = logicle.forward(x, *scale) - at_zero, at_zero - logicle.forward(-x, *scale)
    np.testing.assert_allclose(up, down, atol=1e-12)
    assert (np.diff(up) > 0).all()


def test_intensities_of_any_size_come_back_and_what_is_not_finite_stays():
    powers = 10.0 ** np.arange(-300, 308)
    x = np.concatenate([[0.0], powers, -powers])
    for scale in [(262_144, 0.5, 4.5, 0), (1_000, 1, 4, 1), (1e-3, 0, 2, 0)]:
        again = logicle.inverse(logicle.forward(x, *scale), *scale)
        np.testing.assert_allclose(again, x, rtol=1e-12, atol=1e-10 * scale[0])
        odd = logicle.forward(np.array([np.nan, np.inf, -np.inf]), *scale)
        np.testing.assert_array_equal(odd, [np.nan, np.inf, -np.inf])
        np.testing.assert_array_equal(logicle.inverse(odd, *scale), odd)


def test_logicle_takes_tables_integers_and_nothing():
    table = np.arange(30_000).reshape(3, 10_000)
    flat = logicle.forward(table.ravel())
    np.testing.assert_array_equal(logicle.forward(table), flat.reshape(3, 10_000))
    np.testing.assert_array_equal(logicle.forward(table.T), flat.reshape(3, 10_000).T)
    assert logicle.forward(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"T": 0}, "T=0.*expected numbers, and T"),
        ({"T": np.inf}, "expected the numbers"),
        ({"M": 0}, "expected M.* above 0"),
        ({"M": 40}, "at most 20"),
        ({"W": -0.1}, "expected W.* from 0 to M / 2 = 2.25"),
        ({"W": 2.3}, "expected W"),
        ({"A": -0.6}, "expected A.* from -W to M - 2 W = 3.5"),
        ({"A": 3.6}, "expected A"),
        ({"A": "x"}, "expected the numbers"),
    ],
)
def test_scales_that_there_cannot_be_are_refused(parameters, message):
    with pytest.raises(DataError, match=message):
        Logicle(**parameters)


# Arcsinh -----------------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e5), st.lists(finite, min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_arcsinh_comes_back(cofactor, values):
    x, transform = np.array(values), Arcsinh(cofactor)
    np.testing.assert_allclose(transform.apply(x), np.arcsinh(x / cofactor))
    np.testing.assert_allclose(transform.inverse(transform.apply(x)), x, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("cofactor", [0, -5, np.nan, np.inf, "5", None])
def test_cofactors_are_numbers_above_zero(cofactor):
    with pytest.raises(DataError, match=r"cofactor=.*expected a number above 0"):
        Arcsinh(cofactor)


# Tables ------------------------------------------------------------------------------------------------

EACH = [Arcsinh(5), Identity(), Logicle(), Arcsinh(5.0), Arcsinh(150)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_every_column_has_its_own_transform(dtype):
    x = np.random.default_rng(0).normal(500, 1_000, (20_001, 5)).astype(dtype)
    got = transform_columns(x, EACH)
    assert got.dtype == np.float32
    expected = np.column_stack([t.apply(x[:, i]) for i, t in enumerate(EACH)])
    np.testing.assert_array_equal(got, expected.astype(np.float32))
    back = inverse_columns(got, EACH)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, x, rtol=1e-5, atol=1e-2)


def test_values_that_are_not_finite_stay_where_they_are():
    x = np.array([[np.nan, 1, np.inf, -np.inf, 0], [0, np.nan, 0, 0, np.nan]])
    got = transform_columns(x, EACH)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(x))


def test_a_table_costs_its_result_and_little_more():
    x = np.ones((200_000, 20), np.float32)
    transform_columns(x[:10], [Logicle()] * 20)
    tracemalloc.start()
    transform_columns(x, [Logicle()] * 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes + 4e6


def test_tables_of_other_widths_are_refused():
    with pytest.raises(DataError, match=r"shape \(2, 3\) and 1 transforms"):
        transform_columns(np.ones((2, 3)), [Identity()])


# Choice ------------------------------------------------------------------------------------------------

NAMES = ["Time", "FSC-A", "CD3", "CD4", "CD8", "CD19", "beads"]
KINDS = ["time", "scatter", "marker", "marker", "marker", "marker", "other"]


def chosen(transform, modality="mass", names=NAMES, kinds=KINDS):
    found, sentences = resolve(transform, names=names, kinds=kinds, modality=modality)
    return dict(zip(names, found, strict=True)), sentences


def test_auto_guesses_the_cofactor_and_says_so():
    found, sentences = chosen("auto")
    assert found["CD3"] == found["CD19"] == Arcsinh(5)
    assert found["Time"] == found["FSC-A"] == found["beads"] == Identity()
    assert sentences == [
        "arcsinh(x / 5) for 4 markers: mass cytometry by its channel names; "
        "pass transform=... (--transform) to choose",
        "Time, FSC-A, beads stay as they are: no marker",
    ]
    found, sentences = chosen("auto", "fluorescence")
    assert found["CD3"] == Arcsinh(150)
    assert sentences[0].startswith("arcsinh(x / 150) for 4 markers: fluorescence by its channel names")


def test_auto_leaves_an_unknown_modality_alone_and_says_so():
    found, sentences = chosen("auto", "unknown")
    assert set(found.values()) == {Identity()}
    assert sentences[0] == (
        "4 markers stay as they are: neither mass cytometry nor fluorescence by the channel names; "
        "pass transform='arcsinh:5' (--transform) or another one to choose"
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("none", Identity()),
        ("arcsinh", Arcsinh(5)),
        ("arcsinh:150", Arcsinh(150)),
        ("arcsinh: 1e2", Arcsinh(100)),
        ("logicle", Logicle()),
        ("logicle:1000,1,4,0.5", Logicle(1_000, 1, 4, 0.5)),
        ("logicle:1000", Logicle(1_000)),
        (Arcsinh(7), Arcsinh(7)),
    ],
)
def test_what_is_asked_for_is_done_to_markers_only(asked, expected):
    found, sentences = chosen(asked)
    assert {name: t for name, t in found.items() if t != Identity()} == (
        {} if expected == Identity() else dict.fromkeys(NAMES[2:6], expected)
    )
    assert len(sentences) == 2


def test_a_mapping_names_columns_and_the_rest_is_auto_or_the_default():
    found, sentences = chosen({"CD3": "logicle", "FSC-A": "arcsinh:1000", "Time": "auto"})
    assert found["CD3"] == Logicle()
    assert found["FSC-A"] == Arcsinh(1_000)
    assert found["CD4"] == Arcsinh(5)
    assert found["Time"] == Identity()
    assert sentences == [
        "arcsinh(x / 1000) for FSC-A: as asked",
        "logicle(T=262144, W=0.5, M=4.5, A=0) for CD3: as asked",
        "arcsinh(x / 5) for CD4, CD8, CD19: mass cytometry by its channel names; "
        "pass transform=... (--transform) to choose",
        "Time, beads stay as they are: no marker",
    ]
    found, _ = chosen({"CD3": "none", "default": "arcsinh:20"}, "unknown")
    assert found["CD3"] == Identity()
    assert found["CD4"] == Arcsinh(20)
    assert found["FSC-A"] == Identity()
    found, _ = chosen({"default": "arcsinh:20"}, names=["default", "CD3"], kinds=["marker"] * 2)
    assert found == {"default": Arcsinh(20), "CD3": Arcsinh(5)}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("arcsin", "transform='arcsin': expected 'auto', 'none', 'arcsinh'"),
        (None, "transform=None: expected"),
        (150, "transform=150: expected"),
        ("auto:5", "transform='auto:5': expected"),
        ("none:1", "transform='none:1': expected"),
        ("arcsinh:", "no numbers"),
        ("arcsinh:x", "'x' are no numbers"),
        ("arcsinh:1,2", "transform='arcsinh:1,2': expected"),
        ("arcsinh:0", "cofactor=0.0: expected a number above 0"),
        ("logicle:1,2,3,4,5", "transform='logicle:1,2,3,4,5': expected"),
        ("logicle:262144,9", "expected W"),
        ({"CD33": "none"}, "names the column 'CD33', which there is not"),
        ({"cd3": "none"}, r"did you mean 'CD3'\?"),
        ({"CD3": 5}, "transform=5: expected"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(asked, message):
    with pytest.raises(DataError, match=message) as error:
        chosen(asked)
    assert "\n" not in str(error.value)


def test_a_cofactor_is_not_guessed_without_a_modality():
    with pytest.raises(DataError, match=r"cannot be guessed.*'arcsinh:5' \(mass\)"):
        chosen("arcsinh", "unknown")


# JSON --------------------------------------------------------------------------------------------------


def test_transforms_are_kept_as_json():
    names = list("abcde")
    record = to_json(names, EACH)
    again = from_json(json.loads(json.dumps(record)))
    assert list(again) == names
    assert list(again.values()) == EACH
    assert record["markers"]["a"] == record["markers"]["d"]  # 5 and 5.0 are one
    assert json.dumps(record["markers"]["a"]) == json.dumps(record["markers"]["d"])
    assert from_json(record | {"scaling": "robust"}) == again
    with pytest.raises(DataError, match="'a' twice"):
        to_json(["a", "a"], EACH[:2])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "expected a transform for each marker"),
        ("arcsinh", "expected a transform for each marker"),
        ({"version": 1, "markers": [1]}, "expected a transform for each marker"),
        ({"version": 2, "markers": {}}, "has the version 2, this scaleshift knows 1"),
        ({"version": 1, "markers": {"a": {"name": "sqrt"}}}, "'sqrt'.*known: none, arcsinh, logicle"),
        ({"version": 1, "markers": {"a": {"name": ["x"]}}}, "known: none, arcsinh, logicle"),
        ({"version": 1, "markers": {"a": {"name": "arcsinh"}}}, "'arcsinh' cannot be made"),
        ({"version": 1, "markers": {"a": {"name": "arcsinh", "cofactor": -1}}}, "cannot be made"),
        ({"version": 1, "markers": {"a": {"name": "none", "code": "x"}}}, "cannot be made"),
    ],
)
def test_records_of_unknown_kinds_are_refused_by_name(record, message):
    with pytest.raises(SchemaError, match=message):
        from_json(record)


def test_a_transform_alone_is_kept_too():
    for transform in EACH:
        assert Transform.from_json(json.loads(json.dumps(transform.to_json()))) == transform
