"""Which estimator does a .skops file hold?  Types that are not known to be harmless are refused by name."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections.abc import Collection, Sequence
from typing import Any

from scaleshift.cells.optional import optional
from scaleshift.errors import DataError

MOST_NAMES = 20
NEVER = frozenset(
    (
        *(
            "os",
            "posix",
            "nt",
            "subprocess",
            "sys",
            "builtins",
            "shutil",
            "importlib",
            "pickle",
            "socket",
            "pty",
        ),
        *("ctypes", "runpy", "code", "marshal", "webbrowser", "platform", "timeit", "pdb", "multiprocessing"),
    )
)
SCHEMA, MAX_SCHEMA = (
    "schema.json",
    2**28,
)  # bytes of what tells how an estimator is built; of a forest, a few MB
TYPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)  # a full name, as skops writes it


def read(content: bytes, name: str, trusted: Collection[str] = ()) -> Any:
    """The estimator in the bytes of a file.

    Parameters
    ----------
    content : bytes
        Read once: what is checked is what is loaded.
    name : str
        Of the file, for errors.
    trusted : collection of str
        Full names of types that the user trusts beside those that skops does.

    Raises
    ------
    DataError
        If skops is missing, the file is damaged, `trusted` holds something else than full names of types, or
        the file holds types that neither skops nor the user trusts.
    """
    refuse_patterns(trusted)
    _refuse_bomb(content, name)
    skops = optional("skops.io", "skops", f"opening {name}")
    try:
        beyond = skops.get_untrusted_types(data=content)
    except Exception as error:  # of a file that is none, skops raises what zip and JSON readers do
        raise _damaged(name, error) from error
    strange = sorted({one for one in beyond if one not in set(trusted) or _is_of_no_model(one)})
    if strange:
        raise DataError(f"{name} is not opened: {_untrusted(strange)}")
    try:
        model = skops.loads(content, trusted=beyond)
    except Exception as error:
        raise _damaged(name, error) from error
    if not (hasattr(model, "predict_proba") or hasattr(model, "predict")):
        raise DataError(
            f"{name} holds a {type(model).__name__}, which predicts nothing: expected a fitted classifier"
        )
    return model


def _refuse_bomb(content: bytes, name: str) -> None:
    """Raise DataError where the schema unpacks to more than any estimator's; what is no zip is told later."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = archive.getinfo(SCHEMA).file_size
    except (zipfile.BadZipFile, KeyError, ValueError, OSError):
        return
    if size > MAX_SCHEMA:
        raise DataError(f"{name} is no skops file: its {SCHEMA} unpacks to {size >> 20} MB")


def _is_of_no_model(name: str) -> bool:
    """Whether it is a function or type that commands, or opens: no estimator is made of it, but an attack."""
    return name.partition(".")[0] in NEVER


def _untrusted(strange: Sequence[str]) -> str:
    """What is wrong with a file of these types, and how the user may say that they are fine."""
    more = f" and {len(strange) - MOST_NAMES} more" if len(strange) > MOST_NAMES else ""
    named = [one if TYPE.fullmatch(one) else repr(one) for one in strange[:MOST_NAMES]]
    elsewhere = "convert the model to ONNX, or pass its predictions"
    held = (
        f"it holds types that are not known to be harmless ({', '.join(named)}{more}), and building them "
        "from a forged file can run code"
    )
    wrong = [one for one in strange if _is_of_no_model(one)]
    if wrong:
        return (
            f"it holds {wrong[0]}, of which no model is made: the file is forged, and whoever sent it attacks"
        )
    if not all(TYPE.fullmatch(one) for one in strange):  # text of the file, not to be pasted into a shell
        return f"{held}; {elsewhere}"
    listed = strange[:MOST_NAMES]
    return (
        f"{held}. If you know where the file comes from, trust them by name: --trust "
        f"{shlex.quote(','.join(listed))} on the command line, trusted={json.dumps(listed)} in open_model; "
        f"else {elsewhere}"
    )


def refuse_patterns(trusted: Collection[str]) -> None:
    """Raise DataError for what is no list of full names: trust is given to one type at a time."""
    names = [trusted] if isinstance(trusted, str) or not isinstance(trusted, Collection) else trusted
    wrong = [one for one in names if not (isinstance(one, str) and TYPE.fullmatch(one))]
    if wrong or names is not trusted:
        raise DataError(
            f"trusted={trusted!r}: expected a list of full names of types, such as "
            '["sklearn.tree._tree.Tree"]; there is no wildcard'
        )


def _damaged(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name} is no skops file, or a damaged one ({type(error).__name__}: {error}): "
        "write it with skops.io.dump"
    )
