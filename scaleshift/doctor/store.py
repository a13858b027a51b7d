"""Can a store be trusted?  A study, a saved model or another Zarr group is read as a whole, and judged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from scaleshift import persistence
from scaleshift.cells.manifest import Manifest, locate, open_study
from scaleshift.cells.problem import several
from scaleshift.cells.reader import RECORD, store_at
from scaleshift.doctor import folder, scan
from scaleshift.doctor.finding import Finding, Status
from scaleshift.errors import ScaleshiftError

MOST_NAMES = 5  # of samples, in a sentence
RESTORE = "restore it from a copy, or write the study again"
DELETE = "delete them where no writer is at work"


def examine_store(path: str | os.PathLike[str]) -> dict[str, list[Finding]]:
    """Read every chunk of a store and every file of its folder, and say what is not as it should be.

    A study: chunks that are missing or damaged, codes of no label or of another sample, samples whose rows
    are not those that were imported, values that are not finite, what a killed writer left, files that
    belong to nobody. A saved model or a checkpoint: its record and arrays. Other Zarr groups: chunks.

    Parameters
    ----------
    path : str or path-like
        Folder or URL.

    Returns
    -------
    dict of str to list of Finding
        By section; `scaleshift.doctor.to_json` makes JSON of it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from scaleshift.cells import as_cells, write_cells
    >>> with TemporaryDirectory() as place:
    ...     write_cells(as_cells([[1.0], [2.0]], label=["B", "T"]), f"{place}/study.zarr")
    ...     found = examine_store(f"{place}/study.zarr")
    >>> [finding.value for finding in found["study"]]
    ['1 sample, 2 cells, 1 marker, 2 labels']
    """
    location = locate(path)
    if "://" not in location and not Path(location).is_dir():
        return {"store": [_no_folder(location)]}
    kind = "" if "://" in location else _kind(Path(location))
    if kind == "model":
        return {"model": list(_model(Path(location)))}
    if kind == "models":
        below = sorted(path for path in Path(location).iterdir() if persistence.kind_of(path) is not None)
        return {f"model {path.name}": list(_model(path)) for path in below}
    return _zarr_store(location)


def _no_folder(location: str) -> Finding:
    if not os.path.lexists(location):
        return Finding("path", "problem", f"{location} does not exist")
    if location.endswith((".h5ad", ".h5", ".hdf5")):
        advice = "scaleshift ingest makes a study of it, whose chunks have checksums"
        return Finding("path", "problem", "an HDF5 file, no Zarr store: its chunks are not scanned", advice)
    return Finding("path", "problem", f"{location} is a file, no Zarr store: there is nothing to scan")


def _kind(location: Path) -> str:
    """What a folder is, by what lies in it; damaged ones must be told too."""
    if (location / RECORD).exists():
        return "study"
    if any(persistence.ARRAYS.fullmatch(path.name) for path in location.iterdir()):
        return "model"
    if persistence.kind_of(location) is not None:
        return "model"
    is_zarr = (location / folder.METADATA).exists()
    if not is_zarr and any(persistence.kind_of(path) is not None for path in location.iterdir()):
        return "models"
    return "other"


# Models ------------------------------------------------------------------------------------------------


def _model(location: Path) -> Iterator[Finding]:
    damages, kind = persistence.damages(location), persistence.kind_of(location)
    name, of = ("checkpoint", "") if kind == "Checkpoint" else ("saved model", f"a {kind}, ")
    for what in damages:
        yield Finding(name, "problem", what)
    if not damages:
        yield Finding(name, "ok", f"{of}record and arrays undamaged")
    used = persistence.files_of(location)
    unused = sorted(path.name for path in location.iterdir() if path.name not in used)
    if unused:
        yield _files("unused", unused, "of saves that were interrupted, or foreign", DELETE)


# Zarr stores -------------------------------------------------------------------------------------------


def _zarr_store(location: str) -> dict[str, list[Finding]]:
    study, manifest, is_study = _study(location)
    local = "://" not in location
    found = folder.listing(location) if local else None
    try:
        names = found.arrays if found else _members(location)
    except Exception as error:  # whatever zarr and the server at a URL raise
        return {"store": [Finding("path", "problem", f"{location} is no Zarr group: {scan.in_words(error)}")]}
    if found and not (found.arrays or found.groups or found.unreadable):
        is_old = any((Path(location) / name).exists() for name in (".zgroup", ".zarray"))
        what = "Zarr v2, which is not scanned" if is_old else "nothing to scan"
        advice = "scaleshift ingest makes a study of it, if AnnData wrote it" if is_old else ""
        return {"store": [Finding("path", "problem", f"{location} is no Zarr v3 store: {what}", advice)]}
    arrays, broken = _opened(location, names)
    if found:
        broken |= {name or "/": why for name, why in found.unreadable.items()}
    seen = scan.scan(location, sorted(arrays), manifest)
    sections = {"study" if is_study else "store": study}
    sections["chunks"] = [*_metadata(broken), *_chunks(seen, arrays, manifest)]
    if manifest is not None and manifest.n_cells:
        sections["cells"] = [*_samples(seen, manifest), _values(seen, manifest)]
    if found:
        sections["files"] = list(_folder(found, arrays, manifest))
    return sections


def _study(location: str) -> tuple[list[Finding], Manifest | None, bool]:
    """What the record says; whether it is a study at all."""
    try:
        _, manifest = open_study(location)
    except ScaleshiftError as error:
        if "://" not in location and not (Path(location) / RECORD).exists():
            advice = "scaleshift's own: studies, models and results"
            return (
                [Finding("kind", "missing", "no study of scaleshift: chunks alone are read", advice)],
                None,
                False,
            )
        return (
            [Finding("record", "problem", str(error), "what can be read is scanned all the same")],
            None,
            True,
        )
    sizes = {
        "sample": len(manifest.samples),
        "cell": manifest.n_cells,
        "marker": len(manifest.markers),
        "label": len(manifest.labels),
    }
    counted = ", ".join(f"{n:,} {name}{'' if n == 1 else 's'}" for name, n in sizes.items())
    found = [Finding("record", "ok", counted, facts={"study": manifest.study, **sizes})]
    if manifest.awaited:
        value = f"{len(manifest.samples)} of {manifest.awaited} samples are here: under way, or interrupted"
        found.append(Finding("import", "problem", value, "scaleshift ingest --resume goes on with it"))
    elif not manifest.samples:
        value = "no finished sample: writing it was interrupted, or is under way"
        found.append(Finding("import", "problem", value, "if it was interrupted, write the study again"))
    if manifest.labelling:
        value = "writing them was interrupted, or is under way"
        found.append(Finding("labels", "problem", value, "if it was interrupted, run scaleshift label again"))
    return found, manifest, True


def _members(location: str) -> list[str]:
    group: Any = zarr.open_group(store_at(location, read_only=True), mode="r", use_consolidated=False)
    return [name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)]


def _opened(location: str, names: Sequence[str]) -> tuple[dict[str, zarr.Array], dict[str, str]]:
    """The arrays, and why others cannot be opened."""
    arrays, broken = {}, {}
    store = store_at(location, read_only=True)
    for name in names:
        try:
            arrays[name] = zarr.open_array(store, path=name, mode="r", zarr_format=3)
        except Exception as error:  # damaged or forged in any way
            broken[name] = scan.in_words(error)
    return arrays, broken


def _metadata(broken: Mapping[str, str]) -> Iterator[Finding]:
    for name, why in sorted(broken.items()):
        facts = {"array": name, "what": why}
        yield Finding(f"metadata of {name}", "problem", f"cannot be read: {why}", RESTORE, facts)


def _chunks(
    seen: scan.Seen, arrays: Mapping[str, zarr.Array], manifest: Manifest | None
) -> Iterator[Finding]:
    """Every chunk that is damaged, and how many are not."""
    for fault in seen.faults:
        yield _fault(fault, manifest)
    n = sum(seen.n_chunks.values())
    bad = len({(fault.array, fault.chunk) for fault in seen.faults})
    facts = {"n_chunks": n, "n_damaged": bad, "by_array": dict(sorted(seen.n_chunks.items()))}
    value = f"{n:,} chunks of {len(seen.n_chunks)} arrays read, {bad or 'none'} damaged"
    yield Finding("chunks", "problem" if bad else "ok", value, facts=facts)
    without = sorted(name for name, array in arrays.items() if not scan.has_checksum(array))
    if without:
        value = f"{', '.join(without)}: damage that can be decompressed is not noticed, nor a missing chunk"
        advice = "another tool has written them; write_cells and scaleshift ingest write checksums"
        yield Finding("no checksum", "missing", value, advice, {"arrays": without})


def _fault(fault: scan.Fault, manifest: Manifest | None) -> Finding:
    number = ".".join(map(str, fault.chunk)) if len(fault.chunk) > 1 and any(fault.chunk[1:]) else None
    number = number or (str(fault.chunk[0]) if fault.chunk else "")
    by_cell = manifest is not None and fault.array in scan.BY_CELL
    samples = _names_in(manifest, fault.first, fault.stop) if manifest is not None and by_cell else []
    rows = f"rows {fault.first:,}-{fault.stop - 1:,}" if fault.stop else "all of it"
    of = f" of {several(samples, MOST_NAMES)}" if samples else ""
    facts = {
        "array": fault.array,
        "chunk": list(fault.chunk),
        "rows": [fault.first, fault.stop],
        "samples": samples,
        "what": fault.what,
    }
    name = f"chunk {number} of {fault.array}" if number else fault.array
    return Finding(name, "problem", f"{rows}{of}: {fault.what}", RESTORE, facts)


def _names_in(manifest: Manifest, first: int, stop: int) -> list[str]:
    """Samples of these rows; those after the last finished sample of a killed import are of none yet."""
    ends = np.cumsum(manifest.counts)
    sample, last = np.searchsorted(ends, [first, stop - 1], "right").tolist()
    known = range(sample, min(last + 1, len(manifest.samples)))
    return [str(manifest.samples[i]) for i in known if manifest.counts[i]]


def _samples(seen: scan.Seen, manifest: Manifest) -> Iterator[Finding]:
    """Whether the rows of each sample are those that were imported."""
    wrong, n = scan.wrong_samples(seen, manifest)
    for i in wrong:
        name, start = str(manifest.samples[i]), manifest.offsets[i]
        value = f"rows {start:,}-{start + manifest.counts[i] - 1:,} are not those that were imported"
        advice = "chunks may have changed places, or X was rewritten: " + RESTORE
        yield Finding(f"sample {name}", "problem", value, advice, {"sample": name})
    known = sum(map(bool, manifest.checksums))
    n_samples = len(manifest.samples)
    facts = {"n_samples": n_samples, "n_with_checksum": known, "n_compared": n, "n_wrong": len(wrong)}
    if not known:
        value = "kept of none: chunks that changed places are not noticed"
        yield Finding("sample checksums", "missing", value, "scaleshift ingest keeps them", facts)
        return
    value = f"{n - len(wrong)} of {n_samples} samples are as imported"
    others = {
        "not": len(wrong),
        "not to be compared, for a damaged chunk": known - n,
        "without a checksum": n_samples - known,
    }
    told = "; ".join([value, *(f"{number} {what}" for what, number in others.items() if number)])
    status: Status = "problem" if wrong or known > n else "ok"
    yield Finding("sample checksums", status, told, facts=facts)


def _values(seen: scan.Seen, manifest: Manifest) -> Finding:
    nan, infinite = (np.broadcast_to(n, len(manifest.markers)).tolist() for n in (seen.nan, seen.infinite))
    found = {
        name: {"nan": a, "infinite": b}
        for name, a, b in zip(manifest.markers, nan, infinite, strict=True)
        if a or b
    }
    if not found:
        return Finding("values", "ok", "all that were read are finite", facts={"not_finite": {}})
    words = [f"{name}: {of['nan']} NaN, {of['infinite']} infinite" for name, of in found.items()]
    advice = 'such cells are left out with invalid="drop" (--invalid drop)'
    return Finding("values", "ok", f"not finite are {'; '.join(words)}", advice, {"not_finite": found})


def _folder(
    found: folder.Listing, arrays: Mapping[str, zarr.Array], manifest: Manifest | None
) -> Iterator[Finding]:
    """What lies in the folder beside what is read."""
    grids = {n: _grid(n, array, manifest) for n, array in arrays.items() if folder.has_our_keys(array)}
    left = folder.leftovers(found, grids)
    if found.links:
        advice = "what they lead to can change without notice: put the files themselves here"
        yield _files("links", found.links, "links or special files, which no writer makes", advice, "problem")
    if left.staged:
        yield _files("staged", left.staged, "of writers that were killed, or are at work", DELETE)
    if left.beyond:
        is_import = manifest is not None and manifest.awaited
        what = "the import" if is_import else "an append"
        writer = "scaleshift ingest --resume" if is_import else "the next append"
        what = f"chunks after the last finished sample: {what} is under way, or was interrupted"
        yield _files("not committed", left.beyond, what, f"{writer} writes over them")
    if left.foreign:
        yield _files("foreign", left.foreign, "files that nobody reads", "keep them elsewhere")
    n = len(found.files)
    if not (found.links or left.staged or left.beyond or left.foreign):
        yield Finding("files", "ok", f"{n:,}, all of them the store's", facts={"n_files": n})


def _grid(name: str, array: zarr.Array, manifest: Manifest | None) -> folder.Grid:
    units = array.shards or array.chunks
    n_chunks = tuple(-(-n // size) for n, size in zip(array.shape, units, strict=True))
    if manifest is None or name not in scan.BY_CELL:
        return folder.Grid(n_chunks)
    return folder.Grid(n_chunks, -(-manifest.n_cells // units[0]))


def _files(name: str, paths: Sequence[str], what: str, advice: str, status: Status = "missing") -> Finding:
    shown = several(list(paths), MOST_NAMES)
    facts = {"n_files": len(paths), "files": list(paths)}
    return Finding(name, status, f"{len(paths):,} {what}: {shown}", advice, facts)
