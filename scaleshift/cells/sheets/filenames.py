"""Which file does a name in a sheet mean, and what is its sample called? Names alone; opens nothing."""

from __future__ import annotations

import bisect
import difflib
import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

# Other suffixes (run.001, plate.B08) tell files apart, and stay in the name
SUFFIXES = re.compile(r"(\.(fcs|lmd|csv|tsv|txt|parquet|pq|h5ad|zarr|xlsx|gz))+$", re.IGNORECASE)
ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
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
    moved : list
        Rows that were found in another folder than they name.
    """

    found: dict[int, int] = field(default_factory=dict)
    unclear: dict[int, list[int]] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)


def pair(rows: Sequence[str], paths: Sequence[str]) -> Pairs:
    """Find the path that each row means.

    Rounds, best first: the more of the last folders are those of the row, the better; of as many, equal base
    names are better than equal ones without suffix, and these than any that differ by case. A path that is
    found in one round is taken in the next, and a row that fits several in one round is unclear. Folders in
    front of a ``..`` count for nothing.

    Folders need not agree: sheets are written on other machines. A row is `moved` where they do not, unless
    it is an absolute path that begins elsewhere, as on another machine.

    Parameters
    ----------
    rows, paths : sequence of str

    Returns
    -------
    Pairs

    Examples
    --------
    >>> paths = ["x/day1/a.fcs", "x/day2/a.fcs", "x/B.FCS", "x/c.fcs"]
    >>> pairs = pair(["day2/a.fcs", "b", "day1/c.fcs"], paths)
    >>> pairs.found, pairs.moved
    ({0: 1, 2: 3, 1: 2}, [2])
    """
    wanted, given = ([_behind_dots(parts_of(path)) for path in names] for names in (rows, paths))
    ways: list[Callable[[Parts], Parts]] = [_as_written, _bare, _folded, _bare_folded]
    forms = [(list(map(way, wanted)), list(map(way, given))) for way in ways]
    pairs = Pairs()
    for depth in range(_deepest(*forms[-1]), 0, -1):
        for of_rows, of_paths in forms:
            _round(of_rows, of_paths, depth, pairs)
    pairs.moved = [row for row, i in pairs.found.items() if _is_moved(rows[row], wanted[row], given[i])]
    return pairs


def _deepest(rows: list[Parts], paths: list[Parts]) -> int:
    """How many of the last parts any row has in common with any path."""
    depth = 0
    while True:
        tails = {row[-depth - 1 :] for row in rows if len(row) > depth}
        if tails.isdisjoint(path[-depth - 1 :] for path in paths if len(path) > depth):
            return depth
        depth += 1


def _round(rows: list[Parts], paths: list[Parts], depth: int, pairs: Pairs) -> None:
    """Pair what is still free where the last `depth` parts are equal."""
    free = [row for row in range(len(rows)) if row not in pairs.found and row not in pairs.unclear]
    tails = {row: rows[row][-depth:] for row in free if len(rows[row]) >= depth}
    if not tails:
        return
    taken = set(pairs.found.values()).union(*pairs.unclear.values())
    by_tail = defaultdict(list)
    for i, path in enumerate(paths):
        if i not in taken:
            by_tail[path[-depth:]].append(i)
    fits = {row: by_tail[tail] for row, tail in tails.items() if tail in by_tail}
    n_rows = Counter(tails[row] for row in fits)
    for row, fitting in fits.items():
        if len(fitting) == 1 and n_rows[tails[row]] == 1:
            pairs.found[row] = fitting[0]
        else:
            pairs.unclear[row] = fitting


def _as_written(parts: Parts) -> Parts:
    return parts


def _bare(parts: Parts) -> Parts:
    return (*parts[:-1], stem(parts[-1]))


def _folded(parts: Parts) -> Parts:
    return tuple(part.casefold() for part in parts)


def _bare_folded(parts: Parts) -> Parts:
    return _folded(_bare(parts))


def _behind_dots(parts: Parts) -> Parts:
    """What a path says of its folders behind the last ``..``."""
    dots = [i for i, part in enumerate(parts[:-1]) if part == ".."]
    return parts[dots[-1] + 1 :] if dots else parts


def _is_moved(row: str, wanted: Parts, path: Parts) -> bool:
    """Whether a row names another folder than that of its path, on this machine as far as can be told."""
    wanted, path = _folded(wanted), _folded(path)
    n = min(len(wanted), len(path)) - 1
    same_machine = not ABSOLUTE.match(row) or wanted[0] == path[0]
    return same_machine and wanted[-n - 1 : -1] != path[-n - 1 : -1]


def closest(name: str, paths: Sequence[str]) -> list[int]:
    """Which of the paths have most of the last folders of a name.

    Examples
    --------
    >>> closest("C:/day1/a.fcs", ["x/day1/a.fcs", "x/day2/a.fcs"]), closest("a", ["x/a.fcs", "y/a.fcs"])
    ([0], [0, 1])
    """
    folders = parts_of(name)[-2::-1]
    agreeing = []
    for path in paths:
        pairs = zip(folders, parts_of(path)[-2::-1], strict=False)
        agreeing.append(sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return [i for i, n in enumerate(agreeing) if n == max(agreeing)]


def parts_of(path: str) -> Parts:
    """Folders and base name; a sheet from Windows writes backslashes."""
    path = composed(path)
    parts = tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
    return parts or (path,)


def composed(name: str) -> str:
    r"""A name in one spelling: file names of a Mac have umlauts in two parts, those that are typed in one.

    Examples
    --------
    >>> len("Gro\u0308\u00dfe"), len(composed("Gro\u0308\u00dfe"))
    (6, 5)
    """
    return unicodedata.normalize("NFC", name)


def base_name(path: str) -> str:
    """Name of a file without its folders.

    Examples
    --------
    >>> base_name("day1/a.fcs"), base_name("study.zarr/")
    ('a.fcs', 'study.zarr')
    """
    return parts_of(path)[-1]


def stem(path: str) -> str:
    """Name of a file without its folders and the suffixes of known types.

    Examples
    --------
    >>> stem("day1/a.FCS"), stem("gate.csv.gz"), stem("run.001")
    ('a', 'gate', 'run.001')
    """
    name = base_name(path)
    return SUFFIXES.sub("", name) or name


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
    bases = {base_name(path).casefold(): path for path in names}
    wanted = base_name(name).casefold()
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
