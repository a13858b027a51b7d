"""How wrong will a model be on shifted targets?  From their covariates alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift.blocks import resuming
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.plan import Plan
from scaleshift.error import engines, telling
from scaleshift.error.family import Family, Settings
from scaleshift.error.held_out import HeldOut, held_out
from scaleshift.error.job import job_of, methods_of
from scaleshift.error.meanings import MEANINGS
from scaleshift.error.observed import observed
from scaleshift.error.targets import TargetState, named, noise_of, rows_of
from scaleshift.fitted import Facts, Fitted
from scaleshift.parameters import check, check_level


class PredictionError(Fitted):
    """Error of a model on targets whose outcomes are not known, by parametric bootstrap at their covariates.

    Assumes that outcomes depend on the covariates in the target as they do in the source. What is estimated
    is the mean loss on the target's rows of models like this one: fitted to the source's covariates and to
    outcomes drawn anew. "direct" refits the model to outcomes drawn from a generator that the source has
    taught, and looks at the target's rows; "decomposed" takes the difference between target and source from
    there, and the error in sample from a covariance penalty.

    Parameters
    ----------
    model : {"ols", "ridge", "lasso", "logistic", "multinomial"} or estimator, default "ols"
        Named ones are learned from sums over the rows, all replicates in the same passes: of linear models
        one pass. Any estimator with scikit-learn's ``fit`` and ``predict`` is refitted on the workers, once
        a replicate.
    loss : {"auto", "squared", "counting", "deviance", "brier"} or callable, default "auto"
        Squared error of numbers; of classes the counting error, the deviance -2 log p, or the sum of squares
        over classes. ``loss(y, prediction) -> (n,)``, with probabilities (n, n_classes) of classes.
    method : str or sequence of str, default ("direct", "decomposed")
        Also "corrected", the direct one corrected by an iterated bootstrap; "closed_form", of "ols" and
        "ridge"; and what others do: "cv", "importance_weighted", "importance_weighted_cv",
        "average_confidence", "difference_of_confidence", "average_thresholded_confidence", and
        "projection_norm", which is no error and a variable of its own. "all": all these.
    generator : {"auto", "plugin", "relaxed", "ols"}, default "auto"
        What outcomes are drawn from: the fit itself, its refit without penalty on the chosen features (of l2
        models all), least squares on all of them. "auto" goes from the fit to the relaxed one as far as
        cross-validation on the source says; of other estimators it calibrates their probabilities on
        held-out rows.
    alpha : float, optional
        Weight of the penalty. "ridge": (1/n) |y - f|^2 + alpha |w|^2; "lasso": (1/2n) |y - f|^2 +
        alpha |w|_1; "logistic", "multinomial": mean negative log likelihood + (alpha/2) |w|^2, or +
        alpha |w|_1. None: by cross-validation on the source.
    penalty : {"l2", "l1"}, default "l2"
        Of "logistic" and "multinomial".
    cv : int, list or None, default 5
        Folds, of whole `groups` where there are some; or a list of (train, test) row numbers as
        scikit-learn's splitters give them, each row tested once. None: no cross-validation.
    n_bootstrap : int, default 200
        Replicates. More of them leave those of fewer as they are.
    tol : float, optional
        Of estimators: refits end once the Monte-Carlo standard error of every target is below.
    checkpoint : path, optional
        Folder for what is finished, which a killed job does not do again: of estimators the replicates, of
        "logistic" and "multinomial" each pass over the source, of "ols", "ridge" and "lasso" their sums.
    random_state : int, Generator or None
    level : float, default 0.95
        Of the intervals.
    forget : float, default 0
        Share of what earlier updates of a target have told that each `update` forgets; 1: all of it.
    refit : {"cold", "warm", "never"}, default "cold"
        Of estimators: replicates are fitted from the start, or from the fitted model on (``warm_start`` or
        ``partial_fit``). "never": the model is fitted already, on other rows, and stays as it is.
    scale : bool, default False
        Whether the penalty counts weights in units of each feature's spread in the source.
    rechoose : bool, default False
        Of "ridge" and "lasso": whether replicates choose alpha anew by cross-validation, where it was not
        given. Slower by the length of the path, and on the source's simulations further off: a generator
        that is shrunken asks for other penalties.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.

    Attributes
    ----------
    error_cv_ : float
        Mean held-out loss of the source's rows; `error_cv_se_` its standard error over folds.
    generator_ : str
    classes_ : numpy.ndarray or None
        Labels; None of numbers.
    sigma2_ : float
        Variance of the noise of numbers; NaN of classes.
    family_ : object
        What was learned, without the rows.
    targets_ : dict of str to TargetState
        What `update` has kept.
    err_b_ : dict of str to numpy.ndarray
        Errors of replicates on the targets last asked for; see `replicates_`.
    n_features_in_, n_invalid_, seed_

    References
    ----------
    "Estimation of prediction error with known covariate shift": Algorithms 1 and 2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, far = rng.normal(size=(200, 5)), 2 * rng.normal(size=(300, 5))
    >>> y = X @ np.ones(5) + rng.normal(size=200)
    >>> found = PredictionError("ols", random_state=0).fit(X, y).predict({"far": far})
    >>> bool(found["error"].loc["far", "direct"] > 1)
    True
    """

    def __init__(
        self,
        model: Any = "ols",
        loss: Any = "auto",
        method: Any = ("direct", "decomposed"),
        generator: str = "auto",
        alpha: float | None = None,
        penalty: str = "l2",
        cv: Any = 5,
        n_bootstrap: int = 200,
        tol: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        *,
        level: float = 0.95,
        forget: float = 0.0,
        refit: str = "cold",
        scale: bool = False,
        rechoose: bool = False,
        invalid: Invalid = "raise",
    ):
        self.model = model
        self.loss = loss
        self.method = method
        self.generator = generator
        self.alpha = alpha
        self.penalty = penalty
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.level = level
        self.forget = forget
        self.refit = refit
        self.scale = scale
        self.rechoose = rechoose
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, noise: Any = None) -> Self:
        """Learn the model, what outcomes are drawn from, and the replicates.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or a cells dataset
        y : array-like, shape (n,), optional
            Numbers, NaN where not known; or labels, None or NaN where not known. None takes the labels of
            the dataset.
        groups : array-like, shape (n,), or "sample", optional
            Rows that depend on each other, such as those of one donor: folds are of whole groups, and the
            noise of numbers has a part that a group shares. "sample" takes the samples of a cells dataset.
        noise : dict of str to array, optional
            "train" and "fresh", (n_replicates, n): standard normal numbers, or of classes uniform ones, that
            outcomes of replicates and fresh ones are drawn by.

        Returns
        -------
        self

        Raises
        ------
        DataError
            Parameters without a meaning, too few rows, one label alone, values that are not finite.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> model = PredictionError("ols", random_state=0).fit(X, y, groups=np.arange(200) // 10)  # 20 donors
        >>> round(model.error_cv_, 1)  # on donors that the model did not see
        0.3
        """
        self._check(*MEANINGS)
        check_level(self.level)
        methods_of(self.method)
        self.seed_ = resuming.seed_of(self.checkpoint, self.random_state)
        job = job_of(self, X, y, groups, noise, self.seed_)
        self.settings_: Settings = job.settings
        self.markers_, self.treatment_ = job.rows.markers, job.rows.treatment
        self.classes_ = None if "outcome" in job.rows.columns else job.rows.categories("label")
        self.n_features_in_ = job.rows.n_markers
        self.family_: Family = engines.learn(job)
        self.held_out_: HeldOut = held_out(job.rows, self.family_, job.buckets, job.settings, self.seed_)
        self.n_invalid_ = self.family_.n_invalid
        self.targets_: dict[str, TargetState] = {}
        self._expose({})
        return self

    def predict(self, targets: Any, *, noise: Any = None) -> xr.Dataset:
        """Errors on targets.

        Parameters
        ----------
        targets : array-like, shape (m, n_features), a cells dataset, or a dict of them by name
            Rows without outcomes, columns as in `fit`.
        noise : dict, optional
            "target": (n_replicates, m) for one target, or a dict of them by name; as in `fit`.

        Returns
        -------
        xarray.Dataset
            error, error_drawn, error_low, error_high, mc_error, reason (target, method); n_rows, n_invalid,
            effective_sample_size, far, unreliable, flag (target); error_in_sample (method); error_cv. One
            number is ``found["error"].loc["site B", "direct"]``: in ``found.sel(method=...)`` `method` is an
            argument of xarray's own.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> model = PredictionError("ols", random_state=0).fit(X, y)
        >>> found = model.predict({"near": X[:50], "far": 20 * X[:50]})
        >>> found["error"].loc[:, "direct"].round(1).values.tolist()
        [0.3, 1.2]
        >>> found["flag"].sel(target="far").item()[:46]
        'little overlap with the source: its rows stand'
        """
        states = self._states(targets, noise)
        self._expose(states)
        return telling.answered(self, states)

    def update(self, targets: Any) -> xr.Dataset:
        """Add rows to targets, and tell the errors on all that they had, the past weighted by 1 - `forget`.

        Parameters
        ----------
        targets : array-like, a cells dataset, or a dict of them by name
            New rows of each; of a name not met before a new target.

        Returns
        -------
        xarray.Dataset
            As of `predict`, of the targets named. The rows behind `effective_sample_size`, `far` and the
            comparators are those of this update.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> model = PredictionError("ols", random_state=0).fit(X, y)
        >>> nights = [model.update({"site": X[i : i + 50]})["n_rows"].item() for i in (0, 50, 100)]
        >>> nights  # all rows so far; with forget=1 those of the night alone
        [50.0, 100.0, 150.0]
        """
        self._check("forget")  # which may have been set after the fit
        for name, state in (newer := self._states(targets, None)).items():
            before = self.targets_.get(name)
            newer[name] = state if before is None else before.then(state, self.forget)
        self.targets_.update(newer)
        self._expose(newer)
        return telling.answered(self, newer)

    def observed(self, X: Any, y: Any = None) -> xr.Dataset:
        """Error of the model on rows whose outcomes are known: what the expected one is held against.

        Parameters
        ----------
        X : array-like, shape (m, n_features), or a cells dataset
        y : array-like, shape (m,), optional
            As in `fit`; labels that the model does not know are wrong whatever it says.

        Returns
        -------
        xarray.Dataset
            error, error_se (as if rows were independent), n_rows. The expected error is a mean over models
            that other outcomes at the source's covariates would have given: this is one of them.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(5_000, 2))
        >>> y = X @ np.ones(2) + rng.normal(size=5_000)
        >>> model = PredictionError("ols").fit(X[:200], y[:200])
        >>> bool(0.9 < model.observed(X[200:], y[200:])["error"] < 1.1)
        True
        """
        check_is_fitted(self, "family_")
        return observed(self, X, y)

    def extrapolation(self, X: Any) -> Any:
        """How far rows are from what the source tells of.

        Parameters
        ----------
        X : array-like, shape (m, n_features), or a cells dataset

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64, shape (m,)
            Variance of the model's prediction over replicates, of numbers by that of the noise. Lazy for Dask
            input.

        Raises
        ------
        DataError
            Of estimators, which have no such score.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> model = PredictionError("ols", random_state=0).fit(X, y)
        >>> near, far = model.extrapolation([[0.1, 0.0], [8.0, 8.0]])
        >>> bool(far > 50 * near)
        True
        """
        check_is_fitted(self, "family_")
        return telling.extrapolated(self, X)

    @property
    def error_in_sample_(self) -> xr.DataArray:
        """Expected loss at the source's covariates, by method.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> PredictionError("ols", random_state=0).fit(X, y).error_in_sample_.round(1).values.tolist()
        [0.3, 0.3]
        """
        check_is_fitted(self, "family_")
        found = self.family_.error_in_sample
        return xr.DataArray(list(found.values()), {"method": list(found)}, ("method",), "error_in_sample")

    @property
    def replicates_(self) -> xr.Dataset:
        """Errors of replicates: in_b (replicate), err_b (target, replicate) of the targets last asked for.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X.sum(axis=1) + np.arange(200) % 2
        >>> model = PredictionError("lasso", alpha=0.1, n_bootstrap=50, random_state=0).fit(X, y)
        >>> found = model.predict({"near": X, "far": 3 * X})
        >>> model.replicates_["err_b"].dims, model.replicates_["err_b"].shape
        (('target', 'replicate'), (2, 50))
        """
        check_is_fitted(self, "family_")
        found = xr.Dataset({"in_b": ("replicate", self.family_.in_b)})
        if not self.err_b_:
            return found
        errors = ("target", "replicate"), np.stack(list(self.err_b_.values()))
        return found.assign(err_b=errors).assign_coords(target=list(self.err_b_))

    def _learned(self) -> Facts:
        return telling.facts(self)

    # What these are made of ----------------------------------------------------------------------------

    def _plan_fit(self, X: Any, y: Any = None, groups: Any = None) -> Plan:
        from scaleshift.error.planning import plan_fit

        return plan_fit(self, X, y, groups)

    def _check(self, *names: str) -> None:
        """Refuse parameters without a meaning."""
        for name in names:
            meaningful, expected = MEANINGS[name]
            check(name, getattr(self, name), meaningful, expected)

    def _states(self, targets: Any, noise: Any) -> dict[str, TargetState]:
        check_is_fitted(self, "family_")
        asked = named(targets)
        given = noise_of(noise, list(asked))
        rows: dict[str, Rows] = {name: rows_of(name, X, self, given[name]) for name, X in asked.items()}
        return telling.states(self.family_, rows, self.settings_, self.classes_, with_noise=noise is not None)

    def _expose(self, states: Mapping[str, TargetState]) -> None:
        family = self.family_
        self.error_cv_, self.error_cv_se_ = family.cv_error, family.cv_error_se
        named = getattr(family, "generator_name", None) or getattr(family, "generator", "plugin")
        self.generator_ = str(named)  # a Gaussian family keeps its coefficients under the other name
        self.sigma2_ = float(getattr(family, "sigma2", np.nan))
        self.err_b_ = {name: family.err_b(state.sums) for name, state in states.items()}
