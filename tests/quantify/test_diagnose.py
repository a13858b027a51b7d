"""What is wrong with a sample: markers that moved, batch shift or unknown cells, where these are."""

import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.metrics import roc_auc_score
from synthetic import make
from three_classes import CENTRES, LABELS, draw

import scaleshift as ss
from scaleshift.quantify.diagnosis import VARIABLES, diagnose
from scaleshift.quantify.moments import centres_and_spreads

X, Y = draw(6_000, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(4_000, [0.7, 0.2, 0.1], seed=1)
MAPS = ["fourier", "landmarks"]
MODELS = {name: ss.DFM(name, random_state=0, n_bootstrap=0).fit(X, Y) for name in MAPS}
FAR = np.array([12.0, -9.0, 7.0])


def unknown_cells(n, centre=FAR, seed=2):
    return (centre + np.random.default_rng(seed).standard_normal((n, 3))).astype("f4")


def refuse(*_, **__):
    raise AssertionError("something was computed")


# Which markers moved -----------------------------------------------------------------------------------


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("marker", [0, 1, 2])
@pytest.mark.parametrize("by", [-1.0, 1.0])
def test_a_marker_moved_by_one_sd_is_named_first(features, marker, by):
    moved = T.copy()
    moved[:, marker] += by
    found = diagnose(MODELS[features], moved)
    assert found["moved"].values[0, 0] == f"column {marker}"
    assert found["shift"].values[0, marker] == pytest.approx(by, abs=0.12)
    others = np.delete(found["shift"].values[0], marker)
    assert np.abs(others).max() < 0.12
    assert found["verdict"].item() == "batch shift"


@pytest.mark.parametrize("features", MAPS)
def test_the_marker_is_named_first_among_unknown_cells_too(features):
    both = np.concatenate([T + np.array([0, 0, 1], "f4"), unknown_cells(1_500)])
    found = diagnose(MODELS[features], both)
    assert found["moved"].values[0, 0] == "column 2"
    assert found["shift"].values[0, 2] == pytest.approx(1, abs=0.15)
    assert found["verdict"].item() == "both"


def test_a_class_that_moved_alone_is_named():
    moved = T.copy()
    moved[TY == "b", 1] += 1
    found = diagnose(MODELS["landmarks"], moved)["class_shift"].sel(label="b").values[0]
    assert found[1] == pytest.approx(1, abs=0.2)  # drawn towards 0 by the number of its cells
    rest = diagnose(MODELS["landmarks"], moved)["class_shift"].sel(label=["a", "c"]).values
    assert np.abs(rest).max() < 0.2


def test_shifts_are_in_units_of_the_marker_scale():
    scale = np.array([10.0, 10.0, 10.0])
    model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X * scale, Y)
    moved = T + np.array([0, 1, 0])
    ours, theirs = diagnose(MODELS["landmarks"], moved), diagnose(model, moved * scale)
    np.testing.assert_allclose(theirs["shift"], ours["shift"], atol=0.02)
    np.testing.assert_allclose(theirs["class_profile"], 10 * ours["class_profile"], rtol=1e-5)


# Batch shift or unknown population ---------------------------------------------------------------------


@pytest.mark.parametrize("features", MAPS)
def test_a_sample_of_the_source_classes_fits(features):
    found = diagnose(MODELS[features], T)
    assert found["verdict"].item() == "fits"
    assert found["misfit"].item() < 0.05
    assert found["unknown"].item() < 0.02
    assert found["n_unknown"].item() < 0.02 * found["n_cells"].item()


@pytest.mark.parametrize("features", MAPS)
def test_recentring_explains_a_batch_shift(features):
    found = diagnose(MODELS[features], T + np.array([0.7, -0.7, 0.7], "f4"))
    assert found["verdict"].item() == "batch shift"
    assert found["distance"].item() > 0.1
    assert found["distance_recentred"].item() < 0.2 * found["distance"].item()
    assert found["unknown_recentred"].item() < 0.02


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_recentring_does_not_explain_an_unknown_population(features, share):
    n = round(len(T) * share / (1 - share))
    found = diagnose(MODELS[features], np.concatenate([T, unknown_cells(n)]))
    assert found["verdict"].item() == "unknown population"
    assert found["distance_recentred"].item() > 0.9 * found["distance"].item()
    assert found["unknown_recentred"].item() == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize(
    ("noise", "shift", "verdict"),
    [
        ("none", 0, "fits"),
        ("none", 1, "batch shift"),
        ("far", 0, "unknown population"),
        ("far", 1, "both"),
        ("background", 0, "unknown population"),
        ("background", 1, "both"),
    ],
)
def test_verdicts_on_the_synthetic_problems(features, noise, shift, verdict):
    """30 % unknown cells, a marker moved by one within-class sd, both or neither; classes overlap."""
    for seed in range(5):
        problem = make(seed, noise, 0.3)
        model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(problem.x, problem.y)
        by = np.zeros(5)
        by[2] = shift * diagnose(model, problem.x)["class_sd"].values[:, 2].mean()
        found = diagnose(model, problem.target + by)
        assert found["verdict"].item() == verdict
        if shift:
            assert found["moved"].values[0, 0] == "column 2"


