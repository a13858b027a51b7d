"""A folder of gates labels its cells; a cell in two gates counts for the inner one, else it is told."""

import numpy as np
import pandas as pd
import pytest
from label_studies import EVENT_IN_FILE, EVENTS, FILE_OF, SAMPLES, N, X, labels_of, make_study

from scaleshift.cells import label_cells, open_cells
from scaleshift.errors import DataError

GATES = {
    "T cells": X[:, 0] > 0.3,
    "B cells": (X[:, 0] < 0) & (X[:, 1] > 0),
    "NK": (X[:, 0] < 0) & (X[:, 1] < -1),
}
EXPECTED = [next((name for name, inside in GATES.items() if inside[i]), None) for i in range(N)]


@pytest.fixture
def path(tmp_path):
    return make_study(tmp_path / "study.zarr")


def write_gates(folder, gates=GATES):
    """One table a gate, with the files' names."""
    folder.mkdir()
    for name, inside in gates.items():
        table = pd.DataFrame({"file": FILE_OF[inside], "event": EVENT_IN_FILE[inside]})
        table.sample(frac=1, random_state=1).to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_each_table_of_a_folder_is_a_gate(path, tmp_path):
    folder = write_gates(tmp_path / "gates")
    (folder / "README.md").write_text("no gate")
    (folder / ".hidden.csv").write_text("no gate")
    report = label_cells(path, folder)
    assert labels_of(path) == EXPECTED
    assert open_cells(path)["label"].values.tolist() == sorted(GATES)
    assert report["remarks"][0]["text"] == "README.md: no table, passed over"


def test_gates_may_stand_in_a_folder_a_sample(path, tmp_path):
    for sample in ("S1", "S10"):
        (tmp_path / "gates" / sample).mkdir(parents=True)
        for name, inside in GATES.items():
            table = pd.DataFrame({"event": EVENTS[inside & (sample == SAMPLES)] + 1})
            table.to_csv(tmp_path / "gates" / sample / f"{name}.csv", index=False)
    report = label_cells(path, tmp_path / "gates", first_event=1)
    assert labels_of(path) == [None if s == "S2" else e for s, e in zip(SAMPLES, EXPECTED, strict=True)]
    assert report["samples_without_labels"] == ["S2"]


def test_overlapping_gates_are_refused_with_both_names_and_the_number_of_cells(path, tmp_path):
    wide = X[:, 0] < 0
    wide[np.flatnonzero(wide & GATES["NK"])[0]] = wide[np.flatnonzero(wide & GATES["B cells"])[0]] = False
    folder = write_gates(tmp_path / "gates", GATES | {"wide": wide})
    n = (wide & GATES["B cells"]).sum()
    with pytest.raises(
        DataError, match=rf"{n} cells lie in both gates 'B cells' and 'wide'.*\(and 1 more pairs"
    ) as e:
        label_cells(path, folder)
    assert "--overlap first" in str(e.value)
    assert labels_of(path) == [None] * N

    report = label_cells(path, folder, overlap="first")
    first = [e or ("wide" if wide[i] else None) for i, e in enumerate(EXPECTED)]
    assert labels_of(path) == first
    assert [r["fix"] for r in report["remarks"][1:3]] == ["they count as 'B cells'", "they count as 'NK'"]

    label_cells(path, folder, overlap="first", gates=["wide", "T cells", "NK"])
    assert labels_of(path) == [
        "wide" if wide[i] else None if e == "B cells" else e for i, e in enumerate(EXPECTED)
    ]
    label_cells(path, folder, gates=list(GATES))
    assert labels_of(path) == EXPECTED


def test_of_nested_gates_the_inner_one_counts_whatever_their_order(path, tmp_path):
    wide = X[:, 0] < 0
    folder = write_gates(tmp_path / "gates", GATES | {"A wide": wide})
    report = label_cells(path, folder, parents={"B cells": "A wide", "NK": "A wide", "A wide": "all"})
    assert labels_of(path) == [e or ("A wide" if wide[i] else None) for i, e in enumerate(EXPECTED)]
    assert open_cells(path).attrs["parents"] == {"B cells": "A wide", "NK": "A wide", "A wide": "all"}
    n = (wide & ~GATES["B cells"] & ~GATES["NK"]).sum()
    text = f"{n} cells lie in 'A wide' and in no gate within it: 'A wide' is their label"
    assert [r["text"] for r in report["remarks"] if "events count" not in r["text"]] == [text]


def tree():
    """Gates as programs export them: each holds all events of those below it."""
    t_cells, lymphocytes = X[:, 0] > 0.3, X[:, 0] > -1
    return {
        "All": np.ones(N, bool),
        "CD4": t_cells & (X[:, 1] > 0),
        "Lymphocytes": lymphocytes,
        "NK": lymphocytes & (X[:, 0] < 0),
        "T cells": t_cells,
    }


PARENTS = {"CD4": "T cells", "T cells": "Lymphocytes", "NK": "Lymphocytes", "Lymphocytes": "All"}


def deepest(gates):
    order = [*(name for name in ("CD4", "NK", "T cells", "Lymphocytes") if name in gates), "All"]
    return [next(name for name in order if gates[name][i]) for i in range(N)]


