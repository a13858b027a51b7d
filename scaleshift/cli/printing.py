"""How does an answer reach whoever asked?  Tables on standard output, remarks on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

LEAST_WIDTH = 80  # columns


def show(text: Callable[..., Any], *results: Any, least: int = LEAST_WIDTH) -> None:
    """Print what `text`, a function of `scaleshift.report`, makes of results.

    A terminal that is narrower than the least width wraps lines, but no number is cut.
    """
    from rich.console import Console

    width = max(Console().width, least)
    Console(width=width).print(text(*results, width=width))


def say(remarks: Iterable[str], quiet: bool) -> None:
    """Print remarks, a line each, unless quiet: names in them come from files, and may hold control codes."""
    from scaleshift.report.names import printable

    for remark in [] if quiet else remarks:
        click.echo(printable(remark), err=True)


def left_out(n: int, what: str) -> list[str]:
    """What is to be said of rows that are not finite: nothing where there are none.

    Examples
    --------
    >>> left_out(0, "row"), left_out(2, "source cell")
    ([], ['2 source cells hold NaN or infinite values: left out'])
    """
    rows = f"1 {what} holds" if n == 1 else f"{n} {what}s hold"
    return [f"{rows} NaN or infinite values: left out"] if n else []


def wrote(paths: Iterable[Any]) -> str:
    """What is to be said of files that were written, two at least.

    Examples
    --------
    >>> wrote(["results/error.csv", "results/error.png", "results/error.zarr"])
    'wrote results/error.csv, results/error.png and results/error.zarr'
    """
    *names, last = map(str, paths)
    return f"wrote {', '.join(names)} and {last}"
