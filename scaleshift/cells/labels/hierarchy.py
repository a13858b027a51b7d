"""Which population is part of which?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scaleshift.errors import DataError
from scaleshift.spelling import suggestion


class Hierarchy:
    """Populations and the ones that they are part of.

    Parameters
    ----------
    parents : mapping
        Population to its parent; those without one are left out.

    Raises
    ------
    DataError
        If a population is its own ancestor.

    Examples
    --------
    >>> Hierarchy({"CD4": "T", "T": "Lymphocytes"}).ancestors("CD4")
    ['T', 'Lymphocytes']
    """

    def __init__(self, parents: Mapping[Any, Any]) -> None:
        self.parents = dict(parents)
        for name in self.parents:
            self.ancestors(name)

    def ancestors(self, name: Any) -> list[Any]:
        """Parent, its parent, and so on."""
        line = [name]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]])
            if line[-1] in line[:-1]:
                loop = " -> ".join(map(repr, line[line.index(line[-1]) :]))
                raise DataError(f"parents: {line[-1]!r} is its own ancestor ({loop}): give it another parent")
        return line[1:]

    def deepest_first(self, names: Iterable[Any]) -> list[Any]:
        """Names ordered by depth, in their own order where that is equal."""
        return sorted(names, key=lambda name: -len(self.ancestors(name)))

    def around(self, names: Iterable[Any]) -> dict[Any, Any]:
        """Parents of these populations and of their ancestors."""
        wanted = {name: None for each in names for name in (each, *self.ancestors(each))}
        return {name: self.parents[name] for name in wanted if name in self.parents}

    def refuse_misspelt(self, labels: Sequence[Any]) -> None:
        """Raise DataError for a misspelt label: it would silently be missing in the sum of its parent.

        That is a population which is no label and has none below, and looks like a label without parent.

        Examples
        --------
        >>> Hierarchy({"CD4 naiv": "CD4", "NK": "all"}).refuse_misspelt(["CD4 naive"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        scaleshift.errors.DataError: parents names 'CD4 naiv', which is no label or population; did ...
        """
        known = {name for label in labels for name in (label, *self.ancestors(label))}
        orphans = [label for label in labels if label not in self.parents]
        for name in self.parents:
            hint = "" if name in known else suggestion(name, orphans)
            if hint.startswith("; did you mean"):
                raise DataError(f"parents names {name!r}, which is no label or population{hint}")
