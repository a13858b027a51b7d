"""Which proportions make a sample's rows most likely?  By counts of prototypes, then exactly by all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.statistics import Layout
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.features.posterior import PosteriorEmbedding
from scaleshift.quantify.mixtures import Resampled
from scaleshift.quantify.resampling import halves
from scaleshift.solve.mixture_likelihood import (
    IMPOSSIBLE,
    NEAR,
    Terms,
    em_points,
    mixture_proportions,
    newton_points,
    redrawn_proportions,
    trial_points,
)


@dataclass(frozen=True)
class LikelihoodMixture:
    """Proportions of highest likelihood, where a row is the prototype that it is nearest to."""

    ratios: np.ndarray  # (n_prototypes, n_labels) class densities over that of the source
    prior: np.ndarray  # (n_labels,)
    n_parts: np.ndarray | None
    drift: (
        np.ndarray | None
    )  # (n_replicates, n_labels, n_prototypes) of the source's class means, drawn again

    @property
    def n_labels(self) -> int:
        """Classes."""
        return len(self.prior)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.ratios.nbytes + getattr(self.drift, "nbytes", 0)

    def shares(self, means: list[np.ndarray]) -> np.ndarray:
        """Of some samples by their mean sums."""
        weights = np.array(means).reshape(len(means), len(self.ratios))
        return mixture_proportions(self.ratios, weights, self.prior)

    def replicated(self, sums: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
        """Of one sample, drawn again; what the source would be, drawn again, is taken off its rows."""
        assert self.drift is not None
        total, m = sums.sum(axis=0), counts.sum()
        # A row's worth of the prior: no prototype is impossible.
        at = (m * self.shares([total])[0] + self.prior) / (m + 1)
        weights = halves(len(self.drift), len(counts), seed, "target")
        n_rows = weights @ counts
        own = np.where(n_rows[:, None] > 0, weights @ sums / np.maximum(n_rows, 1)[:, None], total / m)
        drawn = np.maximum(own - at @ self.drift, 0)
        return redrawn_proportions(self.ratios, drawn, at)


def likelihood_mixture(
    embedding: PosteriorEmbedding, means: np.ndarray, again: Resampled | None
) -> LikelihoodMixture:
    """Prepare it for class means of counts, (n_labels, n_prototypes); `again` for intervals."""
    drift = None if again is None else np.stack([again.means(w) for w in again.weights]) - means
    ratios = embedding.ratios(embedding.prototypes.posterior)
    prior = embedding.prior[embedding.prior > 0]
    return LikelihoodMixture(ratios, prior, None if again is None else again.n_parts, drift)


@dataclass(frozen=True)
class Exact:
    """Proportions of highest likelihood of some samples, over all their rows."""

    proportions: np.ndarray  # (n_samples, n_labels)
    log_likelihood: np.ndarray  # (n_samples, n_passes) mean over the rows; that of the best found so far
    converged: np.ndarray  # (n_samples,) bool


def exact_proportions(
    rows: Rows,
    embedding: PosteriorEmbedding,
    samples: np.ndarray,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
) -> Exact:
    """Improve proportions by passes over the samples that are not done yet.

    Parameters
    ----------
    rows : Rows
        With the column "sample".
    embedding : PosteriorEmbedding
    samples : numpy.ndarray of int, shape (n_samples,)
        Codes of those that have finite rows.
    start : numpy.ndarray, shape (n_samples, n_labels)
        Near the solution.
    tol : float
        A sample is done once a step promises less than that of log-likelihood a row.
    max_iter : int
        Passes, at most.

    Notes
    -----
    A pass gives the log-likelihood and its derivatives at one point a sample. From the best point so far,
    the next is that of Newton's method, or of EM where Newton's was no better.
    """
    prior = embedding.prior[embedding.prior > 0]
    best, trial = start.copy(), (1 - NEAR) * start + NEAR * prior
    active, by_newton = np.arange(len(samples)), np.zeros(len(samples), bool)
    terms = Terms(np.full(len(samples), -np.inf), best, np.zeros((*best.shape, best.shape[1])))
    traces: list[np.ndarray] = []
    while active.size and len(traces) < max_iter:
        new = _evaluated(rows, embedding, samples[active], trial)
        rose = new.value > terms.value[active]
        terms = terms.put(active[rose], new.take(rose))
        best[active[rose]] = trial[rose]
        traces.append(terms.value.copy())
        mine = terms.take(active)
        points, rise = newton_points(best[active], mine)
        small = rise <= tol
        best[active[small]] = points[small]  # the error is the square of what was left
        points = trial_points(best[active], mine, points)
        retry = ~rose & by_newton[active]
        points[retry] = em_points(best[active[retry]], mine.gradient[retry])
        by_newton[active] = ~retry
        stuck = ~rose & ~retry  # neither Newton nor EM rises: rounding is all that is left
        left = ~small & ~stuck
        active, trial = active[left], points[left]
    converged = np.ones(len(samples), bool)
    converged[active] = False
    return Exact(best, np.array(traces).T.reshape(len(samples), len(traces)), converged)


def _evaluated(rows: Rows, embedding: PosteriorEmbedding, samples: np.ndarray, trial: np.ndarray) -> Terms:
    """The terms of some samples at their points: one pass."""
    c = trial.shape[1]
    place = np.full(len(rows.categories("sample")), -1)
    place[samples] = np.arange(len(samples))
    layout, parameters = likelihood_pass(embedding, place, trial)
    found = passes.total(likelihood_sums, rows.only("sample"), layout, keyed="sample", **parameters)
    at = np.searchsorted(found["key"], samples)
    n = found["n_rows"][at]
    return Terms(
        np.where(found["n_impossible"][at] > 0, -np.inf, found["value"][at] / n),
        found["gradient"][at] / n[:, None],
        (found["information"][at] / n[:, None]).reshape(len(samples), c, c),
    )


def likelihood_pass(
    embedding: PosteriorEmbedding, place: np.ndarray, proportions: np.ndarray
) -> tuple[Layout, dict[str, Any]]:
    """The layout of the pass's state, and the parameters of `likelihood_sums`."""
    c = proportions.shape[1]
    layout = {"n_rows": (), "n_impossible": (), "value": (), "gradient": (c,), "information": (c * c,)}
    return layout, {"embedding": embedding, "place": place, "proportions": proportions}


