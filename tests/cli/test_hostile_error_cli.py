"""scaleshift error with what it should not be given: one line, an exit code, nothing that is half done."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import scaleshift as ss
from scaleshift import persistence
from scaleshift.cli import main

MARKERS = ["CD3", "CD19", "VIA"]
N = 200  # cells a sample
SAMPLES = ["=1+1", "[red]x[/red]", "a\n\x1b[31m$_{", "rare"]
AGE = ["--model", "ols", "--outcome", "age"]
SOURCE = ["--source", "site == A"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Site A has two samples; a label is met in the last sample of site B alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4 * N, 3)).astype("f4")
    age = x[:, 0] + rng.normal(size=4 * N)
    label = np.where(x[:, 1] + rng.normal(size=4 * N) > 0, "T", "=B").astype(object)
    label[3 * N :] = "0 rare"
    cells = ss.as_cells(x, sample=np.repeat(SAMPLES, N), label=label, marker=MARKERS)
    site = {name: "AABB"[i] for i, name in enumerate(SAMPLES)}
    cells = cells.assign_coords(site=("sample", [site[name] for name in cells["sample"].values.tolist()]))
    path = tmp_path_factory.mktemp("hostile") / "study.zarr"
    ss.write_cells(cells, path, chunk_cells=150)
    for name, values in {"age": age, "infinite": np.where(np.arange(4 * N) == 7, np.inf, age)}.items():
        array = zarr.open_group(path, mode="r+")["obs"].create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=(300,)
        )
        array[:] = values
    return path


def error(*arguments, code=0):
    result = CliRunner().invoke(main, ["error", *map(str, arguments)])
    assert result.exit_code == code, result.output + str(result.exception)
    assert "Traceback" not in result.output
    return result


def told(result):
    """The error's line: there is one."""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line


def test_a_label_that_the_source_lacks_is_none_of_the_model_s(study):
    few = ["--model", "logistic", "--alpha", "0.1", "--bootstrap", "10", "--json"]
    result = json.loads(error(study, *few, *SOURCE, "--target", "site == B").stdout)
    assert 0 < result["targets"][0]["methods"][0]["error"] < 1


def test_infinite_outcomes_are_no_unknown_ones(study):
    shown = error(study, "--model", "ols", "--outcome", "infinite", *SOURCE, code=1)
    assert "1 infinite value(s)" in told(shown)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tol", "inf"], "tol=inf"),
        (["--alpha", "nan"], "alpha=nan"),
        (["--level", "nan"], "level=nan"),
        (["--groups", "sample", "--source", "sample == rare", "--target", "site == A"], "1 group"),
    ],
)
def test_numbers_without_a_meaning_are_refused(study, options, words):
    assert words in told(error(study, *AGE, *SOURCE, *options, code=1))


def test_a_state_that_cannot_be_written_is_refused_before_the_fit(study, tmp_path, monkeypatch):
    def fitted(*arguments, **options):
        raise AssertionError("fitted in vain")

    monkeypatch.setattr(ss.PredictionError, "fit", fitted)
    (tmp_path / "file").write_text("")
    shown = error(study, *AGE, *SOURCE, "--state", tmp_path / "file" / "state", code=1)
    assert "cannot be written" in told(shown)


def test_names_are_shown_and_never_run(study, tmp_path):
    out = tmp_path / "results"
    shown = error(study, *AGE, "--source", "sample == rare", "--by-sample", "--output", out)
    assert "\x1b" not in shown.output
    assert "[red]x[/red]" in shown.stdout
    rows = (out / "error.csv").read_text().split("\n")
    assert [row for row in rows if row.startswith("'=1+1,direct")]
    assert (out / "error.png").stat().st_size > 1000


def test_a_killed_update_leaves_the_state_as_it_was(study, tmp_path):
    """Killed where the new state is written, but not yet put in place."""
    state = tmp_path / "state"
    error(study, *AGE, *SOURCE, "--state", state, "--target", "sample == rare")
    before = persistence.load(state)
    program = (
        "import os, signal, scaleshift.persistence as p\n"
        "write = p._write_arrays\n"
        "def killed(*arguments):\n"
        "    write(*arguments)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "p._write_arrays = killed\n"
        "from scaleshift.cli import main\n"
        f"main(['error', {str(study)!r}, '--state', {str(state)!r}, '--target', 'site == B'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, env=os.environ)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert persistence.load(state).fingerprint == before.fingerprint
    error(study, "--state", state, "--target", "site == B")
    assert persistence.load(state).model.targets_["target"].n_updates == 2
