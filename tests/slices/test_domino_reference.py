"""The published implementation's numbers, in faithful mode, for any chunking."""

import json
import os
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from scaleshift import DominoSlicer

SHARED = Path(os.environ.get("SCALESHIFT_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "domino"
SMALL = Path(__file__).parents[1] / "data" / "domino"
KEPT = [
    "n_slices",
    "covariance_type",
    "n_mixture_components",
    "y_log_likelihood_weight",
    "y_hat_log_likelihood_weight",
    "max_iter",
    "confusion_noise",
    "random_state",
    "tol",
    "reg_covar",
]


def load(name):
    case = dict(np.load(CASES / f"{name}.npz"))
    data = np.load(CASES / f"{case['data']}.npz")
    for key in ("X", "y", "X_test", "y_test"):
        case[key] = data[key]
    for part in ("", "_test"):
        probabilities = data[f"pred_{case['pred_kind']}{part}"]
        case[f"pred{part}s"] = probabilities[:, 1] if int(case["pred_ndim"]) == 1 else probabilities
    case["init_resp"] = np.load(CASES / f"{case['init']}.npz")["resp"].astype(float)
    case["params"] = json.loads(str(case["params"]))
    return case


@pytest.mark.parametrize("chunk", [None, 700])
@pytest.mark.parametrize("name", sorted(path.stem for path in SMALL.glob("c2_*.npz")))
def test_faithful_mode_starts_and_ends_where_the_published_one_does(name, chunk):
    case, data = dict(np.load(SMALL / f"{name}.npz")), np.load(SMALL / "data_c2.npz")
    case["params"] = json.loads(str(case["params"]))
    given = [data[key] for key in ("X", "y", f"pred_{case['pred_kind']}")]
    if chunk is not None:
        given = [da.from_array(array, chunks=chunk) for array in given]
    slicer = slicer_of(case).fit(None, *given)
    assert slicer.n_iter_ == int(case["n_iter"])
    np.testing.assert_allclose(slicer.lower_bounds_, case["lower_bound_trace"], atol=1e-8, rtol=0)
    np.testing.assert_array_equal(slicer.slice_components_, case["slice_cluster_indices"])
    for part in ("weights", "means", "covariances", "y_probs", "y_hat_probs"):
        np.testing.assert_allclose(getattr(slicer, f"{part}_"), case[part], atol=1e-7, err_msg=part)


def names():
    return sorted(path.stem for path in CASES.glob("c*.npz")) if CASES.is_dir() else ["missing"]


@pytest.fixture(params=names())
def case(request):
    if request.param == "missing":
        pytest.skip(f"no reference cases in {CASES}: set SCALESHIFT_SHARED")
    return load(request.param)


def slicer_of(case):
    params = case["params"]
    pca = params["n_pca_components"]
    return DominoSlicer(**{name: params[name] for name in KEPT}, n_pca_components=pca, compat="domino-0.1.5")


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("chunk", [None, 2_000, 333])
def test_faithful_mode_gives_the_published_numbers(case, chunk):
    def given(name):
        return case[name] if chunk is None else da.from_array(case[name], chunks=chunk)

    slicer = slicer_of(case)
    slicer.fit(None, given("X"), given("y"), given("preds"), init_resp=given("init_resp"))
    assert slicer.n_iter_ == int(case["n_iter"])
    assert slicer.converged_ == bool(case["converged"])
    np.testing.assert_allclose(slicer.lower_bounds_, case["lower_bound_trace"], atol=1e-8, rtol=0)
    np.testing.assert_array_equal(slicer.slice_components_, case["slice_cluster_indices"])
    signs = 1.0
    if "pca_components" in case:
        signs = np.sign((slicer.preparation_.projection.components * case["pca_components"]).sum(axis=1))
    np.testing.assert_allclose(slicer.means_ * signs, case["means"], atol=1e-7)
    for name in ("weights", "covariances", "y_probs", "y_hat_probs"):
        np.testing.assert_allclose(getattr(slicer.mm, f"{name}_"), case[name], atol=1e-7, err_msg=name)
    np.testing.assert_allclose(slicer.slice_scores_, case["slice_scores"], atol=1e-7)
    for part in ("", "_test"):
        rows = (None, case[f"X{part}"], case[f"y{part}"], case[f"pred{part}s"])
        np.testing.assert_allclose(slicer.predict_proba(*rows), case[f"proba{part}"], atol=1e-6)
        np.testing.assert_array_equal(slicer.predict(*rows), case[f"pred{part}"])


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("chunk", [None, 500, 333])
def test_the_confusion_start_is_the_published_one(case, chunk):
    if case["params"]["init_params"] != "confusion":
        pytest.skip("starts elsewhere")
    X = case["X"] if chunk is None else da.from_array(case["X"], chunks=chunk)
    slicer = slicer_of(case).fit(None, X, case["y"], case["preds"])
    np.testing.assert_allclose(slicer.lower_bounds_, case["lower_bound_trace"], atol=1e-8, rtol=0)
    np.testing.assert_array_equal(slicer.slice_components_, case["slice_cluster_indices"])
