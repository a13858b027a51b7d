"""Which rows stand for all?  A sample in which rare errors are not rare; it is fitted in memory."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from scaleshift.blocks import noise, passes
from scaleshift.blocks.block import Block, Kept
from scaleshift.blocks.rows import as_rows
from scaleshift.kernels.mixture import responsibility_sums
from scaleshift.slices.expectation import Fit, Settings, climb, renewed
from scaleshift.slices.mixture import maximise
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import outcomes_of, strata_of
from scaleshift.slices.survey import MANY_LABELS, Survey

ROWS = 8_192
LOSSES = ("label", "extra", "weight", "held")  # columns that say what went wrong, and in which stratum
N_RESTARTS = 4
# Restarts cluster embeddings alone, or with outcomes as further columns, in units of the embeddings' spread.
OUTCOME_SCALES = (0.0, 1.0, 0.0, 1.0)
KMEANS_STEPS = 20


@dataclass(frozen=True)
class Sample:
    """Some rows of the kept blocks as a block of their own."""

    block: Block  # its weights are those of all rows that a row stands for
    row: np.ndarray  # (n,) absolute numbers

    @property
    def weight(self) -> np.ndarray:
        """(n,) what each row stands for."""
        return self.block.columns["weight"]

    @property
    def kept(self) -> Kept:
        """As a pass takes it."""
        return Kept(self.block, as_rows(self.block.x), held=True)


def draw(
    kept: Kept,
    kind: Kind,
    found: Survey,
    seed: int,
    n_rows: int = ROWS,
    names: tuple[str, ...] | None = None,
) -> Sample:
    """Draw about `n_rows` rows of the fit, half of them in equal parts from the strata: one pass.

    All rows where there are no more. A row weighs what it stands for. It has the columns `names`, those of
    `LOSSES` among them: by default those that a mixture needs.
    """
    names = columns_of(kind) if names is None else names
    size = found.strata
    n = size.sum()
    wanted = np.ceil(n_rows / 2 * (size / max(n, 1) + (size > 0) / max((size > 0).sum(), 1))).astype(np.int64)
    wanted = size if n <= n_rows else np.minimum(size, wanted)
    by = functools.partial(strata_of, kind=kind)
    drawn = passes.sample(kept, wanted, by, seed=seed, stream="slices", columns=names)
    order = np.argsort(drawn["row"])
    drawn = {name: values[order] for name, values in drawn.items()}
    columns = {name: drawn[name] for name in names}
    drawn_of = np.bincount(drawn["code"], minlength=len(size))
    # Rows held out are in the survey's counts but not in the sample: a share that is the same in all strata.
    each = size / np.maximum(drawn_of, 1)
    columns["weight"] = (columns["weight"] * each[drawn["code"]]).astype(columns["weight"].dtype)
    return Sample(
        Block(drawn["x"], columns, 0, np.ones(len(order), bool), np.zeros(drawn["x"].shape[1])), drawn["row"]
    )


def columns_of(kind: Kind) -> tuple[str, ...]:
    """Columns of prepared blocks that a mixture's sample has."""
    return (*LOSSES, *(("prediction",) if kind.has_errors else ()))


def fit_sample(
    sample: Sample, kind: Kind, sizes: list[int], covariance_type: str, settings: Settings, seed: int
) -> list[Fit]:
    """The best of several restarts for each number of components, as starts for all rows.

    Restarts of one size climb in the same calls.
    """
    best = []
    for size in sizes:
        starts = [
            _clustered(sample, kind, size, covariance_type, settings.reg_covar, scale, seed + number)
            for number, scale in enumerate(OUTCOME_SCALES)
        ]
        fits = climb(sample.kept, kind, starts, settings)
        best.append(renewed(max(fits, key=lambda fit: fit.lower_bound)))
    return best


def _clustered(
    sample: Sample, kind: Kind, size: int, covariance_type: str, reg_covar: float, scale: float, seed: int
) -> Fit:
    """The mixture that k-means clusters make."""
    block = sample.block
    generator = noise.generator(seed, "restart")
    features = [block.x.astype(np.float64)]
    if scale:
        spread = scale * (np.sqrt(features[0].var(axis=0).sum()) or 1.0)  # of equal embeddings any will do
        features += [spread * part for part in _outcome_features(block, kind)]
    x, random_state = np.concatenate(features, axis=1), int(generator.integers(2**31))
    found = clustered(x, sample.weight, size, max_iter=KMEANS_STEPS, random_state=random_state)
    one_hot = (found.labels_[:, None] == np.arange(size)).astype(np.float64)
    sums = responsibility_sums(block.x, outcomes_of(block, kind), one_hot, covariance_type)
    return Fit(maximise(sums, covariance_type, [size], reg_covar)[0])


def clustered(x: np.ndarray, weight: np.ndarray, size: int, **parameters: Any) -> KMeans:
    """Clusters of rows; some are empty where fewer rows differ, which is no reason to warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        return KMeans(size, n_init=1, **parameters).fit(x, sample_weight=weight)


def _outcome_features(block: Block, kind: Kind) -> list[np.ndarray]:
    """Labels and predictions as columns; of many labels the errors alone."""
    if kind.n_labels > MANY_LABELS:
        return [block.columns["extra"][:, :1]]
    labels = (block.columns["label"][:, None] == np.arange(kind.n_labels)).astype(np.float64)
    return [labels, *([block.columns["prediction"]] if "prediction" in block.columns else [])]
