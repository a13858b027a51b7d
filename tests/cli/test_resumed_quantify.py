"""scaleshift quantify, killed and resumed: the same files to the byte, and nothing finished is done again."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.blocks.resuming import Kept
from scaleshift.cli import main
from scaleshift.quantify import pieces

RNG = np.random.default_rng(2)
N = 9_000
CLASS = RNG.integers(0, 3, N)
X = (RNG.normal(size=(N, 3)) + 4 * CLASS[:, None]).astype("f4")
SAMPLE = np.repeat([f"s{i}" for i in range(9)], N // 9)
ARGUMENTS = ["--source", "sample in (s0, s1)", "--method", "soft-fourier", "--bootstrap", "20"]

# The command line with small pieces; with a number as first argument it dies once it has kept so many parts.
MORTAL = """
import os, signal, sys
from scaleshift.blocks.resuming import Kept
from scaleshift.cli import main
from scaleshift.quantify import pieces
pieces.PIECE_ROWS = 1_000
lives, write = int(sys.argv.pop(1)), Kept.write
def mortal(self, name, made):
    global lives
    write(self, name, made)
    lives -= 1
    if lives == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Kept.write = mortal
main()
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    ss.write_cells(ss.as_cells(X, SAMPLE, np.array(["a", "b", "c"])[CLASS]), path, chunk_cells=1_500)
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1_000)


def quantify(study, output, *more):
    return CliRunner().invoke(main, ["quantify", str(study), *ARGUMENTS, "--output", str(output), *more])


def killed_after(lives, study, output):
    command = [sys.executable, "-c", MORTAL, str(lives), "quantify", str(study), *ARGUMENTS]
    return subprocess.run([*command, "--output", str(output)], capture_output=True, timeout=120).returncode


class Ended(BaseException):
    """What nothing between a part that is written and the test stops: as good as a process that is killed."""


def ended_after(lives, monkeypatch, *arguments):
    """The command line in this process, up to where so many parts are kept."""
    write, kept = Kept.write, []

    def mortal(self, name, made):
        write(self, name, made)
        kept.append(name)
        if len(kept) == lives:
            raise Ended

    with monkeypatch.context() as patched:
        patched.setattr(Kept, "write", mortal)
        with pytest.raises(Ended):
            CliRunner().invoke(main, ["quantify", *map(str, arguments)])


@pytest.fixture(scope="module")
def interrupted(study, tmp_path_factory):
    """The output folder of a run that was killed after choice, two passes, model and two of seven samples."""
    output = tmp_path_factory.mktemp("killed") / "results"
    assert killed_after(6, study, output) == -signal.SIGKILL
    return output


def test_a_killed_run_goes_on_to_the_same_bytes(study, interrupted, tmp_path, monkeypatch):
    assert quantify(study, tmp_path / "undisturbed").exit_code == 0
    kept = interrupted / "unfinished"
    assert sorted(p.name for p in kept.iterdir()) == ["choice", "fit", "job", "model", "samples"]
    refused = quantify(study, interrupted)
    assert refused.exit_code == 1
    assert "results/unfinished holds what an interrupted run of this command has finished" in refused.stderr
    answered = []
    monkeypatch.setattr(pieces, "_each", counting(pieces._each, answered))
    monkeypatch.setattr(ss.DFM, "fit", None)  # the model is there
    found = quantify(study, interrupted, "--resume")
    assert found.exit_code == 0, found.output
    assert len(answered) == 5
    assert not kept.exists()
    for name in ("proportions.csv", "gated.csv"):
        assert (interrupted / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


def counting(each, answered):
    def counted(answer, *more):
        def noted(rows):
            answered.append(rows)
            return answer(rows)

        return each(noted, *more)

    return counted


def test_what_is_kept_of_another_job_is_not_gone_on_with(study, tmp_path, monkeypatch):
    output = tmp_path / "results"
    ended_after(3, monkeypatch, study, *ARGUMENTS, "--output", output)
    found = quantify(study, output, "--resume", "--seed", "1")
    assert found.exit_code == 1
    assert "--resume: " in found.stderr
    assert "is of another study, selection or option" in found.stderr
    found = quantify(study, output, "--seed", "1")  # begins anew
    assert found.exit_code == 0
    assert not (output / "unfinished").exists()


def test_resume_without_anything_begins(study, tmp_path):
    assert quantify(study, tmp_path / "results", "--resume").exit_code == 0


def test_resume_without_output_is_wrong_usage(study):
    found = CliRunner().invoke(main, ["quantify", str(study), *ARGUMENTS, "--resume"])
    assert found.exit_code == 2
    assert "pass the --output of that run" in found.stderr


def test_another_folder_of_that_name_is_left_alone(study, tmp_path):
    (tmp_path / "results" / "unfinished").mkdir(parents=True)
    (tmp_path / "results" / "unfinished" / "thesis.txt").write_text("mine")
    found = quantify(study, tmp_path / "results")
    assert found.exit_code == 1
    assert "is no folder of an interrupted run" in found.stderr
    assert (tmp_path / "results" / "unfinished" / "thesis.txt").read_text() == "mine"


def test_a_saved_model_goes_on_too(study, tmp_path, monkeypatch):
    assert quantify(study, tmp_path / "first", "--save-model", str(tmp_path / "model")).exit_code == 0
    output = tmp_path / "results"
    ended_after(3, monkeypatch, study, "--model", tmp_path / "model", "--output", output)
    assert (output / "unfinished" / "samples").is_dir()
    arguments = ["quantify", str(study), "--model", str(tmp_path / "model"), "--output"]
    resumed = CliRunner().invoke(main, [*arguments, str(output), "--resume"])
    assert resumed.exit_code == 0, resumed.output
    assert CliRunner().invoke(main, [*arguments, str(tmp_path / "whole")]).exit_code == 0
    for name in ("proportions.csv", "gated.csv"):
        assert (output / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_model_of_other_cells_is_not_gone_on_with(study, tmp_path):
    """Whatever the study says of itself: its intensities were written over."""
    path = shutil.copytree(study, tmp_path / "study.zarr")
    output = tmp_path / "results"
    assert killed_after(4, path, output) == -signal.SIGKILL
    assert (output / "unfinished" / "model").is_dir()
    zarr.open_array(path / "X", mode="r+")[: N // 9] += 1
    found = quantify(path, output, "--resume")
    assert found.exit_code == 1
    assert "is of another study, selection or option" in found.stderr
    assert quantify(path, output).exit_code == 0


def test_a_run_that_failed_at_once_is_no_run_to_go_on_with(study, tmp_path):
    path = shutil.copytree(study, tmp_path / "study.zarr")
    chunk = path / "X" / "c" / "0" / "0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-1])
    found = quantify(path, tmp_path / "results")
    assert (found.exit_code, "chunk 0 of X" in found.stderr) == (1, True)
    chunk.write_bytes(whole)
    assert quantify(path, tmp_path / "results").exit_code == 0


def test_a_run_whose_folder_is_gone_says_that_another_one_has_finished(study, tmp_path, monkeypatch):
    def other_run(*given):
        shutil.rmtree(tmp_path / "results" / "unfinished")
        raise FileNotFoundError(2, "No such file or directory", "c")  # of a part that was being read

    monkeypatch.setattr(pieces, "_each", other_run)
    found = quantify(study, tmp_path / "results")
    assert found.exit_code == 1
    assert "results/unfinished is gone: another run of this command has finished meanwhile" in found.stderr
