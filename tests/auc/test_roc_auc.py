"""The area under the ROC curve: scikit-learn's number for any chunks, labels, weights; odd input is named."""

from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import scaleshift as ss
from scaleshift.auc import pairs
from scaleshift.blocks import ranges
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
N = 20_000
Y = RNG.random(N) < 0.05
SCORE = (RNG.normal(size=N) + 1.2 * Y).astype("f4")
TIED = np.round(SCORE, 1)
WEIGHT = RNG.exponential(size=N) * (RNG.random(N) < 0.9)
CASE = Path(__file__).parents[1] / "data" / "auc" / "auc_ties.npz"


@pytest.fixture
def many_ranges(monkeypatch):
    """Small data in as many ranges as large data."""
    monkeypatch.setattr(ranges, "RANGE_ROWS", 1_000)


def lazy(values, chunks):
    return da.from_array(values, chunks=(chunks,))


def auc(*args, **kwargs):
    return float(ss.roc_auc(*args, **kwargs)["auc"])


# Against the truth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 500, 7])
def test_the_reference_case(chunks, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_ROWS", 50)
    case = np.load(CASE, allow_pickle=False)
    y, score, weight = (
        case[k] if chunks is None else lazy(case[k], chunks) for k in ("y", "scores", "weight")
    )
    assert auc(y, score) == pytest.approx(float(case["auc"]), abs=1e-12)
    assert auc(y, score, weight) == pytest.approx(float(case["auc_w"]), abs=1e-12)
    assert auc(y, score, max_fpr=0.2) == pytest.approx(float(case["pauc_02"]), abs=1e-12)


@pytest.mark.parametrize("score", [SCORE, TIED, np.sort(SCORE), np.zeros(N), Y, np.where(Y, 2.0, TIED)])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("max_fpr", [None, 1.0, 0.1, 0.013])
@pytest.mark.parametrize("chunks", [N, 1_700])
def test_exact_equals_scikit_learn(score, weight, max_fpr, chunks, many_ranges):
    expected = roc_auc_score(Y, score, sample_weight=weight, max_fpr=max_fpr)
    lazy_weight = None if weight is None else lazy(weight, 3_000)
    found = ss.roc_auc(lazy(Y, chunks), lazy(score, 1_300), lazy_weight, max_fpr)
    assert abs(float(found["auc"]) - expected) < 1e-12
    assert found["bound"] == 0
    assert abs(auc(Y, score, weight, max_fpr) - expected) < 1e-12


@st.composite
def problems(draw):
    n = draw(st.integers(2, 60))
    column = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    y = np.array(column(st.booleans()))
    y[:2] = [True, False]
    score = np.array(column(st.one_of(st.integers(-3, 3), st.floats(-1e300, 1e300))), float)
    weight = np.array(column(st.one_of(st.integers(0, 4), st.floats(1e-3, 1e3))), float)
    weight[:2] = np.maximum(weight[:2], 0.5)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=6)))  # empty blocks too
    sizes = tuple(np.diff([0, *cuts, n]).tolist())
    return y, score, draw(st.sampled_from([None, weight])), sizes


@settings(deadline=None, max_examples=60)
@given(problems(), st.one_of(st.none(), st.floats(0.01, 1)), st.integers(1, 40))
def test_exact_equals_scikit_learn_on_any_problem(problem, max_fpr, range_rows):
    y, score, weight, sizes = problem
    expected = roc_auc_score(y, score, sample_weight=weight, max_fpr=max_fpr)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "RANGE_ROWS", range_rows)
        found = auc(da.from_array(y, chunks=(sizes,)), da.from_array(score, chunks=(sizes,)), weight, max_fpr)
    assert abs(found - expected) < 1e-12
    assert abs(auc(y, score, weight, max_fpr) - expected) < 1e-12


def test_chunks_do_not_show(many_ranges):
    """Whole numbers are added: the very same bits."""
    found = {auc(lazy(Y, c), lazy(SCORE, c)) for c in (50, 333, 5_000, N)} | {auc(Y, SCORE)}
    assert len(found) == 1


