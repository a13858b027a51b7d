"""What has an interrupted job finished, and does this call go on with it?  A folder beside the results."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from scaleshift.errors import DataError

NAME = "unfinished"  # in the --output folder
FOLDERS = ("fit", "samples")  # parts that have parts
Made = TypeVar("Made")


class Unfinished:
    """Parts of a job by name, kept in a folder of --output until its results are written.

    Parameters
    ----------
    output : path or None
        Without one nothing is kept.
    resume : bool
        Whether to go on with what is there.
    """

    def __init__(self, output: Path | None, resume: bool):
        self.path = None if output is None else output / NAME
        self.resume = resume
        self.kept: Any = None

    def begin(self, job: Mapping[str, Any], seed: int, source: Any = None) -> None:
        """Find out what is finished of a job, or begin it.

        Parameters
        ----------
        job : mapping
            What tells it from others.
        seed : int
        source : xarray.Dataset, optional
            Cells that are learned from: some of their values tell them too, whatever the study says.

        Raises
        ------
        DataError
            If an interrupted run of this job would be thrown away, or one of another job gone on with.
        """
        from scaleshift import checkpoint
        from scaleshift.blocks import resuming
        from scaleshift.blocks.rows import as_rows

        if self.path is None:
            return
        told = {} if source is None else resuming.rows_told(as_rows(source))
        fingerprint = checkpoint.fingerprint({**job, **told})
        found = checkpoint.read(self.path / "job") if self.path.is_dir() else None
        if found is None and os.path.lexists(self.path) and os.listdir(self.path):
            raise DataError(f"{self.path} is no folder of an interrupted run: choose another --output")
        if found is not None and found.fingerprint == fingerprint and not self.resume and self._has_parts():
            raise DataError(
                f"{self.path} holds what an interrupted run of this command has finished: go on with "
                "--resume, or delete it to begin anew"
            )
        if found is not None and found.fingerprint != fingerprint:
            if self.resume:
                raise DataError(
                    f"--resume: {self.path} is of another study, selection or option; give those of the run "
                    "that was interrupted; without --resume this job begins in its place"
                )
            self.end()
        self.kept = resuming.kept_in(self.path, fingerprint, seed)

    def _has_parts(self) -> bool:
        """Whether anything is finished, beside what says whose job it is."""
        assert self.path is not None
        inside = [path for path in self.path.iterdir() if path.name != "job"]
        return any(not _is_begun(path) for path in inside)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Say so where another run of the same command has finished, and what was kept is gone."""
        try:
            yield
        except Exception as error:
            if self.kept is None or self.path is None or self.path.exists():
                raise
            raise DataError(
                f"{self.path} is gone: another run of this command has finished meanwhile, and its results "
                f"stand in {self.path.parent}; or it was deleted"
            ) from error

    def way(self) -> str:
        """How to go on where this is stopped."""
        if self.path is None:
            return "nothing is kept; with --output DIR the same command goes on by --resume"
        if self.kept is None or not self._has_parts():
            return "nothing is finished yet: the same command begins anew"
        return f"the same command with --resume goes on from {self.path}"

    def part(self, name: str, make: Callable[[], Made]) -> Made:
        """What has a name: that which is there, or which is made now."""
        return make() if self.kept is None else self.kept(name, make)

    def folder(self, name: str) -> Path | None:
        """Where a part keeps what it has finished itself; None where nothing is kept."""
        return None if self.path is None else self.path / name

    def end(self) -> None:
        """Forget all of it."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)


def _is_begun(path: Path) -> bool:
    """Whether a folder of parts has none yet."""
    return path.name in FOLDERS and {part.name for part in path.iterdir()} <= {"job"}
