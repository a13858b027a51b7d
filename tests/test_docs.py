"""The documentation builds without a warning, names all that is public, and is in step with the package."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import scaleshift
from scaleshift.error import flags as of_errors
from scaleshift.quantify.flags import REASONS

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="no docs beside the tests")
LISTED = ["auc", "cells", "cluster", "error", "models", "quantify", "report", "slices"]
PUBLIC = ["scaleshift", *(f"scaleshift.{name}" for name in LISTED)]
# Modules that are public names, without a list of what is in them.
OPEN = ["scaleshift.datasets", "scaleshift.slices.metrics", "scaleshift.slices.synthetic"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as docs/conf.py says; broken links and anchors are warnings, and warnings errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", out / "trees", "-c", DOCS]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run([*command, TOP, out], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return out


def test_the_site_builds_without_a_warning_and_has_every_page(site):
    pages = {path.relative_to(TOP).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_pages_of_the_site_load_nothing_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"(https?:)?//")
    assert not [page.name for page in site.rglob("*.html") if loaded.search(page.read_text())]


def test_no_formula_shows_what_the_converter_did_not_know(site):
    formulas = re.findall(r"<math.*?</math>", (site / "docs/methods.html").read_text(), re.DOTALL)
    assert len(formulas) > 100
    assert not [formula for formula in formulas if "\\" in formula]


def documented(site):
    """Every object that the reference describes."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    names = {name for kind, found in inventory.items() if kind.startswith("py:") for name in found}
    found = []
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            found.append(getattr(import_module(module), attribute))
        except (ImportError, AttributeError):
            continue  # a method
    return found


def public():
    """Name and object of all that users may use, but for modules."""
    for home in [*PUBLIC, *OPEN]:
        module = import_module(home)
        of_its_own = [
            name
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_") and value.__module__ == home
        ]
        for name in getattr(module, "__all__", of_its_own):
            value = getattr(module, name)
            if not hasattr(value, "__path__") and f"{home}.{name}" not in OPEN:
                yield f"{home}.{name}", value


def test_no_public_name_is_missing_in_the_reference(site):
    told = documented(site)
    # A function that serves another one is public by no list: these are on no page.
    beneath = {"scaleshift.slices.metrics.first_rows", "scaleshift.slices.metrics.merge_first"}
    missing = [name for name, value in public() if not any(value is one for one in told)]
    assert set(missing) <= beneath


def test_every_public_module_is_looked_through():
    modules = {f"scaleshift.{name}" for name in scaleshift._MODULES}
    assert modules <= {*PUBLIC, *OPEN}


# Flags --------------------------------------------------------------------------------------------------


def rows(heading):
    """Cells of the tables below a heading of the page of flags, table by table."""
    text = (DOCS / "guide/flags.md").read_text()
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"^\|.*\|$(?:\n\|.*\|$)*", part, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        for table in tables
    ]


def test_the_table_of_flags_is_that_of_the_package():
    (table,) = rows("Of proportions")
    assert [tuple(row[:3]) for row in table] == [tuple(reason) for reason in REASONS.values()]


def test_reasons_of_expected_errors_are_those_of_the_package():
    reasons, of_models = rows("Of expected errors")
    phrases = [value for name, value in vars(of_errors).items() if name.isupper() and isinstance(value, str)]
    assert [row[0] for row in reasons] == phrases
    assert tuple(phrases[-2:]) == of_errors.CALM  # what the page says of the mark
    assert not unsaid("error", [row[0] for row in of_models])


def test_flags_of_slices_are_said_by_the_package():
    (table,) = rows("Of slices")
    assert not unsaid("slices", [phrase for row in table for phrase in row[0].split(", ")])


def unsaid(package, phrases):
    """Phrases that no module of a package has."""
    folder = Path(scaleshift.__file__).parent / package
    said = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    return [phrase for phrase in phrases if phrase not in said]


def test_modules_that_the_page_of_methods_names_exist():
    folder = Path(scaleshift.__file__).parent
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", (DOCS / "methods.md").read_text())
    assert len(named) > 50
    before, lost = folder, []
    for name in named:
        # A bare name is beside the one before it.
        places = [folder / name, folder.parent / name, before / name]
        found = next((place for place in places if place.exists()), None)
        if found is None:
            lost.append(name)
        else:
            before = found if found.is_dir() else found.parent
    assert not lost
