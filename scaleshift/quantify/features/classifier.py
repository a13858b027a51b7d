"""What a classifier says of a row, as its features: one-hot predictions, probabilities or logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from scaleshift import parameters
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.kernels.reference import Array, to_numpy
from scaleshift.quantify.classifier.cross_fit import CrossFit, cross_fit, same
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.features.base import Embedding, ExplicitEmbedding, FeatureMap, Source

OUTPUTS = ("hard", "proba", "logit")
FLOOR = np.log(1e-12)  # of a log probability: certainty is no infinite logit


class ClassifierFeatures(FeatureMap):
    """Features by a classifier, cross-fitted on the source; alone, or under a kernel map.

    Matching the means of "hard" outputs is BBSE+: class proportions from confusion and predicted shares.

    Parameters
    ----------
    estimator : None or scikit-learn style classifier, default None
        None is logistic regression on the markers and their products. It is fitted on about 20 000 rows of
        the source, drawn by class, at most; predictions are made block by block on the workers. Other outputs
        than "hard" need `predict_proba`.
    output : {"hard", "proba", "logit"}, default "hard"
        One-hot predictions, class probabilities, or logarithms of these, centred.
    cv : int or "prefit", default 5
        Parts of the source: its rows are predicted by a classifier that has not seen their part, those of
        targets by all of them, whose outputs are averaged. "prefit": the estimator is fitted already, on rows
        that are not the source's but had its class shares, and its classes are labels of the source.
    kernel_map : FeatureMap, optional
        Applied to the outputs: `FourierFeatures()`, say. Usual with "logit".
    random_state : None, int or numpy.random.Generator
        Of the parts; None takes the quantifier's.

    Notes
    -----
    A class of fewer than 2 rows a part is learned from in every part. Cells unlike every class are invisible
    to a classifier: soft matching on its outputs does not find them. Source: Lipton, Wang and Smola (2018),
    "Detecting and correcting for label shift with black box predictors".

    Examples
    --------
    >>> ClassifierFeatures(output="proba").output
    'proba'
    """

    def __init__(
        self,
        estimator: Any = None,
        output: str = "hard",
        cv: int | str = 5,
        kernel_map: Any = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.output = output
        self.cv = cv
        self.kernel_map = kernel_map
        self.random_state = random_state

    def learn(self, source: Source) -> ClassifierEmbedding:
        """Fit the classifiers, and the kernel map on their outputs.

        Examples
        --------
        >>> from scaleshift import DFM
        >>> x, y = np.arange(20.0)[:, None], np.repeat(["B", "T"], 10)
        >>> features = ClassifierFeatures(output="proba")  # a probability a label
        >>> DFM(features, n_bootstrap=0).fit(x, y).embedding_
        <ClassifierEmbedding, 2 features>
        """
        parameters.check("output", self.output, lambda v: v in OUTPUTS, list(OUTPUTS))
        if self.kernel_map is not None and not isinstance(self.kernel_map, FeatureMap):
            raise DataError(f"kernel_map={self.kernel_map!r}: expected a map such as FourierFeatures()")
        check_estimator(self.estimator, () if self.output == "hard" else ("predict_proba",))
        fits = cross_fit(self.estimator, self.cv, source, source.seed_of(self.random_state))
        if self.kernel_map is None:
            return ClassifierEmbedding(fits, self.output)
        fields = (source.rows, source.counts, source.bandwidth, source.criterion, source.seed)
        inner = self.kernel_map.learn(_Outputs(*fields, of=source, fits=fits, output=self.output))
        if not isinstance(inner, ExplicitEmbedding):
            raise DataError(
                f"kernel_map={self.kernel_map!r} keeps rows: expected Fourier features or landmarks"
            )
        return MappedClassifierEmbedding(fits, self.output, inner=inner)


def outputs(log_posterior: np.ndarray, output: str) -> np.ndarray:
    """Features of rows by their log posteriors: (n, n_labels) -> (n, n_labels).

    Examples
    --------
    >>> outputs(np.log([[0.8, 0.2]]), "hard").tolist(), outputs(np.log([[0.5, 0.5]]), "logit").tolist()
    ([[1.0, 0.0]], [[0.0, 0.0]])
    """
    if output == "proba":
        return np.exp(log_posterior)
    if output == "hard":
        return (np.arange(log_posterior.shape[1]) == log_posterior.argmax(axis=1)[:, None]).astype(float)
    logits = np.maximum(log_posterior, FLOOR)
    return logits - logits.mean(axis=1, keepdims=True)


def group_sums(values: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of rows by group, float64: (n, width) -> (n_groups, width). Negative groups are left out.

    Examples
    --------
    >>> group_sums(np.array([[1.0], [2.0], [4.0]]), np.array([1, -1, 1]), 2).tolist()
    [[0.0], [5.0]]
    """
    taken = np.flatnonzero(groups >= 0)
    place = (np.ones(taken.size), (groups[taken], taken))
    return sparse.csr_array(place, (n_groups, len(groups))) @ values


