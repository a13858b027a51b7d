"""What is learned from unlabelled samples: feature sums by sample, in random folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.blocks import labels, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.folds import Folds, divide
from scaleshift.blocks.states import Finish
from scaleshift.blocks.statistics import Layout
from scaleshift.errors import DataError
from scaleshift.quantify.features import Embedding
from scaleshift.quantify.matching import Matcher
from scaleshift.quantify.source import check_size

FEWER = " fewer samples at a time,"


@dataclass(frozen=True, repr=False)
class SampleStates:
    """Feature sums of unlabelled samples; additive over any parts of the data.

    What `DFM.embed` gives and `DFM.predict` takes. States of later cells are added with ``+``: those of a
    sample that both have become one.
    """

    samples: np.ndarray  # (n_samples,) names
    sums: np.ndarray  # (n_samples, n_folds, width)
    counts: np.ndarray  # (n_samples, n_folds) rows that are finite
    n_invalid: np.ndarray  # (n_samples,) rows that are not
    embedding: Embedding  # the map that made them

    def __repr__(self) -> str:
        n_samples, n_folds, width = self.sums.shape
        n_cells = int(self.counts.sum())
        return f"SampleStates({n_samples} samples, {n_cells} cells, {n_folds} folds x {width} sums)"

    def __add__(self, other: SampleStates) -> SampleStates:
        """The states of both, samples in natural order where these differ."""
        if not isinstance(other, SampleStates):
            return NotImplemented
        if not self.embedding.same_as(other.embedding) or self.counts.shape[1:] != other.counts.shape[1:]:
            raise DataError(
                "the states come from different feature maps or numbers of folds: embed both with one model"
            )
        if self.samples.dtype.kind != other.samples.dtype.kind:
            raise DataError(
                f"sample names are {self.samples.dtype.name} and {other.samples.dtype.name}: convert one "
                "of them"
            )
        same = np.array_equal(self.samples, other.samples)
        names = self.samples if same else labels.order(np.concatenate([self.samples, other.samples]))
        total = {
            name: np.zeros((len(names), *getattr(self, name).shape[1:]))
            for name in ("sums", "counts", "n_invalid")
        }
        for state in (self, other):
            place = np.array([np.flatnonzero(names == name)[0] for name in state.samples], np.int64)
            for name, values in total.items():
                values[place] += getattr(state, name)
        return SampleStates(names, **total, embedding=self.embedding)

    def answers(self, matcher: Matcher) -> dict[str, np.ndarray]:
        """What the matcher says of each sample; "key" are the positions of those that have rows."""
        if not self.embedding.same_as(matcher.embedding):
            raise DataError("the states were embedded by another feature map: embed them with this model")
        states = {"sums": self.sums, "counts": self.counts, "n_invalid": self.n_invalid}
        return {"key": np.arange(len(self.samples)), **matcher(states)}

    def save(self, path: Any) -> None:
        """Save as a Zarr store, without the cells; `scaleshift.load` reads it."""
        from scaleshift import persistence

        persistence.save(self, path)


def foreign_codes(rows: Rows, known: np.ndarray) -> np.ndarray:
    """Codes of the labels that a cells dataset of targets names and the source does not have."""
    if "label" not in rows.columns:
        return np.array([], np.int64)
    named = rows.categories("label")
    foreign = np.flatnonzero(~np.isin(named, known))
    if foreign.size and named.dtype.kind != known.dtype.kind:
        raise DataError(
            f"labels of the targets are {named.dtype.name}, of the source {known.dtype.name}: "
            "convert them to one type, or pass the targets without labels"
        )
    return foreign


def embed_samples(rows: Rows, embedding: Embedding, n_folds: int, seed: int) -> SampleStates:
    """State of every sample of the column "sample": one pass."""
    names = rows.categories("sample")
    layout, parameters = _pass(rows, embedding, n_folds, seed, np.array([], np.int64))
    check_size(8 * len(names) * n_folds * embedding.width, f"{len(names)} samples", embedding, FEWER)
    found = passes.total(sample_sums, rows.only("sample"), layout, keyed="sample", **parameters)
    dense = {name: np.zeros((len(names), *shape)) for name, shape in layout.items() if name != "n_foreign"}
    for name, values in dense.items():
        values[found["key"]] = found[name]
    return SampleStates(names, **dense, embedding=embedding)


def answer_samples(
    rows: Rows, embedding: Embedding, n_folds: int, seed: int, foreign: np.ndarray, matcher: Matcher
) -> dict[str, np.ndarray]:
    """What the matcher says of every sample, computed on the workers: one pass.

    `foreign` are the codes of labels that the source lacks: their rows are counted by sample, in the entry
    "n_foreign" for all samples. The labels are read only where there are any. Samples without rows have no
    answer; "key" are the positions of the others.
    """
    read, layout, finish, parameters = answer_pass(rows, embedding, n_folds, seed, foreign, matcher)
    found = passes.total(sample_sums, read, layout, keyed="sample", finish=finish, **parameters)
    n_foreign = np.zeros((len(rows.categories("sample")), len(foreign)))
    n_foreign[found["key"]] = found["n_foreign"]
    return {**found, "n_foreign": n_foreign}


def answer_pass(
    rows: Rows, embedding: Embedding, n_folds: int, seed: int, foreign: np.ndarray, matcher: Matcher
) -> tuple[Rows, Layout, Finish, dict[str, Any]]:
    """What that pass reads, the layout of its state, how it finishes, and the parameters of `sample_sums`."""
    layout, parameters = _pass(rows, embedding, n_folds, seed, foreign)
    finish = Finish(
        matcher,
        {**matcher.answer, "n_foreign": (len(foreign),)},
        passes.counts(rows, "sample") if parameters["folds"] is None else parameters["folds"].n_rows,
    )
    read = rows.only("sample", *(["label"] if foreign.size else []))
    return read, layout, finish, parameters


def _pass(
    rows: Rows, embedding: Embedding, n_folds: int, seed: int, foreign: np.ndarray
) -> tuple[Layout, dict[str, Any]]:
    layout = {
        "sums": (n_folds, embedding.width),
        "counts": (n_folds,),
        "n_invalid": (),
        "n_foreign": (len(foreign),),
    }
    parameters = {
        "folds": divide(rows, "sample", n_folds, seed, "target") if n_folds > 1 else None,
        "n_folds": n_folds,
        "foreign": foreign,
        "embedding": embedding,
    }
    return layout, parameters


def sample_sums(
    block: Block,
    *,
    keys: np.ndarray,
    folds: Folds | None,
    n_folds: int,
    foreign: np.ndarray,
    embedding: Embedding,
) -> dict[str, np.ndarray]:
    """Kernel of the pass: sums by (sample, fold), and what the flags need."""
    sample, n = block.columns["sample"], len(keys)
    check_size(8 * n * n_folds * embedding.width, f"{n} samples in one block", embedding, FEWER)
    group = sample.astype(np.int64) * n_folds
    if folds is not None:
        group += folds(block.start, keys[sample])
    group[~block.valid] = -1
    sums = embedding.target_sums(block, group, n * n_folds)
    counts = np.bincount(group[group >= 0], minlength=n * n_folds)
    n_foreign = [np.bincount(sample[block.columns["label"] == code], minlength=n) for code in foreign]
    return {
        "sums": sums.reshape(n, n_folds, embedding.width),
        "counts": counts.reshape(n, n_folds),
        "n_invalid": np.bincount(sample[~block.valid], minlength=n),
        "n_foreign": np.column_stack([np.zeros((n, 0)), *n_foreign]),
    }
