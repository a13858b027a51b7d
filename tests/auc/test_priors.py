"""Another prior of several labels."""

import numpy as np
import pytest
from scipy.special import expit, logit

import scaleshift as ss
from scaleshift.auc.answers import probabilities, shifted, shifts

RNG = np.random.default_rng(0)
TRAINED = np.array([0.6, 0.3, 0.1])
PRIORS = [[0.05, 0.15, 0.8], [0.5, 0.49, 0.01], [0.7, 0.0, 0.3], [0.0, 0.0, 1.0]]
TRUE = RNG.dirichlet(np.ones(3), 50)  # probabilities of rows under the training prior


def bayes(prior):
    found = TRUE * np.array(prior) / TRAINED
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("prior", PRIORS)
def test_each_label_against_the_others_follows_bayes(prior):
    """Also row by row, where the others are not alike: two labels change places among the others."""
    after = shifted(logit(TRUE), np.array(prior), TRAINED)
    np.testing.assert_allclose(expit(after), bayes(prior), atol=1e-12)
    np.testing.assert_allclose(probabilities(after, "ovr", 3), bayes(prior), atol=1e-12)


@pytest.mark.parametrize("prior", PRIORS[:2])
def test_pairs_follow_bayes(prior):
    pairs = [(0, 1), (0, 2), (1, 2)]
    before = np.stack([np.log(TRUE[:, b] / TRUE[:, a]) for a, b in pairs], axis=1)
    after = before + shifts(np.array(prior), TRAINED, "ovo")
    expected = np.stack([np.log(bayes(prior)[:, b] / bayes(prior)[:, a]) for a, b in pairs], axis=1)
    np.testing.assert_allclose(after, expected, atol=1e-9)


def test_the_prior_of_the_training_rows_changes_nothing():
    np.testing.assert_allclose(shifted(logit(TRUE), TRAINED, TRAINED), logit(TRUE), atol=1e-12)
    extreme = np.array([[800.0, -800.0, -900.0]])
    assert np.isfinite(shifted(extreme, np.array(PRIORS[0]), TRAINED)).all()


def test_a_ranking_of_several_labels_under_another_prior():
    y = RNG.choice(3, 600, p=TRAINED)
    x = RNG.normal(size=(600, 4)) + 2 * np.eye(3, 4)[y]
    model = ss.SparseAUC(k=2, random_state=0).fit(x, y)
    before = model.predict_proba(x)
    prior = np.array([0.1, 0.1, 0.8])
    model.set_prior(prior)
    after = before * prior / (np.bincount(y) / 600)
    after /= after.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x), after, atol=1e-12)
    np.testing.assert_allclose(expit(model.decision_function(x)), after, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x), model.decision_function(x).argmax(axis=1))
    np.testing.assert_allclose(model.set_prior(None).predict_proba(x), before, atol=1e-12)
