"""How is a number written?  With the digits that say something, and "-" where it is not known."""

from __future__ import annotations

import math
from collections.abc import Callable

NOTHING = "-"  # a quantity that was not computed


def per_cent(share: float) -> str:
    """A share of cells in per cent: one decimal, up to three where it is rare.

    Examples
    --------
    >>> per_cent(0.1234), per_cent(0.0004), per_cent(0.00003), per_cent(-1e-9), per_cent(float("nan"))
    ('12.3', '0.04', '0.003', '0.0', '-')
    """
    if math.isnan(share):
        return NOTHING
    size = 100 * abs(share)
    decimals = 1 if size >= 0.095 or size < 0.0005 else 2 if size >= 0.0095 else 3
    return f"{100 * float(share):z.{decimals}f}"


def rough_per_cent(share: float) -> str:
    """A share of rows in per cent, with two digits.

    Examples
    --------
    >>> rough_per_cent(0.1234), rough_per_cent(0.0123), rough_per_cent(-0.25), rough_per_cent(0.0)
    ('12', '1.2', '-25', '0')
    """
    if math.isnan(share):
        return NOTHING
    return f"{100 * share:z.0f}" if abs(share) >= 0.0995 or not share else f"{100 * share:.2g}"


def three(value: float) -> str:
    """Three digits of a number of any size.

    Examples
    --------
    >>> three(0.12345), three(1234.0), three(float("nan"))
    ('0.123', '1.23e+03', '-')
    """
    return NOTHING if math.isnan(value) else f"{value:.3g}"


def chance(q: float) -> str:
    """A q-value or p-value.

    Examples
    --------
    >>> chance(0.0312), chance(3e-9), chance(float("nan"))
    ('0.03', '<1e-4', '-')
    """
    return NOTHING if math.isnan(q) else f"{q:.1g}" if q >= 1e-4 else "<1e-4"


def rows(n: float) -> str:
    """Rows, which are whole unless they were weighted.

    Examples
    --------
    >>> rows(1500.0), rows(0.25), rows(float("nan"))
    ('1500', '0.2', '-')
    """
    return NOTHING if math.isnan(n) else f"{n:.0f}" if float(n).is_integer() else f"{n:.1f}"


def interval(low: float, high: float, shown: Callable[[float], str]) -> str:
    """Both ends, in the words of `shown`.

    Examples
    --------
    >>> interval(0.1, 0.15, per_cent), interval(float("nan"), float("nan"), per_cent)
    ('10.0 to 15.0', '-')
    """
    return NOTHING if math.isnan(low) and math.isnan(high) else f"{shown(low)} to {shown(high)}"
