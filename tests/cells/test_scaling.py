"""Every sample's markers come to a common scale, in one pass, whatever the chunks; and come back."""

from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

import scaleshift as ss
from scaleshift.blocks.rows import as_rows
from scaleshift.cells import append_cells, as_cells, open_cells, write_cells
from scaleshift.cells.schema import check_cells
from scaleshift.cells.treatment import location_scale as spread
from scaleshift.cells.treatment.location_scale import location_scale
from scaleshift.cells.treatment.scaling import (
    scale,
    scale_rows,
    unscale,
    unscale_rows,
)
from scaleshift.errors import DataError

METHODS = ["robust", "z"]
MARKERS = ["CD3", "CD19", "CD56"]


def study(n=9_000, n_samples=4, seed=0):
    """Cells of samples that differ in intensity, in random order; the first sample has most of them."""
    rng = np.random.default_rng(seed)
    code = np.minimum(rng.geometric(0.5, n) - 1, n_samples - 1)
    x = rng.gamma(2, 1, (n, 3)) * (1 + code[:, None]) + 10 * code[:, None]
    labels = np.where(rng.random(n) < 0.5, "a", "b")
    return as_cells(
        x.astype(np.float32), np.array([f"S{i}" for i in range(n_samples)])[code], labels, MARKERS
    )


def lazily(cells, *chunks):
    """The same cells with a Dask X of other chunks."""
    x = da.from_array(cells["X"].values, chunks=(chunks, 3), asarray=False)
    return cells.assign(X=(("cell", "marker"), x))


# Columns -----------------------------------------------------------------------------------------------