@pytest.mark.parametrize("features", MAPS)
def test_verdicts_on_a_study_of_several_centres(features):
    """Labelled cells of other samples are shifted; those outside all gates are unknown.

    Of these only some can be seen: their profile is off by 1 sd in one marker, m4. It is four times as near
    to their mean as the nearest class is, at least.
    """
    study = ss.datasets.load_demo()
    x, sample, label = study["X"].values, study["sample_code"].values, study["label_code"].values
    gated = label >= 0
    names = study["sample"].values[sample]
    source = gated & (names == "S01")
    model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(x[source], label[source])
    others = np.isin(names, ["S02", "S05", "S07", "S09"])
    known = diagnose(model, x[others & gated], sample=names[others & gated])
    assert known["verdict"].values.tolist() == ["fits"] + 3 * ["batch shift"]
    every = diagnose(model, x[others], sample=names[others])
    assert every["verdict"].values.tolist() == ["unknown population"] + 3 * ["both"]
    for name in ("S02", "S07"):
        mean = x[(names == name) & ~gated].mean(axis=0)
        spread = every["class_sd"].values.mean(axis=0)
        off = np.linalg.norm((every["unknown_profile"].sel(sample=name).values - mean) / spread)
        others = np.linalg.norm((every["class_profile"].values - mean) / spread, axis=1)
        assert off < others.min() / 4


def test_recentred_distances_are_never_larger():
    for seed in range(3):
        problem = make(seed, "near", 0.3)
        model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(problem.x, problem.y)
        found = diagnose(model, problem.target)
        assert found["distance_recentred"].item() <= found["distance"].item()
        assert found["misfit_recentred"].item() <= found["misfit"].item()


def test_distances_are_those_of_predict_without_the_noise_of_a_draw():
    far = np.concatenate([T, unknown_cells(1_700)])
    for model in MODELS.values():
        expected = model.predict(far)
        found = diagnose(model, far)
        assert found["distance"].item() == pytest.approx(expected["distance"].item(), rel=0.06)
        assert found["unknown"].item() == pytest.approx(expected["unknown"].item(), abs=0.03)
    assert diagnose(model, T[:100])["distance"].item() < 0.5 * model.predict(T[:100])["distance"].item()


# Where the unknown cells are ---------------------------------------------------------------------------


@pytest.mark.parametrize("features", MAPS)
def test_the_profile_of_far_unknown_cells_is_near_their_mean(features):
    found = diagnose(MODELS[features], np.concatenate([T, unknown_cells(800)]))
    assert np.abs(found["unknown_profile"].values[0] - FAR).max() < 0.5  # of 12 to the nearest class
    share = 800 / 4_800
    assert found["n_unknown"].item() == pytest.approx(share * 2_000, rel=0.1)


@pytest.mark.parametrize("features", MAPS)
def test_the_profile_is_in_the_units_of_the_sample_where_it_is_shifted_too(features):
    moved = np.concatenate([T, unknown_cells(1_200)]) + np.array([0, 1, 0], "f4")
    found = diagnose(MODELS[features], moved)
    assert np.abs(found["unknown_profile"].values[0] - FAR - [0, 1, 0]).max() < 0.6


def test_a_sample_without_unknown_cells_has_no_profile_of_them():
    found = diagnose(MODELS["landmarks"], T[:300])
    assert found["n_unknown"].item() < 5
    assert np.isnan(found["unknown_profile"].values).all()


