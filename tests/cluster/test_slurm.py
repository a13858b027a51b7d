"""The recipes for SLURM, on a SLURM of two virtual nodes: same numbers, clean ends, and jobs that go on."""

import sys
from pathlib import Path

import numpy as np
import pytest
from recipes import RECIPES, make_certificates
from slurm_on_one_node import slurm_on_one_node

import scaleshift as ss
from scaleshift.cells.manifest import read_manifest
from scaleshift.cli.unfinished import NAME as UNFINISHED

pytestmark = pytest.mark.cluster

BIN = Path(sys.executable).parent
QUANTIFY = ["--source", "sample == S0", "--method", "soft-landmarks", "--features", "16", "--bootstrap", "10"]
SMALL = ["--ntasks=2", "--nodes=2", "--cpus-per-task=1", "--mem-per-cpu=1500M"]
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurm_on_one_node() as running:
        certificates = tmp_path_factory.mktemp("tls") / "certificates"
        assert make_certificates(certificates).returncode == 0
        running.environment |= {
            "PATH": f"{BIN}:{running.environment['PATH']}",
            "SCALESHIFT_CLUSTER": str(RECIPES),
            "SCALESHIFT_TLS": str(certificates),
            "SCALESHIFT_INTERFACE": "lo",
        }
        yield running


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    rng = np.random.default_rng(0)
    label = rng.choice(["B", "T"], 6_000)
    x = rng.normal(size=(6_000, 3)) + 3 * (label == "T")[:, None]
    ss.write_cells(
        ss.as_cells(x.astype("f4"), np.repeat(["S0", "S1", "S2"], 2_000), label), path, chunk_cells=500
    )
    return path


def submit(slurm, folder, script, *command, options=SMALL, wait=True, **environment):
    """Send one of our batch scripts as a user does; its id, and what it logged where we wait for its end."""
    sbatch = ["sbatch", "--parsable", *options, RECIPES / "slurm" / script, *command]
    said = slurm.run(*map(str, sbatch), cwd=folder, env=slurm.environment | environment)
    job = said.strip()
    if not wait:
        return job
    slurm.wait_for(job, *ENDED)
    return job, log(folder)


def log(folder):
    return "\n".join(path.read_text() for path in sorted(folder.glob("scaleshift*.log")))


def leaves_nothing(slurm, folder, job):
    slurm.until(lambda: not slurm.processes(job), f"processes of job {job} are left", 60)
    return not list(folder.glob(".scaleshift-*")) and job not in slurm.jobs()


def test_a_batch_job_gives_the_same_proportions_as_this_machine_alone(slurm, study, tmp_path):
    quantify = ["scaleshift", "quantify", study, *QUANTIFY]
    here = [*quantify, "--output", tmp_path / "here", "--quiet"]
    slurm.run(*map(str, here))
    job, said = submit(slurm, tmp_path, "scaleshift.sbatch", *quantify, "--output", tmp_path / "there")
    assert slurm.state(job) == "COMPLETED", said
    assert "Traceback" not in said
    there = (tmp_path / "there" / "proportions.csv").read_bytes()
    assert there == (tmp_path / "here" / "proportions.csv").read_bytes()
    assert leaves_nothing(slurm, tmp_path, job)


ABOUT_WORKERS = """
import os, dask, distributed

def settings():
    names = ("memory.spill", "memory.target", "memory.terminate")
    threads = [os.environ[f"{library}_NUM_THREADS"] for library in ("OMP", "MKL", "OPENBLAS")]
    return [os.environ["SLURM_NODEID"], threads, [dask.config.get(f"distributed.worker.{n}") for n in names]]

with distributed.Client() as client:  # DASK_SCHEDULER_ADDRESS
    client.wait_for_workers(2, timeout=120)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for address, worker in workers.items():
        print("worker", worker["name"], worker["nthreads"], worker["memory_limit"] // 2**20, address.split("://")[0])
    print("settings", sorted(client.run(settings).values()))
    print("allowed failures", client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures))
"""


