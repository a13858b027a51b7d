"""Tables tell themselves whether their events count from 0 or from 1; where they do not, nobody guesses."""

import numpy as np
import pandas as pd
import pytest
from label_studies import EVENT_IN_FILE, FILE_OF, N, labels_of, make_study

from scaleshift.cells import label_cells
from scaleshift.cells.labels import tables as label_tables
from scaleshift.errors import DataError

LABELS = np.random.default_rng(2).choice(["T", "B"], N)
TABLE = pd.DataFrame({"file": FILE_OF, "event": EVENT_IN_FILE, "label": LABELS})
LAST = pd.Series(FILE_OF).map(TABLE.groupby("file")["event"].max()) == EVENT_IN_FILE
INNER = (EVENT_IN_FILE > 0) & ~LAST.to_numpy()


@pytest.fixture
def path(tmp_path):
    return make_study(tmp_path / "study.zarr")


def from_one(table):
    return table.assign(event=table["event"] + 1)


def one_more(name, event):
    """The events that are neither first nor last, and one more, at the end."""
    last = pd.DataFrame({"file": [name], "event": [event], "label": ["T"]})
    return pd.concat([TABLE[INNER], last])


def expected(table, first):
    """The label of each cell where the events of a table count from `first`."""
    starts = {name: int(np.flatnonzero(name == FILE_OF)[0]) for name in FILE_OF}
    rows = table["file"].map(starts) + table["event"] - first
    told = dict(zip(rows, table["label"], strict=True))
    return [told.get(i) for i in range(N)]


@pytest.mark.parametrize("rows", [7, 1_000_000])
@pytest.mark.parametrize(
    ("event", "first", "said"),
    [
        (0, 0, "events count from 0: there is event 0 of file 'b.fcs'"),
        (25, 1, "events count from 1: there is event 25 of file 'b.fcs', which has 25 events"),
    ],
)
def test_one_first_or_last_event_tells_and_the_report_says_it(path, monkeypatch, rows, event, first, said):
    monkeypatch.setattr(label_tables, "ROWS", rows)
    table = one_more("b.fcs", event)
    report = label_cells(path, table)
    assert labels_of(path) == expected(table, first)
    assert report["remarks"][0]["text"] == said
    assert label_cells(path, table, first_event=first)["n_labelled"] == len(table)
    assert labels_of(path) == expected(table, first)


@pytest.mark.parametrize("kind", ["frame", "gates"])
def test_where_no_file_begins_or_ends_it_must_be_said(path, tmp_path, kind):
    if kind == "frame":
        source, name = TABLE[INNER], "the table"
    else:
        (tmp_path / "gates").mkdir()
        for gate, part in TABLE[INNER].groupby("label"):
            part.to_csv(tmp_path / "gates" / f"{gate}.csv", index=False)
        source, name = tmp_path / "gates", "gates"
    with pytest.raises(
        DataError,
        match=rf"the events of .*{name} may count from 0 or from 1, .*first_event=0 or .*--first-event",
    ):
        label_cells(path, source)
    assert labels_of(path) == [None] * N
    label_cells(path, source, first_event=0)
    assert labels_of(path) == [label if i else None for label, i in zip(LABELS, INNER, strict=True)]


@pytest.mark.parametrize("rows", [7, 1_000_000])
@pytest.mark.parametrize("order", [1, -1])
def test_files_that_count_differently_are_refused_with_both(path, monkeypatch, rows, order):
    monkeypatch.setattr(label_tables, "ROWS", rows)
    mixed = pd.concat([TABLE[TABLE["file"] == "a1.fcs"], from_one(TABLE[TABLE["file"] == "c.fcs"])])
    with pytest.raises(DataError, match=r"the table: there is .*count neither from 0 nor from 1") as error:
        label_cells(path, mixed[::order])
    assert "event 0 of file 'a1.fcs'" in str(error.value)
    assert "event 55 of file 'c.fcs', which has 55 events" in str(error.value)


def test_gates_tell_together(path, tmp_path):
    (tmp_path / "gates").mkdir()
    for gate, part in from_one(TABLE).groupby("label"):
        part.to_csv(tmp_path / "gates" / f"{gate}.csv", index=False)
    label_cells(path, tmp_path / "gates")
    assert labels_of(path) == LABELS.tolist()


@pytest.mark.parametrize("event", [2**62, 2**63, 10**25, -(2**63), 1.5])
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_numbers_that_no_event_has_are_shown_as_they_are_written(path, tmp_path, event, kind):
    table = pd.DataFrame({"file": ["a1", "a1"], "event": [0, event], "label": ["T", "T"]})
    if kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
        table = tmp_path / "t.csv"
    with pytest.raises(DataError, match=r"row 2 has .* in the column 'event', expected the number") as error:
        label_cells(path, table)
    assert any(f"row 2 has {quote}{event}{quote} in" in str(error.value) for quote in ("", "'"))
    assert "np." not in str(error.value)
