"""What are the rows that a score ranks?  Labels, scores and weights as one, looked at before they count."""

from __future__ import annotations

import functools
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.auc.moments import HEAVIEST
from scaleshift.auc.pairs import signs_of
from scaleshift.blocks import passes, states
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.rows import as_rows, known_length, with_numbers
from scaleshift.errors import DataError

NEVER = np.iinfo(np.int64).max  # row number where there is none


def rows_of(y: Any, score: Any, sample_weight: Any = None) -> Rows:
    """Rows of the columns label, score and, where given, weight: aligned, and without an X.

    Raises
    ------
    DataError
        If they are not one-dimensional, of other lengths, no numbers, or named in another order by pandas.
    """
    given = {"y": y, "score": score, "sample_weight": sample_weight}
    _refuse_other_order(given)
    values = {
        name: _one_dimensional(name, v)
        for name, v in given.items()
        if name != "sample_weight" or v is not None
    }
    lengths = {name: len(v) for name, v in values.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise DataError(f"rows differ in number ({found}): pass one label, score and weight a row")
    lazy = next(
        (values[name] for name in ("score", "y", "sample_weight") if _is_lazy(values.get(name))), None
    )
    n = lengths["score"]
    instead_of_x = np.zeros((n, 1), np.int8) if lazy is None else _nothing(lazy.chunks[0])
    rows = as_rows(instead_of_x, values["y"])
    numbers = {"score": values["score"], "weight": values.get("sample_weight")}
    rows = with_numbers(rows, **{name: v for name, v in numbers.items() if v is not None})
    return rows.only(*(name for name in rows.columns if name != "sample"))


def _nothing(sizes: tuple[int, ...]) -> da.Array:
    return da.zeros((sum(sizes), 1), chunks=(sizes, 1), dtype=np.int8)


def _is_lazy(values: Any) -> bool:
    return isinstance(values, da.Array)


def _one_dimensional(name: str, values: Any) -> Any:
    """One value a row; the blocks of lazy ones have known sizes."""
    if isinstance(values, xr.DataArray):
        values = values.data
    if hasattr(values, "to_dask_array"):
        raise DataError(f"{name} is a column of a Dask data frame: pass {name}.to_dask_array()")
    if name != "y" and isinstance(getattr(values, "_meta", values), np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array: leave masked rows out, or fill them first")
    shape = values.shape if hasattr(values, "shape") else np.shape(values)
    if len(shape) == 2 and name == "score":
        raise DataError(
            f"score has the shape {tuple(shape)}: pass one number a row, as the positive label's column, "
            "score[:, 1]"
        )
    if len(shape) != 1:
        raise DataError(f"{name} has {len(shape)} dimensions: expected one value a row")
    return known_length(values) if _is_lazy(values) else values


def _refuse_other_order(given: dict[str, Any]) -> None:
    """Refuse columns whose rows pandas names differently: labels would get the scores of others."""
    series = {name: v for name, v in given.items() if isinstance(v, pd.Series)}
    for name, values in series.items():
        first_name, first = next(iter(series.items()))
        if len(values) == len(first) and not values.index.equals(first.index):
            raise DataError(
                f"{first_name} and {name} have rows of different names or order: bring them to the same with "
                f"{name}.loc[{first_name}.index], or pass {name}.to_numpy() if their positions agree"
            )


# A first look: what both methods need to know -------------------------------------------------------------


def look(rows: Rows, signs: np.ndarray, n_drawn: int) -> dict[str, Any]:
    """Count rows and weigh classes, and draw scores: one pass.

    Parameters
    ----------
    rows : Rows
        As `rows_of` makes them.
    signs : numpy.ndarray, shape (n_labels,)
        +1 for the positive labels, -1 for the others.
    n_drawn : int
        Scores wanted, of labelled rows.

    Returns
    -------
    dict
        n_rows (3,) int64: unlabelled, positive, negative rows; weight (2,): of positive and negative ones,
        whole numbers where no weights were given; drawn (k,): the same scores for any chunking.

    Raises
    ------
    DataError
        For scores that are NaN and weights that are no finite numbers from 0, in labelled rows.
    """
    n = np.array([n_drawn])
    state = passes.total(looked, rows, None, merge=functools.partial(merge_looked, n), signs=signs, n=n)
    count, first = state["nan"]
    if count:
        raise DataError(
            f"score is NaN in {count} rows, first in row {first}: mend them, or leave these rows out "
            "(a label of None leaves a row out)"
        )
    count, first = state["odd"]
    if count:
        raise DataError(
            f"sample_weight is negative or not finite in {count} rows, first in row {first}, or beyond "
            f"{1 / HEAVIEST:g} to {HEAVIEST:g}: expected numbers from 0, which leaves a row out"
        )
    return {**{name: state[name] for name in ("n_rows", "weight")}, "drawn": state["drawn"]["x"][:, 0]}


def looked(block: Block, signs: np.ndarray, n: np.ndarray) -> dict[str, Any]:
    """Kernel of `look`."""
    sign, score = signs_of(block, signs), block.columns["score"]
    n_rows = np.array([np.count_nonzero(sign == of) for of in (0, 1, -1)], np.int64)
    weight, odd = n_rows[1:], np.zeros(len(sign), bool)
    if "weight" in block.columns:
        of_row = block.columns["weight"].astype(np.float64)
        usable = (of_row == 0) | ((of_row >= 1 / HEAVIEST) & (of_row <= HEAVIEST))
        odd = (sign != 0) & ~usable
        weight = np.array([of_row[sign == of].sum() for of in (1, -1)])
    by = functools.partial(_labelled, signs=signs)
    drawn = states.smallest(block._replace(x=score[:, None]), n, by, seed=0, stream="scores")
    nan = (sign != 0) & (score != score)
    marked = {name: _marked(mask, block.start) for name, mask in {"nan": nan, "odd": odd}.items()}
    return {"n_rows": n_rows, "weight": weight, "drawn": drawn, **marked}


def _labelled(block: Block, signs: np.ndarray) -> np.ndarray:
    """One stratum: the rows that have a label."""
    return np.where(signs_of(block, signs) != 0, 0, -1)


def _marked(mask: np.ndarray, start: int) -> tuple[int, int]:
    """How many rows, and the number of the first."""
    return int(np.count_nonzero(mask)), start + int(mask.argmax()) if mask.any() else NEVER


def merge_looked(n: np.ndarray, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """The same of two blocks."""
    sums = {name: a[name] + b[name] for name in ("n_rows", "weight")}
    marked = {name: (a[name][0] + b[name][0], min(a[name][1], b[name][1])) for name in ("nan", "odd")}
    return {**sums, **marked, "drawn": states.merge_smallest(n, a["drawn"], b["drawn"])}
