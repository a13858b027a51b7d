"""To which class does a single cell of a shifted sample belong?  Posteriors under the sample's proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks import passes
from scaleshift.blocks.block import Block
from scaleshift.errors import DataError
from scaleshift.quantify.learned import unknown_name
from scaleshift.quantify.scores import ClassScores, class_scores, novelty_rows

UNKNOWN_DENSITY = 0.1  # of the classes' usual one: cells that look less like any class than that are unknown


def posterior(model: Any, X: Any, proportion: xr.Dataset | None = None, sample: Any = None) -> xr.DataArray:
    """Probability of each class for every cell of unlabelled samples: see `scaleshift.DFM.posterior`."""
    check_is_fitted(model, "source_")
    if proportion is None:
        proportion = model.predict(X, sample)
    rows = model._rows(X, sample).only("sample")
    scores = class_scores(model)
    prior = _prior(model, scores, proportion, rows.categories("sample"))
    names = model.labels_.tolist()
    if prior.shape[1] > len(names):
        names.append(unknown_name(model.labels_))
    found = passes.map_rows(posterior_rows, rows, len(names), scores=scores, prior=prior)
    attributes = {
        "long_name": "posterior",
        "units": "1",
        "description": "probability that the cell belongs to the class, under its sample's proportions",
    }
    label = np.array(names) if len({type(name) for name in names}) == 1 else np.array(names, dtype=object)
    return xr.DataArray(found, dims=("cell", "label"), coords={"label": label}, attrs=attributes)


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
        From 0, a cell in the midst of a class, to 1, a cell where no class has any. Known cells have 0.07 on
        average, with a tail. In the chunks of the rows; NaN for rows that are not finite with
        ``invalid="drop"``.

    Raises
    ------
    DataError
        If the model has no kernel, or a marker is missing.

    Notes
    -----
    1 - max_i <Phi(x), Phi_i> / |Phi_i|^2, cut to [0, 1]. It tells unknown cells far from every class (AUC
    1.0), background noise (.99) and a population that overlaps with known ones (.95) from known cells, on the
    synthetic problems of ``benchmarks/synthetic.py`` with 30 % unknown cells; likewise with 5 %. The density
    ratio to the sample, 1 - sum_i a_i <Phi_i, Phi(x)> / <Phi_Q, Phi(x)>, is better where populations overlap
    (.997), but misses background noise (.75 with Fourier features, .45 with 5 % unknown cells).

    Examples
    --------
    >>> from scaleshift import DFM
    >>> x = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = DFM("landmarks", random_state=0).fit(x, np.repeat(["a", "b"], 500))
    >>> novelty(model, [[0.0, 0.0], [9.0, 9.0]]).compute().round(2).tolist()
    [0.0, 1.0]
    """
    check_is_fitted(model, "source_")
    scores = class_scores(model)
    if scores.typical is None:
        raise DataError("a classifier does not see cells unlike every class: fit a DFM, features='landmarks'")
    return passes.map_rows(novelty_rows, model._rows(X, None).only(), scores=scores)


def posterior_rows(block: Block, scores: ClassScores, prior: np.ndarray) -> np.ndarray:
    """Kernel of the posteriors: prior times density, made to add up to one.

    A cell where nothing has any density tells nothing: its posterior is the prior.
    """
    joint = prior[block.columns["sample"]]
    density = scores(block.x)
    total = (joint[:, : density.shape[1]] * density).sum(axis=1) + joint[:, density.shape[1] :].sum(axis=1)
    told = total > 0
    joint[told, : density.shape[1]] *= density[told]
    sums = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, sums, out=np.full_like(joint, np.nan), where=sums > 0)


def _prior(model: Any, scores: ClassScores, result: xr.Dataset, samples: np.ndarray) -> np.ndarray:
    """What the densities of a sample's cells are multiplied with, (n_samples, n_labels or one more).

    Of the unknown population nothing is known but its share: the last column is the share times a density
    that is the same everywhere.
    """
    missing = [str(name) for name in samples if name not in result.indexes["sample"]]
    if missing:
        raise DataError(
            f"the proportions lack the sample(s) {', '.join(missing[:8])}: pass what predict gave for X, or "
            "proportion=None, which predicts first"
        )
    lacking = [str(name) for name in model.labels_ if name not in result.indexes["label"]]
    if lacking:
        raise DataError(f"the proportions lack the label(s) {', '.join(lacking)}: they are of another model")
    found = result.sel(sample=samples)
    share = np.nan_to_num(found["proportion"].sel(label=model.labels_).values)
    if not getattr(model, "soft", False) or scores.typical is None:
        return share
    unknown, known = found["unknown"].values, share.sum(axis=1)
    usual = np.divide(share @ scores.typical, known, out=np.ones(len(known)), where=known > 0)
    return np.column_stack([share, UNKNOWN_DENSITY * usual * np.nan_to_num(unknown)])
