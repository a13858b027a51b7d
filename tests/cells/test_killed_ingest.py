"""An import that is killed, at whatever point, goes on to the same bits."""

import os
import subprocess
import sys
import textwrap

import numpy as np
from fcs_bytes import fcs_bytes

KILLED = """
    import hashlib, sys
    from pathlib import Path

    import dask
    from mortal import survives
    from scaleshift import SchemaError, ingest, open_cells
    from scaleshift.cells.manifest import read_manifest

    folder = Path(sys.argv[1])

    def work(store, resume):
        with dask.config.set(num_workers=1):
            ingest(folder / "fcs", store, chunk_cells=16, scaling="z", resume=resume)

    def child(step, store, resume):
        return survives(lambda: work(store, resume), step)

    def content(store):
        names = ("X", "obs", "var", "uns/scaling_scale")
        digest = hashlib.sha256()
        for path in sorted(p for name in names for p in (store / name).rglob("*")):
            if path.is_file() and path.suffix != ".partial":  # zarr writes these, then renames them
                digest.update(str(path.relative_to(store)).encode() + path.read_bytes())
        return digest.hexdigest()

    whole = folder / "whole.zarr"
    assert child(None, whole, False)
    step, seen = int(sys.argv[2]), set()
    while True:
        store = folder / f"{step}.zarr"
        if child(step, store, False):
            break
        try:
            seen.add(read_manifest(store).n_cells)
        except SchemaError:
            seen.add(None)
        assert child(None, store, True), step
        assert content(store) == content(whole), step
        first, second = (vars_of for vars_of in map(read_manifest, (whole, store)))
        assert (first.checksums, first.files, first.counts) == (second.checksums, second.files, second.counts)
        step += 7
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    print(step, *sorted(n for n in seen if n is not None))
"""


def test_killed_at_any_step_and_resumed(tmp_path):
    (tmp_path / "fcs").mkdir()
    rng = np.random.default_rng(0)
    for i, n in enumerate((5, 20, 0, 33, 1, 40)):
        events = rng.gamma(2, 100, (n, 3)).astype(np.float32)
        (tmp_path / "fcs" / f"{i}.fcs").write_bytes(fcs_bytes(events, ["Time", "FITC-A", "PE-A"]))
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), "0"]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=here)
    assert done.returncode == 0, done.stderr
    steps, *committed = map(int, done.stdout.split())
    assert steps > 70
    assert {0, 59} <= set(committed)  # kills met a study of nothing, and one of some samples
