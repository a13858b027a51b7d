"""What went well or wrong in a row?  Labels and predictions, residuals, or losses, all as one thing.

A mixture sees a label and a prediction; slices are ranked by errors and losses. `Classification` has all of
these. `Regression` and `Losses` put the residual or loss into bins that a sample has made equally full: the
bin is the label, so that components are alike in how wrong the model is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pandas as pd

from scaleshift.blocks import labels, passes
from scaleshift.blocks.block import Block, Column, Invalid, Rows
from scaleshift.blocks.resuming import short
from scaleshift.blocks.rows import known_length, with_columns, with_numbers
from scaleshift.errors import DataError
from scaleshift.kernels.cpu.judged import judged
from scaleshift.slices import inputs
from scaleshift.slices.inputs import Given

N_BINS = 10  # of losses
SAMPLE = 10_000  # rows whose losses make the bins
LEAST_DOUBTED = 50  # rows, of which a share of errors is no chance
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

    MISSING = "targets are missing"

    classes: np.ndarray  # (C,) in their own type; their order is that of the probabilities
    has_errors: bool = True  # False: there are losses, but no predictions

    @property
    def n_labels(self) -> int:
        """Codes that a label can have."""
        return len(self.classes)

    @property
    def fingerprint(self) -> list[Any]:
        """What tells it from others."""
        return [type(self).__name__, self.has_errors, *map(str, self.classes)]

    def rows(self, found: Given, invalid: Invalid = "raise") -> Rows:
        """Rows with what the block's outcomes are made of."""
        rows = inputs.rows_of(found, invalid)
        if found.targets is not None:
            rows = with_columns(rows, label=inputs.label_column(found.targets, "target", self.classes))
        if found.pred_probs is None:
            return rows
        if are_labels(found.pred_probs, self.classes):
            classes = self._as_predicted(found.pred_probs)
            predicted = inputs.label_column(found.pred_probs, "prediction", classes)
            return with_columns(rows, predicted=predicted)
        return with_numbers(rows, prediction=_probabilities(found.pred_probs, self.classes))

    def _as_predicted(self, predictions: Any) -> np.ndarray:
        """The classes in the type of the predictions: for False and True these may be 0 and 1."""
        if self.classes.dtype.kind == "b" and _is_whole(predictions):
            return self.classes.astype(np.int64)
        return self.classes

    def doubt(self, error_rate: float) -> str:
        """What a share of errors far above chance may mean; empty for others."""
        if not error_rate > 1 - 0.5 / max(self.n_labels, 2):
            return ""
        shown = ", ".join(map(str, self.classes[:8])) + (", ..." if self.n_labels > 8 else "")
        return (
            f"the predictions are wrong in {100 * error_rate:.0f} % of the rows, more often than by chance: "
            f"are the columns of pred_probs in the order of the classes ({shown})?"
        )

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
    with np.errstate(invalid="ignore"):
        total = values.sum()
    return DataError(
        f"predictions of row {row} are no probabilities: {shown}{more} add up to {total:.4g}; "
        "pass softmax(logits), or predicted labels"
    )


@dataclass(frozen=True)
class _Binned:
    """Numbers whose bins are the labels."""

    edges: np.ndarray  # (n_bins - 1,)
    has_errors: bool = False

    @property
    def n_labels(self) -> int:
        """Bins."""
        return len(self.edges) + 1

    @property
    def classes(self) -> np.ndarray:
        """Numbers of the bins."""
        return np.arange(self.n_labels)

    @property
    def fingerprint(self) -> list[Any]:
        """What tells it from others, to digits that other chunks leave alone."""
        return [type(self).__name__, *short(self.edges)]

    def _bins(self, values: np.ndarray) -> np.ndarray:
        """Bins of numbers, (n,); -1 where they are not finite."""
        return np.where(np.isfinite(values), np.searchsorted(self.edges, values), -1)


