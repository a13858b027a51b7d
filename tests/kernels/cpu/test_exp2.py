"""Powers of two inside kernels."""

import numpy as np

from scaleshift.kernels.cpu.exp2 import add_in_any_order, add_product_in_any_order, exp2, log2
from scaleshift.kernels.cpu.jit import jit


@jit
def powers(t):
    out = np.empty_like(t)
    for i in range(t.size):
        out[i] = exp2(t[i])
    return out


def test_powers_of_two_have_all_digits_of_float32():
    t = np.linspace(-126, 127, 1_000_003, dtype=np.float32)
    np.testing.assert_allclose(powers(t), np.exp2(t.astype(np.float64)), rtol=1.7e-7)
    whole = np.arange(-126, 128, dtype=np.float32)
    np.testing.assert_array_equal(powers(whole), np.exp2(whole.astype(np.float64)))


def test_what_float32_cannot_hold_is_its_smallest_number():
    t = np.float32([-126.1, -1e3, -1e6, -3e38])
    np.testing.assert_array_equal(powers(t), np.float32(2**-126))


def test_sums_in_any_order_are_sums():
    @jit
    def total(x):
        result = x.dtype.type(0)
        for value in x:
            result = add_in_any_order(result, value)
        return result

    for dtype in (np.float32, np.float64):
        assert total(np.arange(1001, dtype=dtype)) == 500_500


def test_logarithms_have_all_digits_of_float32():
    @jit
    def logarithms(x):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = log2(x[i])
        return out

    whole = np.arange(-126, 128, dtype=np.float32)
    np.testing.assert_array_equal(logarithms(np.exp2(whole)), whole)
    x = np.exp2(np.linspace(-126, 127.9, 1_000_003)).astype(np.float32)
    np.testing.assert_allclose(logarithms(x), np.log2(x.astype(np.float64)), rtol=1.1e-7, atol=1.1e-7)
    near = np.linspace(0.7, 1.5, 1_000_003, dtype=np.float32)
    np.testing.assert_allclose(logarithms(near), np.log2(near.astype(np.float64)), rtol=6e-7)


def test_sums_of_products_in_any_order_are_sums():
    @jit
    def dot(x, y):
        result = x.dtype.type(0)
        for i in range(x.size):
            result = add_product_in_any_order(result, x[i], y[i])
        return result

    for dtype in (np.float32, np.float64):
        assert dot(np.arange(101, dtype=dtype), np.full(101, 2, dtype=dtype)) == 10_100
