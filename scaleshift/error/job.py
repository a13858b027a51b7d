"""What does a fit have to do?  Parameters, rows and given noise, checked and brought together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import dask.array as da
import numpy as np
import xarray as xr
from sklearn.base import is_classifier

from scaleshift.blocks import passes
from scaleshift.blocks.block import Column, Invalid, Rows
from scaleshift.blocks.buckets import Buckets, group_buckets, random_buckets, split_buckets
from scaleshift.blocks.inputs import check_same_rows
from scaleshift.blocks.rows import as_rows, refuse_masked, with_columns, with_numbers
from scaleshift.error.comparators import COMPARATORS, NORM
from scaleshift.error.family import Job, Settings
from scaleshift.error.losses import OF_CLASSES, OF_NUMBERS
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.spelling import meant, suggestion
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
    return (*OF_ENGINES, *COMPARATORS, NORM)


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
    if names == (NORM,):
        raise DataError(f"method={method!r} is no error: name a method beside it, as 'direct'")
    return names


def of_classes(model: Any) -> bool:
    """Whether a model predicts classes, rather than numbers."""
    if isinstance(model, str):
        return model in CATEGORICAL
    if isinstance(model, type):
        raise DataError(f"model={model.__name__} is a class: pass an object, {model.__name__}()")
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
    hint = meant(loss, ["auto", *known]) if isinstance(loss, str) else ""
    raise DataError(f"loss={loss!r}: expected auto, {', '.join(known)} or a function for {name}{hint}")


def job_of(asked: Asked, X: Any, y: Any, groups: Any, noise: Mapping[str, Any] | None, seed: int) -> Job:
    """Rows with outcomes, their folds, and what is asked of them: a pass over outcomes and groups alone."""
    n_bootstrap = asked.n_bootstrap
    rows = _in_order_of(asked, labelled(asked, X, y, groups))
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
    return Job(rows, _folds(asked, rows, seed), settings)


def labelled(asked: Asked, X: Any, y: Any, groups: Any = None) -> Rows:
    """Rows with the column "label": classes, or 0 where a number is known; then with "outcome" too."""
    own = isinstance(groups, str) and groups == "sample"
    if own and not (isinstance(X, xr.Dataset) and X.sizes.get("sample", 0)):
        raise DataError("groups='sample': X brings no samples, as a cells dataset does: pass one group a row")
    sample = None if own else groups
    if of_classes(asked.model):
        rows = as_rows(X, y, sample, invalid=asked.invalid)
        if "label" not in rows.columns:
            raise DataError("y is missing, and X brings no labels: pass one label a row")
        if isinstance(asked.model, str):  # estimators may know of labels that no row has
            rows = _with_labels_of_rows(rows)
    else:
        rows = with_numbers(as_rows(X, None, sample, invalid=asked.invalid), outcome=_numbers(X, y))
        values = rows.columns["outcome"].values
        lazy = isinstance(values, da.Array)
        known = values.map_blocks(known_numbers, dtype=np.int8) if lazy else known_numbers(values)
        label = Column(known, np.array(["known"]), coded=True)
        rows = with_columns(rows.only("outcome", "sample"), label=label)
    names = [name for name in ("label", "outcome") if name in rows.columns]
    if groups is not None:
        rows = with_columns(rows, group=rows.columns["sample"])
        if asked.cv is None and (passes.counts(rows, "group") > 0).sum() < 2:
            raise DataError("all rows are of one group, which tells nothing of others: leave groups out")
        return rows.only(*names, "group")
    return rows.only(*names)


def _with_labels_of_rows(rows: Rows) -> Rows:
    """Without the labels that no row has: categories of another part of a study."""
    found = passes.counts(rows, "label") > 0
    column = rows.columns["label"]
    if found.all() or not column.coded:
        return rows
    code = np.append(np.where(found, np.cumsum(found) - 1, -1), -1)  # that of no label, -1, is the last
    lazy = isinstance(column.values, da.Array)
    values = column.values.map_blocks(code.take, dtype=code.dtype) if lazy else code[column.values]
    return with_columns(rows, label=Column(values, rows.categories("label")[found], coded=True))


def _in_order_of(asked: Asked, rows: Rows) -> Rows:
    """The columns that a fitted model names, in its order: it would take others for them."""
    names = getattr(asked.model, "feature_names_in_", None)
    if asked.refit != "never" or isinstance(asked.model, str) or names is None or rows.markers is None:
        return rows
    return rows.matched(tuple(map(str, names)), len(names), rows.treatment)


def _numbers(X: Any, y: Any) -> Any:
    """The outcomes of a model of numbers, as an array; a lazy one stays lazy.

    Raises
    ------
    DataError
        If they are none, not one a row, no numbers, or pandas names their rows otherwise than those of X.
    """
    if y is None:
        raise DataError("y is missing: pass one number a row, NaN where it is not known")
    if isinstance(y, str):
        raise DataError(f"y={y!r} is one name: pass one number a row, NaN where it is not known")
    check_same_rows(X, y, "y")
    refuse_masked(y, "y")
    if not hasattr(y, "shape"):
        y = to_numpy(y)
    if len(y.shape) != 1:
        raise DataError(f"y has {len(y.shape)} dimensions: expected one number a row")
    if y.dtype.kind not in "biuf":
        raise DataError(
            f"y has dtype {y.dtype}, expected numbers, NaN where they are not known: pass numpy.asarray(y, "
            "float); if y are labels, a model that learns these: 'multinomial', 'logistic' or a classifier"
        )
    return y


def known_numbers(values: np.ndarray) -> np.ndarray:
    """0 where an outcome is known, -1 where it is NaN.

    Raises
    ------
    DataError
        If one is infinite: it is known, and nothing can be learned from it.

    Examples
    --------
    >>> known_numbers(np.array([1.5, np.nan])).tolist()
    [0, -1]
    """
    n_infinite = int(np.isinf(values).sum())
    if n_infinite:
        raise DataError(
            f"y has {n_infinite} infinite value(s): mend them, or make them NaN, which is not known"
        )
    return np.isfinite(values).astype(np.int8) - np.int8(1)


def _enough(rows: Rows) -> None:
    n = passes.counts(rows, "label")
    if n.sum() < LEAST_ROWS:
        raise DataError(
            f"{n.sum()} rows have an outcome: {LEAST_ROWS} are needed at least; give more outcomes"
        )
    if "outcome" not in rows.columns and (n > 0).sum() < 2:
        only = rows.categories("label")[n > 0].tolist()
        raise DataError(f"all rows have the label {only[0]!r}: a classifier needs two labels at least")


def _folds(asked: Asked, rows: Rows, seed: int) -> Buckets | None:
    if asked.cv is None:
        return None
    if isinstance(asked.cv, list):
        return split_buckets(rows, asked.cv, seed)
    if "group" in rows.columns:
        return group_buckets(rows, int(asked.cv), seed)
    n = int(passes.counts(rows, "label").sum())
    return random_buckets(rows, min(int(asked.cv), n), seed)


def _with_noise(rows: Rows, noise: Mapping[str, Any]) -> tuple[Rows, int]:
    """Rows with the columns "train" and "fresh", (n, B), and B."""
    if not isinstance(noise, Mapping) or set(noise) != set(NOISE_OF_FIT):
        found = sorted(map(str, noise)) if isinstance(noise, Mapping) else type(noise).__name__
        raise DataError(f"noise of fit holds {found}: expected 'train' and 'fresh', (n_replicates, n) each")
    n, uniform = rows.x.shape[0], "outcome" not in rows.columns
    train, fresh = (noise_by_row(noise[name], n, uniform=uniform) for name in NOISE_OF_FIT)
    if train.shape[1] != fresh.shape[1] or train.shape[1] < 2:
        given = f"{train.shape[1]} replicates of 'train' and {fresh.shape[1]} of 'fresh'"
        raise DataError(f"noise has {given}: expected as many of both, from 2")
    return with_numbers(rows, train=train, fresh=fresh), train.shape[1]


def noise_by_row(noise: Any, n: int, *, uniform: bool, n_replicates: int | None = None) -> Any:
    """Noise of replicates by row: (B, n) -> (n, B), lazy where it is.

    Parameters
    ----------
    noise : array-like, shape (B, n)
    n : int
        Rows.
    uniform : bool
        Whether numbers have to be of [0, 1): those that draw labels.
    n_replicates : int, optional
        How many replicates there are; any number where not known.

    Raises
    ------
    DataError
        If it is no such array, or not finite: of a lazy one, by the pass that reads it.

    Examples
    --------
    >>> noise_by_row([[0.5, 0.25]], 2, uniform=True).tolist()
    [[0.5], [0.25]]
    """
    try:
        noise = noise if isinstance(noise, da.Array) else np.asarray(noise)
    except ValueError as error:
        raise DataError(f"noise is no array ({error}): expected (n_replicates, {n})") from error
    wanted = ("n_replicates" if n_replicates is None else n_replicates, n)
    fits = noise.ndim == 2 and noise.shape[1] == n and n_replicates in (None, noise.shape[0])
    if not fits or noise.dtype.kind not in "biuf":
        raise DataError(
            f"noise has the shape {noise.shape} and the dtype {noise.dtype}: expected numbers, "
            f"({wanted[0]}, {wanted[1]})"
        )
    if isinstance(noise, da.Array):
        return noise.T.map_blocks(checked_noise, uniform=uniform, dtype=noise.dtype)
    return checked_noise(noise.T, uniform=uniform)


def checked_noise(noise: np.ndarray, *, uniform: bool) -> np.ndarray:
    """The noise of one block, which is finite and in its range.

    Raises
    ------
    DataError
        If it is not.
    """
    if not np.isfinite(noise).all():
        raise DataError("noise is not finite: give standard normal numbers, or of classes uniform ones")
    if uniform and noise.size and not (noise.min() >= 0 and noise.max() < 1):
        raise DataError(
            f"noise runs from {noise.min():.3g} to {noise.max():.3g}: labels are drawn by uniform numbers "
            "from 0, below 1"
        )
    return noise
