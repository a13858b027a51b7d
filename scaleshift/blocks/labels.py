"""Labels of any type to integer codes and back: order, missing values, unknown values.

The only place that decides these three. A *category* is a distinct label in its own type; a *code* is
its position, and -1 means unlabelled (NaN, None, pandas.NA). -1 as a label is a label like any other.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.errors import DataError
from scaleshift.kernels.reference import library, to_numpy

CODE = np.dtype(np.int32)
DIGITS = "0123456789"


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which "S2" comes before "S10"."""
    parts = re.split(r"([0-9]{1,18})", text)
    return [(0, int(p), "") if p[0] in DIGITS else (1, 0, p) for p in parts if p]


def order(values: Any, what: str = "label") -> np.ndarray:
    """Distinct, non-missing values in their natural order, in their own type.

    Parameters
    ----------
    values : array-like, 1-D
        Labels, repeated or not. Strings sort naturally (1, 2, 10), numbers and bools ascend.
    what : str, default "label"
        What the values are called in an error.

    Returns
    -------
    numpy.ndarray
        Shape (n_categories,); strings come as a fixed-width unicode array.

    Raises
    ------
    DataError
        If strings and numbers are mixed, so that no order is right.

    Examples
    --------
    >>> order(["B10", "B2", None]).tolist()
    ['B2', 'B10']
    """
    values = _as_array(values)
    _refuse_dates(values, what)
    distinct = pd.unique(pd.Series(values).dropna())
    items = [v.item() if isinstance(v, np.generic) else v for v in distinct]
    kinds = {str if isinstance(v, str) else type(v) for v in items}
    for kind in (str, bool):
        if kind in kinds and len(kinds) > 1:
            others = ", ".join(sorted(k.__name__ for k in kinds - {kind}))
            raise DataError(f"{what}s mix {kind.__name__} with {others}: convert them to one type first")
    if kinds == {str}:
        return np.array(sorted(items, key=lambda item: (natural_key(item), item)))
    try:
        return np.array(sorted(items))
    except TypeError as error:
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise DataError(f"{what}s of type {names} have no order: use strings, numbers or bools") from error


def encode(values: Any, categories: np.ndarray, what: str = "label") -> np.ndarray:
    """Codes of `values` in `categories`; -1 where a value is missing.

    Parameters
    ----------
    values : array-like, shape (n,)
    categories : numpy.ndarray, shape (n_categories,)
    what : str, default "label"
        What the values are called in an error.

    Returns
    -------
    numpy.ndarray of int32, shape (n,)

    Raises
    ------
    DataError
        If a value that is not missing is not among the categories.

    Examples
    --------
    >>> encode(["b", None, "a"], np.array(["a", "b"])).tolist()
    [1, -1, 0]
    """
    values = _as_array(values)
    codes = pd.Index(categories).get_indexer(pd.Index(values)).astype(CODE)
    unknown = values[codes < 0]
    unknown = unknown[~pd.isna(unknown)]
    if unknown.size:
        name = unknown[0].item() if isinstance(unknown[0], np.generic) else unknown[0]
        raise DataError(f"{what} {name!r} is not known{suggestion(name, categories)}")
    return codes


def factorize(values: Any, what: str = "label") -> tuple[np.ndarray, np.ndarray]:
    """Codes and categories of labels in memory; a categorical keeps its own order.

    Parameters
    ----------
    values : array-like, shape (n,)
        numpy, list, pandas Series or Categorical.
    what : str, default "label"
        What the values are called in an error.

    Returns
    -------
    codes : numpy.ndarray of int32, shape (n,)
    categories : numpy.ndarray, shape (n_categories,)

    Examples
    --------
    >>> codes, categories = factorize([True, False, None])
    >>> codes.tolist(), categories.tolist()
    ([1, 0, -1], [False, True])
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        _refuse_dates(dtype.categories, what)
        categorical = getattr(values, "array", values)
        return np.asarray(categorical.codes, CODE), _plain(dtype.categories)
    if isinstance(values, str):
        raise DataError(f"{what}={values!r} is one name: pass one a row; only as_cells takes column names")
    values = _as_array(values)
    if values.ndim != 1:
        raise DataError(f"{what}s have {values.ndim} dimensions: expected one value a row")
    categories = order(values, what)
    return encode(values, categories, what), categories


def suggestion(name: object, known: Iterable[object]) -> str:
    """Text to end an error with: the closest known name, else the first few names."""
    texts = [str(k) for k in known]
    # CD3 is no misspelt CD8: a suggestion has the same numbers, or it misleads.
    alike = {t.casefold(): t for t in texts if _numbers(t) == _numbers(str(name))}
    close = difflib.get_close_matches(str(name).casefold(), alike, n=1)
    if close:
        return f"; did you mean {alike[close[0]]!r}?"
    shown = ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
    return f"; known: {shown}" if texts else ""


def _refuse_dates(values: Any, what: str) -> None:
    if values.dtype.kind in "mM":  # would silently become integers
        raise DataError(f"{what}s are dates or times ({values.dtype}): convert them with .astype(str)")


def _numbers(text: str) -> list[str]:
    return re.findall(r"[0-9]+", text)


def _as_array(values: Any) -> np.ndarray:
    """Numpy array; lists go through object, or numpy would turn [1, "a"] into text and NA into NaN."""
    dtype = getattr(values, "dtype", None)
    if library(values) == "cupy":
        return to_numpy(values)
    return np.asarray(values, None if isinstance(dtype, np.dtype) else object)


def _plain(index: pd.Index) -> np.ndarray:
    """Categories of a pandas categorical as numpy, strings as fixed-width unicode."""
    if pd.api.types.is_object_dtype(index.dtype) or pd.api.types.is_string_dtype(index.dtype):
        return np.array(index.tolist()) if len(index) else np.array([], dtype="<U1")
    return index.to_numpy()