@dataclass(frozen=True, repr=False)
class ClassifierEmbedding(ExplicitEmbedding):
    """Outputs of cross-fitted classifiers, and their squared norm."""

    fits: CrossFit
    output: str

    @property
    def bandwidth(self) -> float:  # type: ignore[override]
        """There is none."""
        return float("nan")

    @property
    def largest_norm(self) -> float:  # type: ignore[override]
        """1 for one-hot predictions and probabilities; of logits there is none."""
        return float("inf") if self.output == "logit" else 1.0

    @property
    def width(self) -> int:
        """One output a label, and their squared norm."""
        return self.fits.n_labels + 1

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """The outputs."""
        return self.fits.n_labels

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The classifiers and what is taken of them."""
        return {"fits": self.fits, "output": self.output}

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.fits.nbytes

    def same_as(self, other: Embedding) -> bool:
        """Whether states of both can be added: the same classifiers, not merely the same settings."""
        return same(self, other)

    @property
    def prior(self) -> np.ndarray:
        """Class shares of the rows that were learned from, (n_labels,)."""
        return self.fits.prior

    def log_posterior(self, x: Array) -> np.ndarray:
        """What the classifier of the whole source says of rows: (n, n_markers) -> (n, n_labels)."""
        return self.fits.log_posterior(to_numpy(x))

    def features(self, means: np.ndarray) -> np.ndarray:
        """As they are."""
        return means[..., :-1]

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """Summed beside the outputs."""
        return means[:, -1]

    def source_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Sums over labelled rows, each as predicted by a classifier that has not seen it."""
        return self._sums(self.fits.log_posterior_held_out(block), groups, n_groups)

    def target_sums(self, block: Block, groups: np.ndarray, n_groups: int) -> np.ndarray:
        """Mean over the classifiers of the sums over rows, as each of them predicts these."""
        total, n = np.zeros((n_groups, self.width)), 0
        for log_posterior in self.fits.log_posteriors(to_numpy(block.x)):
            total += self._sums(log_posterior, groups, n_groups)
            n += 1
        return total / n

    def _sums(self, log_posterior: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
        x = outputs(log_posterior, self.output)
        return group_sums(np.column_stack([x, np.square(x).sum(axis=1)]), groups, n_groups)


@dataclass(frozen=True, repr=False)
class MappedClassifierEmbedding(ClassifierEmbedding):
    """A kernel map of the outputs."""

    inner: ExplicitEmbedding = field(kw_only=True)

    @property
    def width(self) -> int:
        """That of the kernel map."""
        return self.inner.width

    @property
    def n_matching(self) -> int:  # type: ignore[override]
        """That of the kernel map."""
        return self.inner.n_matching

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The classifiers, what is taken of them, and the kernel map."""
        return {**super().parameters, "inner": self.inner}

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.fits.nbytes + self.inner.nbytes

    @property
    def bandwidth(self) -> float:  # type: ignore[override]
        """That of the kernel map, in the units of the outputs."""
        return self.inner.bandwidth

    @property
    def largest_norm(self) -> float:  # type: ignore[override]
        """That of the kernel map."""
        return self.inner.largest_norm

    def features(self, means: np.ndarray) -> np.ndarray:
        """Those of the kernel map."""
        return self.inner.features(means)

    def self_products(self, means: np.ndarray) -> np.ndarray:
        """Those of the kernel map."""
        return self.inner.self_products(means)

    def _sums(self, log_posterior: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
        x = outputs(log_posterior, self.output)
        return self.inner.sums(x, groups, n_groups, **self.inner.parameters)


@dataclass(frozen=True)
class _Outputs(Source):
    """A source whose rows are what classifiers say of them, each held out."""

    of: Source
    fits: CrossFit
    output: str

    @property
    def n_columns(self) -> int:
        """One output a label."""
        return self.fits.n_labels

    def draw(self, n: np.ndarray) -> dict[str, np.ndarray]:
        """Outputs of the rows that the source draws."""
        drawn = self.of.draw(n)
        return {**drawn, "x": outputs(self.fits.log_posterior_drawn(drawn), self.output)}
