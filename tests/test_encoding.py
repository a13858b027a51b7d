"""Any value that can be saved comes back to the bit; any other is refused by name."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift.encoding import decode, encode
from scaleshift.errors import DataError
from scaleshift.quantify.features import FeatureMap

X = np.arange(12.0).reshape(4, 3)


def same(a, b) -> bool:
    """Whether two values are of one type and equal to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype.kind in "UO":
        return a.dtype == b.dtype and a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, float | np.floating):
        return bool(a != a and b != b) or bool(a == b and np.signbit(a) == np.signbit(b))
    return bool(a == b)


dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(endianness="?", max_len=5),
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
objects = hnp.arrays(object, hnp.array_shapes(min_dims=0, min_side=0, max_side=4), elements=plain)
numbers = arrays.map(lambda array: array.astype(array.dtype.newbyteorder("=")).ravel())
scalars = numbers.filter(len).map(lambda array: array[0])
values = st.recursive(
    plain | arrays | objects | scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.builds(ss.FourierFeatures, frequencies=inner).map(lambda features: ss.DFM(features))
    ),
    max_leaves=8,
)


def parameters(value):
    """The same value with every estimator in it as a dict of its parameters."""
    if isinstance(value, ss.DFM):
        return {"DFM": parameters(value.features.frequencies)}
    if isinstance(value, list | tuple):
        return type(value)(parameters(item) for item in value)
    return {name: parameters(v) for name, v in value.items()} if isinstance(value, dict) else value


@given(values)
@settings(deadline=None, max_examples=150)
def test_any_value_comes_back_to_the_bit(value):
    tree, stored = encode(ss.GaussianKernel(value))
    back = decode(
        json.loads(json.dumps(tree)),
        lambda name, dtype, shape: stored[name].astype(dtype).reshape(shape),
    )
    assert same(parameters(back.bandwidth), parameters(value))


class MyMap(FeatureMap):
    def learn(self, source):
        return None


class DFM(ss.DFM):
    """Of the name that the table knows, but another class."""


@dataclass(frozen=True)
class Own:
    x: int = 1


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (ss.DFM(ss.FourierFeatures(frequencies=len)), "features.frequencies: a function cannot be saved"),
        (ss.DFM(MyMap()), r"^features: an object of class .*\.MyMap cannot be saved"),
        (ss.DFM(LogisticRegression()), "features: an object of class sklearn.*LogisticRegression"),
        (ss.DFM(ss.DFM), "features: an object of class .*ABCMeta|features: an object of class builtins.type"),
        (ss.GaussianKernel({"a": [1, Own()]}), r"bandwidth.a.1: an object of class .*\.Own"),
        (ss.GaussianKernel({1: 2}), "bandwidth has the key 1, and only text can be a key"),
        (ss.GaussianKernel(X + 1j), "bandwidth: a ndarray of dtype complex128"),
        (ss.GaussianKernel(np.array(["2020"], "M8[Y]")), r"ndarray of dtype datetime64\[Y\]"),
        (ss.GaussianKernel(np.array([{}], object)), "bandwidth: an object of class builtins.dict"),
        (ss.GaussianKernel(np.ma.array([1, 2])), "bandwidth: a MaskedArray of dtype int64"),
        (ss.GaussianKernel(np.longdouble(1)), "bandwidth: an object of class numpy.longdouble"),
        (ss.GaussianKernel({1, 2}), "bandwidth: an object of class builtins.set"),
        (ss.GaussianKernel(np.random.default_rng()), "bandwidth: an object of class numpy.random"),
        (DFM(), r"^an object of class .*test_encoding.DFM cannot be saved"),
        (ss.DFM().predict, "^a function cannot be saved"),
        ([1, 2], "^an object of class builtins.list cannot be saved"),
    ],
)
def test_what_is_no_data_is_refused_by_name(thing, message):
    with pytest.raises(DataError, match=message):
        encode(thing)
