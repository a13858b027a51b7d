"""What can stand here?  Names that the shell completes: from the study on the line, its record alone.

Quick, and silent: whoever presses the tab key gets names or nothing, also where the study is damaged.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from click import Context, Parameter
from click.shell_completion import BashComplete, CompletionItem, FishComplete, add_completion_class

Completed = Callable[[Context, Parameter, str], list[CompletionItem]]
WORD = r"""(?:"[^"]*"|'[^']*'|[^\s"'()=!,]+)"""
OPEN = r"""(?:"[^"]*|'[^']*|[^\s"'()=!,]*)"""  # a word that is being typed
COMPARED = rf"\s*{WORD}\s*(?:(?:==|!=)\s*{WORD}|in\s*\(\s*{WORD}(?:\s*,\s*{WORD})*\s*\))"
BEFORE = re.compile(rf"(?:{COMPARED}\s+and\s+)*")
VALUE = re.compile(rf"(?P<before>\s*(?P<column>{WORD})\s*(?:==|!=)\s*)(?P<word>{OPEN})")
LISTED = re.compile(rf"(?P<before>\s*(?P<column>{WORD})\s+in\s*\(\s*(?:{WORD}\s*,\s*)*)(?P<word>{OPEN})")
OPERATOR = re.compile(rf"(?P<before>\s*(?P<column>{WORD})\s+)(?P<word>[=!in]*)")
COLUMN = re.compile(rf"(?P<before>\s*)(?P<word>{OPEN})")
BASH = r"""
%(complete_func)s() {
    local IFS=$'\n' type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""  # click's own takes names for patterns of files, and backslashes away
OPERATORS = ("== ", "!= ", "in (")


# The record ----------------------------------------------------------------------------------------------


def quietly(names: Callable[[str, str], Iterable[str]]) -> Completed:
    """A completion by the STORE on the line; nothing where it cannot be read, or is not there yet.

    Parameters
    ----------
    names : callable
        ``names(store, incomplete)`` -> all that can stand there.
    """

    def complete(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        # Of an option without its value yet, click leaves what is no option in `args`.
        store = context.params.get("store") or next(iter(context.args), None)
        if not store or not os.path.isdir(store):
            return []
        try:
            with warnings.catch_warnings(action="ignore"):
                return starting(names(store, incomplete), incomplete)
        except Exception:  # the tab key is no place for it: the verb will tell
            return []

    return complete


def record(store: str) -> dict[str, Any]:
    """What a study says of itself, read as the file it is: importing Zarr takes longer than a key."""
    raw = Path(store, "uns", "scaleshift", "c").read_bytes()
    found: dict[str, Any] = json.loads(raw[8:-4])  # after a count and a length, before a checksum
    return found


def samples(store: str) -> dict[str, list[Any]]:
    """The columns of a selection, by name, as `cells.selection` has them."""
    entries = record(store)["samples"]
    columns = dict.fromkeys(name for entry in entries.values() for name in entry["metadata"])
    of = {name: [entry["metadata"].get(name) for entry in entries.values()] for name in columns}
    return {"sample": list(entries), **of}


def text_array(store: str, name: str) -> list[str]:
    """Names in a small array of the study."""
    import numpy as np
    import zarr
    from zarr.storage import LocalStore

    from scaleshift.cells.guarded import GuardedStore

    opened = zarr.open_array(
        GuardedStore(LocalStore(store, read_only=True)), path=name, mode="r", zarr_format=3
    )
    return [str(value) for value in np.asarray(opened[:]).tolist()]


def label_names(store: str, incomplete: str) -> list[str]:
    """Labels of the study."""
    return text_array(store, "obs/label/categories")[: record(store)["n_labels"]]


def marker_names(store: str, incomplete: str) -> list[str]:
    """Columns of X."""
    return text_array(store, "var/_index")


def outcome_names(store: str, incomplete: str) -> list[str]:
    """What can be predicted: columns of obs, markers, columns of the sample sheet."""
    attributes = json.loads(Path(store, "obs", "zarr.json").read_bytes())["attributes"]
    of_obs = [name for name in attributes.get("column-order", []) if name != "sample"]
    return [*of_obs, *marker_names(store, incomplete), *(name for name in samples(store) if name != "sample")]


# What is offered -----------------------------------------------------------------------------------------


def starting(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Those that begin as what is typed; none of several lines, each of which a shell would take for one."""
    shown = (name for name in dict.fromkeys(names) if name and name.isprintable())
    return [CompletionItem(name) for name in shown if name.startswith(incomplete)]


