"""What does a model predict for any number of rows?  Probabilities of the classes, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.blocks import graph, labels, passes
from scaleshift.blocks.block import Block, Invalid, Rows
from scaleshift.blocks.rows import as_rows, first_rows
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.models.onnx_file import OnnxModel
from scaleshift.user_objects import ask

FEW_ROWS = 1_000  # that a model is tried on
CLOSE = 0.01  # probabilities that differ by less may rank either way in float32


def predictions(
    model: Any, X: Any, classes: Any = None, *, columns: Any = None, invalid: Invalid = "raise"
) -> Any:
    """Class probabilities of rows, by a model of any kind.

    Parameters
    ----------
    model : object
        With ``predict_proba(x)``, (n, d) -> (n, C) or the probability of the second of two classes, or
        with ``predict(x)`` -> (n,) labels: scikit-learn's, what `open_model` gives, or any other.
    X : array-like, shape (n, n_markers), or a cells dataset
        Columns are matched with the model's ``feature_names_in_`` where both have names. A few of its rows
        are read to try the model on.
    classes : array-like, shape (C,), optional
        What the columns of the result are. Where left out: the model's own. A regressor (``predict`` alone)
        has none.
    columns : array-like, shape (C,), optional
        Classes of the model's own columns, where it has no ``classes_``. Where left out: `classes`.
    invalid : {"raise", "drop"}, default "raise"
        What is done with rows of NaN or infinite values: refuse them, or give them even probabilities, which
        say nothing (NaN of a regressor), for a slicer that leaves these rows out.

    Returns
    -------
    numpy.ndarray or dask.array.Array of float64, shape (n, C), or (n,) of a regressor
        Lazy, one task a block, for Dask arrays, lazy xarray and cells datasets; else computed.

    Raises
    ------
    DataError
        If X lacks features of the model, the model has other classes, fails, or gives what are no
        probabilities.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LogisticRegression().fit(X, ["a", "a", "b", "b"])
    >>> predictions(model, X, classes=["b", "a"]).round(1).tolist()
    [[0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.8, 0.2]]
    """
    _refuse_unfit(model)
    rows = _matched(as_rows(X, invalid=invalid).only(), model)
    known = known_classes(model)
    known = np.asarray(columns) if known is None and columns is not None else known
    if known is None and classes is None and not _is_regressor(model):
        raise DataError(f"{name_of_model(model)} does not tell its classes: pass columns=, in their order")
    asked = known if classes is None else np.asarray(classes)
    predictor = Predictor(model, asked, _positions(model, known, asked))
    few = first_rows(rows, FEW_ROWS)
    if len(few):
        _check_order(predictor, few, asked if known is None else known)
    width = None if asked is None else len(asked)
    fill = np.nan if width is None else 1 / max(width, 1)
    result = passes.map_rows(predict_leaf, rows, width, fill=fill, predictor=predictor)
    return graph.compute(result, in_memory=True) if rows.in_memory else result


def known_classes(model: Any) -> np.ndarray | None:
    """Classes that a model tells, in the order of its columns, or None.

    Examples
    --------
    >>> known_classes(object()) is None
    True
    """
    found = getattr(model, "classes_", None)
    return None if found is None else np.asarray(found)


@dataclass(frozen=True)
class Predictor:
    """A model with the classes that are asked of it; travels in the tasks."""

    model: Any
    classes: np.ndarray | None  # (C,) None of a regressor
    positions: np.ndarray | None  # (C,) the model's own column of each class; None: as they are

    @property
    def nbytes(self) -> int:
        """What is not known is taken as large: it then enters the graph once, not with every task."""
        return self.model.nbytes if isinstance(self.model, OnnxModel) else 2 * graph.SHARE_BYTES

    def __call__(self, x: np.ndarray, start: int) -> np.ndarray:
        """Probabilities of some rows, (n, C), or predicted numbers, (n,)."""
        names = getattr(self.model, "feature_names_in_", None)
        rows = x if names is None else pd.DataFrame(x, columns=[str(name) for name in names])
        if hasattr(self.model, "predict_proba"):
            found = np.asarray(ask(self.model, "predict_proba", rows))
            return self._probabilities(found, len(x), start)
        found = np.asarray(ask(self.model, "predict", rows))
        return self._numbers(found, x) if self.classes is None else self._one_hot(found, len(x))

    def _probabilities(self, found: np.ndarray, n: int, start: int) -> np.ndarray:
        assert self.classes is not None
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim == 1 and found.dtype.kind in "biuf":
            found = np.column_stack([1 - found, found])
        what, expected = f"{name_of_model(self.model)}.predict_proba", (n, len(self.classes))
        if found.shape != expected or found.dtype.kind not in "biuf":
            raise DataError(
                f"{what} gave an array of shape {found.shape} and dtype {found.dtype}: expected numbers "
                f"of shape {expected}, a column for each of the classes {_listed(self.classes)}"
            )
        fine = np.isfinite(found).all(axis=1)
        if not fine.all():
            row = start + int(np.flatnonzero(~fine)[0])
            raise DataError(f"{what} gave NaN or infinite values, first in row {row}: expected probabilities")
        return found if self.positions is None else found[:, self.positions]

    def _one_hot(self, found: np.ndarray, n: int) -> np.ndarray:
        assert self.classes is not None
        if found.shape != (n,):
            raise DataError(
                f"{name_of_model(self.model)}.predict gave an array of shape {found.shape}, expected ({n},)"
            )
        codes = labels.encode(found, self.classes, f"{name_of_model(self.model)}: the predicted label")
        return (codes[:, None] == np.arange(len(self.classes))).astype(np.float64)

    def _numbers(self, found: np.ndarray, x: np.ndarray) -> np.ndarray:
        if found.shape != (len(x),) or found.dtype.kind not in "biuf":
            raise DataError(
                f"{name_of_model(self.model)}.predict gave an array of shape {found.shape} and dtype "
                f"{found.dtype}: expected {len(x)} numbers; pass classes= where it predicts labels"
            )
        return found


def predict_leaf(block: Block, predictor: Predictor) -> np.ndarray:
    """Predictions for the rows of a block."""
    x = to_numpy(block.x)
    if not len(x):
        return np.empty(0 if predictor.classes is None else (0, len(predictor.classes)))
    return predictor(x, block.start)


def _refuse_unfit(model: Any) -> None:
    if isinstance(model, type) or not (hasattr(model, "predict_proba") or hasattr(model, "predict")):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise DataError(
            f"model: {name} has no predict_proba and no predict that could be called: pass a fitted model, "
            "or the path of one to open_model first"
        )


def _is_regressor(model: Any) -> bool:
    """Whether it may predict numbers: neither probabilities nor, as far as one can tell, labels."""
    return not hasattr(model, "predict_proba") and not isinstance(model, OnnxModel)


def _matched(rows: Rows, model: Any) -> Rows:
    """The rows with the columns that the model was fitted on."""
    names = getattr(model, "feature_names_in_", None)
    markers = None if names is None else tuple(str(name) for name in names)
    n = getattr(model, "n_features_in_", None)
    if n is None and markers is None:
        return rows
    try:
        return rows.matched(markers, int(n or len(markers or ())))
    except DataError as error:
        raise DataError(f"{name_of_model(model)}: {error}") from None


def _positions(model: Any, known: np.ndarray | None, asked: np.ndarray | None) -> np.ndarray | None:
    """The model's own column of each class that is asked."""
    if known is None or asked is None or not hasattr(model, "predict_proba"):
        return None
    theirs, ours = known.tolist(), asked.tolist()
    if set(theirs) != set(ours) or len(theirs) != len(ours):
        raise DataError(other_classes(model, theirs, ours))
    return None if theirs == ours else np.array([theirs.index(label) for label in ours])


