"""Which file is opened as a model?  Data is; what runs code as it is opened only where the user trusts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from scaleshift.cells.regular import refuse_odd
from scaleshift.errors import DataError
from scaleshift.models import onnx_file, pickle_file, skops_file

READERS: dict[str, Callable[..., Any]] = {
    ".onnx": onnx_file.read,
    ".skops": skops_file.read,
}
OTHERS = (".pt", ".pth", ".ckpt", ".bin", ".h5", ".hdf5", ".keras", ".model", ".json", ".ubj", ".cbm")
WAY_OUT = (
    'save the model with skops.io.dump(model, "model.skops") or as ONNX (skl2onnx, torch.onnx.export), or '
    "compute its predictions where you trust the file, and pass these"
)
TRUST = (
    "; or, if you know who wrote it and that nobody changed it since, have it run: --trust-pickle on the "
    "command line, trust_pickle=True in open_model"
)


def open_model(
    path: str | os.PathLike[str], trusted: Collection[str] = (), trust_pickle: bool = False
) -> Any:
    """Open a model that is stored as data, or a pickle of your own.

    Parameters
    ----------
    path : path
        ``.onnx``, run by onnxruntime on the CPU, or ``.skops``, a scikit-learn estimator; with `trust_pickle`
        a pickle or joblib file, which runs what its maker put into it as soon as it is opened.
    trusted : collection of str, default ()
        Of a ``.skops`` file: full names of types that may be built though skops does not know them to be
        harmless, such as ``["sklearn.tree._tree.Tree"]`` of trees and forests. A forged file can make such
        a type run code: name them where you know who wrote the file. The error without it says which.
    trust_pickle : bool, default False
        Of a pickle or joblib file: whether it is opened, which runs whatever its maker put into it, with all
        your rights. Only for files that you wrote yourself, and that nobody else could change.

    Returns
    -------
    object
        With ``predict_proba(x)``, (n, d) -> (n, C), or, where an ONNX model gives labels alone,
        ``predict(x)`` -> (n,); ``classes_``, (C,), or None where an ONNX model does not tell them.

    Raises
    ------
    DataError
        If the file is missing, of another kind, damaged, a pickle that is not trusted, holds types that skops
        does not know to be harmless and `trusted` does not name (the error does), or if onnxruntime or skops
        is not installed.

    Examples
    --------
    >>> open_model("model.pkl")
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: model.pkl is not opened: a pickle file runs whatever code ...
    """
    location = Path(path)
    refuse_unknown(location, trusted, trust_pickle)
    return of_content(content_of(location), location, trusted)


def refuse_unknown(location: Path, trusted: Collection[str], trust_pickle: bool) -> None:
    """Raise DataError for what is no kind of model, by its name alone, or is a pickle and not trusted."""
    suffix = location.suffix.lower()
    is_pickle = suffix in pickle_file.SUFFIXES
    _refuse_saved(location)
    if suffix not in READERS and not (is_pickle and trust_pickle):
        way_out = WAY_OUT + TRUST * is_pickle
        raise DataError(f"{location} is not opened: {_reason(suffix)}; {way_out}")
    if suffix != ".skops" and trusted:
        raise DataError(
            f"{location} is no .skops file, of which trusted= (--trust) names types: leave it out"
        )
    if trust_pickle and not is_pickle:
        raise DataError(
            f"{location} is no pickle, which trust_pickle=True (--trust-pickle) is for: leave it out"
        )


def content_of(location: Path) -> bytes:
    """The bytes of a model's file."""
    refuse_odd(location)
    try:
        return location.read_bytes()
    except OSError as error:
        raise DataError(f"{location}: {error.strerror}; expected a model, .onnx or .skops") from error


def of_content(content: bytes, location: Path, trusted: Collection[str]) -> Any:
    """The model in the bytes of a file that `refuse_unknown` has let pass."""
    suffix = location.suffix.lower()
    if suffix in pickle_file.SUFFIXES:
        return pickle_file.read(content, str(location))
    of_skops = {"trusted": trusted} if suffix == ".skops" else {}
    return READERS[suffix](content, str(location), **of_skops)


def _refuse_saved(location: Path) -> None:
    """Raise DataError for a folder that holds an object of scaleshift's own: a slicer, a quantifier."""
    from scaleshift import persistence

    kind = persistence.kind_of(location) if location.is_dir() else None
    if kind is not None:
        raise DataError(
            f"{location} is a saved {kind} of scaleshift, which ss.load({str(location)!r}) opens: expected "
            "the trained classifier, .onnx or .skops"
        )


def _reason(suffix: str) -> str:
    if suffix in pickle_file.SUFFIXES:
        kind = "joblib" if suffix in (".joblib", ".jl") else "pickle"
        return f"a {kind} file runs whatever code its maker put into it, as soon as it is read"
    if suffix in OTHERS:
        return f"{suffix} files can hold code that runs as they are read, or need the package that wrote them"
    known = " and ".join(READERS)
    return f"{suffix or 'a name without a suffix'} is no kind of model that is known to be data ({known})"
