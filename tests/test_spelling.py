"""A name that there is not: wherever one is given, the one that was meant is suggested."""

import numpy as np
import pandas as pd
import pytest

import scaleshift as ss
from scaleshift import spelling
from scaleshift.cells import label_cells
from scaleshift.cells.sheets.panel import read_panel
from scaleshift.cells.sheets.samples import read_samples

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.repeat(["B cells", "T cells"], 30)
MARKERS = ["CD3", "CD45-RA", "CD19"]


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.zarr"
    cells = ss.as_cells(X, sample=np.repeat(["S1", "S2"], 30), label=Y, marker=MARKERS)
    ss.write_cells(cells, path)
    return path


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("CD45RA", MARKERS, "CD45-RA"),
        ("cd3", MARKERS, "CD3"),
        ("CD4", MARKERS, None),  # another marker is no misspelt one
        ("S1", ["S01", "S02"], "S01"),
        ("Tcells", ["T cells", "B cells"], "T cells"),
        (3, [30, 4], None),
        ("x", [], None),
    ],
)
def test_the_nearest_name_has_the_same_numbers(name, known, near):
    assert spelling.nearest(name, known) == near


def test_without_a_near_name_there_are_those_that_are_known_and_of_many_the_first():
    assert spelling.suggestion("x", ["a", "b"]) == "; known: a, b"
    assert spelling.suggestion("x", map(str, range(1_000))).endswith("6, 7, ...")
    assert spelling.meant("x", ["a", "b"]) == spelling.suggestion("x", []) == ""


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["file_name", "sampel_id"], "sampel_id"),
        (["file_name", "samples"], "samples"),
        (["file_name", "sample_no"], None),
        (["file_name", "SAMPLE_ID"], None),
    ],
)
def test_a_slip_of_the_pen_is_told_from_another_word(names, found):
    slip = spelling.misspelt(names, ["sample_id", "sample"])
    assert (None if slip is None else slip[0]) == found


CALLS = {
    "markers": lambda: _fitted().predict(pd.DataFrame(X, columns=["CD3", "CD45RA", "CD19"])),
    "features": lambda: ss.DFM("forier").fit(X, Y),
    "criterion": lambda: ss.DFM(criterion="delta_mn").fit(X, Y),
    "kernel": lambda: ss.DFM(ss.FourierFeatures(kernel="gausian")).fit(X, Y),
    "sampler": lambda: ss.DFM(ss.FourierFeatures(sampler="sobl")).fit(X, Y),
    "unknown class": lambda: ss.OpenSetQuantifier(unknown_class="Bcells").fit(X, Y),
    "method of compare": lambda: ss.quantify.compare(["soft-bbs"], X, Y),
    "setting of compare": lambda: ss.quantify.compare(None, X, Y, settings=["lable shift"]),
    "solver": lambda: ss.SparseAUC(solver="screem").fit(X, Y),
    "selection": lambda: ss.SparseAUC(selection="onese").fit(X, Y),
    "positive label": lambda: ss.SparseAUC(pos_label="Tcells").fit(X, Y),
    "method of the AUC": lambda: ss.roc_auc(Y == "T cells", X[:, 0], method="exat"),
    "penalty": lambda: ss.auc.SPAM("elasticnt").fit(X, Y == "T cells"),
    "slicer": lambda: ss.DominoSlicer(covariance_type="diagg").fit(None, X, Y, np.full((60, 2), 0.5)),
    "ranking": lambda: ss.DominoSlicer(ranking="exces_errors").fit(None, X, Y, np.full((60, 2), 0.5)),
    "kernel of slices": lambda: ss.SpotlightSlicer(kernel="epanechnikow").fit(None, X, losses=X[:, 0]),
    "model": lambda: ss.PredictionError("laso").fit(X, X[:, 0]),
    "loss": lambda: ss.PredictionError("ols", loss="sqared").fit(X, X[:, 0]),
    "method of errors": lambda: ss.PredictionError("ols", method="decomposd").fit(X, X[:, 0]),
    "generator": lambda: ss.PredictionError("ols", generator="relaxd").fit(X, X[:, 0]),
    "column of X": lambda: ss.as_cells(pd.DataFrame(X, columns=MARKERS), sample="cd-3"),
    "cluster": lambda: ss.cluster.connect("lcal"),
}
MEANT = {
    "markers": "CD45RA",
    "features": "fourier",
    "criterion": "delta_min",
    "kernel": "gaussian",
    "sampler": "sobol",
    "unknown class": "B cells",
    "method of compare": "soft-bbse",
    "setting of compare": "label shift",
    "solver": "screen",
    "selection": "one_se",
    "positive label": "T cells",
    "method of the AUC": "exact",
    "penalty": "elasticnet",
    "slicer": "diag",
    "ranking": "excess_errors",
    "kernel of slices": "epanechnikov",
    "model": "lasso",
    "loss": "squared",
    "method of errors": "decomposed",
    "generator": "relaxed",
    "column of X": "CD3",
    "cluster": "local",
}


