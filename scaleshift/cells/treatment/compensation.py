"""How is the spillover of fluorochromes into other detectors taken out of events, and put back?"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.errors import DataError, SchemaError
from scaleshift.spelling import suggestion

COMPENSATED = re.compile(r"(?:FJ)?Comp-", re.IGNORECASE)  # before the names of compensated channels
BRACKETED = re.compile(r"<.+>")  # how FlowJo exports them
MAX_CHANNELS = 1_000
MAX_CONDITION = 1e7  # float32 events have seven digits: beyond, none of them is left
TILE = 16_384  # rows that are held in float64 at once


@dataclass(frozen=True, eq=False)
class Spillover:
    """Share of each fluorochrome's light that each detector sees.

    Attributes
    ----------
    channels : tuple of str
        Names of the detectors, as the matrix has them.
    matrix : numpy.ndarray of float64, shape (n_channels, n_channels)
        Row = fluorochrome, column = detector; the diagonal is 1 in most files.
    source : str
        Where it came from: a file, or a file and its keyword.

    Examples
    --------
    >>> spillover = Spillover.parse("2,FITC-A,PE-A,1,0.2,0.05,1", "a.fcs, $SPILLOVER")
    >>> spillover.channels, spillover.matrix.tolist()
    (('FITC-A', 'PE-A'), [[1.0, 0.2], [0.05, 1.0]])
    """

    channels: tuple[str, ...]
    matrix: np.ndarray
    source: str

    def __post_init__(self) -> None:
        n = len(self.channels)
        if not n or self.matrix.shape != (n, n):
            raise DataError(
                f"{self.source}: {n} channels and a spillover matrix of shape {self.matrix.shape}: "
                "expected a row and a column a channel"
            )
        twice = [name for i, name in enumerate(self.channels) if name in self.channels[:i]]
        if twice:
            raise DataError(
                f"{self.source}: the spillover matrix has the channel {twice[0]!r} twice: leave one out"
            )
        if not np.isfinite(self.matrix).all():
            row, column = np.argwhere(~np.isfinite(self.matrix))[0]
            raise DataError(
                f"{self.source}: the spillover from {self.channels[row]!r} to {self.channels[column]!r} is "
                f"{self.matrix[row, column]}, expected a number"
            )

    def __eq__(self, other: object) -> bool:
        """Whether both have the same channels and numbers, wherever they came from."""
        if not isinstance(other, Spillover):
            return NotImplemented
        return self.channels == other.channels and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.channels, self.matrix.tobytes()))

    @classmethod
    def parse(cls, text: str, source: str) -> Spillover:
        """Read the value of `$SPILLOVER`, `SPILL` or `$COMP`: n, n names, n x n numbers row by row.

        Parameters
        ----------
        text : str
            As the file has it, comma-separated.
        source : str
            What errors call it.

        Raises
        ------
        DataError
            If the text is no such matrix.

        Examples
        --------
        >>> Spillover.parse("1,FITC-A,1", "a.fcs").is_identity
        True
        """
        first, *rest = [field.strip() for field in text.split(",")]
        if not re.fullmatch(r"[0-9]{1,6}", first) or not 1 <= int(first) <= MAX_CHANNELS:
            raise DataError(
                f"{source}: the spillover starts with {first[:40]!r}, expected the number of channels"
            )
        n = int(first)
        if len(rest) != n + n * n:
            raise DataError(
                f"{source}: the spillover has {len(rest)} entries after its {n}, expected {n} names and "
                f"{n * n} numbers (is there a comma in a name?): pass the matrix as a CSV file, or "
                "compensation='none'"
            )
        return cls(tuple(rest[:n]), numbers([rest[n:]], source).reshape(n, n), source)

    @property
    def is_identity(self) -> bool:
        """Whether there is nothing to compensate."""
        return bool((self.matrix == np.eye(len(self.channels))).all())

    def to_json(self) -> dict[str, Any]:
        """As a JSON value; `from_json` reads it."""
        return {"channels": list(self.channels), "matrix": self.matrix.tolist(), "source": self.source}

    @classmethod
    def from_json(cls, value: Any) -> Spillover:
        """The matrix of a JSON value.

        Raises
        ------
        SchemaError
            If it was not made by `to_json`.
        """
        try:
            matrix = np.array(value["matrix"], np.float64)
            return cls(tuple(map(str, value["channels"])), matrix, str(value["source"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"a stored compensation is no spillover matrix: {error}") from error


def is_number(text: str) -> bool:
    """Whether a word of a matrix is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python passes over


