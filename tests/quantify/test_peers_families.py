"""The same numbers as QuaPy and abstention, given the same outputs of a classifier or the same histograms."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift.solve.histograms import TOPSOE, hellinger, nearest_mixture, topsoe

REASON = "bench extra: peers"
with warnings.catch_warnings():  # what the peers warn of is theirs, here and in the tests
    warnings.simplefilter("ignore")
    pytest.importorskip("quapy", reason=REASON)
    pytest.importorskip("abstention", reason=REASON)
    from abstention.label_shift import RLLSImbalanceAdapter
    from quapy.functional import HellingerDistance, TopsoeDistance
    from quapy.method.aggregative import ACC, PACC, DMy, DyS
    from quapy.method.non_aggregative import DMx

pytestmark = pytest.mark.filterwarnings("ignore")


def draw(c, n, shares, seed, apart=1.5):
    rng = np.random.default_rng(seed)
    y = rng.choice(c, n, p=shares)
    centres = np.random.default_rng(99).normal(0, apart, (c, 3))
    return centres[y] + rng.standard_normal((n, 3)), y


class Case:
    """A classifier fitted on other rows, and what it says of a source and a sample."""

    def __init__(self, c, seed, m=2_000):
        rng = np.random.default_rng(seed)
        self.classifier = LogisticRegression().fit(*draw(c, 1_000, np.full(c, 1 / c), seed))
        self.x, self.y = draw(c, 2_000, np.full(c, 1 / c), seed + 1)
        self.target, _ = draw(c, m, rng.dirichlet(np.full(c, 0.2)), seed + 2)
        self.source_scores = self.classifier.predict_proba(self.x)
        self.scores = self.classifier.predict_proba(self.target)

    def ours(self, family, **settings):
        model = family(self.classifier, cv="prefit", n_bootstrap=0, **settings).fit(self.x, self.y)
        return model.predict(self.target)["proportion"].values[0]


CASES = [Case(c, seed, m) for c in (2, 3, 5) for seed, m in ((0, 2_000), (10, 60), (20, 30))]


@pytest.mark.parametrize("case", CASES)
def test_adjusted_count_is_that_of_quapy(case):
    hard = ACC(case.classifier, fit_classifier=False, val_split=None, solver="exact-raise", norm="clip")
    hard.aggregation_fit(case.classifier.predict(case.x), case.y)
    expected = hard.aggregate(case.classifier.predict(case.target))
    np.testing.assert_allclose(case.ours(ss.AdjustedCount), expected, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_probabilistic_adjusted_count_is_that_of_quapy(case):
    soft = PACC(case.classifier, fit_classifier=False, val_split=None, solver="exact-raise", norm="clip")
    soft.aggregation_fit(case.source_scores, case.y)
    expected = soft.aggregate(case.scores)
    np.testing.assert_allclose(case.ours(ss.AdjustedCount, probabilistic=True), expected, atol=1e-6)


def test_cutting_was_needed_somewhere():
    """Else the two tests above would show nothing of it."""
    assert any(case.ours(ss.AdjustedCount).min() == 0 for case in CASES)
    assert any(case.ours(ss.AdjustedCount).min() > 0 for case in CASES)


class Exact(RLLSImbalanceAdapter):
    """abstention's problem, solved further than it does (up to 1.2e-4 off where that is flat)."""

    def compute_w_opt(self, C_yy, mu_y, mu_train_y, rho):
        import cvxpy

        theta = cvxpy.Variable(len(C_yy))
        value = cvxpy.norm(C_yy @ theta - (mu_y - mu_train_y)) + rho * cvxpy.norm(theta)
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-13)
        cvxpy.Problem(cvxpy.Minimize(value), [theta >= -1]).solve(solver="CLARABEL", **tight)
        return 1 + theta.value


