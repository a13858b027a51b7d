"""Which file is opened as a model, and which is not?  Data is; what runs code as it is opened is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from scaleshift.cells.regular import refuse_odd
from scaleshift.errors import DataError
from scaleshift.models import onnx_file, skops_file

READERS: dict[str, Callable[..., Any]] = {
    ".onnx": onnx_file.read,
    ".skops": skops_file.read,
}
PICKLES = (".pkl", ".pickle", ".p", ".sav", ".joblib", ".jl", ".dill", ".cloudpickle")
OTHERS = (".pt", ".pth", ".ckpt", ".bin", ".h5", ".hdf5", ".keras", ".model", ".json", ".ubj", ".cbm")
WAY_OUT = (
    'save the model with skops.io.dump(model, "model.skops") or as ONNX (skl2onnx, torch.onnx.export), or '
    "compute its predictions where you trust the file, and pass these"
)


def open_model(path: str | os.PathLike[str], trusted: Collection[str] = ()) -> Any:
    """Open a model that is stored as data.

    Parameters
    ----------
    path : path
        ``.onnx``, run by onnxruntime on the CPU, or ``.skops``, a scikit-learn estimator. Nothing else: a
        pickle, joblib or PyTorch file runs what its maker put into it as soon as it is opened.
    trusted : collection of str, default ()
        Of a ``.skops`` file: full names of types that may be built though skops does not know them to be
        harmless, such as ``["sklearn.tree._tree.Tree"]`` of trees and forests. A forged file can make such
        a type run code: name them where you know who wrote the file. The error without it says which.

    Returns
    -------
    object
        With ``predict_proba(x)``, (n, d) -> (n, C), or, where an ONNX model gives labels alone,
        ``predict(x)`` -> (n,); ``classes_``, (C,), or None where an ONNX model does not tell them.

    Raises
    ------
    DataError
        If the file is missing, of another kind, damaged, holds types that skops does not know to be
        harmless and `trusted` does not name (the error does), or if onnxruntime or skops is not installed.

    Examples
    --------
    >>> open_model("model.pkl")
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: model.pkl is not opened: a pickle file runs whatever code ...
    """
    location = Path(path)
    suffix = location.suffix.lower()
    _refuse_saved(location)
    if suffix not in READERS:
        raise DataError(f"{location} is not opened: {_reason(suffix)}; {WAY_OUT}")
    if suffix != ".skops" and trusted:
        raise DataError(
            f"{location} is no .skops file, of which trusted= (--trust) names types: leave it out"
        )
    refuse_odd(location)
    try:
        content = location.read_bytes()
    except OSError as error:
        raise DataError(f"{location}: {error.strerror}; expected a model, .onnx or .skops") from error
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
    if suffix in PICKLES:
        kind = "joblib" if suffix in (".joblib", ".jl") else "pickle"
        return f"a {kind} file runs whatever code its maker put into it, as soon as it is read"
    if suffix in OTHERS:
        return f"{suffix} files can hold code that runs as they are read, or need the package that wrote them"
    known = " and ".join(READERS)
    return f"{suffix or 'a name without a suffix'} is no kind of model that is known to be data ({known})"
