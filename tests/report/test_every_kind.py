"""One front door for every result: it is known by what it holds, and has a table, a text and a picture."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from every_kind import DATASETS, OTHERS, cells, every
from matplotlib.text import Text
from rich.console import Console

import scaleshift as ss
from scaleshift.cli import zarr_groups
from scaleshift.report.kinds import KINDS, kind_of

NO_REPLICATES = "replicates of a closed form"
EVERY = [*DATASETS, *OTHERS]


def result_of(name):
    return every()[name][1]


def test_the_list_names_every_result_and_every_kind():
    assert set(every()) == set(EVERY)
    assert {kind for kind, _ in every().values()} == set(KINDS)


@pytest.mark.parametrize("name", EVERY)
def test_a_result_is_known_as_what_it_is_and_as_nothing_else(name):
    kind, result = every()[name]
    assert kind_of(result).name == kind
    assert [one.name for one in KINDS.values() if one.recognises(result)] == [kind]


@pytest.mark.parametrize("name", EVERY)
def test_each_has_a_table_that_a_csv_holds(name, tmp_path):
    table = ss.report.table(result_of(name), tmp_path / "table.csv")
    assert isinstance(table, pd.DataFrame)
    read = pd.read_csv(tmp_path / "table.csv")
    assert read.shape == table.shape
    assert list(map(str, read)) == list(map(str, table))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", EVERY)
def test_each_has_a_text_which_rich_draws_as_print_does(name, width):
    text = ss.report.text(result_of(name), width=width)
    console = Console(width=max(width, text.width), file=io.StringIO())
    console.print(text)
    drawn = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert "\n".join(drawn).rstrip() == str(text).rstrip()
    assert len(str(text)) > 20
    assert "…" not in str(text)  # nothing is cut


@pytest.mark.parametrize("name", [name for name in EVERY if name != NO_REPLICATES])
def test_each_has_a_picture_inside_its_frame_with_names_as_they_are(name, tmp_path):
    figure = ss.report.plot(result_of(name), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < figure.get_figwidth() + 0.05
    assert box.y1 < figure.get_figheight() + 0.05
    ticks = [tick for axes in figure.axes for tick in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    named = [tick for tick in ticks if "$" in tick.get_text()]
    assert not any(tick.get_parse_math() for tick in named)


@pytest.mark.parametrize("name", DATASETS)
def test_a_result_that_was_opened_from_a_store_is_shown_as_when_it_was_made(name, tmp_path):
    result = result_of(name)
    zarr_groups.write(result, tmp_path / "result.zarr")
    opened = xr.open_zarr(tmp_path / "result.zarr", consolidated=False)
    opened = opened[sorted(opened)]  # a store knows of no order, and its text is of a type of its own
    assert kind_of(opened).name == kind_of(result).name
    assert str(ss.report.text(opened, width=90)) == str(ss.report.text(result, width=90))
    assert ss.report.page(opened) == ss.report.page(result)
    table = ss.report.table(result)
    known = table.assign(**{name: table[name].fillna("") for name in ("donor",) if name in table})
    pd.testing.assert_frame_equal(ss.report.table(opened), known)
    if name != NO_REPLICATES:
        assert drawn_words(ss.report.plot(opened)) == drawn_words(ss.report.plot(result))


def drawn_words(figure):
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification")
@pytest.mark.parametrize("name", DATASETS)
def test_a_result_that_xarray_has_written_is_shown_too(name, tmp_path):
    result = result_of(name)
    lost = [name for name in ("donor",) if name in result.coords]  # some are None, which Zarr has no word for
    result.drop_vars(lost).to_zarr(tmp_path / "result.zarr", zarr_format=3, consolidated=False)
    opened = xr.open_zarr(tmp_path / "result.zarr", consolidated=False)
    shown, expected = (ss.report.table(one) for one in (opened, result.drop_vars(lost)))
    if "quantity" in shown:  # a row a variable: their order is that of the store
        shown, expected = (one.sort_values("quantity", ignore_index=True) for one in (shown, expected))
    pd.testing.assert_frame_equal(shown[list(expected)], expected)
    assert len(str(ss.report.text(opened, width=90))) == len(str(ss.report.text(result, width=90)))
    assert "<h1>" in ss.report.page(opened)


def test_without_replicates_there_is_nothing_to_draw_and_that_is_said():
    with pytest.raises(ss.DataError, match="closed form; draw what predict returns"):
        ss.report.plot(result_of(NO_REPLICATES))
    assert "closed form" in str(ss.report.text(result_of(NO_REPLICATES), width=90))


def test_options_of_one_kind_reach_it(tmp_path):
    proportions = result_of("proportions")
    table = ss.report.table(proportions, parents={"B": "lymphocytes", "T": "lymphocytes"})
    assert "lymphocytes" in set(table["label"])
    with_gates = ss.report.table(proportions, gated=result_of("gates"))
    assert with_gates["gated"].notna().all()
    with pytest.raises(TypeError, match="parents"):
        ss.report.table(result_of("league"), parents={})


class Fitted:
    """Stands for a model of anybody."""

    def fit(self):
        """Do nothing."""


@pytest.mark.parametrize("show", [ss.report.table, ss.report.text, ss.report.plot])
@pytest.mark.parametrize(
    ("other", "told"),
    [
        (None, "but None"),
        (3, "the type int"),
        ("results/slices.zarr", "a path or name: open what is there first"),
        (Path("slices.zarr"), "a path or name: open what is there first"),
        (Fitted(), "a Fitted: pass what its methods return"),
        (pd.DataFrame({"a": [1]}), "columns a: pass the result that it was made of"),
        (xr.Dataset({"z": ("row", [1])}), r"the variables z over \(row\)"),
        (xr.DataArray([1.0]), "its own to_pandas"),
        ({"labels": []}, "the type dict"),
    ],
)
def test_anything_else_is_told_what_it_is_and_what_there_is(show, other, told):
    with pytest.raises(ss.DataError, match=told) as raised:
        show(other)
    assert all(f"  {kind.name}: {kind.made_by}" in str(raised.value) for kind in KINDS.values())


def test_cells_are_no_result_and_that_is_said():
    with pytest.raises(ss.DataError, match="a dataset of cells: pass what predict"):
        ss.report.plot(cells())


def test_every_place_that_a_kind_names_is_there():
    from importlib import import_module

    for kind in KINDS.values():
        assert set(kind.homes) == {"table", "text", "plot"}
        for home in kind.homes.values():
            module, name = home.split(":")
            assert callable(getattr(import_module(f"scaleshift.report.{module}"), name))


def test_a_notebook_shows_a_picture_without_pyplot():
    figure = ss.report.plot(result_of("roc"))
    assert figure._repr_png_().startswith(b"\x89PNG")


# What is drawn -----------------------------------------------------------------------------------------


def dots(axes):
    """Positions of all markers, (n, 2)."""
    return np.array(
        [point for line in axes.lines for point in line.get_xydata() if line.get_marker() != "None"]
    )


def test_intervals_have_a_panel_a_label_and_a_row_a_sample():
    result = result_of("proportions")
    figure = ss.report.interval_plot(result)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["B", "T", "unknown"]
    for i, axes in enumerate(figure.axes[:2]):
        np.testing.assert_allclose(np.sort(dots(axes)[:, 0]), np.sort(result["proportion"].values[:, i]))
        ends = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
        np.testing.assert_allclose(ends[:, 0], result["proportion_low"].values[:, i])
        np.testing.assert_allclose(ends[:, 1], result["proportion_high"].values[:, i])


def test_a_single_sample_has_its_labels_as_rows():
    (axes,) = ss.report.interval_plot(result_of("proportions").isel(sample=[0])).axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["B", "T", "unknown"]
    assert axes.get_title(loc="left") == "S1"


def test_flagged_samples_are_open_dots_and_missing_ones_say_so():
    result = result_of("proportions").copy(deep=True)
    result["flag"] = "sample", ["", "few cells: 12", ""]
    result["proportion"][2] = np.nan
    figure = ss.report.interval_plot(result)
    axes = figure.axes[0]
    filled, open_ = (line for line in axes.lines)
    assert (len(filled.get_xdata()), len(open_.get_xdata())) == (2, 1)
    assert open_.get_markerfacecolor() == "white"
    assert [text.get_text() for text in axes.texts] == ["no estimate"]
    assert figure.legends[0].get_texts()[0].get_text() == "has a flag: see the table"


def many(n_samples, n_labels):
    """A result of many samples and labels."""
    result = result_of("proportions")[["proportion", "proportion_low", "proportion_high", "unknown"]]
    result = result.assign(unknown_low=result["unknown"], unknown_high=result["unknown"])
    wide = result.isel(sample=np.zeros(n_samples, int), label=np.zeros(n_labels, int))
    shares = np.linspace(0, 1, n_samples * n_labels).reshape(n_samples, n_labels)
    wide = wide.assign(proportion=(("sample", "label"), shares), flag=("sample", [""] * n_samples))
    return wide.assign_coords(sample=[f"S{i}" for i in range(n_samples)], label=np.arange(n_labels))


@pytest.mark.parametrize(("n_samples", "n_labels"), [(0, 2), (60, 25), (300, 40)])
def test_pictures_of_intervals_stay_drawable(n_samples, n_labels):
    figure = ss.report.interval_plot(many(n_samples, n_labels))
    assert figure.get_figheight() * 150 <= 4_000
    assert figure.get_figwidth() * 150 <= 4_000
    assert len(figure.axes) == min(n_labels, 32) + (n_samples > 0)
    told = "" if figure._suptitle is None else figure._suptitle.get_text()
    assert told == (
        "the 32 most frequent of 40 labels, the first 200 of 300 samples" if n_samples > 200 else ""
    )


def test_the_recommended_method_stands_out_in_every_panel():
    league = result_of("league")
    figure = ss.report.plot(league)
    assert len(figure.axes) == 1 + league.sizes["setting"]
    order = np.argsort(league["score"].values)
    for axes, values in zip(figure.axes, [league["score"], *league["error"].T], strict=True):
        points = axes.collections[-1]
        np.testing.assert_allclose(points.get_offsets()[:, 0], values.values[order])
        orange = [tuple(colour) == tuple(points.get_facecolors()[0]) for colour in points.get_facecolors()]
        assert orange == [True, False]  # the best is the recommended one here
    assert "recommended: dfm" in figure._suptitle.get_text()


def test_a_diagnosis_is_a_cell_a_sample_and_marker_with_the_verdict_beside():
    diagnosis = result_of("diagnosis")
    axes = ss.report.plot(diagnosis).axes[0]
    (mesh,) = axes.collections
    np.testing.assert_allclose(mesh.get_array().reshape(3, 3), diagnosis["shift"].values)
    assert [text.get_text() for text in axes.texts][4] == f"{diagnosis['shift'].values[1, 1]:.1f}"
    (beside,) = axes.child_axes
    assert [tick.get_text() for tick in beside.get_yticklabels()] == diagnosis["verdict"].values.tolist()


def test_markers_of_samples_with_too_few_cells_are_left_open():
    diagnosis = result_of("diagnosis").copy(deep=True)
    diagnosis["shift"][0] = np.nan
    (mesh,) = ss.report.plot(diagnosis).axes[0].collections
    assert mesh.get_array().reshape(3, 3).mask.tolist() == [[True] * 3, [False] * 3, [False] * 3]
    assert " - " in str(ss.report.text(diagnosis, width=90))


def test_dots_of_gates_stand_where_both_shares_are():
    gates = result_of("gates").copy()
    gates.loc[0, ["gated", "difference"]] = np.nan
    figure = ss.report.plot(gates)
    drawn = np.concatenate(
        [line.get_xydata() for line in figure.axes[0].lines if line.get_marker() != "None"]
    )
    expected = gates.loc[1:, ["gated", "estimated"]].to_numpy()
    np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], expected[np.lexsort(expected.T)])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["B", "T"]
    with pytest.raises(ss.DataError, match="no sample has both"):
        ss.report.plot(gates.assign(difference=np.nan))


def test_grown_slices_go_from_the_share_of_the_source_to_that_of_the_target():
    grown = result_of("slice comparison")
    shares, errors, costs = ss.report.plot(grown).axes
    for axes, name in ((shares, "share"), (errors, "error")):
        before, now = (line.get_xdata() for line in axes.lines[:2])
        np.testing.assert_allclose(before, grown[f"{name}_source"])
        np.testing.assert_allclose(now, grown[f"{name}_target"])
    np.testing.assert_allclose(
        [bar.get_width() for bar in costs.patches], [*grown["cost_of_growth"], *grown["cost_of_change"]]
    )


def test_grown_slices_of_a_target_without_labels_say_what_is_not_known():
    grown = result_of("slice comparison").copy(deep=True)
    for name in ("error_source", "error_target", "cost_of_growth", "cost_of_change"):
        grown[name][1] = np.nan
    _, errors, costs = ss.report.plot(grown).axes
    assert [text.get_text() for axes in (errors, costs) for text in axes.texts] == ["not known"] * 2
    assert " - " in str(ss.report.text(grown, width=90))


def test_planted_slices_that_were_found_say_so():
    axes = ss.report.plot(result_of("slice scores")).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["found: 0", "not: 1"]
    (mesh,) = axes.collections
    precision = result_of("slice scores")["precision_at_k"].values
    np.testing.assert_allclose(mesh.get_array().reshape(precision.shape), precision)


def test_a_ranking_and_its_path_are_drawn_one_without_the_other():
    features, path = result_of("ranking of contrasts"), result_of("ranking path of contrasts")
    weights = [axes.patches[0].get_width() for axes in ss.report.plot(features).axes[:3]]
    largest = np.abs(features["coef_scaled"]).max("feature").values
    np.testing.assert_allclose(np.abs(weights), largest)
    titles = [axes.get_title(loc="left") for axes in ss.report.plot(path).axes]
    assert titles == [f"{name}: AUC by number of features" for name in "ABC"]
    assert "held-out AUC" in str(ss.report.text(path, width=90))


def test_an_auc_has_its_bound_and_an_error_its_interval():
    for name, leading in (("roc", "auc"), ("weighted", "error"), ("observed", "error")):
        result = result_of(name)
        axes = ss.report.plot(result).axes[0]
        (segment,) = axes.collections[0].get_segments()
        low, high = segment[:, 0]
        assert low < float(result[leading]) < high
        assert dots(axes)[0, 0] == pytest.approx(float(result[leading]))
    off = float(result_of("roc")["bound"])
    (segment,) = ss.report.plot(result_of("roc")).axes[0].collections[0].get_segments()
    assert np.ptp(segment[:, 0]) == pytest.approx(2 * off)


def test_histograms_hold_every_replicate():
    figure = ss.report.plot(result_of("replicates"))
    n = result_of("replicates").sizes["replicate"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["source, in sample", "site/B"]
    assert [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes] == [n, n]


def test_bars_of_a_plan_add_up_to_its_core_time():
    plan = result_of("plan")
    time, memory = ss.report.plot(plan).axes
    assert sum(bar.get_width() for bar in time.patches) == pytest.approx(plan.cpu_seconds)
    assert max(bar.get_width() for bar in memory.patches) == plan.thread_bytes
    of_passes = plan.cpu_seconds - plan.driver_seconds
    assert ss.report.table(plan)["cpu_seconds"].sum() == pytest.approx(of_passes)


def test_bars_of_a_study_are_its_cells_and_their_labels():
    for name in ("study check", "import"):
        bars = ss.report.plot(result_of(name)).axes[0].patches
        assert [bar.get_width() for bar in bars] == [3, 3]
    bars = ss.report.plot(result_of("labelling")).axes[0].patches
    assert [bar.get_width() for bar in bars] == [2, 1, 1, 2]  # with a label, then without


def test_samples_with_a_warning_stand_out_and_the_worst_is_told_first():
    from dataclasses import replace

    from scaleshift.cells.problem import Problem

    imported = result_of("import")
    path = imported.files[1]["path"]
    found = (Problem("note", path, "chosen"), Problem("warning", path, "4 values are NaN [red]", "drop them"))
    imported = replace(imported, problems=found)
    figure = ss.report.plot(imported)
    first, second = (bar.get_facecolor() for bar in figure.axes[0].patches)
    assert first != second
    assert figure.axes[0].get_title(loc="left").endswith("1 warnings")
    assert ss.report.table(imported)["level"].tolist() == ["warning", "note"]
    assert "4 values are NaN [red]; drop them" in str(ss.report.text(imported, width=200))
