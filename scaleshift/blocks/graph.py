"""How does a pass become a Dask graph?  One task a block, a tree of fixed shape, one compute.

Passes use this, and the import of a study its `run`. Graphs are built without calling a kernel, and merged in
an order that depends on the block numbers alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep
from dask.task_spec import DataNode, List, Task, TaskRef

from scaleshift.blocks import computing, room, statistics
from scaleshift.blocks.block import Kept, Rows
from scaleshift.blocks.computing import client as client  # asked for by many
from scaleshift.blocks.states import Merge
from scaleshift.blocks.travelled import Carried, aligned, nbytes, unpacked

FAN_IN = 16  # a power of two: see statistics.tree
FOLD_BYTES = 4_000_000  # a packed state above this is folded over consecutive blocks inside one task
SHARE_BYTES = 1_000_000  # a parameter above this enters the graph once


def reduce_blocks(
    leaf: Callable[..., Any],
    merge: Merge,
    rows: Rows | Kept,
    parameters: Mapping[str, Any],
    width: int = 0,
    shared: Mapping[str, Any] | None = None,
) -> Any:
    """`leaf` on every block, merged in a tree: one compute, or a plain call for one block in memory.

    `shared` are parameters of both, leaf and merge.
    """
    if rows.is_one_block:
        return leaf(rows.loader(rows.x, *rows.arrays, start=0), **parameters, **(shared or {}))
    room.refuse_blocks(rows, client)
    leaves, root = reduction(leaf, merge, rows, parameters, width, shared)
    if merge is np.add:  # elsewhere the width is what a state may have at most
        there = (lambda: None) if rows.in_memory else client
        room.refuse_states(8 * width, leaves.numblocks[0], FAN_IN, there)
    return compute(root, in_memory=rows.in_memory)


def reduction(
    leaf: Callable[..., Any],
    merge: Merge,
    rows: Rows | Kept,
    parameters: Mapping[str, Any],
    width: int = 0,
    shared: Mapping[str, Any] | None = None,
) -> tuple[da.Array, da.Array]:
    """The states of the blocks, or of runs of them, and their merged state: lazy."""
    parameters, shared = once(parameters), once(shared or {})
    leaves = on_blocks(leaf, rows, 1, np.empty((0, 0), object), {**parameters, **shared})
    if width * 8 > FOLD_BYTES:
        leaves = fold(leaves, merge, parameters, shared)
    elif isinstance(rows, Rows) and rows.is_part and not rows.in_memory:
        # Dask leaves reading, and cutting a block of X or of a column, tasks of their own.
        leaves = fold(leaves, merge, parameters, shared, longest=1)
    return leaves, merge_tree(leaves, merge, shared)


def reduce_column(leaf: Callable[[Any], Any], merge: Merge, values: Any) -> Any:
    """`leaf` on every block of one column, merged in a tree."""
    if not isinstance(values, da.Array):
        return leaf(values)
    return compute(column_reduction(leaf, merge, values))


def column_reduction(leaf: Callable[[Any], Any], merge: Merge, values: da.Array) -> da.Array:
    """The same, lazy."""
    return merge_tree(da.map_blocks(leaf, values, meta=np.empty(0, object), dtype=object), merge)


def on_blocks(
    leaf: Callable[..., Any], rows: Rows | Kept, width: int, meta: np.ndarray, parameters: Mapping[str, Any]
) -> da.Array:
    """One task a block: read, check, call `leaf`. `meta` is given, so that nothing is called now."""
    columns = [argument for array in rows.arrays for argument in (array, "ij"[: array.ndim])]
    # The markers' index j stays in the output: contracting it would keep reading a task of its own.
    return da.blockwise(
        functools.partial(_on_block, leaf, rows.loader),
        "ij",
        rows.x,
        "ij",
        ArraySliceDep(rows.x.chunks),
        "ij",
        *columns,
        adjust_chunks={"j": width},
        align_arrays=False,
        meta=meta,
        parameters=once(parameters),
    )


def _on_block(
    leaf: Callable[..., Any], loader: Any, x: Any, place: Any, *columns: Any, parameters: dict[str, Any]
) -> Any:
    return leaf(loader(x, *columns, start=place[0].start), **unpacked(parameters))


def once(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same parameters, large ones as objects that enter the graph once, whoever needs them."""
    return {
        name: value
        if isinstance(value, Delayed) or nbytes(value) <= SHARE_BYTES
        else dask.delayed(Carried(value), pure=False, traverse=False)
        for name, value in parameters.items()
    }


def merge_tree(leaves: da.Array, merge: Merge, shared: Mapping[str, Any] | None = None) -> da.Array:
    """Leaves, states of any kind, merged 16 neighbours at a time until one is left."""
    shared = shared or {}
    name = f"merge-{leaves.name}"
    keys = list(flatten(leaves.__dask_keys__()))
    tasks: dict[Any, Any] = {}
    level = 0
    while level == 0 or len(keys) > 1:
        groups = [keys[first : first + FAN_IN] for first in range(0, len(keys), FAN_IN)]
        # The root has the key of an array without dimensions.
        keys = [(name, level, number) for number in range(len(groups))] if len(groups) > 1 else [(name,)]
        for key, group in zip(keys, groups, strict=True):
            tasks[key] = Task(key, _merge_group, merge, List(*map(TaskRef, group)), **references(shared))
        level += 1
    below: list[Any] = [leaves, *delayed_ones(shared)]
    layers = HighLevelGraph.from_collections(name, tasks, below)
    return da.Array(layers, name, chunks=(), meta=np.empty((), object))


