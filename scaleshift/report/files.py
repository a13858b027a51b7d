"""How does a report get onto disk?  As a whole or not at all, and never as a formula."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd

from scaleshift import full_disk
from scaleshift.errors import DataError

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure

DOTS = 150  # an inch of a picture
FORMULA_STARTS = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
)  # wide ones: spreadsheets in Japanese


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
    temporary = target.with_name(f".{uuid4().hex}{target.suffix}")  # no name that others could put a link at
    try:
        with full_disk.told(target, "then write it again"):
            yield temporary
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure; names in scripts that the font lacks become boxes."""
    with replacing(path, ".png") as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(temporary, dpi=DOTS)


def save_csv(frame: pd.DataFrame, path: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Write a data frame where a path is given, under the rules of `write_csv`; give it back."""
    if path is not None:
        text = [str(name) for name in frame if frame[name].dtype.kind not in "biufmM"]
        with replacing(path, ".csv") as temporary:
            write_csv(frame, temporary, text)
    return frame


def write_csv(frame: pd.DataFrame, path: Path, text: list[str]) -> None:
    """Write a data frame; an apostrophe goes before what a spreadsheet would run.

    That is looked for in the headings and in the `text` columns.
    """
    safe = frame.assign(**{name: frame[name].map(_no_formula) for name in text})
    safe = safe.rename(columns=_no_formula)
    # A carriage return ends a line for spreadsheets, and pandas would not put it in quotes.
    every = (str(value) for name in safe for value in (name, *(safe[name] if name in text else ())))
    ends_lines = any("\r" in value for value in every)
    safe.to_csv(
        path,
        index=False,
        quoting=csv.QUOTE_NONNUMERIC if ends_lines else csv.QUOTE_MINIMAL,
        errors="replace",  # half a character, as in the name of a file that is no UTF-8
    )


def _no_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
