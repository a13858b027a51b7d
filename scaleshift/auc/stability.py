"""Which features would be chosen again?  How often each is in rankings learned from halves of the rows.

After Shah and Samworth (2013), "Variable selection with error control: another look at stability selection":
halves come in complementary pairs. A half is half of the buckets, so that no further pass is needed.
"""

from __future__ import annotations

import itertools

import numpy as np

from scaleshift.auc.evidence import Evidence
from scaleshift.auc.selection import Options
from scaleshift.blocks import noise

LISTED = 16  # buckets, of which all halves are listed: 6435 pairs


def halves(n_buckets: int, n_pairs: int, seed: int) -> list[list[int]]:
    """Complementary halves of the buckets, at most `n_pairs` pairs of them.

    Examples
    --------
    >>> halves(4, 9, seed=0)
    [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]]
    """
    draw = noise.generator(seed, "halves")
    if n_buckets > LISTED:  # there are too many to list: two alike are hardly ever drawn
        every = [sorted(draw.permutation(n_buckets)[: n_buckets // 2].tolist()) for _ in range(n_pairs)]
    else:
        every = _listed(n_buckets)
    if len(every) > n_pairs:
        order = draw.permutation(len(every))[:n_pairs]
        every = [every[i] for i in sorted(order.tolist())]
    return [part for half in every for part in (half, sorted(set(range(n_buckets)) - set(half)))]


def _listed(n_buckets: int) -> list[list[int]]:
    """One half of each pair: of an even number of buckets that with the first, else the smaller one."""
    size = n_buckets // 2
    if n_buckets % 2:
        return [list(half) for half in itertools.combinations(range(n_buckets), size)]
    return [[0, *others] for others in itertools.combinations(range(1, n_buckets), size - 1)]


def stability(
    evidence: Evidence, sign: np.ndarray, parts: list[list[int]], options: Options, size: int, alpha: float
) -> np.ndarray:
    """Share of the parts whose ranking of a size has each candidate: (p,), NaN without parts."""
    if size >= len(evidence.candidates):  # all are chosen by any part: that says nothing
        return np.full(len(evidence.candidates), np.nan)
    times, n_parts = np.zeros(len(evidence.candidates)), 0
    for part in parts:
        found = evidence.contrast(sign, part)
        if (found.count > 1).all():
            times += options.path(found, alpha, evidence.among(sign, part), size)[0] != 0
            n_parts += 1
    return times / n_parts if n_parts else np.full(len(times), np.nan)
