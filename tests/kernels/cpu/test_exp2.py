"""Powers of two inside kernels."""

import numpy as np

from scaleshift.kernels.cpu.exp2 import add_in_any_order, exp2
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
