"""Which file does a name in a sheet mean, and what is its sample called? Names alone; opens nothing."""

from __future__ import annotations

import bisect
import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

# Other suffixes (run.001, plate.B08) tell files apart, and stay in the name
SUFFIX = re.compile(r"\.(fcs|lmd|csv|tsv|txt|parquet|h5ad|zarr|xlsx)$", re.IGNORECASE)
NEIGHBOURS = 200

Parts = tuple[str, ...]


@dataclass
class Pairs:
    """Rows and the paths that they mean, by number.

    Attributes
    ----------
    found : dict
        Row to path.
    unclear : dict
        Row to the paths that fit it equally well; one path where other rows fit it as well.
    """

    found: dict[int, int] = field(default_factory=dict)
    unclear: dict[int, list[int]] = field(default_factory=dict)


def pair(rows: Sequence[str], paths: Sequence[str]) -> Pairs:
    """Find the path that each row means.

    Rounds, best first: the path ends in the row, folders included; equal base names; equal base names
    without suffix; then the same whatever the case. A path that is found in one round is taken in the
    next, and a row that fits several in one round is unclear. A row that is absolute or has ``..`` in it
    counts as its base name.

    Parameters
    ----------
    rows, paths : sequence of str

    Returns
    -------
    Pairs

    Examples
    --------
    >>> pair(["day2/a.fcs", "b", "c.fcs"], ["x/day1/a.fcs", "x/day2/a.fcs", "x/B.FCS"]).found
    {0: 1, 1: 2}
    """
    wanted, given = [_wanted(row) for row in rows], [parts_of(path) for path in paths]
    pairs = Pairs()
    for fold in (_same, _casefold):
        folded_rows, folded_paths = list(map(fold, wanted)), list(map(fold, given))
        _round(folded_rows, folded_paths, _base, pairs, whole=True)
        _round(folded_rows, folded_paths, _base, pairs)
        _round(folded_rows, folded_paths, _base_stem, pairs)
    return pairs


def _round(
    rows: list[Parts], paths: list[Parts], key: Callable[[Parts], str], pairs: Pairs, whole: bool = False
) -> None:
    """Pair what is still free by a key; with `whole`, folders must agree too."""
    taken = set(pairs.found.values()).union(*pairs.unclear.values())
    by_key = defaultdict(list)
    for i, path in enumerate(paths):
        if i not in taken:
            by_key[key(path)].append(i)
    fits: dict[int, list[int]] = {}
    rows_of: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if number in pairs.found or number in pairs.unclear:
            continue
        fitting = [i for i in by_key.get(key(row), ()) if not whole or paths[i][-len(row) :] == row]
        if fitting:
            fits[number] = fitting
        if len(fitting) == 1:
            rows_of[fitting[0]].append(number)
    for number, fitting in fits.items():
        if len(fitting) == 1 and len(rows_of[fitting[0]]) == 1:
            pairs.found[number] = fitting[0]
        else:
            pairs.unclear[number] = fitting


def _same(parts: Parts) -> Parts:
    return parts


def _casefold(parts: Parts) -> Parts:
    return tuple(part.casefold() for part in parts)


def _base(parts: Parts) -> str:
    return parts[-1]


def _base_stem(parts: Parts) -> str:
    return stem(parts[-1])


def parts_of(path: str) -> Parts:
    """Folders and base name; a sheet from Windows writes backslashes."""
    parts = tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
    return parts or (path,)


def _wanted(row: str) -> Parts:
    """Parts of a path in a sheet; of one that leads out of the given folders only the base name."""
    parts = parts_of(row)
    absolute = re.match(r"[/\\]|[A-Za-z]:", row)
    return parts[-1:] if absolute or ".." in parts else parts


def stem(name: str) -> str:
    """Name of a file without the suffix of a known type.

    Examples
    --------
    >>> stem("a.FCS"), stem("run.001")
    ('a', 'run.001')
    """
    return SUFFIX.sub("", name) or name


def sample_names(paths: Sequence[str]) -> list[str]:
    """Name the sample of each path: without folder and suffix, where that tells them apart.

    Examples
    --------
    >>> sample_names(["day1/s1.fcs", "day2/s1.fcs", "day2/s2.fcs"])
    ['day1/s1', 'day2/s1', 's2']
    """
    parts = [parts_of(path) for path in paths]
    names = [stem(p[-1]) for p in parts]
    alike = defaultdict(list)
    for i, name in enumerate(names):
        alike[name].append(i)
    for group in alike.values():
        if len(group) > 1:
            for i, name in zip(group, _told_apart([parts[i] for i in group]), strict=True):
                names[i] = name
    return names


def _told_apart(paths: list[Parts]) -> list[str]:
    """Names with as many folders in front as it takes; with the suffix where folders do not help."""
    for depth in range(2, max(map(len, paths)) + 1):
        names = ["/".join((*path[-depth:-1], stem(path[-1]))) for path in paths]
        if len(set(names)) == len(names):
            return names
    bases = [path[-1] for path in paths]
    return bases if len(set(bases)) == len(bases) else ["/".join(path) for path in paths]


def nearest(name: str, names: Iterable[str]) -> str:
    """The path whose base name is most like that of `name`, "" if none is.

    Among those that are alike, one with the same numbers comes first: patient_2 is not patient_12.

    Examples
    --------
    >>> nearest("patient_12.fcs", ["d/patient_2.fcs", "d/patient12.fcs", "d/notes.txt"])
    'd/patient12.fcs'
    """
    bases = {parts_of(path)[-1].casefold(): path for path in names}
    wanted = parts_of(name)[-1].casefold()
    close = difflib.get_close_matches(wanted, _neighbours(wanted, list(bases)), n=10)
    close.sort(key=lambda other: _numbers(other) != _numbers(wanted))  # stable: the closest stay first
    return bases[close[0]] if close else ""


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"[0-9]{1,18}", text)]


def _neighbours(name: str, names: list[str]) -> list[str]:
    """Of very many names those that start or end alike: comparing all would take minutes."""
    if len(names) <= 4 * NEIGHBOURS:
        return names
    near: dict[str, None] = {}
    for backwards in (1, -1):
        ordered = sorted(other[::backwards] for other in names)
        at = bisect.bisect(ordered, name[::backwards])
        near |= {other[::backwards]: None for other in ordered[max(0, at - NEIGHBOURS) : at + NEIGHBOURS]}
    return list(near)
