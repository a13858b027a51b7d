"""What is each column of each file called in the study? One layout of channels at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scaleshift.cells.problem import Level, Problem, several
from scaleshift.cells.sheets.channels import Kind, Modality, kinds, marker_name, modality
from scaleshift.cells.sheets.filenames import composed

CHANNEL_NAMED = ("time", "scatter")  # kinds whose $PnS says nothing, or differs: "Time (102.40 sec.)"


class ChannelFile(Protocol):
    """A file of which the names of the channels are known; ``cytometer`` ($CYT) helps where there is one."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def channels(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def markers(self) -> Sequence[str]: ...  # noqa: D102


@dataclass(eq=False)
class Layout:
    """Files with the same channels and markers, in the same order.

    Attributes
    ----------
    channels, markers : tuple of str
        As in the files; a marker is "" where the file gives none.
    paths : list of str
    rows : list of (str or None)
        Row of the panel (its channel) that speaks of each column.
    names : list of str
        What each column is called in the study; unique.
    kinds : tuple of str
    modality : str
    """

    channels: tuple[str, ...]
    markers: tuple[str, ...]
    modality: Modality
    paths: list[str] = field(default_factory=list)
    rows: list[str | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: tuple[Kind, ...] = ()

    def columns(self) -> Iterator[tuple[str, str, Kind, str | None]]:
        """Channel, name, kind and row of the panel of each column."""
        return zip(self.channels, self.names, self.kinds, self.rows, strict=True)


class Remarks:
    """Problems of many files: errors of each file, the others once, with how many more files there are."""

    def __init__(self) -> None:
        self._files: dict[tuple[Level, str, str], list[str]] = defaultdict(list)

    def add(self, level: Level, paths: Iterable[str], text: str, fix: str = "") -> None:
        """Say something about files."""
        self._files[level, text, fix].extend(paths)

    def problems(self) -> list[Problem]:
        """What was said, in the order in which it was said first."""
        told = []
        for (level, text, fix), paths in self._files.items():
            if level == "error":
                told += [Problem(level, path, text, fix) for path in paths]
                continue
            more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            told.append(Problem(level, paths[0], text + more, fix))
        return told


def layouts_of(files: Iterable[ChannelFile]) -> list[Layout]:
    """Group files by their channels and markers, in the order in which they come."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...], str], Layout] = {}
    for file in files:
        cytometer = getattr(file, "cytometer", "") or ""
        key = (tuple(map(composed, file.channels)), tuple(map(composed, file.markers)), cytometer)
        if key not in found:
            channels = key[0]
            markers = tuple(marker_name(c, m) for c, m in zip(channels, key[1], strict=True))
            found[key] = Layout(channels, markers, modality(channels, markers, cytometer))
        found[key].paths.append(file.path)
    return list(found.values())


def name_columns(layouts: Sequence[Layout], antigens: dict[str, str], remarks: Remarks) -> list[Layout]:
    """Give each column its name; returns the layouts in which the panel contradicts itself.

    A column is called by the panel's antigen, else by its marker ($PnS), else by its channel ($PnN); time
    and scatter by their channel. A marker that stands twice in a file names no column. Where a channel has
    one marker in some files and none in others, it has it in all; where spellings of it differ by case or
    punctuation alone, it is called by the most common.
    """
    contradicted = []
    for layout in layouts:
        layout.rows, repeated = panel_rows(layout, antigens)
        called = [antigens[row] if row else "" for row in layout.rows]
        stains = [antigen or marker for antigen, marker in zip(called, layout.markers, strict=True)]
        layout.kinds = kinds(layout.channels, stains)
        if _refuse_repeated(layout, repeated, called, remarks):
            contradicted.append(layout)
        layout.names = _given_names(layout, called, remarks)
    _share_names(layouts, remarks)
    for layout in layouts:
        stains = [name or marker for name, marker in zip(layout.names, layout.markers, strict=True)]
        layout.kinds = kinds(layout.channels, stains)
        layout.names = _unique([n or c for n, c in zip(layout.names, layout.channels, strict=True)], layout)
        called = [antigens[row] if row else "" for row in layout.rows]
        ignored = _remark_ignored(layout, called, remarks)
        if ignored:
            stains = ["" if i in ignored else stain for i, stain in enumerate(stains)]
            layout.kinds = kinds(layout.channels, stains)
        _remark_contradictions(layout, called, remarks)
    return contradicted


def _remark_ignored(layout: Layout, called: Sequence[str], remarks: Remarks) -> list[int]:
    """Columns that the panel calls like another one, which needs the name more: its channel's, as a rule."""
    ignored = [
        i for i, name in enumerate(called) if name and name != layout.names[i] and called.count(name) == 1
    ]
    for i in ignored:
        text = f"the panel calls {layout.channels[i]} {called[i]!r}, which is another column's name"
        fix = f"it stays {layout.names[i]!r}: give it an antigen of its own"
        remarks.add("warning", layout.paths, text, fix)
    return ignored


def _remark_contradictions(layout: Layout, called: Sequence[str], remarks: Remarks) -> None:
    """Antigens that the panel gives to one channel and the file to another: one of them is mistaken."""
    seats = defaultdict(list)
    for i, marker in enumerate(layout.markers):
        if marker and layout.kinds[i] == "marker":
            seats[squashed(marker)].append(i)
    for i, antigen in enumerate(called):
        others = seats.get(squashed(antigen), []) if antigen and layout.kinds[i] == "marker" else []
        if others and i not in others:
            other = layout.channels[others[0]]
            text = f"the panel gives {layout.channels[i]} {antigen!r}, which is {other}'s marker in the file"
            remarks.add("warning", layout.paths, text, "mend the panel, unless the file is wrong")


def _refuse_repeated(
    layout: Layout, repeated: Iterable[list[int]], called: Sequence[str], remarks: Remarks
) -> bool:
    """Whether the panel gives one antigen to several columns; "DNA" and "empty" may stand twice."""
    markers = [alike for alike in repeated if any(layout.kinds[i] == "marker" for i in alike)]
    for first, second, *_ in markers[:1]:
        text = (
            f"the panel calls both {layout.channels[first]} and {layout.channels[second]} {called[first]!r}"
        )
        fix = "delete a row of the panel, or give them different antigens"
        remarks.add("error", layout.paths, text, fix)
    return bool(markers)


def panel_rows(layout: Layout, antigens: dict[str, str]) -> tuple[list[str | None], list[list[int]]]:
    """The panel's row for each column, and the groups of columns that get the same antigen.

    A row is meant by $PnN, else by $PnS, else by these whatever the case; an antigen that is found one
    way is not looked for the next.
    """
    rows: list[str | None] = [None] * len(layout.channels)
    taken: set[str] = set()
    folded = {row.casefold(): row for row in reversed(antigens)}
    exact = {row: row for row in antigens}
    ways: list[tuple[dict[str, str], Callable[[str], str], Sequence[str]]] = [
        (exact, str, layout.channels),
        (exact, str, layout.markers),
        (folded, str.casefold, layout.channels),
        (folded, str.casefold, layout.markers),
    ]
    repeated: list[list[int]] = []
    for known, fold, texts in ways:
        columns = defaultdict(list)
        for i, text in enumerate(texts):
            row = known.get(fold(text)) if text and rows[i] is None else None
            if row is not None and (not antigens[row] or antigens[row] not in taken):
                rows[i] = row
                columns[antigens[row]].append(i)
        taken |= set(columns)
        repeated += [alike for antigen, alike in columns.items() if antigen and len(alike) > 1]
    return rows, repeated


def _given_names(layout: Layout, called: Sequence[str], remarks: Remarks) -> list[str]:
    """Names from panel and file, "" where a column has none of its own; no name twice."""
    names = [
        antigen or ("" if kind in CHANNEL_NAMED else marker)
        for antigen, marker, kind in zip(called, layout.markers, layout.kinds, strict=True)
    ]
    columns = defaultdict(list)
    for i, name in enumerate(names):
        columns[name].append(i)
    for name, alike in columns.items():
        if not name or len(alike) == 1:
            continue
        # FITC-H repeats the marker of FITC-A; it is the one that counts which keeps the name
        counting = [i for i in alike if layout.kinds[i] == "marker"]
        counting = [i for i in counting if called[i]] or counting  # the panel's word goes before the file's
        keeps = counting[0] if len(counting) == 1 else None
        for i in alike:
            names[i] = name if i == keeps else ""
        if keeps is None and counting and name not in called:
            where = " and ".join(layout.channels[i] for i in alike)
            remarks.add("note", layout.paths, f"{name!r} names {where}: they are called by their channels")
    return names


def _share_names(layouts: Sequence[Layout], remarks: Remarks) -> None:
    """Let the files tell each other how the marker of a channel is called and spelled."""
    spelled: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for layout in layouts:
        for channel, name, row in zip(layout.channels, layout.names, layout.rows, strict=True):
            if name and not row:
                spelled[channel][squashed(name)][name] += len(layout.paths)
    for layout in layouts:
        present = set(layout.names)
        told: list[str] = []
        for i, channel in enumerate(layout.channels):
            own, best = layout.names[i], _usual_name(layout, i, spelled.get(channel, {}))
            if best in ("", own) or best in present:
                continue
            told.append(f"{own or channel} is {best!r}")
            layout.names[i] = best
            present.add(best)
        if told:
            remarks.add("note", layout.paths, f"named as in other files: {several(told)}")


def _usual_name(layout: Layout, i: int, known: dict[str, Counter[str]]) -> str:
    """How most files call the marker of a channel, if they agree what it is; else ""."""
    if layout.rows[i] or layout.kinds[i] in CHANNEL_NAMED:
        return ""
    own = layout.names[i] or layout.markers[i]  # a marker that stands twice is no name yet
    names = known.get(squashed(own)) if own else (next(iter(known.values())) if len(known) == 1 else None)
    return names.most_common(1)[0][0] if names else ""


def _unique(names: list[str], layout: Layout) -> list[str]:
    """Names of which none stands twice: those that do give way to the channel's, which is unique."""
    while True:
        counts = Counter(names)
        alike = [i for i, n in enumerate(names) if counts[n] > 1 and n != layout.channels[i]]
        if not alike:
            return names
        for i in alike:
            names[i] = layout.channels[i]


def squashed(name: str) -> str:
    """Letters and digits of a name in lower case: HLA-DR and hladr are one."""
    return "".join(c for c in name.casefold() if c.isalnum()) or name
