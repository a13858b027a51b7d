"""Help teaches: verbs in the order of work, options by what they are for, examples at the end."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from scaleshift.cli import SECTIONS, main

VERBS = [verb for verb in main.commands if find_spec(f"scaleshift.cli.{verb}")]
DOCS = Path(__file__).parents[2] / "docs"


def shown(*arguments, code=0):
    found = CliRunner().invoke(main, list(arguments), prog_name="scaleshift", env={"COLUMNS": "300"})
    assert found.exit_code == code, found.output
    return found.output


def test_the_first_page_has_each_verb_once_with_its_question_in_the_order_of_work():
    text = shown("--help")
    for title, verbs in SECTIONS.items():
        assert f"\n{title}:\n" in text
        for verb, question in verbs.items():
            assert re.search(rf"^  {verb} +{re.escape(question)}$", text, re.M)
    places = [text.index(f"\n  {verb} ") for verb in VERBS]
    assert places == sorted(places)
    assert VERBS.index("check") < VERBS.index("ingest") < VERBS.index("label") < VERBS.index("quantify")


def test_the_first_page_tells_first_steps_docs_and_exit_codes():
    text = shown("--help")
    steps = text.split("First steps:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[1] for line in steps] == ["demo", "check", "ingest", "label", "quantify"]
    assert "scaleshift VERB --help" in text
    assert "0 done, 1 failed, 2 wrong usage, 3 done and an alarm rang" in text
    named = re.search(r"docs/\w+\.\w+", text)[0]
    assert (DOCS.parent / named).exists()


def test_without_a_verb_there_is_help():
    alone = CliRunner().invoke(main, [], prog_name="scaleshift")
    assert alone.output.rstrip() == shown("--help").rstrip() or "First steps:" in alone.output
    assert alone.exit_code == _code_of_click()


def _code_of_click():
    return CliRunner().invoke(click.Group("group"), []).exit_code


def test_the_first_page_imports_no_verb():
    code = (
        "import sys; from scaleshift.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'dask', 'rich', 'scaleshift.cli.quantify'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_sections_examples_at_the_end_and_no_wide_line(verb):
    text = shown(verb, "--help")
    assert max(map(len, text.splitlines())) <= 100
    last = text.split("\nExamples:\n")[1]
    assert f"scaleshift {verb} " in f"{last} "
    command = main.commands[verb]
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert all(getattr(one, "section", None) for one in options), "an option without a section"
    assert all(one.help for one in options)


@pytest.mark.parametrize("verb", VERBS)
def test_examples_are_commands_that_can_be_parsed(verb, tmp_path, monkeypatch):
    import shlex

    monkeypatch.chdir(tmp_path)  # where paths that must exist do
    for name in ("samples.xlsx", "panel.csv"):
        Path(name).touch()
    lines = [one for one in main.commands[verb].examples.strip().splitlines() if one.startswith("scaleshift")]
    assert lines
    for line in lines:
        first, name, *arguments = shlex.split(line.split(" > ")[0])
        assert first == "scaleshift"
        main.commands[name].make_context(name, arguments).close()


@pytest.mark.parametrize(
    ("option", "verb"),
    [("bootstrap", "quantify"), ("method", "slices"), ("chunk-cells", "ingest"), ("output", "demo")],
)
def test_defaults_are_shown(option, verb):
    found = re.search(rf"--{option} (.*?)(?=\n  --|\n\n)", shown(verb, "--help"), re.S)[1]
    default = next(p.default for p in main.commands[verb].params if f"--{option}" in p.opts)
    assert f"[default: {default}" in " ".join(found.split())


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["quantfy", "a.zarr"], "there is no verb 'quantfy'; did you mean 'quantify'?"),
        (["ingets"], "did you mean 'ingest'?"),
        (["QUANTIFY"], "did you mean 'quantify'?"),
        (["quantify", "a.zarr", "--sorce", "x"], "there is no option --sorce; did you mean '--source'?"),
        (["error", "a.zarr", "--alarm-abov", "1"], "did you mean '--alarm-above'?"),
        (
            ["quantify", "a.zarr", "--source", "all", "--method", "soft-furier"],
            "did you mean 'soft-fourier'?",
        ),
        (["slices", "a.zarr", "--method", "domno"], "did you mean 'domino'?"),
        (["auc", "a.zarr", "--positive", "x", "--solver", "momments"], "did you mean 'moments'?"),
        (["auc", "a.zarr", "--positive", "x", "--selection", "onese"], "did you mean 'one_se'?"),
        (["compare", "a.zarr", "--methods", "soft-landmark"], "did you mean 'soft-landmarks'?"),
        (["error", "a.zarr", "--model", "ols", "--method", "directt"], "did you mean 'direct'?"),
        (["error", "a.zarr", "--model", "laso"], "did you mean 'lasso'?"),
        (["completion", "bsh"], "did you mean 'bash'?"),
        (["error", "a.zarr", "--model", "ols", "--loss", "square"], "did you mean 'squared'?"),
    ],
)
def test_a_misspelt_name_is_wrong_usage_and_the_right_one_is_suggested(arguments, meant):
    assert meant in " ".join(shown(*arguments, code=2).split())


def test_a_name_that_is_like_no_other_gets_those_there_are():
    assert "expected one of auto, open-set, cc," in " ".join(
        shown("quantify", "a.zarr", "--source", "all", "--method", "magic", code=2).split()
    )
    assert "known: demo, doctor, check" in shown("xyzzy", code=2)


def test_the_command_starts_quickly_enough_for_the_tab_key():
    """A quarter of what numpy, Dask and xarray alone take, in CPU seconds."""

    def seconds(code):
        told = "import time; print(time.process_time())"
        taken = [
            float(
                subprocess.run(
                    [sys.executable, "-c", f"{code}; {told}"], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(3)
        ]
        return sorted(taken)[1]

    assert seconds("import scaleshift.cli") < seconds("import numpy, dask.array, xarray") / 4
    assert os.environ.get("_SCALESHIFT_COMPLETE") is None
