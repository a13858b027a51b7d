"""Where do the markers of each sample lie, and how widely? One pass over the cells, for all samples."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy import sparse

from scaleshift.blocks import passes, states
from scaleshift.blocks.block import Block
from scaleshift.blocks.rows import as_rows
from scaleshift.cells.schema import SAMPLE
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

Method = Literal["robust", "z"]
METHODS = ("robust", "z")
QUANTILES = (0.01, 0.99)
DRAWN = 4_096  # rows of a sample that stand for it; all of them where there are fewer
CONSTANT = 1e-9  # float32 differs by 6e-8 at least: a scale below this share of the location is rounding
TILE = 8_192  # rows that are held in float64 at once

Pair = tuple[np.ndarray, np.ndarray]


def check_method(method: Any) -> None:
    """Raise DataError for a method that there is not."""
    if method not in METHODS:
        raise DataError(f"scaling={method!r}: expected {' or '.join(map(repr, METHODS))}")


def location_scale(values: np.ndarray, method: Method) -> Pair:
    """Location and scale of each column.

    Parameters
    ----------
    values : numpy.ndarray, shape (n, n_markers)
        Values that are not finite are passed over.
    method : {"robust", "z"}
        "robust": the 1 % quantile, and its distance to the 99 % quantile. "z": mean and standard deviation.

    Returns
    -------
    location, scale : numpy.ndarray of float64, shape (n_markers,)
        A constant column has the scale 1; one without values 0 and 1.

    Examples
    --------
    >>> location, scale = location_scale(np.arange(101.0)[:, None], "robust")
    >>> location.tolist(), scale.tolist()
    ([1.0], [98.0])
    """
    check_method(method)
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    location, scale_ = np.zeros(values.shape[1]), np.ones(values.shape[1])
    if len(values) and finite.all():
        location, scale_ = _columns(values, method)
    else:
        for i in np.flatnonzero(finite.any(axis=0)):
            (location[i],), (scale_[i],) = _columns(values[finite[:, i], i : i + 1], method)
    return location, scale_


def _columns(values: np.ndarray, method: Method) -> Pair:
    if method == "z":
        location = values.mean(axis=0)
        return location, _usable(location, values.std(axis=0))
    low, high = np.quantile(values, QUANTILES, axis=0)
    return low, _usable(low, high - low)


def _usable(location: np.ndarray, scale_: np.ndarray) -> np.ndarray:
    return np.where(scale_ > CONSTANT * np.abs(location), scale_, 1)


def sample_location_scale(cells: xr.Dataset, method: Method) -> Pair:
    """Location and scale of each sample's markers: one pass over the cells, and one over their sample codes.

    Parameters
    ----------
    cells : xarray.Dataset
    method : {"robust", "z"}
        As in `location_scale`. The quantiles of a sample of more than 4 096 cells are those of so many drawn
        at random, the same for any chunks.

    Returns
    -------
    location, scale : numpy.ndarray of float64, shape (n_samples, n_markers)
        0 and 1 for samples without cells. Cells that are not finite do not count.

    Examples
    --------
    >>> from scaleshift.cells import as_cells
    >>> sample_location_scale(as_cells([[1.0], [3.0], [7.0]], sample=["a", "a", "b"]), "z")[0].tolist()
    [[2.0], [7.0]]
    """
    check_method(method)
    rows = as_rows(cells, invalid="drop").only(SAMPLE)
    n_samples = len(rows.categories(SAMPLE))
    location, scale = np.zeros((n_samples, rows.n_markers)), np.ones((n_samples, rows.n_markers))
    if method == "z":
        found = passes.total(moments, rows, None, merge=merge_moments)
        spread = np.sqrt(found["squares"] / found["n"][:, None])
        found = {"key": found["key"], "location": found["mean"], "scale": _usable(found["mean"], spread)}
    else:
        n_rows = passes.counts(rows, SAMPLE)
        merge = functools.partial(merge_quantiles, n_rows)
        found = passes.total(quantiles, rows, None, merge=merge, n_rows=n_rows)
    location[found["key"]], scale[found["key"]] = found["location"], found["scale"]
    return location, scale


# Mean and sum of squared deviations, which can be merged without cancellation --------------------------


def moments(block: Block) -> dict[str, np.ndarray]:
    """Of every sample of one block: key, n, mean, squares; rows that are not finite left out."""
    x, code = to_numpy(block.x), block.codes(SAMPLE)
    state = _moments(x[:0], code[:0])
    for first in range(0, len(x), TILE):
        rows = slice(first, first + TILE)
        valid = code[rows] >= 0
        state = merge_moments(state, _moments(x[rows][valid], code[rows][valid]))
    return state


def _moments(x: np.ndarray, code: np.ndarray) -> dict[str, np.ndarray]:
    key, group, n = np.unique(code, return_inverse=True, return_counts=True)
    member = sparse.csr_array((np.ones(len(x)), (group, np.arange(len(x)))), (len(key), len(x)))
    x = x.astype(np.float64)
    mean = (member @ x) / n[:, None]
    return {"key": key, "n": n, "mean": mean, "squares": member @ (x - mean[group]) ** 2}


def merge_moments(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The moments of the rows of both."""
    key = np.union1d(a["key"], b["key"])
    both = []
    for part in (a, b):
        n, tables = np.zeros(len(key)), np.zeros((2, len(key), part["mean"].shape[1]))
        place = np.searchsorted(key, part["key"])
        n[place], tables[:, place] = part["n"], (part["mean"], part["squares"])
        both.append((n[:, None], *tables))
    (n_a, mean_a, squares_a), (n_b, mean_b, squares_b) = both
    share, step = n_b / (n_a + n_b), mean_b - mean_a
    return {
        "key": key,
        "n": (n_a + n_b)[:, 0],
        "mean": mean_a + step * share,
        "squares": squares_a + squares_b + step**2 * n_a * share,
    }


