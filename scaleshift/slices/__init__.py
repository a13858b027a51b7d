"""Where does a model fail?  Slices of data, their description, and how they are judged."""

from __future__ import annotations

from scaleshift.slices import metrics, synthetic
from scaleshift.slices.domino import DominoSlicer
from scaleshift.slices.embed import embed
from scaleshift.slices.growth import compare

__all__ = ["DominoSlicer", "compare", "embed", "metrics", "synthetic"]
