"""What is added up is what each loss says, and its expectation under the generator."""

import numpy as np
import pytest
from categorical_jobs import learned, sums_of, three_classes, two_classes

from scaleshift.error.categorical.scoring import expected_losses, losses
from scaleshift.error.losses import class_losses, expected_loss
from scaleshift.kernels.logistic import class_probabilities


def own_counting(y, proba):
    return (proba.argmax(axis=1) != y).astype(float)


def own_brier(y, proba):
    return (proba**2).sum(axis=1) + 1 - 2 * proba[np.arange(len(y)), y]


@pytest.mark.parametrize("loss", ["counting", "deviance", "brier", own_brier])
@pytest.mark.parametrize("m", [1, 3])
def test_losses_of_logits_are_those_of_probabilities(loss, m):
    logits = np.random.default_rng(0).normal(size=(m, 50, 4)) * 5
    logits[:, :3] = 0  # ties
    found = losses(loss, logits, np.arange(max(m, 2)))
    proba = np.moveaxis(class_probabilities(logits), 0, -1)
    np.testing.assert_allclose(np.moveaxis(found, 0, -1), class_losses(loss, proba), atol=1e-9)


@pytest.mark.parametrize("loss", ["counting", "deviance", "brier", own_brier])
@pytest.mark.parametrize("m", [1, 3])
def test_expected_losses_are_means_over_the_labels(loss, m):
    r = np.random.default_rng(1)
    logits = r.normal(size=(m, 50, 4)) * 12
    logits[:, 0] *= 10  # beyond what a deviance counts
    truth = r.dirichlet(np.ones(max(m, 2)), size=(50, 4)).transpose(2, 0, 1)
    each = losses(loss, logits, np.arange(max(m, 2)))
    found = expected_losses(loss, truth, logits, np.arange(max(m, 2)))
    np.testing.assert_allclose(found, (truth * each).sum(axis=0), rtol=1e-9, atol=1e-11)


def test_ties_are_decided_for_the_lowest_class():
    assert losses("counting", np.zeros((1, 1, 1)), np.arange(2)).ravel().tolist() == [0, 1]
    assert losses("counting", np.zeros((3, 1, 1)), np.arange(3)).ravel().tolist() == [0, 1, 1]
    nearly = np.array([0.0, 1e-17]).reshape(2, 1, 1)  # of the same probability
    assert losses("counting", nearly, np.arange(2)).ravel().tolist() == [0, 1]


def test_brier_of_two_classes_is_twice_the_square():
    x, y = two_classes()
    family = learned(x, y, loss="brier")
    p = family.predict(x)[:, 1]
    assert family.apparent == pytest.approx(np.mean(2 * (p - y) ** 2), rel=1e-12)


@pytest.mark.parametrize(("named", "own"), [("counting", own_counting), ("brier", own_brier)])
@pytest.mark.parametrize("data", [two_classes, three_classes])
def test_a_function_gives_what_the_loss_of_a_name_gives(named, own, data):
    x, y = data()
    model = "logistic" if data is two_classes else "multinomial"
    families = [learned(x, y, model, loss=loss, folds=3) for loss in (named, own)]
    answers = [family.answers(sums_of(family, x * 1.4)) for family in families]
    for name in ("direct", "decomposed", "cv"):
        np.testing.assert_allclose(answers[0][name][:2], answers[1][name][:2], rtol=1e-9, err_msg=name)
    assert answers[0]["corrected"].error == pytest.approx(answers[1]["corrected"].error, rel=0.1)


@pytest.mark.parametrize("loss", ["counting", "deviance", "brier"])
def test_sums_are_those_of_one_replicate_after_the_other(loss):
    x, y = three_classes()
    family = learned(x, y, "multinomial", loss=loss, n_bootstrap=5)
    target = x[:40] * 1.3
    z = family.frame.z(target)
    proba = [_softmax(z @ theta.T) for theta in family.replicates]
    truth = _softmax(z @ family.generator_theta.T)
    sums = sums_of(family, target)
    for b in range(5):
        assert sums["err"][b] == pytest.approx(expected_loss(loss, truth, proba[b]).sum())
    # A replicate as generator: its partners, moved by as much as it is away.
    own, partners = family.replicates[1], (2, 3)
    moved = [own + family.replicates[b] - family.generator_theta for b in partners]
    expected = sum(expected_loss(loss, _softmax(z @ own.T), _softmax(z @ m.T)).sum() for m in moved)
    assert sums["twice"][1] == pytest.approx(expected)


def test_counting_with_two_classes_meets_its_partners_too():
    x, y = two_classes()
    family = learned(x, y, n_bootstrap=6, generator="relaxed", penalty="l1", alpha=0.03)
    z = family.frame.z(x * 1.3)
    away = family.generator_theta - family.theta
    own = family.replicates[4] + away
    p = 1 / (1 + np.exp(-z @ own[0]))
    expected = 0.0
    for partner in (5, 0, 1, 2):
        decided = z @ (own + family.replicates[partner] - family.generator_theta)[0] > 0
        expected += np.where(decided, 1 - p, p).sum()
    assert sums_of(family, x * 1.3)["twice"][4] == pytest.approx(expected)


def _softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_the_correction_and_the_interval_come_from_replicates_as_the_truth():
    """Few rows for many features: the plain estimate is too large, the correction takes most of that away."""
    r = np.random.default_rng(0)
    x, target = r.normal(size=(150, 25)), 2 * r.normal(size=(200, 25))
    weights = np.r_[1.2, -0.8, 0.6, 0.4, np.zeros(21)]
    p, truth = (1 / (1 + np.exp(-z @ weights)) for z in (x, target))
    errors, found = [], []
    for seed in range(12):
        y = (r.random(150) < p).astype(int)
        family = learned(x, y, alpha=0.05, penalty="l1", generator="plugin", n_bootstrap=40, seed=seed)
        decided = family.predict(target)[:, 1] > 0.5
        errors.append(np.where(decided, 1 - truth, truth).mean())
        answers = family.answers(sums_of(family, target))
        limits = [*answers["direct"][2:4], *answers["decomposed"][2:4]]
        found.append([answers["direct"].error, answers["corrected"].error, *limits])
    expected = np.mean(errors)
    direct, corrected, low, high, low_decomposed, high_decomposed = np.transpose(found)
    assert direct.mean() > expected + 0.05
    assert abs(corrected.mean() - expected) < (direct.mean() - expected) / 2
    assert ((low < expected) & (expected < high)).mean() > 0.7
    assert ((low_decomposed < expected) & (expected < high_decomposed)).mean() > 0.7
