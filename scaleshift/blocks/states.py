"""What does a pass compute on one block, and how do the states of two blocks become one?  No Dask here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scaleshift.blocks import labels, noise, statistics
from scaleshift.blocks.block import Block, Column
from scaleshift.blocks.statistics import Layout
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy

MAX_VALUES = 100_000
Kernel = Callable[..., Mapping[str, Any]]
Merge = Callable[[Any, Any], Any]
Stratum = str | Callable[[Block], np.ndarray] | None  # a code column, codes made of a block's columns, or one
State = dict[str, Any]


# Sums: one float64 vector a block ----------------------------------------------------------------------


def packed_leaf(kernel: Kernel, layout: Layout, block: Block, **parameters: Any) -> np.ndarray:
    """The kernel's arrays as one vector, the counts of invalid values by column at its end."""
    packed = statistics.pack(kernel(block, **parameters), layout)
    return np.concatenate([packed, block.invalid_by_column])


# Sums by key: only the keys present in the block -------------------------------------------------------


def keyed_leaf(kernel: Kernel, layout: Layout, keyed: str, block: Block, **parameters: Any) -> State:
    """The kernel's arrays for every code of the column `keyed` that occurs, renumbered from 0."""
    codes = block.columns[keyed]
    present = codes >= 0
    n_rows = np.bincount(codes[present])
    key = np.flatnonzero(n_rows)
    position = np.zeros(int(key[-1]) + 1 if key.size else 1, np.int32)
    position[key] = np.arange(key.size)
    local = np.where(present, position[np.where(present, codes, 0)], -1)
    block = block._replace(columns={**block.columns, keyed: local})
    arrays = kernel(block, keys=key, **parameters)
    state = statistics.pack(arrays, layout, lead=(key.size,))
    return {"key": key, "state": state, "n_rows": n_rows[key], "invalid": block.invalid_by_column}


def merge_keyed(a: State, b: State) -> State:
    """Sum the states of the keys that both have."""
    key = np.union1d(a["key"], b["key"])
    state, n_rows = np.zeros((key.size, a["state"].shape[1])), np.zeros(key.size, np.int64)
    for part in (a, b):
        place = np.searchsorted(key, part["key"])
        state[place] += part["state"]
        n_rows[place] += part["n_rows"]
    return {"key": key, "state": state, "n_rows": n_rows, "invalid": a["invalid"] + b["invalid"]}


# Sums by key, of which only a small answer is wanted ---------------------------------------------------


@dataclass(frozen=True)
class Finish:
    """What becomes of a key's sums once all its rows are in: computed on the worker that has them."""

    # Arrays of some keys, which lead the shapes -> their answers. A key's must not depend on the others'.
    function: Callable[[dict[str, np.ndarray]], Mapping[str, Any]]
    layout: Layout  # shapes of the answer's arrays
    n_rows: np.ndarray  # (n_keys,) rows of each key

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return self.n_rows.nbytes + getattr(self.function, "nbytes", 0)


def finished_leaf(
    kernel: Kernel, layout: Layout, keyed: str, block: Block, finish: Finish, **parameters: Any
) -> State:
    """The same as `keyed_leaf`, with the answers of keys that lie in this block alone."""
    state = keyed_leaf(kernel, layout, keyed, block, **parameters)
    none = {"done": np.empty(0, np.int64), "answer": np.empty((0, statistics.size(finish.layout)))}
    return _finish({**state, **none}, layout, finish)


def merge_finished(layout: Layout, a: State, b: State, finish: Finish) -> State:
    """Answers of both, sums of the keys that are not complete yet."""
    answers = {name: np.concatenate([a[name], b[name]]) for name in ("done", "answer")}
    return _finish({**merge_keyed(a, b), **answers}, layout, finish)


def _finish(state: State, layout: Layout, finish: Finish) -> State:
    complete = state["n_rows"] == finish.n_rows[state["key"]]
    if not complete.any():
        return state
    answers = finish.function(statistics.unpack(state["state"][complete], layout))
    packed = statistics.pack(answers, finish.layout, lead=(int(complete.sum()),))
    return {
        **{name: state[name][~complete] for name in ("key", "state", "n_rows")},
        "invalid": state["invalid"],
        "done": np.concatenate([state["done"], state["key"][complete]]),
        "answer": np.concatenate([state["answer"], packed]),
    }


