"""Second moments by group on the CPU: those of the reference, whatever the rows look like."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from scaleshift.kernels import scatter as reference
from scaleshift.kernels.cpu import scatter
from scaleshift.kernels.cpu.scatter import scatter_sums

NAMES = ("count", "weight", "sum", "scatter")


def study(n, d, n_groups, dtype, weighted, seed=0):
    """Rows about their mean and elsewhere, groups with negative codes, weights of which some are 0."""
    rng = np.random.default_rng(seed)
    x = (20 * rng.normal(size=(n, d)) + rng.normal(size=d) + (60 if dtype in ("u1", "u4") else 0)).astype(
        dtype
    )
    groups = rng.integers(-2, n_groups, n)
    weight = rng.gamma(0.5, size=n) * (rng.random(n) > 0.1) if weighted else None
    return x, groups, n_groups, x.astype(np.float64).mean(axis=0) if n else np.zeros(d), weight


def distances(found, truth):
    """Of sums, in units of what Cauchy and Schwarz bound them by; of products, of a group's largest."""
    squares = np.einsum("gjj->gj", truth["scatter"])
    bound = np.sqrt(squares * truth["weight"][:, None])
    sums = np.abs(found["sum"] - truth["sum"]) / np.where(bound > 0, bound, 1)
    largest = squares.max(axis=1, initial=0)[:, None, None]
    products = np.abs(found["scatter"] - truth["scatter"]) / np.where(largest > 0, largest, 1)
    return sums.max(initial=0), products.max(initial=0)


def assert_close(found, truth, sums, products):
    assert set(found) == set(NAMES)
    assert all(found[name].dtype == np.float64 and found[name].shape == truth[name].shape for name in NAMES)
    np.testing.assert_array_equal(found["count"], truth["count"])
    np.testing.assert_allclose(found["weight"], truth["weight"], rtol=1e-12)
    np.testing.assert_array_equal(found["scatter"], found["scatter"].transpose(0, 2, 1))
    off_sums, off_products = distances(found, truth)
    assert off_sums < sums
    assert off_products < products


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i2", "i8", "u1", "u4", "?", ">f4", ">f8"])
@pytest.mark.parametrize(
    ("n", "d", "n_groups"), [(0, 3, 2), (1, 1, 1), (9_000, 7, 2), (300, 50, 40), (50, 4, 0)]
)
def test_sums_are_those_of_the_reference(n, d, n_groups, dtype, weighted):
    job = study(n, d, max(n_groups, 1), dtype, weighted)
    if n_groups == 0:
        job = (job[0], np.full(n, -1), 0, *job[3:])
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-13, 5e-7 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [511, 512, 513, 1100, 1600])
def test_panels_of_columns_are_those_of_the_reference(d, dtype):
    job = study(500, d, 2, dtype, False)
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-13, 5e-7 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x[:, 3:9],
        lambda x: x[:, ::-2],
        lambda x: x.view(type("Tagged", (np.ndarray,), {})),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    ],
    ids=[
        "F",
        "every second",
        "backwards",
        "columns",
        "columns backwards",
        "subclass",
        "unaligned",
    ],
)
def test_rows_lie_in_memory_as_they_like(view, dtype):
    x, groups, n_groups, centre, weight = study(700, 12, 3, dtype, True)
    x = view(x)
    x.flags.writeable = False
    n, d = x.shape
    job = x, groups[:n], n_groups, centre[:d], weight[:n]
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-13, 5e-7 if dtype == "f4" else 1e-13)


def test_an_offset_of_ten_thousand_standard_deviations_costs_float32_nothing():
    rng = np.random.default_rng(1)
    x = (1e4 + rng.normal(size=(20_000, 20))).astype("f4")
    job = x, rng.integers(0, 2, len(x)), 2, x.mean(axis=0, dtype="f8") + 1e-5  # no float32 number
    found, truth = scatter_sums(*job), reference.scatter_sums(*job)
    assert_close(found, truth, 1e-13, 5e-7)
    for group in range(2):
        rows = x[job[1] == group].astype("f8")
        n, s = found["count"][group], found["sum"][group]
        inner = found["scatter"][group] - np.outer(s, s) / n
        np.testing.assert_allclose(inner, (n - 1) * np.cov(rows.T), rtol=1e-5, atol=1e-5 * n)
        np.testing.assert_allclose(job[3] + s / n, rows.mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize(("dtype", "bound"), [("f4", 5e-7), ("f8", 1e-13)])
def test_neither_the_order_of_rows_nor_blocks_matter(dtype, bound):
    x, groups, n_groups, centre, weight = study(20_000, 9, 3, dtype, True)
    whole = scatter_sums(x, groups, n_groups, centre, weight)
    order = np.random.default_rng(2).permutation(len(x))
    assert_close(scatter_sums(x[order], groups[order], n_groups, centre, weight[order]), whole, 1e-13, bound)
    cuts = [0, 1, 5, 4_100, 11_000, 11_000, 20_000]
    parts = [scatter_sums(x[a:b], groups[a:b], n_groups, centre, weight[a:b]) for a, b in pairwise(cuts)]
    assert_close({name: sum(part[name] for part in parts) for name in NAMES}, whole, 1e-13, bound)


def test_many_rows_cost_float32_no_digits():
    job = study(300_000, 3, 1, "f4", False)
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-12, 2e-7)


