"""In which gates does each cell lie, and which gate holds which?

One number a cell stands for its set of gates. There are few different sets, however many cells: what is asked
of all cells is asked of the sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from scaleshift.blocks.labels import CODE
from scaleshift.cells.labels.codes import CellNumbers
from scaleshift.cells.labels.hierarchy import Hierarchy

BLOCK = 1_000_000  # cells


class GateSets:
    """The gates of each cell of a study, told piece by piece in any order; 4 bytes a cell on disk.

    Parameters
    ----------
    n_cells : int
    gates : iterable of str
        Those that there are.
    """

    def __init__(self, n_cells: int, gates: Iterable[str]) -> None:
        self.n_cells, self.gates = n_cells, list(dict.fromkeys(gates))
        self._position = {gate: i for i, gate in enumerate(self.gates)}
        self._sets: list[frozenset[int]] = [
            frozenset()
        ]  # of positions in `gates`; a cell's number is one here
        self._numbers = {self._sets[0]: 0}
        self._of_cell = CellNumbers(n_cells)

    def close(self) -> None:
        """Free the temporary file."""
        self._of_cell.close()

    def add(self, gate: str, rows: np.ndarray) -> None:
        """These rows lie in the gate; rows may come twice."""
        position = self._position[gate]
        before = self._of_cell.numbers[rows]
        after = np.zeros(len(self._sets), CODE)
        for number in np.unique(before).tolist():
            after[number] = self._number(self._sets[number] | {position})
        self._of_cell.numbers[rows] = after[before]

    def _number(self, gates: frozenset[int]) -> int:
        if gates not in self._numbers:
            self._numbers[gates] = len(self._sets)
            self._sets.append(gates)
        return self._numbers[gates]

    def sets(self) -> list[tuple[list[str], int]]:
        """The gates and the number of cells of each set."""
        n_cells = np.zeros(len(self._sets), np.int64)
        for _, numbers in self._blocks():
            n_cells += np.bincount(numbers, minlength=len(n_cells))
        return [
            ([self.gates[i] for i in sorted(s)], int(n)) for s, n in zip(self._sets, n_cells, strict=True)
        ]

    def per_cell(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows and the value of each row's set, block by block; values in the order of `sets`."""
        for first, numbers in self._blocks():
            yield np.arange(first, first + len(numbers)), values[numbers]

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        numbers = self._of_cell.numbers
        return ((first, numbers[first : first + BLOCK]) for first in range(0, len(numbers), BLOCK))


class Common:
    """How many cells two gates have in common.

    Parameters
    ----------
    sets : list of (gates, number of cells)
        As `GateSets.sets` gives them.
    """

    def __init__(self, gates: list[str], sets: list[tuple[list[str], int]]) -> None:
        self.gates = gates
        self._position = {gate: i for i, gate in enumerate(gates)}
        inside = np.zeros((len(sets), len(gates)), np.int64)
        for number, (members, _) in enumerate(sets):
            inside[number, [self._position[gate] for gate in members]] = 1
        self._n = inside.T @ (inside * np.array([[n] for _, n in sets], np.int64))

    def n(self, gate: str, other: str) -> int:
        """Number of cells in both."""
        return int(self._n[self._position[gate], self._position[other]])

    def inside(self, gate: str, other: str) -> bool:
        """Whether all cells of a gate that has some lie in another one, which has more."""
        return 0 < self.n(gate, gate) == self.n(gate, other) < self.n(other, other)

    def parents(self, known: Hierarchy) -> dict[str, str]:
        """The smallest gate around each one of which it is not known what it is part of."""
        found: dict[str, str] = {}
        for gate in self.gates:
            around = [o for o in self.gates if self.inside(gate, o) and gate not in known.ancestors(o)]
            if gate not in known.parents and around:
                found[gate] = min(around, key=lambda other: self.n(other, other))
        return found
