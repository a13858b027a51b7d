"""A study in an S3 bucket, of a server on the loopback: the same bits, and clear refusals."""

import os
import subprocess
import sys

import numpy as np
import pytest
from distributed import Client, LocalCluster

import scaleshift as ss
from scaleshift.errors import SchemaError

s3fs = pytest.importorskip("s3fs", reason='pip install "scaleshift[s3]"')
pytest.importorskip("moto.server", reason="no moto[server]")

# A process of its own: the server's threads, and whatever moto sets up in its imports, stay out of ours.
SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
server.stop()
"""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "us",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.zarr"
    rng = np.random.default_rng(0)
    label = rng.choice(["B", "T"], 1_000)
    x = (rng.normal(size=(1_000, 3)) + 3 * (label == "T")[:, None]).astype("f4")
    ss.write_cells(ss.as_cells(x, np.repeat(["S0", "S1"], 500), label), path, chunk_cells=200)
    return path


@pytest.fixture(scope="module")
def endpoint():
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        host, port = server.stdout.readline().split()
        yield f"http://{host}:{port}"
        server.stdin.close()
        server.wait(20)


@pytest.fixture(scope="module")
def bucket(endpoint, store):
    """The study copied into a bucket, with our credentials in the environment while tests run."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}.items():
            patch.setenv(name, value)
        files = s3fs.S3FileSystem(skip_instance_cache=True)
        files.mkdir("bucket")
        files.put(str(store), "bucket/study.zarr", recursive=True)
        yield "s3://bucket"


def proportions(path):
    model = ss.DFM(features="energy", n_bootstrap=0, random_state=0).fit(ss.open_cells(path, samples=["S0"]))
    return model.predict(ss.open_cells(path, samples=["S1"]))["proportion"].values


def test_a_study_in_a_bucket_gives_the_same_bits(bucket, store):
    there, here = ss.open_cells(f"{bucket}/study.zarr"), ss.open_cells(store)
    for name in ("X", "sample_code", "label_code"):
        np.testing.assert_array_equal(there[name].values, here[name].values)
    np.testing.assert_array_equal(proportions(f"{bucket}/study.zarr"), proportions(store))


def test_workers_read_a_bucket_too(bucket, store):
    sizes = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**sizes) as cluster, Client(cluster):
        there = ss.open_cells(f"{bucket}/study.zarr")["X"].data.compute()
    np.testing.assert_array_equal(there, ss.open_cells(store)["X"].values)


def test_a_study_is_written_to_a_bucket_as_to_a_folder(bucket, store):
    cells = ss.open_cells(store)
    ss.write_cells(cells, f"{bucket}/written.zarr", chunk_cells=200)
    np.testing.assert_array_equal(ss.open_cells(f"{bucket}/written.zarr")["X"].values, cells["X"].values)


@pytest.mark.parametrize("path", ["s3://nobody-has-this/study.zarr", "s3://bucket/other.zarr"])
def test_a_bucket_or_a_study_that_is_not_there_is_said_to_be_missing(bucket, path):
    with pytest.raises(
        SchemaError, match=rf"^{path} does not exist, or is not a Zarr group: expected a study"
    ):
        ss.open_cells(path)


def test_a_chunk_that_is_gone_is_named(bucket):
    files = s3fs.S3FileSystem(skip_instance_cache=True)
    files.copy("bucket/study.zarr", "bucket/damaged.zarr", recursive=True)
    files.rm("bucket/damaged.zarr/X/c/2/0")
    opened = ss.open_cells(f"{bucket}/damaged.zarr")
    with pytest.raises(ss.errors.DataError, match=r"damaged.zarr: chunk 2 of X \(rows 400-599\) is missing"):
        opened["X"].values  # noqa: B018


def said(tmp_path, *, without=(), **environment):
    """What the command line says of the bucket, in an environment of its own."""
    given = {name: value for name, value in os.environ.items() if name not in without}
    given |= {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", **environment}
    command = [
        sys.executable,
        "-m",
        "scaleshift",
        "quantify",
        "s3://bucket/study.zarr",
        "--source",
        "sample == S0",
    ]
    done = subprocess.run(command, env=given, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_missing_credentials_are_said_with_what_to_set(bucket, tmp_path):
    code, error = said(tmp_path, without=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    assert code == 1
    assert "s3://bucket/study.zarr cannot be reached (Unable to locate credentials): check" in error
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in error
    assert "Traceback" not in error
