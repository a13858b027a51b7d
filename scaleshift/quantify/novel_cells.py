"""Which cells are unlike every class of the source?  A score for each, lazy."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.quantify.learned import check_fitted
from scaleshift.quantify.scores import UNKNOWN_DENSITY, KernelScores, class_scores


def novelty(model: Any, X: Any) -> Any:
    """How unlike every class of the source is each cell?  Lazy.

    Parameters
    ----------
    model : DFM
        Fitted, with a kernel map: Fourier features, landmarks or the exact kernel.
    X : array-like, shape (n, n_markers), or a cells dataset
        Cells of any samples: the score of a cell depends on the model and the cell alone.

    Returns
    -------
    dask.array.Array, shape (n,)
        From 0, a cell in the midst of a class, to 1, a cell where no class has any; .5 where the densest
        class has .4 of its usual density. Known cells: .01 on average. In the chunks of the rows; NaN for
        rows that are not finite with ``invalid="drop"``.

    Raises
    ------
    DataError
        If the model has no kernel that is a density, or a marker is missing.

    Notes
    -----
    1 / (1 + (s / .4)^g), s = max_i <Phi(x), Phi_i> / |Phi_i|^2, and g = 1 + (bandwidth / within-class sd)^2
    undoes what the kernel smooths. On the synthetic problems of `scaleshift.datasets.make_label_shift` it
    tells unknown cells far from every class (AUC 1.0), background noise (.99) and a population that overlaps
    with known ones (.95) from known cells, at 30 % unknown cells as at 5 %. The density ratio to the sample,
    1 - sum_i a_i <Phi_i, Phi(x)> / <Phi_Q, Phi(x)>, is better where populations overlap (.997), but misses
    background noise (.75 with Fourier features, .45 at 5 % unknown cells), and needs one more pass.

    Examples
    --------
    >>> from scaleshift import DFM
    >>> y = np.repeat(["a", "b"], 500)
    >>> x = np.where(y == "a", 0, 6)[:, None] + np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = DFM("landmarks", random_state=0).fit(x, y)
    >>> novelty(model, [[0.0, 0.0], [6.0, 6.0], [12.0, 0.0]]).compute().round(2).tolist()
    [0.0, 0.0, 1.0]
    """
    check_fitted(model, "novelty")
    scores = class_scores(model)
    if not isinstance(scores, KernelScores):
        raise DataError(
            "a classifier does not see cells that are unlike every class: fit a DFM with features='landmarks'"
        )
    return passes.map_rows(novelty_rows, model._rows(X, None).only(), scores=scores)


def novelty_rows(block: Block, scores: KernelScores) -> np.ndarray:
    """Kernel of the pass: how much less dense than usual the densest class is, sharpened."""
    nearness = (scores(block.x) / scores.typical).max(axis=1)
    return 1 / (1 + (nearness / UNKNOWN_DENSITY) ** scores.power)
