"""``--scheduler``: what it takes, what it says of what it does not take, and what an interrupt leaves."""

import gc
import json
import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from distributed import LocalCluster

import scaleshift as ss
from scaleshift.cli import clusters, main
from scaleshift.errors import ClusterError

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two samples of two classes in several chunks."""
    path = tmp_path_factory.mktemp("scheduler") / "study.zarr"
    code = np.r_[np.arange(2_000) % 2, (np.arange(2_000) % 4 == 0).astype(int)]
    x = RNG.standard_normal((4_000, 2)) + 6 * code[:, None]
    sample = np.repeat(["S1", "S2"], 2_000)
    cells = ss.as_cells(x, sample, np.array(["A", "B"])[code], marker=["CD3", "CD19"])
    ss.write_cells(cells, path, chunk_cells=1_000)
    return path


def run(study, scheduler, code=0):
    arguments = ["quantify", str(study), "--source", "sample == S1", "--json", "--quiet"]
    found = CliRunner().invoke(main, [*arguments, "--scheduler", scheduler])
    assert found.exit_code == code, found.output
    return found


@pytest.fixture(scope="module")
def expected(study):
    return json.loads(run(study, "local").stdout)["samples"]


def test_processes_of_this_machine_give_the_same_numbers_and_end(study, expected, tmp_path):
    options = tmp_path / "one.yaml"
    options.write_text("n_workers: 1\nthreads_per_worker: 2\n")
    before = set(psutil.Process().children(recursive=True))
    found = json.loads(run(study, f"processes:{options}").stdout)["samples"]
    assert found == expected
    left = [
        p for p in set(psutil.Process().children(recursive=True)) - before if "spawn_main" in str(p.cmdline())
    ]
    assert left == []


def test_a_scheduler_is_found_by_its_address_and_by_its_file(study, expected, tmp_path):
    path = tmp_path / "scheduler.json"
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        path.write_text(json.dumps({"address": cluster.scheduler_address}))
        for scheduler in (cluster.scheduler_address, str(path)):
            assert json.loads(run(study, scheduler).stdout)["samples"] == expected
        assert cluster.scheduler.status.name == "running"


@pytest.mark.slow
def test_jobs_of_a_batch_system_give_the_same_numbers(study, expected, tmp_path, monkeypatch):
    """By sbatch and scancel of two shell scripts."""
    pytest.importorskip("dask_jobqueue")
    pytest.importorskip("cryptography")
    import shell_jobs

    shell_jobs.install(tmp_path)
    (tmp_path / "submit").rename(tmp_path / "sbatch")
    (tmp_path / "cancel").rename(tmp_path / "scancel")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    options = tmp_path / "night.yaml"
    options.write_text("cores: 1\nmemory: 1GB\ninterface: lo\nwalltime: '00:10:00'\njobs: 1\n")
    assert json.loads(run(study, f"slurm:{options}").stdout)["samples"] == expected
    assert not list(tmp_path.glob(".scaleshift-tls-*"))


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (
            "slrum",
            "--scheduler slrum: no kind of cluster is called 'slrum': did you mean 'slurm'? There are local,",
        ),
        ("slrum:night.yaml", "no kind of cluster is called 'slrum': did you mean 'slurm'?"),
        (
            "local:night.yaml",
            "local is threads of this machine, and takes no options: did you mean 'processes'?",
        ),
        (
            "tcp://127.0.0.1:1",
            "--scheduler tcp://127.0.0.1:1: no Dask scheduler answers at tcp://127.0.0.1:1: nobody",
        ),
        (
            "127.0.0.1:8786",
            "no kind of cluster is called '127.0.0.1:8786': did you mean 'tcp://127.0.0.1:8786'?",
        ),
        (
            "tls://127.0.0.1:1",
            "there are no certificates: run `. cluster/tls/environment` with SCALESHIFT_TLS=FOLDER in this "
            "shell, or set distributed.comm.tls.ca-file",
        ),
        ("none.json", "--scheduler none.json: none.json: No such file or directory"),
        ("processes:none.yaml", "--scheduler processes:none.yaml: none.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_a_cluster_is_one_line(study, monkeypatch, scheduler, message):
    monkeypatch.setattr("scaleshift.cluster.existing.SECONDS", 0.5)
    found = run(study, scheduler, code=1).output
    assert message in found
    assert "Traceback" not in found


def test_no_password_of_an_address_is_printed(study):
    found = run(study, "tcp://me:hunter2@127.0.0.1:1/hunter2", code=1).output
    assert "tcp://127.0.0.1:1" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_worker: 2", "options.yaml: 'local' has no option 'n_worker': did you mean 'n_workers'?"),
        ("- 1\n- 2", "options.yaml must hold options by name, like `cores: 8`, and not a list"),
        ("", "options.yaml must hold options by name, like `cores: 8`, and not nothing"),
        ("5", "options.yaml must hold options by name, like `cores: 8`, and not a int"),
        ("3: 4", "options.yaml: 3 is no name of an option"),
        ("n_workers: 1\nn_workers: 2", "options.yaml: n_workers is there twice"),
        ("env: {A: 1, B: 2, A: 3}", "options.yaml: A is there twice"),
        ("n_workers: 0", "options.yaml: 'local': n_workers=0 is none: give 1 or more"),
        ("a: [1", "options.yaml is no YAML: "),
        (
            "a: !!python/object/apply:os.system ['touch pwned']",
            "options.yaml is no YAML: could not determine",
        ),
        ("[" * 5_000, "options.yaml is no YAML: "),
    ],
)
def test_a_file_of_options_that_is_none_is_named_with_the_key(study, tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "options.yaml").write_text(text)
    found = run(study, "processes:options.yaml", code=1).output
    assert message in found
    assert "Traceback" not in found
    assert [path.name for path in tmp_path.iterdir()] == ["options.yaml"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of Dask's half-made cluster
def test_a_value_that_is_none_is_told_with_the_file(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "options.yaml").write_text("n_workers: many")
    found = run(study, "processes:options.yaml", code=1).output
    assert "--scheduler processes:options.yaml: LocalCluster: " in found
    assert "Traceback" not in found
    gc.collect()


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "options.yaml"
    path.write_bytes(b"\xff\xfe\x00cores")
    with pytest.raises(ClusterError, match=r"options\.yaml is no YAML"):
        clusters.read_options(path)


SCRIPT = """
import os, signal, time
import click
from distributed import get_client
from scaleshift.cli import Commands, options, stopping

@click.group(cls=Commands)
def main():
    pass

@main.command()
def wait():
    stopping.goes_on(lambda: "the words of a verb")
    with options.computing("processes:options.yaml", quiet=True):
        print(*get_client().run(os.getpid).values(), flush=True)
        time.sleep(60)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it would be ignored
    main()
"""


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_the_workers_and_the_verb_says_how_to_go_on(tmp_path, number, word):
    (tmp_path / "options.yaml").write_text("n_workers: 1\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "script.py", "wait"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    worker = psutil.Process(int(process.stdout.readline()))
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == f"{word}: the words of a verb\n"
    assert not worker.is_running()
