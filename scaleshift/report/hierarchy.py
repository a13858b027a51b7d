"""What share of its parent is a population?  A gate hierarchy over the labels of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scaleshift.cells.labels.hierarchy import Hierarchy
from scaleshift.errors import DataError


class Population(NamedTuple):
    """A label, or an inner node of the hierarchy."""

    name: Any
    parent: Any  # None at the top
    members: list[int]  # positions of the labels whose cells it holds: its own, and all below


def populations(labels: Sequence[Any], parents: Mapping[Any, Any]) -> list[Population]:
    """All labels in their order, then the inner nodes above them.

    Parameters
    ----------
    labels : sequence, length n_labels
    parents : mapping
        Name of a population to that of its parent; None, or no entry, at the top. Nodes that are no labels
        and have none below are passed over.

    Returns
    -------
    list of Population

    Raises
    ------
    DataError
        If `parents` is no mapping, a population is its own ancestor, or a name looks like a misspelt label.

    Examples
    --------
    >>> for name, parent, members in populations(["B", "CD4", "CD8"], {"CD4": "T", "CD8": "T", "T": "all"}):
    ...     print(name, parent, members)
    B None [0]
    CD4 T [1]
    CD8 T [2]
    T all [1, 2]
    all None [1, 2]
    """
    if not isinstance(parents, Mapping):
        raise DataError(
            f"parents is a {type(parents).__name__}, expected a mapping of names to their parents' names"
        )
    known = {child: parent for child, parent in parents.items() if parent is not None}
    hierarchy = Hierarchy(known)
    members: dict[Any, list[int]] = {label: [] for label in labels}
    for position, label in enumerate(labels):
        for node in (label, *hierarchy.ancestors(label)):
            members.setdefault(node, []).append(position)
    hierarchy.refuse_misspelt(labels)
    return [Population(node, known.get(node), found) for node, found in members.items()]


def shares(proportion: np.ndarray, of: list[Population]) -> np.ndarray:
    """Share of all cells that each population holds.

    Parameters
    ----------
    proportion : numpy.ndarray, shape (n_samples, n_labels)
    of : list of Population

    Returns
    -------
    numpy.ndarray, shape (n_samples, n_populations)
        NaN where a label that belongs to the population has no estimate.
    """
    found = np.empty((len(proportion), len(of)))
    for column, population in enumerate(of):
        found[:, column] = proportion[:, population.members].sum(axis=1)
    return found


def shares_of_parent(proportion: np.ndarray, of: list[Population]) -> np.ndarray:
    """Share of its parent's cells that each population holds.

    Parameters
    ----------
    proportion : numpy.ndarray, shape (n_samples, n_labels)
    of : list of Population

    Returns
    -------
    numpy.ndarray, shape (n_samples, n_populations)
        NaN without a parent, and where the parent has no cells or a label of it no estimate.
    """
    share = shares(proportion, of)
    place = {population.name: column for column, population in enumerate(of)}
    found = np.full(share.shape, np.nan)
    for column, population in enumerate(of):
        if population.parent is not None:
            parent = share[:, place[population.parent]]
            np.divide(share[:, column], parent, out=found[:, column], where=parent != 0)
    return found
