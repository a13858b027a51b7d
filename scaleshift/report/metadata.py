"""What describes the samples of a result?  Its coordinates on `sample`, as columns of a table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr


def sample_columns(result: xr.Dataset, taken: Iterable[object]) -> dict[str, np.ndarray]:
    """Donor, day, arm, file name: whatever stands on `sample` beside its name.

    Parameters
    ----------
    result : xarray.Dataset
    taken : iterable
        Headings that the table has already: a column of that name gets "sample_" in front.

    Returns
    -------
    dict of str to numpy.ndarray, shape (n_samples,)
        Numbers, bools and text; times as text.

    Examples
    --------
    >>> told = {"sample": ["S1", "S2"], "donor": ("sample", [7, 8]), "flag": ("sample", ["a", "b"])}
    >>> columns = sample_columns(xr.Dataset(coords=told), ["flag"])
    >>> columns["donor"].tolist(), columns["sample_flag"].tolist()
    ([7, 8], ['a', 'b'])
    """
    used = {str(name) for name in taken}
    columns: dict[str, np.ndarray] = {}
    for name, values in result.coords.items():
        if values.dims != ("sample",) or name == "sample":
            continue
        heading = str(name)
        while heading in used:
            heading = f"sample_{heading}"
        used.add(heading)
        is_time = values.dtype.kind in "mM"
        columns[heading] = values.values.astype(str) if is_time else values.values
    return columns
