"""Which labels are the positives?  The one that sorts last, or `pos_label` against all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.spelling import suggestion


def signs(categories: np.ndarray, pos_label: Any = None) -> np.ndarray:
    """+1 for the positive label, -1 for the others; how often each occurs plays no part.

    Parameters
    ----------
    categories : numpy.ndarray, shape (n_labels,)
        Distinct labels in their order.
    pos_label : label, optional
        The positive one; needed where there are more than two.

    Returns
    -------
    numpy.ndarray of int8, shape (n_labels,)

    Raises
    ------
    DataError
        If there is one label alone, more than two without `pos_label`, or no such label.

    Examples
    --------
    >>> signs(np.array(["healthy", "sick"])).tolist(), signs(np.array([3, 5, 8]), pos_label=5).tolist()
    ([-1, 1], [-1, 1, -1])
    """
    n = len(categories)
    if n < 2:
        found = f"only {categories[0].item()!r}" if n else "none"
        raise DataError(
            f"y has {n} class(es), {found}: a ranking needs rows of 2 classes at least. Rows without a label "
            "are not learned from: give them one where they are negatives"
        )
    if pos_label is None:
        if n > 2:
            known = ", ".join(map(repr, categories[:8].tolist()))
            raise DataError(f"y has {n} classes ({known}): say which is the positive one, pos_label=...")
        return np.array([-1, 1], np.int8)
    return np.where(np.arange(n) == position(categories, pos_label), 1, -1).astype(np.int8)


def position(categories: np.ndarray, label: Any) -> int:
    """Where a label stands among the categories.

    Raises
    ------
    DataError
        If it is not there; says which resembles it.

    Examples
    --------
    >>> position(np.array(["B", "T"]), "T")
    1
    """
    items = categories.tolist()
    if np.ndim(label):
        raise DataError(f"pos_label={label!r} are several values: give one label, of {items[:8]}")
    if label not in items:
        alike = [item for item in items if str(item) == str(label)]  # '1' for 1
        hint = f"; did you mean {alike[0]!r}?" if alike else suggestion(label, items)
        raise DataError(f"label {label!r} is not known{hint}")
    return int(items.index(label))