# Anything with a merge of its own ----------------------------------------------------------------------


def merged_leaf(kernel: Kernel, block: Block, **parameters: Any) -> State:
    """What the kernel made, as it made it."""
    return {"state": kernel(block, **parameters), "invalid": block.invalid_by_column}


def merge_with(merge: Merge, a: State, b: State) -> State:
    """Merge the kernel's states; the counts of invalid values are added."""
    return {"state": merge(a["state"], b["state"]), "invalid": a["invalid"] + b["invalid"]}


# Distinct values ---------------------------------------------------------------------------------------


def distinct_leaf(block: np.ndarray) -> State:
    """Distinct values of one block and how often they occur."""
    return _distinct(labels.as_array(block), np.ones(len(block), np.int64))


def merge_distinct(a: State, b: State) -> State:
    """Distinct values of both, those of `a` first."""
    both = pd.concat([pd.Series(a["values"]), pd.Series(b["values"])]).to_numpy()
    return _distinct(both, np.concatenate([a["counts"], b["counts"]]))


def _distinct(array: np.ndarray, weights: np.ndarray) -> State:
    codes, found = pd.factorize(array, use_na_sentinel=True)
    if len(found) > MAX_VALUES:
        raise DataError(
            f"a label or sample column has more than {MAX_VALUES} distinct values: is it a measurement? "
            "Pass a column of names"
        )
    present = codes >= 0
    counts = np.bincount(codes[present], weights[present], minlength=len(found)).astype(np.int64)
    return {"values": np.asarray(found), "counts": counts}


# How many rows of each category a block has ------------------------------------------------------------


def tally_leaf(column: Column, values: np.ndarray) -> State:
    """Codes that occur in one block of a column, and their numbers of rows."""
    assert column.categories is not None
    codes = values if column.coded else labels.encode(values, column.categories)
    n_rows = np.bincount(codes[codes >= 0])
    present = np.flatnonzero(n_rows)
    return {"blocks": [(present, n_rows[present])]}


def merge_tally(a: State, b: State) -> State:
    """The blocks of both, in order."""
    return {"blocks": a["blocks"] + b["blocks"]}


def crossed_leaf(block: Block, keys: np.ndarray, by: str, name: str, width: int) -> State:
    """Rows of each of the `keys` of one column and each code of another, of which -1 is the first."""
    pairs = pair(block, by, name, width)
    return {"n": np.bincount(pairs, minlength=len(keys) * width).reshape(len(keys), width)}


def pair(block: Block, by: str, name: str, width: int) -> np.ndarray:
    """One code for each pair of codes; rows without a value in `name` come first."""
    return block.columns[by].astype(np.int64) * width + block.columns[name] + 1


# The rows with the smallest random keys ----------------------------------------------------------------


def smallest(
    block: Block, n: np.ndarray, by: Stratum, seed: int, stream: str, columns: tuple[str, ...] = ()
) -> State:
    """The rows of one block with the n[code] smallest keys of their stratum."""
    key = noise.keys(seed, stream, block.start, len(block.valid))
    code = np.where(block.valid, _strata(block, by), -1)
    row = np.flatnonzero(_likely(key, code, n))
    chosen = row[_first(code[row], key[row], row, n)]
    drawn = {
        "x": to_numpy(block.x[chosen]),
        "code": code[chosen],
        "row": block.start + chosen,
        "key": key[chosen],
    }
    return {**drawn, **{name: block.columns[name][chosen] for name in columns}}


def _strata(block: Block, by: Stratum) -> np.ndarray:
    if by is None:
        return np.zeros(len(block.valid), np.int32)
    return block.columns[by] if isinstance(by, str) else by(block)


def merge_smallest(n: np.ndarray, a: State, b: State) -> State:
    """The same of two blocks."""
    both = {name: np.concatenate([a[name], b[name]]) for name in a}
    chosen = _first(both["code"], both["key"], both["row"], n)
    return {name: array[chosen] for name, array in both.items()}


