"""Data with planted slices, and a slicer whose slices the test chooses, for the tests of descriptions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift import DominoSlicer
from scaleshift.slices.base import Slicer
from scaleshift.slices.inputs import given


def corner(n=3_000, seed=0, d=4, rate=0.6, share=0.1, offset=0.0):
    """A classifier that fails in a corner of the embeddings: what is known of each row, and who is there."""
    rng = np.random.default_rng(seed)
    there = rng.random(n) < share
    x = rng.normal(size=(n, d)) + np.where(there, 5.0, 0.0)[:, None] * np.eye(d)[:2].sum(axis=0) + offset
    y = rng.integers(0, 3, n)
    wrong = rng.random(n) < np.where(there, rate, 0.05)
    predicted = np.where(wrong, (y + 1) % 3, y)
    probability = np.full((n, 3), 0.1)
    probability[np.arange(n), predicted] = 0.8
    return {"embedding": x, "target": np.array(["B", "NK", "T"])[y], "pred_probs": probability}, there


def domino(**parameters):
    """Small and quick."""
    return DominoSlicer(**{"n_slices": 2, "n_mixture_components": 4, "random_state": 0, **parameters})


@dataclass(frozen=True)
class Balls:
    """Slices that the caller chose: rows no farther from a centre than a radius."""

    centres: np.ndarray
    radii: np.ndarray

    @property
    def n_slices(self):
        return len(self.centres)

    @property
    def nbytes(self):
        return self.centres.nbytes

    def _distances(self, x):
        return np.linalg.norm(x[:, None, :].astype(float) - self.centres, axis=2)

    def memberships(self, x, outcomes):
        return self.members(x).astype(float)

    def assigned(self, x, outcomes):
        return self.members(x).astype(int)

    def members(self, x):
        return self._distances(x) <= self.radii

    def typicality(self, x):
        return -self._distances(x)


class BallSlicer(Slicer):
    """A slicer as others are written: `_slices`, and a fit that keeps its profile."""

    METHOD = "Balls"
    CITATION = "none"
    _dtype = "float64"

    def __init__(self, centres: Any = None, radii: Any = None, holdout: float = 0.2, random_state: Any = 0):
        self.centres = centres
        self.radii = radii
        self.holdout = holdout
        self.random_state = random_state

    @property
    def _slices(self):
        shift = self.preparation_.projection.mean
        return Balls(np.asarray(self.centres, float) - shift, np.asarray(self.radii, float))

    def fit(self, data=None, embeddings="embedding", targets="target", pred_probs="pred_probs", losses=None):
        begun = self._begin(given(data, embeddings, targets, pred_probs, losses))
        self.preparation_ = begun.preparation
        return self._set(begun, self._slices)
