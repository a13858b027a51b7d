"""Distribution feature matching: the mixture of class embeddings that is nearest to a sample's."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift import parameters
from scaleshift.blocks.block import Invalid
from scaleshift.quantify import bandwidth, bounds
from scaleshift.quantify.base import Quantifier
from scaleshift.quantify.features import Embedding, FeatureMap, feature_map
from scaleshift.quantify.mixtures import GramMixture, Resampled, gram_mixture


class DFM(Quantifier):
    """Class proportions of unlabelled samples by distribution feature matching.

    The class proportions of a sample are the weights of the mixture of class mean embeddings that comes
    nearest to the sample's mean embedding. Soft matching lets the weights sum to less than one: what is
    missing is the share of unknown cells.

    Parameters
    ----------
    features : str, feature map, embedding or transformer, default "fourier"
        "fourier", "landmarks", "gaussian", "energy", "sliced-energy", "classifier", or a map object.
        "gaussian" and "energy" are exact kernels, for at most 50 000 labelled rows and without intervals or
        test. The `embedding_` of another model is taken as it is, so that `merge` can add the two. Any object
        with ``fit(X, y)`` and ``transform(X)`` is a map: a copy is fitted on up to 20 000 labelled rows.
    soft : bool, default True
        Whether some cells of a sample may belong to no class of the source.
    bandwidth : "auto" or float, default "auto"
        Of the kernel, in the units of X. Used unless the map object has a number of its own; an error for
        maps without one (energy, transformers). "auto" maximises `criterion` on a subsample of the source.
    criterion : {"delta_min", "lambda_min"}, default "delta_min"
    n_bootstrap : int, default 200
        Replicates behind the intervals. 0: no folds, no intervals and no test.
    level : float, default 0.95
        Of the intervals.
    resample : None, "cells" or "samples"
        What of the source the replicates draw again. None: samples where it has 5 or more, else cells.
    random_state : None, int or numpy.random.Generator
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.
    checkpoint : path, optional
        Folder for what each pass of a fit over the source gave: a killed fit goes on after its last one.

    Attributes
    ----------
    labels_ : numpy.ndarray, shape (n_labels,)
        In their own type and order.
    class_counts_ : numpy.ndarray of int64, shape (n_labels,)
        Labelled rows of each class.
    bandwidth_ : float
    gram_ : numpy.ndarray, shape (n_labels, n_labels)
        Inner products of the class embeddings; NaN for classes without rows.
    delta_min_, lambda_min_ : float
        How well the classes can be told apart, hard and soft; debiased, over classes of 2 rows or more.
    delta_min_plain_, lambda_min_plain_ : float
        The same without debiasing, over all classes with rows.
    confounded_ : list of list
        Sets of classes that cannot be told apart: only the sum of their proportions is determined.
        "unknown" among them: nor can they be told from unknown cells.
    unknown_baseline_, misfit_baseline_ : float
        Unknown share and misfit that samples without unknown cells show: the 95 % quantiles over the source
        samples, each left out in turn; .05 for one sample.
    markers_, treatment_ : tuple of str or None, mapping or None
    n_features_in_ : int
    source_samples_ : list
        Names of the samples that the source's labelled rows came from.
    n_invalid_ : int
        Labelled rows left out with ``invalid="drop"``.
    embedding_ : Embedding
        What the feature map learned.
    source_ : SourceState
        Feature sums of the source, all that is kept of it.
    seed_ : int

    Notes
    -----
    Distances treat all markers alike: bring them to comparable scales first. One pass over the source, one
    more for ``bandwidth="auto"``, landmarks, "sliced-energy" or a transformer, one for the exact kernels; one
    over the targets, whatever their number.

    Intervals are estimate -+ t sd over random halves of 40 folds of the rows, for the proportions that the
    sample's cells were drawn with. Intervals from cells know nothing of how donors and batches differ.
    Source: Dussap, Blanchard and Cherief-Abdellatif (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> y = np.repeat(["a", "b"], 500)
    >>> model = DFM(random_state=0).fit(X, y)
    >>> target = np.concatenate([rng.normal(-2, 1, (900, 2)), rng.normal(2, 1, (100, 2))])
    >>> model.predict(target).proportion.round(1).values.tolist()
    [[0.9, 0.1]]
    """

    CITATION = (
        "Dussap, Blanchard, Cherief-Abdellatif (2023), Label Shift Quantification with Robustness Guarantees "
        "via Distribution Feature Matching"
    )

    def __init__(
        self,
        features: Any = "fourier",
        soft: bool = True,
        bandwidth: Any = "auto",
        criterion: str = "delta_min",
        n_bootstrap: int = 200,
        level: float = 0.95,
        resample: str | None = None,
        random_state: Any = None,
        invalid: Invalid = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.features = features
        self.soft = soft
        self.bandwidth = bandwidth
        self.criterion = criterion
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.resample = resample
        self.random_state = random_state
        self.invalid = invalid
        self.checkpoint = checkpoint

    def error_bound(self, delta: float = 0.05, result: xr.Dataset | None = None) -> float | xr.DataArray:
        """Theoretical bound of the error ||proportion - truth||, valid with probability 1 - `delta`.

        It is about 100 times larger than actual errors: of use for how it scales, not as an interval.

        Parameters
        ----------
        delta : float, default 0.05
        result : xarray.Dataset, optional
            What `predict` gave: the bound of each sample, with its cells and weights. Without it the part
            that the source contributes whatever the target.

        Returns
        -------
        float, or xarray.DataArray over sample

        Notes
        -----
        `scaleshift.quantify.bounds` has the formula. Source: Dussap, Blanchard and Cherief-Abdellatif (2023).

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(400, 1)), np.repeat(["a", "b"], 200)
        >>> x[200:] += 8
        >>> few = DFM(bandwidth=2.0, random_state=0).fit(x[::10], y[::10]).error_bound()
        >>> many = DFM(bandwidth=2.0, random_state=0).fit(x, y).error_bound()
        >>> bool(3 < few / many < 3.3)  # ten times the rows: a bound that is the root of ten lower
        True
        """
        check_is_fitted(self, "source_")
        present = self.class_counts_ > 0
        worth = self.lambda_min_plain_ if self.soft else self.delta_min_plain_
        worth /= self.embedding_.largest_norm**2
        return bounds.error_bound(worth, self.labels_[present], self.class_counts_[present], delta, result)

    @property
    def METHOD(self) -> str:  # type: ignore[override]
        """What the result calls it."""
        return ("soft" if self.soft else "hard") + " distribution feature matching"

    def _feature_map(self) -> FeatureMap:
        """By name, or the map itself."""
        return feature_map(self.features)

    def _mixture(self, embedding: Embedding, means: np.ndarray, again: Resampled | None) -> GramMixture:
        """The nearest one."""
        return gram_mixture(embedding, self.soft, means, again)

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        super()._check()
        bandwidth.checked(self.bandwidth)
        known = list(bandwidth.CRITERIA)
        parameters.check("criterion", self.criterion, lambda v: v in known, known)
