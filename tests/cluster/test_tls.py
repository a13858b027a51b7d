"""Certificates by our script, Dask's settings by our file: encrypted for us, and closed to others."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
import yaml
from distributed import Client, comm
from distributed.security import Security
from recipes import RECIPES, certificate_environment, make_certificates

import scaleshift as ss
from scaleshift.cluster.settings import ONE_BLAS_THREAD, SETTINGS

CONFIGURATION = RECIPES / "dask-config" / "scaleshift.yaml"
DASK = [sys.executable, "-m", "dask"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls") / "certificates"
    made = make_certificates(folder)
    assert made.returncode == 0, made.stderr
    return folder


def test_certificates_are_for_their_owner_and_the_names_given(tmp_path):
    folder = tmp_path / "certificates"
    said = make_certificates(folder, "node01.example.org", "*.example.org", "10.0.0.7", "::1").stdout
    assert sorted(path.name for path in folder.iterdir()) == ["ca.pem", "node.pem"]
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}
    show = ["openssl", "x509", "-in", folder / "node.pem", "-noout", "-ext", "subjectAltName"]
    names = subprocess.run(show, capture_output=True, text=True, check=True).stdout.split("\n")[1]
    assert names.strip() == (
        "DNS:node01.example.org, DNS:*.example.org, IP Address:10.0.0.7, IP Address:0:0:0:0:0:0:0:1"
    )
    assert "valid for 365 days, until" in said
    assert f"export SCALESHIFT_TLS={folder}" in said


def test_a_certificate_is_one_of_its_authority_by_the_strict_rules(certificates):
    verify = [
        "openssl",
        "verify",
        "-x509_strict",
        "-CAfile",
        certificates / "ca.pem",
        certificates / "node.pem",
    ]
    assert subprocess.run(verify, capture_output=True, text=True).stdout.strip().endswith("OK")


def test_nothing_is_overwritten(certificates):
    before = {path.name: path.read_bytes() for path in certificates.iterdir()}
    made = make_certificates(certificates)
    assert made.returncode == 2
    assert "exists already, and nothing is overwritten" in made.stderr
    assert {path.name: path.read_bytes() for path in certificates.iterdir()} == before


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_help_says_what_the_script_does(asked):
    made = subprocess.run([RECIPES / "tls/make-certificates", asked], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    assert "make-certificates [--days N] FOLDER NAME..." in made.stdout
    assert "Writes ca.pem, whom to trust, and node.pem" in made.stdout
    assert "set -euo" not in made.stdout


@pytest.mark.parametrize("name", ["a b", "x\nbasicConstraints=CA:TRUE", "$(touch here)", "é.org", ""])
def test_what_is_no_name_of_a_host_is_refused(tmp_path, name):
    made = make_certificates(tmp_path / "certificates", name)
    assert made.returncode == 2
    assert "neither the name nor the address of a host" in made.stderr
    assert not list(tmp_path.iterdir())


def test_an_address_that_openssl_refuses_leaves_no_folder(tmp_path):
    made = make_certificates(tmp_path / "certificates", "999.1.1.1")
    assert made.returncode == 2
    assert not list(tmp_path.iterdir())


def test_days_are_those_asked_for(tmp_path):
    made = make_certificates(tmp_path / "certificates", days=("--days", "3"))
    assert "valid for 3 days" in made.stdout
    check = ["openssl", "x509", "-in", tmp_path / "certificates" / "node.pem", "-noout", "-checkend"]
    day = 86_400
    assert [subprocess.run([*check, str(n * day)], capture_output=True).returncode for n in (2, 4)] == [0, 1]


def test_the_environment_says_where_certificates_are_missing(tmp_path):
    shell = ["bash", "-c", '. "$1"', "bash", RECIPES / "tls" / "environment"]
    done = subprocess.run(shell, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 1
    assert "make them with cluster/tls/make-certificates" in done.stderr


def flat(tree, prefix=""):
    """Values of a nested configuration by Dask's names."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_the_file_says_what_connect_sets():
    written = dict(flat(yaml.safe_load(CONFIGURATION.read_text())))
    assert {name: written.get(name) for name in SETTINGS} == SETTINGS
    threads = {name: str(written[f"distributed.nanny.pre-spawn-environ.{name}"]) for name in ONE_BLAS_THREAD}
    assert threads == ONE_BLAS_THREAD


def test_the_file_names_only_what_dask_knows():
    from distributed.config import defaults

    known = {dask.config.canonical_name(name, {}) for name, _ in flat(defaults)}
    ours = set(dict(flat(yaml.safe_load(CONFIGURATION.read_text()))))
    ours -= {name for name in ours if name.startswith(("logging.", "distributed.nanny.pre-spawn-environ."))}
    assert ours <= known | {name.replace("_", "-") for name in known}


