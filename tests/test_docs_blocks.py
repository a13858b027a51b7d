"""Code in the documentation: Python blocks run on a made-up study, and commands name what there is."""

import ast
import re
import shlex
import shutil
from pathlib import Path

import anndata
import click
import flowio
import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift.cli import main

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="no docs beside the tests")
PAGES = sorted([*DOCS.rglob("*.md"), *TOP.glob("*.md"), *TOP.glob("cluster/**/*.md")])
ELSEWHERE = ("tls://", '"slurm"')  # in a block that needs another machine

NAMES = ["S01", "S02", "S03", "S07", "S09", "S10", "S11", "S15"]
LABELS = ["B cells", "CD4", "CD8", "NK", "pDC"]
MARKERS = ["CD3", "CD4", "CD8", "CD19", "CD56", "age"]
N = 150  # cells of a sample


def name_of(page):
    return page.relative_to(TOP).as_posix()


def blocks(page, language):
    tokens = MarkdownIt().parse(page.read_text())
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def with_blocks(language):
    return [pytest.param(page, id=name_of(page)) for page in PAGES if blocks(page, language)]


# Python -------------------------------------------------------------------------------------------------


def draw(seed, samples=NAMES):
    """Cells of five classes, one in six of them without a label: X, labels, samples."""
    rng = np.random.default_rng(seed)
    sample = np.repeat(samples, N)
    code = rng.integers(0, len(LABELS), len(sample))
    X = 4.0 * np.eye(len(LABELS), len(MARKERS))[code] + rng.normal(size=(len(sample), len(MARKERS)))
    label = np.array(LABELS, object)[code]
    label[rng.random(len(sample)) < 1 / 6] = None
    return X.astype(np.float32), label, sample


def study(seed, samples=NAMES):
    X, label, sample = draw(seed, samples)
    cells = ss.as_cells(X, sample=sample, label=label, marker=MARKERS)
    gated = ("sample", [name in ("S01", "S02", "S03", "S09") for name in samples])
    site = ("sample", ["A" if name in ("S01", "S02") else "B" for name in samples])
    return cells.assign_coords(gated=gated, site=site)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with studies in it, and what pages speak of."""
    monkeypatch.chdir(tmp_path)
    ss.write_cells(study(0), "study.zarr")
    ss.write_cells(study(1), "other.zarr")
    ss.write_cells(study(2, [f"S{number}" for number in range(21, 25)]), "second.zarr")
    X, y, samples = draw(0)
    X_new, _, _ = draw(1)
    known = y != None  # noqa: E711  # element by element
    model = ss.DFM("landmarks", random_state=0).fit(ss.open_cells("study.zarr", samples=["S01", "S02"]))
    return {
        "np": np,
        "ss": ss,
        **{
            "X": X,
            "y": y,
            "labels": y,
            "samples": samples,
            "markers": MARKERS,
            "X_new": X_new,
        },
        "donors": samples,
        **{"X_b": X_new[:500], "X_c": X_new[500:900]},
        "classifier": LogisticRegression(max_iter=1_000).fit(X[known], y[known].astype(str)),
        "known": known,
        "model": model,
        "result": model.predict(ss.open_cells("study.zarr")),
        "cells_of_monday": ss.open_cells("other.zarr", samples=["S10"]),
        "cells_of_tuesday": ss.open_cells("other.zarr", samples=["S11"]),
        "adata": anndata.AnnData(X),
    }


def trained(world):
    """A classifier, and rows that all have a label."""
    known = world["known"]
    return {"model": world["classifier"], "X": world["X"][known], "y": world["y"][known].astype(str)}


def numbers(world):
    """Outcomes that are numbers."""
    return {"X": world["X"], "y": world["X"] @ np.arange(1.0, 1 + len(MARKERS))}


def two_labels(world):
    return {"X": world["X"], "y": np.where(world["y"] == "B cells", "B_cells", "T")}


#: (page, number of the block) -> what names stand for there
MEANT = {
    ("README.md", 1): trained,
    ("README.md", 2): two_labels,
    ("README.md", 3): trained,
    ("docs/first/watching-a-model.md", 0): trained,
    ("docs/guide/diagnosis.md", 2): lambda world: {
        **trained(world),
        "result": ss.DFM(random_state=0).fit(*draw(0)).predict(ss.open_cells("study.zarr")),
    },
    ("docs/guide/error.md", 0): numbers,
    ("docs/guide/features.md", 2): lambda world: {
        "y": world["y"] == "NK",
        "score": world["X"][:, LABELS.index("NK")],
    },
    ("docs/guide/slices.md", 0): trained,
}


@pytest.mark.parametrize("page", with_blocks("python"))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_python_blocks_run(page, world, capsys):
    names = dict(world)
    for number, block in enumerate(blocks(page, "python")):
        code = compile(block, f"{name_of(page)}, block {number}", "exec")
        if page.name in ("files.md", "cluster.md") or any(word in block for word in ELSEWHERE):
            continue  # it is Python, at least
        if "write_cells" in block:
            shutil.rmtree("study.zarr")
        names.update(MEANT.get((name_of(page), number), lambda world: {})(world))
        exec(code, names)
        check_results(block, names)
        plt.close("all")


def check_results(block, names):
    """Lines such as `float(x)  # 0.5` tell what they give."""
    for line in block.splitlines():
        expression, _, told = line.partition("  # ")
        try:
            wanted = ast.literal_eval(told)
            ast.parse(expression, mode="eval")
        except (SyntaxError, ValueError):
            continue
        assert eval(expression, names) == wanted, line


# Commands -----------------------------------------------------------------------------------------------


def commands(page, inline=True):
    """Arguments of each call of scaleshift in a page's shell blocks, and in its running text."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    for token in MarkdownIt().parse(page.read_text()) if inline else ():
        spans = [child.content for child in token.children or [] if child.type == "code_inline"]
        lines += [span for span in spans if span.startswith("scaleshift ")]
    for line in lines:
        words = shlex.split(line, comments=True)
        while any(word.split("/")[-1] == "scaleshift" for word in words):
            place = [word.split("/")[-1] for word in words].index("scaleshift")
            words = words[place + 1 :]
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in PAGES])
def test_commands_name_verbs_and_options_that_exist(page):
    context = click.Context(main)
    for words in commands(page):
        if not words or words[0].startswith(("-", "VERB", "...")):
            continue
        verb = main.get_command(context, words[0])
        assert verb is not None, words
        known = {option for parameter in verb.params for option in parameter.opts}
        known |= {"--help"}
        asked = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert asked <= known, words


