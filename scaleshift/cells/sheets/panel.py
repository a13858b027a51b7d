"""Which columns does a study have, and where does each file have them?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from scaleshift.cells.problem import SHOWN, Problem, several
from scaleshift.cells.sheets.channels import NO_NAME, Kind, kind
from scaleshift.cells.sheets.features import (
    STUDY,
    Census,
    Wanted,
    choose,
    of_one_modality,
    remark_moved,
    similar,
)
from scaleshift.cells.sheets.filenames import composed
from scaleshift.cells.sheets.naming import (
    ChannelFile,
    Layout,
    Remarks,
    layouts_of,
    name_columns,
)
from scaleshift.cells.sheets.tables import MISSING, find_column, meant_column, place_of, read_table
from scaleshift.errors import DataError

CHANNEL = ("fcscolname", "channel", "channelname", "pnn", "fluor", "fluorochrome", "fluorophore", "metal")
ANTIGEN = ("antigen", "marker", "markername", "target", "pns", "desc")
CLASS = ("markerclass", "class", "type")
CLASSES = ("type", "state", "none")


@dataclass(frozen=True)
class Panel:
    """A panel sheet.

    Attributes
    ----------
    path : str
        Of the sheet, for messages.
    antigens : dict
        Channel, as the sheet writes it, to antigen; "" where the sheet names none.
    classes : dict
        Channel to "type", "state", "none", or "" where the sheet does not say.
    """

    path: str
    antigens: dict[str, str]
    classes: dict[str, str]


@dataclass(frozen=True)
class Columns:
    """The columns of a study, and where each file has them.

    Attributes
    ----------
    markers : tuple of str, length n_columns
        Names, unique.
    channels : tuple of str
        $PnN of each column in most files.
    kinds : tuple of str
        "marker", "scatter", "time" or "other".
    features : tuple of bool
        Whether a column is one to learn from.
    classes : tuple of str
        "type", "state", "none", or "" where no panel says so.
    positions : dict
        Path to an array, shape (n_columns,): which of the file's columns is each of the study. Files that
        cannot be used, since they lack a feature, are not in it.
    problems : list of Problem
    """

    markers: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    features: tuple[bool, ...] = ()
    classes: tuple[str, ...] = ()
    positions: dict[str, np.ndarray] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_panel(source: str | os.PathLike[str] | pd.DataFrame) -> Panel:
    """Read a panel sheet: a channel a row, and which antigen it shows.

    Parameters
    ----------
    source : path or pandas.DataFrame
        With a column of channels (``fcs_colname``, ``channel``, ``fluor``, ``metal``), one of antigens
        (``antigen``, ``marker``, ``target``), and maybe one of classes (``marker_class``, ``class``) that
        are type, state or none.

    Returns
    -------
    Panel

    Raises
    ------
    DataError
        If a column is missing, a channel is empty or stands twice, or a class is another word.

    Examples
    --------
    >>> read_panel(pd.DataFrame({"fcs_colname": ["Ce140Di"], "antigen": ["CD19"]})).antigens
    {'Ce140Di': 'CD19'}
    """
    place, table = place_of(source), read_table(source)
    columns = [find_column(table, names) for names in (CHANNEL, ANTIGEN, CLASS)]
    for column, wanted in zip(columns, ("channels", "antigens"), strict=False):
        if column is None:
            name = "fcs_colname" if wanted == "channels" else "antigen"
            found = ", ".join(map(repr, table.columns))
            hint = meant_column(table, ["fcs_colname", *CHANNEL, *ANTIGEN])
            raise DataError(f"{place}: no column of {wanted}, found {found}: call it {name}{hint}")
    if columns[2] is None:
        hint = meant_column(table, ["marker_class", *CLASS])
        if hint:
            raise DataError(f"{place}: no column of classes{hint}: rename it, or all markers are features")
    table = table.map(composed)
    channels = table[columns[0]]
    empty, twice = table.index[channels == ""], table.index[channels.duplicated()]
    if len(empty):
        raise DataError(f"{place}: line {empty[0]}: {columns[0]} is empty: fill it in or delete the row")
    if len(twice):
        name = channels[twice[0]]
        raise DataError(f"{place}: line {twice[0]}: {name!r} stands twice in {columns[0]}: delete a row")
    texts = table[columns[1]]
    antigens = dict(zip(channels, texts.mask(texts.str.casefold().isin(NO_NAME), ""), strict=True))
    if columns[2] is None:
        return Panel(place, antigens, dict.fromkeys(channels, ""))
    classes = table[columns[2]].str.casefold()
    classes = classes.mask(classes.isin(MISSING), "")
    _check_classes(classes, texts, place, columns[2])
    return Panel(place, antigens, dict(zip(channels, classes, strict=True)))


def _check_classes(classes: pd.Series, antigens: pd.Series, place: str, column: str) -> None:
    unknown = classes.index[~classes.isin((*CLASSES, ""))]
    if len(unknown):
        line = unknown[0]
        raise DataError(f"{place}: line {line}: {column} is {classes[line]!r}, expected type, state or none")
    said = pd.DataFrame({"antigen": antigens, "class": classes})[(classes != "") & (antigens != "")]
    said = said.drop_duplicates()
    twice = said.index[said["antigen"].duplicated()]
    if len(twice):
        line = twice[0]
        raise DataError(
            f"{place}: line {line}: {antigens[line]!r} is {classes[line]!r} here and something else above: "
            "give an antigen one class"
        )


def align(
    files: Iterable[ChannelFile],
    panel: Panel | None = None,
    markers: Wanted = None,
) -> Columns:
    """Find the columns that the files of a study share, by name, and choose the features among them.

    A column is called by the panel's antigen, else by its marker ($PnS), else by its channel ($PnN), and
    columns with the same name are one, wherever they stand: so a marker may have another fluorochrome in
    some files. Time and scatter go by channel. Where a channel has a marker in some files and none in
    others, it has it in all.

    Parameters
    ----------
    files : iterable of objects with ``path``, ``channels``, ``markers``, and maybe ``cytometer``
        Such as headers of FCS files. Channels are unique in a file; a marker is "" if there is none.
    panel : Panel, optional
    markers : sequence of str, "common" or None
        Features, by marker or channel. None: every channel that shows a marker, and that the panel does not
        give the class none; a file that lacks one of them has a problem. "common": those that all files
        have.

    Returns
    -------
    Columns
        In the order of the first file. Columns that are no features are kept where all files have them.

    Raises
    ------
    DataError
        If no file has one of `markers`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> a = SimpleNamespace(path="a.fcs", channels=["FSC-A", "FITC-A"], markers=["", "CD4"])
    >>> b = SimpleNamespace(path="b.fcs", channels=["PE-A", "FSC-A"], markers=["CD4", ""])
    >>> columns = align([a, b])
    >>> columns.markers, columns.features, columns.positions["b.fcs"].tolist()
    (('FSC-A', 'CD4'), (False, True), [1, 0])
    """
    layouts, remarks = layouts_of(files), Remarks()
    panel = panel or Panel("", {}, {})
    _remark_unused_rows(layouts, panel, remarks)
    contradicted = name_columns(layouts, panel.antigens, remarks)
    sound = [layout for layout in layouts if layout not in contradicted]
    census = Census(of_one_modality(sound, markers, remarks))
    if not census.layouts:
        return Columns(problems=remarks.problems())
    classes = _classes(census, panel)
    features, unusable = choose(census, classes, markers, remarks)
    usable = [number for number in range(len(census.layouts)) if number not in unusable]
    names = _kept(census, features, usable, remarks)
    remark_moved(census, remarks)
    if markers is None or isinstance(markers, str):
        _remark_features(census, features, panel, remarks)
    return Columns(
        tuple(names),
        tuple(census.channels[name] for name in names),
        tuple(census.kinds[name] for name in names),
        tuple(name in features for name in names),
        tuple(classes[name] for name in names),
        _positions(names, [census.layouts[number] for number in usable]),
        remarks.problems(),
    )


def _classes(census: Census, panel: Panel) -> dict[str, str]:
    """Class of each column, "" where the panel does not say."""
    classes = dict.fromkeys(census.holders, "")
    for layout in census.layouts:
        for _, name, _, row in layout.columns():
            if row is not None:
                classes[name] = classes[name] or panel.classes[row]
    return classes


def _kept(census: Census, features: Sequence[str], usable: Sequence[int], remarks: Remarks) -> list[str]:
    """Features, and what else all files have; in the order of the first file."""
    chosen, needed = set(features), set(usable or range(len(census.layouts)))
    kept = [name for name, holders in census.holders.items() if name in chosen or needed <= holders]
    dropped = [n for n in census.holders if n not in kept and census.kinds[n] != "marker"]
    if dropped:
        remarks.add("note", [STUDY], f"not in all files, no features, and left out: {several(dropped)}")
    return kept


def _positions(names: Sequence[str], layouts: Iterable[Layout]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for layout in layouts:
        column = {name: i for i, name in enumerate(layout.names)}
        positions = np.array([column[name] for name in names], dtype=np.intp)
        positions.flags.writeable = False  # one array for all files of the layout
        found |= dict.fromkeys(layout.paths, positions)
    return found


def _remark_unused_rows(layouts: Iterable[Layout], panel: Panel, remarks: Remarks) -> None:
    """Warn of channels in the panel that no file has."""
    known = dict.fromkeys(name for layout in layouts for name in (*layout.channels, *layout.markers) if name)
    folded = {name.casefold() for name in known}
    unused = [row for row in panel.antigens if row.casefold() not in folded]
    if unused:
        alike = [similar(row, list(known)) for row in unused[:SHOWN]]
        hints = [f" (did you mean {name!r}?)" if name else "" for name in alike]
        told = [f"{row!r}{hint}" for row, hint in zip(unused, hints, strict=False)]
        told += [""] * (len(unused) - len(told))  # counted, not shown
        remarks.add("warning", [panel.path], f"no file has {several(told)}", "mend or delete these rows")


def _remark_features(census: Census, features: Sequence[str], panel: Panel, remarks: Remarks) -> None:
    """Say what is a feature, or not, in spite of its looks."""
    if not features:
        fix = "name the markers in a panel sheet, or pass markers=[...] (--markers)"
        remarks.add("error", [STUDY], "no marker to learn from", fix)
    in_panel = {name for layout in census.layouts for _, name, _, row in layout.columns() if row}
    if panel.antigens:
        doubtful, why = [n for n in features if n not in in_panel], f"not in {panel.path}"
        way_out = ": give those that are none the class none there"
    else:
        doubtful, why = [n for n in features if census.channels[n] == n], "without a marker name"
        way_out = "" if len(doubtful) == len(features) else ": choose with markers=[...] or a panel sheet"
    if doubtful and way_out:
        remarks.add("note", [STUDY], f"features all the same, though {why}: {several(doubtful)}{way_out}")
    repeats = [n for n, k in census.kinds.items() if k == "other" and kind(census.channels[n], n) == "marker"]
    if repeats:
        remarks.add("note", [STUDY], f"no features, since they repeat a detector's pulse: {several(repeats)}")
