"""The site: the repository's own Markdown pages, and the docstrings.

python -m sphinx -c docs . build/site

The repository is the source folder, so that links mean the same here and where the files are browsed.
"""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

import scaleshift

logger = logging.getLogger(__name__)
MARKUP = re.compile(r"(``.*?``|`[^`]*`)|((?<=\w)_(?!\w)|\|)")  # what is code or a name; ends of words, bars
project = "scaleshift"
author = "The scaleshift developers"
version = release = scaleshift.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "cluster/**.md",
    "examples/README.md",
    "benchmarks/RESULTS.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "tests", "scaleshift"]  # not looked through

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

default_role = "autolink"  # `name` in a docstring: a link where it names something of ours, else plain
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator, ClassifierMixin, tuple"}
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # told like parameters, and once

html_theme = "furo"
html_title = f"scaleshift {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"


def inline_math(writer: Any, node: Any) -> None:
    """Formulas as MathML: browsers show it without a script, and the site needs no network."""
    writer.body.append(mathml(node, "inline"))
    raise SkipNode


def block_math(writer: Any, node: Any) -> None:
    """A formula of its own."""
    style = "overflow-y: hidden; padding: .4em 0"  # the theme's boxes scroll, and limits of sums stand out
    writer.body.append(f'<div class="math" style="{style}">{mathml(node, "block")}</div>')
    raise SkipNode


def mathml(node: Any, display: str) -> str:
    """A formula; what the converter does not know, and would show as it is, is a warning."""
    text = node.astext()
    found = convert(text.replace(r"\sum_", r"\sum\limits_") if display == "block" else text, display=display)
    if "\\" in found:
        logger.warning("not known in a formula: %s", text, location=node)
    return found


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn gives every estimator are described there."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def plain_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are written to be read as they are: `coef_` and |w| are no links, though rst has them so."""
    code = False
    for i, line in enumerate(lines):
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        if not code:
            lines[i] = MARKUP.sub(lambda found: found[1] or "\\" + found[2], line)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", plain_text, priority=600)  # after napoleon
    app.connect("autodoc-skip-member", skip_foreign)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
