"""A small study whose labels are asked for, and what they should be."""

from dataclasses import replace

import numpy as np
import zarr

from scaleshift.cells import as_cells, open_cells, write_cells
from scaleshift.cells.layout import commit
from scaleshift.cells.manifest import read_manifest

RNG = np.random.default_rng(11)
COUNTS = {"S1": 40, "S2": 25, "S10": 55}
N = sum(COUNTS.values())
SAMPLES = np.repeat(list(COUNTS), list(COUNTS.values()))
EVENTS = np.concatenate([np.arange(n) for n in COUNTS.values()])
X = RNG.normal(size=(N, 2)).astype(np.float32)
# S1 came from two files; all paths are those of another machine.
FILES = (
    {"path": "/data/run 1/a1.fcs", "sample": "S1", "n_events": 30},
    {"path": "/data/run 1/b.fcs", "sample": "S2", "n_events": 25},
    {"path": "/data/run 1/a2.fcs", "sample": "S1", "n_events": 10},
    {"path": "C:\\data\\c.fcs", "sample": "S10", "n_events": 55},
)
FILE_OF = np.array(["a1.fcs"] * 30 + ["a2.fcs"] * 10 + ["b.fcs"] * 25 + ["c.fcs"] * 55)
EVENT_IN_FILE = np.concatenate([np.arange(n) for n in (30, 10, 25, 55)])


def make_study(path, *, x=X, sample=SAMPLES, label=None, files=FILES, markers=("CD3", "CD19"), chunk=16):
    """Write the study, its files in the record."""
    write_cells(as_cells(x, sample, label, list(markers)), path, chunk_cells=chunk)
    set_record(path, files=files)
    return path


def set_record(path, **values):
    """Change the record of a study."""
    commit(zarr.open_group(path, mode="r+"), replace(read_manifest(path), **values))


def labels_of(path) -> list:
    """The label of each cell; None where it has none."""
    cells = open_cells(path)
    names = [*cells["label"].values.tolist(), None]
    return [names[code] for code in cells["label_code"].values.tolist()]
