"""Sums of a spotlight's step: what they are, and that the gradient made of them is one."""

import numpy as np
import pytest

from scaleshift.kernels import reference, spotlight
from scaleshift.kernels.dispatch import spotlight_sums
from scaleshift.kernels.spotlight import Spotlights, light
from scaleshift.slices.spotlights.steps import Barrier, Form, objective

FORMS = [("gaussian", False), ("gaussian", True), ("epanechnikov", False)]


def problem(shape="gaussian", saturated=False, n=300, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    x, loss, weight = rng.normal(size=(n, d)), rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    radii = rng.uniform(1, 3, k) if saturated else None
    return x, loss, weight, Spotlights(shape, 0.3 * rng.normal(size=(k, d)), rng.uniform(0.1, 0.3, k), radii)


def by_hand(x, loss, weight, one):
    """One row and one spotlight after the other."""
    total = {}
    for i, (mean, p) in enumerate(zip(one.means, one.precisions, strict=True)):
        for row, loss_of, v in zip(x, loss, weight, strict=True):
            about = row - mean
            r = about @ about
            if one.shape == "epanechnikov":
                u, s = max(0.0, 1 - p * r), 2.0 * (1 - p * r > 0)
            elif one.radii is None:
                u = s = np.exp(-p * r / 2)
            else:
                u = 1 / (1 + np.exp(p * (r - one.radii[i]) / 2))
                s = u * (1 - u)
            parts = {"weight": u, "slope": s, "x": s * about, "r": s * r}
            parts |= {"loss": u * loss_of}
            parts |= {f"{name}_loss": parts[name] * loss_of for name in ("slope", "x", "r")}
            for name, value in parts.items():
                kept = total.setdefault(name, [0.0] * len(one.means))
                kept[i] = kept[i] + v * value
    return {name: np.array(value) for name, value in total.items()}


@pytest.mark.parametrize(("shape", "saturated"), FORMS)
def test_sums_are_those_of_single_rows(shape, saturated):
    x, loss, weight, one = problem(shape, saturated)
    found, expected = spotlight_sums(x, loss, weight, one), by_hand(x, loss, weight, one)
    assert set(found) == set(expected) == set(spotlight.layout_of(one))
    for name, shape_ in spotlight.layout_of(one).items():
        assert found[name].shape == shape_
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize(("shape", "saturated"), FORMS)
def test_tiles_and_blocks_add_up(shape, saturated, monkeypatch):
    x, loss, weight, one = problem(shape, saturated)
    whole = spotlight_sums(x, loss, weight, one)
    monkeypatch.setitem(reference._TILE_ELEMENTS, "numpy", 21)
    tiled = spotlight_sums(x, loss, weight, one)
    parts = [spotlight_sums(x[rows], loss[rows], weight[rows], one) for rows in (slice(110), slice(110, 300))]
    for name in whole:
        np.testing.assert_allclose(tiled[name], whole[name], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(parts[0][name] + parts[1][name], whole[name], rtol=1e-11, atol=1e-11)


def test_a_spotlight_does_not_see_the_others():
    x, loss, weight, two = problem(saturated=True)
    both = spotlight_sums(x, loss, weight, two)
    for i in range(2):
        alone = Spotlights("gaussian", two.means[i : i + 1], two.precisions[i : i + 1], two.radii[i : i + 1])
        for name, value in spotlight_sums(x, loss, weight, alone).items():
            np.testing.assert_allclose(value[0], both[name][i], rtol=1e-11, atol=1e-11)


def test_a_weight_is_that_many_rows():
    x, loss, weight, one = problem()
    many = np.repeat(np.arange(len(x)), weight.astype(int))
    repeated = spotlight_sums(x[many], loss[many], None, one)
    for name, value in spotlight_sums(x, loss, weight, one).items():
        np.testing.assert_allclose(value, repeated[name], rtol=1e-10, atol=1e-10)


def test_squares_known_before_change_nothing_and_float32_rows_are_summed_in_float64():
    x, loss, weight, one = problem()
    x = x.astype(np.float32)
    found = spotlight_sums(x, loss, weight, one)
    exact = x.astype(np.float64)
    known = spotlight_sums(exact, loss, weight, one, (exact * exact).sum(axis=1))
    for name, value in known.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12)


def test_no_rows_give_zeros():
    _, _, _, one = problem()
    sums = spotlight_sums(np.empty((0, 3)), np.empty(0), None, one)
    assert all((value == 0).all() for value in sums.values())
    assert light(np.empty((0, 3)), one).shape == (0, 2)


def test_far_rows_are_dark_and_warn_nobody():
    x = np.full((2, 3), 1e6)
    for shape, saturated in FORMS:
        _, _, _, one = problem(shape, saturated)
        assert (light(x, one) < 1e-300).all()


@pytest.mark.parametrize(("shape", "saturated"), FORMS)
@pytest.mark.parametrize("barrier", [Barrier(1.0, 0.5, 1.0), Barrier(150.0, 40.0, 0.7)])
def test_the_gradient_is_the_slope_of_the_objective(shape, saturated, barrier):
    """Against central differences, with light enough and with too little, in any unit."""
    x, loss, weight, one = problem(shape, saturated)
    form = Form(shape, 1.7, saturated)
    values = form.values(*one[1:])

    def value_of(changed):
        spotlights = form.spotlights(changed)
        return objective(spotlight_sums(x, loss, weight, spotlights), form, spotlights, barrier)

    _, gradient = value_of(values)
    step = 1e-6
    for column in range(values.shape[1]):
        move = np.zeros_like(values)
        move[:, column] = step
        slope = (value_of(values + move)[0] - value_of(values - move)[0]) / (2 * step)
        np.testing.assert_allclose(gradient[:, column], slope, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("shape", "saturated"), FORMS)
def test_parameters_come_back(shape, saturated):
    *_, one = problem(shape, saturated)
    form = Form(shape, 0.3, saturated)
    back = form.spotlights(form.values(*one[1:]))
    for a, b in zip(back[1:], one[1:], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12)