def likelihood_sums(
    block: Block,
    *,
    keys: np.ndarray,
    embedding: PosteriorEmbedding,
    place: np.ndarray,
    proportions: np.ndarray,
) -> dict[str, np.ndarray]:
    """Kernel of the pass: log-likelihood, gradient and information, summed over a sample's rows.

    Parameters
    ----------
    place : numpy.ndarray of int, shape (n_all_samples,)
        Row of a sample in `proportions`; negative: it is not asked for.
    proportions : numpy.ndarray, shape (n_samples, n_labels)
    """
    n, c = len(keys), proportions.shape[1]
    sums = {
        "n_rows": np.zeros(n),
        "n_impossible": np.zeros(n),
        "value": np.zeros(n),
        "gradient": np.zeros((n, c)),
        "information": np.zeros((n, c * c)),
    }
    sample = block.columns["sample"]
    taken = np.flatnonzero(block.valid & (place[keys][sample] >= 0))
    taken = taken[np.argsort(sample[taken], kind="stable")]
    posterior = np.exp(embedding.log_posterior(to_numpy(block.x[taken])))
    ratios = embedding.ratios(posterior)
    ends = np.searchsorted(sample[taken], np.arange(n + 1))
    for i in np.flatnonzero(np.diff(ends)):
        own = ratios[ends[i] : ends[i + 1]]
        totals = own @ proportions[place[keys[i]]]
        possible = totals > IMPOSSIBLE
        relative = own[possible] / totals[possible, None]
        sums["n_rows"][i] = len(own)
        sums["n_impossible"][i] = len(own) - len(relative)
        sums["value"][i] = np.log(totals[possible]).sum()
        sums["gradient"][i] = relative.sum(axis=0)
        sums["information"][i] = (relative.T @ relative).ravel()
    return sums
