"""Synthetic label-shift problems; same draws as the project's reference case "synthetic"."""

from scaleshift.datasets import Problem
from scaleshift.datasets import make_label_shift as make

__all__ = ["Problem", "make"]
