"""Which samples of a result deserve caution, and why?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from scaleshift.quantify.baseline import Baseline
from scaleshift.quantify.flags import reason

FEW = 50  # cells
WIDE = 0.5  # length of an interval that leaves more open than it says
WHY = "unknown population or shifted sample"
FALSE_DISCOVERIES = 0.01  # Benjamini-Hochberg over the samples of one result


def source_reasons(labels: np.ndarray, class_counts: np.ndarray) -> list[str]:
    """What every sample shares: classes that cannot be, or can hardly be, learned."""
    absent = [str(label) for label in labels[class_counts == 0]]
    few = (class_counts > 0) & (class_counts < FEW)
    counted = [f"{label} ({n})" for label, n in zip(labels[few], class_counts[few], strict=True)]
    return [
        reason(code, ", ".join(names)) if names else "" for code, names in (("A", absent), ("C", counted))
    ]


def sample_reasons(
    answers: Mapping[str, np.ndarray], unknown: np.ndarray, usual: Baseline
) -> list[list[str]]:
    """What the numbers of each sample say.

    Parameters
    ----------
    answers : mapping of name to numpy.ndarray, shape (n_samples,)
        n_cells, n_invalid, p_value, misfit.
    unknown : numpy.ndarray, shape (n_samples, 3)
        Share, lower and upper end.
    usual : Baseline

    Returns
    -------
    list of list of str
        One list a sample; empty texts are no reasons.
    """
    rejected = _adjusted(answers["p_value"]) < FALSE_DISCOVERIES
    reasons = []
    for i, n in enumerate(answers["n_cells"]):
        share, low, high = unknown[i]
        lost, misfit = answers["n_invalid"][i], answers["misfit"][i]
        above = (share if np.isnan(low) and n >= FEW else low) > usual.unknown
        reasons.append(
            [
                reason("E") if not n else "",
                reason("F", f"{n:.0f}") if 0 < n < FEW else "",
                reason("X", f"{lost:.0f}") if lost else "",
                reason("S", f"{WHY} (misfit {per_cent(misfit)}, usual up to {per_cent(usual.misfit)})")
                if rejected[i] and misfit > usual.misfit
                else "",
                reason("U", f"{interval(share, low, high)}, usual up to {per_cent(usual.unknown)}")
                if above
                else "",
            ]
        )
    return reasons


def label_reasons(
    names: Sequence[Any], sets: Sequence[Sequence[Any]], shares: np.ndarray, n_cells: np.ndarray
) -> list[list[str]]:
    """What the shares of each sample say of its labels: which are known as a sum only, which hardly at all.

    Parameters
    ----------
    names : sequence, length n_names
        Labels of the source that have cells, and the unknown population.
    sets : sequence of sequence
        Those that cannot be told apart.
    shares : numpy.ndarray, shape (n_samples, n_names + n_sets, 3)
        Share, lower and upper end: of each name, of each set's sum.
    n_cells : numpy.ndarray, shape (n_samples,)

    Returns
    -------
    list of list of str
        One list a sample.
    """
    of_names, of_sets = np.split(shares, [len(names)], axis=1)
    summed = {name for found in sets for name in found}
    reasons = []
    for row, sums, n in zip(of_names, of_sets, n_cells, strict=True):
        found = [
            _set_reason(of, *share) for of, share in zip(sets, sums, strict=True) if np.isfinite(share[0])
        ]
        wide = [
            f"{name} {interval(*share)}"
            for name, share in zip(names, row, strict=True)
            if share[2] - share[1] > WIDE and name not in summed
        ]
        if wide and n >= FEW:  # few cells are a reason already
            found.append(reason("W", ", ".join(wide)))
        reasons.append(found)
    return reasons


def _set_reason(names: Sequence[Any], share: float, low: float, high: float) -> str:
    names = [str(name) for name in names]
    return reason("I", f"{' + '.join(names)} = {interval(share, low, high)}, how it is divided is not known")


def interval(share: float, low: float, high: float) -> str:
    """A share with its interval, if it has one.

    Examples
    --------
    >>> interval(0.107, 0.089, 0.125), interval(0.107, np.nan, np.nan)
    ('10.7 % (8.9 to 12.5)', '10.7 %')
    """
    ends = "" if np.isnan(low) else f" ({100 * low:.1f} to {100 * high:.1f})"
    return per_cent(share) + ends


def per_cent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.1f} %"


def _adjusted(p_value: np.ndarray) -> np.ndarray:
    """p-values after Benjamini and Hochberg; NaN where there is none."""
    adjusted, tested = np.full(len(p_value), np.nan), np.isfinite(p_value)
    if tested.any():
        adjusted[tested] = false_discovery_control(p_value[tested])
    return adjusted
