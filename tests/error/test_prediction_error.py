"""The estimator as its users meet it: reference cases, targets, updates, saving, refusals."""

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import scaleshift as ss
from scaleshift.errors import DataError

CASES = Path(__file__).parents[1] / "data" / "errx"
LINEAR = {
    "ols": ("ols", "auto"),
    "ridge_plug": ("ridge", "plugin"),
    "lasso_plug": ("lasso", "plugin"),
    "lasso_relax": ("lasso", "relaxed"),
}
CLOSE = 1e-8


def case(name):
    with np.load(CASES / f"{name}.npz", allow_pickle=False) as found:
        return {key: found[key] for key in found.files}


def of_case(name, c):
    """The case's model and noise, as a user would pass them."""
    if name in LINEAR:
        model, generator = LINEAR[name]
        options = {"generator": generator, "alpha": None if model == "ols" else float(c["lam"])}
        return model, options, "E", "Enew", "Et"
    loss = {"count": "counting"}.get(str(c["loss"]), str(c["loss"]))
    model = "logistic" if name.startswith("logit") else "multinomial"
    return model, {"loss": loss, "alpha": float(c["lam2"])}, "U", "Unew", "Ut"


@pytest.mark.parametrize("name", [*LINEAR, "logit_l2_count", "softmax_k3_deviance"])
def test_reference_cases_with_their_own_noise(name):
    c = case(name)
    model, options, train, fresh, target = of_case(name, c)
    fitted = ss.PredictionError(model, cv=None, **options)
    fitted.fit(c["X"], c["y"], noise={"train": c[train], "fresh": c[fresh]})
    found = fitted.predict(c["Xt"], noise={"target": c[target]}).sel(target="target")
    for method, key in [("direct", "dir"), ("decomposed", "dec")]:
        one = found.sel({"method": method})
        assert one["error"].item() == pytest.approx(c[f"{key}_rb"].item(), rel=CLOSE)
        assert one["error_drawn"].item() == pytest.approx(c[key].item(), rel=CLOSE)
    np.testing.assert_allclose(fitted.replicates_["err_b"].values[0], c["err_b_rb"], rtol=CLOSE)
    np.testing.assert_allclose(fitted.replicates_["in_b"].values, c["in_b_rb"], rtol=CLOSE)
    assert fitted.error_in_sample_.sel({"method": "decomposed"}).item() == pytest.approx(
        c["err_in"].item(), rel=CLOSE
    )


def test_closed_form_of_least_squares_and_its_exact_interval():
    c = case("ols")
    found = ss.PredictionError("ols", method=("direct", "decomposed", "closed_form")).fit(c["X"], c["y"])
    found = found.predict(c["Xt"]).isel(target=0)
    for method in ("direct", "closed_form"):
        one = found.sel({"method": method})
        assert one["error"].item() == pytest.approx(c["closed_err"].item(), rel=1e-10)
        assert one["error_low"].item() == pytest.approx(c["ci_lo"].item(), rel=1e-10)
        assert one["error_high"].item() == pytest.approx(c["ci_hi"].item(), rel=1e-10)
    direct, decomposed = (found["error"].sel({"method": m}).item() for m in ("direct", "decomposed"))
    assert decomposed == pytest.approx(direct, rel=1e-12)


def test_closed_form_of_ridge_is_that_of_sugiyama_and_mueller():
    c = case("ridge_plug")
    fitted = ss.PredictionError("ridge", method="closed_form", alpha=float(c["lam"])).fit(c["X"], c["y"])
    assert fitted.predict(c["Xt"])["error"].item() == pytest.approx(c["sm05_err"].item(), rel=1e-10)


def numbers(n=120, p=6, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, x @ np.linspace(1, -1, p) + rng.normal(size=n), 2 * rng.normal(size=(90, p))


def classes(n=200, p=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    y = np.array(["well", "ill"])[(x[:, 0] + rng.normal(size=n) > 0).astype(int)]
    return x, y, rng.normal(size=(90, p)) + 1


MODELS = {
    "ols": (ss.PredictionError("ols", random_state=0), numbers),
    "ridge": (ss.PredictionError("ridge", n_bootstrap=20, random_state=0), numbers),
    "lasso": (ss.PredictionError("lasso", n_bootstrap=20, alpha=0.05, random_state=0), numbers),
    "logistic": (ss.PredictionError("logistic", n_bootstrap=20, alpha=0.05, random_state=0), classes),
    "estimator": (
        ss.PredictionError(LogisticRegression(), n_bootstrap=6, cv=2, random_state=0),
        classes,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_chunks_change_nothing(name):
    model, data = MODELS[name]
    x, y, target = data()
    whole = clone(model).fit(x, y).predict({"t": target})
    chunked = (
        clone(model).fit(da.from_array(x, chunks=(37, 2)), y)
        if False
        else clone(model).fit(da.from_array(x, chunks=(37, -1)), da.from_array(y, chunks=50))
    )
    found = chunked.predict({"t": da.from_array(target, chunks=(13, -1))})
    for variable in ("error", "error_drawn", "error_low", "error_high", "mc_error"):
        np.testing.assert_allclose(found[variable], whole[variable], rtol=1e-8, err_msg=variable)
    xr.testing.assert_equal(found["flag"], whole["flag"])


@pytest.mark.parametrize("name", MODELS)
def test_one_seed_gives_one_answer(name):
    model, data = MODELS[name]
    x, y, target = data()
    a, b = (clone(model).fit(x, y).predict(target) for _ in range(2))
    xr.testing.assert_identical(a, b)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "estimator"])
def test_targets_are_answered_alike_alone_and_together(name):
    model, data = MODELS[name]
    x, y, target = data()
    fitted = clone(model).fit(x, y)
    both = fitted.predict({"a": target, "b": target[:20]})
    alone = fitted.predict({"b": target[:20]})
    xr.testing.assert_allclose(both.sel(target="b", drop=True), alone.sel(target="b", drop=True))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "estimator"])
def test_updates_by_parts_are_the_whole_and_forget(name):
    model, data = MODELS[name]
    x, y, target = data()
    whole = clone(model).fit(x, y).predict({"t": target})
    by_parts = clone(model).fit(x, y)
    by_parts.update({"t": target[:40]})
    found = by_parts.update({"t": target[40:]})
    np.testing.assert_allclose(found["error"], whole["error"], rtol=1e-10)
    assert found["n_rows"].item() == len(target)
    forgetful = clone(model).set_params(forget=0.5).fit(x, y)
    forgetful.update({"t": target[:40]})
    assert forgetful.update({"t": target[40:]})["n_rows"].item() == 70


@pytest.mark.parametrize("name", [name for name in MODELS if name != "estimator"])
def test_a_saved_model_goes_on(name, tmp_path):
    model, data = MODELS[name]
    x, y, target = data()
    fitted = clone(model).fit(x, y)
    fitted.update({"t": target[:40]})
    fitted.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    xr.testing.assert_identical(fitted.update({"t": target[40:]}), loaded.update({"t": target[40:]}))


@pytest.mark.parametrize("name", MODELS)
def test_every_method_answers_or_says_why_not(name):
    model, data = MODELS[name]
    x, y, target = data()
    found = clone(model).set_params(method="all").fit(x, y).predict(target).isel(target=0)
    known = found["error"].dropna("method")["method"].values.tolist()
    unanswered = set(found["method"].values) - set(known)
    assert all(found["reason"].loc[method].item() for method in unanswered)
    assert {"direct", "decomposed", "corrected", "cv"} <= set(known)
    assert ("average_confidence" in known) == (data is classes)
    same = clone(model).set_params(method="all").fit(x, y).predict(x)["error"].isel(target=0)
    assert np.isfinite(same.loc["importance_weighted"])


def test_more_replicates_leave_those_of_fewer():
    x, y, target = classes()
    few, many = (ss.PredictionError("logistic", alpha=0.05, n_bootstrap=n, random_state=0) for n in (10, 30))
    few.fit(x, y).predict(target), many.fit(x, y).predict(target)
    np.testing.assert_allclose(many.replicates_["err_b"][:, :10], few.replicates_["err_b"], rtol=1e-8)


def test_missing_target_values_are_refused_or_counted():
    x, y, target = numbers()
    target[3, 1] = np.nan
    with pytest.raises(DataError, match="target 'b'"):
        ss.PredictionError("ols").fit(x, y).predict({"b": target})
    found = ss.PredictionError("ols", invalid="drop").fit(x, y).predict({"b": target})
    kept = ss.PredictionError("ols").fit(x, y).predict({"b": np.delete(target, 3, axis=0)})
    assert found["n_invalid"].item() == 1
    np.testing.assert_allclose(found["error"], kept["error"], rtol=1e-10)


def test_rows_without_an_outcome_are_not_learned_from():
    x, y, target = numbers()
    y[::4] = np.nan
    known = np.isfinite(y)
    a, b = ss.PredictionError("ols").fit(x, y), ss.PredictionError("ols").fit(x[known], y[known])
    np.testing.assert_allclose(a.predict(target)["error"], b.predict(target)["error"], rtol=1e-10)


def test_a_target_of_one_row_is_answered():
    x, y, target = numbers()
    assert np.isfinite(ss.PredictionError("ols").fit(x, y).predict(target[:1])["error"]).all()


def test_extrapolation_is_lazy_and_grows_with_distance():
    x, y, _ = numbers()
    fitted = ss.PredictionError("ols").fit(x, y)
    far = fitted.extrapolation(da.from_array(np.outer([1.0, 10.0], np.ones(6)), chunks=(1, -1)))
    assert isinstance(far, da.Array)
    near, further = far.compute()
    assert further > 20 * near


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "olds"}, "model="),
        ({"method": "dirct"}, "direct"),
        ({"method": "projection_norm"}, "is no error"),
        ({"loss": "deviance"}, "loss="),
        ({"loss": lambda y, f: abs(y - f)}, "LinearRegression"),
        ({"alpha": -1.0, "model": "lasso"}, "alpha="),
        ({"n_bootstrap": 1}, "n_bootstrap="),
        ({"level": 1.0}, "level="),
        ({"forget": 1.1}, "forget="),
        ({"cv": 1}, "cv="),
    ],
)
def test_parameters_without_a_meaning_are_refused(options, words):
    x, y, _ = numbers()
    with pytest.raises(DataError, match=words):
        ss.PredictionError(**options).fit(x, y)


