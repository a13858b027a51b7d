"""What CONTRIBUTING.md says is so: files and names exist, arrows hold, its example runs."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "scaleshift"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = {part.split("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}
QUOTED = re.compile(r"`([^`]+)`")
SCRIPT = """
import sys
import numpy as np
import scaleshift as ss
from scaleshift.quantify import methods

rng = np.random.default_rng(0)
x = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
model = methods.make("count-likelihood", random_state=0, n_bootstrap=20).fit(x, np.repeat(["a", "b"], 500))
assert type(model) is ss.CountLikelihood
found = model.predict(target)
assert abs(found["proportion"].values - [[0.9, 0.1]]).max() < 0.02, found
assert (found["proportion_low"] < found["proportion"]).all()
model.save(sys.argv[1])
assert ss.load(sys.argv[1]).predict(target).identical(found)
"""


def rows(section):
    """Cells of the rows of all tables of a section, without their heads."""
    lines = [line for line in SECTIONS[section].split("\n") if line.startswith("|")]
    heads = {i + step for i, line in enumerate(lines) if line.startswith("|---") for step in (-1, 0)}
    return [
        [cell.strip() for cell in line[1:-1].split(" | ")] for i, line in enumerate(lines) if i not in heads
    ]


def quoted(cell):
    return QUOTED.findall(cell)


def place(path, folders=()):
    """Where a path of the text lies: in one of the folders, in the package, or in the repository."""
    if "*" in path:
        return next(chain.from_iterable((PACKAGE / f).glob(path) for f in folders), ROOT / path)
    among = [*(PACKAGE / folder for folder in folders), PACKAGE, ROOT]
    return next((found / path for found in among if (found / path).exists()), ROOT / path)


def names_of(path):
    """Classes, functions and constants that a module defines."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {
            each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)
        }
    return names


def is_path(word):
    return "/" in word or word.endswith((".py", ".md", ".cu", ".cff"))


QUESTIONS = rows("Where is ...?")


def test_at_least_fifteen_questions_are_answered():
    assert len(QUESTIONS) >= 15


