"""Which features rank the positives, and how well?  In rows."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.report.auc import FEATURES, PATH, SEVERAL, contrasts
from scaleshift.report.auc_words import ranked
from scaleshift.report.files import save_csv


def auc_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Features in rows: those of the ranking by weight, then the others by how often they were chosen.

    Parameters
    ----------
    result : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns rank, feature, coef, coef_scaled, selected, stability, auc_alone, mean_positive,
        mean_negative; of several contrasts, one after the other, with a first column contrast.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> from scaleshift.report.auc import _example
    >>> auc_table(_example())[["rank", "feature", "coef_scaled", "stability"]]
       rank feature  coef_scaled  stability
    0     1     CD3          0.5        1.0
    1     2    CD19          0.0        0.2
    """
    tables = []
    for name, one in contrasts(result, FEATURES, "features", "describe()"):
        order = ranked(one)
        columns: dict[str, object] = {} if name is None else {SEVERAL: [name] * len(order)}
        columns |= {"rank": np.arange(1, len(order) + 1), "feature": one["feature"].values[order]}
        tables.append(pd.DataFrame(columns | {key: one[key].values[order] for key in FEATURES}))
    return save_csv(pd.concat(tables, ignore_index=True), path)


def auc_path_table(path_: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Rankings by number of features, in rows.

    Parameters
    ----------
    path_ : xarray.Dataset
        ``path_`` of a `SparseAUC`.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns k, selected, auc, auc_se, auc_bound, auc_binormal, objective, features (names of those with a
        weight, between semicolons); of several contrasts with a first column contrast.

    Raises
    ------
    DataError
        If it is another dataset.

    Examples
    --------
    >>> from scaleshift.report.auc import _example_path
    >>> auc_path_table(_example_path())[["k", "auc", "features"]]
       k   auc   features
    0  1  0.91        CD3
    1  2  0.92  CD3; CD19
    """
    tables = []
    for name, one in contrasts(path_, PATH, "path", "path_"):
        features = one["feature"].values
        used = np.nan_to_num(one["coef"].transpose("k", "feature").values) != 0
        columns: dict[str, object] = {} if name is None else {SEVERAL: [name] * one.sizes["k"]}
        columns["k"] = one["k"].values
        columns |= {str(n): one[n].values for n in one.data_vars if one[n].dims == ("k",)}
        columns["features"] = ["; ".join(map(str, features[row])) for row in used]
        table = pd.DataFrame(columns)
        tables.append(table[table["auc_binormal"].notna()])  # sizes that only another contrast has
    return save_csv(pd.concat(tables, ignore_index=True), path)
