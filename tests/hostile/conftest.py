import numpy as np
import pytest
from danger import Danger

import scaleshift as ss

SAMPLES = np.repeat(["S1", "S2"], 60)
LABELS = np.tile(["B", "T", "NK"], 40)
X = np.random.default_rng(0).normal(size=(120, 3)).astype("f4") + np.tile(np.eye(3, dtype="f4") * 4, (40, 1))


@pytest.fixture
def danger(tmp_path, monkeypatch):
    return Danger(tmp_path, monkeypatch)


@pytest.fixture
def study(danger):
    """A study in the folder that is worked in; what is not among what is looked at is written before."""
    path = danger.work / "study.zarr"
    ss.write_cells(
        ss.as_cells(X, sample=SAMPLES, label=LABELS, marker=["CD3", "CD4", "CD8"]), path, chunk_cells=64
    )
    return path
