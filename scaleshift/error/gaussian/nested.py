"""How far off is the estimate itself, and how far does it scatter?  The estimator, run again on replicates.

Outer replicates are outcomes that the generator has drawn, on each of which the whole procedure was rerun:
penalty, model, generator, variance. Of each of them, inner replicates are drawn and refitted at the
penalty that it chose. The same is done to the source, with the same inner noise: what counts is the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleshift.error.gaussian.design import CentredPart
from scaleshift.error.gaussian.procedures import Procedure
from scaleshift.error.gaussian.replicates import inner_noise

# What the interval holds is the error averaged over outcomes of the source, not that of the model at hand.
N_OUTER = 100  # of the replicates; an interval of 95 % rests on the third smallest and largest
N_INNER = 25


@dataclass(frozen=True)
class OuterReplicates:
    """What the estimator found in the source and in each of O replicates: the source comes first."""

    theta: np.ndarray  # (q, 1 + O) models
    mean: np.ndarray  # (q, 1 + O) generators
    variance: np.ndarray  # (1 + O,) of noise
    alpha: np.ndarray  # (1 + O,)
    err_in: np.ndarray  # (1 + O,) in-sample error by degrees of freedom


@dataclass(frozen=True)
class Scatter:
    """Differences of refits from their generator: (1 + O, I, q)."""

    differences: np.ndarray
    variance: np.ndarray  # (1 + O,)
    err_in: np.ndarray  # (1 + O,)
    in_sample: np.ndarray  # (1 + O,) mean over I of d'U d at the source

    def ratios(self, products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Direct and decomposed estimates of replicates by those of the source, at one target: (O,) each.

        NaN where the source's is not positive.
        """
        moved = self.differences @ products
        excess = np.einsum("oiq,oiq->o", moved, self.differences) / self.differences.shape[1]
        direct = self.variance + excess
        decomposed = self.err_in + excess - self.in_sample
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [np.where(e[0] > 0, e[1:] / e[0], np.nan) for e in (direct, decomposed)]
        return found[0], found[1]


def scatter(
    outer: OuterReplicates, part: CentredPart, gram: np.ndarray, procedure: Procedure, seed: int
) -> Scatter:
    """Refit the inner replicates of all: columns of one problem.

    Parameters
    ----------
    outer : OuterReplicates
    part : CentredPart
        All rows of the source.
    gram : numpy.ndarray, shape (q, q)
        Their Z'Z.
    procedure : Procedure
    seed : int
    """
    noise = inner_noise(gram, seed, N_INNER)  # (q, I)
    expected = gram @ outer.mean  # (q, 1 + O)
    differences = np.empty((outer.alpha.size, N_INNER, len(gram)))
    for o in range(outer.alpha.size):
        cross = expected[:, o, None] + np.sqrt(outer.variance[o]) * noise
        alpha = np.full(N_INNER, outer.alpha[o])
        refit = procedure.fit(part, cross, alpha, outer.theta[:, o])
        differences[o] = (refit - outer.mean[:, o, None]).T
    in_sample = np.einsum("oiq,oiq->o", differences @ (gram / gram[0, 0]), differences) / N_INNER
    return Scatter(differences, outer.variance, outer.err_in, in_sample)