def test_what_cannot_be_answered_is_refused_in_words():
    x, y, target = numbers()
    with pytest.raises(NotFittedError):
        ss.PredictionError("ols").predict(target)
    with pytest.raises(DataError, match="y is missing"):
        ss.PredictionError("ols").fit(x)
    with pytest.raises(DataError, match="two labels"):
        ss.PredictionError("logistic").fit(x, np.zeros(len(x), int))
    with pytest.raises(DataError, match=r"target 'b': .*columns"):
        ss.PredictionError("ols").fit(x, y).predict({"b": target[:, :3]})
    with pytest.raises(DataError, match="target 'b': no rows"):
        ss.PredictionError("ols").fit(x, y).predict({"b": target[:0]})


@pytest.mark.parametrize("name", MODELS)
def test_folds_can_be_those_of_a_splitter(name):
    model, data = MODELS[name]
    x, y, target = data()
    splits = list(KFold(3).split(x))
    found = clone(model).set_params(cv=splits).fit(x, y)
    parts = np.repeat(range(3), [len(test) for _, test in splits])
    grouped = clone(model).set_params(cv=3).fit(x, y, groups=parts)
    assert found.error_cv_ == pytest.approx(grouped.error_cv_, rel=1e-8)
    assert np.isfinite(found.predict(target)["error_low"].loc["target", "direct"]) or name == "estimator"


@pytest.mark.parametrize("name", MODELS)
def test_observed_errors_are_those_of_the_model(name):
    model, data = MODELS[name]
    x, y, _ = data()
    fitted = clone(model).fit(x, y)
    prediction = fitted.family_.predict(x[:50])
    if data is numbers:
        losses = (prediction - y[:50]) ** 2
    else:
        losses = fitted.classes_[prediction.argmax(axis=1)] != y[:50]
    found = fitted.observed(da.from_array(x[:50], chunks=(20, -1)), y[:50])
    assert found["error"].item() == pytest.approx(losses.mean())
    assert found["error_se"].item() == pytest.approx(losses.std() / 50**0.5)
    assert found["n_rows"].item() == 50


def test_a_label_that_the_model_does_not_know_is_an_error():
    x, y, _ = classes()
    fitted = ss.PredictionError("logistic", alpha=0.05, n_bootstrap=5).fit(x, y)
    assert fitted.observed(x[:4], ["new", "new", None, "new"])["error"].item() == 1
    assert fitted.observed(x[:4], ["new", "new", None, "new"])["n_rows"].item() == 3


def test_forgetting_everything_leaves_the_last_update():
    x, y, target = numbers()
    fitted = ss.PredictionError("ols", forget=1).fit(x, y)
    fitted.update({"t": 3 * target})
    last, alone = fitted.update({"t": target}), fitted.predict({"t": target})
    xr.testing.assert_allclose(last, alone)


def test_the_projection_norm_stands_beside_the_errors():
    x, y, _ = classes()
    for model in ("logistic", LogisticRegression()):
        estimate = ss.PredictionError(
            model, method=("direct", "projection_norm"), alpha=0.01, n_bootstrap=6, cv=2
        )
        found = estimate.fit(x, y).predict({"near": x, "far": x + 3 * (y == "ill")[:, None]})
        assert found["method"].values.tolist() == ["direct"]
        assert (found["projection_norm"] > 0).all()
    fitted = LogisticRegression().fit(x, y)
    alone = ss.error.projection_norm(fitted, x)["norm"]  # as so few rows are all drawn
    assert found["projection_norm"].loc["near"].item() == pytest.approx(alone.item(), rel=1e-3)
    none = ss.PredictionError("ols", method="all").fit(*numbers()[:2]).predict(numbers()[2])
    assert np.isnan(none["projection_norm"]).all()
    assert "for labels alone" in none["projection_norm"].attrs["reason"]


def test_explain_tells_the_passes_of_a_linear_model():
    x, y, _ = numbers()
    plan = ss.explain(
        ss.PredictionError("lasso"), da.from_array(x, chunks=(30, -1)), da.from_array(y, chunks=30)
    )
    assert plan.passes_over_x == 2
    assert "sums by fold" in str(plan)
    with pytest.raises(DataError, match="explain knows the linear models"):
        ss.explain(ss.PredictionError("logistic"), *classes()[:2])


def test_a_missing_interval_is_no_reason_for_doubt():
    x, y, _ = numbers(n=400)
    found = ss.PredictionError("lasso", alpha=0.05, n_bootstrap=30, random_state=0)
    found = found.fit(x, y, groups=np.repeat(range(40), 10)).predict(x)
    assert "no interval" in found["reason"].loc["target", "direct"].item()
    assert not found["unreliable"].item()
    assert found["flag"].item() == ""