def numbers(rows: Sequence[Sequence[str]], source: str) -> np.ndarray:
    """Rows of words as numbers; DataError, starting with `source`, for a word that is none."""
    for row in rows:
        for text in row:
            if not is_number(text):
                raise DataError(f"{source}: the spillover matrix holds {text[:40]!r}, expected a number")
    return np.array(rows, np.float64)


def already_compensated(channels: Sequence[str], markers: Sequence[str]) -> list[str]:
    """Channels that are compensated by their names: ``Comp-``, ``FJComp-``, or in angle brackets.

    Parameters
    ----------
    channels, markers : sequence of str
        $PnN and $PnS of the file.

    Returns
    -------
    list of str

    Examples
    --------
    >>> already_compensated(["FSC-A", "FJComp-FITC-A", "<PE-A>"], ["", "", ""])
    ['FJComp-FITC-A', '<PE-A>']
    """
    # Not the markers in brackets: <none> is what some writers call an empty channel.
    done = [name for name in channels if COMPENSATED.match(name.strip()) or BRACKETED.fullmatch(name.strip())]
    return list(dict.fromkeys([*done, *(name for name in markers if COMPENSATED.match(name.strip()))]))


def positions(
    spillover: Spillover, channels: Sequence[str], markers: Sequence[str], place: str
) -> np.ndarray:
    """Column of each channel of a matrix: by $PnN, then by $PnS, then by number where the name is one.

    Prefixes ``Comp-`` and ``FJComp-`` of the matrix's names are passed over.

    Parameters
    ----------
    spillover : Spillover
    channels, markers : sequence of str
        $PnN and $PnS of the file; "" where a channel has no marker.
    place : str
        The file, for errors.

    Returns
    -------
    numpy.ndarray of int64, shape (n_channels of the matrix,)

    Raises
    ------
    DataError
        If the file is compensated already, lacks a channel of the matrix, or a name fits several columns.

    Examples
    --------
    >>> spillover = Spillover.parse("2,Comp-PE-A,CD3,1,0.2,0.05,1", "matrix")
    >>> positions(spillover, ["FSC-A", "FITC-A", "PE-A"], ["", "CD3", ""], "a.fcs").tolist()
    [2, 1]
    """
    done = already_compensated(channels, markers)
    if done:
        raise DataError(
            f"{place}: is compensated already, by its channel name {done[0]!r}, and compensating twice would "
            f"spoil it: pass compensation='none' (the matrix is that of {spillover.source})"
        )
    found = [_columns(name, channels, markers) for name in spillover.channels]
    _refuse_missing(spillover, found, channels, place)
    origin = f"of the spillover matrix from {spillover.source}"
    for name, columns in zip(spillover.channels, found, strict=True):
        if len(columns) > 1:
            raise DataError(
                f"{place}: {len(columns)} channels are called {name!r}, a channel {origin}: name it "
                f"as $PnN does ({', '.join(channels[i] for i in columns)})"
            )
    result = np.array(found, np.int64)[:, 0]
    for i, column in enumerate(result):
        if column in result[:i]:
            first = spillover.channels[int(np.argmax(result == column))]
            raise DataError(
                f"{place}: {first!r} and {spillover.channels[i]!r} {origin} are both the channel "
                f"{channels[column]!r}: leave one out"
            )
    return result


