"""Which mixture of classes is one sample, and how sure is that?

A `Matcher` holds what the source says; called with one sample's feature sums it gives the sample's row of the
result. It travels to the workers, so that a sample's sums need not travel to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from scaleshift.blocks.statistics import Layout
from scaleshift.quantify.features import Embedding, ExplicitEmbedding
from scaleshift.quantify.mixtures import Mixture
from scaleshift.quantify.shift_test import ShiftTest


@dataclass(frozen=True)
class Matcher:
    """The source's side of the matching, of the classes that have rows."""

    embedding: Embedding
    mixture: Mixture
    sets: np.ndarray  # (n_sets, n_labels + 1) bool: whose sum is asked for too, the unknown share last
    level: float
    seed: int
    test: ShiftTest | None
    bounded: bool = True  # whether shares lie in [0, 1], and their intervals with them

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        parts = (self.embedding, self.mixture, self.test)
        return sum(getattr(part, "nbytes", 0) for part in parts)

    @property
    def answer(self) -> Layout:
        """Shapes of what a call returns. Shares: of the classes, the unknown one, the sets."""
        n = self.mixture.n_labels + 1 + len(self.sets)
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
        means = list(sums[filled].sum(axis=1) / n_rows[filled, None])
        answer["share"][filled] = self.shares(self.mixture.shares(means))
        if self.test is not None and isinstance(self.embedding, ExplicitEmbedding):
            targets = [self.embedding.features(mean) for mean in means]
            fits = self.test.fit(targets)
            for i, target, alpha in zip(filled, targets, fits, strict=True):
                folds = self.embedding.features(sums[i]) if self.test.has_noise else sums[i]
                for name, value in self.test(target, alpha, folds, counts[i]).items():
                    answer[name][i] = value
        n_parts = self.mixture.n_parts
        if n_parts is not None:
            for i in filled:
                if np.count_nonzero(counts[i]) > 1:
                    found = self._interval(answer["share"][i], sums[i], counts[i], n_parts)
                    answer["low"][i], answer["high"][i] = found
        return answer

    def shares(self, alpha: np.ndarray) -> np.ndarray:
        """Proportions, unknown share and sums of the sets: (..., n_labels) -> (..., n_shares)."""
        unknown = np.clip(1 - alpha.sum(axis=-1, keepdims=True), 0, 1)
        shares = np.concatenate([alpha, unknown], axis=-1)
        of_sets = [shares[..., members].sum(axis=-1) for members in self.sets]
        return np.concatenate([shares, *[share[..., None] for share in of_sets]], axis=-1)

    def _interval(
        self, share: np.ndarray, sums: np.ndarray, counts: np.ndarray, n_parts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Estimate -+ t sd over the replicates: the sample and the source drawn again."""
        shares = self.shares(self.mixture.replicated(sums, counts, self.seed))
        freedom = np.minimum(np.count_nonzero(counts), self._parts(n_parts)) - 1
        reach = student.ppf((1 + self.level) / 2, np.maximum(freedom, 1)) * shares.std(axis=0, ddof=1)
        ends = share - reach, share + reach
        return (np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1)) if self.bounded else ends

    def _parts(self, n_parts: np.ndarray) -> np.ndarray:
        """In how many folds of the source the classes behind each share have rows, (n_shares,)."""
        # Nothing of the unknown is learned from the source: it limits no share.
        of_sets = np.where(self.sets, n_parts, n_parts[-1]).min(axis=1)
        return np.concatenate([n_parts, of_sets])
