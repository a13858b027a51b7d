"""The league table as people and spreadsheets read it: best first, reasons for gaps, nothing that runs."""

import io

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import scaleshift as ss


@pytest.fixture
def table():
    """Three methods, one of which failed in one setting and has no score."""
    error = xr.DataArray(
        [[0.3, 0.2], [np.nan, 0.01], [0.1, 0.05]],
        coords={"method": ["=cmd", "fails", "good"], "setting": ["label shift", "sample left out"]},
    )
    names = ("error", "error_se", "unknown_error", "coverage", "seconds")
    result = xr.Dataset({name: error.copy() for name in names})
    result["error_se"][:] = 0.012
    result["seconds"][:] = 1.5
    result["flag"] = error.astype(object)
    result["flag"][:] = ""
    result["flag"][1, 0] = "ValueError: no\x1b[31m luck"
    result["score"] = "method", [0.25, np.nan, 0.075]
    return result.assign_attrs(recommendation="good", reason="the least error where it counts")


def printed(table, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(ss.report.league_text(table, width=width))
    return console.export_text()


def test_the_best_stands_first_and_what_has_no_score_last(table):
    rows = ss.report.league(table)
    assert rows["method"].tolist() == ["good", "good", "=cmd", "=cmd", "fails", "fails"]
    assert rows["recommended"].tolist() == [True, True, False, False, False, False]
    assert rows["error"].tolist()[:4] == [0.1, 0.05, 0.3, 0.2]
    assert rows["score"].tolist()[:4] == [0.075, 0.075, 0.25, 0.25]


def test_the_csv_runs_nothing_and_says_why_a_number_is_missing(table, tmp_path):
    ss.report.league(table, tmp_path / "league.csv")
    found = pd.read_csv(tmp_path / "league.csv")
    assert "'=cmd" in found["method"].tolist()
    failed = found[(found["method"] == "fails") & (found["setting"] == "label shift")].iloc[0]
    assert np.isnan(failed["error"])
    assert failed["flag"].startswith("ValueError: no")


def test_the_text_ends_with_the_recommendation_and_names_what_failed(table):
    lines = printed(table, 120).rstrip().splitlines()
    assert lines[-1] == "recommended: good, the least error where it counts"
    assert any(line.startswith("fails (label shift): ValueError: no") for line in lines)
    assert "\x1b" not in printed(table, 120)
    assert "10.0 ±1.2" in printed(table, 120)
    (row,) = [line for line in lines if line.strip().startswith("good")]
    assert row.split()[-1] == "3.0"  # seconds of both settings


def test_print_shows_the_same_as_the_terminal(table):
    text = str(ss.report.league_text(table, width=120))
    assert text.splitlines() == [line.rstrip() for line in printed(table, 120).splitlines()]


def test_on_a_narrow_terminal_no_number_is_cut(table):
    five = xr.concat([table.isel(setting=[0])] * 5, "setting", data_vars="minimal")
    names = ["label shift", "class left out", "sample left out", "sample left out + label shift"]
    five = five.assign_coords(setting=[*names, "sample left out + ungated"])
    five = five.assign_coords(method=["soft-landmarks", "hard-landmarks", "soft-fourier"])
    found = printed(five, 80)
    assert "±" not in found
    assert found.count("10.0") == 5
    assert "…" not in found
    assert "soft-landmarks" in found


def test_another_dataset_is_refused():
    with pytest.raises(ss.DataError, match="this is no league table: it lacks error"):
        ss.report.league(xr.Dataset())
