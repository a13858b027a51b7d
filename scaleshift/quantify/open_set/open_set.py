"""The default procedure: proportions that survive batch shift and cells of no known class."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift import parameters
from scaleshift.blocks import blas
from scaleshift.blocks.block import Invalid, Rows
from scaleshift.blocks.resuming import seed_of
from scaleshift.blocks.rows import as_rows
from scaleshift.errors import DataError
from scaleshift.fitted import Facts, Fitted
from scaleshift.quantify import pieces, result
from scaleshift.quantify.classifier.models import check_estimator
from scaleshift.quantify.keeping import kept_of
from scaleshift.quantify.open_set import attributes, diagnostics, passing, telling
from scaleshift.quantify.open_set.answers import Answerer
from scaleshift.quantify.open_set.estimators import NAMES
from scaleshift.quantify.open_set.selection import select
from scaleshift.quantify.source import N_FOLDS
from scaleshift.quantify.targets import foreign_codes

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Plan


class OpenSetQuantifier(Fitted):
    """Class proportions of unlabelled samples that may hold cells of no known class, and differ by batch.

    Cross-fitted classifiers predict the class of every cell. A cell that is farther from all landmark cells
    of the source than 95 in 100 source cells of its predicted class is unlike every class, unless the shift
    of this class between source and sample explains it. From the counts of predicted classes and of such
    cells three estimators tell the proportions; their median is the answer, or the one that errs least where
    the source has several labelled samples.

    Parameters
    ----------
    unknown : bool, default True
        Whether cells may be unlike every class. False: all are of the source's classes.
    unknown_class : "auto", None or a label, default "auto"
        Which cells of the source are of no known class, and become one: "auto" takes those without a label,
        if there are 50 of them in the labelled samples; None takes none. Their share is part of "unknown".
    classifier : None or scikit-learn style classifier
        With `predict_proba`; a clone of it is fitted for each part of the source, on standardised markers.
        None: logistic regression on the markers and their products, C = 1 for 1 000 rows and less for more.
    n_landmarks : int, default 128
    n_bootstrap : int, default 200
        Replicates behind the intervals. 0: no folds and no intervals.
    level : float, default 0.95
        Of the intervals.
    invalid : {"raise", "drop"}, default "raise"
        What to do with rows that hold NaN or infinite values.
    random_state : None, int or numpy.random.Generator
    checkpoint : path, optional
        Folder for what each pass of a fit over the source gave: a killed fit goes on after its last one.

    Attributes
    ----------
    labels_ : numpy.ndarray, shape (n_labels,)
        In their own type and order; without `unknown_class`.
    class_counts_ : numpy.ndarray of int64, shape (n_labels,)
        Labelled rows of each class.
    source_labels_ : numpy.ndarray
        The same with `unknown_class`, where it is a label.
    n_unknown_ : int
        Source rows that are of no known class, and learned from as one.
    estimator_ : str
        Which estimator answers.
    gate_ : float
        Share of cells unlike every class that samples without such cells reach: .05 for one labelled sample,
        else the largest of the samples left out in turn, .03 at least. A larger one counts as unknown.
    leave_one_out_ : dict of str to list of float
        L1 error of each estimator on each labelled sample left out, over all classes; empty for one sample.
        Their range is what to expect of a sample like these; it is no interval.
    markers_, treatment_ : tuple of str or None, mapping or None
    n_features_in_ : int
    source_samples_ : list
        Names of the samples that the source's labelled rows came from.
    n_invalid_ : int
        Source rows left out with ``invalid="drop"``.
    learned_ : Learned
        Classifiers, landmarks and usual values, of at most 50 000 rows drawn.
    counts_ : Counts
        What became of all rows of the source.
    seed_ : int

    Notes
    -----
    Passes: over the source one to draw and one to count; over the targets one that draws up to 20 000 cells
    of each sample for its shifts, and one that counts, whatever the number of samples. One pass over the
    label and sample columns before.

    The folds of classifiers are the labelled samples where there are two or more, and 10 cells of every class
    without each; else five random parts. Classifiers learn from 20 000 rows at most. Intervals are estimate
    -+ t sd over random halves of 40 folds of the rows; they know nothing of batch shift. The upper end of
    "unknown" reaches by `gate_` further where fewer cells than that are unlike every class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    >>> y = np.repeat(["a", "b"], 500)
    >>> model = OpenSetQuantifier(random_state=0).fit(X, y)
    >>> target = np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((-2, 600), (2, 200), (9, 200))])
    >>> found = model.predict(target)
    >>> found.proportion.round(1).values.tolist(), found.unknown.round(1).values.tolist()
    ([[0.6, 0.2]], [0.2])
    """

    def __init__(
        self,
        unknown: bool = True,
        unknown_class: Any = "auto",
        classifier: Any = None,
        n_landmarks: int = 128,
        n_bootstrap: int = 200,
        level: float = 0.95,
        invalid: Invalid = "raise",
        random_state: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.unknown = unknown
        self.unknown_class = unknown_class
        self.classifier = classifier
        self.n_landmarks = n_landmarks
        self.n_bootstrap = n_bootstrap
        self.level = level
        self.invalid = invalid
        self.random_state = random_state
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any = None, sample: Any = None) -> Self:
        """Learn the classes.

        Parameters
        ----------
        X : array-like, shape (n, n_markers), or a cells dataset
            The source. A cells dataset brings its labels and samples along.
        y : array-like, shape (n,), optional
            Labels; NaN, None and pandas.NA mean ungated. Samples without any label are left out.
        sample : array-like, shape (n,), optional
            Which sample a row belongs to.

        Returns
        -------
        OpenSetQuantifier
            Itself.

        Raises
        ------
        DataError
            Without labels or labelled rows, with rows that are not finite (unless ``invalid="drop"``).

        Examples
        --------
        >>> import numpy as np
        >>> import scaleshift as ss
        >>> x = np.random.default_rng(0).normal(np.repeat([0.0, 6.0], 100)[:, None], size=(200, 2))
        >>> gates = ["B"] * 100 + ["T"] * 100
        >>> cells = ss.as_cells(x, sample=["S1", "S2"] * 100, label=gates, marker=["CD3", "CD4"])
        >>> OpenSetQuantifier(n_bootstrap=0, random_state=0).fit(cells)
        OpenSetQuantifier(n_bootstrap=0, random_state=0)
          learned from  200 labelled rows of 2 samples
          labels        2: B (100), T (100)
          markers       2: CD3, CD4
          ...
        """
        self._check()
        rows = as_rows(X, y, sample, invalid=self.invalid)
        seed = seed_of(self.checkpoint, self.random_state)
        kept, asked = kept_of(self, rows, seed), (self.unknown_class, self.classifier, self.n_landmarks)
        learned, scored = kept("learned", lambda: passing.learn_source(rows, *asked, seed))
        n_folds = N_FOLDS if self.n_bootstrap else 1
        counts, n_invalid = kept("counts", lambda: passing.count_source(rows, learned, n_folds, seed))
        with blas.one_thread():
            selection = select(learned, scored, seed)
        found = {
            "seed_": seed,
            "learned_": learned,
            "counts_": counts,
            "markers_": rows.markers,
            "treatment_": rows.treatment,
            "n_features_in_": rows.n_markers,
            "n_invalid_": int(n_invalid.sum()),
            "source_samples_": rows.categories("sample")[learned.strata.part_of >= 0].tolist(),
            **attributes.classes(rows.categories("label"), learned, counts),
            **attributes.selected(selection),
        }
        for name, value in found.items():  # all at once: a fit that fails leaves an earlier one as it was
            setattr(self, name, value)
        return self

    def predict(
        self, X: Any, sample: Any = None, *, checkpoint: str | os.PathLike[str] | None = None
    ) -> xr.Dataset:
        """Class proportions of every sample: two passes.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), or a cells dataset
            The targets. Markers are matched by name where both sides have names. Labels are not used; those
            that the source does not have stay in the result as NaN, with a flag.
        sample : array-like, shape (m,), optional
            Which sample a row belongs to; without it an array is one sample named "all".
        checkpoint : path, optional
            Folder in which answers of finished samples are kept, as of `DFM.predict`.

        Returns
        -------
        xarray.Dataset
            Dimensions (sample, label, marker); see `scaleshift.quantify.result.VARIABLES` and
            `scaleshift.quantify.open_set.diagnostics.VARIABLES`. Metadata of samples stay.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        DataError
            If a marker is missing, rows are not finite (unless ``invalid="drop"``), a parameter has no
            meaning, or `checkpoint` is of other rows or of another model.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(np.repeat([0.0, 6.0], 200)[:, None], size=(400, 2))
        >>> model = OpenSetQuantifier(random_state=0).fit(X, ["B"] * 200 + ["T"] * 200)
        >>> sample = ["S1"] * 150 + ["S2"] * 50
        >>> found = model.predict(X[100:300] + 0.2, sample)  # of a batch that is shifted
        >>> found["proportion"].sel(label="B").round(1).values.tolist()
        [0.7, 0.0]
        """
        check_is_fitted(self, "learned_")
        self._check()  # set_params may have been called since the fit
        rows = self._rows(X, sample)
        foreign, answerer = foreign_codes(rows, self.source_labels_), self._answerer()

        def answer(rows: Rows) -> dict[str, np.ndarray]:
            return passing.answer_samples(rows, self.learned_, answerer, foreign, self.seed_)

        answers = pieces.answered(answer, rows, self, foreign, checkpoint)
        known = self._dataset(rows.categories("sample"), answers)
        if foreign.size:
            known = result.with_foreign(known, rows.categories("label")[foreign], answers["n_foreign"])
        return result.described(known, X)

    def posterior(self, X: Any, proportion: xr.Dataset | None = None, sample: Any = None) -> xr.DataArray:
        """Probability of each class for every cell, under the proportions of the cell's own sample. Lazy.

        Parameters
        ----------
        X : array-like, shape (m, n_markers), or a cells dataset
        proportion : xarray.Dataset, optional
            What `predict` gave for X; None predicts first.
        sample : array-like, shape (m,), optional
            As in `predict`.

        Returns
        -------
        xarray.DataArray
            Dimensions (cell, label), backed by Dask in the row chunks of X; a row adds up to one. The last
            label are the unknown cells. NaN for rows that are not finite with ``invalid="drop"``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        DataError
            If `proportion` lacks a sample of X, or a label.

        Notes
        -----
        p(i | x) is proportional to a_i p_i(x) / b_i, p_i what the classifiers say and b_i the class's share
        of what they learned from. A cell that is flagged as unlike every class is unknown with the odds that
        such cells have against flagged ones of the classes. One pass finds the samples' shifts at once.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(-3, 1, (500, 2)), rng.normal(3, 1, (500, 2))])
        >>> model = OpenSetQuantifier(random_state=0).fit(X, np.repeat(["a", "b"], 500))
        >>> target = np.concatenate([X[400:600], rng.normal(12, 1, (100, 2))])
        >>> model.posterior(target)[[1, 150, 250]].values.round().tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        from scaleshift.quantify.open_set.posterior import posterior

        if proportion is None:
            proportion = self.predict(X, sample)
        check_is_fitted(self, "learned_")
        return posterior(self, self._rows(X, sample), proportion)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as a Zarr store, without the cells; `scaleshift.load` reads it.

        Raises
        ------
        DataError
            With a `classifier` of the user's own, which only pickle, and thus code, could keep.

        Examples
        --------
        >>> import scaleshift as ss
        >>> from tempfile import TemporaryDirectory
        >>> model = OpenSetQuantifier(n_bootstrap=0, random_state=0)
        >>> model = model.fit([[0.0]] * 9 + [[5.0]] * 9, ["B"] * 9 + ["T"] * 9)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     print(ss.load(f"{folder}/model").class_counts_)
        [9 9]
        """
        if self.classifier is not None:
            raise DataError(
                f"a model with {type(self.classifier).__name__} cannot be saved: a saved model holds data "
                "and no code. Fit it with classifier=None, or keep the cells and fit it again"
            )
        super().save(path)

    def _learned(self) -> Facts:
        return telling.facts(self)

    def _plan(self, rows: Rows) -> Plan:
        """What `scaleshift.explain` tells of a fit, or of a prediction once fitted."""
        from scaleshift.quantify.open_set import planning

        if hasattr(self, "learned_"):
            return planning.plan_predict(self, rows.matched(self.markers_, self.n_features_in_))
        self._check()
        return planning.plan_fit(self, rows)

    def _rows(self, X: Any, sample: Any) -> Rows:
        """The rows of targets, markers as the source has them."""
        rows = as_rows(X, None, sample, invalid=self.invalid)
        return rows.matched(self.markers_, self.n_features_in_, self.treatment_)

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        parameters.check_replicates(self.n_bootstrap)
        parameters.check_level(self.level)
        parameters.check_switch("unknown", self.unknown)
        if not isinstance(self.n_landmarks, int | np.integer) or self.n_landmarks < 1:
            raise DataError(f"n_landmarks={self.n_landmarks!r}: expected a number from 1")
        check_estimator(self.classifier, ("predict_proba",))

    def _answerer(self) -> Answerer:
        return Answerer(
            self.counts_,
            self.learned_.strata.unknown,
            self.gate_ if self.unknown else None,
            next(letter for letter, name in NAMES.items() if name == self.estimator_),
            self.learned_.prototypes.posterior,
            self.n_bootstrap if len(self.counts_.predicted) > 1 else 0,
            self.level,
            self.seed_,
        )

    def _dataset(self, samples: np.ndarray, answers: dict[str, np.ndarray]) -> xr.Dataset:
        """The result, of what was answered for the samples that have rows."""
        present = self.class_counts_ > 0
        unknown_class = self.learned_.strata.unknown
        counted = self.counts_.predicted.any(axis=(0, 2))  # not so where no row of the class is finite
        if unknown_class >= 0:
            counted = np.delete(counted, unknown_class)

        def placed(values: np.ndarray, fill: float = np.nan) -> np.ndarray:
            full = np.full((len(samples), *values.shape[1:]), fill)
            full[answers["key"]] = values
            return full

        def by_label(values: np.ndarray) -> np.ndarray:
            full = np.full((len(samples), len(present), *values.shape[2:]), np.nan)
            full[:, present] = placed(values)[:, counted]
            return full

        # (n_samples, n_shares, 3): each with the ends of its interval
        shares = placed(np.stack([answers[name] for name in ("share", "low", "high")], axis=2))
        shares = shares[:, np.append(counted, True)]
        proportion = np.full((len(samples), len(present), 3), np.nan)
        proportion[:, present] = shares[:, :-1]
        unknown = shares[:, -1]
        if not self.unknown and unknown_class < 0:  # it was not asked for
            unknown = np.full_like(unknown, np.nan)
        numbers: dict[str, Any] = {name: placed(answers[name], 0) for name in ("n_cells", "n_invalid")}
        told = {name: placed(answers[name]) for name in ("disagreement", "novel", "novel_unaligned")}
        for name in ("flag_rate", "expected_flag_rate", "shift"):
            values = answers[name]
            told[name] = by_label(np.delete(values, unknown_class, axis=1) if unknown_class >= 0 else values)
        numbers["flag"] = telling.flags(self, numbers, told, shares)
        numbers["unknown_baseline"] = self.gate_ if self.unknown and unknown_class < 0 else np.nan
        found = result.assembled(
            samples, self.labels_, self.class_counts_, proportion, unknown, numbers, telling.attributes(self)
        )
        return diagnostics.with_diagnostics(found, told, self.markers_)