@dataclass(frozen=True)
class Residuals(_Binned):
    """Numbers against predicted numbers; the residual's sign is kept."""

    MISSING = "targets or predictions are NaN or infinite"

    def rows(self, found: Given, invalid: Invalid = "raise") -> Rows:
        """Rows with targets and predictions as numbers."""
        rows = inputs.rows_of(found, invalid)
        for name, values in {"target": found.targets, "prediction": found.pred_probs}.items():
            if values is not None:
                rows = with_numbers(rows, **{name: inputs.one_dimensional(values, name)})
        return rows

    def outcome(self, block: Block) -> Found:
        """Residuals in bins, their squares as losses."""
        loss, label = _given_loss(block), None
        residual = residuals(block)
        if residual is not None:
            label = self._bins(residual)
            with np.errstate(over="ignore"):  # the survey refuses what is infinite
                loss = residual**2 if loss is None else loss
        return Found(label, None, None, loss)


@dataclass(frozen=True)
class Losses(_Binned):
    """Losses, whatever they are of."""

    MISSING = "losses are NaN or infinite"

    def rows(self, found: Given, invalid: Invalid = "raise") -> Rows:
        """Rows with their losses."""
        return inputs.rows_of(found, invalid)

    def outcome(self, block: Block) -> Found:
        """Losses and their bins."""
        loss = _given_loss(block)
        return Found(None if loss is None else self._bins(loss), None, None, loss)


Kind = Classification | Residuals | Losses


def warn_of(kind: Kind, error_rate: float, n_rows: int) -> None:
    """Warn where predictions are so wrong that their columns may be in another order."""
    doubt = kind.doubt(error_rate) if isinstance(kind, Classification) else ""
    if doubt and n_rows >= LEAST_DOUBTED:
        warnings.warn(doubt, stacklevel=5)


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
    if _are_measurements(found):
        return Residuals(_edges(found, "residual"))
    column = inputs.label_column(found.targets, "target")
    assert column.categories is not None
    classes = _classes(column.categories, found)
    return Classification(classes, has_errors=found.pred_probs is not None)


def are_labels(predictions: Any, classes: np.ndarray) -> bool:
    """Whether predictions are labels, one a row, rather than probabilities."""
    if isinstance(predictions, Column):
        return True
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


def _are_measurements(found: Given) -> bool:
    """Whether numbers were predicted for numbers, rather than probabilities of classes.

    So it is where targets are no whole numbers; or where they are more than two, and predictions neither
    whole numbers nor between 0 and 1.
    """
    for values, kinds in ((found.targets, "iuf"), (found.pred_probs, "f")):
        if isinstance(values, Column):
            return False
        values = values if hasattr(values, "dtype") else np.asarray(values)
        if getattr(values.dtype, "kind", "O") not in kinds or getattr(values, "ndim", 1) != 1:
            return False
    drawn = _drawn(found, "target", "prediction")
    targets, predictions = (values[np.isfinite(values)] for values in drawn.values())
    if (targets != np.rint(targets)).any():
        return True
    no_labels = (predictions != np.rint(predictions)).any()
    no_shares = ((predictions < 0) | (predictions > 1)).any()
    return bool(no_labels and no_shares and len(np.unique(targets)) > 2)


def _classes(found: np.ndarray, given: Given) -> np.ndarray:
    """All classes: those found, or all that whole numbers and the columns of predictions tell."""
    predictions = given.pred_probs
    if predictions is None or isinstance(predictions, Column):
        return found
    if are_labels(predictions, found):
        return _with_predicted(found, given)
    shape = getattr(predictions, "shape", None) or np.shape(predictions)
    of_second = len(shape) < 2 or shape[1] == 1  # the probability of the second of two classes
    n = 2 if of_second else int(shape[1])
    if n == len(found) or (of_second and len(found) > 1):
        return found
    if found.dtype.kind in "iuf" and len(found) and found[0] >= 0 and found[-1] < n:
        return np.arange(n, dtype=found.dtype)
    if found.dtype.kind == "b" and n == 2:
        return np.array([False, True])
    raise DataError(
        f"pred_probs tells of {n} classes, targets have {len(found)} ({', '.join(map(str, found[:8]))}"
        f"{', ...' if len(found) > 8 else ''}): pass targets as a pandas Categorical that lists all {n}, in "
        "the order of the columns"
    )


