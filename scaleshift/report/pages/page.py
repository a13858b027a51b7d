"""One self-contained HTML page of a result, or of several that belong together."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

from scaleshift.report.files import replacing
from scaleshift.report.kinds import kind_of
from scaleshift.report.opened import as_made
from scaleshift.report.pages import html
from scaleshift.report.pages.several import together

# kind -> module of this folder with `title(result)` and `sections(result)`; others have the module generic
PAGES = {
    "proportions": "proportions",
    "league": "league",
    "diagnosis": "diagnosis",
    "gates": "gates",
    "slices": "slices",
    "slice comparison": "growth",
    "ranking": "ranking",
    "ranking path": "ranking_path",
    "errors": "errors",
}
OTHERS = "generic"


def page(result: Any, path: str | os.PathLike[str] | None = None) -> str:
    """One HTML page that can be mailed: tables that sort, filter and download, and how all was made.

    It holds its style, script and data itself, asks nothing of any network, and reads well without a mouse,
    by a screen reader, in the dark and on paper. The same result gives the same bytes.

    Parameters
    ----------
    result : xarray.Dataset, or a sequence of such
        What ``predict`` of a quantifier or of a `PredictionError` returns, ``describe`` of a slicer or of a
        `SparseAUC`, ``path_`` of the latter, a league table, ...; of several, one after the other.
    path : path, optional
        Write the page there too; the suffix must be ``.html``. A file that is there is replaced as a whole.

    Returns
    -------
    str
        The page.

    Raises
    ------
    DataError
        If a result is none of these, the suffix is not ``.html`` or the folder is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> y = np.repeat(["B", "T"], [300, 700])
    >>> X = np.where(y == "T", 5, 0)[:, None] + np.random.default_rng(0).normal(size=(1000, 2))
    >>> result = ss.ClassifyAndCount(random_state=0).fit(X, y).predict(X)
    >>> "<h1>Class proportions of 1 sample</h1>" in page(result)
    True
    """
    results = [as_made(one) for one in (result if isinstance(result, list | tuple) else [result])]
    makers = [_maker(one) for one in results]
    told = [maker.title(one) for maker, one in zip(makers, results, strict=True)]
    parts = [maker.sections(one) for maker, one in zip(makers, results, strict=True)]
    sections = together([(name, part) for (name, _), part in zip(told, parts, strict=True)])
    title, lead = told[0]
    text = html.rendered(title, lead, sections)
    if path is not None:
        with replacing(path, ".html") as temporary:
            temporary.write_text(text, encoding="utf-8")
    return text


def _maker(result: Any) -> ModuleType:
    return importlib.import_module(f"scaleshift.report.pages.{PAGES.get(kind_of(result).name, OTHERS)}")
