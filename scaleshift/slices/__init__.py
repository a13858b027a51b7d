"""Where does a model fail?  Slices of data, their description, and how they are judged."""

from __future__ import annotations

from scaleshift.slices import metrics, synthetic
from scaleshift.slices.domino import DominoSlicer

__all__ = ["DominoSlicer", "metrics", "synthetic"]
