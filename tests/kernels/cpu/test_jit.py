"""The settings that every compiled kernel shares."""

import numpy as np

from scaleshift.kernels.cpu.jit import FAST_MATH, jit, strict_jit


def test_rounding_by_a_magic_number_survives_the_optimiser():
    @jit
    def nearest(t):
        out = np.empty_like(t)
        for i in range(t.size):
            out[i] = (t[i] + np.float32(12582912)) - np.float32(12582912)
        return out

    t = np.linspace(-20, 20, 999, dtype=np.float32)
    np.testing.assert_array_equal(nearest(t), np.rint(t))
    assert "reassoc" not in FAST_MATH


def test_kernels_release_the_gil_and_stay_on_one_thread():
    @jit
    def double(x):
        return 2 * x

    assert not double.signatures
    assert double(2) == 4
    assert double.targetoptions["nogil"]
    assert not double.targetoptions.get("parallel", False)
    assert not double.targetoptions["boundscheck"]


def test_strict_kernels_know_nan_and_infinity():
    @strict_jit
    def is_near(x):
        return x * x <= 100.0

    assert [is_near(x) for x in (3.0, 1e300, np.inf, np.nan)] == [True, False, False, False]
    assert is_near.targetoptions["nogil"]


def test_strict_kernels_stay_strict_where_a_fast_one_calls_them():
    @strict_jit
    def is_nan(x):
        return x != x

    @jit
    def call(x):
        return is_nan(x)

    assert call(np.nan)
    assert is_nan(np.nan)
