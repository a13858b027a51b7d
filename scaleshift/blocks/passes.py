"""How does a statistic get over the data?  One pass, one compute, one task a block.

The only way to a statistic of the rows. Every pass puts the reading of a block, its checks and the kernel
into one task, merges the small states in a tree whose shape depends on the block numbers alone, and
computes once (`graph` says how). Rows that are one block in memory are a plain call without a graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np

from scaleshift.blocks import graph, ranges, room, states, statistics
from scaleshift.blocks.block import Block, Column, Kept, Rows
from scaleshift.blocks.chained import chain as chain  # a pass too, in order: steps need each other's result
from scaleshift.blocks.invalid import refuse_invalid
from scaleshift.blocks.leaves import drawing, summing
from scaleshift.blocks.replicated import (
    gather as gather,
)  # for what needs all rows at once: independent refits
from scaleshift.blocks.replicated import replicates as replicates
from scaleshift.blocks.states import Finish, Kernel, Merge, Stratum
from scaleshift.blocks.statistics import Layout

SHARE_KEPT = 1 / 3  # of free memory, for blocks that are kept


def total(
    kernel: Kernel,
    rows: Rows | Kept,
    layout: Layout | None,
    *,
    keyed: str | None = None,
    merge: Merge | None = None,
    finish: Finish | None = None,
    **parameters: Any,
) -> dict[str, np.ndarray]:
    """Sum what `kernel` computes on each block: one pass over the rows.

    Parameters
    ----------
    kernel : callable
        ``kernel(block, **parameters) -> {name: array}``, a module-level function. `block` is a
        `scaleshift.blocks.rows.Block`: array, columns, absolute number of the first row, valid rows.
    rows : Rows
    layout : mapping of name to shape, or None with `merge`
        Shapes of the arrays, without the key axis.
    keyed : str, optional
        Name of a code column. The kernel then sees its codes renumbered to those present in the
        block, gets these as the parameter ``keys``, and returns arrays with one leading axis over them.
    finish : Finish, optional
        With `keyed`: the answer that is computed from each key's sums, on the worker that meets its last
        rows. Sums of a key then never leave the workers.
    merge : callable, optional
        ``merge(a, b)`` in place of addition; states stay as the kernel made them.
    **parameters
        Passed to the kernel.

    Returns
    -------
    dict of name to float64 array
        With `keyed` one leading axis over the keys present, which stand in the entry "key" and ascend;
        with `finish` the arrays are those of its layout.

    Raises
    ------
    DataError
        If rows are not finite and `rows.invalid` is "raise".

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(np.arange(6.0).reshape(3, 2))
    >>> total(lambda block: {"sum": block.x.sum(axis=0)}, rows, {"sum": (2,)})["sum"].tolist()
    [6.0, 9.0]
    """
    done = summing(kernel, rows, layout, keyed=keyed, merge=merge, finish=finish)
    state = graph.reduce_blocks(done.leaf, done.merge, rows, parameters, done.width, done.shared)
    if layout is None:
        refuse_invalid(rows, state["invalid"])
        return state["state"]
    if keyed is None:
        refuse_invalid(rows, state[done.width :])
        return statistics.unpack(state[: done.width], layout)
    refuse_invalid(rows, state["invalid"])
    if finish is None:
        return {"key": state["key"], **statistics.unpack(state["state"], layout)}
    return _answers(state, finish)


def values(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values of one column and how often each occurs: one pass over that column only.

    Returns
    -------
    values : numpy.ndarray, shape (n_values,)
        In order of first appearance; missing ones are left out.
    counts : numpy.ndarray of int64, shape (n_values,)

    Raises
    ------
    DataError
        If there are more than 100 000 of them: a measurement, not a label.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.block import Column
    >>> found, counts = values(Column(np.array(["b", "a", "b"])))
    >>> found.tolist(), counts.tolist()
    (['b', 'a'], [2, 1])
    """
    state = graph.reduce_column(states.distinct_leaf, states.merge_distinct, column.values)
    return state["values"], state["counts"]


def counts(rows: Rows, name: str) -> np.ndarray:
    """Rows of each category, finite or not: one pass over that column only, or none if counted before.

    Returns
    -------
    numpy.ndarray of int64, shape (n_categories,)

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> counts(as_rows(np.ones((3, 1)), ["b", "a", "b"]), "label").tolist()
    [1, 2]
    """
    found = rows.columns[name].counts
    return _added(tally(rows, name), len(rows.categories(name))) if found is None else found


