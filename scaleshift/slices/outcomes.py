"""What went well or wrong in a row?  Labels and predictions, residuals, or losses, all as one thing.

A mixture sees a label and a prediction; slices are ranked by errors and losses. `Classification` has all of
these. `Regression` and `Losses` put the residual or loss into bins that a sample has made equally full: the
bin is the label, so that components are alike in how wrong the model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.rows import with_numbers
from scaleshift.errors import DataError
from scaleshift.kernels.cpu.judged import judged
from scaleshift.slices import inputs
from scaleshift.slices.inputs import Given

N_BINS = 10  # of losses
SAMPLE = 10_000  # rows whose losses make the bins
SUM_TOLERANCE = 0.01  # of probabilities: those of float16 and rounded ones pass
TINY = 1e-12  # least probability of the true class in a cross-entropy


class Found(NamedTuple):
    """What is known of the rows of one block; None where it is not."""

    label: np.ndarray | None  # (n,) codes, -1 missing
    prediction: np.ndarray | None  # (n, C)
    error: np.ndarray | None  # (n,) 1 where the most probable class is not the label
    loss: np.ndarray | None  # (n,)


@dataclass(frozen=True)
class Classification:
    """Labels against probabilities, or against predicted labels."""

    classes: np.ndarray  # (C,) in their own type; their order is that of the probabilities
    has_errors: bool = True  # False: there are losses, but no predictions

    @property
    def n_labels(self) -> int:
        """Codes that a label can have."""
        return len(self.classes)

    def rows(self, found: Given) -> Rows:
        """Rows with what the block's outcomes are made of."""
        rows = inputs.rows_of(found)
        if found.targets is not None:
            rows = inputs.with_labels(
                rows, "label", inputs.label_column(found.targets, "target", self.classes)
            )
        if found.pred_probs is None:
            return rows
        if are_labels(found.pred_probs, self.classes):
            column = inputs.label_column(found.pred_probs, "prediction", self.classes)
            return inputs.with_labels(rows, "predicted", column)
        return with_numbers(rows, prediction=_probabilities(found.pred_probs, len(self.classes)))

    def outcome(self, block: Block) -> Found:
        """Of the rows of a block; probabilities are checked."""
        label, prediction = block.columns.get("label"), self._prediction(block)
        loss = _given_loss(block)
        if prediction is None:
            return Found(label, None, None, loss)
        error, true, bad = judged(prediction, label, -TINY, SUM_TOLERANCE)
        if bad >= 0:
            raise _no_probabilities(block.start + bad, prediction[bad])
        if label is None:
            return Found(None, prediction, None, loss)
        if loss is None:
            loss = -np.log(np.maximum(true, TINY))
        return Found(label, prediction, error, loss)

    def _prediction(self, block: Block) -> np.ndarray | None:
        """Probabilities (n, C), in the dtype they came in."""
        if "predicted" in block.columns:
            return (block.columns["predicted"][:, None] == np.arange(self.n_labels)).astype(np.float32)
        prediction = block.columns.get("prediction")
        if prediction is None:
            return None
        if prediction.dtype not in (np.float32, np.float64):
            prediction = prediction.astype(np.float32 if prediction.dtype == np.float16 else np.float64)
        if prediction.ndim == 2:
            return prediction
        both = np.empty((len(prediction), 2), prediction.dtype)
        both[:, 0], both[:, 1] = 1 - prediction, prediction
        return both


def _no_probabilities(row: int, values: np.ndarray) -> DataError:
    shown = ", ".join(f"{value:.4g}" for value in values[:5])
    more = ", ..." if len(values) > 5 else ""
    return DataError(
        f"predictions of row {row} are no probabilities: {shown}{more} add up to {values.sum():.4g}; "
        "pass softmax(logits), or predicted labels"
    )


@dataclass(frozen=True)
class Residuals:
    """Numbers against predicted numbers; the residual's sign is kept."""

    edges: np.ndarray  # (n_bins - 1,) of residuals
    has_errors: bool = False

    @property
    def n_labels(self) -> int:
        """Bins."""
        return len(self.edges) + 1

    def rows(self, found: Given) -> Rows:
        """Rows with targets and predictions as numbers."""
        rows = inputs.rows_of(found)
        for name, values in {"target": found.targets, "prediction": found.pred_probs}.items():
            if values is not None:
                rows = with_numbers(rows, **{name: inputs.one_dimensional(values, name)})
        return rows

    def outcome(self, block: Block) -> Found:
        """Residuals in bins, their squares as losses."""
        loss, label = _given_loss(block), None
        residual = residuals(block)
        if residual is not None:
            label = np.where(np.isfinite(residual), np.searchsorted(self.edges, residual), -1)
            loss = residual**2 if loss is None else loss
        return Found(label, None, None, loss)


@dataclass(frozen=True)
class Losses:
    """Losses, whatever they are of."""

    edges: np.ndarray  # (n_bins - 1,) of losses
    has_errors: bool = False

    @property
    def n_labels(self) -> int:
        """Bins."""
        return len(self.edges) + 1

    def rows(self, found: Given) -> Rows:
        """Rows with their losses."""
        return inputs.rows_of(found)

    def outcome(self, block: Block) -> Found:
        """Losses and their bins."""
        loss = _given_loss(block)
        if loss is None:
            return Found(None, None, None, None)
        return Found(np.where(np.isfinite(loss), np.searchsorted(self.edges, loss), -1), None, None, loss)


