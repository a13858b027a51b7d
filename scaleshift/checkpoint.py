"""How does a killed fit go on where it stopped?  From its last state, kept with a fingerprint of the job."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaleshift.errors import DataError


@dataclass(frozen=True)
class Checkpoint:
    """The state of an iterative fit."""

    fingerprint: str  # of its data and parameters
    seed: int
    state: Any  # what `scaleshift.encoding` can write


def fingerprint(job: Mapping[str, Any]) -> str:
    """Short text that tells one job from another."""
    return hashlib.sha256(json.dumps(job, sort_keys=True, default=str).encode()).hexdigest()[:32]


def read(path: str | os.PathLike[str] | None) -> Checkpoint | None:
    """The checkpoint at a path, None where nothing stands there yet or no path is given."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"checkpoint={path!r}: expected the path of a folder, or None")
    if not os.path.lexists(path) or _is_empty(path):
        return None
    from scaleshift import persistence

    found = persistence.load(path)
    if not isinstance(found, Checkpoint):
        raise DataError(f"checkpoint={os.fspath(path)!r} holds a {type(found).__name__}: choose another path")
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
    """Replace the checkpoint at a path, as a whole; nothing where no path is given."""
    if path is not None:
        from scaleshift import persistence

        try:
            if _is_empty(path):
                os.rmdir(path)  # a state is put in place as a whole
            persistence.save(checkpoint, path)
        except OSError as error:
            raise DataError(
                f"checkpoint={os.fspath(path)!r} cannot be written ({error.strerror}): choose another path"
            ) from error
