"""Where the shared reference data are, and one BLAS thread for all tests."""

import os
from pathlib import Path

import pytest
import threadpoolctl

# BLAS threads wait by spinning: where processes share the cores, they took four times the time of the work.
if "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # of workers and scripts, and of libraries that are loaded later
    threadpoolctl.threadpool_limits(1)  # a plugin of pytest may have loaded numpy by now


@pytest.fixture(scope="session")
def shared():
    """Folder of reference data that may not be redistributed; tests that need it skip without it."""
    beside = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("SCALESHIFT_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}: set SCALESHIFT_SHARED")
    return folder
