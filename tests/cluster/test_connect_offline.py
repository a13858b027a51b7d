"""What `connect` would send to batch systems and to Kubernetes, and what it says where they are not here."""

import gc
import json
import os
import re
import subprocess
import sys

import dask
import pytest

import scaleshift as ss
from scaleshift.cluster import jobs, kubernetes, runner, settings
from scaleshift.errors import ClusterError

BATCH_SYSTEMS = ["SLURMCluster", "PBSCluster", "SGECluster", "LSFCluster", "OARCluster", "MoabCluster"]
EXPORTS = [
    "export OMP_NUM_THREADS=1",
    "export OPENBLAS_NUM_THREADS=1",
    "export MKL_NUM_THREADS=1",
    "export DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False",
    "export DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False",
]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script of a job as it would be sent, and how many."""
    dask_jobqueue = pytest.importorskip("dask_jobqueue")
    pytest.importorskip("cryptography")
    monkeypatch.chdir(tmp_path)

    def script(name, **options):
        made = getattr(dask_jobqueue, name)
        options = {"cores": 4, "memory": "8GB", "walltime": "02:00:00", "interface": "lo", **options}
        options, n_jobs, folder = jobs.prepared(made, options, settings.chosen(options))
        with made(**options) as cluster:
            text = cluster.job_script()
        if folder is not None:
            folder.cleanup()
        return text, n_jobs

    return script


@pytest.mark.parametrize("name", BATCH_SYSTEMS)
def test_a_job_has_what_is_promised(script, tmp_path, name):
    own = {
        "LSFCluster": {"walltime": "02:00"},
        "OARCluster": {"memory_per_core_property_name": "not_applicable"},
    }
    text, n_jobs = script(name, **own.get(name, {}))
    lines = text.splitlines()
    assert set(EXPORTS) <= set(lines)
    command = lines[-1]
    assert lines.index(EXPORTS[0]) < lines.index(command)
    assert f"{sys.executable} -m distributed.cli.dask_worker tls://127.0.0.1:" in command
    assert "--nthreads 4" in command
    assert "--nworkers" not in command
    assert "--lifetime 6840s --lifetime-stagger 240s" in command
    assert "--dashboard-address 127.0.0.1:0" in command
    for part in ("ca-file", "cert", "key"):
        assert re.search(rf"--tls-{part} {tmp_path}/\.scaleshift-tls-\w+/\w+\.pem", command)
    assert n_jobs == 1
    assert not list(tmp_path.iterdir())


def test_every_option_goes_on_to_the_batch_system(script):
    text, n_jobs = script(
        "SLURMCluster",
        queue="long",
        account="lab",
        processes=2,
        n_workers=5,
        job_extra_directives=["--gres=gpu:1"],
        job_script_prologue=["module load cuda", "export OMP_NUM_THREADS=2"],
        worker_extra_args=["--resources", "GPU=1", "--lifetime", "10m"],
        python="/opt/python",
    )
    for line in ("#SBATCH -p long", "#SBATCH -A lab", "#SBATCH --gres=gpu:1", "#SBATCH -t 02:00:00"):
        assert line in text.splitlines()
    lines = text.splitlines()
    assert lines.index("export OMP_NUM_THREADS=2") > lines.index("export OMP_NUM_THREADS=1")  # the later wins
    command = lines[-1]
    assert command.startswith("/opt/python -m ")
    assert "--nworkers 2" in command
    assert "--resources GPU=1 --lifetime 10m" in command
    assert command.count("--lifetime") == 1
    assert n_jobs == 3


def test_dask_jobqueues_configuration_counts(script):
    with dask.config.set(
        {"jobqueue.slurm.processes": 4, "jobqueue.slurm.job-script-prologue": ["module load x"]}
    ):
        text, _ = script("SLURMCluster")
    assert "--nworkers 4" in text
    assert "module load x" in text.splitlines()


def test_tls_is_off_for_who_asks(script, tmp_path):
    text, _ = script("SLURMCluster", security=False)
    assert "tcp://127.0.0.1:" in text
    assert "tls" not in text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("system", "walltime", "seconds"),
    [
        ("slurm", "01:00:00", 3600),
        ("slurm", "30", 1800),
        ("slurm", "2:30", 150),
        ("slurm", "1-12", 36 * 3600),
        ("slurm", "1-00:30", 24 * 3600 + 1800),
        ("slurm", "7-00:00:00", 7 * 24 * 3600),
        ("lsf", "01:30", 5400),
        ("pbs", "00:10:00", 600),
    ],
)
def test_a_worker_ends_before_its_job(system, walltime, seconds):
    _, lifetime, _, stagger = jobs.lifetime(system, walltime)
    longest = int(lifetime[:-1]) + int(stagger[:-1])
    assert 0.89 * seconds <= longest < seconds
    assert seconds - longest <= max(jobs.MARGIN, 1)
    assert int(lifetime[:-1]) - int(stagger[:-1]) > 0.6 * seconds


@pytest.mark.parametrize(("system", "walltime"), [("pbs", "30"), ("slurm", "UNLIMITED"), ("slurm", None)])
def test_a_walltime_that_is_not_understood_sets_no_lifetime(system, walltime):
    assert jobs.lifetime(system, walltime) == []


def test_a_folder_that_a_shell_would_not_read_as_it_stands_is_refused(script, tmp_path, monkeypatch):
    (tmp_path / "my $(study)").mkdir()
    monkeypatch.chdir(tmp_path / "my $(study)")
    with pytest.raises(ClusterError, match=r"my \$\(study\)'.*give shared_temp_directory="):
        script("SLURMCluster")
    with pytest.raises(
        ClusterError, match=r"none \(No such file or directory\): give shared_temp_directory="
    ):
        script("SLURMCluster", shared_temp_directory=str(tmp_path / "none"))


def refused(kind, **options):
    with pytest.raises(ClusterError) as raised:
        ss.cluster.connect(kind, **options)
    return str(raised.value)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of Dask's half-made cluster
def test_a_class_that_is_none_and_options_that_are_none_are_named(monkeypatch, tmp_path):
    pytest.importorskip("dask_jobqueue")
    assert (
        "cluster='PBSClustr' is no class of dask-jobqueue: did you mean 'PBSCluster'? There are"
        in refused("jobqueue", cluster="PBSClustr")
    )
    assert "cluster=None is no class of dask-jobqueue. There are HTCondorCluster" in refused("jobqueue")
    assert "'SLURMCluster' has no option 'core': did you mean 'cores'?" in refused("slurm", core=3)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sbatch is not on this machine" in refused("slurm", cores=1, memory="1GB")
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert "You must specify how much cores and memory per job" in refused("slurm", cores=1)
    assert [path.name for path in tmp_path.iterdir()] == ["sbatch"]
    gc.collect()


@pytest.mark.parametrize("option", ["jobs", "cores", "processes", "n_workers"])
def test_jobs_of_nothing_are_refused_by_the_name_of_the_option(option):
    pytest.importorskip("dask_jobqueue")
    options = {"cores": 1, "memory": "1GB", option: 0}
    with pytest.raises(ClusterError, match=f"'SLURMCluster': {option}=0 is none: give 1 or more"):
        ss.cluster.connect("slurm", **options)


def test_slurm_runner_outside_of_srun_says_so(monkeypatch):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    assert "SLURM_PROCID, SLURM_NTASKS, and SLURM_JOB_ID must be present" in refused("slurm-runner")
    assert "has no option 'workers'" in refused("slurm-runner", workers=3)
    assert runner.INSTALL == 'pip install "scaleshift[slurm]"'


# Kubernetes


def test_pods_have_what_is_promised():
    operator = pytest.importorskip("dask_kubernetes.operator")
    given = kubernetes.prepared(
        {
            "image": "registry/scaleshift:1",
            "n_workers": 3,
            "resources": {"limits": {"memory": "8Gi"}},
            "env": {"HTTPS_PROXY": "proxy"},
            "allowed_failures": 20,
        }
    )
    assert given.pop("quiet") is True  # the terminal is the command's
    spec = operator.make_cluster_spec(name="night", **given)["spec"]
    assert spec["worker"]["replicas"] == 3
    for part in ("scheduler", "worker"):
        (container,) = spec[part]["spec"]["containers"]
        assert container["image"] == "registry/scaleshift:1"
        assert container["resources"] == {"limits": {"memory": "8Gi"}}
        env = {entry["name"]: entry["value"] for entry in container["env"]}
        assert env["HTTPS_PROXY"] == "proxy"
        assert env["OMP_NUM_THREADS"] == "1"
        assert env["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] == "20"
        assert env["DASK_DISTRIBUTED__WORKER__MEMORY__SPILL"] == "False"
        assert all(isinstance(value, str) for value in env.values())
    json.dumps(spec)  # as it is sent


def test_what_the_user_writes_as_kubernetes_does_stays():
    entry = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}
    given = kubernetes.prepared({"image": "a", "env": [entry, {"name": "OMP_NUM_THREADS", "value": "2"}]})
    assert entry in given["env"]
    assert [e["value"] for e in given["env"] if e["name"] == "OMP_NUM_THREADS"] == ["2"]
    spec = {"metadata": {"name": "mine"}}
    assert kubernetes.prepared({"custom_cluster_spec": spec}) == {"custom_cluster_spec": spec}


def test_kubernetes_without_an_image_or_a_cluster_says_so(monkeypatch, tmp_path):
    pytest.importorskip("dask_kubernetes.operator")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "'kubernetes' needs image=" in refused("kubernetes")
    assert "has no option 'workers'" in refused("kubernetes", image="a", workers=3)
    assert "Kubernetes: ValueError: Unable to find valid credentials" in refused("kubernetes", image="a")


# Settings, and packages that are not here


def test_settings_reach_workers_by_variables_that_dask_reads():
    environment = settings.as_environment(settings.chosen({"allowed_failures": 3}, settings.ON_THIS_MACHINE))
    code = (
        "import dask, distributed, json; get = dask.config.get; print(json.dumps(["
        "get('distributed.worker.memory.spill'), get('distributed.worker.memory.pause'),"
        "get('distributed.scheduler.allowed-failures'), get('distributed.scheduler.no-workers-timeout')]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, check=True
    )
    assert json.loads(found.stdout) == [False, 0.8, 3, "5 minutes"]


def test_importing_needs_none_of_the_optional_packages():
    """A kind whose package is missing says what to install; the rest works."""
    code = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"dask_jobqueue", "dask_kubernetes", "dask_cuda", "kr8s", "cryptography"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
import scaleshift as ss
assert ss.cluster.connect
for kind in ("slurm", "slurm-runner", "jobqueue", "kubernetes", "cuda"):
    try:
        ss.cluster.connect(kind)
    except ss.ClusterError as error:
        print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = found.stdout.splitlines()
    assert len(lines) == 5
    for line, extra in zip(lines, ["slurm", "slurm", "slurm", "kubernetes", "cu13"], strict=True):
        assert f'pip install "scaleshift[{extra}]"' in line


def test_importing_scaleshift_does_not_import_dask_distributed():
    code = "import scaleshift, sys; print('distributed' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
