"""How does a report get onto disk?  As a whole or not at all, and never as a formula."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from scaleshift.errors import DataError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def replacing(path: str | os.PathLike[str], *suffixes: str) -> Iterator[Path]:
    """Give a temporary path beside `path`, which replaces it once it is written, or vanishes."""
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise DataError(
            f"{target}: only {' or '.join(suffixes)} is written so far; "
            f"give a name that ends in {' or '.join(suffixes)}"
        )
    if not target.parent.is_dir():
        raise DataError(f"{target}: there is no folder {target.parent}; create it first")
    temporary = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(frame: pd.DataFrame, path: Path, text: list[str]) -> None:
    """Write a data frame; an apostrophe goes before what a spreadsheet would run.

    That is looked for in the headings and in the `text` columns.
    """
    safe = frame.assign(**{name: frame[name].map(_no_formula) for name in text})
    safe.rename(columns=_no_formula).to_csv(path, index=False)


def _no_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
