"""Registers as a number type of kernels."""

import numpy as np

from scaleshift.kernels.cpu import lanes as module
from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.lanes import (
    WIDTH,
    add_to,
    exp2,
    fraction,
    load,
    spread,
    spread_from,
    store,
    total,
    totals,
)


@jit
def powers(t, out):
    for i in range(0, t.size, WIDTH):
        store(out, i, exp2(load(t, i)))


@jit
def fractions(t, out):
    for i in range(0, t.size, WIDTH):
        store(out, i, fraction(load(t, i)))


def applied(kernel, t):
    """The results for numbers that need not fill whole registers."""
    padded = np.zeros(-(-t.size // WIDTH) * WIDTH, dtype=np.float32)
    padded[: t.size] = t
    out = np.empty_like(padded)
    kernel(padded, out)
    return out[: t.size]


def test_powers_of_two_have_all_digits_of_float32():
    t = np.linspace(-126, 127, 1_000_003, dtype=np.float32)
    np.testing.assert_allclose(applied(powers, t), np.exp2(t.astype(np.float64)), rtol=1.7e-7)
    whole = np.arange(-126, 128, dtype=np.float32)
    np.testing.assert_array_equal(applied(powers, whole), np.exp2(whole.astype(np.float64)))


def test_powers_below_the_smallest_float32_are_the_smallest():
    t = np.float32([-126.1, -140, -1e3, -1e6, -3e38])
    np.testing.assert_array_equal(applied(powers, t), np.float32(2**-126))


def test_fractions_are_what_is_left_of_the_nearest_integer():
    t = np.random.default_rng(0).uniform(-1024, 1024, 100_001).astype(np.float32)
    t[:4] = 0, 0.5, -0.5, 1.5
    np.testing.assert_array_equal(applied(fractions, t), t - np.rint(t))


def test_numbers_are_spread_added_and_multiplied_lane_by_lane():
    @jit
    def combine(x, factor, out):
        out_64 = np.zeros(WIDTH)
        value = load(x, 0) * spread(factor) - spread_from(x, 1)
        value += load(x, WIDTH)
        store(out, 0, value)
        add_to(out_64, 0, value)
        add_to(out_64, 0, value)
        return out_64

    x, out = np.arange(2 * WIDTH, dtype=np.float32), np.zeros(WIDTH, dtype=np.float32)
    expected = x[:WIDTH] * 3 - 1 + x[WIDTH:]
    np.testing.assert_array_equal(combine(x, np.float32(3), out), 2 * expected)
    np.testing.assert_array_equal(out, expected)


def test_lanes_are_summed_one_register_or_a_square_of_registers_at_a_time():
    @jit
    def sums(x, out):
        store(out, 0, totals(x, 0))
        return total(load(x, WIDTH))

    x = np.random.default_rng(0).integers(-1000, 1000, (WIDTH, WIDTH)).astype(np.float32)
    out = np.zeros(WIDTH, dtype=np.float32)
    assert sums(x.ravel(), out) == x[1].sum()
    np.testing.assert_array_equal(out, x.sum(axis=1))


def test_registers_are_those_of_the_cpu_that_numba_compiles_for():
    powers(np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32))
    (assembly,) = powers.inspect_asm().values()
    widest = "zmm" if "zmm" in assembly else "ymm" if "ymm" in assembly else "xmm"
    assert {"zmm": 16, "ymm": 8, "xmm": 4}[widest] == WIDTH
    assert ("vreduceps" in assembly) == module._HAS_DQ
