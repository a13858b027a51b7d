"""Names are text: kept in a study as they came, shown harmless, and no file is called after them."""

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import skops.io
from danger import CONTROL
from fcs_bytes import fcs_bytes
from sklearn.linear_model import LogisticRegression

import scaleshift as ss

NAMES = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "hyperlink": '=HYPERLINK("http://x","y")',
    "command": "=cmd|' /C calc'!A0",
    "minus": "-2+3+cmd",
    "at": "@SUM(1+1)",
    "clear": "\x1b[2J\x1b]0;title\x07",
    "c1": "\x9b2Jx",
    "turned": "a\u202eb",
    "newline": "a\nError: b",
    "return": "a\r=1+1",
    "tab": "\t=1+1",
    "math": "$\\frac{1}{0}$ ^_{",
    "rich": "[red]x[/red][link=file:///etc/passwd]y[/link][/]",
    "emoji": ":smile: {0} %s \\x1b",
    "folders": "../../../../tmp/x",
    "absolute": "/dev/null",
    "null": "a\0b",
    "long": "n" * 10_000,
}
X = np.random.default_rng(0).normal(size=(240, 3)).astype("f4") + np.tile(np.eye(3, dtype="f4") * 4, (80, 1))


def written(danger, name, n_samples=4):
    """A study with that name at every place where there is one: sample, label, marker and metadata."""
    n = len(X) // n_samples
    samples = np.repeat([name, *(f"S{i}" for i in range(1, n_samples))], n)
    labels = np.tile([name, "T", "NK"], len(X) // 3)
    cells = ss.as_cells(X, sample=samples, label=labels, marker=[name, "CD4", "CD8"])
    cells = cells.assign_coords(day=("sample", [name] * n_samples))
    ss.write_cells(cells, danger.work / "study.zarr")
    danger.output.mkdir()


@pytest.mark.parametrize("what", NAMES)
def test_a_name_stays_as_it_is_and_is_shown_harmless(danger, what):
    name = NAMES[what]
    written(danger, name)
    arguments = ("quantify", "study.zarr", "--source", "sample in (S1, S2, S3)", "--target", "all")
    arguments += ("--method", "cc", "--bootstrap", "0", "--output", "output")
    text = danger.run(*arguments, codes=(0,))
    if what in ("script", "rich", "emoji"):
        shown = re.sub(r"[│\s]", "", text)
        assert re.sub(r"\s", "", name)[:8] in shown  # markup is shown, and not obeyed
    cells = ss.open_cells("study.zarr")
    for where in ("sample", "label", "marker", "day"):
        assert name in cells[where].values.tolist(), where
    assert {path.name for path in danger.output.iterdir()} <= {
        *("proportions.csv", "proportions.png", "proportions.xlsx", "proportions.zarr", "gated.csv"),
        "report.html",
    }
    _check_page(danger.output / "report.html", name)
    _check_csv(danger.output / "proportions.csv", name)
    _check_workbook(danger.output / "proportions.xlsx", name)


def _check_page(path, name):
    """No tag but those of the page, and the name as a browser shows it."""
    found = Page()
    found.feed(path.read_text(encoding="utf-8"))
    found.close()
    assert found.scripts == 1
    assert not found.tags & {"img", "iframe", "object", "embed", "form", "base"}
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    assert (shown if len(shown) < 80 else shown[:39] + "…") in found.text


class Page(HTMLParser):
    """What a browser sees of a page: tags, scripts that run, and text."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.text = set(), 0, ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.scripts += tag == "script" and dict(attributes).get("type") != "text/plain"
        assert not [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def _check_csv(path, name):
    """No cell that a spreadsheet would run, and the name with at most an apostrophe in front."""
    with open(path, newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    numbers = re.compile(r"-?[\d.]+(e-?\d+)?")
    assert not [c for c in cells if c[:1] in ("=", "+", "-", "@", "\t", "\r") and not numbers.fullmatch(c)]
    assert {name, f"'{name}"} & set(cells)


def _check_workbook(path, name):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "b", "inlineStr"}  # "f" would be a formula
    kept = re.sub(r"[\x00-\x08\x0b-\x1f]", "\N{REPLACEMENT CHARACTER}", name)
    told = {str(cell.value).replace("_x000D_", "\r") for cell in cells}
    assert kept in told or len(name) > 5000, sorted(told)[:5]
    assert all(cell.hyperlink is None for cell in cells)


VERBS = {
    "auc": ("--positive", "T", "--output", "output"),
    "slices": ("--model", "m.skops", "--components", "5", "--slices", "2", "--output", "output"),
    "error": ("--model", "m.skops", "--bootstrap", "2", "--target", "sample != S1", "--output", "output"),
    "compare": ("--source", "sample != S1", "--methods", "cc,bbse", "--draws", "2", "--output", "output"),
}


@pytest.mark.parametrize("what", ["clear", "rich", "math"])
@pytest.mark.parametrize("verb", VERBS)
def test_so_it_is_by_every_verb(danger, verb, what):
    written(danger, NAMES[what])
    frame = pd.DataFrame(X, columns=[NAMES[what], "CD4", "CD8"])
    model = LogisticRegression().fit(frame, np.tile([NAMES[what], "T", "NK"], len(X) // 3))
    skops.io.dump(model, danger.work / "m.skops")
    danger.run(verb, "study.zarr", *VERBS[verb], codes=(0,))


@pytest.mark.parametrize("what", ["clear", "c1", "turned", "newline", "rich", "long"])
def test_an_error_shows_it_harmless(danger, what):
    written(danger, NAMES[what])
    danger.run("quantify", "study.zarr", "--source", "sample == nobody", codes=(2,), names="nobody")
    danger.run("quantify", "study.zarr", "--source", "sample == S1", "--markers", "nothing", codes=(1, 2))
    danger.run("auc", "study.zarr", "--positive", "nobody", codes=(1, 2))


@pytest.mark.parametrize("what", ["clear", "c1", "turned"])
def test_json_holds_no_control_codes(danger, what):
    written(danger, NAMES[what])
    arguments = ("--source", "sample == S1", "--method", "cc", "--bootstrap", "0", "--json")
    text = danger.run("quantify", "study.zarr", *arguments, codes=(0,))
    assert json.loads(text[: text.rindex("}") + 1])["samples"][0]["metadata"]["day"] == NAMES[what]


# FCS files ---------------------------------------------------------------------------------------------


def ingested(danger, codes=(0, 1, 2)):
    danger.output.mkdir(exist_ok=True)
    danger.run("check", "data", codes=codes, errors=False)
    return danger.run("ingest", "data", "output/study.zarr", codes=codes)


def fcs(danger, name="a.fcs", channels=("CD3", "CD4", "CD8"), x=X, **options):
    (danger.work / "data").mkdir(exist_ok=True)
    (danger.work / "data" / name).write_bytes(fcs_bytes(x, channels, **options))


@pytest.mark.parametrize("what", NAMES)
def test_a_marker_of_an_fcs_file_is_text(danger, what):
    name = NAMES[what]
    fcs(danger, channels=["A", "B", "C"], markers=[name, "CD4", "CD8"], delimiter="\x0c")
    ingested(danger)
    if (danger.output / "study.zarr").exists():
        text = ss.open_cells(danger.output / "study.zarr", markers="all")["marker"].values[0]
        assert " ".join(name.split())[:6] == " ".join(text.split())[:6]


@pytest.mark.parametrize("what", ["script", "clear", "c1", "turned", "newline", "rich", "command", "math"])
def test_the_name_of_an_fcs_file_is_text(danger, what):
    fcs(danger, name=NAMES[what].replace("/", "_") + ".fcs")
    ingested(danger, codes=(0,))
    assert len(ss.open_cells(danger.output / "study.zarr")["sample"]) == 1


KEYWORDS = {
    "cytometer": {"$CYT": "\x1b[2J<script>alert(1)</script>"},
    "huge_total": {"$TOT": "9" * 18},
    "endless_total": {"$TOT": "9" * 5000},
    "negative_total": {"$TOT": "-1"},
    "huge_width": {"$PAR": "9" * 9},
    "next_in_a_circle": {"$NEXTDATA": "0000000001"},
    "next_beyond": {"$NEXTDATA": "999999999999"},
    "code": {"$DATATYPE": "__import__('os')"},
    "matrix": {"$SPILLOVER": "999999999," + "CD3," * 10 + "1," * 10},
    "range": {"$P1R": "1e999", "$P2R": "\x9b2J"},
    "amplifier": {"$P1E": "1e308,0"},
}


@pytest.mark.parametrize("what", KEYWORDS)
def test_a_forged_keyword_does_no_harm(danger, what):
    fcs(danger, keywords=KEYWORDS[what], delimiter="\x0c")
    ingested(danger)


@pytest.mark.parametrize("offsets", [(10**11, 2 * 10**11), (58, 10**9), (2**63, 2**64), (-1, -1), (900, 100)])
def test_forged_offsets_do_no_harm(danger, offsets):
    fcs(danger, text_data=offsets, header_data=(0, 0))
    ingested(danger, codes=(0, 1))


def test_a_forged_file_costs_no_memory(danger):
    fcs(danger, keywords={"$TOT": "9" * 15}, text_data=(300, 10**12), header_data=(0, 0))
    danger.alone("ingest", "data", "output/study.zarr", codes=(1,), names="a.fcs")


def test_what_is_no_utf8_is_text(danger):
    fcs(danger, markers=["CD3ä", "CD4", "CD8"], encoding="latin-1", version="FCS3.0")
    ingested(danger, codes=(0,))
    (danger.work / "data" / "a.fcs").rename(danger.work / "data" / "b\udcff.fcs")
    danger.run("check", "data", codes=(1,), errors=False)


def test_what_is_looked_for_is_found():
    """The tests above would find what they look for."""
    assert CONTROL.search("\x1b[2J")
    assert CONTROL.search("a\u202e")
    assert not CONTROL.search("Größe │ ✓\n")
