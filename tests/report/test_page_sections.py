"""Pages of every kind of result: numbers are the result's, names from files are text and nothing else."""

import base64
import functools
import gzip
import html.parser

import numpy as np
import pytest
import xarray as xr
from every_kind import every

from scaleshift import report
from scaleshift.report.kinds import KINDS, kind_of
from scaleshift.report.names import printable
from scaleshift.report.pages.page import PAGES

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=1>',
    "' onmouseover='alert(1)",
    "</td></tr></table>",
    "{{ 7*7 }}{% for x in y %}",
    "\x1b[31m\x00\r\n\u202e",
    "</script><script>alert(2)</script>",
    "https://example.org/a?b=c&d=e",
    "very long " + "x" * 2_000,
    "",
]
VOID = {"meta", "br", "input", "img", "link"}
COUNTS = ("n_rows", "n_invalid", "weight_positive", "weight_negative")  # are always known
DATASETS = [
    "proportions",
    "league",
    "diagnosis",
    "slices",
    "slice comparison",
    "ranking",
    "ranking of contrasts",
    "ranking path",
    "ranking path of contrasts",
    "errors",
]


class Page(html.parser.HTMLParser):
    """What is on a page: tags with attributes, text, tables as (text, value) by row, files."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words, self.tables, self.files = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            value = attrs.get("data-v")
            self.tables[-1][-1].append(["", None if value is None else float(value), attrs])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            if self.tags[-1][1].get("type") == "text/plain":
                self.files.append(gzip.decompress(base64.b64decode(data)).decode())
        elif "style" not in self.open:
            self.words.append(data)
            if {"td", "th"} & set(self.open):
                self.tables[-1][-1][-1][0] += data

    def table(self, first, *headings):
        """The table whose columns begin with `first` and have the headings."""
        for rows in self.tables:
            names = [cell[0] for cell in rows[0]]
            if names[0] == first and set(headings) <= set(names):
                return names, rows[1:]
        raise AssertionError(f"no table of {first} with {headings}")

    def column(self, first, heading):
        """Values of a column, NaN where nothing is known."""
        names, rows = self.table(first, heading)
        values = [row[names.index(heading)][1] for row in rows]
        return np.array([np.nan if value is None else value for value in values])


@pytest.fixture(scope="module")
def results():
    return {name: result for name, (_, result) in every().items()}


@functools.cache
def with_names(result_id, names=tuple(HOSTILE)):
    """A result in which every text, and every name of a label, is a hostile one."""
    kind, result = every()[result_id]
    assert KINDS[kind].recognises(result)

    def hostile(values):
        flat = [f"{names[i % len(names)]}" for i in range(values.size)]
        return np.array(flat, object).reshape(values.shape)

    def named(values):  # of an index: each once
        found = hostile(values)
        return np.array([name + " " * (i // len(names)) for i, name in enumerate(found)], object)

    texts = {
        name: (variable.dims, hostile(variable.values), variable.attrs)
        for name, variable in result.data_vars.items()
        if variable.dtype.kind in "OUT"
    }
    labels = {
        name: (variable.dims, (named if name in result.dims else hostile)(variable.values), variable.attrs)
        for name, variable in result.coords.items()
        if name not in ("k", "slice", "rank") and variable.dims
    }
    kept = ("parameters", "features", "samples", "source_samples", "resampled", "measure")
    attrs = {
        name: names[i % len(names)] if isinstance(value, str) and name not in kept else value
        for i, (name, value) in enumerate(
            [*result.attrs.items(), ("study", ""), ("source", ""), ("model", "")]
        )
    }
    return result.assign(texts).assign_coords(labels).assign_attrs(attrs)


def check_harmless(page):
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert [attrs for attrs in scripts if not attrs] == [{}], "our script, and no other"
    assert all(attrs.keys() == {"type", "data-name"} for attrs in scripts if attrs)
    known = {"img", "iframe", "object", "embed", "link", "base", "form"} & {tag for tag, _ in page.tags}
    assert not known
    for _, attrs in page.tags:
        assert not any(name.startswith("on") or name in ("src", "action", "srcset") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
        assert "url(" not in attrs.get("style", "")


def test_every_kind_of_result_has_a_page(results):
    for name, result in results.items():
        text = report.page(result)
        page = Page(text)
        check_harmless(page)
        assert page.tables, name
        assert report.page(result) == text, name
    assert {kind_of(result).name for result in results.values()} == set(KINDS)
    assert set(PAGES) <= set(KINDS)


@pytest.mark.parametrize("name", DATASETS)
def test_names_from_files_are_text_and_nothing_else(name):
    result = with_names(name)
    page = Page(report.page(result))
    check_harmless(page)
    text = "".join(page.words)
    shown = [cell[0] for rows in page.tables for row in rows for cell in row]
    dimension = next(
        d for d in ("contrast", "feature", "sample", "target", "setting", "slice") if d in result
    )
    for label in result[dimension].values.tolist() if dimension != "slice" else ():
        assert printable(label) in ", ".join(shown), label
    assert "49{% for" not in text
    assert not {"\x1b", "\x00", "\u202e"} & set(text)


@pytest.mark.parametrize("name", DATASETS)
def test_a_result_without_any_number_has_a_page(results, name):
    result = results[name]
    nothing = {
        key: (variable.dims, np.full(variable.shape, np.nan), variable.attrs)
        for key, variable in result.data_vars.items()
        if variable.dtype.kind == "f" and key not in COUNTS
    }
    page = Page(report.page(result.assign(nothing)))
    check_harmless(page)
    assert "nan" not in "".join(page.words).lower().split()


@pytest.mark.parametrize("name", DATASETS)
def test_a_result_without_rows_has_a_page(results, name):
    result = results[name]
    dimension = next(d for d in ("slice", "target", "sample", "setting", "feature") if d in result.dims)
    check_harmless(Page(report.page(result.isel({dimension: slice(0)}))))


@pytest.mark.parametrize("name", DATASETS)
def test_many_features_and_many_rows_fit(results, name):
    result = results[name]
    for dimension in ("feature", "marker", "slice", "target", "sample", "label", "predicted", "setting"):
        if dimension in result.dims:
            places = np.arange(40) % result.sizes[dimension]
            result = result.isel({dimension: places}).assign_coords({dimension: np.arange(40).astype(str)})
    if "other_slice" in result.dims:
        result = result.drop_dims("other_slice")
    page = Page(report.page(result))
    check_harmless(page)
    widest = max(len(rows[0]) for rows in page.tables)
    assert widest <= 2 * 40 + 12


def test_the_file_of_a_page_is_the_table_of_its_kind(results, tmp_path):
    for name, result in results.items():
        path = tmp_path / "table.csv"
        kind_of(result).show("table", result, path)
        assert path.read_bytes().decode() in Page(report.page(result)).files, name


def close(shown, truth):
    assert np.allclose(shown, np.asarray(truth, float), rtol=1e-5, equal_nan=True)


def test_numbers_of_slices_are_those_of_the_result(results):
    result = results["slices"]
    page = Page(report.page(result))
    for heading, variable in {
        "rows": "size",
        "share %": "share",
        "errors %": "error_rate",
        "excess errors": "excess_errors",
        "judged on": "judging_rows",
        "q": "q_value",
    }.items():
        close(page.column("slice", heading), result[variable].values)
    for feature in result["feature"].values.tolist():
        close(page.column("slice", feature), result["difference"].sel(feature=feature).values)
    text = " ".join(page.words)
    assert all(words in text for words in result["words"].values)


def test_slices_of_losses_alone_have_their_mean_loss(results):
    result = results["slices"]
    nothing = [
        name for name in result.data_vars if str(name).startswith("error_") or name == "overall_error_rate"
    ]
    result = result.assign({name: xr.full_like(result[name], np.nan) for name in nothing}).drop_vars(
        "confusion"
    )
    page = Page(report.page(result))
    close(page.column("slice", "mean loss"), result["loss"].values)
    close(page.column("slice", "beyond the rest's"), result["loss_gap"].values)
    assert "mean loss of all rows" in " ".join(page.words)


def test_errors_of_a_slice_are_those_of_its_confusion_matrix(results):
    result = results["slices"]
    _, rows = Page(report.page(result)).table("slice", "label", "predicted")
    assert rows
    for row in rows:
        place, label, predicted, n, share = (cell[:2] for cell in row)
        of = result["confusion"].isel(slice=int(place[0].removeprefix("slice ")))
        labels = [str(value) for value in of["label"].values.tolist()]
        i, j = labels.index(label[0]), [str(v) for v in of["predicted"].values.tolist()].index(predicted[0])
        assert label != predicted
        assert n[1] == of.values[i, j]
        off = of.values.sum() - sum(of.values[i, i] for i in range(len(labels)))
        assert share[1] == pytest.approx(100 * n[1] / off, rel=1e-5)


def test_interval_of_a_slice_is_drawn_where_it_is_on_the_scale_of_all(results):
    result = results["slices"]
    names, rows = Page(report.page(result)).table("slice", "errors %")
    style = rows[0][names.index("errors %")][2]["style"]
    drawn = {key: float(value) for key, value in (part.strip("-").split(":") for part in style.split(";"))}
    top = float(result["error_high"].max())
    truth = {"v": "error_rate", "l": "error_low", "h": "error_high"}
    for key, variable in truth.items():
        assert drawn[key] == pytest.approx(100 * float(result[variable][0]) / top, abs=0.01)
    assert drawn["m"] == pytest.approx(100 * float(result["overall_error_rate"]) / top, abs=0.01)


def test_features_of_a_ranking_stand_by_weight_and_the_others_below(results):
    result = results["ranking of contrasts"].isel(contrast=0)
    page = Page(report.page(results["ranking of contrasts"]))
    names, rows = page.table("feature", "weight", "stability")
    chosen = result["selected"].values
    assert len(rows) == result.sizes["feature"]
    for row in rows:
        of = result.sel(feature=row[0][0])
        weight = row[names.index("weight")][1]
        assert weight == (pytest.approx(float(of["coef_scaled"]), rel=1e-5) if of["selected"] else None)
        alone = float(of["auc_alone"])
        assert row[names.index("AUC alone")][1] == pytest.approx(max(alone, 1 - alone), rel=1e-5)
    weights = [row[names.index("weight")][1] for row in rows[: int(chosen.sum())]]
    assert weights == sorted(weights, key=abs, reverse=True)
    close(page.column("contrast", "held-out AUC"), results["ranking of contrasts"]["auc"].values)


def test_a_path_is_drawn_and_written(results):
    result = results["ranking path"]
    text = report.page(result)
    page = Page(text)
    close(page.column("features", "held-out AUC"), result["auc"].values)
    close(page.column("features", "in training"), result["auc_binormal"].values)
    dots = [attrs for tag, attrs in page.tags if tag == "circle"]
    assert len(dots) == result.sizes["k"]
    assert [attrs["class"] == "chosen" for attrs in dots] == result["selected"].values.tolist()
    heights = [-float(attrs["cy"]) for attrs in dots]
    assert np.argsort(heights).tolist() == np.argsort(result["auc"].values).tolist()


def test_features_and_path_make_one_page_that_says_once_how_both_were_made(results):
    both = Page(report.page([results["ranking"], results["ranking path"]]))
    headings = [" ".join(both.words).count(heading) for heading in ("Method, parameters and seeds",)]
    assert headings == [2]  # in the list of sections, and above its own
    assert len(both.files) == 2
    text = report.page([results["slices"], results["slices"].assign_attrs(seed=1)])
    assert "Method, parameters and seeds – Where does the model fail? (2)" in text


def test_errors_are_those_of_the_result_and_share_a_scale(results):
    result = results["errors"].assign(
        observed=("target", [1.0, np.nan]),
        observed_se=("target", [0.1, np.nan]),
        n_observed=("target", [7, 0]),
    )
    page = Page(report.page(result))
    for method in result["method"].values.tolist():
        close(page.column("target", method), result["error"].sel({"method": method}).values)
    close(page.column("target", "observed"), result["observed"].values)
    close(page.column("target", "far %"), 100 * result["far"].values)
    for feature in result["feature"].values.tolist():
        close(page.column("target", feature), result["by_feature"].sel(feature=feature).values)
    names, rows = page.table("target", "observed")
    styles = [row[names.index(name)][2].get("style", "") for row in rows for name in ("direct", "observed")]
    marks = {style.split("--m:")[1] for style in styles if style}
    assert len(marks) == 1  # the source's error, at one place of one scale


def test_a_comparator_far_off_does_not_press_the_engines_errors_together(results):
    result = results["errors"]
    far = result.isel(method=[0]).assign_coords(method=["peer"])
    far["error"] = far["error"] * 1_000
    page = Page(report.page(xr.concat([result, far], "method", data_vars="minimal")))
    names, rows = page.table("target", "direct", "peer")
    drawn = {name: rows[0][names.index(name)][2]["style"] for name in ("direct", "peer")}
    assert float(drawn["direct"].split("--v:")[1].split(";")[0]) > 50
    assert float(drawn["peer"].split("--v:")[1].split(";")[0]) == 100
    assert "what lies beyond stands at its end" in " ".join(page.words)


def test_flags_of_targets_are_told_in_words(results):
    text = " ".join(Page(report.page(results["errors"])).words)
    for flag in filter(None, results["errors"]["flag"].values):
        for reason in flag.split("; "):
            assert reason.split(": ")[0] in text
    reasons = results["errors"].copy()
    reasons["reason"] = (("target", "method"), [["", "no such answer"], ["", ""]])
    assert "no such answer: site/B." in " ".join(Page(report.page(reasons)).words)


def test_a_standard_error_is_told_as_such_and_not_as_an_interval(results):
    for name, first, heading in (
        ("ranking path", "features", "held-out AUC"),
        ("ranking of contrasts", "contrast", "held-out AUC"),
        ("league", "method", "label shift"),
    ):
        names, rows = Page(report.page(results[name])).table(first, heading)
        told = [row[names.index(heading)][0] for row in rows]
        assert all("±" in text and " to " not in text for text in told), told


def test_what_a_column_is_stands_below_its_table_too(results):
    text = " ".join("".join(Page(report.page(results["slices"])).words).split())
    assert "excess errors: beyond those of as many rows of all." in text
    assert "typical rows: numbers of rows of the data, from 0." in text


def test_rare_populations_keep_the_digits_that_they_have(results):
    result = results["proportions"].copy(deep=True)
    result["proportion"][0] = [0.0004, 0.00003]
    names, rows = Page(report.page(result)).table("sample", "shares")
    assert rows[0][names.index("B")][0].startswith("0.04 ")
    assert rows[0][names.index("T")][0].startswith("0.003 ")
    assert "0.04" in str(report.text(result, width=100))


def test_a_reason_that_is_not_known_here_is_told_in_its_own_words(results):
    result = results["proportions"].copy()
    result["flag"] = "sample", ["few cells: 12; seen by a later version: much", "", "few cells: 30"]
    page = Page(report.page(result))
    text = " ".join(" ".join(page.words).split())
    assert (
        "F: few cells under 50 cells: the intervals say more than the shares. Samples: S1 (12), S3 (30)"
        in text
    )
    assert "seen by a later version: S1 (much)" in text


def test_a_league_stands_best_first_and_says_why(results):
    result = results["league"]
    page = Page(report.page(result))
    _, rows = page.table("method", "score %", "recommended")
    order = [row[0][0] for row in rows]
    assert order == result["method"].values[np.argsort(result["score"].values, kind="stable")].tolist()
    of = result.sel({"method": order})
    for setting in result["setting"].values.tolist():
        close(page.column("method", setting), 100 * of["error"].sel(setting=setting).values)
    for method in order:
        close(page.column("trial", method), 100 * result["trial_error"].sel({"method": method}).values)
    assert result.attrs["reason"] in " ".join(page.words)


def test_a_diagnosis_tells_every_verdict_and_how_far_markers_moved(results):
    result = results["diagnosis"]
    page = Page(report.page(result))
    names, rows = page.table("sample", "verdict")
    assert [row[names.index("verdict")][0] for row in rows] == result["verdict"].values.tolist()
    close(page.column("sample", "misfit %"), result["misfit"].values)
    close(page.column("sample", "unknown %, moved back"), result["unknown_recentred"].values)
    for marker in result["marker"].values.tolist():
        close(page.column("sample", marker), result["shift"].sel(marker=marker).values)


def test_growth_of_slices_is_that_of_the_result(results):
    result = results["slice comparison"]
    page = Page(report.page(result))
    close(page.column("slice", "growth, points"), 100 * result["growth"].values)
    close(page.column("slice", "before %"), result["share_source"].values)
    close(page.column("slice", "cost of growth, points"), result["cost_of_growth"].values)
    assert str(result["summary"].item())[1:] in " ".join(page.words)


def test_a_lazy_result_has_the_same_page(results):
    for name in DATASETS:
        assert report.page(results[name].chunk()) == report.page(results[name]), name


def test_another_result_has_its_table_and_says_what_its_numbers_are(results):
    for name, result in results.items():
        if kind_of(result).name in PAGES:
            continue
        page = Page(report.page(result))
        table = kind_of(result).show("table", result)
        assert [cell[0] for cell in page.tables[0][0]] == [str(column) for column in table]
        assert len(page.tables[0]) == len(table) + 1
        if isinstance(result, xr.Dataset):
            told = [v.attrs["description"] for v in result.data_vars.values() if v.attrs.get("description")]
            assert all(words in " ".join(page.words) for words in told), name


def test_many_numbers_of_features_are_a_readable_curve(results):
    path = (
        results["ranking path"]
        .isel(k=np.arange(60) % 3)
        .assign_coords(k=[*range(1, 51), *range(100, 1100, 100)])
    )
    text = report.page(path)
    dots = [float(attrs["cx"]) for tag, attrs in Page(text).tags if tag == "circle"]
    assert dots[9] - dots[0] == pytest.approx(dots[50] - dots[9], abs=0.2)  # 1 to 10 is as far as 10 to 100
    names = [
        float(attrs["x"]) for tag, attrs in Page(text).tags if tag == "text" and attrs["class"] == "middle"
    ]
    assert np.diff(names[:-1]).min() >= 34  # the last is the axis' own