def _merge_group(merge: Merge, states: list[Any], **shared: Any) -> Any:
    return statistics.tree(aligned(states), functools.partial(merge, **unpacked(shared)))


def delayed_ones(shared: Mapping[str, Any]) -> list[Any]:
    """Those parameters that are in the graph once."""
    return [value for value in shared.values() if isinstance(value, Delayed)]


def references(shared: Mapping[str, Any]) -> dict[str, Any]:
    """The same parameters as arguments of a task."""
    return {name: TaskRef(v.key) if isinstance(v, Delayed) else v for name, v in shared.items()}


def fold(
    leaves: da.Array,
    merge: Merge,
    parameters: Mapping[str, Any] | None = None,
    shared: Mapping[str, Any] | None = None,
    longest: int | None = None,
) -> da.Array:
    """Runs of consecutive blocks inside one task each, about 4 tasks a thread: one large state a run.

    A run's tasks travel as a small graph of their own and are executed one block after the other; large
    parameters stay outside. Runs hold a power of two of blocks, so that the order of addition is that of
    the unfolded tree. `longest` says how many blocks they have at most: with 1,
    all that a block needs is one task.
    """
    parameters, shared = parameters or {}, shared or {}
    n_blocks = leaves.numblocks[0]
    run = 1
    wanted = 4 * n_threads()
    while n_blocks / (2 * run) >= wanted and (longest is None or 2 * run <= longest):
        run *= 2
    (leaves,) = dask.optimize(leaves)
    graph = dict(leaves.__dask_graph__())
    elsewhere = any(key not in graph for node in graph.values() for key in node.dependencies)
    if (
        run == 1 and longest is None
    ) or elsewhere:  # blocks that workers hold already cannot travel inside a task
        return leaves
    outside = {value.key: value for value in [*delayed_ones(parameters), *delayed_ones(shared)]}
    name = f"fold-{leaves.name}-{run}"
    tasks: dict[Any, Any] = {}
    for number, first in enumerate(range(0, n_blocks, run)):
        keys = [(leaves.name, i, 0) for i in range(first, min(first + run, n_blocks))]
        inner = {key: node for key, node in needed(graph, keys).items() if key not in outside}
        key = (name, number, 0)
        call = _Run(inner, keys, merge, list(outside))
        tasks[key] = Task(key, call, *map(TaskRef, outside), **references(shared))
    layers = HighLevelGraph.from_collections(name, tasks, list(outside.values()))
    return da.Array(layers, name, chunks=((1,) * len(tasks), (1,)), meta=leaves._meta)


class _Run:
    """The tasks of consecutive blocks, executed in order and merged as they come."""

    def __init__(self, graph: dict[Any, Any], keys: list[Any], merge: Merge, outside: list[Any]):
        self.inside, self.keys, self.merge, self.outside = graph, keys, merge, outside

    def __call__(self, *values: Any, **shared: Any) -> Any:
        """Give the run's state; `values` are those of the keys outside the run."""
        given = {key: DataNode(key, value) for key, value in zip(self.outside, values, strict=True)}
        graph = {**self.inside, **given}
        folder = statistics.Folder(functools.partial(self.merge, **unpacked(shared)))
        for key in self.keys:
            folder.push(dask.get(needed(graph, [key]), key))
        return folder.result()


def needed(graph: Mapping[Any, Any], keys: list[Any]) -> dict[Any, Any]:
    """The part of a graph that `keys` depend on."""
    needed, stack = {}, list(keys)
    while stack:
        key = stack.pop()
        if key not in needed:
            needed[key] = graph[key]
            stack.extend(graph[key].dependencies)
    return needed


def n_merges(n_leaves: int) -> int:
    """Tasks of a merge tree."""
    tasks = 0
    while n_leaves > 1 or not tasks:
        n_leaves = -(-n_leaves // FAN_IN)
        tasks += n_leaves
    return tasks


def n_workers() -> int:
    """Workers of the client in scope; this machine is one."""
    return max(len(computing.nthreads()), 1)


def n_threads() -> int:
    """Threads of all workers, or of this machine."""
    if client() is None:
        return room.here().n_threads
    return max(sum(computing.nthreads().values()), 1)  # also while none has joined, or all are started anew


def run(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Results of independent calls, in their order; each a task of its own, the results small."""
    return list(computing.compute(*[dask.delayed(call, pure=False)() for call in calls]))


def free_bytes(in_memory: bool) -> int:
    """Memory that is free for blocks: of this machine, or of those workers in scope that have a limit."""
    if in_memory or client() is None:
        return room.free_here()
    workers = computing.workers()
    free = [(worker["memory_limit"] or 0) - worker["metrics"].get("memory", 0) for worker in workers]
    return sum(max(part, 0) for part in free)


def persist(collection: da.Array, in_memory: bool) -> da.Array:
    """The same array with blocks that are computed and stay in memory."""
    (result,) = computing.persist(collection, in_memory=in_memory)
    return result


def compute(collection: da.Array | Delayed, in_memory: bool = False) -> Any:
    """The one compute of a pass; rows in memory stay on Dask's threads, also beside a cluster."""
    (result,) = computing.compute(collection, in_memory=in_memory)
    return result
