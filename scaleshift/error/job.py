"""What does a fit have to do?  Parameters, rows and given noise, checked and brought together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import dask.array as da
import numpy as np
from sklearn.base import is_classifier

from scaleshift.blocks import passes
from scaleshift.blocks.block import Column, Invalid, Rows
from scaleshift.blocks.buckets import Buckets, given_splits, group_buckets, random_buckets
from scaleshift.blocks.labels import suggestion
from scaleshift.blocks.rows import as_rows, with_columns, with_numbers
from scaleshift.error.comparators import COMPARATORS
from scaleshift.error.family import Job, Settings
from scaleshift.error.losses import OF_CLASSES, OF_NUMBERS
from scaleshift.errors import DataError
from scaleshift.user_objects import name_of

OF_ENGINES = ("direct", "decomposed", "corrected", "closed_form", "cv")
GAUSSIAN, CATEGORICAL = ("ols", "ridge", "lasso"), ("logistic", "multinomial")
MODELS = (*GAUSSIAN, *CATEGORICAL)
LEAST_ROWS = 3
NOISE_OF_FIT = ("train", "fresh")


class Asked(Protocol):
    """Parameters of an estimator."""

    model: Any
    loss: Any
    method: Any
    generator: str
    alpha: float | None
    penalty: str
    cv: Any
    n_bootstrap: int
    tol: float | None
    checkpoint: Any
    level: float
    refit: str
    scale: bool
    rechoose: bool
    invalid: Invalid


def known_methods() -> tuple[str, ...]:
    """Names of all methods, those of engines first."""
    return (*OF_ENGINES, *COMPARATORS)


def methods_of(method: Any) -> tuple[str, ...]:
    """The methods that are asked for, each once.

    Examples
    --------
    >>> methods_of("direct"), methods_of(["cv", "direct", "cv"])
    (('direct',), ('cv', 'direct'))
    """
    known = known_methods()
    if isinstance(method, str):
        method = known if method == "all" else (method,)
    try:
        names = tuple(dict.fromkeys(method))
    except TypeError:
        names = ()
    strange = [name for name in names if name not in known]
    if strange or not names:
        hint = suggestion(str(strange[0]), known) if strange else ""
        raise DataError(f"method={method!r}: expected some of {', '.join(known)}, or 'all'{hint}")
    return names


def of_classes(model: Any) -> bool:
    """Whether a model predicts classes, rather than numbers."""
    if isinstance(model, str):
        return model in CATEGORICAL
    if hasattr(model, "predict_proba"):
        return True
    return hasattr(model, "__sklearn_tags__") and is_classifier(model)  # others have no tags to ask


def loss_of(asked: Asked) -> Any:
    """The loss, no longer "auto".

    Raises
    ------
    DataError
        If it is none of this model.
    """
    classes, loss = of_classes(asked.model), asked.loss
    if isinstance(loss, str) and loss == "auto":
        return "counting" if classes else "squared"
    known = OF_CLASSES if classes else OF_NUMBERS
    if isinstance(loss, str) and loss in known:
        return loss
    name = asked.model if isinstance(asked.model, str) else type(asked.model).__name__
    if callable(loss):
        if asked.model in GAUSSIAN:
            raise DataError(
                f"loss={name_of(loss)}: {name} is solved from sums of squares, which tell of the squared "
                "error alone; pass an estimator in place of its name, as LinearRegression()"
            )
        return loss
    raise DataError(f"loss={loss!r}: expected auto, {', '.join(known)} or a function for {name}")


def job_of(asked: Asked, X: Any, y: Any, groups: Any, noise: Mapping[str, Any] | None, seed: int) -> Job:
    """Rows with outcomes, their folds, and what is asked of them: a pass over outcomes and groups alone."""
    n_bootstrap = asked.n_bootstrap
    rows = _labelled(asked, X, y, groups)
    _enough(rows)
    if noise is not None:
        rows, n_bootstrap = _with_noise(rows, noise)
    settings = Settings(
        model=asked.model,
        loss=loss_of(asked),
        methods=methods_of(asked.method),
        generator=asked.generator,
        alpha=None if asked.alpha is None else float(asked.alpha),
        penalty=asked.penalty,
        n_bootstrap=n_bootstrap,
        level=asked.level,
        tol=asked.tol,
        refit=asked.refit,
        scale=bool(asked.scale),
        seed=seed,
        checkpoint=asked.checkpoint,
        rechoose=bool(asked.rechoose),
    )
    buckets = _folds(asked, rows, seed)
    return Job(rows, buckets, settings)


def _labelled(asked: Asked, X: Any, y: Any, groups: Any) -> Rows:
    """Rows with the column "label": classes, or 0 where a number is known; then with "outcome" too."""
    own = isinstance(groups, str) and groups == "sample"
    sample = None if own else groups
    if of_classes(asked.model):
        rows = as_rows(X, y, sample, invalid=asked.invalid)
        if "label" not in rows.columns:
            raise DataError("y is missing, and X brings no labels: pass one label a row")
    else:
        if y is None:
            raise DataError("y is missing: pass one number a row, NaN where it is not known")
        rows = with_numbers(as_rows(X, None, sample, invalid=asked.invalid), outcome=y)
        values = rows.columns["outcome"].values
        if values.ndim != 1:
            raise DataError(f"y has {values.ndim} dimensions: expected one number a row")
        known = (da if isinstance(values, da.Array) else np).isfinite(values).astype(np.int8) - 1
        label = Column(known, np.array(["known"]), coded=True)
        rows = with_columns(rows.only("outcome", "sample"), label=label)
    names = [name for name in ("label", "outcome") if name in rows.columns]
    if groups is not None:
        rows = with_columns(rows, group=rows.columns["sample"])
        return rows.only(*names, "group")
    if isinstance(asked.cv, list):
        rows = with_columns(rows, split=given_splits(asked.cv, rows.x.shape[0]))  # splits are no groups
        return rows.only(*names, "split")
    return rows.only(*names)


def _enough(rows: Rows) -> None:
    n = passes.counts(rows, "label")
    if n.sum() < LEAST_ROWS:
        raise DataError(f"{n.sum()} rows have an outcome: {LEAST_ROWS} are needed at least")
    if "outcome" not in rows.columns and (n > 0).sum() < 2:
        only = rows.categories("label")[n > 0].tolist()
        raise DataError(f"all rows have the label {only[0]!r}: a classifier needs two labels at least")


def _folds(asked: Asked, rows: Rows, seed: int) -> Buckets | None:
    if asked.cv is None:
        return None
    if "split" in rows.columns:
        return group_buckets(rows, len(asked.cv), seed, column="split")
    if "group" in rows.columns:
        n = len(asked.cv) if isinstance(asked.cv, list) else int(asked.cv)
        return group_buckets(rows, n, seed)
    n = int(passes.counts(rows, "label").sum())
    return random_buckets(rows, min(int(asked.cv), n), seed)


def _with_noise(rows: Rows, noise: Mapping[str, Any]) -> tuple[Rows, int]:
    """Rows with the columns "train" and "fresh", (n, B), and B."""
    if not isinstance(noise, Mapping) or set(noise) != set(NOISE_OF_FIT):
        found = sorted(map(str, noise)) if isinstance(noise, Mapping) else type(noise).__name__
        raise DataError(f"noise of fit holds {found}: expected 'train' and 'fresh', (n_replicates, n) each")
    shapes = {np.shape(values) for values in noise.values()}
    n = rows.x.shape[0]
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or shape[1] != n or shape[0] < 2:
        given = [np.shape(values) for values in noise.values()]
        raise DataError(f"noise has the shapes {given}: expected (n_replicates, {n}), both alike, from 2")
    return with_numbers(rows, **{name: by_row(values) for name, values in noise.items()}), shape[0]


def by_row(noise: Any) -> Any:
    """Noise of replicates by row: (B, n) -> (n, B), lazy where it is."""
    return noise.T if hasattr(noise, "T") else np.transpose(noise)
