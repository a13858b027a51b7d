"""Does the engine meet the reference cases, with their own noise?"""

import numpy as np
import pytest
from gaussian_jobs import answers, case, job, sums_of

from scaleshift.error.gaussian import learn

MODELS = {"ols": "ols", "ridge_plug": "ridge", "lasso_plug": "lasso", "lasso_relax": "lasso"}
GENERATORS = {"plug": "plugin", "relax": "relaxed"}
near = {"rtol": 1e-8, "atol": 1e-10}


@pytest.fixture(params=sorted(MODELS))
def learned(request):
    d = case(request.param)
    model = MODELS[request.param]
    found = learn(
        job(
            d["X"],
            d["y"],
            model,
            alpha=float(d["lam"]) if model != "ols" else None,
            generator=GENERATORS[d["gen"]],
            noise={"train": d["E"], "fresh": d["Enew"]},
            methods=("direct", "decomposed", "closed_form"),
        )
    )
    return d, found


def test_the_fit_and_its_generator_are_those_of_the_case(learned):
    d, found = learned
    np.testing.assert_allclose(found.coef, d["coef"], **near)
    np.testing.assert_allclose(found.intercept, d["intercept"], **near)
    np.testing.assert_allclose(found.generator[1:], d["gen_coef"], **near)
    np.testing.assert_allclose(found.generator_intercept, d["gen_intercept"], **near)


def test_variance_freedom_and_in_sample_error_are_those_of_the_case(learned):
    d, found = learned
    np.testing.assert_allclose(found.freedom, d["df"], **near)
    np.testing.assert_allclose(found.noise.total, d["s2"], **near)
    np.testing.assert_allclose(found.err_in, d["err_in"], **near)
    np.testing.assert_allclose(found.error_in_sample["decomposed"], d["err_in"], **near)


def test_each_replicate_is_that_of_the_case(learned):
    d, found = learned
    sums = sums_of(found, d["Xt"], d["Et"])
    np.testing.assert_allclose(found.err_b(sums), d["err_b_rb"], **near)
    np.testing.assert_allclose(found.drawn_err_b(sums), d["err_b"], **near)
    np.testing.assert_allclose(found.in_b, d["in_b_rb"], **near)
    np.testing.assert_allclose(found.spread.in_b_drawn, d["in_b"], **near)
    np.testing.assert_allclose(found.spread.covariance_penalty, d["opt_cov"], **near)


def test_answers_are_those_of_the_case(learned):
    d, found = learned
    told = answers(found, d["Xt"], d["Et"])
    np.testing.assert_allclose(told["direct"].error, d["dir_rb"], **near)
    np.testing.assert_allclose(told["direct"].drawn, d["dir"], **near)
    np.testing.assert_allclose(told["decomposed"].error, d["dec_rb"], **near)
    np.testing.assert_allclose(told["decomposed"].drawn, d["dec"], **near)
    np.testing.assert_allclose(
        told["direct"].mc_error, d["err_b_rb"].std(ddof=1) / np.sqrt(len(d["err_b_rb"])), rtol=1e-6
    )


def test_least_squares_has_its_closed_form_and_exact_interval():
    d = case("ols")
    found = learn(job(d["X"], d["y"], "ols", methods=("direct", "decomposed", "closed_form", "corrected")))
    told = answers(found, d["Xt"])
    for answer in told.values():
        np.testing.assert_allclose(answer.error, d["closed_err"], rtol=1e-10)
        np.testing.assert_allclose([answer.low, answer.high], [d["ci_lo"], d["ci_hi"]], rtol=1e-10)
        assert answer.mc_error == 0
    assert abs(told["direct"].error - told["decomposed"].error) <= 1e-12 * told["direct"].error
    np.testing.assert_allclose(found.err_in, d["closed_cp"], rtol=1e-10)
    assert found.in_b.size == 0
    assert found.err_b(sums_of(found, d["Xt"])).size == 0


def test_ridge_has_the_closed_form_of_sugiyama_and_mueller():
    d = case("ridge_plug")
    found = learn(job(d["X"], d["y"], "ridge", alpha=float(d["lam"]), methods=("closed_form",)))
    np.testing.assert_allclose(answers(found, d["Xt"])["closed_form"].error, d["sm05_err"], rtol=1e-10)


def test_a_lasso_says_why_it_has_no_closed_form():
    d = case("lasso_plug")
    found = learn(job(d["X"], d["y"], "lasso", alpha=float(d["lam"]), methods=("closed_form",)))
    told = answers(found, d["Xt"])["closed_form"]
    assert np.isnan(told.error)
    assert "lasso" in told.reason
