"""What would a quantifier ask of the data?  The passes of `fit` and `predict`, told to a planner.

A feature map learns from as many made-up rows as it would draw: an embedding's shape makes its cost.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleshift.blocks import blas
from scaleshift.blocks.block import Rows
from scaleshift.blocks.fitting import fewer_of
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import Planner
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.features import ExplicitEmbedding, Source
from scaleshift.quantify.source import N_FOLDS, StateSizeError, label_counts, source_pass, source_sums
from scaleshift.quantify.targets import answer_pass, foreign_codes, sample_sums

if TYPE_CHECKING:
    from scaleshift.quantify.base import Quantifier

WAY_OUT = "take fewer features, or n_bootstrap=0, which makes no folds; or give workers more memory"


@dataclass(frozen=True)
class Rehearsal(Source):
    """A source that notes what is drawn from it, and gives as many made-up rows."""

    like: np.ndarray  # (n, n_markers) rows in whose place and scale they are made up
    drawn: list[np.ndarray] = field(default_factory=list)

    def seed_of(self, random_state: Any) -> int:
        """A seed of its own: a generator that the fit will use must not move."""
        return self.seed

    def draw(self, n: np.ndarray) -> dict[str, np.ndarray]:
        """Rows near those of one block, of whatever class."""
        self.drawn.append(n)
        rng = np.random.default_rng(0)
        code = np.repeat(np.arange(len(n)), n)
        scale = self.like.std(axis=0, dtype=np.float64)
        chosen = self.like[rng.integers(len(self.like), size=len(code))]
        # No two alike, or a map would learn fewer landmarks than from real rows.
        x = chosen + 0.01 * np.where(scale > 0, scale, 1) * rng.standard_normal(chosen.shape)
        return {"x": x.astype(np.result_type(self.like, np.float32)), "code": code, "row": code, "key": code}


def plan_fit(model: Quantifier, rows: Rows) -> Plan:
    """What ``model.fit`` would do to these rows; as there, step by step."""
    planner = Planner(f"{type(model).__name__}.fit", rows, WAY_OUT)
    counts = label_counts(rows)
    if rows.columns["label"].counts is None:
        planner.tally("labels counted", "label")
    source = _rehearsal(model, rows, counts, planner)
    with blas.one_thread():
        start = time.process_time()
        embedding = model._feature_map().learn(source)
        planner.driver_seconds += time.process_time() - start
    for n in source.drawn:
        planner.sample("labelled rows drawn", rows.only("label"), n, "label")
    planner.fewer = functools.partial(fewer_of, what="features", n=embedding.width)
    n_folds = N_FOLDS if model.n_bootstrap and isinstance(embedding, ExplicitEmbedding) else 1
    try:
        read, layout, parameters = source_pass(rows, embedding, n_folds, source.seed)
        if n_folds > 1:
            planner.tally("folds of the labels", "label")
        planner.total("class embeddings", read, source_sums, layout, **parameters)
    except StateSizeError as error:
        planner.problems.append(str(error))
    return planner.plan()


def plan_predict(model: Quantifier, rows: Rows) -> Plan:
    """What ``model.predict`` would do to these rows; as there, step by step."""
    planner = Planner(f"{type(model).__name__}.predict", rows, WAY_OUT)
    start = time.process_time()
    matcher = model._matcher()
    planner.driver_seconds += time.process_time() - start
    planner.fewer = functools.partial(fewer_of, what="features", n=model.embedding_.width)
    n_folds = model.source_.counts.shape[1]
    if n_folds > 1:
        planner.tally("folds of the samples", "sample")
    elif rows.columns["sample"].counts is None:
        planner.tally("samples counted", "sample")
    foreign = foreign_codes(rows, model.labels_)
    try:
        read, layout, finish, parameters = answer_pass(
            rows, model.embedding_, n_folds, model.seed_, foreign, matcher
        )
        planner.total(
            "sample embeddings", read, sample_sums, layout, keyed="sample", finish=finish, **parameters
        )
    except StateSizeError as error:
        planner.problems.append(str(error))
    model._plan_more(planner, rows)
    return planner.plan()


def _rehearsal(model: Quantifier, rows: Rows, counts: np.ndarray, planner: Planner) -> Rehearsal:
    x: Any = to_numpy(planner.block.x(rows).result)
    like = x[np.isfinite(x).all(axis=1)][:10_000]
    if not len(like):
        raise DataError(
            "no row of the block that was read is finite: mend NaN and infinite values, or explain other rows"
        )
    return Rehearsal(rows, counts, model.bandwidth, model.criterion, seed=0, like=like)
