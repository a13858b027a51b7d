import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.blocks import noise

WHOLE = noise.keys(3, "sample", 0, 20_000)


@given(st.integers(0, 19_999), st.integers(0, 9_000))
def test_noise_depends_on_the_absolute_row_only(start, n):
    n = min(n, 20_000 - start)
    assert (noise.keys(3, "sample", start, n) == WHOLE[start : start + n]).all()


def test_streams_and_seeds_differ_and_do_not_repeat():
    rows = [noise.keys(seed, stream, 0, 8_192) for seed in (0, 1) for stream in ("a", "b")]
    assert len(np.unique(np.concatenate(rows))) == 4 * 8_192


def test_keys_are_uniform():
    counts = np.histogram(noise.keys(0, "u", 0, 100_000) / 2.0**64, 20, (0, 1))[0]
    assert counts.sum() == 100_000
    assert ((counts - 5_000) ** 2 / 5_000).sum() < 45  # chi square, 19 degrees of freedom: p = .0007


def test_far_rows_have_noise_too():
    assert len(noise.keys(0, "s", 10**12 + 5, 3)) == 3


def test_random_states_of_every_kind_give_a_seed():
    assert noise.seed_of(5) == 5
    assert noise.seed_of(np.random.default_rng(1)) == noise.seed_of(np.random.default_rng(1))
    legacy = np.random.RandomState(1)
    assert noise.seed_of(legacy) >= 0
    assert noise.seed_of(None) != noise.seed_of(None)


@pytest.mark.parametrize("n", [0, 1])
def test_short_requests(n):
    assert noise.keys(0, "s", 4_096, n).shape == (n,)