def test_robust_is_the_quantiles_and_z_the_mean_and_deviation():
    x = np.random.default_rng(0).gamma(2, 1, (5_000, 3)).astype(np.float32)
    location, spread_ = location_scale(x, "robust")
    low, high = np.quantile(x.astype(np.float64), [0.01, 0.99], axis=0)
    np.testing.assert_allclose(location, low)
    np.testing.assert_allclose(spread_, high - low)
    expected = StandardScaler().fit_transform(x.astype(np.float64))
    np.testing.assert_allclose(scale_rows(x, *location_scale(x, "z")), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_values_that_are_not_finite_are_passed_over(method):
    x = np.random.default_rng(0).normal(size=(100, 3))
    holes = x.copy()
    holes[:10, 0], holes[10:30, 1] = np.nan, np.inf
    got = location_scale(holes, method)
    each = [
        location_scale(part[:, None], method)
        for part in (x[10:, 0], np.delete(x[:, 1], range(10, 30)), x[:, 2])
    ]
    np.testing.assert_allclose(got, np.concatenate(each, axis=1))


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_have_scale_one_and_empty_ones_location_zero(method):
    x = np.column_stack([np.full(50, np.float32(0.1)), np.full(50, np.nan), np.arange(50)])
    location, spread_ = location_scale(x, method)
    assert spread_[:2].tolist() == [1, 1]
    np.testing.assert_allclose(location[:2], [np.float32(0.1), 0])
    location, spread_ = location_scale(np.empty((0, 2)), method)
    assert (location.tolist(), spread_.tolist()) == ([0, 0], [1, 1])


@given(
    arrays(np.float32, (6, 2), elements=st.floats(-100, 100, width=32)),
    arrays(np.float64, 2, elements=st.floats(-100, 100)),
    arrays(np.float64, 2, elements=st.floats(0.1, 100)),
)
@settings(max_examples=60, deadline=None)
def test_unscaling_undoes_scaling(x, location, spread_):
    scaled = scale_rows(x, location, spread_)
    assert scaled.dtype == np.float32
    again = unscale_rows(scaled, location, spread_)
    assert again.dtype == np.float32
    np.testing.assert_allclose(again, x, atol=1e-4)


# Cells -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_sample_is_scaled_by_its_own_cells(method):
    cells = study()
    scaled = scale(cells, method)
    check_cells(scaled)
    assert scaled.attrs["scaling"] == method
    assert scaled["X"].dtype == np.float32
    for code in range(4):
        rows = cells["sample_code"].values == code
        assert 0 < rows.sum() < 5_000
        x = cells["X"].values[rows]
        if rows.sum() <= spread.DRAWN or method == "z":
            np.testing.assert_allclose(
                scaled["X"].values[rows], scale_rows(x, *location_scale(x, method)), atol=1e-5
            )
        np.testing.assert_allclose(scaled["scaling_location"][code], location_scale(x, method)[0], rtol=0.1)
    xr.testing.assert_identical(scaled["label_code"], cells["label_code"])


def test_of_large_samples_random_cells_stand_for_all():
    cells = as_cells(np.random.default_rng(0).normal(size=(40_000, 1)))
    location, spread_ = spread.sample_location_scale(cells, "robust")
    assert location[0, 0] == pytest.approx(-2.326, abs=0.15)
    assert spread_[0, 0] == pytest.approx(4.653, abs=0.2)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.parametrize("chunks", [(9_000,), (4_000, 1, 4_999), (1_000,) * 9, (0, 8_192, 808)])
def test_chunks_and_schedulers_do_not_show(scheduler, chunks):
    cells = study()
    for method in METHODS:
        expected = scale(cells, method)
        with dask.config.set(scheduler=scheduler):
            got = scale(lazily(cells, *chunks), method).compute()
        tolerance = {"rtol": 0, "atol": 0} if method == "robust" else {"rtol": 1e-12}
        for name in ("scaling_location", "scaling_scale"):
            np.testing.assert_allclose(got[name], expected[name], **tolerance)
        np.testing.assert_allclose(got["X"], expected["X"], rtol=1e-6, atol=1e-6)


def test_a_lazy_x_is_read_once_and_stays_lazy():
    cells = study()
    read = Counter()

    def block(part, block_info=None):
        read[block_info[0]["chunk-location"][0]] += 1
        return part

    x = lazily(cells, *(3_000,) * 3)["X"].data.map_blocks(block, meta=np.empty((0, 0), np.float32))
    for method in METHODS:
        read.clear()
        scaled = scale(cells.assign(X=(("cell", "marker"), x)), method)
        assert read == {0: 1, 1: 1, 2: 1}
        assert isinstance(scaled["X"].data, da.Array)
        assert scaled["X"].data.chunks == x.chunks
        scaled["X"].compute()
        assert read == {0: 2, 1: 2, 2: 2}


def test_rows_are_forgotten_once_their_sample_is_complete():
    n_samples, n, step = 50, 400, 1_000
    code = np.repeat(np.arange(n_samples), n)
    rows = as_rows(as_cells(np.random.default_rng(0).normal(size=(len(code), 2)), code)).only("sample")
    n_rows = np.full(n_samples, n)
    state = None
    for start in range(0, len(code), step):
        block = rows.loader(rows.x[start : start + step], code[start : start + step], start=start)
        new = spread.quantiles(block, n_rows)
        state = new if state is None else spread.merge_quantiles(n_rows, state, new)
        assert len(state["rows"]["x"]) < n
        assert len(state["key"]) == (start + step) // n
    assert state["open"].size == 0


def test_samples_without_cells_and_cells_that_are_not_finite():
    cells = study(400)
    cells = cells.isel(cell=np.flatnonzero(cells["sample_code"].values != 2))
    x = cells["X"].values.copy()
    x[5, 1], x[7, 0] = np.nan, np.inf
    holes = cells.assign(X=(("cell", "marker"), x))
    whole = np.isfinite(x).all(axis=1)
    for method in METHODS:
        scaled = scale(holes, method)
        assert scaled["scaling_location"][2].values.tolist() == [0, 0, 0]
        assert scaled["scaling_scale"][2].values.tolist() == [1, 1, 1]
        expected = scale(cells.isel(cell=whole), method)
        np.testing.assert_allclose(scaled["X"].values[whole], expected["X"], rtol=1e-6)
        assert np.isnan(scaled["X"].values[~whole]).all()
        lazy = scale(lazily(holes, 100, len(x) - 100), method)
        np.testing.assert_allclose(lazy["X"], scaled["X"], rtol=1e-5, atol=1e-6)


def test_deviations_do_not_cancel_far_from_zero():
    rng = np.random.default_rng(0)
    x = 1e6 + rng.normal(size=(20_000, 1))
    _, spread_ = spread.sample_location_scale(as_cells(da.from_array(x, chunks=(3_000, 1))), "z")
    np.testing.assert_allclose(spread_[0], x.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("transform", [None, "arcsinh(x / 5)", {"version": 1, "markers": {}}])
@pytest.mark.parametrize("lazy", [False, True])
def test_scaled_cells_come_back(transform, lazy):
    cells = study().assign_attrs(title="a study", **({} if transform is None else {"transform": transform}))
    given_ = lazily(cells, 4_500, 4_500) if lazy else cells
    for method in METHODS:
        scaled = scale(given_, method)
        back = unscale(scaled)
        assert isinstance(back["X"].data, da.Array) == lazy
        np.testing.assert_allclose(back["X"], cells["X"], rtol=1e-5, atol=1e-5)
        assert back.attrs == cells.attrs
        assert set(back.variables) == set(cells.variables)


def test_scaled_cells_are_not_scaled_again(tmp_path):
    cells = study()
    robust = scale(cells)
    assert scale(robust, "robust") is robust
    with pytest.raises(DataError, match=r"scaled already, by 'robust', and 'z' is asked for.*unscale"):
        scale(robust, "z")
    write_cells(robust, tmp_path / "study.zarr")
    stored = open_cells(tmp_path / "study.zarr")
    assert scale(stored) is stored
    with pytest.raises(DataError, match="scaled already"):
        scale(stored, "z")
    order = np.argsort(cells["sample_code"].values, kind="stable")
    np.testing.assert_allclose(unscale(stored)["X"], cells["X"].values[order], rtol=1e-5, atol=1e-5)


def test_scaled_samples_join_a_scaled_study_only(tmp_path):
    path, cells = tmp_path / "study.zarr", study()
    write_cells(scale(cells), path)
    other = as_cells(np.random.default_rng(1).normal(size=(50, 3)), ["new"] * 50, ["a"] * 50, MARKERS)
    with pytest.raises(DataError, match="scaling of the cells is 'z'"):
        append_cells(scale(other, "z"), path)
    append_cells(scale(other), path)
    assert open_cells(path).sizes["cell"] == 9_050


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "minmax"}, "scaling='minmax': expected 'robust' or 'z'"),
    ],
)
def test_what_cannot_be_done_is_told(arguments, message):
    with pytest.raises(DataError, match=message):
        scale(study(20), **arguments)
    with pytest.raises(DataError, match="no scaling_location"):
        unscale(study(20))