def test_profiles_of_classes_are_their_means():
    found = diagnose(MODELS["fourier"], T)
    for label in LABELS:
        rows = X[label == Y].astype(np.float64)
        np.testing.assert_allclose(found["class_profile"].sel(label=label), rows.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(found["class_sd"].sel(label=label), rows.std(axis=0), rtol=1e-9)
        assert found["class_counts"].sel(label=label) == len(rows)


# Samples, shapes, what may go wrong --------------------------------------------------------------------


def test_samples_are_told_one_by_one():
    cells = np.concatenate([T, T + np.array([0, 0, 1], "f4"), T[:30]])
    names = np.repeat(["S1", "S2", "S10"], [len(T), len(T), 30])
    found = diagnose(MODELS["landmarks"], cells, sample=names)
    assert found["sample"].values.tolist() == ["S1", "S2", "S10"]
    assert found["verdict"].values.tolist() == ["fits", "batch shift", "too few cells"]
    assert found["n_cells"].values.tolist() == [2_000, 2_000, 30]
    assert np.isnan(found["distance"].values).tolist() == [False, False, True]
    assert found["moved"].values[2].tolist() == ["", "", ""]


def test_every_variable_is_described():
    found = diagnose(MODELS["fourier"], T)
    assert set(found.data_vars) == set(VARIABLES)
    for name, (dims, *_) in VARIABLES.items():
        assert found[name].dims == dims
        assert found[name].attrs["description"]
    assert found.attrs["seed"] == MODELS["fourier"].seed_


def test_markers_and_metadata_keep_their_names():
    names = ["CD3", "CD4", "CD8"]
    cells = ss.as_cells(X, label=Y, marker=names)
    model = ss.DFM("landmarks", random_state=0).fit(cells)
    target = ss.as_cells(T + np.array([0, 1, 0], "f4"), sample=np.repeat(["S1"], len(T)), marker=names)
    found = diagnose(model, target.assign_coords(day=("sample", [7])))
    assert found["marker"].values.tolist() == names
    assert found["moved"].values[0, 0] == "CD4"
    assert found["day"].values.tolist() == [7]


@pytest.mark.parametrize("features", MAPS)
def test_chunks_change_nothing(features):
    cells = np.concatenate([T, unknown_cells(800)]) + np.array([0, 0.5, 0], "f4")
    names = np.tile(["S1", "S2"], len(cells) // 2)
    whole = diagnose(MODELS[features], cells, sample=names)
    chunked = diagnose(MODELS[features], da.from_array(cells, chunks=(700, 2)).rechunk({1: 3}), sample=names)
    xr.testing.assert_allclose(whole, chunked, rtol=1e-9)


def test_more_samples_than_are_drawn_at_a_time(monkeypatch):
    names = np.tile([f"S{i}" for i in range(8)], len(T) // 8)
    whole = diagnose(MODELS["landmarks"], T, sample=names)
    monkeypatch.setattr("scaleshift.quantify.diagnosis.SAMPLES_AT_A_TIME", 3)
    xr.testing.assert_identical(whole, diagnose(MODELS["landmarks"], T, sample=names))


def test_classes_without_source_cells_are_nan():
    keep = Y != "b"
    labels = pd.Categorical(Y[keep], categories=[*LABELS])
    model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(X[keep], labels)
    found = diagnose(model, T[TY != "b"])
    assert np.isnan(found["class_profile"].sel(label="b")).all()
    assert found["verdict"].item() == "fits"


def test_rows_that_are_not_finite():
    broken = T.copy()
    broken[::7, 1] = np.nan
    with pytest.raises(ss.DataError, match="NaN or infinite values"):
        diagnose(MODELS["fourier"], broken)
    model = ss.DFM("landmarks", random_state=0, invalid="drop").fit(X, Y)
    assert diagnose(model, broken)["verdict"].item() == "fits"


@pytest.mark.parametrize("features", ["gaussian", ss.ClassifierFeatures()])
def test_models_without_a_kernel_of_features_are_refused(features):
    model = ss.DFM(features, random_state=0).fit(X, Y)
    with pytest.raises(ss.DataError, match="fit a DFM with features='landmarks' or 'fourier'"):
        diagnose(model, T)


def test_a_constant_marker_is_no_shift():
    flat = np.column_stack([X, np.full(len(X), 2.0)])
    model = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(flat, Y)
    found = diagnose(model, np.column_stack([T, np.full(len(T), 2.0)]))
    assert abs(found["shift"].values[0, 3]) < 1e-9
    assert found["verdict"].item() == "fits"


# What the source leaves behind for it ------------------------------------------------------------------


def test_class_moments_are_those_of_the_source_whatever_the_chunks():
    for x in (X, da.from_array(X, chunks=(777, 3))):
        moments = ss.DFM("landmarks", random_state=0, n_bootstrap=0).fit(x, Y).source_.moments
        for code, label in enumerate(LABELS):
            rows = X[label == Y].astype(np.float64)
            np.testing.assert_allclose(moments[code], [rows.sum(axis=0), (rows**2).sum(axis=0)], rtol=1e-12)


def test_invalid_and_unlabelled_rows_are_in_no_moment():
    y = Y.astype(object)
    y[::2] = None
    x = X.copy()
    x[1::4, 0] = np.inf
    model = ss.DFM("landmarks", random_state=0, invalid="drop").fit(x, y)
    rows = X[3::4][Y[3::4] == "a"].astype(np.float64)
    np.testing.assert_allclose(model.source_.moments[0, 0], rows.sum(axis=0), rtol=1e-12)


def test_moments_of_merged_and_of_loaded_models(tmp_path):
    first = ss.DFM("landmarks", random_state=0).fit(X[:3_000], Y[:3_000])
    second = ss.DFM(first.embedding_, random_state=0).fit(X[3_000:], Y[3_000:])
    merged = first.merge(second)
    np.testing.assert_allclose(merged.source_.moments, MODELS["landmarks"].source_.moments, rtol=1e-12)
    merged.save(tmp_path / "model")
    cells = np.concatenate([T, unknown_cells(300)])
    xr.testing.assert_identical(diagnose(ss.load(tmp_path / "model"), cells), diagnose(merged, cells))


def test_spreads_of_a_class_of_one_cell_come_from_the_others():
    _, spreads = centres_and_spreads(np.array([[[10.0], [20.0]], [[5.0], [25.0]]]), np.array([10, 1]))
    assert spreads[0, 0] == pytest.approx(1)
    assert spreads[1, 0] == pytest.approx(0.3 * np.sqrt(10 / 11))


# Novelty of single cells -------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [*MAPS, "gaussian"])
@pytest.mark.parametrize(("noise", "bar"), [("far", 0.999), ("background", 0.985), ("near", 0.93)])
def test_novelty_separates_unknown_cells(features, noise, bar):
    scores = []
    for seed in range(5):
        problem = make(seed, noise, 0.3, n=3_000)
        model = ss.DFM(features, random_state=0, n_bootstrap=0).fit(problem.x, problem.y)
        found = ss.quantify.novelty(model, problem.target).compute()
        scores.append(roc_auc_score(np.arange(len(found)) >= 3_000, found))
    assert np.mean(scores) > bar


@pytest.mark.parametrize("features", MAPS)
def test_novelty_is_near_0_for_known_cells_and_near_1_for_far_ones(features):
    known = ss.quantify.novelty(MODELS[features], T).compute()
    far = ss.quantify.novelty(MODELS[features], unknown_cells(500)).compute()
    assert known.mean() < 0.05
    assert ss.quantify.novelty(MODELS[features], CENTRES.astype("f4")).compute().max() < 0.001
    assert far.min() > 0.95
    assert known.min() >= 0
    assert far.max() <= 1


def test_novelty_is_lazy_in_the_chunks_of_the_rows():
    x = da.from_array(T, chunks=(900, 3))
    with dask.config.set(scheduler=refuse):
        found = ss.quantify.novelty(MODELS["fourier"], x)
    assert found.chunks == (x.chunks[0],)
    np.testing.assert_allclose(found, ss.quantify.novelty(MODELS["fourier"], T), atol=1e-5)


def test_novelty_of_rows_that_are_not_finite():
    broken = T[:4].copy()
    broken[1, 0] = np.nan
    model = ss.DFM("landmarks", random_state=0, invalid="drop").fit(X, Y)
    assert np.isnan(ss.quantify.novelty(model, broken).compute()).tolist() == [False, True, False, False]
    with pytest.raises(ss.DataError, match="rows 1"):
        ss.quantify.novelty(MODELS["landmarks"], broken).compute()


def test_novelty_of_a_classifier_is_refused():
    model = ss.BBSE(random_state=0, n_bootstrap=0).fit(X, Y)
    with pytest.raises(ss.DataError, match="does not see cells that are unlike every class"):
        ss.quantify.novelty(model, T)


# The package -------------------------------------------------------------------------------------------


def test_the_package_offers_its_functions_and_no_modules_in_their_place():
    import scaleshift.quantify.diagnosis
    import scaleshift.quantify.posterior  # noqa: F401

    for name in ss.quantify.__all__:
        assert callable(getattr(ss.quantify, name))
        assert name in dir(ss.quantify)
    with pytest.raises(AttributeError, match="no attribute 'diagnoze'"):
        _ = ss.quantify.diagnoze


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, scaleshift; scaleshift.quantify; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"numpy", "dask", "xarray", "sklearn", "numba"} & set(run.stdout.split())
