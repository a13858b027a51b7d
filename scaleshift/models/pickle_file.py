"""Which object does a pickle hold?  Opening one runs it: the only module that does, and only when told to.

A pickle is a program, and the object is what it leaves behind. Whatever its maker put into it runs, with
all rights of whoever opens it, before a line of this package sees the object; nothing that looks at the
bytes first can tell a harmless one from another. A file that you wrote yourself and kept where nobody else
writes is fine, one that you were sent is not. A .skops or .onnx file is data, and needs no such trust.
"""

from __future__ import annotations

import io
from typing import Any

from scaleshift.errors import DataError

SUFFIXES = (".pkl", ".pickle", ".p", ".sav", ".joblib", ".jl", ".dill", ".cloudpickle")


def read(content: bytes, name: str) -> Any:
    """The object in the bytes of a pickle or joblib file, compressed or not: runs what they hold.

    Parameters
    ----------
    content : bytes
        Read once: where a checksum was compared, what was compared is what is run.
    name : str
        Of the file, for errors.

    Raises
    ------
    DataError
        If it cannot be unpickled, or the object predicts nothing.
    """
    import joblib

    try:
        model = joblib.load(io.BytesIO(content))
    except Exception as error:  # whatever the program in it raises
        told = " ".join(str(error).split())[:300]
        raise DataError(
            f"{name} cannot be unpickled ({type(error).__name__}: {told}): it needs the packages, in about "
            "the versions, that wrote it"
        ) from error
    if isinstance(model, type) or not (hasattr(model, "predict_proba") or hasattr(model, "predict")):
        raise DataError(
            f"{name} holds a {type(model).__name__}, which predicts nothing: expected a fitted classifier"
        )
    return model


def remark(name: object) -> str:
    """What is to be said wherever one was opened."""
    return f"{name} is a pickle, and was run, since --trust-pickle says that you trust whoever wrote it"
