"""Parts of the rows that stability is told from."""

import numpy as np
import pytest

from scaleshift.auc.stability import halves


@pytest.mark.parametrize("n_buckets", [4, 5, 16, 26, 41, 100])
def test_halves_come_in_complementary_pairs_of_any_number_of_buckets(n_buckets):
    """Of 40 buckets there are 7e10 pairs: they cannot be listed."""
    found = halves(n_buckets, 10, seed=3)
    assert 6 <= len(found) <= 20
    for half, other in zip(found[::2], found[1::2], strict=True):
        assert sorted(half + other) == list(range(n_buckets))
        assert abs(len(half) - len(other)) == n_buckets % 2
    assert len(np.unique([str(half) for half in found])) == len(found)
    assert found == halves(n_buckets, 10, seed=3)
    if n_buckets > 5:
        assert found != halves(n_buckets, 10, seed=4)
