"""How do I show a result, whatever it is?  One table, one text and one picture for every kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pandas as pd

from scaleshift.report.kinds import kind_of
from scaleshift.report.printed import Printed

if TYPE_CHECKING:  # importing matplotlib takes longer than all of scaleshift
    from matplotlib.figure import Figure


def table(result: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> pd.DataFrame:
    """Any result in rows, and as a file for a spreadsheet.

    Parameters
    ----------
    result : xarray.Dataset or another result
        What any method of the library answers: proportions, a league of methods, slices, a ranking, expected
        errors, ...; also one that was opened from a store.
    path : path, optional
        Write the table there too; a file that is there is replaced as a whole. As CSV (``.csv``): in the
        file only, text that a spreadsheet would run as a formula (it starts with ``= + - @``, a tab or a
        carriage return) gets an apostrophe in front. Proportions and expected errors also as a workbook
        (``.xlsx``, with openpyxl).
    **options
        Of proportions: ``gated``, what `compare_gated` gives, adds the gates' shares as a column and a sheet;
        ``parents``, a gate hierarchy as in ``{"CD4": "T", "T": "lymphocytes"}``, adds rows of inner
        populations, and shares of the parent.

    Returns
    -------
    pandas.DataFrame
        Of proportions one row a sample and label, in the result's order: proportion and its interval,
        proportion_known, count (estimated number of cells), unknown and its interval, distance, misfit,
        p_value, n_cells, n_invalid, flag, then what is known of the samples (donor, day, ...); one that is
        called like a column gets ``sample_`` in front. Of other kinds as their own functions say, such as
        `slice_table`. NaN is a quantity that was not computed.

    Raises
    ------
    DataError
        If it is no result, or one that lacks a variable; if the suffix is another, the folder or openpyxl is
        missing, Excel could not hold the table, or `parents` run in a circle.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> y = np.repeat(["B", "T"], [300, 700])
    >>> X = np.where(y == "T", 5, 0)[:, None] + np.random.default_rng(0).normal(size=(1000, 2))
    >>> result = ss.ClassifyAndCount(random_state=0).fit(X, y).predict(X)
    >>> table(result)[["sample", "label", "proportion"]].round(1)
      sample label  proportion
    0    all     B         0.3
    1    all     T         0.7
    """
    return kind_of(result).show("table", result, path, **options)


def text(result: Any, *, width: int | None = None) -> Printed:
    """Any result for the terminal: for `print`, for a notebook, and for `rich`.

    Of proportions, in per cent, one row a sample with the labels as columns where that fits, else one row a
    sample and label, with the interval. Flags are letters; below the table stand the reasons in words, and
    what each letter means. Names are shown as they are: markup in them has no effect.

    Parameters
    ----------
    result : xarray.Dataset or another result
        What any method of the library answers.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, for `str`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If it is no result, or one that lacks a variable.

    Examples
    --------
    >>> import scaleshift as ss
    >>> print(text(ss.roc_auc(["B", "T", "T", "B"], [0.1, 0.4, 0.8, 0.4]), width=70))
    auc           0.875  area under the ROC curve
    bound             0  bound of the error
    n_positive        2  positive rows
    n_negative        2  negative rows
    n_unlabelled      0  rows left out
    """
    return kind_of(result).show("text", result, width=width)


def plot(result: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Any result as a picture.

    Proportions are stacked bars, one a sample, from the first sample at the top; the unknown share is grey
    and hatched, and an exclamation mark at the end of a bar says that the sample has a flag (`table` gives
    the reason). Their intervals are drawn by `interval_plot`. Colours are told apart with every common colour
    blindness.

    Parameters
    ----------
    result : xarray.Dataset or another result
        What any method of the library answers.
    path : path, optional
        Save the figure there too. The suffix must be ``.png``; a file that is there is replaced as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: needs no display and is freed like any object. A notebook shows it.

    Raises
    ------
    DataError
        If it is no result, lacks a variable, or has nothing that could be drawn; if the suffix is not
        ``.png`` or the folder is missing.

    Examples
    --------
    >>> import scaleshift as ss
    >>> figure = plot(ss.roc_auc(["B", "T", "T", "B"], [0.1, 0.4, 0.8, 0.4]))
    >>> figure.axes[0].get_title(loc="left")
    'area under the ROC curve'
    """
    return kind_of(result).show("plot", result, path)