def test_workers_have_names_of_their_own_and_the_settings_of_the_recipe(slurm, tmp_path):
    script = tmp_path / "about.py"
    script.write_text(ABOUT_WORKERS)
    job, said = submit(slurm, tmp_path, "scaleshift.sbatch", "python", script)
    lines = sorted(line for line in said.splitlines() if line.startswith("worker "))
    assert lines == [f"worker {job}-0 1 1200 tls", f"worker {job}-1 1 1200 tls"]
    settings = [[node, ["1"] * 3, [False, False, 0.95]] for node in ("0", "1")]
    assert f"settings {settings}" in said
    assert "allowed failures 10" in said


# In place of dask-cuda, which ends where there is no GPU: notes how it is called, and starts CPU workers.
STAND_IN = """#!{python}
import os, sys
arguments = sys.argv[1:]
if arguments[:2] == ["cuda", "worker"]:
    with open("{notes}", "a") as notes:
        print(os.environ["SLURM_NODEID"], os.environ["CUDA_VISIBLE_DEVICES"], *arguments, file=notes)
    at = arguments.index("--device-memory-limit")
    arguments = ["worker", *arguments[2:at], *arguments[at + 2:]]
os.execv("{dask}", ["dask", *arguments])
"""


def test_gpu_workers_are_started_on_the_devices_that_slurm_gave(slurm, study, tmp_path):
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "dask"
    stand_in.write_text(STAND_IN.format(python=sys.executable, notes=tmp_path / "notes", dask=BIN / "dask"))
    stand_in.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{slurm.environment['PATH']}"
    sizes = ["--nodes=2", "--gpus-per-node=fake:1", "--mem=2G", "--cpus-per-task=1"]
    quantify = ["scaleshift", "quantify", study, *QUANTIFY, "--output", tmp_path / "out"]
    job, said = submit(slurm, tmp_path, "scaleshift-gpu.sbatch", *quantify, options=sizes, PATH=path)
    assert slurm.state(job) == "COMPLETED", said
    notes = sorted((tmp_path / "notes").read_text().splitlines())
    called = "cuda worker --nthreads 1 --memory-limit 1638MiB --device-memory-limit 0 --interface lo"
    assert len(notes) == 2
    for node, note in enumerate(notes):
        assert note.startswith(f"{node} 0 {called}")
        assert note.endswith(f"--name {job}-{node}")
    assert leaves_nothing(slurm, tmp_path, job)


