import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleshift.blocks import statistics

LAYOUT = {"n": (), "sum": (3,), "gram": (2, 2)}


def test_unpack_is_the_inverse_of_pack_with_and_without_keys():
    rng = np.random.default_rng(0)
    for lead in ((), (5,)):
        arrays = {name: rng.normal(size=lead + shape) for name, shape in LAYOUT.items()}
        packed = statistics.pack(arrays, LAYOUT, lead)
        assert packed.shape == (*lead, statistics.size(LAYOUT))
        for name, values in statistics.unpack(packed, LAYOUT).items():
            assert np.array_equal(values, arrays[name])


@pytest.mark.parametrize("wrong", [{"n": 1.0}, {"n": 1.0, "sum": np.zeros(2), "gram": np.zeros((2, 2))}])
def test_a_kernel_that_breaks_its_layout_is_named(wrong):
    with pytest.raises(ValueError, match="kernel returned"):
        statistics.pack(wrong, LAYOUT)


@given(st.integers(1, 200), st.sampled_from([1, 2, 4, 8, 64]))
def test_folding_runs_of_blocks_gives_the_bits_of_the_tree(n, run):
    states = list(np.random.default_rng(n).normal(size=n) * 10.0 ** np.arange(n).clip(0, 15))
    folded = []
    for first in range(0, n, run):
        folder = statistics.Folder(np.add)
        for state in states[first : first + run]:
            folder.push(state)
        folded.append(folder.result())
    assert statistics.tree(folded, np.add) == statistics.tree(states, np.add)


@given(st.lists(st.text(max_size=2), min_size=1, max_size=40))
def test_states_are_merged_in_row_order(parts):
    assert statistics.tree(parts, lambda a, b: a + b) == "".join(parts)
