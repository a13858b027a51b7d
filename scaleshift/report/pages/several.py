"""How do several results make one page?  Section after section, headings told apart, what is folded last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scaleshift.report.pages.parts import Section


def together(results: Sequence[tuple[str, Sequence[Section]]]) -> list[Section]:
    """Sections of one page; what several results say in the same words stands once.

    Parameters
    ----------
    results : sequence of (str, sequence of Section)
        Title and sections of each result.

    Examples
    --------
    >>> one, two = [Section("Features", []), Section("Seeds", [], True)], [Section("Path", [])]
    >>> [section.heading for section in together([("A", one), ("B", [*two, *one])])]
    ['Features', 'Path', 'Seeds']
    >>> [section.heading for section in together([("A", two), ("B", [Section("Path", [], folded=True)])])]
    ['Path – A', 'Path – B']
    """
    found: list[tuple[str, Section]] = []
    seen: list[Section] = []
    for title, sections in results:
        fresh = [section for section in sections if section not in seen]
        found += [(title, section) for section in fresh]
        seen += fresh
    headings = Counter(section.heading for section in seen)
    named = Counter(f"{section.heading} – {title}" for title, section in found)
    met: Counter[str] = Counter()
    told = []
    for title, section in found:
        heading = section.heading
        if headings[heading] > 1:
            heading = f"{heading} – {title}"
            met[heading] += 1
            heading += f" ({met[heading]})" if named[heading] > 1 else ""
        told.append(replace(section, heading=heading))
    return sorted(told, key=lambda section: section.folded)
