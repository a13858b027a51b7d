"""What do the rows of each slice have in common?  Counts, errors, features, typical rows: all in one pass.

Who belongs is told by the embeddings alone: slices that labels and predictions had a say in would be full of
errors by construction. Everything is summed for two parts of the rows, those that the fit of the slices saw
and those that were held out of it, so that only the latter need judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.kernels.reference import to_numpy
from scaleshift.slices.outcomes import Classification, Found, Kind
from scaleshift.slices.prepared import Preparation, held_out
from scaleshift.slices.survey import checked_weight
from scaleshift.slices.tiles import tiles

if TYPE_CHECKING:
    from scaleshift.slices.base import Slices

N_EXEMPLARS = 10
MOST_LABELS = 30  # of a confusion matrix
N_CHECKED = 8  # columns of the embeddings that tell these rows from others

# What is summed of each row, weighted (w) or counted (n): where an error, or a loss, is known.
TALLIES = (
    *("n", "w", "ww", "error_n", "error_w", "error_ww", "errors_n", "errors_w"),
    *("loss_n", "loss_w", "losses_n", "losses_w", "squares_n"),
)


class Features(NamedTuple):
    """Numbers of each row that slices are told apart by, in place of the embeddings."""

    names: list[str]
    values: Any  # (n, m) numpy or Dask
    shift: np.ndarray  # (m,) near their means: squares are of what is left


@dataclass(frozen=True)
class SliceProfile:
    """Sums over the rows of S slices; the last two rows of each table are those of no slice, and all."""

    tallies: np.ndarray  # (2, S + 2, len(TALLIES)): seen by the fit, held out of it
    confusion: np.ndarray | None  # (2, S + 2, C, C) weighted rows by label and predicted label
    embedding: np.ndarray  # (3, S + 2, d) weights, weighted sums and squares about `centre`
    centre: np.ndarray  # (d,)
    features: np.ndarray | None  # (3, S + 2, m) the same of given features, about `shift`
    shift: np.ndarray  # (m,)
    overlap: np.ndarray  # (S, S) weighted rows that belong to both
    exemplar: np.ndarray  # (S, N_EXEMPLARS) absolute numbers of the most typical members, -1 where fewer
    check: np.ndarray  # (2, 1 + 2 * N_CHECKED): rows, sums and squares of columns, unweighted

    def tally(self, name: str, parts: slice = slice(None)) -> np.ndarray:
        """Sum of one kind over some parts of the rows, (S + 2,)."""
        return self.tallies[parts, :, TALLIES.index(name)].sum(axis=0)

    @property
    def n_slices(self) -> int:
        """S."""
        return len(self.overlap)


def profile(
    rows: Rows, slices: Slices, preparation: Preparation, features: Features | None = None
) -> SliceProfile:
    """Pass over raw rows once.

    Parameters
    ----------
    rows : Rows
        As the kind's `rows` gives them; with a column "features" where `features` are given.
    slices : Slices
    preparation : Preparation
    features : Features, optional
    """
    shift = None if features is None else features.shift
    state = passes.total(
        profile_leaf, rows, None, merge=merge_profiles, slices=slices, preparation=preparation, shift=shift
    )
    del state["typicality"]
    fields: dict[str, Any] = {"confusion": None, "features": None, **state}
    fields["shift"] = np.empty(0) if shift is None else shift
    return SliceProfile(centre=preparation.projection.mean, **fields)


def profile_leaf(
    block: Block, slices: Slices, preparation: Preparation, shift: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Sums of one raw block, some rows at a time."""
    total: dict[str, np.ndarray] = {}
    everything = _facts(block, preparation)
    for rows in tiles(len(block.x)):
        found = _sums(everything.rows(rows), block.start + rows.start, slices, preparation, shift)
        total = found if not total else merge_profiles(total, found)
    return total


