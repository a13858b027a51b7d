"""What does this installation have, what is missing, and how is it mended?

One module a group of questions; each has functions that take nothing and yield findings. Nothing is
imported before it is asked about, and nothing secret is told: no environment, credentials or user names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaleshift.doctor import cluster, gpu, machine, packages, trial
from scaleshift.doctor.finding import Finding, without_user

SCHEMA = "scaleshift.doctor/1"
SECTIONS: dict[str, Callable[[], Iterable[Finding]]] = {
    "versions": packages.versions,
    "CPU": machine.cpu,
    "memory": machine.memory_sizes,
    "disk": machine.disk,
    "GPU": gpu.gpu,
    "cluster": cluster.clusters,
    "extras": packages.extras,
    "self test": trial.self_test,
}


def examine() -> dict[str, list[Finding]]:
    """Look at everything; a section that cannot be looked at has a problem, and the others go on.

    Returns
    -------
    dict of str to list of Finding
        By section.
    """
    found: dict[str, list[Finding]] = {section: [] for section in SECTIONS}
    for section, look in SECTIONS.items():
        try:
            for finding in look():
                found[section].append(finding)
        except Exception as error:
            said = without_user(f"{type(error).__name__}: {error}")
            found[section].append(Finding(section, "problem", said))
    return found


def is_fine(findings: Iterable[Finding]) -> bool:
    """Whether nothing that is needed is broken; optional things may be missing.

    Examples
    --------
    >>> is_fine([Finding("cupy", "missing", "not installed")])
    True
    """
    return all(finding.status != "problem" for finding in findings)


def to_json(sections: Mapping[str, list[Finding]]) -> dict[str, Any]:
    """The findings for machines. Version 1 of the schema.

    Examples
    --------
    >>> to_json({"GPU": [Finding("cupy", "missing", "not installed")]})["sections"]["GPU"][0]["status"]
    'missing'
    """
    return {
        "schema": SCHEMA,
        "fine": all(map(is_fine, sections.values())),
        "sections": {
            section: [{**finding._asdict(), "facts": dict(finding.facts)} for finding in findings]
            for section, findings in sections.items()
        },
    }
