"""Which of the packages that we compare ourselves with are here, and held to one thread?

A peer that is missing is named in the results with the reason: it is not passed over in silence.
"""

import atexit
import functools
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

KEOPS_FLAGS = "-O3 -march=native -ffast-math"  # its own, -O3 alone, are 2 to 3 times as slow


def torch() -> ModuleType:
    """PyTorch on one thread, without gradients."""
    module = importlib.import_module("torch")
    module.set_num_threads(1)
    module.set_grad_enabled(False)
    return module


def keops(formula: str, variables: list[str], flags: str) -> Any:
    """A PyKeOps sum over the rows of a formula, compiled now, with these flags in the first call.

    It compiles into a folder of its own, which is not kept.
    """
    if "pykeops" not in sys.modules:
        os.environ["CXXFLAGS"] = flags
        folder = os.environ["KEOPS_CACHE_FOLDER"] = tempfile.mkdtemp(prefix="keops-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = importlib.import_module("pykeops.numpy")
    return library.Genred(formula, variables, reduction_op="Sum", axis=1)


def prototype(module: str, folder: str | None = None) -> ModuleType | None:
    """A measured prototype, in a folder or where the shared reference data are (SCALESHIFT_SHARED)."""
    where = Path(folder or Path(os.environ.get("SCALESHIFT_SHARED", "")) / "prototypes" / "cpu")
    if not (where / f"{module}.py").exists():
        return None
    sys.path.insert(0, str(where))
    return importlib.import_module(module)


def gather(
    builders: Mapping[str, Callable[[], Any]], job: Sequence[Any], truth: np.ndarray, ours: str
) -> tuple[dict[str, Callable[[], np.ndarray]], dict[str, str]]:
    """Build functions of a job, look whether they are right, and say why some are missing.

    A builder returns None for what is not on this machine. Ours must be there; columns beyond those of the
    truth are passed over.
    """
    found: dict[str, Callable[[], np.ndarray]] = {}
    missing: dict[str, str] = {}
    for name, build in builders.items():
        try:
            sums = build()
            result = None if sums is None else sums(*job)
        except Exception as problem:
            if name == ours:
                raise
            missing[name] = f"{type(problem).__name__}: {problem}"[:200]
            continue
        if result is None:
            missing[name] = "not on this machine"
            continue
        error = np.linalg.norm(result[:, : truth.shape[1]] - truth) / np.linalg.norm(truth)
        assert error < 1e-5, f"{name} is off by {error:.1e}"
        found[name] = functools.partial(sums, *job)
    return found, missing


def in_chunks(
    means: Callable[[np.ndarray, np.ndarray], Any], x: np.ndarray, labels: np.ndarray, chunk: int
) -> Callable[[], Any]:
    """Return what calls a function of rows and labels chunk by chunk."""
    return lambda: [
        means(x[start : start + chunk], labels[start : start + chunk]) for start in range(0, len(x), chunk)
    ]