def test_options_in_the_guide_are_those_of_some_verb():
    known = {
        option for verb in main.commands.values() for parameter in verb.params for option in parameter.opts
    }
    unknown = []
    for page in [*DOCS.glob("guide/*.md"), *DOCS.glob("first/*.md"), DOCS / "limits.md"]:
        for option in re.findall(r"`(--[a-z-]+)", page.read_text()):
            unknown += [(page.name, option)] if option not in known else []
    assert not unknown


# The commands of the first pages, as they stand ---------------------------------------------------------


def run_commands(page):
    """What a page's shell blocks call, but for what needs half a minute, or SLURM; returns the verbs."""
    done = []
    for words in commands(page, inline=False):
        if words[0] == "demo" or "--resume" in words:
            continue
        found = CliRunner().invoke(main, words)
        plt.close("all")
        assert found.exit_code in (0, 3), (words, found.output)
        done.append(words[0])
    return done


def test_commands_of_the_first_page_for_files_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fcs_folder(tmp_path / "data")
    done = run_commands(DOCS / "first/fcs-files.md")
    assert done == ["check", "ingest", "label", "quantify", "quantify"]
    assert Path("results/proportions.xlsx").exists()
    assert Path("check-S03/gated.csv").exists()


def fcs_folder(data):
    """Files of four samples, of which three are gated; beside their folder a sheet, and gates."""
    data.mkdir()
    files, gates = [], []
    for number in range(1, 5):
        X, label, _ = draw(number, ["one"])
        name, gated = f"S0{number}.fcs", number < 4
        with (data / name).open("wb") as file:
            flowio.create_fcs(file, (150 * np.sinh(X)).ravel().tolist(), MARKERS)
        files.append(f"{name},S0{number},{gated}")
        gates += [f"{name},{event},{one}" for event, one in enumerate(label) if one and gated]
    Path("samples.csv").write_text("\n".join(["file_name,sample_id,gated", *files, ""]))
    Path("gates.csv").write_text("\n".join(["file,event,label", *gates, ""]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_commands_of_the_first_page_for_models_run(world):
    skops = pytest.importorskip("skops.io", reason="needs the extra skops")
    skops.dump(world["classifier"], "classifier.skops")
    Path("other.zarr").rename("tonight.zarr")
    done = run_commands(DOCS / "first/watching-a-model.md")
    assert done == ["error", "error", "error", "error", "slices"]


def test_commands_of_the_first_page_for_clusters_run(world):
    assert run_commands(DOCS / "first/large-data-on-slurm.md") == ["quantify", "quantify"]