def between_commas(known: Callable[[str, str], Iterable[str]]) -> Callable[[str, str], Iterable[str]]:
    """A list whose last name is being typed; one that is complete can go on."""

    def names(store: str, incomplete: str) -> list[str]:
        done, comma, word = incomplete.rpartition(",")
        left = [name for name in known(store, word) if name not in done.split(",")]
        found = [name for name in left if name.startswith(word)]
        goes_on = [f"{found[0]},"] if len(found) == 1 and len(left) > 1 else []
        return [f"{done}{comma}{name}" for name in [*found, *goes_on]]

    return names


def selected(store: str, incomplete: str) -> list[str]:
    """How a selection of samples can go on, as the whole text that it then is.

    A shell closes the quotes behind the only way to go on: there are always two, until a condition is whole.
    """
    columns = samples(store)
    head = BEFORE.match(incomplete)[0]  # type: ignore[index]  # also nothing matches
    rest = incomplete[len(head) :]
    for pattern in (VALUE, LISTED, OPERATOR, COLUMN):
        found = pattern.fullmatch(rest)
        if found is None:
            continue
        before, word = head + found["before"], found["word"]
        if pattern is COLUMN:
            return _columns(columns, before, word)
        values = columns.get(found["column"].strip("\"'"), [])
        if pattern is OPERATOR:
            return [before + operator for operator in OPERATORS if operator.startswith(word)]
        there = re.findall(WORD, found["before"]) if pattern is LISTED else []
        matching = [v for v in map(_written, values) if v and v.startswith(word) and v not in there]
        if pattern is VALUE:
            return [before + value for value in matching]
        return [before + value + end for value in matching for end in (", ", ")")]
    return []


def _columns(columns: Mapping[str, list[Any]], before: str, word: str) -> list[str]:
    matching = [name for name in map(_written, columns) if name.startswith(word)]
    if len(matching) == 1:
        return [f"{before}{matching[0]} {operator}" for operator in OPERATORS]
    return [
        *(before + name for name in matching),
        *(["all"] if not before and "all".startswith(word) else []),
    ]


def _written(value: Any) -> str:
    """A name or value as a selection has it; "" for one that is missing, which no selection names."""
    if value is None or value != value:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(WORD, text) and text[0] not in "\"'" else f"'{text}'"


def some_of(*known: str) -> Completed:
    """One of these names, or else a file."""

    def complete(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        return starting(known, incomplete) or [CompletionItem(incomplete, type="file")]

    return complete


def list_of(*known: str) -> Completed:
    """Some of these names, between commas."""
    names = between_commas(lambda store, word: known)
    return lambda context, parameter, incomplete: starting(names("", incomplete), incomplete)


def files(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths."""
    return [CompletionItem(incomplete, type="file")]


def folders(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths of folders: a study is one."""
    return [CompletionItem(incomplete, type="dir")]


selection = quietly(selected)
labels = quietly(label_names)
label_list = quietly(between_commas(label_names))
marker_list = quietly(between_commas(marker_names))
outcomes = quietly(outcome_names)


# Shells --------------------------------------------------------------------------------------------------


class Bash(BashComplete):
    """Names as they are to be typed: a study's names come from files, and none of them may be run."""

    source_template = BASH

    def format_completion(self, item: CompletionItem) -> str:
        """Escaped by the quotes that the word begins with, if it does."""
        if item.type != "plain":
            return super().format_completion(item)
        word = os.environ.get("COMP_WORDS", "").split("\n")[int(os.environ.get("COMP_CWORD", 0)) :][:1]
        quote = word[0][:1] if word else ""
        if quote == "'":
            typed = item.value.replace("'", r"'\''")
        else:
            typed = re.sub(r'(["$`\\])' if quote == '"' else r"([^\w@%+=:,./-])", r"\\\1", item.value)
        return f"{item.type},{typed}"


class Fish(FishComplete):
    """Names with commas, of which click's own script keeps the first part."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


def register() -> None:
    """Take these in place of click's own."""
    for shell in (Bash, Fish):
        add_completion_class(shell)
