"""Cores, memory, disk, GPU: what the process is told, and what it tells."""

import getpass
import os
import subprocess
import sys
from pathlib import Path

import dask
import numba
import pytest
from dask.system import CPU_COUNT

from scaleshift.blocks import room
from scaleshift.doctor import gpu, machine
from scaleshift.doctor.finding import without_user
from scaleshift.kernels.cuda import choice


def found(findings):
    return {finding.name: finding for finding in findings}


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program that prints a text in front of the PATH."""

    def write(name, text, code=0):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{text}'\nexit {code}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return write


def test_cores_are_those_that_dask_uses():
    cpu = found(machine.cpu())
    assert cpu["usable cores"].facts["usable"] == CPU_COUNT
    assert cpu["model"].facts["model"]


def test_thread_variables_are_told(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert "OMP_NUM_THREADS=3" in found(machine.cpu())["thread variables"].value


def test_numba_that_does_not_compile_is_a_problem(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    vectors = found(machine.cpu())["vector instructions"]
    assert vectors.status == "problem"
    assert "NUMBA_DISABLE_JIT" in vectors.advice


def test_numba_held_to_another_cpu_is_told():
    code = "from scaleshift.doctor import machine; print(*machine.cpu(), sep='\\n')"
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "none that are wide, by NUMBA_CPU_NAME=generic" in told.stdout
    assert "unset NUMBA_CPU_NAME" in told.stdout


def test_no_more_memory_is_free_than_may_be_taken():
    sizes = {name: finding.facts["bytes"] for name, finding in found(machine.memory_sizes()).items()}
    assert 0 < sizes["free"] <= sizes["limit"] <= sizes["of the machine"]


def test_the_limit_is_the_one_that_jobs_are_planned_by():
    sizes = {name: finding.facts["bytes"] for name, finding in found(machine.memory_sizes()).items()}
    assert sizes["limit"] == room.here().n_bytes


def test_the_folder_of_temporary_files_is_dasks(tmp_path):
    with dask.config.set({"temporary-directory": str(tmp_path / "not" / "made" / "yet")}):
        (place,) = machine.disk()
    assert place.status == "ok"
    assert place.facts["path"].endswith("yet")
    assert place.facts["bytes"] > 0


def test_a_folder_that_is_none_is_a_problem(tmp_path):
    (tmp_path / "file").touch()
    with dask.config.set({"temporary-directory": str(tmp_path / "file")}):
        (place,) = machine.disk()
    assert place.status == "problem"
    assert "TMPDIR" in place.advice


def test_paths_do_not_tell_whose_they_are(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("LOGNAME", "ada")
    assert getpass.getuser() == "ada"
    assert Path.home() == Path("/home/ada")
    assert without_user("in /home/ada/x and /scratch/ada") == "in ~/x and /scratch/<user>"
    assert without_user("/home/adam/ada.csv") == "/home/adam/ada.csv"


@pytest.mark.parametrize(("version", "extra"), [("580.65.06", "cu13"), ("550.54.15", "cu12")])
def test_the_driver_decides_which_extra_is_advised(program, version, extra):
    program("nvidia-smi", f"{version}, NVIDIA H200\n{version}, NVIDIA H200")
    gpus = found(gpu.gpu())
    assert gpus["NVIDIA driver"].facts == {"version": version, "devices": ["NVIDIA H200"] * 2}
    if gpus["dask-cuda"].status == "missing":
        assert gpus["dask-cuda"].advice == f'pip install "scaleshift[{extra}]"'


def test_nvidia_smi_without_a_driver_is_no_driver(program, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "KERNEL_MODULE", tmp_path / "none")
    program("nvidia-smi", "NVIDIA-SMI has failed", code=9)
    driver = found(gpu.gpu())["NVIDIA driver"]
    assert driver.status == "missing"
    assert driver.advice == ""


@pytest.mark.parametrize(
    ("wanted", "obstacle", "status", "told"),
    [
        ("auto", "", "ok", "go to the GPU where they are large"),
        ("auto", "CuPy sees no GPU", "ok", "stay on the CPU: CuPy sees no GPU"),
        ("cpu", "", "ok", "stay on the CPU: SCALESHIFT_DEVICE is cpu"),
        ("cuda", "CuPy sees no GPU", "problem", "SCALESHIFT_DEVICE is cuda, but CuPy sees no GPU"),
        ("tpu", "", "problem", "SCALESHIFT_DEVICE is 'tpu'"),
    ],
)
def test_it_is_told_whether_chunks_on_the_host_go_to_a_gpu(wanted, obstacle, status, told, monkeypatch):
    monkeypatch.setenv("SCALESHIFT_DEVICE", wanted)
    monkeypatch.setattr(choice, "gpu_obstacle", lambda: obstacle)
    finding = found(gpu.gpu())["chunks on the host"]
    assert finding.status == status
    assert finding.value.startswith(told)
    if status == "ok":
        assert finding.facts == {"gpu": wanted == "auto" and not obstacle}
