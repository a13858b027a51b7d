"""The tab key: verbs, options, choices, and names of the study on the line; quick, and silent."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main

ROOT = str(Path(ss.__file__).parents[1])  # also from another folder the same scaleshift
LABELS = ["B*", "CD4 T", "CD8 T", "NK"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a study: names with blanks and stars, metadata of three types, one missing."""
    path = tmp_path_factory.mktemp("completion")
    rng = np.random.default_rng(0)
    cells = ss.as_cells(
        rng.normal(size=(80, 3)),
        sample=np.repeat(["S1", "S2", "S 10", "S3"], 20),
        label=np.array([*LABELS, None], object)[np.arange(80) % 5],
        marker=["CD3", "CD45-RA", "CD19"],
    )
    cells = cells.assign_coords(
        day=("sample", [0, 3, 3, 7]),
        gated=("sample", [True, True, False, False]),
        arm=("sample", np.array(["drug", "control", "drug x", None], object)),
    )
    ss.write_cells(cells, path / "study.zarr")
    return path


@pytest.fixture
def completed(folder, monkeypatch):
    """What click's class for a shell says of a line whose last word is typed."""
    from scaleshift.cli import completing

    completing.register()
    monkeypatch.chdir(folder)

    def complete(*words, shell="zsh"):
        found = get_completion_class(shell)(main, {}, "scaleshift", "_SCALESHIFT_COMPLETE")
        return [item.value for item in found.get_completions(list(words[:-1]), words[-1])]

    return complete


STUDY = ("quantify", "study.zarr", "--source")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["qu"], ["quantify"]),
        (["quantify", "study.zarr", "--boot"], ["--bootstrap"]),
        (["quantify", "study.zarr", "--method", "hard"], ["hard-landmarks", "hard-fourier"]),
        (["slices", "study.zarr", "--method", ""], ["domino", "spotlight"]),
        (["compare", "study.zarr", "--methods", "cc,bb"], ["cc,bbse", "cc,bbse,"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["error", "study.zarr", "--model", "l"], ["lasso", "logistic"]),
        (["quantify", "study.zarr", "--scheduler", "slurm"], ["slurm", "slurm-runner"]),
        ([*STUDY, ""], ["sample", "day", "gated", "arm", "all"]),
        ([*STUDY, "da"], ["day == ", "day != ", "day in ("]),
        ([*STUDY, "day "], ["day == ", "day != ", "day in ("]),
        ([*STUDY, "day != "], ["day != 0", "day != 3", "day != 7"]),
        ([*STUDY, "gated == t"], ["gated == true"]),
        ([*STUDY, "arm == "], ["arm == drug", "arm == control", "arm == 'drug x'"]),
        ([*STUDY, "sample == S"], ["sample == S1", "sample == S2", "sample == S3"]),
        ([*STUDY, "sample in (S1, S2"], ["sample in (S1, S2, ", "sample in (S1, S2)"]),
        ([*STUDY, "day == 3 and gat"], [f"day == 3 and gated {o}" for o in ("== ", "!= ", "in (")]),
        ([*STUDY, "sample in (S1, 'S 10') and day == "], None),
        (["auc", "study.zarr", "--select", "day == 7"], ["day == 7"]),
        (["auc", "study.zarr", "--positive", ""], LABELS),
        (["auc", "study.zarr", "--positive", "CD"], ["CD4 T", "CD8 T"]),
        (["auc", "study.zarr", "--negative", "NK,CD8"], ["NK,CD8 T", "NK,CD8 T,"]),
        (["quantify", "study.zarr", "--markers", "CD3,"], ["CD3,CD45-RA", "CD3,CD19"]),
        (
            ["error", "study.zarr", "--outcome", ""],
            ["label", "CD3", "CD45-RA", "CD19", "day", "gated", "arm"],
        ),
    ],
)
def test_names_are_completed_from_the_line_and_its_study(completed, words, names):
    found = completed(*words)
    if names is None:
        names = [f"{words[-1]}{day}" for day in (0, 3, 7)]
    assert found == names


def test_a_store_is_a_folder_and_a_table_a_file(completed, folder):
    found = get_completion_class("zsh")(main, {}, "scaleshift", "_SCALESHIFT_COMPLETE")
    assert [item.type for item in found.get_completions(["quantify"], "stu")] == ["dir"]
    assert [item.type for item in found.get_completions(["label", "study.zarr"], "gat")] == ["file"]


