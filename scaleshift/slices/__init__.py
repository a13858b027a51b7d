"""Where does a model fail?  Slices of data, their description, and how they are judged."""

from __future__ import annotations

from scaleshift.slices import metrics, synthetic
from scaleshift.slices.describing.growth import compare
from scaleshift.slices.domino import DominoSlicer
from scaleshift.slices.embed import embed
from scaleshift.slices.spotlight import SpotlightSlicer

__all__ = ["DominoSlicer", "SpotlightSlicer", "compare", "embed", "metrics", "synthetic"]
