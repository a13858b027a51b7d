"""Where do the moments behind a ranking come from, and which features may it use?

A solver's evidence is what its passes have summed. It answers for any buckets of rows: training parts,
held-out parts, halves. Features are screened anew on each training part: screening on all rows would give the
held-out ones a say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleshift.auc.moments import ClassMoments, Contrast, contrast
from scaleshift.auc.ranking import t_statistic


@dataclass(frozen=True)
class Evidence:
    """Moments of the candidate features, and variances of all where there are more features than these."""

    moments: ClassMoments  # of the candidates
    candidates: np.ndarray  # (p,) ascending numbers of features
    spread: ClassMoments | None = None  # of all features, squares alone; None: all are candidates
    n_screened: int = 0  # candidates of one part of the rows
    overlooked: tuple[int, ...] = ()  # features that all rows together let in beside

    def contrast(self, sign: np.ndarray, buckets: Sequence[int] | None = None) -> Contrast:
        """Positives against negatives in some buckets, of the candidates."""
        return contrast(self.moments, sign, buckets)

    def among(self, sign: np.ndarray, buckets: Sequence[int] | None = None) -> np.ndarray | None:
        """Places among the candidates of the features that these buckets let in; None: all."""
        if self.spread is None:
            return None
        best = screened(contrast(self.spread, sign, buckets), self.n_screened)
        if buckets is None:
            best = np.union1d(best, np.array(self.overlooked, np.int64))
        return np.flatnonzero(np.isin(self.candidates, best))


def screened(found: Contrast, n: int) -> np.ndarray:
    """The n features of largest |t|, ascending.

    Examples
    --------
    >>> means = np.array([[0.0, 0.0, 0.0], [1.0, 3.0, -2.0]])
    >>> screened(Contrast(np.full(2, 9.0), np.full(2, 9.0), means, np.ones((2, 3))), 2).tolist()
    [1, 2]
    """
    return np.sort(np.argsort(-np.abs(t_statistic(found)), kind="stable")[:n])
