"""Expected errors as a table, as text and as a picture: one target and many, doubts, harmful names."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

from scaleshift import report
from scaleshift.cli import zarr_groups
from scaleshift.errors import DataError
from scaleshift.report import error_words as words

FORMULA, MARKUP, CONTROL = "=cmd|' /C calc'!A0", "[red]$site$[/red]", "\x1b[31msite"
METHODS = ["direct", "decomposed"]


def made(error, targets=None, methods=METHODS, **changed):
    """A result as `predict` gives it; errors (n_targets, n_methods), intervals of the first two methods."""
    error = np.asarray(error, float)
    targets = [f"site {i}" for i in range(len(error))] if targets is None else targets
    n = len(targets)
    has_interval = np.arange(len(methods)) < 2
    values = {
        "error": (("target", "method"), error),
        "error_drawn": (("target", "method"), error),
        "error_low": (("target", "method"), np.where(has_interval, error - 0.02, np.nan)),
        "error_high": (("target", "method"), np.where(has_interval, error + 0.03, np.nan)),
        "mc_error": (("target", "method"), np.zeros_like(error)),
        "n_rows": ("target", np.full(n, 900)),
        "n_invalid": ("target", np.zeros(n, int)),
        "effective_sample_size": ("target", np.full(n, 120.0)),
        "far": ("target", np.full(n, 0.02)),
        "unreliable": ("target", np.zeros(n, bool)),
        "flag": ("target", np.array([""] * n, dtype=object)),
        "error_in_sample": ("method", np.where(has_interval, 0.07, np.nan)),
    }
    values |= {name: (("target",), np.asarray(v)) for name, v in changed.items()}
    attributes = {"loss": "counting", "parameters": '{"level": 0.9}', "seed": 0, "method": "PredictionError"}
    return xr.Dataset(values, {"target": targets, "method": methods}, attributes)


@pytest.fixture
def one():
    return made([[0.12, 0.13]], ["site B"])


@pytest.fixture
def three():
    """The second is not known, the third has doubts."""
    flags = np.array(
        ["", "no rows", "few effective rows: 12; far from the source: 40 % of rows"], dtype=object
    )
    return made(
        [[0.12, 0.13], [np.nan, np.nan], [0.4, 0.5]],
        unreliable=[False, False, True],
        flag=flags,
        far=[0.01, np.nan, 0.4],
    )


def shown(result, width=100):
    return str(report.error_text(result, width=width))


# In rows -----------------------------------------------------------------------------------------------


def test_rows_are_of_targets_and_methods_in_their_order(three):
    table = report.error_table(three)
    assert table["target"].tolist() == [name for name in ("site 0", "site 1", "site 2") for _ in METHODS]
    assert table["method"].tolist() == 3 * METHODS
    assert table["error"].tolist()[4:] == [0.4, 0.5]
    assert table["error_in_sample"].tolist() == 6 * [0.07]
    assert table["flag"][4] == three["flag"].values[2]
    assert table["unreliable"].tolist() == [False] * 4 + [True] * 2


def test_the_order_of_dimensions_does_not_matter(three):
    turned = three.transpose("method", "target")
    pd.testing.assert_frame_equal(report.error_table(turned), report.error_table(three))
    assert shown(turned) == shown(three)


def test_a_csv_runs_nothing_in_a_spreadsheet(tmp_path):
    result = made([[0.1, 0.2], [0.2, 0.3]], [FORMULA, "B"], flag=["@sum: 1", ""])
    report.error_table(result, tmp_path / "error.csv")
    read = pd.read_csv(tmp_path / "error.csv")
    assert read["target"].tolist() == [f"'{FORMULA}"] * 2 + ["B"] * 2
    assert read["flag"].tolist()[:2] == ["'@sum: 1"] * 2
    assert read["error"].tolist() == [0.1, 0.2, 0.2, 0.3]
    with pytest.raises(DataError, match=r"only \.csv or \.xlsx is written"):
        report.error_table(result, tmp_path / "error.parquet")


def test_a_workbook_holds_text_and_no_formula(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    result = made([[0.1, np.nan]], [FORMULA])
    report.error_table(result, tmp_path / "error.xlsx")
    book = openpyxl.load_workbook(tmp_path / "error.xlsx")
    assert book.sheetnames == ["error", "about"]
    rows = list(book["error"].values)
    assert rows[0][:3] == ("target", "method", "error")
    assert rows[1][:3] == (FORMULA, "direct", 0.1)
    assert rows[2][2] is None
    assert book["error"]["A2"].data_type == "s"
    assert ("loss", "counting") in list(book["about"].values)


def test_another_dataset_is_refused_with_what_it_lacks(one, tmp_path):
    for told in (report.error_table, report.error_text, report.error_plot):
        with pytest.raises(DataError, match="lacks mc_error; pass what predict or update"):
            told(one.drop_vars("mc_error"))
    with pytest.raises(DataError, match="nothing to draw"):
        report.error_plot(one.isel(target=slice(0)))


# For the terminal --------------------------------------------------------------------------------------


def test_a_sentence_says_what_to_expect_of_a_single_target(one):
    first = shown(one).splitlines()[0]
    assert first == "expected error on 'site B': 0.120 (0.100 to 0.150), source 0.0700"
    without = one.assign(error_low=np.nan * one["error"], error_high=np.nan * one["error"])
    assert shown(without).splitlines()[0] == "expected error on 'site B': 0.120, source 0.0700"
    assert shown(made([[np.nan, 0.1]], ["A"])).splitlines()[0] == "expected error on 'A': not known"


def test_targets_have_a_row_each_with_interval_and_other_methods(three):
    text = shown(three)
    lines = text.splitlines()
    assert lines[0] == "expected error on 3 targets"
    assert "90 % interval" in text
    (row,) = [line for line in lines if line.startswith(" site 2")]
    assert " ".join(row.split()) == "site 2 0.400 0.380 to 0.430 0.500 900 40 % ! b c"
    (missing,) = [line for line in lines if line.startswith(" site 1")]
    assert missing.split()[:5] == ["site", "1", "-", "-", "-"]
    assert "- : not computed" in text


def test_letters_stand_for_reasons_and_name_the_targets(three):
    known = words.phrases(three)
    assert known == {"no rows": "a", "few effective rows": "b", "far from the source": "c"}
    text = " ".join(shown(three).split())
    assert "! do not rely on the estimate" in text
    assert "a no rows: site 1" in text
    assert "b few effective rows: 12: site 2" in text
    everywhere = three.assign(flag=("target", ["few rows: 3", "few rows: 4", "few rows: 5"]))
    assert "few rows: site 0 (3), site 1 (4), site 2 (5)" in shown(everywhere)
    same = three.assign(flag=("target", ["clipped", "clipped", "clipped"]))
    assert "clipped: site 0, site 1, site 2" in shown(same)


def test_reasons_name_all_their_targets_up_to_four_and_count_more():
    flags = ["few rows: 3", "few rows: 4", "few rows: 5", "few rows: 6", "", ""]
    few = made(np.full((6, 2), 0.1), flag=np.array(flags, dtype=object))
    assert "few rows: site 0 (3), site 1 (4), site 2 (5), site 3 (6)" in shown(few)
    flags[4] = "few rows: 7"
    more = made(np.full((6, 2), 0.1), flag=np.array(flags, dtype=object))
    assert "few rows: 5 of 6 targets" in shown(more)


def test_a_result_without_doubts_has_no_legend(one):
    assert shown(one).splitlines()[-1].startswith("far: share of rows")


def test_cross_validation_is_told_of_the_source_and_as_a_method_where_it_was_asked_for():
    result = made([[0.12, 0.13, 0.08], [0.2, 0.21, 0.08]], methods=[*METHODS, "cv"])
    text = shown(result)
    assert "source: in sample 0.0700, cross-validated 0.0800" in text
    assert " cv " in text
    assert "cv: cross-validated on the source; it does not see the target" in text
    assert "source, cross-validated (cv): 0.0800" in labels_of(report.error_plot(result))
    as_variable = made([[0.12, 0.13]]).assign(error_cv=0.09)
    assert "cross-validated 0.0900" in shown(as_variable)
    assert "cv" not in shown(as_variable)
    first = made([[0.08, 0.13], [0.08, 0.21]], methods=["cv", "direct"])
    assert "source: in sample 0.0700\n" in shown(first)
    assert " cv" in shown(first)


def test_a_narrow_terminal_gets_a_row_a_method_and_loses_no_number():
    names = [*METHODS, "importance_weighted", "average_confidence", "difference_of_confidence"]
    result = made([[0.12, 0.13, 0.14, 0.15, 0.16], [0.22, 0.23, 0.24, 0.25, 0.26]], methods=names)
    narrow, wide = shown(result, 70), shown(result, 140)
    assert len(narrow.splitlines()) > len(wide.splitlines())
    for text in (narrow, wide):
        for value in result["error"].values.ravel():
            assert f"{value:.3f}" in text
    assert max(map(len, narrow.splitlines())) <= 70


@pytest.mark.parametrize("width", [80, 120])
def test_methods_have_the_names_of_the_library_everywhere(width, tmp_path):
    names = [*METHODS, "importance_weighted_cv", "average_thresholded_confidence", "difference_of_confidence"]
    result = made(np.full((2, 5), 0.1), methods=names)
    text = shown(result, width)
    drawn_names = " ".join(labels_of(report.error_plot(result)))
    for name in names:
        assert name in text
        assert name in drawn_names
        assert (report.error_table(result)["method"] == name).sum() == 2


def with_observed(result, error, se=0.01, n=500):
    values = {"observed": np.asarray(error, float), "observed_se": np.full(len(error), se)}
    values["n_observed"] = np.where(np.isnan(error), 0, n)
    return result.assign({name: ("target", v) for name, v in values.items()})


def test_an_observed_error_stands_beside_the_expected_one(one, three, tmp_path):
    assert shown(with_observed(one, [0.1])).splitlines()[0].endswith("; observed 0.100 ± 0.01")
    some = with_observed(three, [0.2, np.nan, np.nan])
    (row,) = [line for line in shown(some).splitlines() if line.startswith(" site 0")]
    assert "0.200 ± 0.01 500" in " ".join(row.split())
    assert "observed: on rows whose outcome is known" in shown(some)
    narrow = [" ".join(line.split()) for line in shown(some, 60).splitlines()]
    assert narrow.count("observed 0.200 ± 0.01 500") == 1
    table = report.error_table(some, tmp_path / "error.csv")
    assert table["observed"].tolist()[:2] == [0.2, 0.2]
    assert table["n_observed"].tolist() == [500, 500, 0, 0, 0, 0]
    assert pd.read_csv(tmp_path / "error.csv")["observed_se"].tolist()[0] == 0.01
    assert drawn(report.error_plot(some).axes[0], "observed")[0] == 0.2
    for without in (three, with_observed(three, [np.nan] * 3)):
        assert "observed" not in shown(without)
        assert "observed" not in labels_of(report.error_plot(without))
    assert "observed" not in report.error_table(three)


def test_methods_that_a_model_does_not_have_are_named_once():
    error = [[0.12, np.nan, 0.13], [0.22, np.nan, np.nan]]
    result = made(error, methods=["direct", "closed_form", "average_confidence"])
    text = shown(result)
    assert "without an answer: closed_form" in text
    assert text.count("closed_form") == 1
    assert "0.130" in text
    assert "closed_form" not in labels_of(report.error_plot(result))
    assert len(report.error_table(result)) == 6
    assert "without an answer" not in shown(result.assign(error=result["error"].fillna(0.1)))


def test_names_are_shown_as_they_are():
    text = shown(made([[0.1, 0.2], [0.1, 0.2]], [MARKUP, CONTROL], flag=[MARKUP, CONTROL]))
    assert MARKUP in text
    assert "\x1b" not in text
    console = Console(width=100, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.error_text(made([[0.1, 0.2]], [MARKUP]), width=100))
    console.file.close()
    assert MARKUP in console.export_text()


def test_features_that_add_most_are_named_in_their_order(one):
    shares = np.array([[0.001, 0.03, -0.02, 0.01, 0.0]])
    result = one.assign(by_feature=(("target", "feature"), shares)).assign_coords(feature=list("ABCDE"))
    assert "adds most to the error: B (0.0300), D (0.0100), A (0.00100)" in " ".join(shown(result).split())
    none = result.assign(by_feature=result["by_feature"] * 0)
    assert "adds most" not in shown(none)


def test_what_is_inexact_or_left_out_is_said(one):
    inexact = one.assign(mc_error=one["mc_error"] + 0.004, n_invalid=("target", [7]))
    text = shown(inexact)
    assert "Monte-Carlo standard error of an estimate: up to 0.00400" in text
    assert "rows left out, with NaN or infinite values: 7" in text
    assert "Monte-Carlo" not in shown(one)


def test_of_many_targets_the_first_are_listed_and_all_are_in_the_table():
    many = made(np.full((200, 2), 0.1))
    assert "and 140 more" in shown(many)
    assert len(report.error_table(many)) == 400


def test_a_result_opened_from_a_store_is_shown_too(three, tmp_path):
    zarr_groups.write(three.assign_attrs(scaleshift_version="0"), tmp_path / "r.zarr")
    with xr.open_zarr(tmp_path / "r.zarr", consolidated=False) as opened:
        assert shown(opened) == shown(three)
        assert report.error_table(opened)["error"].equals(report.error_table(three)["error"])


# The picture -------------------------------------------------------------------------------------------


def labels_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def drawn(axes, label):
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    return np.asarray(line.get_xdata()).tolist()


def test_the_picture_has_an_interval_a_target_and_lines_of_the_source(three, tmp_path):
    figure = report.error_plot(three.assign(error_cv=0.08), tmp_path / "e.png", above=0.3)
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["site 0", "site 1", "site 2"]
    assert drawn(axes, "direct, with interval")[::2] == [0.12, 0.4]
    assert drawn(axes, "decomposed")[::2] == [0.13, 0.5]
    assert drawn(axes, "not to be relied on") == [0.4]
    spans = [np.array(segment)[:, 0].round(9).tolist() for segment in axes.collections[0].get_segments()]
    assert spans == [[0.1, 0.15], [0.38, 0.43]]
    told = labels_of(figure)
    assert {"source, in sample: 0.0700", "source, cross-validated: 0.0800", "alarm above: 0.300"} <= set(told)
    assert [text.get_text() for text in axes.texts] == ["not known"]
    assert axes.get_xlabel() == "expected error (share of wrong labels)"
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match=r"only \.png"):
        report.error_plot(three, tmp_path / "e.pdf")


def test_an_absurd_comparator_does_not_ruin_the_axis():
    names = [*METHODS, "importance_weighted", "average_confidence"]
    result = made([[0.1, 0.11, 1e12, 0.3], [0.2, 0.21, 0.15, -5.0]], methods=names)
    figure = report.error_plot(result, above=4.0)
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    assert -0.1 < low <= 0
    assert 0.3 < high < 0.4
    assert drawn(axes, "importance_weighted")[1] == 0.15
    assert drawn(axes, "importance_weighted, beyond the axis") == [high]
    assert drawn(axes, "average_confidence, beyond the axis") == [low]
    assert "alarm above: 4.00, beyond the axis" in labels_of(figure)
    observed = report.error_plot(with_observed(result, [3.0, 0.2])).axes[0]
    assert observed.get_xlim()[1] > 3
    near = report.error_plot(result.isel(method=slice(2)))
    assert "beyond" not in " ".join(labels_of(near))


def test_a_comparator_that_is_told_first_does_not_ruin_it_either():
    result = made([[1e12, 0.1], [0.2, 0.21]], methods=["importance_weighted", "direct"])
    axes = report.error_plot(result).axes[0]
    assert axes.get_xlim()[1] < 1
    assert drawn(axes, "importance_weighted, beyond the axis") == [axes.get_xlim()[1]]


def test_the_legend_has_no_doubts_where_no_point_has_any(three):
    doubtful = three.assign(unreliable=("target", [False, True, False]))  # of which nothing is known
    assert "not to be relied on" not in labels_of(report.error_plot(doubtful))


def test_of_many_targets_the_largest_errors_are_drawn(tmp_path):
    error = np.repeat(np.arange(100)[:, None] / 100.0, 2, axis=1)
    error[99] = np.nan
    figure = report.error_plot(made(error), tmp_path / "e.png")
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names == [f"site {i}" for i in range(59, 99)]
    assert figure.axes[0].get_title(loc="left") == "expected error by target: the 40 largest of 100"
    assert figure.get_size_inches()[1] < 14


def test_an_error_below_zero_is_drawn_where_it_is():
    axes = report.error_plot(made([[-0.05, 0.1]])).axes[0]
    assert axes.get_xlim()[0] < -0.05
    assert report.error_plot(made([[0.05, 0.1]])).axes[0].get_xlim()[0] == 0


def test_markup_and_long_names_are_drawn_as_they_are(tmp_path):
    figure = report.error_plot(made([[0.1, 0.2], [0.2, 0.3]], [MARKUP, "$x" * 40]), tmp_path / "e.png")
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert names[0] == MARKUP
    assert len(names[1]) <= 32


def test_nothing_known_is_a_picture_too(tmp_path):
    nothing = made([[np.nan, np.nan]])
    report.error_plot(nothing.assign(error_in_sample=nothing["error_in_sample"] * np.nan), tmp_path / "e.png")
    assert (tmp_path / "e.png").exists()