def merge_profiles(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Sums of both, and the most typical rows of both."""
    merged = {name: a[name] + b[name] for name in a if name not in ("typicality", "exemplar")}
    typicality = np.concatenate([a["typicality"], b["typicality"]], axis=1)
    exemplar = np.concatenate([a["exemplar"], b["exemplar"]], axis=1)
    return {**merged, **_most_typical(typicality, exemplar)}


class _Facts(NamedTuple):
    """What is known of some rows."""

    x: np.ndarray  # (n, d) raw
    weight: np.ndarray  # (n,)
    held: np.ndarray  # (n,) bool
    valid: np.ndarray  # (n,) bool
    outcome: Found
    features: np.ndarray | None  # (n, m)

    def rows(self, chosen: slice) -> _Facts:
        """The same of some rows."""
        outcome = Found(*(None if part is None else part[chosen] for part in self.outcome))
        features = None if self.features is None else self.features[chosen]
        x, weight, held, valid = (part[chosen] for part in self[:4])
        return _Facts(x, weight, held, valid, outcome, features)


def _facts(block: Block, preparation: Preparation) -> _Facts:
    return _Facts(
        to_numpy(block.x),
        checked_weight(block),
        held_out(block, preparation.seed, preparation.holdout),
        block.valid,
        preparation.kind.outcome(block),
        block.columns.get("features"),
    )


def _sums(
    facts: _Facts, start: int, slices: Slices, preparation: Preparation, shift: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Sums of some consecutive rows, the first of which has the number `start`."""
    x = preparation.projection(facts.x, np.dtype(preparation.dtype))
    members = slices.members(x) & (facts.weight > 0)[:, None]
    counted = facts.weight > 0
    belongs = np.column_stack([members, counted & ~members.any(axis=1), counted]).astype(np.float64)
    weighted = belongs * facts.weight[:, None]
    parts = [~facts.held, facts.held]
    columns = _columns(facts)
    centre = preparation.projection.mean
    sums = {
        "tallies": np.stack([belongs[part].T @ columns[part] for part in parts]),
        "embedding": _moments(facts.x, weighted, centre),
        "overlap": members.T.astype(np.float64) @ weighted[:, :-2],
        "check": np.stack([_check(facts.x[part & facts.valid], centre) for part in parts]),
        **_exemplars(x, members, start, slices),
    }
    confusion = _confusion(facts, weighted, preparation.kind)
    if confusion is not None:
        sums["confusion"] = confusion
    if facts.features is not None and shift is not None:
        sums["features"] = _moments(facts.features, weighted, shift)
    return sums


def _columns(facts: _Facts) -> np.ndarray:
    """What is tallied of each row, (n, len(TALLIES))."""
    w, one, nothing = facts.weight, np.ones(len(facts.weight)), np.full(len(facts.weight), np.nan)
    error = nothing if facts.outcome.error is None else facts.outcome.error
    loss = nothing if facts.outcome.loss is None else facts.outcome.loss
    judged, lost = np.isfinite(error), np.isfinite(loss)
    error, loss = np.where(judged, error, 0.0), np.where(lost, loss, 0.0)
    counts = [one, w, w * w, judged, judged * w, judged * w * w, error, error * w]
    return np.column_stack([*counts, lost, lost * w, loss, loss * w, loss * loss])


def _moments(values: np.ndarray, weighted: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Weights, weighted sums and squares of columns, where they are known: (3, S + 2, m)."""
    known = np.isfinite(values)
    centred = np.where(known, values, 0.0).astype(np.float64) - shift
    centred[~known] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused where it is told of
        return np.stack(
            [weighted.T @ part for part in (known.astype(np.float64), centred, centred * centred)]
        )


def _check(x: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Numbers that tell these rows from others, (1 + 2 * N_CHECKED,)."""
    found = np.zeros(1 + 2 * N_CHECKED)
    some = x[:, :N_CHECKED].astype(np.float64) - centre[:N_CHECKED]
    found[0] = len(some)
    found[1 : 1 + some.shape[1]] = some.sum(axis=0)
    found[1 + N_CHECKED : 1 + N_CHECKED + some.shape[1]] = (some * some).sum(axis=0)
    return found


def _confusion(facts: _Facts, weighted: np.ndarray, kind: Kind) -> np.ndarray | None:
    """Weighted rows by part, slice, label and predicted label."""
    if not has_confusion(kind):
        return None
    n = kind.n_labels
    table = np.zeros((2, weighted.shape[1], n, n))
    label, prediction = facts.outcome.label, facts.outcome.prediction
    if label is None or prediction is None:
        return table
    for part in (0, 1):
        chosen = (label >= 0) & (facts.held == bool(part))
        cells = label[chosen].astype(np.int64) * n + prediction[chosen].argmax(axis=1)
        for number, w in enumerate(weighted[chosen].T):
            table[part, number] = np.bincount(cells, w, minlength=n * n).reshape(n, n)
    return table


def has_confusion(kind: Kind) -> bool:
    """Whether labels are told from predicted labels, and few enough to show."""
    return isinstance(kind, Classification) and kind.has_errors and kind.n_labels <= MOST_LABELS


def _exemplars(x: np.ndarray, members: np.ndarray, start: int, slices: Slices) -> dict[str, np.ndarray]:
    """The most typical of some rows: (S, N_EXEMPLARS) typicality and absolute numbers."""
    some = np.flatnonzero(members.any(axis=1))
    typicality = np.full((members.shape[1], N_EXEMPLARS + len(some)), -np.inf)
    row = np.full(typicality.shape, -1, np.int64)
    if len(some):  # behind places for slices without members
        inside = members[some].T
        typicality[:, N_EXEMPLARS:] = np.where(inside, slices.typicality(x[some]).T, -np.inf)
        row[:, N_EXEMPLARS:] = np.where(inside, start + some, -1)
    return _most_typical(typicality, row)


def _most_typical(typicality: np.ndarray, row: np.ndarray) -> dict[str, np.ndarray]:
    """The first N_EXEMPLARS of each slice, of equals those with the lowest number."""
    order = np.lexsort((row, -typicality, row < 0), axis=-1)[:, :N_EXEMPLARS]
    return {
        "typicality": np.take_along_axis(typicality, order, axis=1),
        "exemplar": np.take_along_axis(row, order, axis=1),
    }


# Whose rows are these? ---------------------------------------------------------------------------------


def same_rows(found: SliceProfile, fitted: SliceProfile) -> str:
    """Whether rows are those of the fit: "others", "same", or "shuffled" where their order is another.

    Which rows were held out of the fit is known by their numbers alone.
    """
    if _alike(found.check.sum(axis=0), fitted.check.sum(axis=0), fitted.centre):
        return "same" if _alike(found.check[1], fitted.check[1], fitted.centre) else "shuffled"
    return "others"


def _alike(a: np.ndarray, b: np.ndarray, centre: np.ndarray) -> bool:
    """Whether rows are as many, and the means of their columns equal but for rounding."""
    n = b[0]
    if a[0] != n:
        return False
    if not n:
        return True
    spread = np.sqrt(b[1 + N_CHECKED :] / n)
    size = np.zeros(N_CHECKED)
    size[: len(centre)] = np.abs(centre[:N_CHECKED])
    return bool((np.abs(a - b)[1 : 1 + N_CHECKED] / n <= 1e-6 * spread + 1e-7 * size).all())
