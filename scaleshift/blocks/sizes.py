"""Bytes, times and counts, in words for people."""

from __future__ import annotations


def size(n_bytes: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> size(999), size(3_200_000_000)
    ('999 B', '3.2 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{_digits(n_bytes)} {unit}"
        n_bytes /= 1000
    return f"{_digits(n_bytes)} TB"


def duration(seconds: float) -> str:
    """Seconds for people.

    Examples
    --------
    >>> duration(0.0123), duration(75), duration(300), duration(9_000)
    ('0.012 s', '75 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{_digits(seconds)} s"
    return f"{_digits(seconds / 60)} min" if seconds < 7200 else f"{_digits(seconds / 3600)} h"


def core_time(seconds: float) -> str:
    """Seconds of one core for people.

    Examples
    --------
    >>> core_time(3), core_time(5_040)
    ('3 core-seconds', '1.4 core-hours')
    """
    if seconds < 60:
        return f"{_digits(seconds)} core-seconds"
    return f"{_digits(seconds / 3600)} core-hours"


def _digits(number: float) -> str:
    """Two digits of a small number, all of a large one."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"


def count(n: int, one: str, many: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "pass", "passes"), count(2_000, "pass", "passes")
    ('1 pass', '2,000 passes')
    """
    return f"{n:,} {one if n == 1 else many}"
