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
    n_screened: int = 0  # features that one part of the rows lets in
    overlooked: tuple[int, ...] = ()  # features that all rows together let in beside

    def contrast(self, sign: np.ndarray, buckets: Sequence[int] | None = None) -> Contrast:
        """Positives against negatives in some buckets, of the candidates."""
        return contrast(self.moments, sign, buckets)

    def among(self, sign: np.ndarray, buckets: Sequence[int] | None = None) -> np.ndarray | None:
        """Places among the candidates of the features that these buckets let in; None: all."""
        if self.spread is None:
            return None
        let_in = t_ranks(contrast(self.spread, sign, buckets)) < self.n_screened
        if buckets is None:
            let_in[list(self.overlooked)] = True
        return np.flatnonzero(let_in[self.candidates])


def t_ranks(found: Contrast) -> np.ndarray:
    """Place of every feature by |t|, the largest first: (p,).

    Examples
    --------
    >>> means = np.array([[0.0, 0.0, 0.0], [1.0, 3.0, -2.0]])
    >>> t_ranks(Contrast(np.full(2, 9.0), np.full(2, 9.0), means, np.ones((2, 3)))).tolist()
    [2, 0, 1]
    """
    order = np.argsort(-np.abs(t_statistic(found)), kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks
