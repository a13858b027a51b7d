"""Jobs for the kernels, and the distance of what they give from what is right."""

import numpy as np


def fourier_study(n, d, n_groups, n_frequencies, seed=0):
    """Normal rows, random groups with some unlabelled, frequencies of a kernel as wide as the data."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    return x, rng.integers(-1, n_groups, n), n_groups, rng.normal(size=(n_frequencies, d)) / d**0.5


def landmark_study(n, d, n_groups, n_landmarks, seed=0):
    """Normal rows, random groups with some unlabelled, landmarks of the same law, a kernel as wide as it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    return x, rng.integers(-1, n_groups, n), n_groups, rng.normal(size=(n_landmarks, d)), d**0.5


def errors(sums, expected):
    """Distance of each group's sums relative to their norm; groups without rows must be exactly 0."""
    norms = np.linalg.norm(expected, axis=1)
    assert not sums[norms == 0].any()
    return np.linalg.norm(sums - expected, axis=1)[norms > 0] / norms[norms > 0]
