"""FlowJo workspaces and folders of gates that were forged: refused in one line, nothing is read elsewhere."""

import gzip
import os

import flowio
import numpy as np
import pytest
from test_flowjo import CHANNELS, LYMPHOCYTES, population, rectangle, write_workspace

import scaleshift as ss

pytest.importorskip("flowkit")
X = np.random.default_rng(5).uniform(0, 100, (50, 3)).astype(np.float32)


@pytest.fixture
def gated(danger):
    """A study of one file, and what gates it."""
    with open(danger.work / "run_S1.fcs", "wb") as file:
        flowio.create_fcs(file, X.ravel().tolist(), CHANNELS)
    cells = ss.as_cells(X, sample=["run_S1"] * 50, marker=CHANNELS)
    ss.write_cells(cells, danger.work / "study.zarr")
    write_workspace(danger.work / "w.wsp", files=("run_S1.fcs",))
    return danger


def changed(old, new):
    def change(text, root):
        assert old in text
        return text.replace(old, new.format(root=root))

    return change


def with_document_type(declared, reference="&e;"):
    def change(text, root):
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE x [{declared.format(root=root)}]>'
        text = text.replace('<?xml version="1.0" encoding="UTF-8"?>', head)
        return text.replace('name="Lymphocytes"', f'name="Lymphocytes{reference}"')

    return change


def in_utf7(text, root):
    return text.replace("UTF-8", "UTF-7").encode("utf-7")


LAUGHS = "<!ENTITY e0 'ha'>" + "".join(f"<!ENTITY e{i} '{f'&e{i - 1};' * 10}'>" for i in range(1, 20))
WORKSPACES = {
    "entity_of_a_file": with_document_type('<!ENTITY e SYSTEM "file://{root}/secret.txt">'),
    "entity_of_the_network": with_document_type('<!ENTITY e SYSTEM "http://127.0.0.1:9/x">'),
    "parameter_entity": with_document_type('<!ENTITY % e SYSTEM "file://{root}/secret.txt"> %e;', ""),
    "billion_laughs": with_document_type(LAUGHS, "&e19;"),
    "quadratic": with_document_type(f"<!ENTITY e '{'a' * 10**5}'>", "&e;" * 10**4),
    "document_type_elsewhere": lambda text, root: text.replace(
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file://{root}/secret.txt">',
    ),
    "another_encoding": in_utf7,
    "deep": changed("<SampleList>", "<a>" * 50_000),
    "truncated": lambda text, root: text[: len(text) // 2],
    "nothing": lambda text, root: "",
    "endless_numbers": changed('"20"', '"1e999"'),
    "no_numbers": changed('"20"', '"=1+1"'),
    "sample_elsewhere": changed("run_S1.fcs", "../../../secret.txt"),
    "in_a_circle": changed(
        "</Population></Subpopulations>",
        '</Population><OrNode name="o" annotation="" owningGroup=""><Dependents>'
        '<Dependent name="o"/><Dependent name="o"/></Dependents></OrNode></Subpopulations>',
    ),
}


@pytest.mark.parametrize("what", WORKSPACES)
def test_a_forged_workspace_is_refused(gated, what):
    path = gated.work / "w.wsp"
    forged = WORKSPACES[what](path.read_text(), gated.root)
    path.write_bytes(forged) if isinstance(forged, bytes) else path.write_text(forged)
    gated.run("label", "study.zarr", "w.wsp", codes=(1,), names="w.wsp")


def test_laughs_cost_no_memory(gated):
    path = gated.work / "w.wsp"
    path.write_text(WORKSPACES["billion_laughs"](path.read_text(), gated.root))
    gated.alone("label", "study.zarr", "w.wsp", codes=(1,), names="document type")


@pytest.mark.parametrize("uri", ["file://{root}/keep/elsewhere.fcs", "../../keep/run_S1.fcs", "/dev/zero"])
def test_where_a_workspace_says_its_files_are_nothing_is_opened(gated, uri):
    """A file is looked for beside it, and where the user says."""
    path, text = gated.work / "w.wsp", (gated.work / "w.wsp").read_text()
    path.write_text(text.replace("file:/elsewhere/run_S1.fcs", uri.format(root=gated.root)))
    (gated.work / "run_S1.fcs").unlink()
    for name in ("run_S1.fcs", "elsewhere.fcs"):
        (gated.root / "keep" / name).write_bytes(b"FCS3.0 the secret")
    gated.run("label", "study.zarr", "w.wsp", codes=(1,), names="is not found")


def test_a_pipe_is_no_workspace(gated):
    (gated.work / "w.wsp").unlink()
    os.mkfifo(gated.work / "w.wsp")
    gated.run("label", "study.zarr", "w.wsp", codes=(1,), names="is a pipe")


GATE_NAMES = [
    "&lt;script>alert(1)&lt;/script>",
    "=1+1",
    "../../../etc/x",
    "[red]x[/red]",
    "&#x202e;x",
    "&#x9b;2J",
]


@pytest.mark.parametrize("name", GATE_NAMES, ids=range(6))
def test_a_marked_up_gate_is_a_label(gated, name):
    gate = population(name, rectangle(CD3=(None, 200)))
    write_workspace(gated.work / "w.wsp", gates=(gate,), files=("run_S1.fcs",))
    before = gated.around()
    gated.output.mkdir()
    os.rename(gated.work / "study.zarr", gated.output / "study.zarr")
    gated.run("label", "output/study.zarr", "w.wsp", codes=(0,))
    (label,) = ss.open_cells(gated.output / "study.zarr")["label"].values.tolist()
    assert label.strip("\u202e\x9b")[:2] in name.replace("&lt;", "<") + "2Jx"
    assert {p for p in gated.around() if "study.zarr" not in p} == {
        p for p in before if "study.zarr" not in p
    }


# Folders of gates, and tables --------------------------------------------------------------------------


def folder_of_links(work):
    os.symlink("/dev/zero", work / "gates" / "T.csv")


def pipes(work):
    os.mkfifo(work / "gates" / "T.csv")


def circles(work):
    os.symlink(work / "gates", work / "gates" / "again")
    (work / "gates" / "T.csv").write_text("")


def bombs(work):
    (work / "gates" / "T.csv.gz").write_bytes(gzip.compress(bytes(2**28)))


def huge_events(work):
    (work / "gates" / "T.csv").write_text(
        "sample,event\nrun_S1,99999999999999999999\nrun_S1,-1\nrun_S1,1e999\n"
    )


def no_events(work):
    (work / "gates" / "T.csv").write_text("sample,event\nrun_S1,__import__('os')\n")


@pytest.mark.parametrize("make", [folder_of_links, pipes, circles, bombs, huge_events, no_events])
def test_a_forged_folder_of_gates_is_refused(gated, make):
    (gated.work / "gates").mkdir()
    make(gated.work)
    gated.run("label", "study.zarr", "gates", codes=(1,), names="gates")


def test_the_gates_are_those_of_the_workspace(gated):
    """What the others were made of is fine."""
    gated.output.mkdir()
    os.rename(gated.work / "study.zarr", gated.output / "study.zarr")
    assert "Lymphocytes" in LYMPHOCYTES
    gated.run("label", "output/study.zarr", "w.wsp", codes=(0,))