# What it is for ----------------------------------------------------------------------------------------


def test_scaling_lets_proportions_pass_over_intensities():
    rng = np.random.default_rng(0)

    def sample(n_a, n_b, gain, offset):
        x = np.concatenate([rng.normal(0, 1, (n_a, 2)), rng.normal(4, 1, (n_b, 2))])
        return gain * x + offset

    x = np.concatenate([sample(1_000, 1_000, 1, 0), sample(1_400, 600, 3, 5)])
    labels = np.array([["a", "b"][i] for i in np.repeat([0, 1, 0, 1], [1_000, 1_000, 1_400, 600])])
    cells = as_cells(x, np.repeat(["old", "new"], 2_000), labels)

    def error(cells):
        source = cells["sample"].values[cells["sample_code"].values] == "old"
        known = cells["label"].values[cells["label_code"].values]
        model = ss.DFM(soft=False, n_bootstrap=0, random_state=0).fit(
            cells["X"].values[source], known[source]
        )
        answer = model.predict(cells)["proportion"].sel(sample="new").values
        return np.abs(answer - [0.7, 0.3]).max()

    assert error(scale(cells, "robust")) < 0.05 < error(cells)


def known_error(cells, source):
    """Mean and largest error of the proportions among gated cells, for the samples outside the source."""
    own = np.isin(cells["sample"].values[cells["sample_code"].values], source)
    code = cells["label_code"].values
    label = np.where(code >= 0, cells["label"].values[code], None)
    model = ss.DFM(n_bootstrap=0, random_state=0).fit(cells["X"].values[own], label[own])
    counts = np.zeros((cells.sizes["sample"], cells.sizes["label"]))
    np.add.at(counts, (cells["sample_code"].values[code >= 0], code[code >= 0]), 1)
    answer = model.predict(cells)["proportion_known"].sel(label=cells["label"].values)
    error = np.abs(answer - counts / counts.sum(axis=1, keepdims=True)).drop_sel(sample=source)
    return float(error.mean()), float(error.max())


def test_scaling_brings_the_demo_nearer_to_its_gates():
    demo = ss.datasets.load_demo()
    before, after = (known_error(cells, ["S01", "S09"]) for cells in (demo, scale(demo, "robust")))
    assert after[0] < before[0]
    assert after[1] < 0.8 * before[1]


@pytest.mark.parametrize("method", METHODS)
def test_scaled_studies_go_through_the_quantifier_lazily(method):
    demo = ss.datasets.load_demo()
    x = da.from_array(demo["X"].values, chunks=(50_000, 8), asarray=False)
    scaled = scale(demo.assign(X=(("cell", "marker"), x)), method)
    model = ss.DFM(n_bootstrap=0, random_state=0).fit(scaled)
    answer = model.predict(scaled)
    assert answer.sizes == {"sample": 8, "label": 4}
    assert np.isfinite(answer["proportion"]).all()
