"""Which mixture of classes comes nearest to one sample, and how sure is that?

A `Matcher` holds what the source says; called with one sample's feature sums it gives the sample's row of the
result. It travels to the workers, so that a sample's sums need not travel to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from scaleshift.blocks.statistics import Layout
from scaleshift.quantify.features import Embedding, ExplicitEmbedding
from scaleshift.quantify.resampling import halves
from scaleshift.quantify.shift_test import ShiftTest
from scaleshift.solve.simplex import simplex_least_squares


@dataclass(frozen=True)
class SourceReplicates:
    """What the source might have said had it been drawn again."""

    weights: np.ndarray  # (n, n_folds) random halves of its folds
    sums: np.ndarray  # (n_labels, n_folds, n_matching)
    counts: np.ndarray  # (n_labels, n_folds)
    grams: np.ndarray  # (n, n_labels, n_labels)

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.weights.nbytes + self.sums.nbytes + self.grams.nbytes

    def products(self, target: np.ndarray) -> np.ndarray:
        """<Phi_Q, Phi_i> with the class embeddings of every replicate, (n, n_labels)."""
        by_fold = self.sums @ target  # (n_labels, n_folds)
        n_rows = self.weights @ self.counts.T
        found = self.weights @ by_fold.T / np.where(n_rows > 0, n_rows, 1)
        return np.where(n_rows > 0, found, by_fold.sum(axis=1) / self.counts.sum(axis=1))


@dataclass(frozen=True)
class Matcher:
    """The source's side of the matching, of the classes that have rows."""

    embedding: Embedding
    soft: bool
    means: np.ndarray  # (n_labels, width)
    gram: np.ndarray  # (n_labels, n_labels)
    sets: np.ndarray  # (n_sets, n_labels + 1) bool: whose sum is asked for too, the unknown share last
    level: float
    seed: int
    replicates: SourceReplicates | None
    test: ShiftTest | None

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        parts = (self.embedding, self.means, self.replicates, self.test)
        return sum(getattr(part, "nbytes", 0) for part in parts)

    @property
    def answer(self) -> Layout:
        """Shapes of what a call returns. Shares: of the classes, the unknown one, the sets."""
        n = len(self.means) + 1 + len(self.sets)
        single = ("distance", "misfit", "p_value", "n_cells", "n_invalid")
        return {"share": (n,), "low": (n,), "high": (n,), **dict.fromkeys(single, ())}

    def __call__(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The rows of some samples; a row has the same bits whatever the others are.

        Parameters
        ----------
        states : dict of name to array
            sums (n_samples, n_folds, width), counts (n_samples, n_folds), n_invalid (n_samples,) and what is
            handed on as it is.
        """
        sums, counts = states.pop("sums"), states.pop("counts")
        n_rows = counts.sum(axis=1)
        layout = {name: (len(n_rows), *shape) for name, shape in self.answer.items()}
        answer = {name: np.full(shape, np.nan) for name, shape in layout.items()}
        answer.update(n_cells=n_rows, **states)
        filled = np.flatnonzero(n_rows)
        means = sums[filled].sum(axis=1) / n_rows[filled, None]
        # One product a sample: those of all at once would have other bits in another company.
        products = _stacked([self.embedding.products(self.means, mean) for mean in means], len(self.means))
        answer["share"][filled] = self._shares(simplex_least_squares(self.gram, products, soft=self.soft))
        if self.test is not None and isinstance(self.embedding, ExplicitEmbedding):
            targets = [self.embedding.features(mean) for mean in means]
            fits = self.test.fit(targets)
            for i, target, alpha in zip(filled, targets, fits, strict=True):
                folds = self.embedding.features(sums[i]) if self.test.has_noise else sums[i]
                for name, value in self.test(target, alpha, folds, counts[i]).items():
                    answer[name][i] = value
        if self.replicates is not None:
            for i, product in zip(filled, products, strict=True):
                if np.count_nonzero(counts[i]) > 1:
                    found = self._interval(answer["share"][i], sums[i], counts[i], product)
                    answer["low"][i], answer["high"][i] = found
        return answer

    def _shares(self, alpha: np.ndarray) -> np.ndarray:
        """Proportions, unknown share and sums of the sets: (..., n_labels) -> (..., n_shares)."""
        unknown = np.clip(1 - alpha.sum(axis=-1, keepdims=True), 0, 1)
        shares = np.concatenate([alpha, unknown], axis=-1)
        of_sets = [shares[..., members].sum(axis=-1) for members in self.sets]
        return np.concatenate([shares, *[share[..., None] for share in of_sets]], axis=-1)

    def _interval(
        self, share: np.ndarray, sums: np.ndarray, counts: np.ndarray, products: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Estimate -+ t sd over the replicates: the sample and the source drawn again, to first order."""
        assert self.replicates is not None
        assert isinstance(self.embedding, ExplicitEmbedding)
        weights = halves(len(self.replicates.weights), len(counts), self.seed, "target")
        n_rows = weights @ counts
        by_fold = self.embedding.products(self.means, sums)  # (n_folds, n_labels)
        own = np.where(n_rows[:, None] > 0, weights @ by_fold / np.maximum(n_rows, 1)[:, None], products)
        mean = self.embedding.features(sums.sum(axis=0) / counts.sum())[: self.embedding.n_matching]
        drawn = own + self.replicates.products(mean) - products
        shares = self._shares(simplex_least_squares(self.replicates.grams, drawn, soft=self.soft))
        freedom = np.minimum(np.count_nonzero(counts), self._parts()) - 1
        reach = student.ppf((1 + self.level) / 2, np.maximum(freedom, 1)) * shares.std(axis=0, ddof=1)
        return np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)

    def _parts(self) -> np.ndarray:
        """In how many folds of the source the classes behind each share have rows, (n_shares,)."""
        assert self.replicates is not None
        all_folds = self.replicates.counts.shape[1]
        # Nothing of the unknown is learned from the source: it limits no share.
        by_class = np.append(np.count_nonzero(self.replicates.counts, axis=1), all_folds)
        of_sets = np.where(self.sets, by_class, all_folds).min(axis=1)
        return np.concatenate([by_class, of_sets])


def _stacked(rows: list[np.ndarray], width: int) -> np.ndarray:
    """Rows as a matrix, also of none."""
    return np.array(rows).reshape(len(rows), width)


def source_replicates(
    embedding: ExplicitEmbedding, sums: np.ndarray, counts: np.ndarray, n: int, seed: int
) -> SourceReplicates:
    """Draw the source `n` times again by random halves of its folds, or of its samples.

    Parameters
    ----------
    embedding : ExplicitEmbedding
    sums : numpy.ndarray, shape (n_labels, n_folds, width)
    counts : numpy.ndarray, shape (n_labels, n_folds)
    n : int
    seed : int
    """
    matched = embedding.features(sums)[..., : embedding.n_matching]
    weights = halves(n, counts.shape[1], seed, "source")
    total, n_total = matched.sum(axis=1), counts.sum(axis=1)
    grams = np.empty((n, len(sums), len(sums)))
    for b, w in enumerate(weights):  # one at a time: all means at once would be n times the classes
        n_rows = counts @ w
        means = np.where(n_rows[:, None] > 0, np.tensordot(w, matched, (0, 1)), total)
        means /= np.where(n_rows > 0, n_rows, n_total)[:, None]
        grams[b] = means @ means.T
    return SourceReplicates(weights, matched, counts, grams)
