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
from scaleshift.models.opening import content_of, of_content, refuse_unknown
from scaleshift.models.skops_file import refuse_patterns

#: What the user of this process trusts, by the checksum of a file: types of a .skops file, and whether a
#: pickle may run. Never what stands in a saved model: whoever forges one would trust themselves.
_trusts: dict[str, tuple[frozenset[str], bool]] = {}


@dataclass(frozen=True)
class ModelFile:
    """A model by its file: it answers as the model does, and is kept as path and checksum.

    To workers it travels as the model itself. Trust is not kept: what is loaded in another process has to be
    trusted there again, by `trust` or `of`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import skops.io
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(8.0)[:, None], np.repeat(["healthy", "ill"], 4)
    >>> with TemporaryDirectory() as folder:
    ...     skops.io.dump(LogisticRegression().fit(X, y), f"{folder}/model.skops")
    ...     model = ModelFile.of(f"{folder}/model.skops")
    >>> model.predict([[1.0], [6.0]]).tolist(), len(model.checksum)
    (['healthy', 'ill'], 64)
    """

    path: str  # absolute
    trusted: tuple[str, ...]  # types of a .skops file, as they were told; to remember them by
    checksum: str  # SHA-256 of the content

    @classmethod
    def of(
        cls, path: str | os.PathLike[str], trusted: Collection[str] = (), trust_pickle: bool = False
    ) -> ModelFile:
        """The model of a file, which is opened now.

        Raises
        ------
        DataError
            As `open_model` does.

        Examples
        --------
        >>> ModelFile.of("model.skops")
        Traceback (most recent call last):
        scaleshift.errors.DataError: ...model.skops: No such file or directory; expected a model, ...
        """
        location = Path(os.path.abspath(path))
        refuse_unknown(location, trusted, trust_pickle)
        content = content_of(location)
        found = cls(str(location), tuple(trusted), _checksum(content)).trust(trusted, trust_pickle)
        _opened(found.path, found.checksum, *_trusts[found.checksum])  # whatever is wrong is said at once
        return found

    def trust(self, trusted: Collection[str] = (), trust_pickle: bool = False) -> ModelFile:
        """The same, trusted by this process, as in `open_model`; no other content of the file is.

        Examples
        --------
        >>> forest = ModelFile("forest.skops", ("sklearn.tree._tree.Tree",), "SHA-256")  # of a saved model
        >>> forest.trust(forest.trusted).trusted
        ('sklearn.tree._tree.Tree',)
        """
        refuse_patterns(trusted)
        types, may_run = _trusts.get(self.checksum, (frozenset(), False))
        _trusts[self.checksum] = types | set(trusted), may_run or trust_pickle
        return self

    @property
    def opened(self) -> Any:
        """The model, opened once a process.

        Raises
        ------
        DataError
            If the file is gone, is not what it was, or is not trusted by this process.

        Examples
        --------
        >>> ModelFile("gone.skops", (), "its SHA-256").opened  # the file has gone since
        Traceback (most recent call last):
        scaleshift.errors.DataError: gone.skops: No such file or directory; expected a model, .onnx or .skops
        """
        return _opened(self.path, self.checksum, *_trusts.get(self.checksum, (frozenset(), False)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask for these, before there are fields
            raise AttributeError(name)
        return getattr(self.opened, name)

    def __reduce__(self) -> Any:
        return _itself, (self.opened,)


@functools.lru_cache(maxsize=8)
def _opened(path: str, checksum: str, trusted: frozenset[str], trust_pickle: bool) -> Any:
    location = Path(path)
    refuse_unknown(location, trusted, trust_pickle)
    content = content_of(location)
    if _checksum(content) != checksum:
        raise DataError(f"{path} is not the model that was asked before: put it back, or fit again")
    return of_content(content, location, trusted)


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _itself(model: Any) -> Any:
    return model