def tally(rows: Rows, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of each category in every block, finite or not: one pass over that column only.

    Returns
    -------
    list of (codes, counts)
        One entry a block, in row order: the codes that occur there, ascending, and their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> [(codes.tolist(), n.tolist()) for codes, n in tally(as_rows(np.ones((3, 1)), [1, 0, 1]), "label")]
    [([0, 1], [1, 2])]
    """
    column = rows.columns[name]
    leaf = functools.partial(states.tally_leaf, replace(column, values=None, counts=None))
    return graph.reduce_column(leaf, states.merge_tally, column.values)["blocks"]


def _added(blocks: list[tuple[np.ndarray, np.ndarray]], n_categories: int) -> np.ndarray:
    result = np.zeros(n_categories, np.int64)
    for codes, n in blocks:
        known = codes < n_categories  # a code beyond is an error that the pass over X words
        result[codes[known]] += n[known]
    return result


def crossed(rows: Rows, by: str, name: str) -> np.ndarray:
    """Rows of each pair of categories of two columns, finite or not: one pass over these columns only.

    Parameters
    ----------
    rows : Rows
    by : str
        Name of a column that has a value in every row, as the sample.
    name : str
        Name of another one.

    Returns
    -------
    numpy.ndarray of int64, shape (n_categories of `by`, 1 + n_categories of `name`)
        The rows without a value in `name` come first.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(np.ones((4, 1)), ["x", None, "y", "y"], ["a", "a", "a", "b"])
    >>> crossed(rows, "sample", "label").tolist()
    [[1, 1, 1], [0, 0, 1]]
    """
    shape = len(rows.categories(by)), 1 + len(rows.categories(name))
    both = rows.only(by, name).without_x()
    found = total(states.crossed_leaf, both, {"n": shape[1:]}, keyed=by, by=by, name=name, width=shape[1])
    counts = np.zeros(shape, np.int64)
    counts[found["key"]] = found["n"]
    return counts


def sample(
    rows: Rows | Kept,
    n: int | np.ndarray,
    by: Stratum = None,
    *,
    seed: int = 0,
    stream: str = "sample",
    columns: tuple[str, ...] = (),
    finish: Finish | None = None,
) -> dict[str, np.ndarray]:
    """Draw the `n` valid rows of each stratum with the smallest random key: one pass.

    Parameters
    ----------
    rows : Rows
    n : int or array of int, shape (n_strata,)
        Rows wanted of each stratum; all of them where there are fewer.
    by : str or callable, optional
        Name of a code column whose codes are the strata, or ``by(block)`` -> codes (block rows,), a
        module-level function, with `n` an array; negative codes are left out.
    seed : int, default 0
    stream : str, default "sample"
        What the rows are for; draws of different streams are independent.
    columns : tuple of str, default ()
        Columns that are drawn along: further entries of the result, by name. Not with `finish`.
    finish : Finish, optional
        With `by` a column's name: the answer that is computed from the rows drawn of each stratum, on the
        worker that meets its last rows. Drawn rows then never leave the workers.

    Returns
    -------
    dict
        x (k, n_markers), code (k,) stratum, row (k,) absolute number, key (k,); sorted by stratum, then
        key. The same rows for any chunking. With `finish` the arrays of its layout, with one leading axis
        over the strata that have rows, which stand in the entry "key" and ascend.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> rows = as_rows(np.arange(100.0)[:, None], y=np.repeat(["a", "b"], 50))
    >>> sample(rows, 3, by="label")["code"].tolist()
    [0, 0, 0, 1, 1, 1]
    >>> sample(rows, np.full(3, 2), by=pairs(rows, "sample", "label"))["code"].tolist()
    [1, 1, 2, 2]
    """
    strata = len(rows.categories(by)) if isinstance(by, str) and isinstance(rows, Rows) else np.size(n)
    n = np.broadcast_to(np.asarray(n, np.int64), (strata,))
    if finish is None:
        merge = functools.partial(states.merge_smallest, n)
        drawn: dict[str, Any] = {"n": n, "by": by, "seed": seed, "stream": stream, "columns": columns}
        return total(states.smallest, rows, None, merge=merge, **drawn)
    done = drawing(n, finish)
    parameters = {"n": n, "by": by, "seed": seed, "stream": stream}
    state = graph.reduce_blocks(done.leaf, done.merge, rows, parameters, done.width, done.shared)
    refuse_invalid(rows, state["invalid"])
    return _answers(state, finish)


def pairs(rows: Rows, by: str, name: str) -> Stratum:
    """Strata of `sample` by two columns: their pairs, in the order of `crossed`, which counts them."""
    return functools.partial(states.pair, by=by, name=name, width=1 + len(rows.categories(name)))


def _answers(state: dict[str, Any], finish: Finish) -> dict[str, np.ndarray]:
    """Answers of all keys, which ascend."""
    order = np.argsort(state["done"])
    return {"key": state["done"][order], **statistics.unpack(state["answer"][order], finish.layout)}


def map_rows(
    kernel: Callable[..., Any],
    rows: Rows,
    columns: int | None = None,
    *,
    dtype: Any = np.float64,
    fill: Any = np.nan,
    **parameters: Any,
) -> da.Array:
    """Results by row, lazy: one fused task a block.

    Parameters
    ----------
    kernel : callable
        ``kernel(block, **parameters)`` -> (block rows,) or (block rows, columns).
    rows : Rows
    columns : int, optional
        Results a row; None gives a one-dimensional array.
    dtype : dtype, default float64
    fill : scalar, default NaN
        Result of rows that are not finite; an integer `dtype` needs one.
    **parameters
        Passed to the kernel.

    Returns
    -------
    dask.array.Array
        Shape (n,) or (n, columns); rows that are not finite give `fill` with ``invalid="drop"`` and raise
        when computed otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> map_rows(lambda block: block.x.sum(axis=1), as_rows(np.ones((3, 2)))).compute().tolist()
    [2.0, 2.0, 2.0]
    """
    room.refuse_blocks(rows, graph.client)
    # As an array of the dtype now: a fill that it cannot hold is an error of the caller, not of a worker.
    missing = None if rows.invalid == "raise" else np.array(fill).astype(dtype, casting="same_kind")
    leaf = functools.partial(states.row_leaf, kernel, np.dtype(dtype), missing)
    result = graph.on_blocks(leaf, rows.as_dask(), columns or 1, np.empty((0, 0), dtype), parameters)
    return result if columns else result[:, 0]


def by_range(
    leaf: Callable[..., ranges.Table],
    join: ranges.Join,
    answer: ranges.Answer,
    rows: Rows,
    by: str,
    cuts: np.ndarray,
    **parameters: Any,
) -> list[Any]:
    """Bring rows together by ranges of one column, a few narrow columns of them: the only shuffle, one pass.

    Parameters
    ----------
    leaf : callable
        ``leaf(block, **parameters) -> {name: (m,)}``, the column `by` among them: what travels of a block.
    join : callable
        ``join(tables) -> table`` of several such tables: sorted by `by`, rows alike as one if that is right.
    answer : callable
        ``answer(table, totals, number)``: a small result of the rows in one range; `totals` are the sums of
        the other columns by range, (n_ranges,).
    cuts : numpy.ndarray, shape (n_ranges - 1,)
        Where ranges begin, ascending (`ranges.cuts` makes them of drawn values); equal values stay together.
    """
    return ranges.answers(leaf, join, answer, rows, by, cuts, parameters)


def keep(rows: Rows, prepare: Callable[..., Block], row_bytes: int, **parameters: Any) -> Kept:
    """Prepared blocks, for methods that pass over the same rows many times.

    They stay in memory where all fit, in a third of what is free. Where they do not, each pass makes them
    again, in the task of its kernel.

    Parameters
    ----------
    rows : Rows
    prepare : callable
        ``prepare(block, **parameters) -> Block``, a module-level function: projected, encoded, float32.
    row_bytes : int
        What a prepared row weighs, about.
    **parameters
        Passed to `prepare`.

    Returns
    -------
    Kept
        What `total` and `sample` take in place of rows.

    Notes
    -----
    Rows that are not finite are refused by the first pass over the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift.blocks.rows import as_rows
    >>> def doubled(block):
    ...     return block._replace(x=2 * block.x)
    >>> kept = keep(as_rows(np.ones((3, 2))), doubled, row_bytes=16)
    >>> total(lambda block: {"sum": block.x.sum(axis=0)}, kept, {"sum": (2,)})["sum"].tolist()
    [6.0, 6.0]
    """
    if rows.is_one_block:
        return Kept(prepare(rows.loader(rows.x, *rows.arrays, start=0), **parameters), rows, held=True)
    room.refuse_blocks(rows, graph.client)
    blocks = graph.on_blocks(prepare, rows, 1, np.empty((0, 0), object), parameters)
    held = fits(rows.x.shape[0] * row_bytes, rows.in_memory)
    return Kept(graph.persist(blocks, rows.in_memory) if held else blocks, rows, held)


def fits(n_bytes: int, in_memory: bool) -> bool:
    """Whether prepared blocks of so many bytes stay in memory: where `in_memory`, on this machine."""
    return n_bytes <= graph.free_bytes(in_memory) * SHARE_KEPT
