"""How does a value of any table become a cell, and its heading a column?  By its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from scaleshift.report.digits import NOTHING
from scaleshift.report.names import short
from scaleshift.report.pages.parts import Cell, Column

LONGEST_NAME = 40  # of a heading


def plain_column(heading: str, values: pd.Series) -> Column:
    """A column of numbers or of text.

    Examples
    --------
    >>> plain_column("day", pd.Series([0, 7])).kind, plain_column("donor", pd.Series(["a", "b"])).kind
    ('number', 'text')
    """
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    line = short(heading, LONGEST_NAME)
    return Column(line, "number" if numbers else "text", note="" if line == heading else heading)


def plain(value: Any) -> Cell:
    """Any value: a number with four digits, a count with all, else text.

    Examples
    --------
    >>> plain(0.123456).text, plain(12_000).text, plain(True).text, plain(float("nan")).text
    ('0.1235', '12,000', 'True', '-')
    """
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return Cell(NOTHING)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return Cell(str(value))
    known = float(value)
    return Cell(f"{value:,}" if pd.api.types.is_integer(value) else f"{known:.4g}", known)
