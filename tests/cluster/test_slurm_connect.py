"""ss.cluster.connect on a SLURM of two virtual nodes, from scripts as users write them; no job is left."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from recipes import RECIPES, certificate_environment, make_certificates
from slurm_on_one_node import slurm_on_one_node

import scaleshift as ss

pytestmark = pytest.mark.cluster

SCRIPT = """
import sys
import scaleshift as ss

where, store, options = sys.argv[1], sys.argv[2], {options}
with ss.cluster.connect(where, **options) as client:
    client.wait_for_workers(2, timeout=120)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    cells = ss.open_cells(store, samples=["S0"])
    model = ss.DFM(features=ss.LandmarkFeatures(16, random_state=0), n_bootstrap=0, random_state=0).fit(cells)
    answer = model.predict(ss.open_cells(store, samples=["S1"]))["proportion"].values
    print("workers", len(workers), {{address.split(":")[0] for address in workers}})
    print("answer", answer.tobytes().hex())
"""
ONE_NODE = 'dict(jobs=2, cores=1, memory="1GB", walltime="00:10:00", interface="lo")'
RUNNER = 'dict(scheduler_options={"interface": "lo"}, worker_options={"interface": "lo"})'


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurm_on_one_node() as running:
        folder = tmp_path_factory.mktemp("configuration")
        shutil.copy(RECIPES / "dask-config" / "scaleshift.yaml", folder)
        shutil.copy(RECIPES / "slurm" / "jobqueue.yaml", folder)
        path = f"{Path(sys.executable).parent}:{running.environment['PATH']}"
        running.environment |= {"DASK_CONFIG": str(folder), "PATH": path}
        yield running


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    rng = np.random.default_rng(0)
    label = rng.choice(["B", "T"], 2_000)
    x = rng.normal(size=(2_000, 3)) + 3 * (label == "T")[:, None]
    ss.write_cells(ss.as_cells(x.astype("f4"), np.repeat(["S0", "S1"], 1_000), label), path, chunk_cells=250)
    return path


@pytest.fixture(scope="module")
def answer(study):
    cells = ss.open_cells(study, samples=["S0"])
    features = ss.LandmarkFeatures(16, random_state=0)
    model = ss.DFM(features=features, n_bootstrap=0, random_state=0).fit(cells)
    found = model.predict(ss.open_cells(study, samples=["S1"]))["proportion"].values
    return f"answer {found.tobytes().hex()}"


def script(folder, options):
    path = folder / "script.py"
    path.write_text(SCRIPT.format(options=options))
    return path


def test_two_jobs_give_the_same_bits_and_closing_leaves_none(slurm, study, answer, tmp_path):
    pytest.importorskip("dask_jobqueue", reason="pip install scaleshift[slurm]")
    command = [sys.executable, script(tmp_path, ONE_NODE), "slurm", study]
    said = slurm.run(*map(str, command), cwd=tmp_path)
    assert said.splitlines() == ["workers 2 {'tls'}", answer]
    slurm.until(lambda: not slurm.jobs(), "jobs are left")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scaleshift-logs", "script.py"]


def test_a_script_under_srun_is_scheduler_workers_and_client(slurm, study, answer, tmp_path):
    pytest.importorskip("dask_jobqueue", reason="pip install scaleshift[slurm]")
    certificates = tmp_path / "certificates"
    make_certificates(certificates)
    environment = slurm.environment | certificate_environment(certificates)
    run = ["srun", "--ntasks=4", "--cpus-per-task=1", sys.executable, script(tmp_path, RUNNER)]
    said = slurm.run(*map(str, run), "slurm-runner", str(study), cwd=tmp_path, env=environment)
    assert said.splitlines() == ["workers 2 {'tls'}", answer]
    slurm.until(lambda: not slurm.jobs(), "jobs are left")
