"""Which gate does a cell count for, where it lies in several? The deepest; two apart are an overlap.

Gates come as a folder of tables (one a gate, named after it: with the columns `file` or `sample`, and
`event`; or SAMPLE/GATE.csv with the column `event`), or from a FlowJo workspace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scaleshift.blocks.labels import CODE, natural_key
from scaleshift.cells.labels.codes import UNTOLD, CellLabels, chosen
from scaleshift.cells.labels.gate_sets import Common, GateSets
from scaleshift.cells.labels.hierarchy import Hierarchy
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.sheets.filenames import stem
from scaleshift.errors import DataError

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz", ".txt.gz")
OVERLAPS = ("refuse", "first")
NEARLY_ALL = 0.9  # of the study's cells: a gate that holds them is a root, hardly a class


class Settling:
    """Gives each cell the label of its deepest gate, once all gates are told.

    Gates of which nobody says what they are part of are part of the smallest gate that holds all their cells,
    where that is to be found out. A gate whose name means "no label" gives none: a cell gets that of another
    gate, unless it is one around this gate.

    Parameters
    ----------
    cells : GateSets
    labels : CellLabels
        Gets the labels.
    hierarchy : Hierarchy
        What is known already.
    where : str
        What remarks and errors call the source.
    find_parents : bool
        Whether the cells tell the rest.
    """

    def __init__(
        self, cells: GateSets, labels: CellLabels, hierarchy: Hierarchy, where: str, find_parents: bool
    ) -> None:
        self.cells, self.labels, self.where = cells, labels, where
        self.sets = cells.sets()
        self.common = Common(cells.gates, self.sets)
        self.found = self.common.parents(hierarchy) if find_parents else {}
        self.hierarchy = Hierarchy(hierarchy.parents | self.found)
        self.order = self.hierarchy.deepest_first(cells.gates)
        self.none = {gate for gate in cells.gates if labels.means_none(gate)}
        self.winners = [self._winner(gates) for gates, _ in self.sets]

    def settle(self, overlap: str) -> list[Problem]:
        """Tell the labels and what should be known; refuse overlaps, unless the first gate is to count."""
        remarks = self._overlaps(overlap)
        numbers = [UNTOLD if gate is None else self.labels.number(gate) for gate in self.winners]
        for rows, of_cells in self.cells.per_cell(np.array(numbers, CODE)):
            self.labels.tell(rows, of_cells)
        for (gates, n), winner in zip(self.sets, self.winners, strict=True):
            if winner is None and n:
                self.labels.unlabelled.update(dict.fromkeys(self.none.intersection(gates), n))
        return [*self._parents_found(), *remarks, *self._outermost()]

    def _winner(self, gates: list[str]) -> str | None:
        """The gate that counts for cells that lie in these."""
        named = [gate for gate in self.order if gate in gates and gate not in self.none]
        within = {outer for gate in self.none.intersection(gates) for outer in self.hierarchy.ancestors(gate)}
        return None if not named or named[0] in within else named[0]

    def _overlaps(self, overlap: str) -> list[Problem]:
        counts: Counter[tuple[str, str]] = Counter()
        count_as: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for (gates, n), winner in zip(self.sets, self.winners, strict=True):
            if winner is None or not n:
                continue
            around = {winner, *self.hierarchy.ancestors(winner), *self.none}
            for other in set(gates) - around:
                apart = [g for g in self.order if g in gates and g != other and not self._is_part(g, other)]
                pair = next((g for g in apart if g not in self.none), winner), other
                counts[pair] += n
                count_as[pair][repr(winner)] = None
        remarks = []
        for (first, second), n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            text = (
                f"{n} cells lie in both gates {first!r} and {second!r}, neither of which is part of the other"
            )
            if overlap == "refuse":
                more = len(counts) - 1
                also = f" (and {more} more pairs of gates overlap)" if more else ""
                raise DataError(
                    f"{self.where}: {text}{also}; choose gates that exclude each other with gates=[...] "
                    "(--gates), tell which is part of which with parents=, or pass overlap='first' "
                    "(--overlap first)"
                )
            remarks.append(
                Problem(
                    "warning", self.where, text, f"they count as {several(list(count_as[first, second]))}"
                )
            )
        return remarks

    def _is_part(self, gate: str, other: str) -> bool:
        return other in self.hierarchy.ancestors(gate) or self.common.inside(gate, other)

    def _parents_found(self) -> list[Problem]:
        if not self.found:
            return []
        pairs = several([f"{gate!r} of {parent!r}" for gate, parent in self.found.items()])
        return [Problem("note", self.where, f"by the cells in them, gates are part of others: {pairs}")]

    def _outermost(self) -> list[Problem]:
        """Gates around others whose own cells got a label: with a root as a class, no cell is unknown."""
        lines = {gate: self.hierarchy.ancestors(gate) for gate in self.order}
        around = {outer for line in lines.values() for outer in line} - self.none
        remarks = []
        for gate in self.cells.gates:
            own = sum(n for (_, n), w in zip(self.sets, self.winners, strict=True) if w == gate)
            if gate not in around or not own or any(o in lines and o not in self.none for o in lines[gate]):
                continue
            nearly_all = self.common.n(gate, gate) >= NEARLY_ALL * self.cells.n_cells
            fix = f"if they belong to no class, pass unlabelled=[{gate!r}] (--unlabelled {gate!r})"
            text = f"{own} cells lie in {gate!r} and in no gate within it: {gate!r} is their label"
            remarks.append(Problem("warning" if nearly_all else "note", self.where, text, fix))
        return remarks


class GateTable(NamedTuple):
    """The table of one gate; `sample` where it stands in a sample's folder."""

    gate: str
    path: Path
    sample: str | None


def gate_tables(folder: Path, gates: Iterable[str] | None) -> tuple[list[GateTable], list[Problem]]:
    """The tables of a folder, those of the chosen gates in their order, and what was passed over.

    Raises
    ------
    DataError
        If there is no table, or none of a chosen gate.
    """
    tables, others = [], []
    for path in [*folder.iterdir(), *folder.glob("*/*")]:
        if path.name.startswith(".") or path.parent.name.startswith(".") or path.is_dir():
            continue
        if path.name.lower().endswith(TABLES):
            tables.append(
                GateTable(stem(path.name), path, None if path.parent == folder else path.parent.name)
            )
        else:
            others.append(str(path.relative_to(folder)))
    if not tables:
        raise DataError(
            f"{folder} holds no table of a gate: expected GATE.csv with the columns 'file' or 'sample', and "
            "'event', or SAMPLE/GATE.csv with the column 'event'"
        )
    tables.sort(key=lambda table: natural_key(str(table.path)))
    names = list(dict.fromkeys(sorted((table.gate for table in tables), key=natural_key)))
    if gates is not None:
        names = chosen(gates, names, f"gates of {folder}")
    wanted = [table for name in names for table in tables if table.gate == name]
    remarks = []
    if others:
        remarks.append(Problem("note", str(folder), f"{several(others)}: no table, passed over"))
    return wanted, remarks
