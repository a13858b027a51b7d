"""Which proportions does one sample have, and how sure are they?  Its counts become its row of the result.

An `Answerer` holds what the source says and travels to the workers, so that a sample's counts need not travel
to the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from scaleshift.blocks.statistics import Layout
from scaleshift.quantify.open_set import estimators
from scaleshift.quantify.open_set.estimators import Rates, Seen, rates
from scaleshift.quantify.resampling import halves

Estimate = Callable[[Seen, Rates], tuple[np.ndarray, int]]


@dataclass(frozen=True)
class Counts:
    """What the pass over the source counted."""

    predicted: np.ndarray  # (n_folds, n_classes, n_classes) cells by class and predicted class
    clear: np.ndarray  # (n_folds, n_classes, n_classes) those that are not flagged

    def rates(self, weights: np.ndarray | None = None) -> Rates:
        """Of all cells, and of the replicates that weigh the folds by `weights` (n, n_folds)."""
        every = np.ones((1, len(self.predicted)))
        weights = every if weights is None else np.vstack([every, weights])
        return rates(*(np.tensordot(weights, counts, (1, 0)) for counts in (self.predicted, self.clear)))


@dataclass(frozen=True)
class Answerer:
    """The source's side of the estimation."""

    counts: Counts
    unknown: int  # class of unknown cells, or -1
    gate: float | None  # below it no share is unlike every class; None: it is not asked for
    estimator: str  # letter, of `estimators.NAMES`
    centres: np.ndarray  # (n_prototypes, n_classes) posteriors of prototypes that a sample does not meet
    n_bootstrap: int
    level: float
    seed: int

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.counts.predicted.nbytes + self.counts.clear.nbytes

    @property
    def layout(self) -> Layout:
        """Shapes of what a call returns. Shares: of the known classes, then the unknown one."""
        n_classes = len(self.counts.predicted[0])
        n = n_classes + (self.unknown < 0)
        single = ("novel", "novel_unaligned", "disagreement", "n_cells", "n_invalid")
        by_class = {"flag_rate": (n_classes,), "expected_flag_rate": (n_classes,)}
        return {"share": (n,), "low": (n,), "high": (n,), **by_class, **dict.fromkeys(single, ())}

    def __call__(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The rows of some samples; a row has the same bits whatever the others are."""
        n_foreign = states.pop("n_foreign")
        n_cells = states["predicted"].sum(axis=(1, 2))
        layout = {name: (len(n_cells), *shape) for name, shape in self.layout.items()}
        answer = {name: np.full(shape, np.nan) for name, shape in layout.items()}
        answer.update(n_cells=n_cells, n_invalid=states["n_invalid"], n_foreign=n_foreign)
        source = self.counts.rates(self._halves(len(self.counts.predicted), "source"))
        first = source.replicates(slice(1))
        for i in np.flatnonzero(n_cells):
            state = {name: values[i] for name, values in states.items()}
            for name, value in self._row(state, first, source).items():
                answer[name][i] = value
        return answer

    def _row(self, state: dict[str, np.ndarray], first: Rates, source: Rates) -> dict[str, np.ndarray]:
        n_folds = int(np.count_nonzero(state["predicted"].sum(axis=1)))
        again = self._halves(len(state["predicted"]), "target") if n_folds > 1 else None
        weights = np.ones((1, len(state["predicted"])))
        if again is not None:
            weights = np.vstack([weights, again])
        n_rows = weights @ state["predicted"].sum(axis=1)
        weights = weights[n_rows > 0] / n_rows[n_rows > 0, None]  # a half without cells says nothing
        source = source.replicates(np.flatnonzero(n_rows > 0))

        def seen(prefix: str) -> Seen:
            kinds = state[f"{prefix}kinds"].sum(axis=0)
            met = kinds[:, None] > 0
            means = state[f"{prefix}posteriors"] / np.where(met, kinds[:, None], 1)
            predicted = state["clear" if prefix else "predicted"]
            return Seen(
                weights @ predicted, weights @ state[f"{prefix}kinds"], np.where(met, means, self.centres)
            )

        whole = seen("")
        shares = self._estimates(estimators.closed, whole, source)
        plain = estimators.closed(Seen(whole.predicted[:1], whole.kinds[:1], whole.posteriors), first)[0]
        found = {"disagreement": np.abs(plain[0, 0] - plain[2, 0]).sum()}
        hidden, other = 0.0, None
        if self.gate is not None:
            clear = seen("clear_")
            open_shares = self._estimates(estimators.opened, clear, source)
            novel = np.clip(1 - open_shares[0].sum(), 0, 1)
            found |= {"novel": novel, "novel_unaligned": self._unaligned(state, clear, weights[0, 0], first)}
            if novel > self.gate:
                shares = open_shares
            else:
                hidden, other = self.gate, self._divided(open_shares)
        freedom = self._freedom(n_folds)
        found |= self._interval(self._divided(shares), freedom, hidden)
        if other is not None and "low" in found:  # the novel cells may be unknown all the same
            also = self._interval(other, freedom, 0.0)
            found["low"][:-1] = np.minimum(found["low"], also["low"])[:-1]
            found["high"][:-1] = np.maximum(found["high"], also["high"])[:-1]
        flags = state["predicted"].sum(axis=0) - state["clear"].sum(axis=0)
        met = state["predicted"].sum(axis=0)
        found["flag_rate"] = np.where(met > 0, flags / np.maximum(met, 1), np.nan)
        found["expected_flag_rate"] = first.flagged_of_predicted[0]
        return found

    def _estimates(self, estimate: Estimate, seen: Seen, source: Rates) -> np.ndarray:
        """What the chosen estimator says, (r, n_classes)."""
        return estimate(seen, source)[0]["CBEH".index(self.estimator)]

    def _unaligned(self, state: dict[str, np.ndarray], clear: Seen, share: float, source: Rates) -> float:
        """What the unknown share would be without shifts of the classes."""
        seen = Seen(
            share * state["clear_unaligned"][None],
            share * state["clear_kinds_unaligned"][None],
            clear.posteriors,
        )
        found = self._estimates(estimators.opened, seen, source)
        return float(np.clip(1 - found[0].sum(), 0, 1))

    def _divided(self, shares: np.ndarray) -> np.ndarray:
        """Shares of the known classes, and of what is unknown: (r, n_classes) -> (r, n_shares)."""
        known = np.delete(shares, self.unknown, axis=1) if self.unknown >= 0 else shares
        return np.column_stack([known, np.clip(1 - known.sum(axis=1), 0, 1)])

    def _interval(self, shares: np.ndarray, freedom: np.ndarray, hidden: float) -> dict[str, np.ndarray]:
        """Estimate -+ t sd over the replicates; an unknown share below the gate may be there all the same."""
        found = {"share": shares[0]}
        if len(shares) < 3 or not freedom.any():
            return found
        reach = student.ppf((1 + self.level) / 2, np.maximum(freedom, 1)) * shares[1:].std(axis=0, ddof=1)
        high = shares[0] + reach
        high[-1] += hidden
        return found | {"low": np.clip(shares[0] - reach, 0, 1), "high": np.clip(high, 0, 1)}

    def _freedom(self, n_folds: int) -> np.ndarray:
        """Folds of the sample, or of the source's class where it has fewer, less one: (n_shares,)."""
        of_class = np.count_nonzero(self.counts.predicted.sum(axis=2), axis=0)
        known = np.delete(of_class, self.unknown) if self.unknown >= 0 else of_class
        return np.minimum(np.append(known, len(self.counts.predicted)), n_folds) - 1

    def _halves(self, n_folds: int, stream: str) -> np.ndarray | None:
        return (
            halves(self.n_bootstrap, n_folds, self.seed, stream) if self.n_bootstrap and n_folds > 1 else None
        )
