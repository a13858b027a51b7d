from importlib import resources

import numpy as np
import pytest

from scaleshift.datasets import DEMO, load_demo

SAMPLES = ["S01", "S02", "S05", "S07", "S09", "S11", "S13", "S15"]


@pytest.fixture(scope="module")
def study():
    return load_demo()


def test_the_demo_study_has_the_layout_of_a_study_in_memory(study):
    assert study["X"].dims == ("cell", "marker")
    assert study["X"].shape == (144_000, 8)
    assert isinstance(study["X"].data, np.ndarray)
    assert study["X"].dtype == np.float32
    assert study["sample_code"].dims == study["label_code"].dims == ("cell",)
    assert study["sample_code"].dtype == study["label_code"].dtype == np.int32
    assert study["marker"].values.tolist() == [f"m{i}" for i in range(8)]
    assert study["sample"].values.tolist() == SAMPLES
    assert study["label"].values.tolist() == ["B_cells", "CD4_Tcells", "CD8_Tcells", "Monocytes"]
    assert all(study[name].dtype.kind == "U" for name in ("marker", "sample", "label"))


def test_every_sample_has_equally_many_cells_in_one_run(study):
    np.testing.assert_array_equal(study["sample_code"], np.repeat(np.arange(8), 18_000))


def test_ungated_cells_are_kept_as_unlabelled(study):
    share = [(study["label_code"][study["sample_code"] == i] == -1).mean().item() for i in range(8)]
    assert np.all(np.array(share[:4]) < 0.2)
    assert np.all(np.array(share[4:]) > 0.27)


def test_the_subsample_keeps_the_class_proportions_of_the_full_samples(study):
    # cells per class and ungated in the full S01 and S13
    full = {"S01": [2503, 10329, 6305, 26656, 9828], "S13": [8325, 9566, 5110, 26481, 27612]}
    for name, counts in full.items():
        codes = study["label_code"].values[study["sample_code"] == SAMPLES.index(name)]
        drawn = np.append(np.bincount(codes[codes >= 0], minlength=4), np.sum(codes == -1))
        np.testing.assert_allclose(drawn / drawn.sum(), np.divide(counts, sum(counts)), atol=0.01)


def test_values_are_arcsinh_counts_on_the_grid_of_the_source(study):
    steps = study["X"].values.astype(float) * 500
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)
    assert steps.min() >= 0
    assert 7.5 < study["X"].max() < 10  # the largest count is some 6,700; raw counts would be far above


def test_labels_tell_populations_apart(study):
    by_label = study["X"].groupby(study["label_code"]).median()
    assert np.ptp(by_label.values, axis=0).max() > 2


def test_source_and_licence_travel_with_the_data(study):
    assert study.attrs["licence"] == "Apache-2.0"
    assert "KlugerLab/deepcytof" in study.attrs["source"]
    assert "subsampled" in study.attrs["description"]
    assert {"title", "transform"} <= set(study.attrs)


def test_the_packaged_file_is_small_and_has_its_notice_beside_it():
    folder = resources.files("scaleshift") / "data"
    assert len((folder / DEMO).read_bytes()) <= 2_000_000
    notice = (folder / DEMO.replace(".npz", ".NOTICE.txt")).read_text()
    assert "KlugerLab/deepcytof" in notice
    assert "Apache License" in notice
    assert "Subsampled" in notice
