"""Categorical models against the reference cases, whose noise is given."""

from pathlib import Path

import numpy as np
import pytest
from categorical_jobs import METHODS, settings, sums_of

from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.error.categorical import learn
from scaleshift.error.family import Job

DATA = Path(__file__).parents[1] / "data" / "errx"
CASES = {"logit_l2_count": ("logistic", "counting"), "softmax_k3_deviance": ("multinomial", "deviance")}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model, loss = CASES[request.param]
    with np.load(DATA / f"{request.param}.npz", allow_pickle=False) as stored:
        given = dict(stored)
    rows = with_numbers(as_rows(given["X"], given["y"]), train=given["U"].T, fresh=given["Unew"].T)
    asked = settings(
        model, loss=loss, generator="plugin", alpha=float(given["lam2"]), n_bootstrap=len(given["U"])
    )
    family = learn(Job(rows, None, asked))
    return given, family, sums_of(family, given["Xt"], noise=given["Ut"].T)


def found_of(family, sums):
    answers = family.answers(sums)
    return {
        "apparent": family.apparent,
        "optimism": family.optimism,
        "err_in": family.error_in_sample["decomposed"],
        "err_b": sums["drawn"] / sums["n"],
        "in_b": family.in_drawn,
        "err_b_rb": family.err_b(sums),
        "in_b_rb": family.in_b,
        "dir": answers["direct"].drawn,
        "dir_rb": answers["direct"].error,
        "dec": answers["decomposed"].drawn,
        "dec_rb": answers["decomposed"].error,
    }


def test_every_number_of_a_case_is_met(case):
    given, family, sums = case
    for name, found in found_of(family, sums).items():
        np.testing.assert_allclose(found, given[name], rtol=1e-8, err_msg=name)


def test_counts_are_exact(case):
    given, family, sums = case
    if family.loss == "counting":
        n, m = len(given["X"]), len(given["Xt"])
        np.testing.assert_array_equal(sums["drawn"], np.rint(given["err_b"] * m))
        np.testing.assert_array_equal(np.rint(family.in_drawn * n), np.rint(given["in_b"] * n))


def test_the_model_is_that_of_the_case(case):
    given, family, _ = case
    if family.model == "logistic":
        np.testing.assert_allclose(family.coef[0], given["coef"], rtol=1e-9)
        np.testing.assert_allclose(family.intercept[0], given["intercept"], rtol=1e-9)
    else:
        found = np.vstack([family.intercept, family.coef.T])
        np.testing.assert_allclose(found, given["theta"], rtol=1e-9, atol=1e-12)


def test_parts_of_a_target_add_to_the_whole(case):
    given, family, whole = case
    cut = 37
    parts = [
        sums_of(family, given["Xt"][rows], noise=given["Ut"].T[rows])
        for rows in (slice(None, cut), slice(cut, None))
    ]
    for name, values in whole.items():
        np.testing.assert_allclose(parts[0][name] + parts[1][name], values, rtol=1e-12, err_msg=name)


def test_each_method_answers_with_a_number_or_says_why_not(case):
    _, family, sums = case
    answers = family.answers(sums)
    assert tuple(answers) == METHODS
    for name in ("cv", "closed_form"):
        assert np.isnan(answers[name].error), name
        assert answers[name].reason, name
    for name in ("direct", "corrected", "decomposed"):
        assert answers[name].low < answers[name].high
        assert answers[name].mc_error > 0
