"""How does a saved result ask a model that it does not hold?  By its file, which must not have changed."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleshift.errors import DataError
from scaleshift.models.opening import open_model


@dataclass(frozen=True)
class ModelFile:
    """A model by its file: it answers as the model does, and is kept as path and checksum.

    To workers it travels as the model itself.
    """

    path: str  # absolute
    trusted: tuple[str, ...]  # types of a .skops file
    checksum: str  # SHA-256 of the content

    @classmethod
    def of(cls, path: str | os.PathLike[str], trusted: Collection[str] = ()) -> ModelFile:
        """The model of a file, which is opened now.

        Raises
        ------
        DataError
            As `open_model` does.
        """
        found = cls(os.path.abspath(path), tuple(trusted), _checksum(path))
        found.opened  # noqa: B018 - whatever is wrong with it is said at once
        return found

    @property
    def opened(self) -> Any:
        """The model, opened once a process.

        Raises
        ------
        DataError
            If the file is gone, or is not what it was.
        """
        return _opened(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask for these, before there are fields
            raise AttributeError(name)
        return getattr(self.opened, name)

    def __reduce__(self) -> Any:
        return _itself, (self.opened,)


@functools.lru_cache(maxsize=8)
def _opened(file: ModelFile) -> Any:
    if _checksum(file.path) != file.checksum:
        raise DataError(f"{file.path} is not the model that was asked before: put it back, or fit again")
    return open_model(file.path, file.trusted)


def _checksum(path: str | os.PathLike[str]) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: {error.strerror}; expected a model, .onnx or .skops") from error


def _itself(model: Any) -> Any:
    return model
