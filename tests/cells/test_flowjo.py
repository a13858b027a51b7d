"""A FlowJo workspace labels the cells of a study by its deepest gates, as numpy counts them."""

import subprocess
import sys
import textwrap

import flowio
import numpy as np
import pytest
from label_studies import labels_of, make_study

from scaleshift.cells import label_cells, open_cells
from scaleshift.errors import DataError

RNG = np.random.default_rng(5)
CHANNELS = ["FSC-A", "CD3", "CD19"]
COUNTS = {"S1": 300, "S2": 200}
EVENTS = {name: RNG.uniform(0, 100, (n, 3)).astype(np.float32) for name, n in COUNTS.items()}
TRIANGLE = [(50, 0), (100, 0), (100, 100)]  # CD3, CD19

WORKSPACE = """<?xml version="1.0" encoding="UTF-8"?>
<Workspace version="20.0" flowJoVersion="10.8.1"
 xmlns:gating="http://www.isac-net.org/std/Gating-ML/v2.0/gating"
 xmlns:transforms="http://www.isac-net.org/std/Gating-ML/v2.0/transformations"
 xmlns:data-type="http://www.isac-net.org/std/Gating-ML/v2.0/datatypes">
<Groups><GroupNode name="All Samples" annotation="" owningGroup="All Samples">
 <Group name="All Samples"><SampleRefs>{references}</SampleRefs></Group></GroupNode></Groups>
<SampleList>{samples}</SampleList></Workspace>"""

SAMPLE = """<Sample><DataSet uri="file:/elsewhere/{file}" sampleID="{number}"/>
<Transformations>{scales}</Transformations>
<Keywords><Keyword name="$FIL" value="{file}"/></Keywords>
<SampleNode name="{file}" annotation="" owningGroup="" sampleID="{number}">
 <Subpopulations>{gates}</Subpopulations></SampleNode></Sample>"""

LINEAR = """<transforms:linear transforms:minRange="0" transforms:maxRange="100">
<data-type:parameter data-type:name="{name}"/></transforms:linear>"""


def dimension(name, low=None, high=None):
    edges = "".join(f' gating:{k}="{v}"' for k, v in (("min", low), ("max", high)) if v is not None)
    return f'<gating:dimension{edges}><data-type:fcs-dimension data-type:name="{name}"/></gating:dimension>'


def population(name, shape, *children):
    below = f"<Subpopulations>{''.join(children)}</Subpopulations>" if children else ""
    return f'<Population name="{name}" annotation="" owningGroup=""><Gate>{shape}</Gate>{below}</Population>'


def rectangle(**ranges):
    sides = "".join(dimension(name.replace("_", "-"), *edges) for name, edges in ranges.items())
    return f"<gating:RectangleGate>{sides}</gating:RectangleGate>"


def polygon(names, vertices):
    corners = "".join(
        "<gating:vertex>"
        + "".join(f'<gating:coordinate data-type:value="{v}"/>' for v in vertex)
        + "</gating:vertex>"
        for vertex in vertices
    )
    return f"<gating:PolygonGate>{''.join(map(dimension, names))}{corners}</gating:PolygonGate>"


def either(name, *paths):
    dependents = "".join(f'<Dependent name="{path}"/>' for path in paths)
    return (
        f'<OrNode name="{name}" annotation="" owningGroup=""><Dependents>{dependents}</Dependents></OrNode>'
    )


CD4 = population("CD4+", rectangle(CD3=(None, 80)))
T_CELLS = population("T cells", polygon(["CD3", "CD19"], TRIANGLE), CD4)
B_CELLS = population("B cells", rectangle(CD3=(None, 50), CD19=(60, None)))
LYMPHOCYTES = population("Lymphocytes", rectangle(FSC_A=(20, 90)), T_CELLS, B_CELLS)


def in_lymphocytes(x):
    return (x[:, 0] >= 20) & (x[:, 0] < 90)


def expected(x):
    """The label of each event by numpy; what lies in the triangle has CD19 below the diagonal."""
    lymphocytes = in_lymphocytes(x)
    t_cells = lymphocytes & (x[:, 1] > 50) & (x[:, 2] < 2 * (x[:, 1] - 50))
    b_cells = lymphocytes & (x[:, 1] < 50) & (x[:, 2] >= 60)
    labels = np.full(len(x), None, object)
    labels[lymphocytes] = "Lymphocytes"
    labels[b_cells] = "B cells"
    labels[t_cells] = "T cells"
    labels[t_cells & (x[:, 1] < 80)] = "CD4+"
    return labels.tolist()