@contextlib.contextmanager
def running(*command, environment):
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(certificates, tmp_path_factory):
    """A scheduler and a worker by Dask's command lines; the address, and what listens where."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    environment = {
        **os.environ,
        **certificate_environment(certificates),
        "DASK_CONFIG": str(CONFIGURATION),
        "OMP_NUM_THREADS": "1",
    }
    # On another address of the loopback than HTTP: the two can be told apart.
    common = [
        "--host",
        "127.0.0.2",
        "--protocol",
        "tls",
        "--no-dashboard",
        "--dashboard-address",
        "127.0.0.1:0",
    ]
    common += ["--scheduler-file", file]
    scheduler = [*DASK, "scheduler", "--port", "0", *common]
    worker = [
        *DASK,
        "worker",
        "--nthreads",
        "1",
        "--memory-limit",
        "1GiB",
        *common,
        "--local-directory",
        folder,
    ]
    with running(*scheduler, environment=environment) as one:
        end = time.monotonic() + 60
        while not (file.exists() and file.read_text().rstrip().endswith("}")):
            assert one.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        with running(*worker, environment=environment) as other:
            address = yaml.safe_load(file.read_text())["address"]
            yield address, (one.pid, other.pid)


@pytest.fixture(scope="module")
def client(cluster, certificates):
    node = str(certificates / "node.pem")
    security = Security(
        tls_ca_file=str(certificates / "ca.pem"), tls_client_cert=node, require_encryption=True
    )
    with Client(cluster[0], security=security, timeout=30) as connected:
        connected.wait_for_workers(1, timeout=60)
        yield connected


def test_a_fit_over_tls_gives_the_same_bits(client, tmp_path):
    rng = np.random.default_rng(0)
    label = rng.choice(["B", "T"], 1_000)
    x = (rng.normal(size=(1_000, 3)) + 3 * (label == "T")[:, None]).astype("f4")
    store = tmp_path / "study.zarr"
    ss.write_cells(ss.as_cells(x, np.repeat(["S0", "S1"], 500), label), store, chunk_cells=100)

    def answer():
        model = ss.DFM(features="energy", n_bootstrap=0, random_state=0)  # the least to compile
        model.fit(ss.open_cells(store, samples=["S0"]))
        return model.predict(ss.open_cells(store, samples=["S1"]))["proportion"].values

    there = answer()
    with dask.config.set(scheduler="threads"):
        here = answer()
    np.testing.assert_array_equal(there, here)
    assert {address.split("://")[0] for address in client.nthreads()} == {"tls"}


def test_workers_have_the_settings_of_the_file(client):
    def found(names):
        return {name: dask.config.get(name) for name in names}, os.environ["OMP_NUM_THREADS"]

    (settings,) = client.run(found, list(SETTINGS)).values()
    assert settings == (SETTINGS, "1")


def test_what_listens_beyond_http_on_the_loopback_is_encrypted(client, cluster):
    listening = {}
    for pid in cluster[1]:
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            for connection in each.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.setdefault(connection.laddr.ip, []).append(connection.laddr.port)
    assert set(listening) == {"127.0.0.1", "127.0.0.2"}
    assert len(listening["127.0.0.2"]) == 3  # scheduler, nanny, worker
    for port in listening["127.0.0.2"]:
        assert refused(f"tcp://127.0.0.2:{port}", Security())


def refused(address, security):
    """Why a scheduler does not answer; nothing where it does."""

    async def ask():
        arguments = security.get_connection_args("client")
        there = await comm.connect(address, timeout=3, **arguments)
        try:
            await there.write({"op": "identity", "reply": True})
            return await asyncio.wait_for(there.read(), 3)
        finally:
            there.abort()

    try:
        asyncio.run(ask())
    except (OSError, TimeoutError, comm.CommClosedError) as error:
        return str(error) or type(error).__name__
    return ""


def test_plain_tcp_is_refused(client, cluster):
    assert refused(cluster[0].replace("tls://", "tcp://"), Security())


def test_a_certificate_of_another_authority_is_refused(client, cluster, certificates, tmp_path):
    def security(ca, node):
        return Security(tls_ca_file=str(ca), tls_client_cert=str(node), require_encryption=True)

    make_certificates(tmp_path / "others")
    ours, others = certificates / "node.pem", tmp_path / "others" / "node.pem"
    assert not refused(cluster[0], security(certificates / "ca.pem", ours))
    assert refused(cluster[0], security(certificates / "ca.pem", others))  # the scheduler does not know them
    assert refused(cluster[0], security(tmp_path / "others" / "ca.pem", ours))  # nor they the scheduler


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck")
def test_shellcheck_has_nothing_to_say():
    scripts = [path for path in RECIPES.rglob("*") if path.is_file() and is_shell(path)]
    assert len(scripts) == 5
    done = subprocess.run(["shellcheck", "-x", *scripts], capture_output=True, text=True)
    assert done.stdout == ""


def is_shell(path: Path) -> bool:
    return path.read_text().startswith(("#!/usr/bin/env bash", "# shellcheck"))
