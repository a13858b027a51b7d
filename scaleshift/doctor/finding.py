"""What is one thing that was looked at, and is it well?"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

Status = Literal["ok", "missing", "problem"]


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    status: Status  # missing: optional, and not here; problem: needed, or set up on purpose, and broken
    value: str  # what was found, in words
    advice: str = ""  # what to do about it
    facts: Mapping[str, Any] = {}  # what was found, for machines: plain JSON values


def memory(n_bytes: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> memory(3 * 2**29)
    '1.5 GiB'
    """
    return f"{n_bytes / 2**30:.1f} GiB"


def without_user(text: str) -> str:
    """A text with paths in it, which no longer tell whose they are: people paste this into bug reports.

    Examples
    --------
    >>> without_user(f"no such file: {Path.home() / 'data.csv'}")
    'no such file: ~/data.csv'
    """
    try:
        home, user = Path.home(), getpass.getuser()
    except (OSError, KeyError, RuntimeError):  # a container may run under a number without a name
        return text
    if home != Path(home.anchor):
        text = re.sub(rf"{re.escape(str(home))}(?![\w.-])", "~", text)
    return re.sub(rf"(?<=[/\\]){re.escape(user)}(?![\w.-])", "<user>", text)
