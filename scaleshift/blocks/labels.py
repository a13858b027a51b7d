"""Labels of any type to integer codes and back: order, missing values, unknown values.

The only place that decides these three. A *category* is a distinct label in its own type; a *code* is
its position, and -1 means unlabelled (NaN, None, pandas.NA). -1 as a label is a label like any other.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.errors import DataError
from scaleshift.kernels.reference import library, to_numpy
from scaleshift.spelling import suggestion

CODE = np.dtype(np.int32)
DIGITS = "0123456789"
MAX_FLOATS = 1_000


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
    values = as_array(values)
    _refuse_dates(values, what)
    try:
        distinct = pd.unique(pd.Series(values, dtype=values.dtype).dropna())  # or it guesses dates
    except TypeError as error:
        raise DataError(f"{what}s cannot be compared ({error}): use strings, numbers or bools") from error
    items = [v.item() if isinstance(v, np.generic) else v for v in distinct]
    kind = _kind(items, what)
    if kind is float and len(items) > MAX_FLOATS:
        raise DataError(
            f"{what}s are {len(items)} different decimal numbers: are they a measurement? "
            "Names may be text, .astype(str)"
        )
    if kind is str:
        return np.array(sorted(items, key=lambda item: (natural_key(item), item)))
    return np.array(sorted(items))


def _kind(items: list[Any], what: str) -> type:
    """The one type of labels: str, bool, int or float (which may have whole numbers among them)."""
    kinds = {next((k for k in (str, bool, int, float) if isinstance(v, k)), type(v)) for v in items}
    if kinds == {int, float}:
        kinds = {float}
    names = ", ".join(sorted(k.__name__ for k in kinds))
    if len(kinds) > 1:
        raise DataError(f"{what}s mix {names}: convert them to one type first")
    kind = kinds.pop() if kinds else str
    if kind not in (str, bool, int, float):
        raise DataError(
            f"{what}s of type {names} are not supported: convert them to strings, numbers or bools"
        )
    if kind is str:
        _refuse_halves(items, what)
    if kind is int and not all(-(2**63) <= v < 2**63 for v in items):
        raise DataError(f"{what}s hold integers beyond 64 bits: convert them to strings")
    return kind


def _refuse_halves(items: list[str], what: str) -> None:
    """Refuse halves of characters, of which no file can be written and pandas loses track."""
    for item in items:
        try:
            item.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{what} {item!r} is no valid text: {error.reason}; decode it anew") from error


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
    values = as_array(values)
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
        return np.asarray(categorical.codes, CODE), _plain(dtype.categories, what)
    if isinstance(values, str):
        raise DataError(f"{what}={values!r} is one name: pass one a row; only as_cells takes column names")
    values = as_array(values)
    if values.ndim != 1:
        raise DataError(f"{what}s have {values.ndim} dimensions: expected one value a row")
    categories = order(values, what)
    return encode(values, categories, what), categories


def _refuse_dates(values: Any, what: str) -> None:
    if values.dtype.kind in "mM":  # would silently become integers
        raise DataError(f"{what}s are dates or times ({values.dtype}): convert them with .astype(str)")


def as_array(values: Any) -> np.ndarray:
    """Numpy array; lists go through object, or numpy would turn [1, "a"] into text and NA into NaN."""
    dtype = getattr(values, "dtype", None)
    if library(values) == "cupy":
        return to_numpy(values)
    if isinstance(values, np.ma.MaskedArray):
        plain = values.data.astype(object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    if dtype == np.float16:  # pandas cannot index it
        return np.asarray(values, np.float64)
    return np.asarray(values, None if isinstance(dtype, np.dtype) else object)


def _plain(index: pd.Index, what: str) -> np.ndarray:
    """Categories of a pandas categorical as numpy, strings as fixed-width unicode."""
    kind = _kind(index.tolist(), what)
    return np.array(index.tolist(), dtype=np.str_ if kind is str else kind)


def fingerprint(categories: np.ndarray) -> str:
    """Short text that tells one list of categories from another, whatever xarray does to their coordinate."""
    return f"{zlib.crc32(repr(np.asarray(categories).tolist()).encode()):08x}"


def check_fingerprint(attrs: Mapping[Any, Any], categories: np.ndarray, what: str) -> None:
    """Raise DataError where codes were made for other categories, or for these in another order."""
    if attrs.get("categories", fingerprint(categories)) != fingerprint(categories):
        raise DataError(
            f"the {what}s of the cells were selected, sorted or renamed, and {what}_code still counts the "
            f"old ones: choose cells with isel(cell=...), {what}s with open_cells(path, {what}s=...), or "
            "make the cells again with as_cells"
        )