def _with_predicted(found: np.ndarray, given: Given) -> np.ndarray:
    """The classes found among targets, and those that were predicted only; those of a list are all."""
    if isinstance(getattr(given.targets, "dtype", None), pd.CategoricalDtype):
        return found
    if isinstance(given.targets, Column):
        return found
    if found.dtype.kind == "b" and _is_whole(given.pred_probs):
        return found if len(found) > 1 else np.array([False, True])
    if getattr(getattr(given.pred_probs, "dtype", None), "kind", "O") == "f":
        numbers = _drawn(given, "prediction")["prediction"]
        if (numbers != np.rint(numbers))[np.isfinite(numbers)].any():
            raise _one_number(len(found))
    predicted = inputs.label_column(given.pred_probs, "prediction").categories
    assert predicted is not None
    if np.isin(predicted, found).all():
        return found
    return np.sort(labels.order([*found.tolist(), *predicted.tolist()], "targets and prediction"))


def _is_whole(predictions: Any) -> bool:
    """Whether predicted labels are whole numbers."""
    if isinstance(predictions, Column):
        return False
    dtype = getattr(predictions, "dtype", None)
    return getattr(np.asarray(predictions).dtype if dtype is None else dtype, "kind", "O") in "iu"


def _one_number(n_classes: int) -> DataError:
    return DataError(
        f"pred_probs has one number a row, the probability of the second of two classes, and there are "
        f"{n_classes} classes: pass one column a class"
    )


def _by_name(table: pd.DataFrame, classes: np.ndarray) -> pd.DataFrame:
    """Columns that are called as the classes, in their order; others stay as they are."""
    position = {name: column for column, name in enumerate(table.columns)}
    if len(position) == len(classes) and set(position) == set(classes.tolist()):
        return table.iloc[:, [position[name] for name in classes.tolist()]]
    return table


def _probabilities(values: Any, classes: np.ndarray) -> Any:
    """Probabilities of all classes, (n, C), or of the second of two, (n,)."""
    n_classes = len(classes)
    if isinstance(values, pd.DataFrame):
        values = _by_name(values, classes)
    shape = tuple(getattr(values, "shape", None) or np.shape(values))
    if len(shape) == 2 and shape[1] == 1:
        return _probabilities(inputs.one_dimensional(values, "pred_probs"), classes)
    if len(shape) == 2 and shape[1] != n_classes:
        raise DataError(f"pred_probs has {shape[1]} columns, there are {n_classes} classes: expected as many")
    if len(shape) == 1 and n_classes != 2:
        raise _one_number(n_classes)
    return values


def _edges(found: Given, what: str) -> np.ndarray:
    """Inner quantiles of losses or residuals, of a sample."""
    names = ("loss",) if what == "loss" else ("target", "prediction")
    drawn = _drawn(found, *names)
    values = drawn["loss"] if what == "loss" else drawn["target"] - drawn["prediction"]
    values = values[np.isfinite(values)]  # the survey refuses the others, and says where they are
    inner = np.linspace(0, 1, N_BINS + 1)[1:-1]
    return np.unique(np.quantile(values, inner)) if len(values) else np.empty(0)


def _drawn(found: Given, *names: str) -> dict[str, np.ndarray]:
    """Numbers of a sample of the rows: one pass over these columns only."""
    every = {"loss": found.losses, "target": found.targets, "prediction": found.pred_probs}
    numbers = {name: inputs.one_dimensional(every[name], name) for name in names}
    numbers = {k: known_length(v) if isinstance(v, da.Array) else v for k, v in numbers.items()}
    first = numbers[names[0]]
    instead_of_x = (first if isinstance(first, da.Array) else np.asarray(first))[:, None]
    rows = with_numbers(Rows(instead_of_x, {}, invalid="drop"), **numbers)
    drawn = passes.sample(rows, SAMPLE, columns=names)
    return {name: drawn[name].astype(np.float64) for name in names}