Kind = Classification | Residuals | Losses


def learn_kind(found: Given) -> Kind:
    """What kind of outcome the caller gave, with its classes or bins.

    Raises
    ------
    DataError
        If targets come without predictions and losses, predictions have another number of columns than there
        are classes, or nothing is given at all.

    Examples
    --------
    >>> X = np.zeros((3, 1))
    >>> learn_kind(Given(X, ["b", "a", "b"], [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]])).classes.tolist()
    ['a', 'b']
    """
    if found.targets is None and found.losses is None:
        raise DataError(
            "nothing says where the model fails: pass targets= and pred_probs=, or losses= (one a row)"
        )
    if found.targets is None:
        return Losses(_edges(found, "loss"))
    if found.pred_probs is None and found.losses is None:
        raise DataError("targets were given without predictions: pass pred_probs=, or losses=")
    if _are_measurements(found.targets, found.pred_probs):
        return Residuals(_edges(found, "residual"))
    column = inputs.label_column(found.targets, "target")
    assert column.categories is not None
    classes = _classes(column.categories, found.pred_probs)
    return Classification(classes, has_errors=found.pred_probs is not None)


def are_labels(predictions: Any, classes: np.ndarray) -> bool:
    """Whether predictions are labels, one a row, rather than probabilities."""
    dtype = getattr(predictions, "dtype", None)
    predictions = predictions if dtype is not None else np.asarray(predictions)
    if getattr(predictions, "ndim", 1) != 1:
        return False
    kind = getattr(predictions.dtype, "kind", "O")
    return kind != "f" or len(classes) > 2


def residuals(block: Block) -> np.ndarray | None:
    """Target minus prediction, (n,)."""
    if "target" not in block.columns or "prediction" not in block.columns:
        return None
    return block.columns["target"].astype(np.float64) - block.columns["prediction"]


def _given_loss(block: Block) -> np.ndarray | None:
    loss = block.columns.get("loss")
    return None if loss is None else loss.astype(np.float64)


def _are_measurements(targets: Any, predictions: Any) -> bool:
    """Whether targets are decimal numbers that numbers were predicted for."""
    for values in (targets, predictions):
        values = values if hasattr(values, "dtype") else np.asarray(values)
        if getattr(values.dtype, "kind", "O") != "f" or getattr(values, "ndim", 1) != 1:
            return False
    if isinstance(getattr(targets, "data", targets), da.Array):
        return True
    numbers = np.asarray(targets, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    return bool((numbers != np.rint(numbers)).any())


def _classes(found: np.ndarray, predictions: Any) -> np.ndarray:
    """All classes: those found, or all that whole numbers and the columns of predictions tell."""
    shape = getattr(predictions, "shape", None) or np.shape(predictions)
    if predictions is None or len(shape) < 2 or shape[1] in (1, len(found)):
        return found
    n = int(shape[1])
    if found.dtype.kind in "iu" and len(found) and found[0] >= 0 and found[-1] < n:
        return np.arange(n, dtype=found.dtype)
    if found.dtype.kind == "b" and n == 2:
        return np.array([False, True])
    raise DataError(
        f"pred_probs has {n} columns, targets have {len(found)} classes ({', '.join(map(str, found[:8]))}"
        f"{', ...' if len(found) > 8 else ''}): pass targets as a pandas Categorical that lists all {n}, in "
        "the order of the columns"
    )


def _probabilities(values: Any, n_classes: int) -> Any:
    """Probabilities of all classes, (n, C), or of the second of two, (n,)."""
    shape = tuple(getattr(values, "shape", None) or np.shape(values))
    if len(shape) == 2 and shape[1] == 1:
        return _probabilities(inputs.one_dimensional(values, "pred_probs"), n_classes)
    if len(shape) == 2 and shape[1] != n_classes:
        raise DataError(f"pred_probs has {shape[1]} columns, there are {n_classes} classes: expected as many")
    if len(shape) == 1 and n_classes != 2:
        raise DataError(
            f"pred_probs has one number a row, the probability of the second of two classes, and there are "
            f"{n_classes} classes: pass one column a class"
        )
    return values


def _edges(found: Given, what: str) -> np.ndarray:
    """Inner quantiles of losses or residuals, of a sample: one pass over these columns only."""
    number = {"loss": found.losses, "target": found.targets, "prediction": found.pred_probs}
    wanted = ("loss",) if what == "loss" else ("target", "prediction")
    first = inputs.one_dimensional(number[wanted[0]], wanted[0])
    rows = Rows(da.asarray(first)[:, None] if isinstance(first, da.Array) else np.asarray(first)[:, None], {})
    rows = with_numbers(rows, **{name: inputs.one_dimensional(number[name], name) for name in wanted})
    drawn = passes.sample(rows, SAMPLE, columns=wanted)
    values = drawn["loss"] if what == "loss" else drawn["target"] - drawn["prediction"]
    edges = np.quantile(values.astype(np.float64), np.linspace(0, 1, N_BINS + 1)[1:-1])
    return np.unique(edges)
