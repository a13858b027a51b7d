"""A scheduler that answers, one that does not, and programs that send jobs."""

import dask
import pytest
from distributed import LocalCluster

from scaleshift.doctor import cluster


def found():
    return {finding.name: finding for finding in cluster.clusters()}


@pytest.fixture(scope="module")
def address():
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0"
    ) as c:
        yield c.scheduler_address


def test_a_scheduler_that_answers_tells_its_workers(address):
    with dask.config.set({"scheduler-address": address}):
        findings = found()
    assert findings["Dask scheduler"].status == "ok"
    assert findings["Dask scheduler"].facts == {
        "address": address,
        "answers": True,
        "workers": 1,
        "threads": 2,
    }
    assert findings["versions there"].value == "the same as here"


def test_a_scheduler_that_does_not_answer_is_a_problem_and_no_secret_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS", 0.3)
    for secret, why in (
        ("tcp://me:hunter2@127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1: "),
        ("tcp://127.0.0.1:1/hunter2", "no Dask scheduler answers at tcp://127.0.0.1:1: nobody listens there"),
        ("magic://127.0.0.1:1?k=hunter2", "magic://127.0.0.1:1 is no address of a scheduler"),
    ):
        with dask.config.set({"scheduler-address": secret}):
            finding = found()["Dask scheduler"]
        assert finding.status == "problem"
        assert finding.value.startswith(why)
        assert "hunter2" not in str(finding)
        assert "DASK_SCHEDULER_ADDRESS" in finding.advice


def test_no_address_is_no_problem():
    with dask.config.set({"scheduler-address": None}):
        assert found()["Dask scheduler"].status == "missing"


@pytest.mark.parametrize(
    ("name", "program", "extra"),
    [("SLURM", "sbatch", "slurm"), ("Kubernetes", "kubectl", "kubernetes")],
)
def test_a_manager_without_its_package_tells_how_to_get_it(tmp_path, monkeypatch, name, program, extra):
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = found()[name]
    assert finding.facts["found"]
    if finding.facts["installed"] is None:
        assert finding.status == "missing"
        assert finding.advice == f'pip install "scaleshift[{extra}]"'


@pytest.mark.parametrize("address", ["tcp://u:p://w/x@host:1", "u:p@host:1/p", "tls://host:1#p"])
def test_an_address_is_told_without_secrets(address):
    assert cluster.public(address).removeprefix("tcp://").removeprefix("tls://") == "host:1"


def test_every_other_version_is_named():
    here = {"python": "3.11.2", "numba": "0.68", "zarr": "3.1"}
    there = [{**here, "numba": "0.67"}, {**here, "numba": None, "python": "3.12.1"}]
    assert cluster.differences(here, there) == ["numba (0.68 here, 0.67, none)", "python (3.11 here, 3.12)"]
    assert cluster.differences(here, [here]) == []
