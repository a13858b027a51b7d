"""What do users of scikit-learn hand over that is no array of numbers, though it could be one?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from scaleshift.errors import DataError


class NotANumber(DataError, TypeError):
    """An array of objects holds one that is no number."""


def table(X: Any) -> Any:
    """An array of objects that are numbers as one of float64; anything else as it is.

    Examples
    --------
    >>> table(np.array([[1, 2.5]], object)).dtype
    dtype('float64')
    """
    if not isinstance(X, np.ndarray) or X.dtype != object:
        return X
    for place, value in np.ndenumerate(X):
        if not isinstance(value, int | float | np.number | np.bool_ | None) or isinstance(value, complex):
            where = ", ".join(map(str, place))
            raise NotANumber(
                f"X[{where}] is a {type(value).__name__}: the argument must be a number, and no string that "
                "looks like a number; convert X with X.astype('float64')"
            )
    return X.astype(np.float64)


def column(y: Any) -> Any:
    """Labels that are one column of a table as labels; warns, as scikit-learn does."""
    if getattr(y, "ndim", 1) != 2 or y.shape[1] != 1:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected: taken as y[:, 0], pass y.ravel()",
        DataConversionWarning,
        stacklevel=3,
    )
    return y.iloc[:, 0] if hasattr(y, "iloc") else y[:, 0]
