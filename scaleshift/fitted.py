"""What do all models have in common?  They are saved, and show what they have learned: as text and as HTML.

Before a fit a model is shown as scikit-learn does it. After it, what was learned stands below the constructor
line, and in a notebook in a table. Inside of another estimator, a pipeline or a search, there is only the
constructor line.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from sklearn.base import BaseEstimator

from scaleshift.errors import DataError
from scaleshift.parameters import cut

Facts = dict[str, str | Mapping[str, str]]  # a few words each, or a table of them: {name: words}

WIDTH = 80  # characters of a line, as of scikit-learn's
MOST_ROWS = 20  # of a table in HTML
LONGEST = 500  # characters in a cell of it
# Colours are the notebook's own, whether it is light or dark.
BORDER = "1px solid rgba(128, 128, 128, .5)"
CARD = f"display: inline-block; border: {BORDER}; border-radius: 4px; padding: .5em .8em; max-width: 60em"
TABLE = "border-collapse: collapse; background: transparent; color: inherit; margin: .2em 0"
CELL = "text-align: left; vertical-align: top; padding: .1em .8em .1em 0; border: 0; color: inherit"


class Fitted(BaseEstimator, ABC):
    """A model that can be saved, and that a prompt and a notebook show with what it has learned."""

    @abstractmethod
    def _learned(self) -> Facts:
        """What was learned, of the numbers that the model keeps: quick whatever the number of rows."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as a Zarr store, without the rows; `scaleshift.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Local folder. A model that stands there is replaced; anything else is refused.

        Raises
        ------
        DataError
            If something else stands at the path, it cannot be written, or the model holds an object that only
            pickle could keep.

        Examples
        --------
        >>> import scaleshift as ss
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ss.HDx(n_bins=4).save(f"{folder}/model")
        ...     ss.load(f"{folder}/model")
        HDx(n_bins=4)
        """
        from scaleshift import persistence

        try:
            persistence.save(self, path)
        except OSError as error:
            raise DataError(
                f"{os.fspath(path)} cannot be written ({error.strerror}): choose another path"
            ) from error

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join([super().__repr__(N_CHAR_MAX), *lines(facts(self))])

    def _html_repr(self) -> str:
        """What scikit-learn's `_repr_html_` and `_repr_mimebundle_` show, unless its display is "text"."""
        begun = any(name.endswith("_") for name in vars(self))
        if not begun:  # scikit-learn asks all properties of a fitted one, and estimators inside how they look
            with contextlib.suppress(Exception):
                return super()._html_repr()
        return card(self, facts(self))


def facts(model: Fitted) -> Facts:
    """What a model has learned; nothing before its fit, or where a fit has left it by halves.

    Examples
    --------
    >>> from scaleshift import DFM
    >>> model = DFM(random_state=0)
    >>> facts(model)
    {}
    >>> facts(model.fit([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"]))["learned from"]
    '4 labelled rows of 1 sample'
    """
    try:
        return {
            name: words if isinstance(words, str) else {str(key): str(value) for key, value in words.items()}
            for name, words in model._learned().items()
        }
    except Exception:  # to show a model must never fail, whatever somebody has set, deleted or forged
        return {}


def lines(found: Facts) -> Iterator[str]:
    """What was learned as lines of text, names before words, two lines of each at most.

    Examples
    --------
    >>> list(lines({"learned from": "9 rows", "labels": {"a": "4", "b": "5"}}))
    ['  learned from  9 rows', '  labels        2: a (4), b (5)']
    """
    indent = max(map(len, found), default=0) + 4
    wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * indent, max_lines=2, placeholder=" ...")
    for name, words in found.items():
        wrapper.initial_indent = f"  {name}".ljust(indent)
        yield from wrapper.wrap(_one_line(words))


def card(model: BaseEstimator, found: Facts) -> str:
    """What was learned, and the parameters, as HTML that stands by itself: no script, nothing is loaded.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> "&lt;b&gt;" in card(Ridge(), {"learned from": "<b>"})
    True
    """
    parameters = {name: cut(written(value)) for name, value in model.get_params(deep=False).items()}
    summary = f"<summary>Parameters: <code>{escape(cut(written(model)))}</code></summary>"
    return (
        f'<div style="{CARD}"><b>{escape(type(model).__name__)}</b>{_table(found)}'
        f"<details>{summary}{_table(parameters)}</details></div>"
    )


def written(value: Any) -> str:
    """How a value is written in Python; of models the parameters alone, not what they have learned.

    Examples
    --------
    >>> from scaleshift import DFM
    >>> written(DFM(soft=False).fit([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"]))
    'DFM(soft=False)'
    """
    return BaseEstimator.__repr__(value) if isinstance(value, BaseEstimator) else repr(value)


def _table(rows: Mapping[str, str | Mapping[str, str]]) -> str:
    """A table in HTML, and tables in it; of more than `MOST_ROWS` the first ones."""
    shown = [
        f'<tr><th scope="row" style="{CELL}; font-weight: normal; opacity: .8">{_escaped(name)}</th>'
        f'<td style="{CELL}">{_escaped(words) if isinstance(words, str) else _table(words)}</td></tr>'
        for name, words in itertools.islice(rows.items(), MOST_ROWS)
    ]
    more = f"and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""
    return f'<table style="{TABLE}">{"".join(shown)}</table>{more}'


def _escaped(words: str) -> str:
    """Words for a cell: names in them may turn text round, or be endless."""
    line = _one_line(words)
    return escape(line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}...")


def _one_line(words: str | Mapping[str, str]) -> str:
    """Words without line ends; of a table how many entries there are, and these."""
    if not isinstance(words, str):
        words = f"{len(words)}: " + ", ".join(f"{name} ({value})" for name, value in words.items())
    return "".join(c if c.isprintable() else " " for c in words)


def _wrapped_as_scikit_learn() -> None:
    """Have scikit-learn wrap long constructor lines, which it does by the function that writes an estimator.

    Its table of these functions is private: without it such lines are not wrapped.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from sklearn.utils._pprint import _EstimatorPrettyPrinter as Printer

        Printer._dispatch[Fitted.__repr__] = Printer._pprint_estimator


_wrapped_as_scikit_learn()