def test_a_mean_over_blocks_would_be_another_number():
    """Rows sorted by class: no block has both."""
    order = np.argsort(Y, kind="stable")
    expected = roc_auc_score(Y, SCORE)
    assert auc(lazy(Y[order], N // 20), lazy(SCORE[order], N // 20)) == pytest.approx(expected, abs=1e-12)


def test_unknown_chunks_and_empty_blocks(many_ranges):
    keep = SCORE < 1
    unknown = [lazy(values, 900)[lazy(keep, 900)] for values in (Y, SCORE, WEIGHT)]
    assert np.isnan(unknown[0].shape[0])
    assert auc(*unknown) == pytest.approx(
        roc_auc_score(Y[keep], SCORE[keep], sample_weight=WEIGHT[keep]), abs=1e-12
    )
    none = SCORE > 99
    tail = [da.concatenate([lazy(v, 700)[lazy(none, 700)], lazy(v, 700)]) for v in (Y, SCORE)]
    assert auc(*tail) == auc(Y, SCORE)


def test_one_lazy_column_among_columns_in_memory():
    expected = auc(Y, SCORE, WEIGHT)
    for i in range(3):
        columns = [Y, SCORE, WEIGHT]
        columns[i] = lazy(columns[i], 3_001)
        assert auc(*columns) == pytest.approx(expected, abs=1e-13)


def test_rows_in_memory_above_one_block():
    y, score = np.tile(Y, 5), np.tile(TIED, 5)
    assert auc(y, score) == auc(Y, TIED)


def test_infinite_scores_are_the_first_and_the_last():
    y, score = np.array([0, 1, 0, 1, 1]), np.array([-np.inf, np.inf, 0.5, 0.5, -np.inf])
    finite = np.clip(score, -9, 9)
    for chunks in (5, 2):
        assert auc(lazy(y, chunks), lazy(score, chunks)) == roc_auc_score(y, finite)


def test_large_whole_scores_are_not_rounded():
    """2**53 and 2**53 + 1 are one float64, but two scores."""
    assert auc([0, 1], np.array([2**53, 2**53 + 1])) == 1


def test_counts_beyond_64_bits():
    """All rows of a store tie, or nearly: pairs are more than int64 holds."""
    n = 5 * 10**9
    table = {"score": np.arange(2), "positive": np.array([n, n + 1]), "negative": np.array([n, n])}
    totals = {name: np.array([table[name].sum(), 7]) for name in pairs.CLASSES}
    here = n * n + 2 * (n + 1) * n + (n + 1) * n
    assert here > 2**63
    assert pairs.twice_in_order(table, totals, 0) == here + 2 * 7 * 2 * n  # 7 positive rows are above


def test_pairs_beyond_53_bits_are_exact():
    """With n the weight of every entry, floats would lose the last digits."""
    table = {
        "score": np.arange(3),
        "positive": np.array([1, 10**8, 3]),
        "negative": np.array([10**8 + 1, 5, 7]),
    }
    totals = {name: np.array([table[name].sum()]) for name in pairs.CLASSES}
    p, q = ([int(v) for v in table[name]] for name in pairs.CLASSES)
    expected = sum(p[i] * q[j] * (2 if i > j else i == j) for i in range(3) for j in range(3))
    assert pairs.twice_in_order(table, totals, 0) == expected


# Labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [[0, 1], [-1, 1], ["healthy", "sick"], ["S2", "S10"], [1.5, 2.5], [False, True]],
)
def test_the_label_that_sorts_last_is_positive(names):
    y = np.array(names)[Y.astype(int)]
    expected = roc_auc_score(Y, SCORE)
    for labels in (y, y.tolist(), pd.Series(y), xr.DataArray(y), pd.Categorical(y, names), lazy(y, 3_000)):
        found = ss.roc_auc(labels, SCORE)
        assert float(found["auc"]) == pytest.approx(expected, abs=1e-12)
        assert found.attrs["positive"] == names[1]
        assert type(found.attrs["positive"]) is type(names[1])


def test_the_positive_label_is_told_in_its_own_type():
    assert ss.roc_auc(Y, SCORE, pos_label=np.int64(1)).attrs["positive"] is True


def test_a_categorical_keeps_its_order():
    y = pd.Categorical(np.where(Y, "a", "b"), categories=["b", "a"])
    assert auc(y, SCORE) == pytest.approx(roc_auc_score(Y, SCORE), abs=1e-12)


def test_one_label_against_all_others():
    y = np.array(["B", "NK", "T"])[RNG.integers(0, 3, N)]
    for labels in (y, lazy(y.astype(object), 3_000)):
        found = ss.roc_auc(labels, SCORE, pos_label="NK")
        assert float(found["auc"]) == pytest.approx(roc_auc_score(y == "NK", SCORE), abs=1e-12)
        assert int(found["n_positive"]) == (y == "NK").sum()
        with pytest.raises(DataError, match=r"3 classes .*pos_label"):
            ss.roc_auc(labels, SCORE)
    with pytest.raises(DataError, match="'NKT' is not known"):
        ss.roc_auc(y, SCORE, pos_label="NKT")
    assert auc(Y, SCORE, pos_label=False) == pytest.approx(1 - auc(Y, SCORE), abs=1e-12)


@pytest.mark.parametrize("method", ["exact", "histogram"])
def test_rows_without_a_label_are_left_out_and_counted(method, many_ranges):
    """Whatever their scores and weights."""
    missing = RNG.random(N) < 0.3
    y = np.where(missing, None, np.where(Y, "sick", "healthy"))
    score, weight = np.where(missing, np.nan, SCORE), np.where(missing, -1, WEIGHT)
    expected = ss.roc_auc(Y[~missing], SCORE[~missing], WEIGHT[~missing], method=method)
    for labels, scores in ((y, score), (lazy(y, 1_100), lazy(score, 1_700))):
        found = ss.roc_auc(labels, scores, weight, method=method)
        off = float(found["bound"]) + float(expected["bound"])  # other rows are drawn for the bins
        assert float(found["auc"]) == pytest.approx(float(expected["auc"]), abs=off + 1e-12)
        counts = [int(found[name]) for name in ("n_positive", "n_negative", "n_unlabelled")]
        assert counts == [(Y & ~missing).sum(), (~Y & ~missing).sum(), missing.sum()]


@pytest.mark.parametrize("method", ["exact", "histogram"])
@pytest.mark.parametrize(
    ("y", "pos_label", "words"),
    [
        ([1, 1], None, r"no negative rows \(positive: 1\), its labels are 1"),
        ([False, False], None, "no positive rows, its labels are False"),
        (["a", "a"], None, "no positive rows, its labels are 'a'"),
        (["a", "a"], "b", r"no positive rows \(positive: 'b'\), its labels are 'a'"),
        (pd.Categorical(["a", "a"], ["a", "b"]), None, r"no positive rows \(positive: 'b'\)"),
        (da.from_array(np.array(["a", "a"]), chunks=1), "a", r"no negative rows \(positive: 'a'\)"),
    ],
)
def test_one_class_alone_has_no_auc(y, pos_label, words, method):
    with pytest.warns(UserWarning, match=words):
        found = ss.roc_auc(y, [1.0, 2.0], pos_label=pos_label, method=method)
    assert np.isnan(found["auc"])
    assert np.isnan(found["bound"])
    assert int(found["n_positive"]) + int(found["n_negative"]) == 2


def test_a_class_that_weighs_nothing_has_no_auc():
    with pytest.warns(UserWarning, match="no positive rows of a weight above 0"):
        found = ss.roc_auc([0, 1, 1], [1.0, 2.0, 3.0], [1, 0, 0])
    assert np.isnan(found["auc"])
    assert int(found["n_positive"]) == 2


# The histogram ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [SCORE, TIED, np.zeros(N), SCORE**3, np.sort(SCORE)])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("max_fpr", [None, 0.1, 0.013])
@pytest.mark.parametrize("n_bins", [1, 5, 100, 4096])
def test_the_histogram_is_within_its_bound(score, weight, max_fpr, n_bins):
    exact = auc(Y, score, weight, max_fpr)
    found = ss.roc_auc(Y, score, weight, max_fpr, "histogram", n_bins=n_bins)
    assert abs(float(found["auc"]) - exact) <= float(found["bound"]) + 1e-12
    if max_fpr is None:
        assert float(found["bound"]) <= 2 / n_bins


@settings(deadline=None, max_examples=60)
@given(problems(), st.one_of(st.none(), st.floats(0.01, 1)), st.integers(1, 9))
def test_the_histogram_is_within_its_bound_on_any_problem(problem, max_fpr, n_bins):
    y, score, weight, sizes = problem
    exact = auc(y, score, weight, max_fpr)
    lazy_columns = [da.from_array(values, chunks=(sizes,)) for values in (y, score)]
    found = ss.roc_auc(*lazy_columns, weight, max_fpr, "histogram", n_bins=n_bins)
    assert abs(float(found["auc"]) - exact) <= float(found["bound"]) + 1e-12
    here = ss.roc_auc(y, score, weight, max_fpr, "histogram", n_bins=n_bins)
    assert float(here["auc"]) == pytest.approx(float(found["auc"]), abs=1e-12)  # the same bins


def test_the_bound_can_be_reached():
    """One bin whose classes are apart: the curve is the corner of its rectangle."""
    y, score = np.repeat([0, 1], 50), np.arange(100.0)
    found = ss.roc_auc(y, score, method="histogram", n_bins=1)
    assert [float(found[name]) for name in ("auc", "bound")] == [0.5, 0.5]


def test_the_bound_is_the_sum_over_bins():
    y, score = np.array([0, 1, 0, 1, 1, 0, 1, 0]), np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    found = ss.roc_auc(y, score, method="histogram", n_bins=2)  # cut at 5: 4 rows, the cut itself, 3 rows
    assert float(found["bound"]) == (2 * 2 + 1 * 2) / (2 * 4 * 4)


def test_scores_that_many_rows_share_cost_no_accuracy():
    found = ss.roc_auc(Y, np.round(SCORE), method="histogram")
    assert float(found["auc"]) == pytest.approx(auc(Y, np.round(SCORE)), abs=1e-12)
    assert float(found["bound"]) < 1e-4


def test_chunks_do_not_show_in_the_histogram():
    found = {auc(lazy(Y, c), lazy(SCORE, c), method="histogram") for c in (50, 333, N)}
    assert len(found | {auc(Y, SCORE, method="histogram")}) == 1


# What it costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "histogram"])
@pytest.mark.parametrize("max_fpr", [None, 0.1])
def test_scores_are_read_twice(method, max_fpr, many_ranges):
    read = []
    score = lazy(SCORE, 2_000).map_blocks(lambda b: read.append(len(b)) or b, meta=SCORE[:0])
    ss.roc_auc(lazy(Y, 2_000), score, max_fpr=max_fpr, method=method)
    assert len(read) == 2 * 10


def test_one_block_in_memory_is_no_graph():
    def refuse(*args, **kwargs):
        raise AssertionError("a graph was computed")

    with dask.config.set(scheduler=refuse):
        assert auc(Y, SCORE) == pytest.approx(roc_auc_score(Y, SCORE), abs=1e-12)
        auc(Y, SCORE, method="histogram")


# Bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 3_000])
def test_scores_that_are_nan_are_named(chunks):
    score = SCORE.copy()
    score[[7_654, 19_000]] = np.nan
    as_given = score if chunks is None else lazy(score, chunks)
    for method in ("exact", "histogram"):
        with pytest.raises(DataError, match="score is NaN in 2 rows, first in row 7654"):
            ss.roc_auc(Y, as_given, method=method)


@pytest.mark.parametrize("odd", [-0.1, np.nan, np.inf])
def test_odd_weights_are_named(odd):
    weight = np.ones(N)
    weight[[4_321, 5_000]] = odd
    with pytest.raises(
        DataError, match="sample_weight is negative or not finite in 2 rows, first in row 4321"
    ):
        ss.roc_auc(Y, lazy(SCORE, 1_000), weight)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(y=[0, 1], score=[1.0]), r"rows differ in number \(y 2, score 1\)"),
        (dict(y=[0, 1], score=[1.0, 2.0], sample_weight=[1.0]), "sample_weight 1"),
        (dict(y=[0, 1], score=[[0.1, 0.9], [0.2, 0.8]]), r"shape \(2, 2\).*score\[:, 1\]"),
        (dict(y=[[0], [1]], score=[1.0, 2.0]), "y has 2 dimensions"),
        (dict(y=[0, 1], score=["a", "b"]), "score has dtype"),
        (dict(y=[0, 1], score=np.ma.array([1.0, 2.0], mask=[0, 1])), "masked"),
        (dict(y=[0, "a"], score=[1.0, 2.0]), "labels mix"),
        (dict(y=[None, None], score=[1.0, 2.0]), "0 class"),
        (dict(y=[], score=[]), "0 class"),
        (
            dict(y=[0, 1], score=[1.0, 2.0], method="fast"),
            "method='fast': expected one of exact, histogram",
        ),
        (dict(y=[0, 1], score=[1.0, 2.0], max_fpr=0), "max_fpr=0"),
        (dict(y=[0, 1], score=[1.0, 2.0], max_fpr=1.1), "max_fpr=1.1"),
        (dict(y=[0, 1], score=[1.0, 2.0], max_fpr="all"), "max_fpr='all'"),
        (dict(y=[0, 1], score=[1.0, 2.0], n_bins=0), "n_bins=0"),
        (
            dict(y=pd.Series([0, 1]), score=pd.Series([1.0, 2.0], index=[1, 0])),
            "other|different names or order",
        ),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(DataError, match=words):
        ss.roc_auc(**arguments)


# The result ---------------------------------------------------------------------------------------------


def test_the_result_describes_itself(tmp_path):
    found = ss.auc.roc_auc(Y, SCORE, max_fpr=0.2, method="histogram")
    assert all({"long_name", "units", "description"} <= set(variable.attrs) for variable in found.values())
    assert found.attrs["method"] == "histogram"
    assert found.attrs["parameters"] == '{"max_fpr": 0.2, "n_bins": 4096}'
    assert found.attrs["scaleshift_version"] == ss.__version__
    found.to_zarr(tmp_path / "auc.zarr", consolidated=False)
    assert "McClish" in xr.open_zarr(tmp_path / "auc.zarr", consolidated=False).attrs["citation"]
