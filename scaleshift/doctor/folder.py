"""Which files does a store consist of, and which of them does nobody read?"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import zarr

METADATA = "zarr.json"
# As zarr and this package name what they put in place as a whole when it is complete.
STAGED = re.compile(r".*\.partial|\..+-[0-9a-f]{32}")


@dataclass(frozen=True)
class Listing:
    """What lies in a local folder."""

    files: list[str] = field(default_factory=list)  # paths below the folder
    links: list[str] = field(default_factory=list)  # and whatever is neither a file nor a folder
    arrays: list[str] = field(default_factory=list)  # names of arrays and groups, of their zarr.json
    groups: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)  # metadata that is damaged, and why


@dataclass(frozen=True)
class Grid:
    """How many chunks an array has along each dimension, and how many rows of them are in use."""

    n_chunks: tuple[int, ...]
    n_used: int | None = None  # along the first dimension; None: all


@dataclass(frozen=True)
class Leftovers:
    """Files that nobody reads."""

    staged: list[str]  # of writers that were killed, or are at work
    beyond: list[str]  # chunks after the last committed row
    foreign: list[str]


def listing(location: str) -> Listing:
    """Every file of a folder; links are not followed."""
    found = Listing()
    for path, is_link in sorted(_walk(location, "")):
        if is_link:
            found.links.append(path)
            continue
        found.files.append(path)
        if os.path.basename(path) != METADATA:
            continue
        name = os.path.dirname(path)
        try:
            with open(os.path.join(location, path), "rb") as file:
                kind = json.load(file)["node_type"]
            (found.arrays if kind == "array" else found.groups).append(name)
        except Exception as error:  # damaged in any way
            found.unreadable[name] = f"{type(error).__name__}: {error}"
    return found


def _walk(location: str, below: str) -> Iterator[tuple[str, bool]]:
    with os.scandir(os.path.join(location, below)) as entries:
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(location, path)
            else:
                yield path, not entry.is_file(follow_symlinks=False)


def leftovers(found: Listing, grids: Mapping[str, Grid]) -> Leftovers:
    """What is neither metadata nor a chunk that is in use.

    Parameters
    ----------
    found : Listing
    grids : mapping of str to Grid
        Of the arrays that could be opened, and have our keys.
    """
    left = Leftovers([], [], [])
    nodes = {*found.arrays, *found.groups, *found.unreadable}
    unknown = [name for name in nodes if name not in grids and name not in found.groups]
    for path in found.files:
        name, _, file = path.rpartition("/")
        if file == METADATA and name in nodes:
            continue
        if any(STAGED.fullmatch(part) for part in path.split("/")):
            left.staged.append(path)
            continue
        array, place = _chunk(path)
        if array in grids and place is not None and _lies_in(place, grids[array].n_chunks):
            used = grids[array].n_used
            if place and used is not None and place[0] >= used:
                left.beyond.append(path)
        elif not any(path.startswith(f"{name}/") for name in unknown):  # whose chunks nobody can tell
            left.foreign.append(path)
    return left


def has_our_keys(array: zarr.Array) -> bool:
    """Whether its chunks are called NAME/c/0/0."""
    return bool(array.metadata.encode_chunk_key((1, 2)) == "c/1/2")


def _chunk(path: str) -> tuple[str, tuple[int, ...] | None]:
    """The array and place of a chunk, by zarr's default keys: NAME/c/0/0."""
    match = re.fullmatch(r"(?:(.*)/)?c((?:/\d+)*)", path)
    if match is None:
        return "", None
    return match[1] or "", tuple(int(number) for number in match[2].split("/")[1:])


def _lies_in(place: tuple[int, ...], n_chunks: tuple[int, ...]) -> bool:
    return len(place) == len(n_chunks) and all(i < n for i, n in zip(place, n_chunks, strict=True))
