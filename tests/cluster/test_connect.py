"""`connect` to what it starts and to what is there: real schedulers, workers, certificates and jobs."""

import atexit
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import warnings

import dask
import dask.array as da
import numpy as np
import psutil
import pytest
import threadpoolctl
from distributed import Client, LocalCluster
from distributed.security import Security

import scaleshift as ss
from scaleshift.cluster import existing, revival
from scaleshift.errors import ClusterError


def listening(pid):
    """Addresses and ports that a process and its children listen at."""
    process = psutil.Process(pid)
    sockets = [s for p in [process, *process.children(recursive=True)] for s in p.net_connections("inet")]
    return {tuple(s.laddr) for s in sockets if s.status == psutil.CONN_LISTEN}


def blas_threads():
    np.ones((4, 4)) @ np.ones((4, 4))
    return [library["num_threads"] for library in threadpoolctl.threadpool_info()]


@pytest.fixture(scope="module")
def local():
    """Two processes, while the shell says what HPC modules often say."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "4"
    try:
        with ss.cluster.connect("local", n_workers=2, threads_per_worker=1) as client:
            yield client
    finally:
        os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)


@pytest.mark.parametrize(("processes", "n_sockets"), [(True, 8), (False, 2)])
def test_nothing_of_a_local_cluster_listens_beyond_this_machine(processes, n_sockets):
    before = listening(os.getpid())
    with ss.cluster.connect("local", n_workers=2, threads_per_worker=1, processes=processes) as client:
        opened = listening(os.getpid()) - before
        assert len(opened) >= n_sockets  # scheduler and its dashboard; nannies; workers and what they serve
        assert {host for host, _ in opened} == {"127.0.0.1"}
        assert "127.0.0.1" in client.cluster.dashboard_link or not processes


def test_a_host_that_is_asked_for_is_listened_at():
    with ss.cluster.connect(
        "local", n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.2"
    ) as client:
        assert client.scheduler.address.startswith("tcp://127.0.0.2:")


def test_workers_have_one_blas_thread_whatever_the_shell_says(local):
    for threads in local.run(blas_threads).values():
        assert set(threads) == {1}


def test_workers_do_not_spill_and_tasks_outlive_ten_nodes(local):
    for memory in local.run(lambda: dask.config.get("distributed.worker.memory")).values():
        assert (memory["target"], memory["spill"]) == (False, False)
        assert (memory["pause"], memory["terminate"]) == (0.8, 0.95)
    assert local.cluster.scheduler.allowed_failures == 10
    limits = [w["memory_limit"] for w in local.scheduler_info(n_workers=-1)["workers"].values()]
    assert sum(limits) <= dask.utils.parse_bytes(f"{psutil.virtual_memory().total}B")


def test_a_worker_that_is_started_later_has_the_same_settings(local):
    local.cluster.scale(3)
    local.wait_for_workers(3)
    try:
        spills = local.run(lambda: dask.config.get("distributed.worker.memory.spill"))
        assert set(spills.values()) == {False}
        assert all(set(threads) == {1} for threads in local.run(blas_threads).values())
    finally:
        local.cluster.scale(2)


def test_passes_run_there(local):
    x = da.ones((4_000, 3), chunks=(500, 3))
    assert ss.as_cells(x)["X"].data.sum().compute() == 12_000
    assert dask.delayed(os.getpid)().compute() in local.run(os.getpid).values()


@pytest.mark.parametrize("given", ["client", "cluster", "address", "file"])
def test_a_client_of_what_is_there_ends_without_it(local, tmp_path, given):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"type": "Scheduler", "address": local.scheduler.address}))
    address = local.scheduler.address
    where = {"client": local, "cluster": local.cluster, "address": address, "file": str(path)}[given]
    with ss.cluster.connect(where) as client:
        assert isinstance(client, Client)
        assert client is not local
        assert client.scheduler.address == address
        assert client.submit(sum, [1, 2]).result() == 3
    assert client.status == "closed"
    assert local.submit(sum, [1, 3]).result() == 4


def test_closing_ends_the_processes_that_were_started():
    client = ss.cluster.connect("local", n_workers=1, threads_per_worker=1, allowed_failures=2)
    assert client.cluster.scheduler.allowed_failures == 2
    (pid,) = client.run(os.getpid).values()
    client.close()
    assert client.cluster.status.name == "closed"
    assert not psutil.pid_exists(pid)


def frozen_as_it_ends(path):
    atexit.register(lambda: path.write_text(str(gc.get_freeze_count())))
    return gc.get_freeze_count()


def test_a_worker_that_ends_looks_through_no_memory(tmp_path):
    with ss.cluster.connect("local", n_workers=1, threads_per_worker=1) as client:
        assert list(client.run(frozen_as_it_ends, tmp_path / "frozen").values()) == [0]
    assert int((tmp_path / "frozen").read_text()) > 10_000


def test_what_dasks_configuration_says_wins():
    settings = {"distributed.worker.memory.spill": 0.65, "distributed.scheduler.allowed-failures": 4}
    with (
        dask.config.set(settings),
        ss.cluster.connect("local", n_workers=1, threads_per_worker=1, processes=False) as client,
    ):
        assert client.cluster.scheduler.allowed_failures == 4
        (worker,) = client.cluster.workers.values()
        assert worker.memory_manager.memory_spill_fraction == 0.65
        assert worker.memory_manager.memory_target_fraction is False


def test_certificates_are_made_for_a_local_cluster_that_asks_for_them():
    pytest.importorskip("cryptography")
    with ss.cluster.connect("local", n_workers=1, threads_per_worker=1, security=True) as client:
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert client.submit(sum, [1, 2]).result() == 3


# What is not there


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("slrum", r"called 'slrum': did you mean 'slurm'\? There are local, cuda, slurm, slurm-runner, "),
        ("elsewhere", r"called 'elsewhere'\. There are local, "),
        ("127.0.0.1:9", r"called '127\.0\.0\.1:9': did you mean 'tcp://127\.0\.0\.1:9'\?"),
        ("tcp://127.0.0.1:1", r"answers at tcp://127\.0\.0\.1:1: nobody listens there$"),
        ("tcp://me:hunter2@127.0.0.1:1/hunter2", r"^tcp://127\.0\.0\.1:1 is no address of a scheduler: "),
        (
            "tcp://127.0.0.1",
            r"tcp://127\.0\.0\.1 is no address of a scheduler: write one like tcp://host:8786",
        ),
        ("inproc://127.0.0.1/1/1", r"answers at inproc://127\.0\.0\.1: it is not in this process$"),
        ("http://127.0.0.1:80", r"http://127\.0\.0\.1:80 is no address of a scheduler"),
        ("none.json", r"none\.json: No such file or directory; `dask scheduler --scheduler-file none\.json`"),
        (8786, r"a kind, an address, a Client or a Cluster, and not a int"),
    ],
)
def test_what_is_not_there_is_told_with_the_way_out(where, message):
    with pytest.raises(ClusterError, match=message) as raised:
        ss.cluster.connect(where, **({"timeout": 0.5} if str(where).startswith("tcp") else {}))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"id": 3'])
def test_a_file_that_no_scheduler_wrote_is_named(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"other\.json is no scheduler file: it holds no address"):
        ss.cluster.connect(str(path))


def test_an_option_that_nobody_takes_is_named():
    with pytest.raises(ClusterError, match=r"'local' has no option 'n_worker': did you mean 'n_workers'\?"):
        ss.cluster.connect("local", n_worker=2)
    with pytest.raises(ClusterError, match=r"'local' has no option 'asynchronous'"):
        ss.cluster.connect("local", asynchronous=True)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"threads_per_worker": 0}, "threads_per_worker=0 is none: give 1 or more"),
        ({"n_workers": 0}, "n_workers=0 is none: give 1 or more"),
        ({"n_workers": -1}, "n_workers=-1 is no number of them: give 1 or more"),
    ],
)
def test_a_cluster_of_nothing_is_refused_by_the_name_of_the_option(options, named):
    with pytest.raises(ClusterError, match=f"'local': {named}"):
        ss.cluster.connect("local", **options)


def test_a_file_of_certificates_that_is_not_there_is_named_though_others_lack_too():
    with pytest.raises(ClusterError, match=r"certificates cannot be read: x\.pem: No such file"):
        ss.cluster.connect("tls://127.0.0.1:1", ca="x.pem")


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_of_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import scaleshift as ss\nss.cluster.connect('local', n_workers=1)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert (
        "ClusterError: LocalCluster: Nanny failed to start, as it does where a script starts processes"
        in last
    )
    assert last.endswith('use `if __name__ == "__main__":`')
    assert len(done.stderr.splitlines()) < 150


def test_something_that_does_not_speak_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address}: what listens there said nothing within 0.5 s"):
            ss.cluster.connect(address, timeout=0.5)


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Files by authority: each signs one node."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name in ("ours", "other"):
        authority = ["-keyout", f"{name}.ca.key", "-out", f"{name}.ca.pem"]
        openssl("req", "-x509", *key, "-days", "2", "-subj", f"/CN={name}", *authority)
        openssl("req", *key, "-subj", "/CN=node", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ["-CA", f"{name}.ca.pem", "-CAkey", f"{name}.ca.key", "-CAcreateserial"]
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-days", "2", "-out", f"{name}.pem")
    return {
        name: {"ca": folder / f"{name}.ca.pem", "cert": folder / f"{name}.pem", "key": folder / f"{name}.key"}
        for name in ("ours", "other")
    }


@pytest.fixture(scope="module")
def tls(certificates):
    """Address of a scheduler that talks TLS alone."""
    files = certificates["ours"]
    security = existing.certificates(None, files["ca"], files["cert"], files["key"])
    assert security.require_encryption
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls",
        host="127.0.0.1",
        security=security,
        dashboard_address=":0",
    ) as cluster:
        yield cluster.scheduler_address


def test_certificates_open_a_tls_scheduler(tls, certificates):
    with ss.cluster.connect(tls, **certificates["ours"]) as client:
        assert client.submit(sum, [1, 2]).result() == 3


def test_a_security_object_or_dasks_configuration_opens_it_too(tls, certificates):
    files = {name: str(path) for name, path in certificates["ours"].items()}
    security = Security(
        tls_ca_file=files["ca"],
        tls_client_cert=files["cert"],
        tls_client_key=files["key"],
        require_encryption=True,
    )
    with ss.cluster.connect(tls, security=security) as client:
        assert client.submit(sum, [1, 2]).result() == 3
    settings = {"ca-file": files["ca"], "client.cert": files["cert"], "client.key": files["key"]}
    named = {f"distributed.comm.tls.{name}": path for name, path in settings.items()}
    with dask.config.set(named), ss.cluster.connect(tls) as client:
        assert client.submit(sum, [1, 3]).result() == 4


def refused(address, **options):
    with pytest.raises(ClusterError) as raised:
        ss.cluster.connect(address, timeout=3, **options)
    return str(raised.value)


@pytest.fixture
def quiet():
    """Listeners log every handshake that they refuse, and tornado leaves its socket to the collector."""
    logger = logging.getLogger("distributed.comm.tcp")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.mark.usefixtures("quiet")
def test_plain_tcp_to_a_tls_scheduler_is_refused(tls, certificates):
    plain = tls.replace("tls://", "tcp://")
    assert "it hung up; if it wants TLS, write tls:// and give ca=, cert= and key=" in refused(plain)
    assert "is without TLS, and certificates ask for it" in refused(plain, **certificates["ours"])


@pytest.mark.usefixtures("quiet")
def test_tls_without_certificates_is_refused_before_anything_is_sent(tls):
    assert f"{tls} wants TLS, and there are no certificates: give ca=, cert= and key=" in refused(tls)


@pytest.mark.usefixtures("quiet")
def test_a_scheduler_of_another_authority_is_refused(tls, certificates):
    told = refused(tls, **certificates["other"])
    assert "TLS is refused here, since it shows a certificate that ca= has not signed" in told


@pytest.mark.usefixtures("quiet")
def test_a_client_of_another_authority_is_refused(tls, certificates):
    told = refused(tls, **{**certificates["other"], "ca": certificates["ours"]["ca"]})
    assert "TLS is refused there" in told
    assert "has not signed the certificate given as cert=" in told


def test_tls_to_a_plain_scheduler_is_refused(local, certificates):
    """In a process of its own: tornado leaves the socket of such a handshake open."""
    files = {name: str(path) for name, path in certificates["ours"].items()}
    address = local.scheduler.address.replace("tcp://", "tls://")
    code = f"import scaleshift as ss; ss.cluster.connect({address!r}, timeout=3, **{files!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.returncode == 1
    assert "what listens there does not talk TLS; is it tcp://?" in found.stderr.splitlines()[-1]


def test_certificates_that_cannot_be_read_are_named(tls, certificates, tmp_path):
    ours, other = certificates["ours"], certificates["other"]
    assert "No such file" in refused(tls, **{**ours, "ca": tmp_path / "none.pem"})
    assert str(tmp_path / "none.pem") in refused(tls, **{**ours, "ca": tmp_path / "none.pem"})
    assert "mismatch" in refused(tls, **{**ours, "key": other["key"]})
    assert "no certificate" in refused(tls, **{**ours, "ca": ours["key"]})
    assert "not both" in refused(tls, security=Security(), **ours)


# Versions


@pytest.fixture
def scheduler_of_another_version(tmp_path):
    """Starts a scheduler whose installation says that it holds other packages."""
    started = []

    def start(package, version):
        metadata = tmp_path / f"{package}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        path = tmp_path / "scheduler.json"
        arguments = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        started.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "distributed.cli.dask_scheduler",
                    *arguments,
                    "--scheduler-file",
                    path,
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
                stderr=subprocess.DEVNULL,
            )
        )
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_text().strip()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return str(path)

    yield start
    for process in started:
        process.terminate()
        process.wait()


def test_a_scheduler_with_another_scaleshift_is_refused(scheduler_of_another_version):
    path = scheduler_of_another_version("scaleshift", "9.9")
    with pytest.raises(ClusterError, match=r"other versions: scaleshift \(.* here, 9\.9\); give scheduler"):
        ss.cluster.connect(path)


def test_a_scheduler_with_another_zarr_is_warned_of(scheduler_of_another_version):
    path = scheduler_of_another_version("zarr", "1.0")
    with pytest.warns(UserWarning, match=r"other versions: zarr \(.* here, 1\.0\); give scheduler"):
        client = ss.cluster.connect(path)
    client.close()


# Jobs, by a batch system of two shell scripts


@pytest.fixture
def shell(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    pytest.importorskip("cryptography")
    import shell_jobs

    shell_jobs.install(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(revival, "SECONDS", 0.5)
    return {"cluster": shell_jobs.ShellCluster, "memory": "1GB", "interface": "lo", "walltime": "00:10:00"}


def test_jobs_talk_by_tls_and_end_with_the_client(shell, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with ss.cluster.connect("jobqueue", cores=1, **shell) as client:
        assert signal.getsignal(signal.SIGINT) == before
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        (folder,) = tmp_path.glob(".scaleshift-tls-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3
        (pid,) = client.run(os.getpid).values()
        assert {host for host, _ in listening(pid)} == {"127.0.0.1"}
        assert list(client.run(dask.config.get, "distributed.worker.memory.spill").values()) == [False]
        assert client.cluster.scheduler.allowed_failures == 10
    assert not list(tmp_path.glob(".scaleshift-tls-*"))
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_that_ends_is_sent_again(shell, processes):
    settings = {"distributed.deploy.lost-worker-timeout": "1s"}
    with (
        dask.config.set(settings),
        ss.cluster.connect("jobqueue", cores=2, processes=processes, **shell) as client,
    ):
        client.wait_for_workers(processes, timeout=60)
        first = {job.job_id for job in client.cluster.workers.values()}
        for job in first:
            os.killpg(int(job), signal.SIGKILL)
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3
        second = {job.job_id for job in client.cluster.workers.values()}
        assert len(second) == 1
        assert not first & second


def test_a_job_that_is_refused_is_told_and_leaves_nothing(shell, tmp_path):
    (tmp_path / "submit").write_text("#!/bin/sh\necho 'Invalid account' >&2\nexit 1\n")
    with pytest.raises(ClusterError, match=r"the job was refused: .*Invalid account"):
        ss.cluster.connect("jobqueue", cores=1, **shell)
    assert not list(tmp_path.glob(".scaleshift-tls-*"))


def test_ctrl_c_is_left_to_whoever_started_the_workers():
    with ss.cluster.connect("local", n_workers=1) as client:
        assert set(client.run(signal.getsignal, signal.SIGINT).values()) == {signal.SIG_IGN}
