"""Slices as a table, as text and as a picture: with and without errors, few and many, names of any kind."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import scaleshift as ss
from scaleshift import report
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1_500, 3))
CORNER = X[:, 2] > 1
LOSS = RNG.exponential(1, 1_500) + 3 * CORNER


def shown(result, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.slice_text(result, width=width))
    console.file.close()
    return console.export_text()


@pytest.fixture(scope="module")
def wrong():
    y = RNG.integers(0, 2, 1_500)
    flipped = RNG.random(1_500) < np.where(CORNER, 0.7, 0.05)
    table = pd.DataFrame(X, columns=["CD3", "=cmd|' /C calc'!A0", "$CD45$"])
    slicer = ss.DominoSlicer(n_slices=2, n_mixture_components=6, random_state=0)
    return slicer.fit(None, table, y, np.where(flipped, 1 - y, y).astype(float)).describe()


@pytest.fixture(scope="module")
def lossy():
    slicer = ss.DominoSlicer(n_slices=2, n_mixture_components=6, random_state=0)
    return slicer.fit(None, X, losses=LOSS).describe()


def test_rows_have_every_number_of_the_result(wrong):
    table = report.slice_table(wrong)
    for name in ("size", "share", "error_rate", "error_low", "p_value", "q_value", "flag", "words"):
        assert table[name].tolist() == wrong[name].values.tolist()
    differences = table[[f"difference: {name}" for name in wrong["feature"].values]]
    assert np.array_equal(differences.to_numpy(), wrong["difference"].values)


def test_a_csv_runs_nothing_in_a_spreadsheet(wrong, tmp_path):
    flagged = wrong.assign(flag=("slice", ["=1+1", ""]))
    report.slice_table(flagged, tmp_path / "slices.csv")
    lines = (tmp_path / "slices.csv").read_text().splitlines()
    assert "'=1+1" in lines[1]
    assert not any(cell.startswith("=") for line in lines for cell in line.split(","))
    with pytest.raises(DataError, match=r"only \.csv is written"):
        report.slice_table(wrong, tmp_path / "slices.parquet")


@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_number_is_cut_whatever_the_width(wrong, width):
    text = shown(wrong, width)
    for value in wrong["error_rate"].values:
        assert f" {100 * value:.0f} " in text
    assert "errors overall" in text.replace("\n", " ")


def test_what_is_printed_is_the_table_and_the_sentences(wrong):
    text = str(report.slice_text(wrong, width=90))
    assert text.splitlines() == [line.rstrip() for line in shown(wrong, 90).splitlines()]
    assert wrong["words"].values[0][:60] in text
    assert repr(report.slice_text(wrong, width=90)) == text
    assert "\x1b" not in str(report.slice_text(wrong.assign(words=("slice", ["\x1b[31m", "[bold]"]))))


def test_a_result_opened_from_a_store_is_shown_too(wrong):
    lazy = wrong.chunk()
    assert str(report.slice_text(lazy, width=90)) == str(report.slice_text(wrong, width=90))
    assert report.slice_table(lazy).equals(report.slice_table(wrong))
    assert len(report.slice_plot(lazy).axes) == len(report.slice_plot(wrong).axes)


def test_the_doubt_and_the_table_go_by_the_same_number(wrong):
    doubted = wrong.assign(p_value=("slice", [0.031, 0.9]), q_value=("slice", [0.062, 0.7]))
    text = shown(doubted)
    assert "0.06" in text
    assert "0.03" not in text
    assert "q: share of false discoveries to expect" in text


def test_where_there_are_no_errors_losses_are_shown(lossy):
    text = shown(lossy)
    assert "mean loss" in text
    assert "errors" not in text.split("q: ")[0]
    first, *panels = report.plot(lossy).axes
    assert first.get_title(loc="left") == "losses by slice (dashed: all rows)"
    assert "mean loss" in panels[0].get_title(loc="left")


def test_a_flag_is_said_in_all_of_them(wrong):
    doubtful = wrong.assign(flag=("slice", ["few rows", ""]), words=("slice", ["2 % of rows", "3 % of rows"]))
    assert "!  few rows" in shown(doubtful)
    said = doubtful.assign(words=("slice", ["2 % of rows [few rows]", "3 % of rows"]))
    assert shown(said).count("few rows") == 1
    assert report.plot(doubtful).axes[1].get_title(loc="left").endswith("(few rows)")


def test_a_picture_has_the_rates_their_intervals_and_a_panel_a_slice(wrong, tmp_path):
    figure = report.plot(wrong, tmp_path / "slices.png")
    errors, *panels = figure.axes
    assert [bar.get_width() for bar in errors.patches] == pytest.approx(wrong["error_rate"].values)
    assert len(errors.collections[0].get_segments()) == 2
    assert len(panels) == 2
    names = [label.get_text() for label in panels[0].get_yticklabels()]
    assert names[0] == "$CD45$"  # as it is: no formula
    assert panels[0].patches[0].get_width() == pytest.approx(wrong["difference"].values[0].max())
    assert (tmp_path / "slices.png").read_bytes().startswith(b"\x89PNG")


def test_many_slices_and_features_still_make_a_picture(wrong, tmp_path):
    many = xr.concat([wrong.isel(slice=[0])] * 60, "slice", data_vars="minimal").assign_coords(
        slice=np.arange(60)
    )
    wide = np.tile(many["difference"].values, (1, 200))
    many = many.drop_vars("difference").drop_vars("feature")
    many["difference"] = (("slice", "feature"), wide)
    many = many.assign_coords(feature=[f"f{i}" for i in range(600)])
    figure = report.plot(many, tmp_path / "many.png")
    assert len(figure.axes) == 1 + 24
    assert (np.array(figure.get_size_inches()) < 40).all()


def test_numbers_that_are_not_known_are_no_fault(wrong):
    unknown = wrong.copy(deep=True)
    for name in ("error_rate", "error_low", "error_high", "p_value", "q_value", "loss"):
        unknown[name][1] = np.nan
    unknown["difference"][1] = np.nan
    assert " - " in shown(unknown)
    report.plot(unknown)
    nothing = unknown.assign({name: unknown[name] * np.nan for name in ("error_rate", "loss", "difference")})
    report.plot(nothing)
    shown(nothing)


@pytest.mark.parametrize("function", [report.slice_table, report.slice_text, report.slice_plot])
def test_another_result_is_refused(function):
    with pytest.raises(DataError, match="this describes no slices"):
        function(xr.Dataset({"proportion": ("sample", [1.0])}))