# Quantiles of rows drawn at random, taken as soon as a sample's last row is seen -----------------------


def quantiles(block: Block, n_rows: np.ndarray) -> dict[str, Any]:
    """Of the samples that lie in one block: key, location, scale; of others the rows drawn so far."""
    wanted = np.full(len(n_rows), DRAWN)
    rows = states.smallest(block, wanted, SAMPLE, seed=0, stream="scaling")
    seen = np.bincount(block.columns[SAMPLE], minlength=len(n_rows))
    some = np.flatnonzero(seen)
    none = np.empty((0, block.x.shape[1]))
    done = {"key": some[:0], "location": none, "scale": none}
    return _finished({"open": some, "seen": seen[some], "rows": rows, **done}, n_rows)


def merge_quantiles(n_rows: np.ndarray, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """The same of both."""
    some, place = np.unique(np.concatenate([a["open"], b["open"]]), return_inverse=True)
    seen = np.bincount(place, np.concatenate([a["seen"], b["seen"]]), minlength=len(some)).astype(np.int64)
    rows = states.merge_smallest(np.full(len(n_rows), DRAWN), a["rows"], b["rows"])
    done = {name: np.concatenate([a[name], b[name]]) for name in ("key", "location", "scale")}
    return _finished({"open": some, "seen": seen, "rows": rows, **done}, n_rows)


def _finished(state: dict[str, Any], n_rows: np.ndarray) -> dict[str, Any]:
    """Samples whose rows are all seen give their quantiles, and their rows go."""
    last = state["seen"] == n_rows[state["open"]]
    if not last.any():
        return state
    complete, rows = state["open"][last], state["rows"]
    edges = [np.searchsorted(rows["code"], complete, side) for side in ("left", "right")]
    found = [location_scale(rows["x"][i:j], "robust") for i, j in zip(*edges, strict=True)]
    kept = ~np.isin(rows["code"], complete)
    return {
        "open": state["open"][~last],
        "seen": state["seen"][~last],
        "rows": {name: values[kept] for name, values in rows.items()},
        "key": np.concatenate([state["key"], complete]),
        "location": np.concatenate([state["location"], [location for location, _ in found]]),
        "scale": np.concatenate([state["scale"], [scale for _, scale in found]]),
    }
