"""Which packages does scaleshift ask for, and are they here?  By its own metadata, which pip reads too."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import scaleshift
from scaleshift.doctor.finding import Finding

PACKAGE = "scaleshift"
OF_DEVELOPERS = {"test", "dev"}  # extras


def versions() -> Iterator[Finding]:
    """Versions of scaleshift, Python, and every package that scaleshift cannot do without."""
    yield Finding(PACKAGE, "ok", scaleshift.__version__, facts={"installed": scaleshift.__version__})
    try:
        wanted = SpecifierSet(metadata.metadata(PACKAGE)["Requires-Python"])
    except metadata.PackageNotFoundError:
        value = "unknown: scaleshift was imported, but not installed"
        yield Finding("requirements", "missing", value, "pip install .")
        return
    yield _compared("Python", platform.python_version(), wanted, f"install Python {wanted}")
    for requirement in needed(PACKAGE):
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        advice = f'pip install "{requirement.name}{extras}{requirement.specifier}"'
        yield _compared(requirement.name, installed(requirement.name), requirement.specifier, advice)


def extras() -> Iterator[Finding]:
    """What each optional extra still lacks, and how to get it."""
    try:
        names = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:  # `versions` says so
        return
    for extra in sorted(set(names) - OF_DEVELOPERS):
        wanted = needed(PACKAGE, extra)
        missing = [r for r in wanted if not _is_met(installed(r.name), r.specifier)]
        command = f'pip install "{PACKAGE}[{extra}]"'
        facts = {"missing": [f"{r.name}{r.specifier}" for r in missing], "install": command}
        if missing:
            yield Finding(extra, "missing", "missing: " + ", ".join(facts["missing"]), command, facts)
        else:
            yield Finding(extra, "ok", "complete" if wanted else "not for this system", facts=facts)


def needed(package: str, extra: str = "") -> list[Requirement]:
    """What an installed package, or one of its extras alone, asks for on this system.

    Asked-for extras of other packages count, where those packages are here: ``dask[distributed]`` is dask
    and distributed. A package that is asked for twice stands where, and as, it was asked for first.

    Parameters
    ----------
    package : str
        Name of a distribution.
    extra : str, default ""
        Name of an extra; "" is what is needed without any.

    Returns
    -------
    list of packaging.requirements.Requirement

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If the package is not installed.

    Examples
    --------
    >>> {"dask", "distributed", "numba"} <= {requirement.name for requirement in needed("scaleshift")}
    True
    >>> [requirement.name for requirement in needed("scaleshift", "anndata")]
    ['anndata']
    """
    direct = [r for r in map(Requirement, metadata.requires(package) or ()) if _applies(r, extra)]
    found = {requirement.name: requirement for requirement in direct}
    for requirement in direct:
        for inner in sorted(requirement.extras):
            if installed(requirement.name) is not None:
                for further in needed(requirement.name, inner):
                    found.setdefault(further.name, further)
    return list(found.values())


def installed(package: str) -> str | None:
    """The version that is here, or None.

    Examples
    --------
    >>> installed("no-such-package") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _applies(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    if marker is None:
        return not extra
    always = marker.evaluate({"extra": ""})
    return always if not extra else marker.evaluate({"extra": extra}) and not always


def _is_met(version: str | None, wanted: SpecifierSet) -> bool:
    return version is not None and wanted.contains(version, prereleases=True)


def _compared(name: str, version: str | None, wanted: SpecifierSet, advice: str) -> Finding:
    """A needed package beside what is asked of it."""
    facts = {"installed": version, "required": str(wanted)}
    if _is_met(version, wanted):
        return Finding(name, "ok", str(version), facts=facts)
    value = "not installed" if version is None else version
    return Finding(name, "problem", f"{value}; needed is {wanted or 'any version'}", advice, facts)