def _likely(key: np.ndarray, code: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Mask of rows that hold the n smallest keys of their stratum: a cut that spares sorting the rest."""
    present = code >= 0
    stratum = np.where(present, code, 0)
    size = np.bincount(code[present], minlength=len(n))
    share = (1.3 * n + 50) / np.maximum(size, 1)
    cut = (np.minimum(share, 0.999) * 2.0**64).astype(np.uint64)
    likely = present & (key <= cut[stratum])
    short = np.bincount(code[likely], minlength=len(n)) < np.minimum(n, size)
    return likely | (present & short[stratum])


def _first(code: np.ndarray, key: np.ndarray, row: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Positions of the n[code] smallest (key, row) of each code, sorted by code, then key."""
    order = np.lexsort((row, key, code))
    start = np.searchsorted(code[order], np.arange(len(n)))
    rank = np.arange(len(order)) - start[code[order]]
    return order[rank < n[code[order]]]


# The same of each key, of which only a small answer is wanted --------------------------------------------


def drawn_leaf(block: Block, n: np.ndarray, by: str, seed: int, stream: str, finish: Finish) -> State:
    """The rows that `smallest` draws of one block, with the answers of keys that lie in this block alone."""
    codes = block.columns[by]
    n_rows = np.bincount(codes[codes >= 0])
    key = np.flatnonzero(n_rows)
    return _finish_drawn(
        {
            "drawn": smallest(block, n, by, seed, stream),
            "key": key,
            "n_rows": n_rows[key],
            "invalid": block.invalid_by_column,
            "done": np.empty(0, np.int64),
            "answer": np.empty((0, statistics.size(finish.layout))),
        },
        finish,
    )


def merge_drawn(n: np.ndarray, a: State, b: State, finish: Finish) -> State:
    """Answers of both, drawn rows of the keys that are not complete yet."""
    key = np.union1d(a["key"], b["key"])
    n_rows = np.zeros(key.size, np.int64)
    for part in (a, b):
        n_rows[np.searchsorted(key, part["key"])] += part["n_rows"]
    state = {
        "drawn": merge_smallest(n, a["drawn"], b["drawn"]),
        "key": key,
        "n_rows": n_rows,
        "invalid": a["invalid"] + b["invalid"],
        **{name: np.concatenate([a[name], b[name]]) for name in ("done", "answer")},
    }
    return _finish_drawn(state, finish)


def _finish_drawn(state: State, finish: Finish) -> State:
    complete = state["n_rows"] == finish.n_rows[state["key"]]
    if not complete.any():
        return state
    drawn, keys = state["drawn"], state["key"][complete]
    answers = []
    for key in keys:  # a key's answer must not depend on the others'
        first, last = np.searchsorted(drawn["code"], [key, key + 1])  # sorted by code
        answer = finish.function({name: array[first:last] for name, array in drawn.items()})
        answers.append(statistics.pack(answer, finish.layout))
    rest = ~np.isin(drawn["code"], keys)
    return {
        "drawn": {name: array[rest] for name, array in drawn.items()},
        **{name: state[name][~complete] for name in ("key", "n_rows")},
        "invalid": state["invalid"],
        "done": np.concatenate([state["done"], keys]),
        "answer": np.concatenate([state["answer"], answers]),
    }


# Results by row, and the rows that are not finite ------------------------------------------------------


def row_leaf(
    kernel: Callable[..., Any], dtype: np.dtype, fill: np.ndarray | None, block: Block, **parameters: Any
) -> np.ndarray:
    """The kernel's result for every row, as a column or a matrix; `fill`, or an error, for invalid rows."""
    if fill is None:
        refuse_rows(block)
    result = np.array(kernel(block, **parameters), dtype)
    if fill is not None:
        result[~block.valid] = fill
    return result if result.ndim == 2 else result[:, None]


def refuse_rows(block: Block) -> None:
    """Raise for rows that are not finite."""
    if not block.valid.all():
        rows = listed(first_invalid_leaf(block, 5)[:, 0])
        raise DataError(
            f"NaN or infinite values in rows {rows}: mend them, or leave these rows out, as "
            "invalid='drop' of an estimator does (--invalid drop on the command line)"
        )


def first_invalid_leaf(block: Block, n: int) -> np.ndarray:
    """Absolute number and sample code, if any, of the first rows that are not finite: (at most n, 2)."""
    rows = np.flatnonzero(~block.valid)[:n]
    sample = block.columns.get("sample", np.full(len(block.valid), -1))
    return np.column_stack([block.start + rows, sample[rows]])


def merge_first(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The first n of both."""
    return np.concatenate([a, b])[:n]


def listed(numbers: np.ndarray) -> str:
    """Row numbers for a message."""
    return ", ".join(str(int(i)) for i in numbers)
