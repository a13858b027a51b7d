"""Which results does a folder hold?  Those that verbs left there, read again for a report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleshift import __version__
from scaleshift.cli import zarr_groups
from scaleshift.errors import DataError, ScaleshiftError, one_line

if TYPE_CHECKING:
    import xarray as xr

PROPORTIONS, GATED = "proportions.zarr", "gated.csv"
LEAGUE, SLICES, ERROR = "league.zarr", "slices.zarr", "error.zarr"
FEATURES, PATH = "features.zarr", "path.zarr"
GROUPS = (PROPORTIONS, LEAGUE, SLICES, FEATURES, PATH, ERROR)
COLUMNS: Any = {"sample": str, "label": str, "inside": "boolean"}
MAKERS = "scaleshift quantify, compare, slices, auc and error leave there what a report is made of"


def results_of(path: Path) -> list[Any]:
    """The results of a folder that --output named, or the one of a single .zarr in it.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of xarray.Dataset and pandas.DataFrame

    Raises
    ------
    DataError
        If nothing is there that a report could be made of, or it cannot be read.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist: expected a folder that --output of a verb named; {MAKERS}")
    if not path.is_dir():
        raise DataError(
            f"{path} is a file: expected the folder in which it lies, or a .zarr in that folder; {MAKERS}"
        )
    if (path / "zarr.json").exists():
        return [_read(path)]
    found: list[Any] = [_read(path / name) for name in GROUPS if (path / name).is_dir()]
    if not found:
        raise DataError(
            f"{path} holds none of {', '.join(GROUPS)}: run the verb again with --output; {MAKERS}"
        )
    if (path / PROPORTIONS).is_dir() and (path / GATED).is_file():
        found.insert(1, _gated(path / GATED))
    return found


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Say where it was if a result is not as a verb wrote it: anything may be missing, or forged."""
    try:
        yield
    except (ScaleshiftError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"{path} holds something else than what a verb of scaleshift {__version__} writes "
            f"({type(error).__name__}: {one_line(error)}): run the verb again"
        ) from error


def _read(path: Path) -> xr.Dataset:
    result = zarr_groups.read(path)
    if zarr_groups.OURS not in result.attrs:
        what = "a study, and no result" if "X" in result else "no result of scaleshift"
        raise DataError(f"{path} is {what}; {MAKERS}")
    return result


def _gated(path: Path) -> Any:
    """Gated shares beside the estimated ones."""
    import pandas as pd

    if path.is_symlink():
        raise DataError(f"{path} is a link: put a copy of what it points to in its place")

    try:
        return pd.read_csv(path, dtype=COLUMNS, float_precision="round_trip")
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is not what scaleshift quantify wrote ({error}): run it again") from error
