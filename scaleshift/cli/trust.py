"""What may run as a model file is opened?  Nothing, but what the user trusts in so many words."""

from __future__ import annotations

from collections.abc import Sequence

import click

from scaleshift.cli import options


def _types(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[str]:
    """Names of types, from options that are repeated, or between commas."""
    return [name for text in given for name in options.names(text)]


of_models = options.all_of(
    click.option(
        "--trust",
        metavar="TYPE,TYPE",
        multiple=True,
        callback=_types,
        help="Types of a .skops file that may be built though they are not known to be harmless, such as "
        "sklearn.tree._tree.Tree of trees and forests; the error without it names them. Only where you know "
        "who wrote the file: a forged one can run code through them. No wildcards.",
    ),
    click.option(
        "--trust-pickle",
        is_flag=True,
        help="Open a pickle or joblib file, which runs whatever its maker put into it, with all your rights. "
        "Only a file that you wrote yourself, and that nobody else could change; .skops is the better way.",
    ),
)