def _fitted():
    return ss.ClassifyAndCount().fit(pd.DataFrame(X, columns=MARKERS), Y)


@pytest.mark.parametrize("what", CALLS)
def test_a_name_in_a_call_of_python(what):
    with pytest.raises(ss.ScaleshiftError, match=f"did you mean '{MEANT[what]}'"):
        CALLS[what]()


@pytest.mark.parametrize(
    ("named", "near"),
    [({"samples": ["s1"]}, "S1"), ({"labels": ["Tcells"]}, "T cells"), ({"markers": ["CD-19"]}, "CD19")],
)
def test_a_name_of_a_study_that_is_opened(study, named, near):
    with pytest.raises(ss.DataError, match=f"did you mean '{near}'"):
        ss.open_cells(study, **named)


@pytest.mark.parametrize(
    ("columns", "near"),
    [
        (["file_name", "sampel_id"], "'sample_id' by 'sampel_id'"),
        (["fiel_name", "day"], "'file_name' by 'fiel_name'"),
    ],
)
def test_a_column_of_a_sample_sheet(columns, near):
    with pytest.raises(ss.DataError, match=rf"did you mean {near}\?"):
        read_samples(pd.DataFrame([["a.fcs", "S1"], ["b.fcs", "S2"]], columns=columns))


@pytest.mark.parametrize(
    ("columns", "near"),
    [
        (["fcs_colnam", "antigen", "marker_class"], "'fcs_colname' by 'fcs_colnam'"),
        (["fcs_colname", "antigne", "marker_class"], "'antigen' by 'antigne'"),
        (["fcs_colname", "antigen", "marker_clas"], "'marker_class' by 'marker_clas'"),
    ],
)
def test_a_column_of_a_panel_sheet(columns, near):
    with pytest.raises(ss.DataError, match=rf"did you mean {near}\?"):
        read_panel(pd.DataFrame([["Ce140Di", "CD19", "type"]], columns=columns))


def test_a_sheet_with_other_columns_is_read():
    sheet = read_samples(pd.DataFrame({"file_name": ["a.fcs"], "sample_no": [1], "sampling": ["x"]}))
    assert set(sheet.metadata) == {"sample_no", "sampling"}
    assert read_panel(pd.DataFrame({"channel": ["Ce"], "antigen": ["CD19"], "marker_set": ["a"]})).antigens


@pytest.mark.parametrize(
    ("table", "options", "near"),
    [
        ({"sample": ["S1"], "evnt": [0], "label": ["B"]}, {}, "by 'evnt'"),
        ({"sample": ["S1"], "event": [0], "gate": ["B"]}, {"column": "gat"}, "'gate'"),
        ({"sample": ["s-1"], "event": [0], "label": ["B"]}, {}, "'S1'"),
        ({"smaple": ["S1"], "event": [0], "label": ["B"]}, {"sample": "sample"}, "'smaple'"),
    ],
)
def test_a_name_in_a_table_of_labels(study, table, options, near):
    with pytest.raises(ss.DataError, match=f"did you mean .*{near}"):
        label_cells(study, pd.DataFrame(table), **options)


def test_the_name_of_a_gate(study, tmp_path):
    folder = tmp_path / "gates"
    folder.mkdir()
    (folder / "T cells.csv").write_text("sample,event\nS1,1\n")
    with pytest.raises(ss.DataError, match="'Tcells' is not there; did you mean 'T cells'"):
        label_cells(study, folder, gates=["Tcells"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_column_of_samples_in_a_file_of_cells(tmp_path, suffix):
    table = pd.DataFrame({"CD3": [1.0, 2.0], "CD4": [1.0, 2.0], "donor": ["a", "b"]})
    path = tmp_path / f"cells.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    with pytest.raises(ss.DataError, match="did you mean 'donor'"):
        ss.ingest(path, tmp_path / "s.zarr", sample="doner")


def test_a_transform_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("CD3,CD4\n1,2\n3,4\n")
    with pytest.raises(ss.DataError, match="did you mean 'arcsinh'"):
        ss.ingest(tmp_path, tmp_path / "s.zarr", transform="arcsin:5")


def test_a_sample_of_a_prior(study):
    model = ss.SparseAUC(cv=None, k=1).fit(X, Y)
    found = ss.ClassifyAndCount().fit(X, Y).predict(X, sample=np.repeat(["S1", "S2"], 30))
    with pytest.raises(ss.DataError, match="did you mean 'S1'"):
        model.set_prior(found, sample="s1")
