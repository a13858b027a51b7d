"""What did the files hold, before compensation, transform and scaling?  Brought back from a study."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import zarr

from scaleshift.blocks import computing
from scaleshift.cells.manifest import Manifest, locate, open_study
from scaleshift.cells.reader import read_text
from scaleshift.cells.schema import X
from scaleshift.cells.store import open_cells
from scaleshift.cells.treatment.compensation import Spillover, positions, spill_over
from scaleshift.cells.treatment.scaling import unscale
from scaleshift.cells.treatment.transform import from_json, inverse_columns
from scaleshift.errors import DataError


def raw_events(path: str | os.PathLike[str], sample: Any) -> pd.DataFrame:
    """Events of one sample of an imported study as its files had them, to the precision of float32.

    Logarithmic amplifiers, gains and the clock of old files ($PnE, $PnG, $TIMESTEP) stay linearised.

    Parameters
    ----------
    path : path or URL
        A study that `ingest` made.
    sample : str
        Its name; the sample is held in memory.

    Returns
    -------
    pandas.DataFrame
        One row an event in the order of the files, one column a marker of the study.

    Raises
    ------
    DataError
        If the study was not made by `ingest`, has no such sample, or lacks a detector of a spillover matrix,
        without which the compensation cannot be undone.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import ingest
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s1.csv").write_text("CD3,CD4" + chr(10) + "10,200")
    ...     _ = ingest(folder, f"{folder}/study.zarr", transform="arcsinh:150")
    ...     raw_events(f"{folder}/study.zarr", "s1").round(3).values.tolist()
    [[10.0, 200.0]]
    """
    location = locate(path)
    group, manifest = open_study(location)
    if manifest.plan is None:
        raise DataError(
            f"{location} was not made by ingest: what was done to its intensities is not known; open_cells "
            "gives them as they are"
        )
    cells = open_cells(location, samples=[sample], markers="all")
    with computing.in_our_words():
        cells = (unscale(cells) if manifest.scaling else cells).compute()
    transforms = from_json(manifest.transform)
    events = inverse_columns(cells[X].values, [transforms[name] for name in manifest.markers])
    matrices = {key: Spillover.from_json(value) for key, value in _texts(group, "spillover").items()}
    files, first = [file for file in manifest.files if file["sample"] == str(sample)], 0
    if sum(file["n_events"] for file in files) != len(events):
        raise DataError(
            f"{location}: sample {sample!r} was appended: its raw events are in the study it came from"
        )
    for file in files:
        rows = slice(first, first + file["n_events"])
        if file["spillover"] is not None:
            spillover = matrices[file["spillover"]]
            columns = _detectors(spillover, manifest, file)
            events[rows] = spill_over(events[rows], columns, spillover)
        first = rows.stop
    return pd.DataFrame(events, columns=list(manifest.markers))


def _texts(group: zarr.Group, name: str) -> dict[str, Any]:
    array = group[f"uns/{name}"]
    assert isinstance(array, zarr.Array)
    return dict(json.loads(read_text(array)))


def _detectors(spillover: Spillover, manifest: Manifest, file: Mapping[str, Any]) -> np.ndarray:
    """The study's column of each channel of a matrix, by what the file calls them."""
    channels, path = file.get("channels", manifest.var["channel"]), file["path"]
    try:
        return positions(spillover, channels, manifest.markers, path)
    except DataError as error:
        raise DataError(
            f"the compensation of {path} cannot be undone from {manifest.path}: {error}"
        ) from error
