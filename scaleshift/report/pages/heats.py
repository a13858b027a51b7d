"""How are numbers by row and feature shown?  As a table coloured by size, the largest columns first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scaleshift.report.digits import NOTHING
from scaleshift.report.names import short
from scaleshift.report.pages.parts import Cell, Column, Grid

MOST = 20  # columns
LONGEST_NAME = 24  # characters of a heading; the mouse shows all


def heat(
    caption: str,
    of: str,
    rows: Sequence[Any] | np.ndarray,
    features: Sequence[Any] | np.ndarray,
    values: np.ndarray,
    full: float,
    notes: np.ndarray | None = None,
    shown: Callable[[float], str] = "{:+z.2f}".format,
) -> Grid:
    """A coloured table; features whose largest number is small are left out where there are many.

    Parameters
    ----------
    caption : str
    of : str
        What a row is.
    rows, features : sequence or ndarray
        Names.
    values : ndarray, shape (n_rows, n_features)
        NaN is not known.
    full : float
        Number that has the full colour.
    notes : ndarray of str, shape (n_rows, n_features), optional
        Shown where a mouse rests.
    shown : callable
        Text of a number.

    Examples
    --------
    >>> grid = heat("Shift", "sample", ["S1"], ["CD3", "CD4"], np.array([[0.1, -2]]), 2.0)
    >>> [column.heading for column in grid.columns], [cell.text for cell in grid.rows[0]]
    (['sample', 'CD4', 'CD3'], ['S1', '-2.00', '+0.10'])
    """
    size = np.nan_to_num(np.abs(values)).max(axis=0, initial=0.0)
    most = np.argsort(-size, kind="stable")[:MOST].tolist()
    columns = [Column(of)]
    for j in most:
        name = str(features[j])
        heading = short(name, LONGEST_NAME)
        columns.append(Column(heading, "heat", 0, full, note="" if heading == name else name))
    cells = [
        [
            Cell(str(name)),
            *(_cell(values[i, j], shown, "" if notes is None else str(notes[i, j])) for j in most),
        ]
        for i, name in enumerate(rows)
    ]
    left = len(features) - len(most)
    footnote = "" if left <= 0 else f"{left} that differ less are left out."
    return Grid(caption, columns, cells, footnote=footnote)


def _cell(value: float, shown: Callable[[float], str], note: str) -> Cell:
    return Cell(NOTHING) if np.isnan(value) else Cell(shown(value), float(value), note=note)
