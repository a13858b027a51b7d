"""What is wrong with which sample?  In rows, and for the terminal."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr
from rich import box
from rich.table import Table
from rich.text import Text

from scaleshift.errors import DataError
from scaleshift.report.digits import per_cent
from scaleshift.report.files import save_csv
from scaleshift.report.metadata import sample_columns
from scaleshift.report.names import printable, short
from scaleshift.report.printed import Printed

OF_SAMPLE = ("verdict", "n_cells", "distance", "distance_recentred", "misfit", "misfit_recentred")
UNKNOWN = ("unknown", "unknown_recentred", "n_unknown")
LONGEST_NAME = 24  # characters
CAPTION = (
    "shift: of the marker that moved most, in standard deviations within the classes; misfit and unknown "
    "share before and after each class was moved back to where it lies in the source"
)


def diagnosis_table(result: xr.Dataset, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Samples in rows: the verdict, its numbers, and how far each marker moved.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.diagnose` returns.
    path : path, optional
        Write the table there too, as CSV, under the rules of `table`.

    Returns
    -------
    pandas.DataFrame
        Columns sample, verdict, moved (the markers that moved most, between semicolons), the numbers by
        sample, a column "shift: MARKER" for each marker, then what is known of the samples.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> diagnosis_table(_example())[["sample", "verdict", "moved", "shift: CD3"]]
      sample      verdict     moved  shift: CD3
    0     S1  batch shift  CD3; CD4         1.2
    """
    result = required(result)
    columns = {
        "sample": result["sample"].values,
        "verdict": result["verdict"].values,
        "moved": _moved(result),
    }
    columns |= {name: result[name].values for name in (*OF_SAMPLE[1:], *UNKNOWN)}
    shift = result["shift"].transpose("sample", "marker").values
    columns |= {f"shift: {name}": shift[:, i] for i, name in enumerate(result["marker"].values)}
    columns |= sample_columns(result, list(columns))
    return save_csv(pd.DataFrame(columns), path)


def diagnosis_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Samples for the terminal: what is wrong with each, and which markers moved.

    Parameters
    ----------
    result : xarray.Dataset
        What `scaleshift.quantify.diagnose` returns.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If the result is another one.

    Examples
    --------
    >>> print(diagnosis_text(_example(), width=78).renderables[0].columns[1]._cells[0])
    batch shift
    """
    result = required(result)
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("sample", "verdict", "moved most"):
        shown.add_column(heading, overflow="fold")
    for heading in ("shift", "misfit %", "unknown %"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for i, moved in enumerate(_moved(result)):
        one = result.isel(sample=i)
        shift = one["shift"].values
        farthest = shift[np.argmax(np.abs(np.nan_to_num(shift)))] if shift.size else np.nan
        cells = [
            short(one["sample"].item(), LONGEST_NAME),
            one["verdict"].item(),
            "" if np.isnan(farthest) else moved,
            "-" if np.isnan(farthest) else f"{farthest:+.2f}",
            *(
                f"{per_cent(one[name].item())} → {per_cent(one[f'{name}_recentred'].item())}"
                for name in ("misfit", "unknown")
            ),
        ]
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    return Printed(shown, Text(CAPTION, "italic"), width=width)


def required(result: xr.Dataset) -> xr.Dataset:
    """The result in memory.

    Raises
    ------
    DataError
        If it is another one.
    """
    lacking = [name for name in (*OF_SAMPLE, *UNKNOWN, "moved", "shift") if name not in result]
    if lacking or not {"sample", "marker"} <= set(result.dims):
        raise DataError(
            f"this is no diagnosis: it lacks {', '.join(lacking) or 'samples or markers'}; pass what "
            "scaleshift.quantify.diagnose returns"
        )
    return result.compute()


def _moved(result: xr.Dataset) -> list[str]:
    """Names of the markers that moved most, by sample."""
    return [
        "; ".join(filter(None, map(str, row))) for row in result["moved"].transpose("sample", "rank").values
    ]


def _example() -> xr.Dataset:
    """One sample, for the examples of this page."""
    numbers = {name: ("sample", [0.1]) for name in (*OF_SAMPLE[1:], *UNKNOWN)}
    return xr.Dataset(
        {
            **numbers,
            "verdict": ("sample", ["batch shift"]),
            "moved": (("sample", "rank"), [["CD3", "CD4"]]),
            "shift": (("sample", "marker"), [[1.2, -0.1]]),
        },
        coords={"sample": ["S1"], "marker": ["CD3", "CD4"]},
    )
