"""Which rows of a study are the events of this file or sample? Found by their names, as people write them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from scaleshift.cells.manifest import Manifest
from scaleshift.cells.sheets.filenames import base_name, closest, composed, stem
from scaleshift.errors import DataError
from scaleshift.spelling import suggestion

FILE, SAMPLE = "file", "sample"


class Place(NamedTuple):
    """Events that follow each other in a study: those of a file, or of a sample."""

    kind: str  # "file" or "sample"
    name: str
    start: int  # row of event 0
    n: int
    path: str | None  # of the file; None for a sample of more files than one

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


Way = tuple[dict[str, list[Place]], Callable[[str], str]]  # to find places: by names in one form


class Addresses:
    """The files and samples of a study.

    A sample goes by its name; a file by its path, its base name, or that without extensions: of several, by
    the last folders too. A name with an extension stands for the sample called like that without it, too.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.store = manifest.path
        samples = [
            Place(SAMPLE, str(name), start, n, None)
            for name, start, n in zip(manifest.samples, manifest.offsets, manifest.counts, strict=True)
        ]
        of_sample = _files(manifest.files, samples)
        self.files = [file for files in of_sample.values() for file in files]
        self.samples = [
            sample._replace(path=files[0].path) if len(files := of_sample[sample.name]) == 1 else sample
            for sample in samples
        ]
        by_name = _index(self.samples, composed)
        as_sample: list[Way] = [(by_name, composed)]
        as_file: list[Way] = [(_index(self.files, form), form) for form in (composed, base_name, stem)]
        bare: list[Way] = [(by_name, stem)]
        self._ways = {SAMPLE: as_sample + as_file + bare, FILE: as_file + as_sample + bare}

    def find(self, name: str, kind: str = SAMPLE) -> Place | None:
        """The place of this name, files first where `kind` is "file"; None if there is none.

        Raises
        ------
        DataError
            If several files go by the name.
        """
        for places, form in self._ways[kind]:
            found = places.get(form(name), [])
            if len(found) > 1:
                found = [found[i] for i in closest(name, [str(place.path) for place in found])]
            if len(found) > 1:
                raise DataError(
                    f"{self.store}: {len(found)} files go by the name {name!r} "
                    f"({found[0].path}, {found[1].path}): name them by path, or by sample"
                )
            if found:
                return found[0]
        return None

    def place(self, name: str, kind: str, where: str) -> Place:
        """The place of this name; DataError, starting with `where`, if there is none."""
        found = self.find(name, kind)
        if found is None:
            known = [place.name for place in (self.files or self.samples if kind == FILE else self.samples)]
            raise DataError(f"{where}: {kind} {name!r} is not in {self.store}{suggestion(name, known)}")
        return found

    def only_sample(self, where: str) -> Place:
        """The study's one sample; DataError, starting with `where`, if there are more."""
        if len(self.samples) > 1:
            n = len(self.samples)
            raise DataError(
                f"{where} has no column 'file' or 'sample', and {self.store} has {n} samples: name the "
                "column that tells whose events the rows are, sample=... (--sample), or add one"
            )
        return self.samples[0]

    def event(self, row: int, first_event: int) -> str:
        """The event that stands in a row of the study, in words."""
        places = [p for p in (*self.files, *self.samples) if p.start <= row < p.start + p.n]
        return f"event {row - places[0].start + first_event} of {places[0]}"


def _files(entries: Iterable[Any], samples: list[Place]) -> dict[str, list[Place]]:
    """The files of each sample, where the record tells all of them: else their rows are not known."""
    of_sample: dict[str, list[Place]] = defaultdict(list)
    starts = {sample.name: sample.start for sample in samples}
    for entry in entries:
        if isinstance(entry, Mapping) and {"path", "sample", "n_events"} <= entry.keys():
            sample, path, n = str(entry["sample"]), str(entry["path"]), int(entry["n_events"])
            if sample in starts:
                of_sample[sample].append(Place(FILE, base_name(path), starts[sample], n, path))
                starts[sample] += n
    for whole in samples:
        if starts[whole.name] != whole.start + whole.n:
            of_sample.pop(whole.name, None)
    return of_sample


def _index(places: list[Place], form: Callable[[str], str]) -> dict[str, list[Place]]:
    """Names in one form, and the places that go by them; files go by their paths."""
    index: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        index[form(str(place.path) if place.kind == FILE else place.name)].append(place)
    return dict(index)