@pytest.mark.parametrize("row", QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_the_answer_is_there(row):
    _, files, names = row
    paths = [place(name) for name in quoted(files)]
    assert paths
    assert not [str(path) for path in paths if not path.is_file()]
    defined = set().union(*map(names_of, paths))
    assert quoted(names)
    assert set(quoted(names)) <= defined
    assert all(set(quoted(names)) & names_of(path) for path in paths), "a file without a name of its own"


def test_every_folder_of_the_package_stands_in_the_table_and_no_other():
    told = [folder for row in rows("The folders, by question") for folder in quoted(row[0])]
    found = {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.rglob("*/__init__.py")} | {"data/"}
    assert sorted(told) == sorted(found)


def test_files_of_the_folders_exist():
    words = [
        (row, word) for row in rows("The folders, by question") for word in quoted(row[1]) if is_path(word)
    ]
    assert words
    assert not [word for row, word in words if not place(word, quoted(row[0])).exists()]


def test_every_path_of_the_prose_exists():
    prose = re.sub(r"```.*?```|^\|.*?$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
    elsewhere = {
        "../shared",
        "quantify/families/count_likelihood.py",
    }  # beside the checkout, and the example's
    paths = {word for text in quoted(prose) for word in text.split() if is_path(word)} - elsewhere
    assert len(paths) > 8
    assert not [word for word in paths if not (place(word).exists() or list(ROOT.glob(word)))]


def test_what_is_new_is_entered_where_the_table_says():
    told = [
        (name, path)
        for row in rows("Add something else")
        for name, path in re.findall(r"`(\w+)` of `(\S+)`", row[2])
    ]
    assert len(told) >= 15
    assert not [(name, path) for name, path in told if name not in names_of(place(path))]
    paths = [
        word
        for row in rows("Add something else")
        for word in quoted(row[1])
        if is_path(word) and "*" not in word
    ]
    assert not [word for word in paths if not place(word).exists()]


def test_folders_import_what_the_arrows_allow():
    """Names are looked for anywhere in a module: an import inside a function counts."""
    block = re.findall(r"```text\n(.*?)```", SECTIONS["The house in a picture"], re.DOTALL)[1]
    level = {name: i for i, line in enumerate(block.split("\n")) for name in line.split()}
    assert set(level) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    wrong = []
    for path in PACKAGE.rglob("*/*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        for module in imported(path):
            other = module.split(".")[1] if module.count(".") else ""
            if other in level and other != own and level[other] <= level[own]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert not wrong


def imported(path):
    """Names of our own that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("scaleshift."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scaleshift":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_kernels_and_solve_know_no_dask():
    paths = [*PACKAGE.glob("kernels/**/*.py"), *PACKAGE.glob("solve/*.py")]
    assert len(paths) > 20
    forbidden = re.compile(r"^\s*(?:import|from) (?:dask|distributed|xarray)\b", re.MULTILINE)
    assert not [str(path) for path in paths if forbidden.search(path.read_text())]


# The example ------------------------------------------------------------------------------------------------


def with_the_example(copy):
    """Do in a copy of the repository what the section tells, and nothing else."""
    section = SECTIONS["Add a method: one file"]
    path = re.search(r"This is all of `(\S+)`", section).group(1)
    (copy / "scaleshift" / path).write_text(re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1))
    for file, below, line in rows("Add a method: one file"):
        at = copy / quoted(file)[0]
        at = at if at.exists() else copy / "scaleshift" / quoted(file)[0]
        lines = at.read_text().split("\n")
        first = next(i for i, text in enumerate(lines) if text.startswith(quoted(below)[0]))
        at.write_text("\n".join([*lines[: first + 1], "    " + quoted(line)[0], *lines[first + 1 :]]))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    copy = tmp_path_factory.mktemp("repository")
    for name in ("scaleshift", "tests/quantify", "benchmarks"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    for name in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    with_the_example(copy)
    return copy


def run(copy, *words):
    own = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *words], cwd=copy, capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_new_method_answers_and_is_saved(copy, tmp_path):
    run(copy, "-c", SCRIPT, str(tmp_path / "model"))


@pytest.mark.slow
def test_the_new_method_does_what_every_family_must(copy):
    run(
        copy,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/quantify/test_families.py",
        "-k",
        "likelihood",
    )


# How to run everything --------------------------------------------------------------------------------------


def commands():
    block = re.search(r"```sh\n(.*?)```", SECTIONS["How to run everything"], re.DOTALL).group(1)
    return [line.split("  #")[0].strip() for line in block.split("\n") if line]


def test_commands_name_what_there_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    markers = {each.split(":")[0] for each in project["tool"]["pytest"]["ini_options"]["markers"]}
    lines = "\n".join(commands())
    assert set(re.findall(r"-m (?!pytest|venv|sphinx)(\w+)", lines)) <= markers
    assert set(re.findall(r"\.\[(\w+)\]", lines)) <= set(project["project"]["optional-dependencies"])
    paths = re.findall(r"(?<=\s)(?:tests|benchmarks|scaleshift)/\S*|^\.ci/\w+", lines, re.MULTILINE)
    assert len(paths) >= 4
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_benchmarks_are_the_scripts_that_there_are():
    told = {word for row in rows("Benchmarks") for word in quoted(row[1]) if word.endswith(".py")}
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()}
    assert told == scripts - {"run.py", "make_demo_data.py"}


def test_every_todo_has_an_owner():
    owners = re.search(r"Owners: (.*)\.\n", SECTIONS["Habits"]).group(1)
    names = set() if owners == "nobody" else {name.strip() for name in owners.split(",")}
    folders = ("scaleshift", "tests", "benchmarks", "docs", "examples", "cluster", ".ci")
    paths = chain(ROOT.glob("*.*"), *((ROOT / folder).rglob("*") for folder in folders))
    found = []
    for path in set(paths) - {Path(__file__), ROOT / "CONTRIBUTING.md"}:
        if path.suffix in (".py", ".cu", ".hpp", ".md", ".yaml", ".toml", ".sh", "") and path.is_file():
            marks = re.findall(r"\b(TODO|FIXME|XXX)\b(?:\(([\w-]+)\))?", path.read_text(errors="replace"))
            found += [(str(path), mark) for mark, owner in marks if owner not in names]
    assert not found
