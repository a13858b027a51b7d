"""Which estimator does a .skops file hold?  Types that are not known to be harmless are refused by name."""

from __future__ import annotations

from typing import Any

from scaleshift.cells.optional import optional
from scaleshift.errors import DataError

MOST_NAMES = 8


def read(content: bytes, name: str) -> Any:
    """The estimator in the bytes of a file.

    Parameters
    ----------
    content : bytes
        Read once: what is checked is what is loaded.
    name : str
        Of the file, for errors.

    Raises
    ------
    DataError
        If skops is missing, the file is damaged, or holds types beyond those of scikit-learn, numpy and scipy
        that skops trusts.
    """
    skops = optional("skops.io", "skops", f"opening {name}")
    try:
        strange = skops.get_untrusted_types(data=content)
    except Exception as error:  # of a file that is none, skops raises what zip and JSON readers do
        raise _damaged(name, error) from error
    if strange:
        more = ", ..." if len(strange) > MOST_NAMES else ""
        raise DataError(
            f"{name} is not opened: it holds types that are not known to be harmless "
            f"({', '.join(strange[:MOST_NAMES])}{more}), and building them can run code; save a model of "
            "scikit-learn's own parts, convert it to ONNX, or pass its predictions"
        )
    try:
        model = skops.loads(content, trusted=[])
    except Exception as error:
        raise _damaged(name, error) from error
    if not (hasattr(model, "predict_proba") or hasattr(model, "predict")):
        raise DataError(
            f"{name} holds a {type(model).__name__}, which predicts nothing: expected a fitted classifier"
        )
    return model


def _damaged(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name} is no skops file, or a damaged one ({type(error).__name__}: {error}): "
        "write it with skops.io.dump"
    )