@pytest.mark.parametrize("probabilistic", [False, True])
@pytest.mark.parametrize(
    ("adapter", "alpha", "tolerance"),
    [(RLLSImbalanceAdapter, 0.01, 1e-4), (Exact, 0.01, 1e-6), (Exact, 1.0, 1e-6), (Exact, 3.0, 1e-6)],
)
@pytest.mark.parametrize("case", CASES)
def test_rlls_is_that_of_abstention(case, adapter, alpha, tolerance, probabilistic):
    pytest.importorskip("cvxpy", reason=REASON)
    labels = np.eye(case.source_scores.shape[1])[case.y]
    adapted = adapter(soft=probabilistic, alpha=alpha)(labels, case.scores, case.source_scores)
    expected = adapted.multipliers * labels.mean(axis=0)
    found = case.ours(ss.RLLS, alpha=alpha, probabilistic=probabilistic)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=tolerance)


def quapys_distance(distance, alpha, means, target):
    """The mean over histograms by QuaPy's own function."""
    mixture = np.einsum("c,cjb->jb", alpha, means)
    return np.mean([distance(p, q) for p, q in zip(target, mixture, strict=True)])


@pytest.mark.parametrize("n_bins", [4, 8, 20])
@pytest.mark.parametrize("case", CASES)
def test_hdx_is_as_near_as_that_of_quapy(case, n_bins):
    """On histograms that both make alike: whole numbers, with every bin's in its middle."""
    low, high = case.x.min(axis=0), case.x.max(axis=0)
    x, target = (
        np.clip(np.floor((rows - low) / (high - low) * n_bins), 0, n_bins - 1)
        for rows in (case.x, case.target)
    )
    corners = np.repeat([[0.0], [n_bins - 1.0]], 30, axis=0) * np.ones(3)  # the range, for both
    x, y = np.concatenate([x, corners]), np.append(case.y, np.arange(60) % 2)
    theirs = DMx(nbins=n_bins).fit(x, y)
    model = ss.HDx(n_bins=n_bins, n_bootstrap=0, random_state=0).fit(x, y)
    means = model.source_.means.reshape(theirs.validation_distribution.shape)
    np.testing.assert_allclose(means, theirs.validation_distribution, atol=1e-12)
    sample = model.embed(target)
    histograms = sample.sums.reshape(3, n_bins) / len(target)
    ours = model.predict(sample)["proportion"].values[0]
    near, least = (
        quapys_distance(HellingerDistance, alpha, means, histograms)
        for alpha in (ours, theirs.predict(target))
    )
    assert near <= least + 1e-9
    here = np.einsum("c,cjb->jb", ours, means)
    assert hellinger(histograms[None], here[None]).value[0] == pytest.approx(near, abs=1e-12)


@pytest.mark.parametrize("case", CASES[:3])
def test_dys_is_that_of_quapy(case):
    theirs = DyS(case.classifier, False, None, n_bins=8, divergence="topsoe", tol=1e-9)
    theirs.aggregation_fit(case.source_scores, case.y)
    np.testing.assert_allclose(case.ours(ss.DyS), theirs.aggregate(case.scores), atol=1e-6)


@pytest.mark.parametrize("case", CASES[3:])
def test_dys_of_several_classes_is_as_near_as_dmy_of_quapy(case):
    theirs = DMy(case.classifier, False, None, nbins=8, divergence="topsoe")
    theirs.aggregation_fit(case.source_scores, case.y)
    means, histograms = theirs.validation_distribution, theirs._get_distributions(case.scores)
    near, least = (
        quapys_distance(TopsoeDistance, alpha, means, histograms)
        for alpha in (case.ours(ss.DyS), theirs.aggregate(case.scores))
    )
    assert near <= least + 1e-9
    again = nearest_mixture(TOPSOE, means[None], histograms[None])[0]
    np.testing.assert_allclose(case.ours(ss.DyS), again, atol=1e-9)
    here = np.einsum("c,cjb->jb", again, means)
    assert topsoe(histograms[None], here[None]).value[0] / len(histograms) == pytest.approx(near, abs=1e-12)
