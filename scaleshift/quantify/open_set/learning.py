"""What is learned from a source?  Everything from one draw of bounded size, but for the counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from scaleshift.blocks import blas
from scaleshift.blocks.invalid import NO_SOURCE
from scaleshift.errors import DataError
from scaleshift.quantify.classifier.logistic import (
    Logistic,
    check_range,
    default_classifier,
    mean_logistic,
    of_pipeline,
)
from scaleshift.quantify.classifier.models import Model, fitted
from scaleshift.quantify.open_set.landmarks import Landmarks, spread
from scaleshift.quantify.open_set.profile import Profile, profile
from scaleshift.quantify.open_set.scoring import Scorer
from scaleshift.quantify.open_set.strata import Strata, allocation
from scaleshift.quantify.prototypes import Prototypes, learn_prototypes

MAX_TRAINING = 20_000  # rows that the classifiers learn from
SMOOTH = 1_000  # rows at which C = 1
MAX_OF_CLASS = 2_000  # posteriors that the prototypes are learned from


@dataclass(frozen=True)
class Learned:
    """What the draw tells."""

    strata: Strata
    scorer: Scorer
    profile: Profile
    prototypes: Prototypes

    @property
    def one_sample(self) -> bool:
        """Whether the source is one labelled sample, which cannot tell how samples differ."""
        return int(self.strata.part_of.max()) == 0


@dataclass(frozen=True)
class Scored:
    """The drawn rows, as held out: none has been learned from where it is judged."""

    z: np.ndarray  # (n, n_markers)
    code: np.ndarray  # (n,) class
    part: np.ndarray  # (n,)
    weight: np.ndarray  # (n,) cells that it stands for
    predicted: np.ndarray  # (n,)
    novelty: np.ndarray  # (n,)
    posterior: np.ndarray  # (n, n_classes)


def learn(
    drawn: dict[str, np.ndarray],
    counts: np.ndarray,
    strata: Strata,
    classifier: Any,
    n_landmarks: int,
    seed: int,
) -> tuple[Learned, Scored]:
    """Learn from rows drawn by stratum.

    Parameters
    ----------
    drawn : dict
        What `passes.sample` gave.
    counts : numpy.ndarray, shape (n_strata,)
        Rows of each stratum.
    strata : Strata
    classifier : None or scikit-learn style classifier
    n_landmarks : int
    seed : int
    """
    if not len(drawn["code"]):
        raise DataError(NO_SOURCE)
    stratum = drawn["code"]
    code = stratum // (int(strata.part_of.max()) + 1)
    part = strata.parts_drawn(drawn)
    n_drawn = np.bincount(stratum, minlength=len(counts))
    weight = (counts / np.maximum(n_drawn, 1))[stratum]
    x = drawn["x"].astype(np.float64)
    check_range(x)
    location = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - location) ** 2, axis=0, weights=weight))
    scale[~(scale > 0)] = 1
    z = (x - location) / scale
    with blas.one_thread():
        models, log_prior = _cross_fitted(z, code, stratum, part, strata, classifier)
    spreads = spread(z, code, weight, strata.n_classes)
    chosen = first_of(code, -(-n_landmarks // strata.n_classes), drawn["key"])
    landmarks = Landmarks(
        z[chosen], spreads[code[chosen]], part[chosen], drawn["row"][chosen], strata.by_sample
    )
    scorer = Scorer(location, scale, models, _together(models), log_prior, landmarks)
    logits = scorer.logits_held_out(z, part)
    predicted, posterior = logits.argmax(axis=1), scorer.posteriors(logits, part)
    novelty = landmarks.held_out(z, part, drawn["row"])
    usual = profile(z, predicted, novelty, weight, spreads, strata.unknown)
    balanced = first_of(code, MAX_OF_CLASS, drawn["key"])
    learned = Learned(strata, scorer, usual, learn_prototypes(posterior[balanced], code[balanced], seed))
    return learned, Scored(z, code, part, weight, predicted, novelty, posterior)


def _cross_fitted(
    z: np.ndarray, code: np.ndarray, stratum: np.ndarray, part: np.ndarray, strata: Strata, classifier: Any
) -> tuple[tuple[Any, ...], np.ndarray]:
    """A classifier without each part, and logarithms of the class shares that it learned from."""
    rank = np.arange(len(z)) - np.searchsorted(stratum, stratum)  # strata ascend, keys ascend within one
    training = rank < allocation(np.bincount(stratum), MAX_TRAINING)[stratum]
    models, shares = [], []
    for number in range(strata.n_parts):
        rows = training & (part != number)
        models.append(_fitted(classifier, z[rows], code[rows]))
        shares.append(np.bincount(code[rows], minlength=strata.n_classes) / max(rows.sum(), 1))
    return tuple(models), np.log(np.maximum(shares, 1e-12))


def _fitted(classifier: Any, z: np.ndarray, code: np.ndarray) -> Model:
    """The default one is as smooth as one of 1 000 rows with C = 1, but does not depend on which 1 000.

    Surer classifiers extrapolate wildly where a batch has moved.
    """
    if classifier is not None or code.min() == code.max():
        return fitted(classifier, z, code)
    pipeline = default_classifier(z.shape[1])
    pipeline.set_params(logisticregression__C=min(1.0, SMOOTH / len(z)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nothing that a user could mend
        return of_pipeline(pipeline.fit(z, code))


def _together(models: tuple[Model, ...]) -> tuple[Model, ...]:
    """One model for the mean of all, where they are logistic ones of the same classes."""
    logistic = [model for model in models if isinstance(model, Logistic)]
    same = all(np.array_equal(model.classes, models[0].classes) for model in models)
    return (mean_logistic(logistic),) if same and len(logistic) == len(models) else models


def first_of(code: np.ndarray, n: int, key: np.ndarray) -> np.ndarray:
    """Positions of the `n` smallest keys of each code.

    Examples
    --------
    >>> first_of(np.array([0, 0, 1]), 1, np.array([7, 3, 9])).tolist()
    [1, 2]
    """
    order = np.lexsort((key, code))
    rank = np.arange(len(order)) - np.searchsorted(code[order], code[order])
    return order[rank < n]
