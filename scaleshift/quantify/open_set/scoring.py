"""What does a cell look like to the source?  Standardised, classified, and how novel it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from scaleshift.quantify.classifier.cross_fit import log_posterior_of
from scaleshift.quantify.classifier.logistic import standardised
from scaleshift.quantify.classifier.models import Model
from scaleshift.quantify.open_set.landmarks import Landmarks


@dataclass(frozen=True)
class Scorer:
    """Cross-fitted classifiers and landmarks, on standardised markers."""

    location: np.ndarray  # (n_markers,)
    scale: np.ndarray  # (n_markers,)
    models: tuple[Model, ...]  # by part: fitted without it
    together: tuple[Model, ...]  # those whose mean is that of all: one, where it can be one
    log_prior: np.ndarray  # (n_parts, n_classes) of the classes in what each has learned from
    landmarks: Landmarks

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.landmarks.nbytes + sum(model.nbytes for model in self.models)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.log_prior.shape[1]

    def standardised(self, x: np.ndarray) -> np.ndarray:
        """Markers in units of the source's standard deviation, float64."""
        return standardised(x, self.location, self.scale)

    def logits(self, z: np.ndarray) -> np.ndarray:
        """Of cells that were not learned from, the mean over the classifiers: -> (n, n_classes).

        Up to a number that is the same for all classes of a cell.
        """
        total = np.zeros((len(z), self.n_classes))
        for model in self.together:
            total += log_posterior_of(model, z, self.n_classes)
        return total / len(self.together)

    def logits_held_out(self, z: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Of cells of the source, each by the classifier that has not seen its part."""
        found = np.empty((len(z), self.n_classes))
        for number in np.unique(part):
            here = part == number
            if number < 0:
                found[here] = self.logits(z[here])
            else:
                found[here] = log_posterior_of(self.models[number], z[here], self.n_classes)
        return found

    def posteriors(self, logits: np.ndarray, part: np.ndarray | None = None) -> np.ndarray:
        """As if all classes were equally frequent: (n, n_classes). `part` for held-out cells."""
        prior = self.log_prior.mean(axis=0)
        if part is None:
            return softmax(logits - prior, axis=1)
        return softmax(logits - np.vstack([self.log_prior, prior])[part], axis=1)  # -1 is the last
