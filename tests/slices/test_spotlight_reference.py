"""The published implementation's numbers, in faithful mode, for any chunking."""

import json
import os
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from scaleshift import SpotlightSlicer

SHARED = Path(os.environ.get("SCALESHIFT_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "spotlight"
SMALL = Path(__file__).parents[1] / "data" / "spotlight"


def paths():
    found = sorted(CASES.glob("c2_*.npz")) if CASES.is_dir() else []
    return [*sorted(SMALL.glob("*.npz")), *found]


def spotlights():
    """Every spotlight of every case."""
    for path in paths():
        with np.load(path) as case:
            numbers = [int(key[-1]) for key in case.files if key.startswith("losses_")]
        for number in numbers:
            yield pytest.param(path, number, id=f"{path.stem}-{number}")


def load(path):
    case = dict(np.load(path))
    case["params"] = json.loads(str(case["params"]))
    return case


def slicer_of(case, **changed):
    params = case["params"]
    names = ("spotlight_size", "num_steps", "learning_rate", "barrier_scale", "patience", "decay", "flip")
    kernel = "gaussian" if params["kernel"] == "gaussian" else "epanechnikov"
    given = {**{name: params[name] for name in names}, "kernel": kernel, "n_slices": 1} | changed
    return SpotlightSlicer(**given, compat="spotlight")


def check_beginning(slicer, case, number, place=0):
    """Objective, weight and learning rate of the first 100 steps; of those that the case has."""
    steps = case.get("steps", np.arange(len(case[f"objective_trace_{number}"])))
    early = steps < min(100, slicer.num_steps)
    rows = steps[early]
    objective, weight = slicer.objective_traces_[place], slicer.total_weight_traces_[place]
    np.testing.assert_allclose(objective[rows], case[f"objective_trace_{number}"][early], atol=1e-6, rtol=0)
    np.testing.assert_allclose(weight[rows], case[f"total_weight_trace_{number}"][early], rtol=1e-5)
    np.testing.assert_array_equal(
        slicer.learning_rate_traces_[place][rows], case[f"lr_trace_{number}"][early]
    )


@pytest.mark.parametrize(("path", "number"), list(spotlights()))
def test_faithful_mode_gives_the_published_spotlight(path, number):
    case = load(path)
    losses = case[f"losses_{number}"]
    slicer = slicer_of(case).fit(embeddings=case["X"], losses=losses)
    check_beginning(slicer, case, number)
    u = slicer.predict_proba(embeddings=case["X"])[:, 0]
    assert np.corrcoef(u, case[f"weights_{number}"])[0, 1] >= 0.999
    np.testing.assert_allclose(u @ losses / u.sum(), float(case[f"final_weighted_loss_{number}"]), rtol=2e-2)
    weight = 0.15 if case["params"]["num_steps"] == 500 else 0.02
    np.testing.assert_allclose(u.sum(), float(case[f"final_total_weight_{number}"]), rtol=weight)
    # What the slicer tells of itself is what the memberships say.
    np.testing.assert_allclose(slicer.weights_, [u.sum()], rtol=1e-12)
    np.testing.assert_allclose(slicer.weighted_losses_, [u @ losses / u.sum()], rtol=1e-9)
    if case["params"]["learning_rate"] == 1e-3:
        check_to_the_end(slicer, case, number)
        np.testing.assert_allclose(u, case[f"weights_unnorm_{number}"], atol=1e-6, rtol=0)
        np.testing.assert_allclose(u @ losses / u.sum(), case[f"final_weighted_loss_{number}"], rtol=1e-6)


def check_to_the_end(slicer, case, number):
    """What hardly moves does so the same way in float32 and float64."""
    objective, weight = slicer.objective_traces_[0], slicer.total_weight_traces_[0]
    np.testing.assert_allclose(objective, case[f"objective_trace_{number}"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(weight, case[f"total_weight_trace_{number}"], rtol=1e-6)
    np.testing.assert_array_equal(slicer.learning_rate_traces_[0], case[f"lr_trace_{number}"])
    np.testing.assert_allclose(slicer.precisions_[0], case[f"precision_{number}"], rtol=1e-6)
    length = np.sqrt((case["X"].astype(float) ** 2).sum(axis=1).mean())
    assert np.linalg.norm(slicer.means_[0] - case[f"mean_{number}"]) <= 1e-6 * length


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in paths()])
def test_spotlights_follow_each_other_as_published(path):
    """The losses that the next one sees are made of the light of the last.

    The small differences of float32 and float64 grow from one to the next. Gaussian ones end alike all the
    same; of the others, which rows leave and enter at a sharp edge, the losses after the first do.
    """
    case = load(path)
    n = sum(key.startswith("losses_") for key in case)
    losses = case["losses_0"].astype(float)
    slicer = slicer_of(case, n_slices=n).fit(embeddings=case["X"], losses=losses)
    u = slicer.predict_proba(embeddings=case["X"])
    for number in range(n):
        np.testing.assert_allclose(
            slicer.weighted_losses_[number], u[:, number] @ losses / u[:, number].sum(), rtol=1e-9
        )
        if number == 0 or slicer.kernel == "gaussian":
            published = float(case[f"final_weighted_loss_{number}"])
            np.testing.assert_allclose(slicer.weighted_losses_[number], published, rtol=2e-2)
            assert np.corrcoef(u[:, number], case[f"weights_{number}"])[0, 1] >= 0.999
        dimmed = losses * (1 - u[:, number] / u[:, number].max())
        if number + 1 < n and (number == 0 or slicer.kernel == "gaussian"):
            assert np.corrcoef(dimmed, case[f"losses_{number + 1}"])[0, 1] >= 0.999
        losses = dimmed


@pytest.mark.parametrize("chunk", [1_000, 333])
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in paths()])
def test_chunks_do_not_show(path, chunk):
    case = load(path)
    steps = 60  # of the same schedule only in the beginning: compared with the run on one block

    def fit(X):
        return slicer_of(case, num_steps=steps, n_slices=2).fit(embeddings=X, losses=case["losses_0"])

    whole, parts = fit(case["X"]), fit(da.from_array(case["X"], chunks=(chunk, -1)))
    for name in ("means_", "precisions_", "weights_", "objective_traces_", "total_weight_traces_"):
        for a, b in zip(getattr(whole, name), getattr(parts, name), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=name)


def test_cross_entropies_are_the_published_losses():
    """Losses made of labels and probabilities give what the same losses given alone do."""
    case = load(paths()[0])
    X, y = case["X"], case["y"]
    true = np.exp(-case["losses_0"].astype(float))
    classes = np.unique(y)
    others = ((1 - true) / (len(classes) - 1))[:, None]
    probabilities = np.where(y[:, None] == classes, true[:, None], others)
    alone = slicer_of(case, num_steps=30).fit(embeddings=X, losses=case["losses_0"])
    made = slicer_of(case, num_steps=30).fit(None, X, y, probabilities)
    np.testing.assert_allclose(made.objective_traces_[0], alone.objective_traces_[0], atol=1e-9)
    np.testing.assert_allclose(made.means_[0], alone.means_[0], atol=1e-9)
