"""A writer that is killed, at whatever point, harms nothing that was there before."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xarray as xr

from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.errors import DataError, SchemaError

X = np.arange(120, dtype=np.float32).reshape(60, 2)
MARKERS = ["CD3", "CD19"]

KILLED = """
    import shutil, sys
    from functools import partial
    import numpy as np
    from mortal import survives
    from scaleshift.cells import append_cells, as_cells, write_cells

    folder, action = sys.argv[1:]
    x = np.arange(120, dtype=np.float32).reshape(60, 2)
    new = as_cells(x[26:], ["c"] * 20 + ["d"] * 14, [1, 7] * 17, ["CD3", "CD19"])

    for step in range(200):
        path = f"{folder}/{step}.zarr"
        if action == "append":
            shutil.copytree(f"{folder}/old.zarr", path)
        write = append_cells if action == "append" else partial(write_cells, chunk_cells=20)
        if survives(partial(write, new, path), step):
            print(step)
            break
"""


def killed_at_every_step(folder, action: str) -> int:
    """Run an action, killed before its first, second, ... change of a file; the number of changes."""
    script = textwrap.dedent(KILLED)
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, str(folder), action]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=here)
    return int(done.stdout)


@pytest.mark.parametrize("label", [None, [1, 2] * 13])
def test_an_append_killed_at_any_point_leaves_the_study_as_it_was(tmp_path, label):
    write_cells(as_cells(X[:26], ["a"] * 26, label, MARKERS), tmp_path / "old.zarr", chunk_cells=20)
    before = open_cells(tmp_path / "old.zarr").compute()
    steps = killed_at_every_step(tmp_path, "append")
    assert steps > 15
    complete = open_cells(tmp_path / f"{steps}.zarr").compute()
    np.testing.assert_array_equal(complete["X"], X)
    again = as_cells(X[26:], ["c"] * 20 + ["d"] * 14, [1, 7] * 17, MARKERS)
    for step in range(steps):
        xr.testing.assert_equal(open_cells(tmp_path / f"{step}.zarr").compute(), before)
        if step % 3 == 0:
            append_cells(again, tmp_path / f"{step}.zarr")
            xr.testing.assert_equal(open_cells(tmp_path / f"{step}.zarr").compute(), complete)


def test_a_write_killed_at_any_point_is_refused(tmp_path):
    steps = killed_at_every_step(tmp_path, "write")
    assert open_cells(tmp_path / f"{steps}.zarr").sizes["cell"] == 34
    for step in range(steps):
        with pytest.raises((SchemaError, DataError), match=r"expected a study|write (it|the study) again"):
            open_cells(tmp_path / f"{step}.zarr")
