"""Where does the model fail?  In the components of a mixture of embeddings, labels and predictions."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from scaleshift.blocks import passes
from scaleshift.blocks.block import Invalid, Kept
from scaleshift.errors import DataError
from scaleshift.slices.base import HOLDOUT, Begun, Slicer, membership_leaf
from scaleshift.slices.inputs import Given, given
from scaleshift.slices.mixtures import meanings, ranking, starts
from scaleshift.slices.mixtures.beginnings import first_fits
from scaleshift.slices.mixtures.expectation import Fit, Settings, climb, expect
from scaleshift.slices.mixtures.membership import MixtureSlices
from scaleshift.slices.mixtures.mixture import Mixture, Powers
from scaleshift.slices.outcomes import Kind
from scaleshift.slices.prepared import prepare

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Plan


class DominoSlicer(Slicer):
    """Slices where a model fails, by a mixture of embeddings, labels and predictions.

    Rows of a component are alike in their embeddings, labels and predictions; the components with the most
    errors are the slices.

    Parameters
    ----------
    n_slices : int, default 5
        Components that are told as slices, at most `n_mixture_components`.
    covariance_type : {"diag", "spherical", "full", "tied"}, default "diag"
        Shape of a component, as in scikit-learn's `GaussianMixture`.
    n_pca_components : int or None, default 128
        Principal components of the embeddings that are modelled; all of them where there are fewer. None: the
        embeddings as they are.
    n_mixture_components : int or "auto", default 25
        "auto" takes the number with the least Bayesian information criterion, of 5, 10, 15, 25 and 40 that
        all climb in the same passes.
    y_log_likelihood_weight, y_hat_log_likelihood_weight : float, default 1
        Exponents of the probabilities of labels and of predictions in the likelihood.
    max_iter : int, default 100
        Passes of expectation-maximisation over all rows, at most.
    init_params : {None, "confusion", "kmeans", "random", "random_from_data", "k-means++"}, default None
        Where it starts. None: from a sample of 8 192 rows, rare errors among them, that four restarts were
        fitted to; it saves most passes, and ends higher. "confusion" (the default with `compat`): components
        take turns at the cells of the confusion matrix.
    confusion_noise : float, default 1e-3
        What tells the components of a cell apart where `init_params` is "confusion".
    random_state : None, int or numpy.random.Generator
        Of the start, and of the rows held out.
    tol : float, default 1e-3
        Of the mean log-likelihood: where it changes by less, the fit has converged.
    reg_covar : float, default 1e-6
        Added to variances, in units of the embeddings' mean variance: with `compat` as it is.
    ranking : str, default "excess_errors"
        Which components are slices: those with the most errors beyond the expected ("excess_errors"), the
        highest share of errors ("error_rate") or its Wilson bound ("wilson"), the most loss beyond the
        expected ("loss"), or the largest mismatch of predicted and true class ("mismatch", domino's own).
        Without predictions "excess_errors" is "loss".
    holdout : float, default 0.2
        Share of the rows that the fit does not see; `describe` tests on them whether slices are real.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows whose embeddings hold NaN or infinite values: refuse them by name, or leave them
        out and count them (`n_invalid_`); their memberships are NaN, and they belong to no slice.
    compat : None or "domino-0.1.5"
        Reproduce the numbers of that package: its start, float64, every row in the fit, its ranking
        ("mismatch"), and predictions that choose among the slices alone.
    checkpoint : path, optional
        Folder that holds the state after every pass: a killed fit goes on from there.

    Attributes
    ----------
    classes_ : numpy.ndarray, shape (C,)
        Classes in the order of the predictions' columns; bins of losses where there are none.
    weights_, means_, covariances_, y_probs_, y_hat_probs_ : numpy.ndarray
        Parameters of the K components; means (K, d') in principal components.
    lower_bound_, lower_bounds_ : float, numpy.ndarray
        Mean log-likelihood of a row before the last M-step, and before every one of the passes.
    n_iter_ : int
        Passes of expectation-maximisation over all rows.
    converged_ : bool
        Whether the last pass changed the mean log-likelihood by less than `tol`.
    slice_components_ : numpy.ndarray of int64, shape (n_slices,)
        Components that are slices, best first.
    slice_scores_ : numpy.ndarray, shape (K,)
        What they were ranked by.
    n_invalid_ : int
        Rows that were left out.
    profile_ : SliceProfile
        Sums over the rows of each slice, which `describe` tells of.
    bic_ : dict of str to float
        Bayesian information criterion a row, by the number of components, written out.

    References
    ----------
    Eyuboglu et al. (2022), Domino: Discovering systematic errors with cross-modal embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> from scaleshift import DominoSlicer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2_000, 2)) + 6 * rng.integers(0, 2, (2_000, 2))
    >>> y = rng.integers(0, 2, 2_000)
    >>> wrong = rng.random(2_000) < np.where((X > 3).all(axis=1), 0.6, 0.05)  # fails in one corner
    >>> table = {"embedding": X, "target": y, "pred_probs": np.where(wrong, 1 - y, y).astype(float)}
    >>> slicer = DominoSlicer(n_slices=1, n_mixture_components=8, random_state=0).fit(table)
    >>> inside = slicer.predict(table)[:, 0] == 1
    >>> bool(wrong[inside].mean() > 0.5)
    True
    """

    METHOD = "Domino"
    CITATION = "Eyuboglu et al. (2022), Domino: Discovering systematic errors with cross-modal embeddings"
    MEANINGS = meanings.DOMINO

    def __init__(
        self,
        n_slices: int = 5,
        covariance_type: str = "diag",
        n_pca_components: int | None = 128,
        n_mixture_components: int | str = 25,
        y_log_likelihood_weight: float = 1,
        y_hat_log_likelihood_weight: float = 1,
        max_iter: int = 100,
        init_params: str | None = None,
        confusion_noise: float = 1e-3,
        random_state: Any = None,
        *,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        ranking: str = "excess_errors",
        holdout: float = HOLDOUT,
        invalid: Invalid = "raise",
        compat: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.n_slices = n_slices
        self.covariance_type = covariance_type
        self.n_pca_components = n_pca_components
        self.n_mixture_components = n_mixture_components
        self.y_log_likelihood_weight = y_log_likelihood_weight
        self.y_hat_log_likelihood_weight = y_hat_log_likelihood_weight
        self.max_iter = max_iter
        self.init_params = init_params
        self.confusion_noise = confusion_noise
        self.random_state = random_state
        self.tol = tol
        self.reg_covar = reg_covar
        self.ranking = ranking
        self.holdout = holdout
        self.invalid = invalid
        self.compat = compat
        self.checkpoint = checkpoint

    def fit(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
        *,
        sample_weight: Any = None,
        init_resp: Any = None,
    ) -> Self:
        """Learn the slices: two passes over the rows, and some over what is kept of them.

        Parameters
        ----------
        data : DataFrame, Dataset, AnnData or mapping of columns, optional
            A cells dataset too: its markers are the embeddings, its labels the targets.
        embeddings : str or array-like, shape (n, d), default "embedding"
            A column of `data`, or the embeddings themselves: numpy, Dask, ...
        targets : str or array-like, shape (n,), default "target"
            True labels of any type; classes are sorted as numpy does it, categoricals keep their order.
            Decimal numbers with numbers predicted for them are a regression: residuals are modelled.
        pred_probs : str or array-like, default "pred_probs"
            Probabilities (n, C) in the order of the classes (columns of a DataFrame that are called as the
            classes may have another), or of the second of two classes (n,), or predicted labels (n,).
        losses : str or array-like, shape (n,), optional
            Loss of each row, in place of the cross-entropy or squared residual; alone, it stands for targets
            and predictions.
        sample_weight : str or array-like, shape (n,), optional
            How many rows each stands for; those of weight 0 are left out, and may lack a target.
        init_resp : array-like, shape (n, n_mixture_components), optional
            Responsibilities to start from, in place of `init_params`.

        Returns
        -------
        Self
            Itself.

        Raises
        ------
        DataError
            For values that are not finite, probabilities that do not add up to one, missing targets: names
            the rows. For fewer rows than components, unknown columns, parameters or labels without meaning,
            and a checkpoint of another fit.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If `max_iter` passes were not enough.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import DominoSlicer
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 100)
        >>> X = rng.normal(6 * y[:, None], size=(200, 2))
        >>> predicted = np.where(np.arange(200) < 150, y, 0.0)  # half of the ones are taken for zeros
        >>> slicer = DominoSlicer(1, n_mixture_components=3, random_state=0).fit(None, X, y, predicted)
        >>> int(slicer.predict(None, X, y, predicted).sum())
        50
        """
        self._check()
        passed = {"init_resp": init_resp is not None}
        begun = self._begin(given(data, embeddings, targets, pred_probs, losses, sample_weight), **passed)
        if init_resp is not None:
            rows = starts.with_responsibilities(begun.rows, init_resp, self.n_mixture_components)
            begun = begun._replace(rows=rows)
        preparation = begun.preparation
        kept = passes.keep(begun.rows, prepare, preparation.row_bytes, preparation=preparation)
        unit = 1.0 if self.compat else begun.seen.variance or 1.0
        settings = replace(self._settings, reg_covar=self.reg_covar * unit)
        fits = begun.state
        if fits is None:
            fits = first_fits(self, begun, kept, settings, given_resp=init_resp is not None)
        fits = climb(kept, preparation.kind, fits, settings, functools.partial(self._write, begun))
        return self._rank(begun, kept, fits, settings)

    def predict_proba(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
        *,
        all_components: bool = False,
    ) -> Any:
        """Responsibility of each slice for each row, given what is known of it.

        Parameters
        ----------
        data, embeddings, targets, pred_probs, losses
            As in `fit`. What is missing of targets and predictions is left out.
        all_components : bool, default False
            Of all components, not of slices alone: rows then add up to 1.

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64, shape (n, n_slices)
            Or (n, n_mixture_components). Lazy for Dask input.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import DominoSlicer
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 100)
        >>> X = rng.normal(6 * y[:, None], size=(200, 2))
        >>> predicted = np.where(np.arange(200) < 150, y, 0.0)  # half of the ones are taken for zeros
        >>> slicer = DominoSlicer(1, n_mixture_components=3, random_state=0).fit(None, X, y, predicted)
        >>> slicer.predict_proba(None, X[::199], y[::199], predicted[::199]).round(2).tolist()
        [[0.0], [1.0]]
        >>> slicer.predict_proba(None, X[::199], y[::199], predicted[::199], all_components=True).sum(axis=1)
        array([1., 1.])
        """
        found = given(data, embeddings, targets, pred_probs, losses)
        if not all_components:
            return self._map(membership_leaf, found, np.float64)
        everything = np.arange(len(self.weights_))
        return self._map(membership_leaf, found, np.float64, self._made(self.mixture_, everything))

    def _plan_fit(
        self, X: Any, y: Any, *, pred_probs: Any = None, losses: Any = None, sample_weight: Any = None
    ) -> Plan:
        """What `scaleshift.explain` tells of a fit."""
        from scaleshift.slices.mixtures.planning import plan_domino

        self._check()
        return plan_domino(self, Given(X, y, pred_probs, losses, sample_weight))

    @property
    def mm(self) -> Self:
        """Another name of this object itself, for those who write ``slicer.mm.means_``."""
        return self

    @property
    def slice_cluster_indices(self) -> np.ndarray:
        """Another name of ``slice_components_``."""
        return self.slice_components_

    @property
    def y_probs(self) -> np.ndarray:
        """Another name of ``y_probs_``."""
        return self.y_probs_

    @property
    def y_hat_probs(self) -> np.ndarray:
        """Another name of ``y_hat_probs_``."""
        return self.y_hat_probs_

    @property
    def _slices(self) -> MixtureSlices:
        return self._made(self.mixture_, self.slice_components_)

    @property
    def _is_sound(self) -> bool:
        return self._slices.is_sound(self.preparation_.kind.n_labels) and super()._is_sound

    def _made(self, mixture: Mixture, components: np.ndarray) -> MixtureSlices:
        return MixtureSlices(mixture, self._settings.powers, components, among_chosen=bool(self.compat))

    @property
    def _settings(self) -> Settings:
        powers = Powers(float(self.y_log_likelihood_weight), float(self.y_hat_log_likelihood_weight))
        return Settings(self.tol, self.max_iter, self.reg_covar, powers)

    @property
    def _sizes(self) -> list[int]:
        """Numbers of components that are fitted."""
        k = self.n_mixture_components
        return list(meanings.SIZES) if k == "auto" else [int(k)]

    def _rank(self, begun: Begun, kept: Kept, fits: list[Fit], settings: Settings) -> Self:
        """Keep the best mixture and rank its components: one pass, and that of the profile."""
        kind, projection = begun.preparation.kind, begun.preparation.projection
        sums = expect(kept, kind, [fit.mixture for fit in fits], settings.powers)
        criterion = ranking.criterion(sums, fits)
        best = int(np.argmin(criterion))
        fit, mixture = fits[best], fits[best].mixture
        if not fit.converged:
            warnings.warn(
                f"the mixture did not converge in {self.max_iter} passes (the mean log-likelihood still "
                f"changes by more than tol={self.tol}): raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        evidence = ranking.evidence(sums, fits, best)
        scores = ranking.RANKINGS[self._ranking(kind)](evidence)
        support = np.full(len(scores), np.inf) if self.compat else evidence.n
        chosen = ranking.best(scores, support, self.n_slices)
        return self._set(
            begun,
            self._made(mixture, chosen),
            mixture_=mixture,
            weights_=mixture.weights,
            means_=mixture.means + (projection.mean if projection.components is None else 0.0),
            covariances_=mixture.covariances,
            y_probs_=mixture.label_probs,
            y_hat_probs_=mixture.prediction_probs,
            lower_bound_=fit.lower_bound,
            lower_bounds_=np.array(fit.lower_bounds),
            n_iter_=fit.n_iter,
            converged_=fit.converged,
            slice_scores_=scores,
            slice_components_=chosen,
            bic_={str(f.mixture.n_components): float(c) for f, c in zip(fits, criterion, strict=True)},
        )

    def _ranking(self, kind: Kind) -> str:
        """The ranking that is used: domino's own under compat, losses where there are no errors."""
        if not kind.has_errors and self.ranking in ranking.OF_ERRORS:
            return "loss"
        return "mismatch" if self.compat and self.ranking == "excess_errors" else self.ranking

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        super()._check()
        if self.n_slices > max(self._sizes):
            raise DataError(
                f"n_slices={self.n_slices} is more than n_mixture_components={self.n_mixture_components}: "
                "choose fewer"
            )
