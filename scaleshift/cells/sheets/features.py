"""Which columns are features, and which files lack one of them or call it otherwise?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from scaleshift.cells.problem import Level, several
from scaleshift.cells.sheets.channels import Kind
from scaleshift.cells.sheets.filenames import composed
from scaleshift.cells.sheets.naming import Layout, Remarks
from scaleshift.errors import DataError
from scaleshift.spelling import nearest, suggestion

STUDY = "study"  # place of what concerns all files
# Ways out where a file lacks a feature, and where it lacks one that was asked for
CHOICE = "pass markers='common' (--markers common), name it in a panel sheet, or leave the file out"
ASKED_FOR = "take it out of markers, or leave the file out"

Wanted = Sequence[str] | Literal["common"] | None


class Census:
    """Which files have which column.

    Attributes
    ----------
    layouts : list of Layout
    holders : dict
        Name of each column to the numbers of the layouts that have it, in the order of the first file.
    channels, kinds : dict
        Name of each column to its channel and kind in most files.
    """

    def __init__(self, layouts: Iterable[Layout]) -> None:
        self.layouts = list(layouts)
        self.holders: dict[str, set[int]] = defaultdict(set)
        channels: dict[str, Counter[str]] = defaultdict(Counter)
        kinds: dict[str, Counter[Kind]] = defaultdict(Counter)
        for number, layout in enumerate(self.layouts):
            for name, channel, kind in zip(layout.names, layout.channels, layout.kinds, strict=True):
                self.holders[name].add(number)
                channels[name][channel] += len(layout.paths)
                kinds[name][kind] += len(layout.paths)
        self.channels = {name: count.most_common(1)[0][0] for name, count in channels.items()}
        self.kinds = {name: count.most_common(1)[0][0] for name, count in kinds.items()}
        self.n_files = sum(len(layout.paths) for layout in self.layouts)

    def n_holders(self, name: str) -> int:
        """How many files have a column."""
        return sum(len(self.layouts[i].paths) for i in self.holders[name])

    def first(self, name: str) -> str:
        """The first file that has a column."""
        return self.layouts[min(self.holders[name])].paths[0]

    def everywhere(self, name: str) -> bool:
        """Whether all files have a column."""
        return len(self.holders[name]) == len(self.layouts)


def of_one_modality(layouts: Sequence[Layout], wanted: Wanted, remarks: Remarks) -> list[Layout]:
    """The layouts that can stand in one study: mass and fluorescence have no common scale."""
    n_files: Counter[str] = Counter()
    for layout in layouts:
        if layout.modality != "unknown":
            n_files[layout.modality] += len(layout.paths)
    if len(n_files) < 2:
        return list(layouts)
    (most, n), *_ = n_files.most_common()
    strangers = [layout for layout in layouts if layout.modality not in (most, "unknown")]
    for layout in strangers:
        level: Level = "error" if wanted is None else "warning"
        text = f"is {layout.modality} cytometry, {n} others are {most} cytometry, on another scale"
        remarks.add(level, layout.paths, text, "make a study of each kind")
    return [layout for layout in layouts if wanted is not None or layout not in strangers]


def choose(
    census: Census, classes: Mapping[str, str], wanted: Wanted, remarks: Remarks
) -> tuple[list[str], set[int]]:
    """Choose the features.

    Parameters
    ----------
    census : Census
    classes : mapping
        Name of each column to its class in the panel, "" if none.
    wanted : sequence of str, "common" or None
        As in `align`.
    remarks : Remarks
        Gets what there is to say.

    Returns
    -------
    features : list of str
    unusable : set of int
        Numbers of the layouts that cannot give all of them.

    Raises
    ------
    DataError
        If no file has one of `wanted`.
    """
    if wanted is None:
        return _required(census, candidates(census, classes), remarks)
    if isinstance(wanted, str) and wanted == "common":
        renamed(census, "warning", remarks)
        return _in_all_files(census, candidates(census, classes), remarks), set()
    features = _chosen(census, wanted)
    return features, lacking(census, features, {}, ASKED_FOR, remarks)[0]


def candidates(census: Census, classes: Mapping[str, str]) -> list[str]:
    """Columns that show a marker, by their names or because the panel says so."""
    return [
        name
        for name, kind in census.kinds.items()
        if classes[name] in ("type", "state") or (kind == "marker" and classes[name] != "none")
    ]


def _required(census: Census, possible: Sequence[str], remarks: Remarks) -> tuple[list[str], set[int]]:
    """Features that at least half of the files have; what fewer have is told of these files instead."""
    other_names = renamed(census, "error", remarks)
    others = {(number, name) for number, names in other_names.items() for name in names.values()}
    odd = {name for _, name in others}
    features = [n for n in possible if n not in odd and 2 * census.n_holders(n) >= census.n_files]
    short, stand_ins = lacking(census, features, other_names, CHOICE, remarks)
    remark_rare(census, set(possible) - set(features), others | stand_ins, remarks)
    return features, short | set(other_names)


def _in_all_files(census: Census, names: Sequence[str], remarks: Remarks) -> list[str]:
    dropped = [name for name in names if not census.everywhere(name)]
    if dropped:
        counts = [f"{name} (in {census.n_holders(name)} of {census.n_files} files)" for name in dropped]
        remarks.add("warning", [STUDY], f"not in all files and left out: {several(counts)}")
    return [name for name in names if census.everywhere(name)]


def renamed(census: Census, level: Level, remarks: Remarks) -> dict[int, dict[str, str]]:
    """Layouts in which a channel has another marker than in most files: {the usual marker: the other}.

    Only where neither has the other's marker anywhere: if one has, the marker sits on another channel.
    """
    by_channel: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for number, layout in enumerate(census.layouts):
        for channel, name, kind, row in layout.columns():
            if kind == "marker" and name != channel and row is None:
                by_channel[channel][name].add(number)
    found: dict[int, dict[str, str]] = defaultdict(dict)
    told: dict[int, list[str]] = defaultdict(list)
    for channel, names in by_channel.items():
        usual = max(names, key=census.n_holders)
        for name, numbers in names.items():
            if name == usual or census.holders[usual] & numbers or census.holders[name] & names[usual]:
                continue
            for number in numbers:
                found[number][usual] = name
                told[number].append(f"{channel} is {name!r}, but {usual!r} in {census.first(usual)}")
    for number in sorted(told):
        fix = "say in a panel sheet which antigen it is"
        remarks.add(level, census.layouts[number].paths, several(told[number]), fix)
    return dict(found)


def remark_moved(census: Census, remarks: Remarks) -> None:
    """Say which markers sit on several channels and were matched by name."""
    seats: dict[str, dict[str, str]] = defaultdict(dict)
    for layout in census.layouts:
        for channel, name, kind, row in layout.columns():
            if kind == "marker" and row is None:
                seats[name].setdefault(channel, layout.paths[0])
    told = []
    for name, channels in seats.items():
        if len(channels) > 1:
            where = several([f"{channel} in {path}" for channel, path in channels.items()])
            told.append(f"{name!r} ({where})")
    if told:
        remarks.add("note", [STUDY], f"matched by marker, though on several channels: {several(told)}")


def _chosen(census: Census, wanted: Sequence[str]) -> list[str]:
    """Names of the columns that are asked for by marker or channel."""
    if isinstance(wanted, str):
        raise DataError(f"markers={wanted!r}: pass a list of names, 'common', or None")
    if not len(wanted):
        raise DataError("markers names none: pass at least one, 'common', or None")
    columns = {name: {name} for name in census.holders}
    channels: dict[str, set[str]] = defaultdict(set)
    for layout in census.layouts:
        for channel, name in zip(layout.channels, layout.names, strict=True):
            channels[channel].add(name)
    found: set[str] = set()
    for text in map(composed, wanted):
        meant = columns.get(text) or channels.get(text) or _folded(text, columns) or _folded(text, channels)
        if not meant:
            names = dict.fromkeys((*columns, *channels))
            known = sorted(names, key=lambda n: census.kinds.get(n, "") != "marker")
            raise DataError(f"markers: no file has {text!r}{suggestion(text, known)}")
        if len(meant) > 1:
            raise DataError(
                f"markers: {text!r} may be {' or '.join(map(repr, sorted(meant)))}: pass one of these"
            )
        found |= meant
    return [name for name in census.holders if name in found]


def _folded(text: str, known: Mapping[str, set[str]]) -> set[str]:
    found = [names for name, names in known.items() if name.casefold() == text.casefold()]
    return set().union(*found)


def lacking(
    census: Census,
    features: Sequence[str],
    excused: Mapping[int, Mapping[str, str]],
    fix: str,
    remarks: Remarks,
) -> tuple[set[int], set[tuple[int, str]]]:
    """Numbers of the layouts that lack a feature; and (layout, name) of what seems to stand in for one."""
    short: set[int] = set()
    stand_ins: set[tuple[int, str]] = set()
    for number, layout in enumerate(census.layouts):
        missing = [name for name in features if number not in census.holders[name]]
        if missing:
            short.add(number)
        missing = [name for name in missing if name not in excused.get(number, ())]
        if not missing:
            continue
        told = [f"{name!r}" for name in missing]
        for i, name in enumerate(missing):
            instead, hint = _instead(census, layout, name, features)
            stand_ins.add((number, instead))
            told[i] += hint
        markers = f"all {len(features)} markers: " if len(missing) == len(features) > 1 else ""
        markers = markers or ("the marker " if len(missing) == 1 else "the markers ")
        remarks.add("error", layout.paths, f"lacks {markers}{several(told)}", fix)
    return short, stand_ins


def _instead(census: Census, layout: Layout, name: str, features: Sequence[str]) -> tuple[str, str]:
    """What may stand in a file for a marker that it lacks: its name there, and how to say so."""
    spare = [
        n for n, k in zip(layout.names, layout.kinds, strict=True) if k == "marker" and n not in features
    ]
    alike = similar(name, spare)
    if alike:
        return alike, f" (it has {alike!r})"
    channel = census.channels[name]
    if channel == name or channel not in layout.channels:
        return "", ""
    other = layout.names[layout.channels.index(channel)]
    return (
        other,
        f" ({channel} is {other!r} here)" if other != channel else f" ({channel} has no marker here)",
    )


def remark_rare(
    census: Census, names: Iterable[str], told: Iterable[tuple[int, str]], remarks: Remarks
) -> None:
    """Say which files have markers that most files lack, unless (layout, name) was told already."""
    rare, known = set(names), set(told)
    for number, layout in enumerate(census.layouts):
        extra = [name for name in layout.names if name in rare and (number, name) not in known]
        if extra:
            counts = [f"{name!r} (in {census.n_holders(name)} of {census.n_files} files)" for name in extra]
            fix = (
                "it does not enter the study; if it goes by another name elsewhere, name it in a panel sheet"
            )
            remarks.add("warning", layout.paths, f"has what most files lack: {several(counts)}", fix)


def similar(name: str, names: Sequence[str]) -> str:
    """The name that is most like another and has the same numbers, "" if none is.

    Examples
    --------
    >>> similar("CD4", ["CD-4", "CD8"]), similar("CD3", ["CD8"])
    ('CD-4', '')
    """
    return nearest(name, names) or ""
