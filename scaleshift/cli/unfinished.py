"""What has an interrupted job finished, and does this call go on with it?  A folder beside the results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from scaleshift.errors import DataError

NAME = "unfinished"  # in the --output folder
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

    def begin(self, job: Mapping[str, Any], seed: int) -> None:
        """Find out what is finished of a job, or begin it.

        Raises
        ------
        DataError
            If an interrupted run of this job would be thrown away, or one of another job gone on with.
        """
        from scaleshift import checkpoint
        from scaleshift.blocks import resuming

        if self.path is None:
            return
        fingerprint = checkpoint.fingerprint(job)
        found = checkpoint.read(self.path / "job") if self.path.is_dir() else None
        if found is None and os.path.lexists(self.path) and os.listdir(self.path):
            raise DataError(f"{self.path} is no folder of an interrupted run: choose another --output")
        if found is not None and found.fingerprint == fingerprint and not self.resume:
            raise DataError(
                f"{self.path} holds what an interrupted run of this command has finished: go on with "
                "--resume, or delete it to begin anew"
            )
        if found is not None and found.fingerprint != fingerprint:
            if self.resume:
                raise DataError(
                    f"--resume: {self.path} is of another study, selection or option; give those of the run "
                    "that was interrupted, or begin anew without --resume"
                )
            self.end()
        self.kept = resuming.kept_in(self.path, fingerprint, seed)

    def way(self) -> str:
        """How to go on where this is stopped."""
        if self.path is None:
            return "nothing is kept; with --output DIR the same command goes on by --resume"
        if self.kept is None:
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
            shutil.rmtree(self.path)
