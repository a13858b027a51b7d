"""Which labels are held against which?  One contrast for two labels, several for more."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleshift.auc.classes import position, signs


@dataclass(frozen=True)
class Contrasts:
    """What is ranked over what."""

    classes: np.ndarray  # (n_classes,) as `predict` gives them; of two the second is the positive one
    names: list[str]
    sign: list[np.ndarray]  # (n_labels,) int8 each: +1, -1, or 0 for those left out
    kind: str  # "binary", "ovr", "ovo"


def contrasts(categories: np.ndarray, pos_label: Any, multi_class: str) -> Contrasts:
    """Contrasts of the labels there are.

    Parameters
    ----------
    categories : numpy.ndarray, shape (n_labels,)
    pos_label : label or None
        The one positive label, against all others.
    multi_class : {"ovr", "ovo"}
        Each of several labels against all others, or each pair of them.

    Examples
    --------
    >>> contrasts(np.array(["B", "NK", "T"]), None, "ovr").names
    ['B', 'NK', 'T']
    >>> contrasts(np.array(["B", "NK", "T"]), "NK", "ovr").classes.tolist()
    ['not NK', 'NK']
    >>> contrasts(np.array([0, 1]), None, "ovo").names
    ['1']
    """
    if pos_label is not None or len(categories) <= 2:
        sign = signs(categories, pos_label)
        positive = categories[sign > 0].item()
        return Contrasts(_two(categories, sign), [str(positive)], [sign], "binary")
    if multi_class == "ovr":
        each = [signs(categories, label) for label in categories.tolist()]
        return Contrasts(categories, [str(label) for label in categories.tolist()], each, "ovr")
    names, each = [], []
    for first, second in itertools.combinations(categories.tolist(), 2):
        sign = np.zeros(len(categories), np.int8)
        sign[position(categories, first)], sign[position(categories, second)] = -1, 1
        names.append(f"{second} over {first}")
        each.append(sign)
    return Contrasts(categories, names, each, "ovo")


def _two(categories: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """The negative and the positive label; all others together have a name made for them."""
    positive = categories[sign > 0]
    if len(categories) == 2:
        return np.concatenate([categories[sign < 0], positive])
    others = f"not {positive.item()}"
    if positive.dtype.kind == "U":
        return np.array([others, positive.item()])
    named = np.empty(2, object)
    named[:] = others, positive.item()
    return named
