"""Which colours has a page?  Those of the pictures, as style classes: c0, c1, ... and u for unknown cells."""

from __future__ import annotations

from scaleshift.report.proportion_bars import PALETTE, ROUNDS

UNKNOWN = "u"


def of(label: int) -> str:
    """Style class of a label, by its position.

    Examples
    --------
    >>> of(0), of(36)
    ('c0', 'c1')
    """
    return f"c{label % (len(PALETTE) * len(ROUNDS))}"


def rules() -> str:
    """CSS of all of them."""
    written = []
    for i in range(len(PALETTE) * len(ROUNDS)):
        tint, hatch = ROUNDS[i // len(PALETTE)]
        colour = _tinted(PALETTE[i % len(PALETTE)], tint)
        dots = "background-image:var(--dots);background-size:5px 5px;" if hatch else ""
        written.append(f".{of(i)}{{background-color:{colour};{dots}}}")
    return "".join(written)


def _tinted(colour: str, tint: float) -> str:
    """A colour made lighter (tint above 0) or darker."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [part + tint * (255 - part) if tint > 0 else part + tint * part for part in parts]
    return "#" + "".join(f"{round(part):02X}" for part in mixed)