@pytest.mark.parametrize("gates", [None, ["All", "T cells", "Lymphocytes", "NK", "CD4"]])
def test_the_events_tell_which_gate_is_part_of_which(path, tmp_path, gates):
    report = label_cells(path, write_gates(tmp_path / "gates", tree()), gates=gates)
    assert labels_of(path) == deepest(tree())
    assert report["parents"] == PARENTS == open_cells(path).attrs["parents"]
    texts = {r["text"]: r for r in report["remarks"]}
    (found,) = (text for text in texts if text.startswith("by the cells in them, gates are part of others"))
    assert all(f"{gate!r} of {parent!r}" in found for gate, parent in PARENTS.items())
    n = deepest(tree()).count("All")
    own = texts[f"{n} cells lie in 'All' and in no gate within it: 'All' is their label"]
    assert own["level"] == "warning"
    assert "--unlabelled 'All'" in own["fix"]


def test_a_root_may_be_no_label(path, tmp_path):
    folder = write_gates(tmp_path / "gates", tree())
    report = label_cells(path, folder, unlabelled=["all"])
    assert labels_of(path) == [None if name == "All" else name for name in deepest(tree())]
    assert report["parents"] == PARENTS
    assert report["unlabelled_words"] == {"All": deepest(tree()).count("All")}


def test_what_is_said_of_parents_comes_before_what_the_events_tell(path, tmp_path):
    folder = write_gates(tmp_path / "gates", tree())
    parents = {"CD4": "T cells", "T cells": "CD45+", "CD45+": "Lymphocytes"}
    assert label_cells(path, folder, parents=parents)["parents"] == PARENTS | parents
    assert labels_of(path) == deepest(tree())


def test_a_gate_that_is_no_label_within_one_that_is_leaves_its_cells_without(path, tmp_path):
    gates = {"Live": X[:, 0] > -1, "Ungated": X[:, 0] > 1}
    label_cells(path, write_gates(tmp_path / "gates", gates))
    assert labels_of(path) == [
        "Live" if live and not none else None for live, none in zip(*gates.values(), strict=True)
    ]


@pytest.mark.parametrize("outlier", [True, False])
def test_gates_that_hold_the_same_cells_or_overlap_in_part_are_refused(path, tmp_path, outlier):
    t_cells = tree()["T cells"].copy()
    gates = tree() | {"same": t_cells.copy()}
    if outlier:
        gates["same"][np.flatnonzero(~t_cells)[0]] = True
        gates["same"][np.flatnonzero(t_cells)[0]] = False
    n = (gates["same"] & t_cells).sum()
    with pytest.raises(
        DataError, match=rf"{n} cells lie in both gates .*neither of which is part of the other"
    ):
        label_cells(path, write_gates(tmp_path / "gates", gates))


def test_a_cell_in_two_gates_around_a_third_names_the_two(path, tmp_path):
    a, b = X[:, 0] > 0, X[:, 1] > 0
    with pytest.raises(DataError, match=rf"{(a & b).sum()} cells lie in both gates 'b' and 'a', neither"):
        label_cells(path, write_gates(tmp_path / "gates", {"a": a, "b": b, "within": a & b}))


def test_a_gate_called_unlabelled_is_none(path, tmp_path):
    folder = write_gates(tmp_path / "gates", {"T cells": GATES["T cells"], "Ungated": ~GATES["T cells"]})
    label_cells(path, folder)
    assert labels_of(path) == ["T cells" if inside else None for inside in GATES["T cells"]]


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("T.csv", "file,evnt\na1,1\n", {}, r"T.csv has no column 'event'"),
        ("T.csv", "17\n18\n", {}, r"T.csv has none of the columns|T.csv has no column 'event'"),
        ("T.csv", "event\n1\n", {}, r"T.csv has no column 'file' or 'sample', and .* 3 samples"),
        ("S3/T.csv", "event\n1\n", {}, r"S3/T.csv: sample 'S3' is not in .*; known: S1"),
        (
            "S1/T.csv",
            "event\n40\n",
            {"first_event": 0},
            r"event 40 of sample 'S1' .* 0 to 39; .*--first-event 1",
        ),
        ("T.csv", "", {}, r"T.csv cannot be read as a table"),
        ("T.txt", "file,event\na1,1\n", {"gates": ["B"]}, r"gates of .*: 'B' is not there; known: T"),
        ("T.csv", "file,event\na1,1\n", {"gates": "T"}, r"gates='T' is one name: give a list"),
        ("T.csv", "file,event\na1,1\n", {"column": "x"}, r"column= goes with a table, and .*gates is none"),
        (
            "T.csv",
            "file,event\na1,1\n",
            {"overlap": "last"},
            r"overlap is 'last', expected one of refuse, first",
        ),
        ("notes.md", "", {}, r"gates holds no table of a gate: expected GATE.csv with"),
    ],
)
def test_what_does_not_fit_is_named(path, tmp_path, name, text, options, message):
    file = tmp_path / "gates" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        label_cells(path, tmp_path / "gates", **options)


def test_a_gate_without_cells_is_no_label(path, tmp_path):
    label_cells(path, write_gates(tmp_path / "gates", GATES | {"none": np.zeros(N, bool)}))
    assert labels_of(path) == EXPECTED