EXPECTED = expected(EVENTS["S1"]) + expected(EVENTS["S2"])


def write_workspace(path, gates=(LYMPHOCYTES,), files=("run_S1.fcs", "run_S2.fcs"), scaled=True):
    scales = "".join(LINEAR.format(name=name) for name in CHANNELS) if scaled else ""
    by_file = gates if isinstance(gates, dict) else dict.fromkeys(files, gates)
    samples = [
        SAMPLE.format(file=file, number=i, scales=scales, gates="".join(by_file[file]))
        for i, file in enumerate(files)
    ]
    references = "".join(f'<SampleRef sampleID="{i}"/>' for i in range(len(files)))
    path.write_text(WORKSPACE.format(references=references, samples="".join(samples)))
    return path


def write_fcs(path, x):
    with open(path, "wb") as file:
        flowio.create_fcs(file, x.ravel().tolist(), CHANNELS)


@pytest.fixture
def path(tmp_path):
    """A study whose FCS files stand in the folder fcs/."""
    (tmp_path / "fcs").mkdir()
    files = []
    for name, x in EVENTS.items():
        file = tmp_path / "fcs" / f"run_{name}.fcs"
        write_fcs(file, x)
        files.append({"path": str(file), "sample": name, "n_events": len(x)})
    x, sample = np.vstack(list(EVENTS.values())), np.repeat(list(COUNTS), list(COUNTS.values()))
    return make_study(tmp_path / "study.zarr", x=x, sample=sample, files=tuple(files), markers=CHANNELS)


@pytest.mark.parametrize("scaled", [True, False])
def test_each_cell_gets_its_deepest_gate(path, tmp_path, scaled, capfd):
    report = label_cells(path, write_workspace(tmp_path / "w.wsp", scaled=scaled))
    assert labels_of(path) == EXPECTED
    parents = {"CD4+": "T cells", "T cells": "Lymphocytes", "B cells": "Lymphocytes"}
    assert report["parents"] == parents == open_cells(path).attrs["parents"]
    assert [e["n_cells"] for e in report["labels"]] == [EXPECTED.count(e["label"]) for e in report["labels"]]
    assert [e["label"] for e in report["labels"]] == ["B cells", "CD4+", "Lymphocytes", "T cells"]
    assert capfd.readouterr() == ("", "")


def test_chosen_gates_are_the_only_labels(path, tmp_path):
    label_cells(path, write_workspace(tmp_path / "w.wsp"), gates=["T cells", "B cells"])
    assert labels_of(path) == [
        "T cells" if e == "CD4+" else None if e == "Lymphocytes" else e for e in EXPECTED
    ]
    assert open_cells(path).attrs["parents"] == {"T cells": "Lymphocytes", "B cells": "Lymphocytes"}
    with pytest.raises(DataError, match=r"gates of .*w.wsp: 'T cell' is not there; did you mean 'T cells'"):
        label_cells(path, tmp_path / "w.wsp", gates=["T cell"])


def test_gates_that_share_a_name_go_by_their_paths(path, tmp_path):
    low = population("low", rectangle(FSC_A=(None, 50)), CD4)
    high = population("high", rectangle(FSC_A=(50, None)), CD4)
    label_cells(path, write_workspace(tmp_path / "w.wsp", [low, high]))
    x = np.vstack(list(EVENTS.values()))
    side = np.where(x[:, 0] < 50, "low", "high")
    assert labels_of(path) == [f"{s}/CD4+" if cd3 < 80 else s for s, cd3 in zip(side, x[:, 1], strict=True)]
    assert open_cells(path).attrs["parents"] == {"low/CD4+": "low", "high/CD4+": "high"}


