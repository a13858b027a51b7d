"""The inequalities that matching obeys exactly, whatever the data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify import geometry
from scaleshift.solve.simplex import simplex_least_squares

seeds = st.integers(0, 2**32 - 1)
X, Y = draw(1_500, [0.3, 0.3, 0.4], seed=0)
T, TY = draw(1_000, [0.7, 0.2, 0.1], seed=1)


def norm_within(span, vector):
    """Norm of the part of `vector` (E,) that lies in the span of the rows of `span`."""
    values, directions = np.linalg.svd(span, full_matrices=False)[1:]
    return np.linalg.norm(directions[values > 1e-10 * values.max()] @ vector)


def embeddings(seed):
    rng = np.random.default_rng(seed)
    c, width = int(rng.integers(2, 8)), 40
    phi = rng.normal(size=(c, width)) + rng.normal(size=width) * rng.choice([0, 3])
    alpha = rng.dirichlet(rng.choice([0.3, 1, 5]) * np.ones(c + 1))
    return rng, phi, alpha, rng.normal(size=width) * rng.choice([0.01, 0.3, 3])


@given(seeds)
@settings(max_examples=150, deadline=None)
def test_hard_matching_obeys_the_deterministic_bound(seed):
    _, phi, alpha, noise = embeddings(seed)
    alpha = alpha[1:] / alpha[1:].sum()
    gram = phi @ phi.T
    found = simplex_least_squares(gram, phi @ (alpha @ phi + noise))
    bound = norm_within(phi[1:] - phi[0], noise) / np.sqrt(geometry.delta_min(gram))
    assert np.linalg.norm(found - alpha) <= bound * (1 + 1e-9) + 1e-9


@given(seeds)
@settings(max_examples=150, deadline=None)
def test_soft_matching_obeys_the_bound_under_contamination(seed):
    """The corollary: of the unknown only its part within the span of the classes counts."""
    rng, phi, alpha, noise = embeddings(seed)
    unknown = rng.normal(size=phi.shape[1])
    gram = phi @ phi.T
    found = simplex_least_squares(gram, phi @ (alpha[1:] @ phi + alpha[0] * unknown + noise), soft=True)
    bound = (alpha[0] * norm_within(phi, unknown) + norm_within(phi, noise)) / np.sqrt(
        geometry.lambda_min(gram)
    )
    assert np.linalg.norm(found - alpha[1:]) <= bound * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("features", ["fourier", "landmarks"])
@pytest.mark.parametrize("soft", [False, True])
def test_models_obey_the_bound_on_data(features, soft):
    model = ss.DFM(features, soft=soft, random_state=0).fit(X, Y)
    far = np.full((200, 3), 9.0, "f4") if soft else T[:0]
    target = np.concatenate([T, far])
    truth = np.array([(label == TY).sum() for label in "abc"]) / len(target)
    n = model.embedding_.n_matching
    phi = model.embedding_.features(model.source_.means)[:, :n]
    states = model.embed(target)
    own = model.embedding_.features(states.sums[0].sum(axis=0) / len(target))[:n]
    found = model.predict(states)["proportion"].values[0]
    span = phi if soft else phi[1:] - phi[0]
    worth = model.lambda_min_plain_ if soft else model.delta_min_plain_
    assert np.linalg.norm(found - truth) <= norm_within(span, own - truth @ phi) / np.sqrt(worth) + 1e-7


def test_the_bound_of_the_theory_is_far_above_the_error_and_falls_with_the_rows():
    model = ss.DFM(random_state=0).fit(X, Y)
    result = model.predict(T)
    truth = np.array([(label == TY).mean() for label in "abc"])
    error = np.linalg.norm(result["proportion"].values[0] - truth)
    bound = model.error_bound(0.05, result)
    assert bound.dims == ("sample",)
    assert error < 0.1 * float(bound[0])
    four_times = ss.DFM(random_state=0).fit(np.tile(X, (4, 1)), np.tile(Y, 4))
    assert four_times.error_bound() == pytest.approx(model.error_bound() / 2, rel=0.02)
    assert model.error_bound(0.01) > model.error_bound(0.05)
    with pytest.raises(ss.DataError, match="delta=2: expected a probability"):
        model.error_bound(2)


def test_classes_that_coincide_have_no_bound():
    model = ss.DFM(bandwidth=2.0, soft=False).fit(np.tile(X[:100], (2, 1)), np.repeat(["a", "b"], 100))
    assert model.error_bound() == np.inf


def test_lambda_min_is_at_most_delta_min():
    for seed in range(50):
        _, phi, _, _ = embeddings(seed)
        gram = phi @ phi.T
        assert geometry.lambda_min(gram) <= geometry.delta_min(gram) + 1e-12


def test_classes_are_confounded_in_sets():
    """Two pairs of twins, a class of its own, and one that vanishes (as the zero vector does)."""
    rng = np.random.default_rng(0)
    phi = np.linalg.qr(rng.normal(size=(30, 4)))[0].T
    phi = phi[[0, 1, 0, 2, 1]] * 0.7
    gram = phi @ phi.T
    counts = np.full(5, 1_000)
    assert [s.tolist() for s in geometry.confounded(gram, counts)] == [[0, 2], [1, 4]]
    apart = gram + np.diag([0, 0, 0.01, 0, 0])
    assert [s.tolist() for s in geometry.confounded(apart, counts)] == [[1, 4]]
    few = np.array([1_000, 1_000, 30, 1_000, 1_000])
    assert [s.tolist() for s in geometry.confounded(apart, few)] == [[0, 2], [1, 4]]
    assert geometry.confounded(gram[:1, :1], counts[:1]) == []