def test_both_devices_of_a_node_are_one_workers_to_share_out(slurm, tmp_path):
    said = slurm.run("srun", "--gpus-per-node=2", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES", cwd=tmp_path)
    assert said.strip() == "0,1"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    for number in range(20):
        np.savetxt(
            folder / f"S{number:02}.csv",
            rng.normal(size=(20_000, 3)),
            "%.6f",
            ",",
            header="A,B,C",
            comments="",
        )
    return folder


def begun(store):
    """Whether some samples are done and some are not."""
    if not (store / "zarr.json").exists():
        return False
    try:
        manifest = read_manifest(store)
    except ss.errors.ScaleshiftError:  # being made
        return False
    return 0 < len(manifest.samples) < manifest.awaited


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    store = tmp_path_factory.mktemp("whole") / "study.zarr"
    ss.ingest(files, store)
    return ss.open_cells(store)


def test_a_cancelled_job_leaves_no_process_and_the_same_command_goes_on(slurm, files, whole, tmp_path):
    store = tmp_path / "study.zarr"
    command = ["scaleshift", "ingest", files, store, "--chunk-cells", "2000", "--resume"]
    job = submit(slurm, tmp_path, "scaleshift.sbatch", *command, wait=False)
    slurm.until(lambda: begun(store), "nothing was begun", 120)
    slurm.run("scancel", job)
    slurm.wait_for(job, "CANCELLED")
    assert leaves_nothing(slurm, tmp_path, job)
    said, done = log(tmp_path), len(read_manifest(store).samples)
    assert "scaleshift: cancelled; the same command goes on where it stopped" in said
    assert 0 < done < 20
    again, said = submit(slurm, tmp_path, "scaleshift.sbatch", *command)
    assert slurm.state(again) == "COMPLETED", said
    opened = ss.open_cells(store)
    assert opened["sample"].equals(whole["sample"])
    np.testing.assert_array_equal(opened["X"].values, whole["X"].values)


def test_a_cancelled_quantification_goes_on_to_the_same_proportions(slurm, tmp_path):
    rng = np.random.default_rng(2)
    label = rng.choice(["B", "T"], 15_000)
    x = (rng.normal(size=(15_000, 3)) + 3 * (label == "T")[:, None]).astype("f4")
    names = np.repeat([f"S{number}" for number in range(30)], 500)
    ss.write_cells(ss.as_cells(x, names, label), tmp_path / "study.zarr", chunk_cells=500)
    quantify = ["scaleshift", "quantify", tmp_path / "study.zarr", *QUANTIFY, "--resume", "--output"]
    job = submit(slurm, tmp_path, "scaleshift.sbatch", *quantify, tmp_path / "there", wait=False)
    finished = tmp_path / "there" / UNFINISHED
    slurm.until(lambda: finished.is_dir() and len(list(finished.iterdir())) > 2, "nothing was begun", 180)
    slurm.run("scancel", job)
    slurm.wait_for(job, "CANCELLED")
    assert not (tmp_path / "there" / "proportions.csv").exists()
    again, said = submit(slurm, tmp_path, "scaleshift.sbatch", *quantify, tmp_path / "there")
    assert slurm.state(again) == "COMPLETED", said
    slurm.run(*map(str, quantify), str(tmp_path / "here"))
    there = (tmp_path / "there" / "proportions.csv").read_bytes()
    assert there == (tmp_path / "here" / "proportions.csv").read_bytes()
    assert not finished.exists()


def test_a_job_whose_time_is_up_is_queued_again_and_goes_on(slurm, files, whole, tmp_path):
    store = tmp_path / "study.zarr"
    command = ["scaleshift", "ingest", files, store, "--chunk-cells", "2000", "--resume"]
    job = submit(slurm, tmp_path, "scaleshift.sbatch", *command, wait=False)
    slurm.until(lambda: begun(store), "nothing was begun", 120)
    slurm.run("scancel", "--batch", "--signal=USR1", job)  # as --signal=B:USR1@180 has it sent
    slurm.wait_for(job, *ENDED)
    said = log(tmp_path)
    assert slurm.state(job) == "COMPLETED", said
    assert slurm.field(job, "Restarts") == "1"
    assert "scaleshift: out of time: queued again, to go on where it stopped" in said
    np.testing.assert_array_equal(ss.open_cells(store)["X"].values, whole["X"].values)
    assert leaves_nothing(slurm, tmp_path, job)


def test_a_job_that_cannot_go_on_is_not_queued_again(slurm, tmp_path):
    job = submit(slurm, tmp_path, "scaleshift.sbatch", "bash", "-c", "touch begun; sleep 1000", wait=False)
    slurm.until((tmp_path / "begun").exists, "the command was not begun", 120)
    slurm.run("scancel", "--batch", "--signal=USR1", job)
    slurm.wait_for(job, *ENDED)
    assert slurm.state(job) == "FAILED"
    assert "scaleshift: out of time, and the command has no --resume to go on with" in log(tmp_path)
    assert leaves_nothing(slurm, tmp_path, job)


def test_a_job_without_workers_ends_in_place_of_waiting(slurm, tmp_path):
    job = submit(slurm, tmp_path, "scaleshift.sbatch", "sleep", "1000", wait=False)
    slurm.until(lambda: "Start Nanny" in log(tmp_path), "no worker was begun", 120)
    slurm.run("scancel", "--signal=KILL", f"{job}.0")
    slurm.wait_for(job, *ENDED)
    assert slurm.state(job) == "FAILED"
    assert "scaleshift: the workers or the scheduler ended before the command" in log(tmp_path)
    assert leaves_nothing(slurm, tmp_path, job)


def test_the_exit_status_is_that_of_the_command(slurm, tmp_path):
    job, said = submit(slurm, tmp_path, "scaleshift.sbatch", "bash", "-c", "exit 3")
    assert slurm.field(job, "ExitCode") == "3:0", said


def test_without_certificates_nothing_is_started(slurm, tmp_path):
    job, said = submit(slurm, tmp_path, "scaleshift.sbatch", "touch", "begun", SCALESHIFT_TLS=str(tmp_path))
    assert slurm.state(job) == "FAILED"
    assert "make them with cluster/tls/make-certificates" in said
    assert not (tmp_path / "begun").exists()
