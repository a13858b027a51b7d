"""Formulas of docs/methods.md, computed as they stand there, beside what the package gives."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

import scaleshift as ss


@pytest.fixture(scope="module")
def matched():
    """A fitted DFM, its map as a function, embeddings and a sample with unknown cells."""
    rng = np.random.default_rng(0)
    place = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    y = np.repeat(["a", "b", "c"], 300)
    X = rng.normal(size=(900, 2)) + np.repeat(place, 300, axis=0)
    sample = np.concatenate([X[:50], X[300:500], rng.normal(size=(60, 2)) + 20])
    model = ss.DFM("landmarks", random_state=0).fit(X, y)
    Z, s = model.embedding_.landmarks, model.bandwidth_

    def kernel(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * s**2))

    values, vectors = np.linalg.eigh(kernel(Z, Z))
    kept = values > 1e-7 * values[-1]

    def phi(x):
        return kernel(x, Z) @ vectors[:, kept] / np.sqrt(values[kept])

    classes = np.array([phi(X[y == label]).mean(axis=0) for label in "abc"])
    variance = np.mean([X[y == label].var(axis=0).mean() for label in "abc"])
    return model, sample, phi, classes, 1 + s**2 / variance


def test_soft_matching_is_the_nearest_mixture(matched):
    model, sample, phi, classes, _ = matched
    found = model.predict(sample)
    alpha, target = found["proportion"].values[0], phi(sample).mean(axis=0)
    gradient = classes @ (alpha @ classes - target)
    assert alpha.sum() < 1  # the unknown share is free: so is every proportion above 0
    assert np.abs(gradient).max() < 1e-6
    assert float(found["unknown"][0]) == pytest.approx(1 - alpha.sum(), abs=1e-12)


def test_delta_min_is_the_least_eigenvalue_of_contrasts(matched):
    model, _, _, classes, _ = matched
    contrasts = np.eye(3) - 1 / 3
    values = np.linalg.eigvalsh(contrasts @ classes @ classes.T @ contrasts)
    assert model.delta_min_plain_ == pytest.approx(values[1], rel=1e-5)


def test_posteriors_and_novelty_of_cells(matched):
    model, sample, phi, classes, power = matched
    result = model.predict(sample)
    share = np.append(result["proportion"].values[0], result["unknown"].values[0])
    density, usual = np.maximum(phi(sample) @ classes.T, 0), (classes**2).sum(axis=1)
    unknown = 0.4 * (share[:3] @ usual) / share[:3].sum()
    joint = share * np.column_stack([density, np.full(len(sample), unknown)]) ** power
    posterior = model.posterior(sample, result).values
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), atol=1e-5)
    novelty = 1 / (1 + ((density / usual).max(axis=1) / 0.4) ** power)
    np.testing.assert_allclose(np.asarray(ss.quantify.novelty(model, sample)), novelty, atol=1e-5)


def test_the_objective_of_rankings_and_its_best_support():
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.2
    X = rng.normal(size=(500, 6)) + y[:, None] * [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    w = ss.SparseAUC(k=2, alpha=0.0, cv=None).fit(X, y).coef_
    delta = X[y].mean(axis=0) - X[~y].mean(axis=0)
    within = np.cov(X[y].T, bias=True) + np.cov(X[~y].T, bias=True)
    pairs = ((1 - (X[y] @ w)[:, None] + X[~y] @ w) ** 2).mean()
    assert pairs == pytest.approx((1 - w @ delta) ** 2 + w @ within @ w)

    def direction(support):
        return np.linalg.solve(within[np.ix_(support, support)], delta[support])

    supports = [list(support) for support in itertools.combinations(range(6), 2)]
    best = max(supports, key=lambda support: delta[support] @ direction(support))
    assert np.flatnonzero(w).tolist() == best
    assert w[best[0]] / w[best[1]] == pytest.approx(np.divide(*direction(best)))


def test_the_error_of_least_squares_and_its_interval():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(80, 5)), 2 * rng.normal(size=(300, 5))
    y = X @ np.arange(5) + rng.normal(size=80)
    found = ss.PredictionError("ols", random_state=0).fit(X, y).predict({"far": target})
    Z, Z_target = np.c_[np.ones(80), X], np.c_[np.ones(300), target]
    residual = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    left = 80 - 6
    error = residual @ residual / left * (1 + np.trace(np.linalg.inv(Z.T @ Z) @ Z_target.T @ Z_target) / 300)
    for method in ("direct", "decomposed"):
        assert float(found["error"].loc["far", method]) == pytest.approx(error)
    ends = [float(found[name].loc["far", "direct"]) for name in ("error_low", "error_high")]
    assert ends == pytest.approx([left * error / chi2.ppf(q, left) for q in (0.975, 0.025)])