@pytest.mark.parametrize(
    "damage", ["nothing", "a file", "empty", "no record", "broken", "no labels", "linked"]
)
def test_a_study_that_cannot_be_read_completes_nothing_and_says_nothing(
    tmp_path, folder, monkeypatch, damage, capfd
):
    import shutil

    from scaleshift.cli import completing

    completing.register()
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "study.zarr"
    if damage == "a file":
        store.write_text("no study")
    elif damage == "empty":
        store.mkdir()
    elif damage != "nothing":
        shutil.copytree(folder / "study.zarr", store)
    if damage == "no record":
        (store / "uns/scaleshift/c").unlink()
    if damage == "broken":
        (store / "uns/scaleshift/c").write_bytes(b"\xff" * 30)
    if damage == "no labels":
        shutil.rmtree(store / "obs/label")
    if damage == "linked":
        shutil.move(store / "obs/label/categories/c", tmp_path / "elsewhere")
        (store / "obs/label/categories/c").symlink_to(tmp_path / "elsewhere")
    found = get_completion_class("bash")(main, {}, "scaleshift", "_SCALESHIFT_COMPLETE")
    assert found.get_completions(["auc", "study.zarr", "--positive"], "") == []
    if damage not in ("no labels", "linked"):
        assert found.get_completions(["quantify", "study.zarr", "--source"], "sam") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_verb_prints_a_script_that_tells_how_to_install_it(shell):
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    lines = script.splitlines()
    assert any(line.startswith(f"# scaleshift completion {shell} > ") for line in lines[:2])
    assert "_SCALESHIFT_COMPLETE" in script
    if shell == "zsh":
        assert lines[0] == "#compdef scaleshift"


BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 ))
_scaleshift_completion "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory, folder):
    """A bash with the command and its script: `bash(*words)` -> what it would offer."""
    place = tmp_path_factory.mktemp("bash")
    command = place / "scaleshift"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m scaleshift "$@"\n')
    command.chmod(0o755)
    script = place / "script"
    script.write_text(CliRunner().invoke(main, ["completion", "bash"]).stdout)
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PYTHONPATH": ROOT}

    def complete(*words):
        called = ["bash", "--norc", "-c", BASH, "bash", str(script), "scaleshift", *words]
        done = subprocess.run(called, capture_output=True, text=True, cwd=folder, env=environment, check=True)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return complete


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["qua"], ["quantify"]),
        (["quantify", "study.zarr", "--meth"], ["--method"]),
        ([*STUDY, '"sample == S'], ["sample == S1", "sample == S2", "sample == S3"]),
        ([*STUDY, '"gated == true and da'], [f"gated == true and day {o}" for o in ("== ", "!= ", "in (")]),
        (["auc", "study.zarr", "--positive", "CD8"], ["CD8\\ T"]),
        (["auc", "study.zarr", "--positive", '"CD8'], ["CD8 T"]),
        (["auc", "study.zarr", "--positive", "B"], ["B\\*"]),
        (["auc", "missing.zarr", "--positive", ""], [""]),
    ],
)
def test_a_real_bash_completes(bash, words, names):
    assert bash(*words) == names


EVIL = [
    "$(touch canary)",
    "`touch canary`",
    'a"b',
    "a'b",
    "a\\",
    "*",
    "~",
    "x;touch canary",
    "a  b",
    "!!",
    "-n",
    "#",
]
NO_LINES = ["a\nplain,;touch canary", "a\rb", "\x1b[2J", "a\u202eb", "a\tb"]


@pytest.fixture
def hostile(folder):
    """A study whose labels a shell would run, expand or take for several."""
    path = folder / "hostile.zarr"
    if not path.exists():
        labels = np.array([*EVIL, *NO_LINES], object)
        ss.write_cells(ss.as_cells(np.ones((34, 1)), sample=["S"] * 34, label=np.tile(labels, 2)), path)
    return path.name


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_name_that_bash_has_completed_is_that_name_and_is_not_run(bash, hostile, folder, quote):
    typed = bash("auc", hostile, "--positive", quote)
    assert len(typed) == len(EVIL)
    for word in typed:
        script = f"printf %s {quote}{word}{quote}"
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=folder)
        assert done.stdout in EVIL
    assert not (folder / "canary").exists()


def test_a_name_of_several_lines_is_offered_to_no_shell(completed, hostile):
    for shell in ("bash", "zsh", "fish"):
        assert sorted(completed("auc", hostile, "--positive", "", shell=shell)) == sorted(EVIL)


def test_completing_names_of_a_study_imports_neither_pandas_nor_dask(folder):
    environment = {
        **os.environ,
        "PYTHONPATH": ROOT,
        "_SCALESHIFT_COMPLETE": "bash_complete",
        "COMP_WORDS": "scaleshift\nauc\nstudy.zarr\n--positive\nN",
        "COMP_CWORD": "4",
    }
    code = (
        "import sys; from scaleshift.cli import main\n"
        "try: main(prog_name='scaleshift')\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'dask', 'xarray', 'sklearn', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    called = [sys.executable, "-c", code]
    done = subprocess.run(called, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    assert done.stdout.strip() == "plain,NK"
