"""Rows become columns."""

import numpy as np
import pytest

from scaleshift.kernels.cpu.transpose import SIDE, transpose_rows
from scaleshift.kernels.cpu.work import work_rows


@pytest.mark.parametrize("m", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("d", [1, 15, 16, 17, 33])
def test_rows_become_columns_between_zeros_and_what_was_there(m, d):
    x = np.random.default_rng(0).normal(size=(m, d)).astype(np.float32)
    columns = work_rows(-(-d // SIDE) * SIDE, 64)
    columns[:] = 7
    transpose_rows(x, columns, np.empty((SIDE, SIDE), dtype=np.float32))
    np.testing.assert_array_equal(columns[:d, :m], x.T)
    written = -(-m // SIDE) * SIDE
    assert not columns[d:, :written].any()
    assert not columns[:d, m:written].any()
    assert (columns[:, written:] == 7).all()
