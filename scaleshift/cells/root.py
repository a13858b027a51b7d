"""Is there a Zarr group of ours at a path or URL? What else may be there is told apart, with a way out."""

from __future__ import annotations

import os
import shlex
from itertools import islice

import zarr

from scaleshift.cells.reader import CompleteStore, store_at
from scaleshift.cells.remote import refuse_unreachable, scheme
from scaleshift.cells.transient import passes
from scaleshift.errors import SchemaError
from scaleshift.spelling import suggestion

FOREIGN = "use write_cells(as_cells(anndata.read_zarr(path), sample=..., label=...), new_path)"
EXPECTED = (
    "expected a study that scaleshift wrote to the end (an AnnData store in Zarr v3 with uns/scaleshift)"
)
MOST = 1000  # entries of a folder among which a study is looked for


def open_root(location: str) -> zarr.Group:
    """Read-only root group of a Zarr v3 store.

    Raises
    ------
    SchemaError
        Where nothing is there, something else, or where it cannot be reached.
    """
    if not scheme(location) and not os.path.exists(location):
        raise SchemaError(f"{location} does not exist: {EXPECTED}{_meant(location)}")
    store = CompleteStore(store_at(location, read_only=True))
    try:
        return zarr.open_group(store, mode="r", zarr_format=3, use_consolidated=False)
    except Exception as error:  # whatever zarr makes of something else than a group
        if passes(error):
            raise
        refuse_unreachable(location, error)
        reason = "" if isinstance(error, FileNotFoundError) else f" ({error})"
    try:
        zarr.open_group(store, mode="r", zarr_format=2, use_consolidated=False)
    except Exception:
        what = "does not exist, or " if scheme(location) and not reason else ""
        way_in = _way_in(location)
        raise SchemaError(f"{location} {what}is not a Zarr group{reason}: {EXPECTED}{way_in}") from None
    raise SchemaError(f"{location} is a Zarr v2 store: {EXPECTED}; if AnnData wrote it, {FOREIGN}")


def _meant(location: str) -> str:
    """Which study of the same folder may be meant, of its first entries."""
    from scaleshift.cells.files.annotated import is_study  # which opens studies itself

    folder, name = os.path.split(location)
    try:
        with os.scandir(folder) as entries:
            studies = sorted(entry.name for entry in islice(entries, MOST) if is_study(entry.path))
    except OSError:
        return ""
    return suggestion(name, studies)


def _way_in(location: str) -> str:
    """How a study is made of what is there, if these are files of events."""
    from scaleshift.cells.files import holds_events  # which opens studies itself

    if scheme(location) or not holds_events(location):
        return ""
    return f"; make one of the files: {shlex.join(['scaleshift', 'ingest', location, 'study.zarr'])}"
