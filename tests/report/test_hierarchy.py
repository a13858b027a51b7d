"""Per cent of parent: a gate hierarchy over the labels of a result."""

import numpy as np
import pandas as pd
import pytest

from scaleshift.errors import DataError
from scaleshift.report import table

PARENTS = {"CD4": "T", "CD8": "T", "T": "lymphocytes", "B": "lymphocytes"}
LABELS = ["B", "CD4", "CD8", "Mono"]


@pytest.fixture
def result(make_result):
    return make_result([[0.2, 0.3, 0.1, 0.1], [0.0, 0.0, 0.0, 0.5]], ["S1", "S2"], LABELS)


def of_parent(rows, sample="S1"):
    chosen = rows[rows["sample"] == sample]
    return dict(zip(chosen["label"], chosen["proportion_of_parent"].round(12), strict=True))


def test_a_population_is_compared_with_all_that_its_parent_holds(result):
    shares = of_parent(table(result, parents=PARENTS))
    assert {k: v for k, v in shares.items() if v == v} == {
        "CD4": 0.75,
        "CD8": 0.25,
        "T": pytest.approx(2 / 3),
        "B": pytest.approx(1 / 3),
    }
    assert np.isnan(shares["Mono"])  # no parent
    assert np.isnan(shares["lymphocytes"])


def test_inner_populations_get_rows_behind_the_labels_of_each_sample(result):
    rows = table(result, parents=PARENTS)
    assert rows["label"].tolist() == [*LABELS, "lymphocytes", "T"] * 2
    inner = rows[(rows["label"] == "T") & (rows["sample"] == "S1")].iloc[0]
    assert inner["proportion"] == pytest.approx(0.4)
    assert inner["count"] == pytest.approx(400)
    assert inner["parent"] == "lymphocytes"
    assert np.isnan(inner["proportion_low"])
    assert inner["unknown"] == pytest.approx(0.3)
    assert rows["n_cells"].dtype.kind == "i"


def test_labels_keep_their_numbers(result):
    plain, rows = table(result), table(result, parents=PARENTS)
    kept = rows[rows["label"].isin(LABELS)].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept[plain.columns], plain, check_dtype=False)


def test_an_empty_parent_and_a_missing_estimate_give_nan(result):
    shares = of_parent(table(result, parents=PARENTS), "S2")
    assert all(np.isnan(share) for share in shares.values())
    missing = result.copy(deep=True)
    missing["proportion"][0, 2] = np.nan
    shares = of_parent(table(missing, parents=PARENTS))
    assert all(np.isnan(shares[name]) for name in ("CD4", "CD8", "T", "B"))


def test_a_label_that_has_children_holds_them_too(make_result):
    result = make_result([[0.1, 0.3, 0.4]], ["S1"], ["T", "CD4", "B"])
    rows = table(result, parents={"CD4": "T", "T": "lymphocytes", "B": "lymphocytes"})
    shares = of_parent(rows)
    assert shares["CD4"] == 0.75
    assert shares["T"] == shares["B"] == 0.5
    assert rows.loc[rows["label"] == "T", "proportion"].tolist() == [0.1]  # its own cells


def test_int_labels_keep_their_type(make_result):
    rows = table(make_result([[0.25, 0.5]], ["S1"], [1, 2]), parents={1: "T", 2: "T"})
    assert rows["label"].tolist() == [1, 2, "T"]
    assert of_parent(rows)[2] == pytest.approx(2 / 3)


def test_nodes_that_hold_no_label_are_passed_over(result):
    rows = table(result, parents={**PARENTS, "NKT": "T", "root": None, "platelets": "root"})
    assert rows["label"].tolist()[:6] == [*LABELS, "lymphocytes", "T"]


def test_parents_stand_in_the_csv_and_cannot_be_formulas(result, tmp_path):
    table(result, tmp_path / "p.csv", parents={**PARENTS, "Mono": "=1+1"})
    back = pd.read_csv(tmp_path / "p.csv")
    assert back.columns.tolist()[6:9] == ["count", "parent", "proportion_of_parent"]
    assert back.loc[back["label"] == "Mono", "parent"].tolist() == ["'=1+1"] * 2
    assert "'=1+1" in back["label"].tolist()


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"CD4": "T", "T": "CD4"}, r"'CD4' is its own ancestor \('CD4' -> 'T' -> 'CD4'\)"),
        ({"B": "B"}, r"'B' is its own ancestor \('B' -> 'B'\)"),
        ({"x": "y", "y": "z", "z": "y"}, r"'y' is its own ancestor \('y' -> 'z' -> 'y'\): give it another"),
        ({"CD4": "T", "cd8": "T"}, r"parents names 'cd8', which is no label .*did you mean 'CD8'"),
        (["CD4"], "parents is a list, expected a mapping"),
    ],
)
def test_what_is_no_hierarchy_is_refused_by_name(result, parents, message):
    with pytest.raises(DataError, match=message):
        table(result, parents=parents)
