"""Which passes does the procedure take?  Over the source to learn and to count, two over the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Rows
from scaleshift.blocks.folds import divide
from scaleshift.blocks.states import Finish
from scaleshift.blocks.statistics import Layout
from scaleshift.quantify.open_set.alignment import RESERVOIR, Aligner
from scaleshift.quantify.open_set.answers import Answerer, Counts
from scaleshift.quantify.open_set.counts import (
    Alignments,
    sample_counts,
    sample_layout,
    source_counts,
    source_layout,
)
from scaleshift.quantify.open_set.learning import Learned, Scored, learn
from scaleshift.quantify.open_set.strata import allocation, strata

COLUMNS = ("label", "sample")


def learn_source(
    rows: Rows, unknown_class: Any, classifier: Any, n_landmarks: int, seed: int
) -> tuple[Learned, Scored]:
    """Draw rows of every class and labelled sample, and learn from them: one pass."""
    found, counts = strata(rows, unknown_class, seed)
    drawn = passes.sample(rows.only(*COLUMNS), allocation(counts), by=found, seed=seed)
    return learn(drawn, counts, found, classifier, n_landmarks, seed)


def count_source(rows: Rows, learned: Learned, n_folds: int, seed: int) -> tuple[Counts, np.ndarray]:
    """What becomes of all of the source's cells, and how many of each class are not finite: one pass."""
    layout, parameters = counting(learned, n_folds, seed)
    state = passes.total(source_counts, rows.only(*COLUMNS), layout, **parameters)
    return Counts(state["predicted"], state["clear"]), state["n_invalid"]


def counting(learned: Learned, n_folds: int, seed: int) -> tuple[Layout, dict[str, Any]]:
    """Layout and parameters of that pass."""
    parameters = {
        "strata": learned.strata,
        "scorer": learned.scorer,
        "profile": learned.profile,
        "n_folds": n_folds,
        "seed": seed,
    }
    return source_layout(learned.strata.n_classes, n_folds), parameters


def answer_samples(
    rows: Rows, learned: Learned, answerer: Answerer, foreign: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """What is said of every sample, computed on the workers: two passes.

    `foreign` are the codes of labels that the source lacks: their rows are counted by sample, in the entry
    "n_foreign" for all samples. Samples without rows have no answer; "key" are the positions of the others.
    """
    n_folds = len(answerer.counts.predicted)
    folds = divide(rows, "sample", n_folds, seed, "target")
    alignments = align_samples(rows, learned, folds.n_rows, seed)
    n_samples = len(folds.n_rows)
    read, layout, finish, parameters = answering(rows, learned, answerer, foreign, alignments, folds)
    answers = passes.total(sample_counts, read, layout, keyed="sample", finish=finish, **parameters)
    n_foreign = np.zeros((n_samples, len(foreign)))
    n_foreign[answers["key"]] = answers["n_foreign"]
    in_spread = alignments.shift / learned.profile.spread
    return {**answers, "n_foreign": n_foreign, "shift": in_spread[answers["key"]]}


def align_samples(rows: Rows, learned: Learned, n_rows: np.ndarray, seed: int) -> Alignments:
    """Shifts of every sample, of `n_rows` cells each, from draws of their cells: one pass."""
    drawing = aligning(learned, n_rows)
    found = passes.sample(
        rows.only("sample"), RESERVOIR, by="sample", seed=seed, stream="reservoir", finish=drawing
    )
    placed = {name: np.zeros((len(n_rows), *shape)) for name, shape in drawing.layout.items()}
    for name, values in placed.items():
        values[found["key"]] = found[name]
    return Alignments(**placed)


def aligning(learned: Learned, n_rows: np.ndarray) -> Finish:
    """How a draw of a sample's cells becomes its shifts."""
    aligner = Aligner(learned.scorer, learned.profile, recentre=learned.one_sample)
    return Finish(aligner, aligner.layout, n_rows)


def answering(
    rows: Rows, learned: Learned, answerer: Answerer, foreign: np.ndarray, alignments: Alignments, folds: Any
) -> tuple[Rows, Layout, Finish, dict[str, Any]]:
    """What the last pass reads, the layout of its state, how it finishes, and its parameters."""
    n_folds = folds.n_folds
    n_kinds, n_classes = learned.prototypes.posterior.shape
    layout = sample_layout(n_classes, n_kinds, n_folds, len(foreign))
    finish = Finish(answerer, {**answerer.layout, "n_foreign": (len(foreign),)}, folds.n_rows)
    parameters = {
        "scorer": learned.scorer,
        "profile": learned.profile,
        "prototypes": learned.prototypes,
        "alignments": alignments,
        "folds": folds if n_folds > 1 else None,
        "n_folds": n_folds,
        "foreign": foreign,
    }
    return rows.only("sample", *(["label"] if foreign.size else [])), layout, finish, parameters
