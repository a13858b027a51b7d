"""Names on a page are text, wherever they stand; what an attribute should not hold costs its line alone."""

from html.parser import HTMLParser

import numpy as np
import pytest
from every_kind import DATASETS, every
from evil import NAME, renamed

import scaleshift as ss
from scaleshift.report.pages import html
from scaleshift.report.pages.charts import drawn
from scaleshift.report.pages.parts import Cell, Chart, Column, Grid, Point, Section

KINDS = [name for name in DATASETS if name != "replicates of a closed form"]
NOT_AS_IT_SHOULD = ["", "forged", "[", "[" * 100_000, "null", "7", '"x"', '{"level": "x"}', '{"level": [1]}']
NOT_AS_IT_SHOULD += [7, -1.5, float("nan"), [1, "a"], {"a": [1]}, True, None]
READ = ("parameters", "features", "source_samples", "import_said", "level", "resampled", "n_cells", "reason")
READ += ("recommendation", "positive", "negative", "measure", "loss", "judged_by", "study", "model", "source")


class Page(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.handlers, self.addresses = set(), 0, [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.scripts += tag == "script" and dict(attributes).get("type") != "text/plain"
        self.handlers += [name for name, _ in attributes if name.startswith("on") or name == "autofocus"]
        self.addresses += [v for k, v in attributes if k in ("href", "src", "action") and v[:1] != "#"]


@pytest.mark.parametrize("kind", [*KINDS, "gates"])
def test_a_name_opens_no_element_and_no_line(kind):
    text = ss.report.page(renamed(every()[kind][1]))
    page = Page(text)
    assert (page.scripts, page.handlers, page.addresses) == (1, [], [])
    assert not page.tags & {"img", "iframe", "object", "embed", "form", "base", "textarea", "plaintext"}
    assert {c for c in text if not c.isprintable()} == {"\n"}
    assert "window.evil" in text


def test_the_names_would_be_found():
    assert Page(NAME).scripts
    assert Page(NAME).handlers
    assert "img" in Page(NAME).tags


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_that_is_not_as_it_should_be_costs_its_line_alone(kind):
    result = every()[kind][1]
    headings = ss.report.page(result).count("<h2>")
    for value in NOT_AS_IT_SHOULD:
        page = ss.report.page(result.assign_attrs(dict.fromkeys(READ, value)))
        assert page.count("<h2>") == headings, value
    for name in set(result.attrs) - {"recommendation", "reason"}:  # without these it is no league table
        bare = result.copy()
        bare.attrs = {key: value for key, value in result.attrs.items() if key != name}
        assert ss.report.page(bare).count("<h2>") == headings, name


def test_a_level_that_is_not_told_is_not_made_up(result):
    told = {'{"level": 0.9}': "Intervals of 90 % hold the noise", "forged": "Intervals hold the noise"}
    for parameters, words in told.items():
        assert words in ss.report.page(result.assign_attrs(parameters=parameters))


def test_half_a_character_in_a_name_does_not_stop_the_table(result, tmp_path):
    odd = result.assign_coords(sample=["b\udcff", "S2", "S3"])
    ss.report.table(odd, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_bytes().split(b"\n")[1].startswith(b"b?,")
    ss.report.page(odd, tmp_path / "report.html")


def test_results_without_labels_or_samples_have_a_page(result):
    shifted = result.assign(shift=(("sample", "label", "marker"), np.zeros((3, 2, 1))))
    for nothing in ("label", "sample"):
        assert "<table>" in ss.report.page(shifted.isel({nothing: slice(0)}))


def test_points_that_nobody_could_place_are_not_drawn():
    points = [Point(1, 0.5), Point(2, np.inf), Point(3, 0.5, -np.inf, 1), Point(0, 0.5), Point(4, np.nan)]
    assert drawn(Chart("", "", "", points, logarithmic=True)).count("<circle") == 1
    assert drawn(Chart("", "", "", points[1:3])) == ""


def test_a_table_of_many_columns_has_fewer_rows_on_the_page():
    rows = [[Cell(str(i))] * 60 for i in range(2_000)]
    page = html.rendered("", "", [Section("", [Grid("", [Column("a")] * 60, rows)])])
    assert page.count("<tr") - 1 == html.MOST_CELLS // 60
    assert "The first 1000 of 2000 rows." in page
