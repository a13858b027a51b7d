"""scaleshift doctor as its users meet it."""

import json

import dask
import pytest
from click.testing import CliRunner

import scaleshift as ss
from scaleshift.cli import main
from scaleshift.doctor import SECTIONS, trial


@pytest.fixture(autouse=True)
def no_cluster():
    with dask.config.set({"scheduler-address": None}):
        yield


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["doctor", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_whole_installation_is_fine():
    told = run()
    assert set(SECTIONS) <= {line.strip() for line in told.splitlines()}
    assert ss.__version__ in told
    assert "problem" not in told


def test_json_is_versioned_and_tells_every_section():
    told = json.loads(run("--json"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert told["schema"] == "scaleshift.doctor/1"
    assert told["fine"] is True
    assert list(told["sections"]) == [
        "versions",
        "CPU",
        "memory",
        "disk",
        "GPU",
        "cluster",
        "extras",
        "self test",
    ]
    findings = [finding for section in told["sections"].values() for finding in section]
    assert all(set(f) == {"name", "status", "value", "advice", "facts"} for f in findings)
    assert {f["status"] for f in findings} <= {"ok", "missing"}
    first, second = told["sections"]["self test"]
    assert first["facts"]["error"] == second["facts"]["error"] < 0.02


def test_a_scheduler_that_does_not_answer_is_exit_code_1(monkeypatch):
    monkeypatch.setattr("scaleshift.doctor.cluster.SECONDS", 0.3)
    with dask.config.set({"scheduler-address": "tcp://127.0.0.1:1"}):
        told = json.loads(run("--json", code=1))
    assert told["fine"] is False
    assert told["sections"]["cluster"][0]["status"] == "problem"


def test_wrong_numbers_are_exit_code_1(monkeypatch):
    monkeypatch.setattr(trial, "TOLERANCE", 0.0)
    told = run(code=1)
    assert "a share is wrong by" in told


def test_what_cannot_be_looked_at_does_not_hide_the_rest():
    with dask.config.set({"temporary-directory": 3}):  # no path
        told = json.loads(run("--json", code=1))
    assert told["sections"]["disk"][0]["status"] == "problem"
    assert told["sections"]["self test"][0]["status"] == "ok"


def test_the_environment_is_not_told(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    assert "hunter2" not in run() + run("--json")