def _refuse_missing(
    spillover: Spillover, found: list[list[int]], channels: Sequence[str], place: str
) -> None:
    missing = [name for name, columns in zip(spillover.channels, found, strict=True) if not columns]
    if missing:
        raise DataError(
            f"{place}: lacks the channel(s) {', '.join(missing)} of the spillover matrix from "
            f"{spillover.source}{suggestion(missing[0], channels)}; pass the matrix of this panel, or "
            "compensation='none'"
        )


def _columns(name: str, channels: Sequence[str], markers: Sequence[str]) -> list[int]:
    """Columns that a name of the matrix means; the first way that finds any decides."""
    wanted = [name.strip(), COMPENSATED.sub("", name.strip(), count=1)]
    for names in (channels, markers):
        for text in wanted:
            found = [i for i, known in enumerate(names) if known.strip() == text]
            if found:
                return found
    number = int(wanted[1]) if re.fullmatch(r"[0-9]{1,4}", wanted[1]) else 0
    return [number - 1] if 1 <= number <= len(channels) else []


def compensate(
    events: np.ndarray, columns: np.ndarray, spillover: Spillover, out: np.ndarray | None = None
) -> np.ndarray:
    """Take the spillover out: ``events[:, columns] @ inv(matrix)``, computed in float64.

    Parameters
    ----------
    events : numpy.ndarray, shape (n_events, n_columns)
        float32 or float64, as read; others become float64.
    columns : numpy.ndarray of int, shape (n_channels of the matrix,)
        As `positions` finds them.
    spillover : Spillover
    out : numpy.ndarray, optional
        Where the result goes, of the shape of `events`; may be `events` itself. Default: a new array.

    Returns
    -------
    numpy.ndarray, shape (n_events, n_columns)
        Other columns as they were. A value that is not finite spoils the channels of its event.

    Raises
    ------
    DataError
        If the matrix cannot be inverted.

    Examples
    --------
    >>> spillover = Spillover.parse("2,FITC-A,PE-A,1,0.25,0,1", "a.fcs")
    >>> compensate(np.array([[7.0, 100.0, 30.0]]), np.array([1, 2]), spillover).tolist()
    [[7.0, 100.0, 5.0]]
    """
    return _mixed(events, columns, inverse(spillover), out)


def spill_over(
    events: np.ndarray, columns: np.ndarray, spillover: Spillover, out: np.ndarray | None = None
) -> np.ndarray:
    """Put the spillover back: the inverse of `compensate`, with its arguments.

    Examples
    --------
    >>> spillover = Spillover.parse("2,FITC-A,PE-A,1,0.25,0,1", "a.fcs")
    >>> spill_over(np.array([[7.0, 100.0, 5.0]]), np.array([1, 2]), spillover).tolist()
    [[7.0, 100.0, 30.0]]
    """
    return _mixed(events, columns, spillover.matrix, out)


@functools.lru_cache(maxsize=64)
def inverse(spillover: Spillover) -> np.ndarray:
    """The inverse of a matrix; DataError where there is none, or none that keeps a digit of float32."""
    condition = np.linalg.cond(spillover.matrix)
    if not condition < MAX_CONDITION:
        empty = [
            name for name, row in zip(spillover.channels, spillover.matrix, strict=True) if not row.any()
        ]
        why = f"the row of {empty[0]!r} is 0" if empty else f"its condition number is {condition:.2g}"
        raise DataError(
            f"{spillover.source}: the spillover matrix cannot be inverted ({why}): two of its channels "
            "tell the same; leave one out, or pass compensation='none'"
        )
    return np.linalg.inv(spillover.matrix)


def _mixed(events: np.ndarray, columns: np.ndarray, matrix: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """``events[:, columns] @ matrix`` in the place of these columns, some rows at a time."""
    if out is None:
        out = np.array(events, events.dtype if events.dtype.kind == "f" else np.float64)
    elif out is not events:
        out[...] = events
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, len(events), TILE):
            rows = slice(first, first + TILE)
            out[rows, columns] = events[rows, columns].astype(np.float64) @ matrix
    return out
