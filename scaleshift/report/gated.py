"""How far are the estimates from the gates?  Gated shares beside estimated ones, where samples have both."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks import passes
from scaleshift.blocks.rows import as_rows
from scaleshift.cells.problem import several
from scaleshift.cells.schema import check_cells
from scaleshift.errors import DataError
from scaleshift.report.files import save_csv
from scaleshift.report.proportions import require

ESTIMATES = {"estimated": "proportion", "low": "proportion_low", "high": "proportion_high"}


def compare_gated(
    result: xr.Dataset, cells: xr.Dataset, path: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Gated shares beside the estimated ones: a check on samples whose labels were not learned from.

    Gated is a label's cells over all cells of the sample, those without a label and those with NaN included.
    Labels and samples are matched by name. One pass over samples and labels; X is not read.

    Parameters
    ----------
    result : xarray.Dataset
        What a quantifier's ``predict`` returns, with dimensions (sample, label).
    cells : xarray.Dataset
        The same samples, as `scaleshift.open_cells` or `scaleshift.as_cells` give them, with their labels.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        One row a sample that both have and a label, in the result's order; labels that only the gates have
        come last. Columns: sample, label, gated, estimated, low, high (shares of all cells), difference
        (estimated - gated) and inside (whether the interval holds the gated share; <NA> where something is
        missing). `gated` is NaN for a sample without any labelled cell.

    Raises
    ------
    SchemaError
        If `cells` is no cells dataset.
    DataError
        If `result` is no result, both have no sample in common, or the path is not fit.

    Examples
    --------
    >>> import scaleshift as ss
    >>> gates = ["B"] * 4 + ["T", None] * 2
    >>> cells = ss.as_cells(np.arange(8.0)[:, None], sample=["S1", "S2"] * 4, label=gates)
    >>> result = ss.DFM(random_state=0, bandwidth=2.0).fit(cells).predict(cells)
    >>> compare_gated(result, cells)[["sample", "label", "gated"]]
      sample label  gated
    0     S1     B    0.5
    1     S1     T    0.5
    2     S2     B    0.5
    3     S2     T    0.0
    """
    require(result, *ESTIMATES.values())
    check_cells(cells)
    gated = _gated(cells)
    samples = [name for name in result["sample"].values.tolist() if name in gated.index]
    if not samples:
        raise DataError(
            f"no sample of the result is among the cells ({several(result['sample'].values.tolist(), 3)}; "
            f"in the cells: {several(cells['sample'].values.tolist(), 3)}): pass those that were predicted"
        )
    labels = result["label"].values.tolist()
    only_gated = [name for name in gated.columns if name not in labels and gated[name].gt(0).any()]
    frame = _beside(result, gated.loc[samples], [*labels, *only_gated])
    return save_csv(frame, path)


@dataclass(frozen=True)
class GatedSummary:
    """How far estimates are from the gates, over all samples and labels that have both.

    Attributes
    ----------
    n : int
        Pairs of a gated and an estimated share.
    mean_difference, largest_difference : float
        Absolute differences of the shares, from 0 to 1; NaN without pairs.
    inside : float
        Share of the intervals that hold the gated share; NaN without intervals.
    ungated : tuple of float
        Smallest and largest share of cells without a label, of samples that have labels.

    Examples
    --------
    >>> summary = GatedSummary(4, 0.02, largest_difference=0.05, inside=np.nan, ungated=(0.0, 0.1))
    >>> str(summary)
    'proportions differ by 2.0 percentage points on average, by 5.0 at most'
    """

    n: int
    mean_difference: float
    largest_difference: float
    inside: float
    ungated: tuple[float, float]

    def __str__(self) -> str:
        if not self.n:
            return "no sample has both, gated and estimated shares"
        intervals = (
            "" if np.isnan(self.inside) else f"; {self.inside:.0%} of the intervals hold the gated share"
        )
        return (
            f"proportions differ by {100 * self.mean_difference:.1f} percentage points on average, "
            f"by {100 * self.largest_difference:.1f} at most{intervals}"
        ).replace("%", " %")


def summarize_gated(frame: pd.DataFrame) -> GatedSummary:
    """Sum up what `compare_gated` gives.

    Parameters
    ----------
    frame : pandas.DataFrame

    Returns
    -------
    GatedSummary
        Its text is a sentence.

    Examples
    --------
    >>> frame = pd.DataFrame({"sample": "S1", "gated": [0.2, 0.6], "difference": [0.1, -0.3], "inside": True})
    >>> summary = summarize_gated(frame)
    >>> str(summary)[:78]
    'proportions differ by 20.0 percentage points on average, by 30.0 at most; 100 '
    >>> summary.n, round(summary.ungated[0], 2)
    (2, 0.2)
    """
    difference = frame["difference"].abs().dropna()
    inside = frame["inside"].dropna()
    ungated = 1 - frame.groupby("sample", sort=False)["gated"].sum(min_count=1).dropna()
    return GatedSummary(
        n=len(difference),
        mean_difference=float(difference.mean()),
        largest_difference=float(difference.max()),
        inside=float(inside.mean()) if len(inside) else np.nan,
        ungated=(float(ungated.min()), float(ungated.max())),
    )


def _gated(cells: xr.Dataset) -> pd.DataFrame:
    """Share of each label in each sample, (n_samples, n_labels), by name: one pass over the codes."""
    samples, labels = cells["sample"].values.tolist(), cells["label"].values.tolist()
    shares = pd.DataFrame(
        np.nan, index=pd.Index(samples, dtype=object), columns=pd.Index(labels, dtype=object)
    )
    rows = as_rows(cells)
    if "label" not in rows.columns:
        return shares
    counts = passes.crossed(rows, "sample", "label")  # unlabelled cells come first
    has_labels = counts[:, 1:].any(axis=1)
    shares.loc[has_labels] = counts[has_labels, 1:] / counts[has_labels].sum(axis=1, keepdims=True)
    return shares


def _beside(result: xr.Dataset, gated: pd.DataFrame, labels: list[Any]) -> pd.DataFrame:
    """Both kinds of shares in long form, what only one has as NaN."""
    samples = gated.index.tolist()
    filled = gated.reindex(columns=pd.Index(labels, dtype=object))
    # A label that the cells do not name has no cells; NaN is a sample without gates.
    filled = filled.mask(filled.isna() & gated.notna().any(axis=1).to_numpy()[:, None], 0.0)
    frame = pd.DataFrame(
        {
            "sample": np.repeat(np.array(samples, object), len(labels)),
            "label": np.tile(np.array(labels, object), len(samples)),
            "gated": filled.to_numpy().ravel(),
        }
    ).infer_objects()
    chosen = result[list(ESTIMATES.values())].sel(sample=samples).transpose("sample", "label")
    for name, variable in ESTIMATES.items():
        values = np.full((len(samples), len(labels)), np.nan)
        values[:, : chosen.sizes["label"]] = chosen[variable].values
        frame[name] = values.ravel()
    frame["difference"] = frame["estimated"] - frame["gated"]
    known = frame[["gated", "low", "high"]].notna().all(axis=1)
    inside = (frame["low"] <= frame["gated"]) & (frame["gated"] <= frame["high"])
    frame["inside"] = pd.arrays.BooleanArray(inside.to_numpy(), ~known.to_numpy())
    return frame
