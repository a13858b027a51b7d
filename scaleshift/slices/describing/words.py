"""How is a slice told to a person?  How large, how wrong, what sets it apart: a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

CLEAR = 0.5  # least standardised difference that is told
N_FEATURES = 3
N_CONFUSED = 2  # least weighted rows of a confusion that is told


def percent(share: float) -> str:
    """A share with two digits that say something.

    Examples
    --------
    >>> percent(0.0312), percent(0.652), percent(0.00042), percent(1.0)
    ('3.1 %', '65 %', '0.042 %', '100 %')
    """
    return f"{_digits(100 * share)} %"


def points(change: float) -> str:
    """A change of a share, in percentage points, with its sign.

    Examples
    --------
    >>> points(0.034), points(-0.5)
    ('+3.4', '-50')
    """
    return f"{'-' if change < 0 else '+'}{_digits(100 * abs(change))}"


def _digits(number: float) -> str:
    if not np.isfinite(number):
        return "?"
    if number >= 9.95:
        return f"{number:.0f}"
    return np.format_float_positional(float(f"{number:.2g}"), trim="0", min_digits=1) if number else "0"


def wrong(rate: float, low: float, high: float, rest: float) -> str:
    """How often a slice is wrong.

    Examples
    --------
    >>> wrong(0.65, 0.55, 0.74, 0.1)
    'wrong in 65 % (55 to 74 %) against 10 % elsewhere'
    """
    span = f"{percent(low).removesuffix(' %')} to {percent(high)}"
    elsewhere = f" against {percent(rest)} elsewhere" if np.isfinite(rest) else ""
    return f"wrong in {percent(rate)} ({span}){elsewhere}"


def lost(loss: float, rest: float) -> str:
    """What a slice loses.

    Examples
    --------
    >>> lost(1.234, 0.3)
    'mean loss 1.23 against 0.3 elsewhere'
    """
    return f"mean loss {loss:.3g}" + (f" against {rest:.3g} elsewhere" if np.isfinite(rest) else "")


def confused(table: np.ndarray, classes: Sequence[Any]) -> str:
    """The most frequent confusion of a slice, "" where there is none to speak of.

    Parameters
    ----------
    table : numpy.ndarray, shape (C, C)
        Rows by label and predicted label.
    classes : sequence of C labels

    Examples
    --------
    >>> confused(np.array([[5.0, 1.0], [7.0, 2.0]]), ["B", "T"])
    "most often predicts 'B' for 'T'"
    """
    mistakes = np.where(np.eye(len(table), dtype=bool), 0.0, table)
    label, predicted = divmod(int(mistakes.argmax()), len(mistakes))
    if mistakes[label, predicted] < N_CONFUSED * (1 - 1e-6):  # weights add up with rounding errors
        return ""
    return f"most often predicts {shown(classes[predicted])} for {shown(classes[label])}"


def shown(label: Any) -> str:
    """A label as one writes it in Python: text in quotes."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def apart(difference: np.ndarray, names: Sequence[str]) -> str:
    """Features that set a slice apart, the clearest first.

    Examples
    --------
    >>> apart(np.array([0.1, 1.2, -2.0]), ["CD3", "CD19", "CD45"])
    'CD45 low, CD19 high'
    """
    size = np.nan_to_num(np.abs(difference))
    order = [i for i in np.argsort(-size, kind="stable")[:N_FEATURES] if size[i] >= CLEAR]
    return ", ".join(f"{names[i]} {'high' if difference[i] > 0 else 'low'}" for i in order)


def sentence(facts: Sequence[str], *asides: str) -> str:
    """Facts with commas between them, asides behind semicolons; what is empty is left out.

    Examples
    --------
    >>> sentence(["3.1 % of rows", ""], "CD45 low")
    '3.1 % of rows; CD45 low'
    """
    return "; ".join(part for part in (", ".join(fact for fact in facts if fact), *asides) if part)
