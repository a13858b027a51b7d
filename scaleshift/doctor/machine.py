"""What may this process use of the machine: cores, vector instructions, memory, disk?"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import psutil
from dask.system import CPU_COUNT

from scaleshift.blocks import room
from scaleshift.doctor.finding import Finding, memory, without_user

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# LLVM's name of a feature -> what people call it; the widest first
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sve": "SVE", "neon": "NEON"}
LITTLE_DISK = 2**30  # bytes


def cpu() -> Iterator[Finding]:
    """The processor, and what numba and BLAS were told about it."""
    total = os.cpu_count() or CPU_COUNT
    cores = {"usable": CPU_COUNT, "total": total}
    yield Finding("usable cores", "ok", f"{CPU_COUNT} of {total}", facts=cores)
    threads = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    value = ", ".join(f"{name}={n}" for name, n in threads.items()) or "not set"
    yield Finding("thread variables", "ok", value, facts=threads)

    import numba
    from llvmlite import binding

    model = _cpu_model()
    yield Finding("model", "ok", f"{model} (LLVM: {binding.get_host_cpu_name()})", facts={"model": model})
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        value = "numba does not compile: everything is many times slower"
        yield Finding("vector instructions", "problem", value, "unset NUMBA_DISABLE_JIT", {"vectors": None})
    else:
        yield _vectors(settings.CPU_NAME)


def memory_sizes() -> Iterator[Finding]:
    """What the machine has, what this process may take, what is free."""
    found, limit, free = psutil.virtual_memory(), room.limit(), room.free_here()
    yield Finding("of the machine", "ok", memory(found.total), facts={"bytes": found.total})
    value = memory(limit) if limit < found.total else "none below that"
    yield Finding("limit", "ok", value, facts={"bytes": limit})
    yield Finding("free", "ok", memory(free), facts={"bytes": free})


def disk() -> Iterator[Finding]:
    """Where temporary files go: Dask's workers spill there."""
    folder = Path(dask.config.get("temporary-directory", None) or tempfile.gettempdir()).absolute()
    place = next(p for p in (folder, *folder.parents) if p.exists())  # Dask makes the rest
    free = shutil.disk_usage(place).free
    shown = without_user(str(folder))
    value, facts = f"{memory(free)} free in {shown}", {"path": shown, "bytes": free}
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        value = f"nothing can be written to {shown}"
        yield Finding("temporary files", "problem", value, "set TMPDIR to a folder of your own", facts)
    else:
        advice = "set TMPDIR to a folder with more room" if free < LITTLE_DISK else ""
        yield Finding("temporary files", "ok", value, advice, facts)


def _cpu_model() -> str:
    """As Linux names it; elsewhere the family."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _vectors(cpu_name: str | None) -> Finding:
    """What numba compiles for, told by numba itself."""
    from numba.core.registry import cpu_target

    _, target, features = cpu_target.target_context.codegen().magic_tuple()
    on = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    widest = next((name for feature, name in VECTORS.items() if feature in on), None)
    facts = {"vectors": widest, "NUMBA_CPU_NAME": cpu_name}
    if cpu_name is None:
        return Finding("vector instructions", "ok", widest or "none that are wide", facts=facts)
    value = f"{widest or 'none that are wide'}, by NUMBA_CPU_NAME={target}"
    return Finding("vector instructions", "ok", value, "unset NUMBA_CPU_NAME to use all of this CPU", facts)