def test_overlapping_gates_are_refused_or_the_deeper_one_is_taken(path, tmp_path):
    right = population("right", rectangle(CD3=(70, None)))
    workspace = write_workspace(tmp_path / "w.wsp", [right, LYMPHOCYTES])
    x = np.vstack(list(EVENTS.values()))
    n = sum(e == "CD4+" and cd3 >= 70 for e, cd3 in zip(EXPECTED, x[:, 1], strict=True))
    with pytest.raises(
        DataError, match=r"\d+ cells lie in both gates '.*' and '.*', neither of which is part"
    ):
        label_cells(path, workspace)
    report = label_cells(path, workspace, overlap="first")
    told = {r["text"] for r in report["remarks"]}
    assert f"{n} cells lie in both gates 'CD4+' and 'right', neither of which is part of the other" in told
    shallow = np.array(
        [e in (None, "Lymphocytes") for e in EXPECTED]
    )  # no deeper than `right`, and behind it
    taken = shallow & (x[:, 1] >= 70)
    assert labels_of(path) == ["right" if t else e for t, e in zip(taken, EXPECTED, strict=True)]


def test_boolean_gates_are_gates(path, tmp_path):
    both, end = (
        either("T or B", "Lymphocytes/T cells", "Lymphocytes/B cells"),
        "</Subpopulations></Population>",
    )
    gates = [LYMPHOCYTES.removesuffix(end) + both + end]
    label_cells(path, write_workspace(tmp_path / "w.wsp", gates), gates=["Lymphocytes", "T or B"])
    names = {"CD4+": "T or B", "T cells": "T or B", "B cells": "T or B"}
    assert labels_of(path) == [names.get(e, e) for e in EXPECTED]


def test_samples_that_only_one_side_knows_are_told(path, tmp_path):
    write_workspace(tmp_path / "w.wsp", files=("run_S2.fcs", "control.fcs"))
    report = label_cells(path, tmp_path / "w.wsp")
    assert labels_of(path) == [None] * COUNTS["S1"] + expected(EVENTS["S2"])
    assert report["samples_without_labels"] == ["S1"]
    assert report["remarks"][0]["text"] == "1 samples are not in the study and were passed over: control.fcs"
    with pytest.raises(
        DataError, match=r"no sample of the workspace is in .*: 'run_S3.fcs'; known: run_S1.fcs"
    ):
        label_cells(path, write_workspace(tmp_path / "w.wsp", files=("run_S3.fcs",)))


def test_files_renamed_after_they_were_measured_are_found_by_where_they_stand(path, tmp_path):
    workspace = write_workspace(tmp_path / "w.wsp")
    renamed = workspace.read_text().replace('"$FIL" value="run_', '"$FIL" value="tube_')
    workspace.write_text(renamed.replace('SampleNode name="run_', 'SampleNode name="tube_'))
    label_cells(path, workspace)
    assert labels_of(path) == EXPECTED


def test_samples_that_cannot_be_told_apart_are_refused(path, tmp_path):
    workspace = write_workspace(tmp_path / "w.wsp")
    text = workspace.read_text()
    workspace.write_text(text.replace('SampleNode name="run_S2.fcs"', 'SampleNode name="run_S1.fcs"'))
    with pytest.raises(DataError, match=r"w.wsp: two samples are called 'run_S1.fcs', and FlowKit knows"):
        label_cells(path, workspace)
    workspace.write_text(text.replace('elsewhere/run_S2.fcs"', 'elsewhere/run%5FS1.fcs"'))
    with pytest.raises(DataError, match=r"samples 'run_S1.fcs' and 'run_S2.fcs' are both file 'run_S1.fcs'"):
        label_cells(path, workspace)
    with pytest.raises(DataError, match="first_event= goes with event numbers"):
        label_cells(path, workspace, first_event=1)


def test_samples_may_have_gates_of_their_own(path, tmp_path):
    gates = {"run_S1.fcs": [B_CELLS], "run_S2.fcs": []}
    label_cells(path, write_workspace(tmp_path / "w.wsp", gates))
    x = EVENTS["S1"]
    inside = (x[:, 1] < 50) & (x[:, 2] >= 60)
    assert labels_of(path) == [("B cells" if i else None) for i in inside] + [None] * COUNTS["S2"]


