"""Who belongs to the best components of a mixture?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.kernels import dispatch
from scaleshift.kernels import mixture as kernel
from scaleshift.kernels.mixture import Outcomes
from scaleshift.slices.mixtures.mixture import Mixture, Powers, components_of
from scaleshift.slices.tiles import tiles

NOTHING = Outcomes()


@dataclass(frozen=True)
class MixtureSlices:
    """Some components of a mixture as slices."""

    mixture: Mixture
    powers: Powers
    chosen: np.ndarray  # (n_slices,) components, best first
    among_chosen: bool = False  # a row belongs to the best of the chosen, as in domino 0.1.5, never to none

    def is_sound(self, n_labels: int) -> bool:
        """Whether every chosen component is one, and labels can have so many codes."""
        chosen, k = np.asarray(self.chosen), self.mixture.n_components
        fine = chosen.dtype.kind == "i" and chosen.ndim == 1 and ((chosen >= 0) & (chosen < k)).all()
        return bool(fine and self.mixture.label_probs.shape[1] == n_labels)

    @property
    def n_slices(self) -> int:
        """Best first."""
        return len(self.chosen)

    @property
    def centres(self) -> np.ndarray:
        """Means, (n_slices, d')."""
        return self.mixture.means[self.chosen]

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.mixture.means.nbytes + self.mixture.covariances.nbytes

    def responsibilities(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """Of all components, (n, K); rows add up to 1."""
        return dispatch.responsibilities(x, outcomes, components_of([self.mixture], self.powers))

    def memberships(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """Responsibilities of the chosen components, (n, n_slices)."""
        found = self.responsibilities(x, outcomes)
        total = found.sum(axis=1, keepdims=True, dtype=np.float64)  # float32 ones are rough
        return found[:, self.chosen] / total

    def assigned(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """1 for the most responsible component where it is a chosen one, (n, n_slices)."""
        found = self.responsibilities(x, outcomes)
        if self.among_chosen:
            return _one_hot(found[:, self.chosen].argmax(axis=1), np.arange(self.n_slices))
        return _one_hot(found.argmax(axis=1), self.chosen)

    def members(self, x: np.ndarray) -> np.ndarray:
        """The same by the embeddings alone, as bools."""
        return self.responsibilities(x, NOTHING).argmax(axis=1)[:, None] == self.chosen

    def typicality(self, x: np.ndarray) -> np.ndarray:
        """Log density of the embedding in each chosen component, (n, n_slices)."""
        return np.concatenate([kernel.log_joint(x[rows], NOTHING, self._alone) for rows in tiles(len(x))])

    @property
    def _alone(self) -> kernel.Components:
        """The chosen components, equally likely."""
        mixture, chosen = self.mixture, self.chosen
        covariances = (
            mixture.covariances[None] if mixture.covariance_type == "tied" else mixture.covariances[chosen]
        )
        return kernel.Components(
            mixture.covariance_type, (len(chosen),), np.ones(len(chosen)), mixture.means[chosen], covariances
        )


def _one_hot(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (codes[:, None] == values).astype(np.int64)