def other_classes(model: Any, theirs: Sequence[Any], ours: Sequence[Any]) -> str:
    """What is wrong with a model of other classes, both named.

    Examples
    --------
    >>> other_classes(object(), ["B", "T"], ["B", "NK"])
    'object knows the classes B, T, the labels are B, NK: relabel one of them so that they agree'
    """
    kinds = {type(label).__name__ for label in theirs}, {type(label).__name__ for label in ours}
    types = (
        f" ({'/'.join(sorted(kinds[0]))} against {'/'.join(sorted(kinds[1]))})"
        if kinds[0] != kinds[1]
        else ""
    )
    return (
        f"{name_of_model(model)} knows the classes {_listed(theirs)}, the labels are {_listed(ours)}{types}: "
        "relabel one of them so that they agree"
    )


def _check_order(predictor: Predictor, x: np.ndarray, known: np.ndarray | None) -> None:
    """Try a model on a few rows; one that names its most probable class shows the order of its columns."""
    found = predictor(x, 0)
    asked = getattr(predictor.model, "most_probable", None)
    named = None if asked is None or predictor.classes is None else asked(x)
    if named is None:
        return
    assert predictor.classes is not None
    assert known is not None
    codes = labels.encode(named, predictor.classes, f"{name_of_model(predictor.model)}: the predicted label")
    of_named = found[np.arange(len(found)), codes]
    wrong = np.flatnonzero(found.max(axis=1) - of_named > CLOSE)
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"{name_of_model(predictor.model)} does not have its columns in the order of the classes "
            f"{_listed(known)}: {predictor.classes[found[row].argmax()]!s} would be the most probable for "
            f"row {row}, and the model says {named[row]!s}; export it with its zipmap"
        )


def name_of_model(model: Any) -> str:
    """What a model is called in messages: by its file, or its class.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> name_of_model(Ridge())
    'Ridge'
    """
    return model.name if isinstance(model, OnnxModel) else type(model).__name__


def _listed(classes: Any) -> str:
    items = [str(label) for label in np.asarray(classes).tolist()]
    return ", ".join(items[:8]) + (", ..." if len(items) > 8 else "")