def test_columns_of_any_scale_keep_their_digits():
    x, groups, n_groups, _, weight = study(3_000, 8, 2, "f4", True)
    scale = np.float32(10) ** np.arange(-6, 2)
    job = x * scale, groups, n_groups, np.zeros(8), weight
    norms = np.multiply.outer(scale, scale)
    found, truth = (
        {**sums, "scatter": sums["scatter"] / norms}
        for sums in (scatter_sums(*job), reference.scatter_sums(*job))
    )
    assert distances(found, truth)[1] < 5e-7


def test_rows_that_are_all_alike_round_alike():
    row = np.float32(np.random.default_rng(3).normal(size=(1, 12)))
    job = np.broadcast_to(row, (40_000, 12)), np.zeros(40_000, np.int64), 1, np.zeros(12)
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-11, 1e-5)  # float32's worst case


def test_a_weight_of_two_is_a_row_twice():
    x, groups, n_groups, centre, _ = study(3_000, 5, 2, "f4", False)
    twice = np.arange(len(x)) % 2 + 1
    rows = np.repeat(np.arange(len(x)), twice)
    found = scatter_sums(x, groups, n_groups, centre, twice)
    repeated = scatter_sums(x[rows], groups[rows], n_groups, centre)
    for name in ("weight", "sum"):
        np.testing.assert_allclose(found[name], repeated[name], rtol=1e-9)
    assert distances(found, repeated)[1] < 2 * 5e-7  # either is off by as much


def test_groups_without_rows_give_zeros():
    found = scatter_sums(np.ones((2, 3), "f4"), np.array([2, -1]), 4, np.zeros(3))
    assert found["count"].tolist() == found["weight"].tolist() == [0, 0, 1, 0]
    assert not found["scatter"][[0, 1, 3]].any()
    np.testing.assert_array_equal(found["scatter"][2], 1)
    np.testing.assert_array_equal(found["sum"], np.eye(4)[[2]].T * np.ones(3))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_that_are_skipped_may_be_nan(dtype):
    x = np.array([[1.0], [np.nan], [3.0], [np.inf]], dtype)
    found = scatter_sums(x, np.array([0, -1, 0, -5]), 1, np.array([1.0]))
    assert [found[name].tolist() for name in NAMES] == [[2.0], [2.0], [[2.0]], [[[4.0]]]]


def test_products_beyond_float32_are_done_in_float64():
    x, groups, n_groups, _, _ = study(100, 3, 2, "f4", False)
    job = x * np.float32(1e25), groups, n_groups, np.zeros(3)
    assert_close(scatter_sums(*job), reference.scatter_sums(*job), 1e-13, 1e-13)


def test_besides_the_result_a_tile_is_held_and_not_the_block():
    job = study(60_000, 64, 3, "f4", False)
    scatter_sums(*job)
    tracemalloc.start()
    found = scatter_sums(*job)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    tile = scatter._TILE_ROWS * 64 * 4
    assert peak < tile + len(job[0]) * 16 + sum(value.nbytes for value in found.values()) + 2e5
    assert peak < job[0].nbytes / 2


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="n_groups is 1"):
        scatter_sums(np.zeros((2, 1)), np.array([0, 1]), 1, np.zeros(1))
    with pytest.raises(ValueError, match="one integer code for each of the 2 rows"):
        scatter_sums(np.zeros((2, 1)), np.array([0]), 1, np.zeros(1))
    with pytest.raises(ValueError, match="one number for each of the 2 rows"):
        scatter_sums(np.zeros((2, 1)), np.array([0, 0]), 1, np.zeros(1), np.ones(3))
    with pytest.raises(ValueError, match="one number for each of the 2 columns"):
        scatter_sums(np.zeros((2, 2)), np.array([0, 0]), 1, np.zeros(1))
