"""Where the shared reference data are, and one Dask thread pool for all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared():
    """Folder of reference data that may not be redistributed; tests that need it skip without it."""
    beside = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("SCALESHIFT_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}: set SCALESHIFT_SHARED")
    return folder