def test_fcs_files_are_looked_for_where_the_user_says(path, tmp_path):
    workspace = write_workspace(tmp_path / "w.wsp")
    (tmp_path / "fcs").rename(tmp_path / "moved")
    with pytest.raises(
        DataError, match=r"the FCS file of file 'run_S1.fcs' is not found \(run_S1.fcs\): .*--fcs"
    ):
        label_cells(path, workspace)
    for fcs in (tmp_path / "moved", str(tmp_path), sorted((tmp_path / "moved").iterdir())):
        label_cells(path, workspace, fcs=fcs)
        assert labels_of(path) == EXPECTED
        label_cells(path, workspace, fcs=fcs, gates=["B cells"])
    write_fcs(tmp_path / "moved" / "run_S1.lmd", EVENTS["S1"][:5])
    label_cells(path, workspace, fcs=tmp_path / "moved")  # the same name with its extension comes first
    label_cells(path, write_workspace(tmp_path / "moved" / "w.wsp"))  # beside the workspace
    assert labels_of(path) == EXPECTED
    with pytest.raises(DataError, match=r"fcs: .*nowhere does not exist"):
        label_cells(path, workspace, fcs=tmp_path / "nowhere")


def test_files_of_one_name_go_by_their_folders(tmp_path):
    files = []
    for day, (sample, x) in zip(("day1", "day2"), EVENTS.items(), strict=True):
        (tmp_path / "fcs" / day).mkdir(parents=True)
        write_fcs(tmp_path / "fcs" / day / "a.fcs", x)
        files.append({"path": f"D:\\old\\{day}\\a.fcs", "sample": sample, "n_events": len(x)})
    x, sample = np.vstack(list(EVENTS.values())), np.repeat(list(COUNTS), list(COUNTS.values()))
    path = make_study(tmp_path / "study.zarr", x=x, sample=sample, files=files, markers=CHANNELS)
    workspace = write_workspace(tmp_path / "w.wsp", files=("day2/a.fcs", "day1/a.fcs"))
    label_cells(path, workspace, fcs=tmp_path / "fcs")
    assert labels_of(path) == EXPECTED
    (tmp_path / "fcs" / "day1").rename(tmp_path / "fcs" / "monday")
    (tmp_path / "fcs" / "day2").rename(tmp_path / "fcs" / "tuesday")
    with pytest.raises(DataError, match=r"monday.a.fcs and .*tuesday.a.fcs may both be the FCS file of file"):
        label_cells(path, workspace, fcs=tmp_path / "fcs")


def test_a_study_that_knows_no_files_is_matched_by_sample_name(path, tmp_path):
    x, sample = np.vstack(list(EVENTS.values())), np.repeat(["run_S1", "run_S2"], list(COUNTS.values()))
    old = make_study(tmp_path / "old.zarr", x=x, sample=sample, files=(), markers=CHANNELS)
    label_cells(old, write_workspace(tmp_path / "w.wsp"), fcs=tmp_path / "fcs")
    assert labels_of(old) == EXPECTED


def test_an_fcs_file_that_changed_is_refused(path, tmp_path):
    workspace = write_workspace(tmp_path / "w.wsp")
    write_fcs(tmp_path / "fcs" / "run_S2.fcs", EVENTS["S2"][:-1])
    with pytest.raises(
        DataError, match=r"run_S2.fcs has 199 events, file 'run_S2.fcs' of the study 200: is it"
    ):
        label_cells(path, workspace)
    (tmp_path / "fcs" / "run_S2.fcs").write_text("no FCS")
    with pytest.raises(DataError, match=r"FlowKit cannot gate .*run_S2.fcs: "):
        label_cells(path, workspace)


@pytest.mark.parametrize(
    "text", ["", "<Workspace/>", "no XML", WORKSPACE.format(references="", samples="<Sample/>")]
)
def test_what_is_no_workspace_is_refused(path, tmp_path, text):
    (tmp_path / "w.wsp").write_text(text)
    with pytest.raises(DataError, match=r"w.wsp: FlowKit cannot read this workspace: "):
        label_cells(path, tmp_path / "w.wsp")


def test_without_flowkit_the_error_says_how_to_get_it(path, tmp_path):
    write_workspace(tmp_path / "w.wsp")
    script = """
        import sys
        sys.modules["flowkit"] = None  # as where it is not installed
        import scaleshift
        try:
            scaleshift.label_cells(*sys.argv[1:])
        except scaleshift.DataError as error:
            print(error)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(script), str(path), str(tmp_path / "w.wsp")]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert "needs flowkit" in done.stdout
    assert 'pip install "scaleshift[flowjo]"' in done.stdout
