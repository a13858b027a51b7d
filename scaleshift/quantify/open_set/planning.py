"""What would the procedure ask of the data?  Its passes, told to a planner.

A fit is rehearsed on made-up rows near those of one block: the shapes of what is learned make the cost.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

import numpy as np

from scaleshift.blocks import blas
from scaleshift.blocks.block import Rows
from scaleshift.blocks.fitting import fewer_of
from scaleshift.blocks.folds import divide
from scaleshift.blocks.plan import Plan
from scaleshift.blocks.planner import Planner
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.quantify.open_set import passing
from scaleshift.quantify.open_set.alignment import RESERVOIR
from scaleshift.quantify.open_set.counts import Alignments, sample_counts, source_counts
from scaleshift.quantify.open_set.learning import learn
from scaleshift.quantify.open_set.selection import select
from scaleshift.quantify.open_set.strata import allocation, strata
from scaleshift.quantify.source import N_FOLDS, StateSizeError
from scaleshift.quantify.targets import foreign_codes

if TYPE_CHECKING:
    from scaleshift.quantify.open_set.open_set import OpenSetQuantifier

WAY_OUT = "take fewer samples at a time, or n_bootstrap=0, which makes no folds; or give workers more memory"


def plan_fit(model: OpenSetQuantifier, rows: Rows) -> Plan:
    """What ``model.fit`` would do to these rows; as there, step by step."""
    planner = Planner(f"{type(model).__name__}.fit", rows, WAY_OUT)
    found, counts = strata(rows, model.unknown_class, seed=0)
    planner.tally("cells by sample and label", "label")
    n = allocation(counts)
    planner.sample("source cells drawn", rows.only(*passing.COLUMNS), n, found)
    start = time.process_time()
    learned, scored = learn(_made_up(planner, rows, n), counts, found, model.classifier, model.n_landmarks, 0)
    with blas.one_thread():
        select(learned, scored, 0)
    planner.driver_seconds += time.process_time() - start
    layout, parameters = passing.counting(learned, N_FOLDS if model.n_bootstrap else 1, 0)
    planner.total("source cells counted", rows.only(*passing.COLUMNS), source_counts, layout, **parameters)
    return planner.plan()


def plan_predict(model: OpenSetQuantifier, rows: Rows) -> Plan:
    """What ``model.predict`` would do to these rows; as there, step by step."""
    planner = Planner(f"{type(model).__name__}.predict", rows, WAY_OUT)
    learned, answerer = model.learned_, model._answerer()
    planner.fewer = functools.partial(fewer_of, what="samples", n=len(rows.categories("sample")))
    planner.tally("folds of the samples", "sample")
    folds = divide(rows, "sample", len(answerer.counts.predicted), 0, "target")
    n = np.full(len(folds.n_rows), RESERVOIR)
    drawing = passing.aligning(learned, folds.n_rows)
    planner.sample("cells drawn for shifts", rows.only("sample"), n, "sample", finish=drawing)
    nothing = {name: np.zeros((len(folds.n_rows), *shape)) for name, shape in drawing.layout.items()}
    foreign = foreign_codes(rows, model.source_labels_)
    read, layout, finish, parameters = passing.answering(
        rows, learned, answerer, foreign, Alignments(**nothing), folds
    )
    try:
        planner.total(
            "cells counted", read, sample_counts, layout, keyed="sample", finish=finish, **parameters
        )
    except StateSizeError as error:
        planner.problems.append(str(error))
    return planner.plan()


def _made_up(planner: Planner, rows: Rows, n: np.ndarray) -> dict[str, np.ndarray]:
    """As many rows as would be drawn, near those of one block, of whatever class."""
    x = to_numpy(planner.block.x(rows).result)
    like = x[np.isfinite(x).all(axis=1)][:10_000].astype(np.float64)
    if not len(like):
        raise DataError(
            "no row of the block that was read is finite: mend NaN and infinite values, or explain other rows"
        )
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(len(n)), n)
    scale = like.std(axis=0)
    chosen = like[rng.integers(len(like), size=len(code))]
    made = chosen + 0.01 * np.where(scale > 0, scale, 1) * rng.standard_normal(chosen.shape)
    order = np.arange(len(code))
    return {"x": made, "code": code, "row": order, "key": order.astype(np.uint64)}
