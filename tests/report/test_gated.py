"""Gated shares beside estimated ones."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import scaleshift as ss
from scaleshift.errors import DataError, SchemaError
from scaleshift.report import compare_gated, summarize_gated, table

COLUMNS = ["sample", "label", "gated", "estimated", "low", "high", "difference", "inside"]


@pytest.fixture
def cells():
    """S1: 2 B, 1 T, 1 without a label; S2: none gated; S3: 1 T, 1 NK."""
    sample = ["S1"] * 4 + ["S2"] * 2 + ["S3"] * 2
    return ss.as_cells(np.zeros((8, 1)), sample=sample, label=["B", "T", "B", None, None, None, "T", "NK"])


def by_name(frame, column):
    return {(s, k): v for s, k, v in zip(frame["sample"], frame["label"], frame[column], strict=True)}


def test_shares_are_of_all_cells_and_a_sample_without_gates_is_nan(result, cells):
    frame = compare_gated(result, cells)
    assert frame.columns.tolist() == COLUMNS
    gated = by_name(frame, "gated")
    assert gated["S1", "B"] == 0.5
    assert gated["S1", "T"] == 0.25
    assert np.isnan(gated["S2", "B"])
    assert gated["S3", "B"] == 0
    assert frame["sample"].tolist() == ["S1"] * 3 + ["S2"] * 3 + ["S3"] * 3


def test_estimates_their_difference_and_their_interval_stand_beside(result, cells):
    frame = compare_gated(result, cells).query("sample == 'S1'")
    assert frame["estimated"].tolist()[:2] == [0.25, 0.5]
    assert frame["difference"].tolist()[:2] == [-0.25, 0.25]
    assert frame["inside"].tolist()[:2] == [False, False]
    close = result.copy(deep=True)
    close["proportion_high"][0, 0] = 0.5
    assert compare_gated(close, cells)["inside"].tolist()[:2] == [True, False]


def test_what_has_no_gate_or_no_interval_is_neither_inside_nor_outside(result, cells):
    inside = by_name(compare_gated(result, cells), "inside")
    assert inside["S2", "B"] is pd.NA
    assert inside["S3", "NK"] is pd.NA


def test_a_label_that_only_the_gates_have_comes_last_without_an_estimate(result, cells):
    frame = compare_gated(result, cells)
    assert frame["label"].tolist()[:3] == ["B", "T", "NK"]
    assert by_name(frame, "gated")["S3", "NK"] == 0.5
    assert np.isnan(by_name(frame, "estimated")["S3", "NK"])
    s1 = ss.as_cells(np.zeros((1, 1)), sample=["S1"], label=pd.Categorical(["B"], categories=["B", "NK"]))
    assert compare_gated(result, s1)["label"].tolist() == ["B", "T"]  # no cell is NK


def test_samples_of_one_side_are_left_out_and_order_does_not_matter(result, cells):
    few = cells.isel(cell=[6, 7, 0])
    frame = compare_gated(result.isel(sample=[2, 0]).transpose("label", "sample"), few)
    assert frame["sample"].tolist() == ["S3"] * 3 + ["S1"] * 3
    assert frame["estimated"].tolist()[:2] == [0.1, 0.4]


@pytest.mark.parametrize(("labels", "kind"), [([2, 10], int), ([False, True], bool)])
def test_labels_of_any_type_are_matched_and_kept(make_result, labels, kind):
    result = make_result([[0.5, 0.5]], [7], labels)
    cells = ss.as_cells(np.zeros((4, 1)), sample=[7] * 4, label=[labels[0]] * 3 + [labels[1]])
    frame = compare_gated(result, cells)
    assert frame["gated"].tolist() == [0.75, 0.25]
    assert all(type(label) is kind for label in frame["label"].tolist())


def test_one_pass_over_the_codes_reads_no_intensity(result, cells):
    def unread(block):
        raise AssertionError("X was read")

    chunked = cells.chunk(cell=3)
    lazy = chunked.assign(
        X=chunked["X"].copy(data=chunked["X"].data.map_blocks(unread, meta=np.empty((0, 0))))
    )
    assert isinstance(lazy["label_code"].data, da.Array)
    pd.testing.assert_frame_equal(compare_gated(result, lazy), compare_gated(result, cells))


def test_a_store_gives_what_memory_gives(result, cells, tmp_path):
    ss.write_cells(cells, tmp_path / "s.zarr", chunk_cells=3)
    opened = ss.open_cells(tmp_path / "s.zarr", samples=["S1", "S3"])
    expected = compare_gated(result, cells).query("sample != 'S2'").reset_index(drop=True)
    pd.testing.assert_frame_equal(compare_gated(result, opened), expected)


def test_cells_without_any_labels_have_no_gated_share(result):
    frame = compare_gated(result, ss.as_cells(np.zeros((2, 1)), sample=["S1", "S3"]))
    assert frame["gated"].isna().all()
    summary = summarize_gated(frame)
    assert summary.n == 0
    assert str(summary) == "no sample has both, gated and estimated shares"


def test_the_summary_is_of_what_both_have(result, cells):
    summary = summarize_gated(compare_gated(result, cells))
    assert summary.n == 4
    assert summary.mean_difference == pytest.approx((0.25 + 0.25 + 0.1 + 0.1) / 4)
    assert summary.largest_difference == 0.25
    assert summary.inside == 0
    assert summary.ungated == (0, 0.25)
    assert str(summary).endswith("by 25.0 at most; 0 % of the intervals hold the gated share")


def test_without_intervals_the_summary_tells_none(result, cells):
    nothing = {name: result[name] * np.nan for name in ("proportion_low", "proportion_high")}
    assert str(summarize_gated(compare_gated(result.assign(nothing), cells))).endswith("by 25.0 at most")


def test_the_csv_holds_no_formulas(make_result, tmp_path):
    cells = ss.as_cells(np.zeros((1, 1)), sample=["=S"], label=["@B"])
    compare_gated(make_result([[0.5]], ["=S"], ["@B"]), cells, tmp_path / "gated.csv")
    back = pd.read_csv(tmp_path / "gated.csv")
    assert back.columns.tolist() == COLUMNS
    assert back.loc[0, ["sample", "label"]].tolist() == ["'=S", "'@B"]


def test_the_long_table_takes_the_gated_shares_along(result, cells):
    rows = table(result, gated=compare_gated(result, cells), parents={"B": "lymphocytes"})
    assert by_name(rows, "gated")["S1", "B"] == 0.5
    assert np.isnan(by_name(rows, "gated")["S1", "lymphocytes"])
    assert rows["sample"].tolist() == [name for name in ("S1", "S2", "S3") for _ in range(3)]


def test_what_cannot_be_compared_is_refused(result, cells):
    others = ss.as_cells(np.zeros((2, 1)), sample=["S8", "S9"])
    with pytest.raises(
        DataError, match=r"among the cells \(S1, S2, S3; in the cells: S8, S9\): pass those that were"
    ):
        compare_gated(result, others)
    with pytest.raises(SchemaError, match="cells is a ndarray"):
        compare_gated(result, np.zeros((2, 2)))
    with pytest.raises(DataError, match="no result of predict"):
        compare_gated(cells, cells)
