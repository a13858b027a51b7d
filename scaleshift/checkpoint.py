"""How does a killed fit go on where it stopped?  From its last state, kept with a fingerprint of the job."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import scaleshift
from scaleshift.errors import DataError, ScaleshiftError


@dataclass(frozen=True)
class Checkpoint:
    """The state of an iterative fit."""

    fingerprint: str  # of its data and parameters
    seed: int
    state: Any  # what `scaleshift.encoding` can write
    version: str = scaleshift.__version__  # other ones may go on to other bits


def fingerprint(job: Mapping[str, Any]) -> str:
    """Short text that tells one job from another."""
    return hashlib.sha256(json.dumps(job, sort_keys=True, default=str).encode()).hexdigest()[:32]


def read(path: str | os.PathLike[str] | None) -> Checkpoint | None:
    """The checkpoint at a path, None where nothing stands there yet or no path is given."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"checkpoint={path!r}: expected the path of a folder, or None")
    from scaleshift import persistence

    try:
        if not os.path.lexists(path) or _is_empty(path):
            return None
        found = persistence.load(path)
    except (ScaleshiftError, OSError) as error:
        raise DataError(
            f"checkpoint={os.fspath(path)!r} cannot be read ({error}): choose another path; or, if it is a "
            "checkpoint that was damaged, delete it to begin anew"
        ) from error
    if not isinstance(found, Checkpoint):
        raise DataError(f"checkpoint={os.fspath(path)!r} holds a {type(found).__name__}: choose another path")
    if found.version != scaleshift.__version__:
        raise DataError(
            f"checkpoint={os.fspath(path)!r} is of scaleshift {found.version}, and this is "
            f"{scaleshift.__version__}: go on with that one, or delete it to begin anew"
        )
    return found


def _is_empty(path: str | os.PathLike[str]) -> bool:
    """Whether it is a folder that was made for the checkpoint."""
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def check(found: Checkpoint | None, expected: str, path: Any) -> None:
    """Refuse the checkpoint of another job."""
    if found is not None and found.fingerprint != expected:
        raise DataError(
            f"checkpoint={os.fspath(path)!r} is of other data or parameters: choose another path, "
            "or delete it"
        )


def write(path: str | os.PathLike[str] | None, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint at a path, as a whole; nothing where no path is given.

    Raises
    ------
    DataError
        If it cannot be written: the earlier one still stands there.
    """
    if path is not None:
        from scaleshift import persistence

        with contextlib.suppress(OSError):
            os.rmdir(path)  # an empty folder that was made for it: a state is put in place as a whole
        try:
            persistence.save(checkpoint, path)
        except (ScaleshiftError, OSError) as error:
            below = error if isinstance(error, OSError) else error.__cause__
            if isinstance(below, OSError):  # a full disk among them
                raise DataError(
                    f"checkpoint={os.fspath(path)!r} cannot be written ({below.strerror or below}): choose "
                    "another path, or mend this one, where what it held before is as it was"
                ) from error
            raise DataError(
                f"checkpoint={os.fspath(path)!r} cannot keep this fit: {error}; or leave checkpoint out"
            ) from error
