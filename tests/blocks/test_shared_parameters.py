"""Large parameters of a pass enter its graph once, alone or together."""

from typing import NamedTuple

import dask.array as da
import numpy as np
import pytest
from dask.delayed import Delayed

from scaleshift.blocks import graph, passes
from scaleshift.blocks.rows import as_rows


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


LARGE = Pair(np.ones(100_000), np.ones(100_000))


@pytest.mark.parametrize("value", [np.ones(200_000), LARGE, [LARGE, LARGE], [np.ones(60_000)] * 3])
def test_what_weighs_much_is_shared(value):
    assert isinstance(graph.once({"value": value})["value"], Delayed)
    assert graph.once({"value": [np.ones(3)]})["value"][0].size == 3


def leaf(block, pairs):
    assert isinstance(pairs[0], Pair)
    return {"sum": np.array(pairs[0].second.sum() + len(block.x))}


def test_it_arrives_as_it_was():
    rows = as_rows(da.ones((6, 2), chunks=(2, 2)))
    assert passes.total(leaf, rows, {"sum": ()}, pairs=[LARGE])["sum"] == 3 * 100_000 + 6
