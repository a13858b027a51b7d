"""Which gate does a cell count for, where it lies in several? The deepest; two apart are an overlap.

Gates come as a folder of tables (one a gate, named after it: with the columns `file` or `sample`, and
`event`; or SAMPLE/GATE.csv with the column `event`), or from a FlowJo workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scaleshift.blocks.labels import natural_key
from scaleshift.cells.labels.codes import UNTOLD, CellLabels, chosen
from scaleshift.cells.labels.hierarchy import Hierarchy
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.sheets.filenames import stem
from scaleshift.errors import DataError

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz", ".txt.gz")
OVERLAPS = ("refuse", "first")


class Overlaps:
    """Tells labels gate by gate, deepest first, and counts the cells that lie in two.

    Parameters
    ----------
    labels : CellLabels
    hierarchy : Hierarchy
    """

    def __init__(self, labels: CellLabels, hierarchy: Hierarchy) -> None:
        self.labels, self.hierarchy = labels, hierarchy
        self.counts: Counter[tuple[str, str]] = Counter()  # (first, second) gate to number of cells

    def tell(self, gate: str, rows: np.ndarray) -> None:
        """Label the cells in these rows with the gate, but for those of a deeper or an earlier one."""
        number = self.labels.number(gate)
        if number == UNTOLD:
            self.labels.unlabelled[gate] += len(rows)
        clashes = self.labels.tell(rows, np.full(len(rows), number, np.int32))
        for other, n in enumerate(np.bincount(clashes.earlier)):
            if n and gate not in self.hierarchy.ancestors(self.labels.values[other - 1]):
                self.counts[self.labels.values[other - 1], gate] += int(n)

    def settle(self, where: str, overlap: str) -> list[Problem]:
        """Refuse overlaps, or tell what was done with them."""
        remarks = []
        for (first, second), n in self.counts.most_common():
            text = (
                f"{n} cells lie in both gates {first!r} and {second!r}, neither of which is part of the other"
            )
            if overlap == "refuse":
                more = len(self.counts) - 1
                also = f" (and {more} more pairs of gates overlap)" if more else ""
                raise DataError(
                    f"{where}: {text}{also}; choose gates that exclude each other with gates=[...] (--gates),"
                    " tell which is part of which with parents=, or pass overlap='first' (--overlap first)"
                )
            remarks.append(Problem("warning", where, text, f"they count as {first!r}"))
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
