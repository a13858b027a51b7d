"""Real cytometry: what soft matching must reach, and where it beats hard matching."""

import accuracy
import numpy as np
import pytest

import scaleshift as ss


def test_soft_matching_on_the_samples_of_one_laboratory(shared):
    if not (shared / "data" / "hipc_other_labs.npz").exists():
        pytest.skip("hipc_other_labs.npz may not be redistributed, and is not in the shared folder")
    errors = accuracy.real_errors(shared / "data")
    assert errors["soft, all classes known"] <= 0.11
    assert errors["soft, one large class left out"] <= 0.95 * errors["hard, one large class left out"]


def test_replicates_of_the_demo_study_agree_with_their_gates():
    """S01 and S02 are replicates: here label shift is a fair model, and 18 % of the cells are unknown."""
    cells = ss.datasets.load_demo()
    source = cells.isel(cell=cells["sample_code"].values == cells["sample"].values.tolist().index("S01"))
    rows = cells["sample_code"].values == cells["sample"].values.tolist().index("S02")
    truth = np.array([(cells["label_code"].values[rows] == code).mean() for code in range(4)])
    errors = {}
    for soft in (True, False):
        found = ss.DFM(soft=soft, random_state=0).fit(source).predict(cells.isel(cell=rows))
        errors[soft] = np.linalg.norm(found["proportion"].sel(sample="S02").values - truth)
    assert errors[True] < 0.8 * errors[False]
