"""What does every slicer do?  It learns slices, and says of rows how much they belong."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import xarray as xr
from sklearn.utils.validation import check_is_fitted

from scaleshift import checkpoint
from scaleshift.blocks import graph, noise, passes
from scaleshift.blocks.block import Block, Invalid, Rows
from scaleshift.errors import DataError
from scaleshift.fitted import Facts, Fitted
from scaleshift.kernels.mixture import Outcomes
from scaleshift.parameters import check, is_whole
from scaleshift.slices import telling
from scaleshift.slices.describing import description
from scaleshift.slices.describing.profile import profile
from scaleshift.slices.inputs import Given, given, refuse_other_order
from scaleshift.slices.meanings import Meaning
from scaleshift.slices.outcomes import learn_kind, warn_of
from scaleshift.slices.prepared import Preparation, known_outcomes, prepare
from scaleshift.slices.projection import Projection, principal
from scaleshift.slices.survey import Survey, survey

HOLDOUT = 0.2  # share of rows that only judge


class Slices(Protocol):
    """What was learned, as passes over rows ask it. All rows are prepared: projected."""

    @property
    def n_slices(self) -> int:
        """Best first."""

    @property
    def centres(self) -> np.ndarray:
        """(n_slices, d') where they lie."""

    def memberships(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """How much each row belongs, given what is known of it: (n, n_slices) in [0, 1]."""

    def assigned(self, x: np.ndarray, outcomes: Outcomes) -> np.ndarray:
        """Which slice each row belongs to, if any, given what is known of it: (n, n_slices) 0 or 1."""

    def members(self, x: np.ndarray) -> np.ndarray:
        """Which rows belong, by their embeddings alone: (n, n_slices) bool."""

    def typicality(self, x: np.ndarray) -> np.ndarray:
        """Highest for the rows most like the slice: (n, n_slices)."""


class Begun(NamedTuple):
    """What a fit starts from, or goes on from."""

    rows: Rows
    seen: Survey
    preparation: Preparation
    job: str  # fingerprint of data and parameters
    state: Any  # in which an earlier one was killed; None at the beginning


class Slicer(Fitted):
    """Slices of data where a model fails: what all slicers answer, and how each begins and ends its fit."""

    METHOD: str
    CITATION: str

    MEANINGS: ClassVar[Mapping[str, Meaning]] = {}  # of parameters

    n_slices: int
    n_pca_components: int | None = None
    holdout: float
    random_state: Any
    invalid: Invalid = "raise"
    compat: str | None = None
    checkpoint: str | os.PathLike[str] | None = None

    @property
    @abstractmethod
    def _slices(self) -> Slices:
        """What was learned."""

    def predict(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
    ) -> Any:
        """Which slice each row belongs to, if any.

        Parameters
        ----------
        data, embeddings, targets, pred_probs, losses
            As in `fit`. What is missing of targets and predictions is left out.

        Returns
        -------
        numpy.ndarray or dask.array.Array of int64, shape (n, n_slices)
            1 where a row belongs to a slice: to one at most of a mixture, to any number of spotlights, which
            overlap; a row of zeros belongs to none. Lazy for Dask input.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import SpotlightSlicer
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 9 * (np.arange(200) > 179)[:, None]
        >>> slicer = SpotlightSlicer(0.1, n_slices=1, random_state=0).fit(embeddings=X, losses=X[:, 0] > 5)
        >>> slicer.predict(embeddings=[[0.0, 0.0], [9.0, 9.0]]).ravel().tolist()
        [0, 1]
        """
        return self._map(assigned_leaf, given(data, embeddings, targets, pred_probs, losses), np.int64)

    def predict_proba(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
    ) -> Any:
        """How much each row belongs to each slice.

        Parameters
        ----------
        data, embeddings, targets, pred_probs, losses
            As in `fit`. What is missing of targets and predictions is left out.

        Returns
        -------
        numpy.ndarray or dask.array.Array of float64, shape (n, n_slices)
            In [0, 1], best slice first. Lazy for Dask input.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import SpotlightSlicer
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 9 * (np.arange(200) > 179)[:, None]
        >>> slicer = SpotlightSlicer(0.1, n_slices=1, random_state=0).fit(embeddings=X, losses=X[:, 0] > 5)
        >>> slicer.predict_proba(embeddings=[[0.0, 0.0], [9.0, 9.0]]).ravel().round(1).tolist()
        [0.0, 1.0]
        """
        return self._map(membership_leaf, given(data, embeddings, targets, pred_probs, losses), np.float64)

    def transform(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
    ) -> Any:
        """The same as `predict_proba`, under the name that pipelines and domino's users know.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from scaleshift import SpotlightSlicer
        >>> X, losses = np.arange(100.0)[:, None], np.arange(100) > 80
        >>> slicer = SpotlightSlicer(0.1, 50, n_slices=2, random_state=0).fit(embeddings=X, losses=losses)
        >>> slicer.transform(embeddings=X).shape  # two new features of each row
        (100, 2)
        """
        return self.predict_proba(data, embeddings, targets, pred_probs, losses)

    def describe(
        self,
        data: Any = None,
        embeddings: Any = "embedding",
        targets: Any = "target",
        pred_probs: Any = "pred_probs",
        losses: Any = None,
        *,
        sample_weight: Any = None,
        features: Any = None,
        metadata: Any = None,
        phrases: Sequence[str] | None = None,
        phrase_embeddings: Any = None,
        level: float = 0.95,
    ) -> xr.Dataset:
        """What each slice is: how large, how wrong, could that be chance, what sets it apart; in words too.

        Slices are tested on rows that had no say in what they are. Without arguments these are the rows held
        out of the fit. With data, all rows judge, unless they are those of the fit, in the same order: then
        again those held out alone. Rows of the fit among others are not recognised: do not mix them.

        Parameters
        ----------
        data, embeddings, targets, pred_probs, losses, sample_weight
            As in `fit`. Targets may be missing, of some rows or of all.
        features : DataFrame, DataArray or array-like of shape (n, m), optional
            Numbers that slices are told apart by, in place of the embeddings' columns; NaN where unknown.
        metadata : pandas.DataFrame, optional
            One row a row of data: simple rules on its columns that find a slice are looked for.
        phrases : sequence of m str, optional
            Candidates that may say what a slice shows.
        phrase_embeddings : array-like, shape (m, n_features), optional
            Of these, in the space of the embeddings.
        level : float, default 0.95
            Of intervals; a slice with a false discovery rate above 1 - level is flagged.

        Returns
        -------
        xarray.Dataset
            By slice, best first: size, share, error_rate and its interval, error_rate_rest, excess_errors,
            loss, loss_gap, p_value, q_value, confusion (up to 30 labels), difference, overlap, same_rows_as,
            exemplar, flag, words; each is described in its attributes.

        Raises
        ------
        DataError
            If features or metadata have other rows than the data, or phrases another space.

        Examples
        --------
        >>> import numpy as np
        >>> from scaleshift import DominoSlicer
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2_000, 2)) + 9 * rng.integers(0, 2, (2_000, 2))
        >>> y = rng.integers(0, 2, 2_000)
        >>> wrong = rng.random(2_000) < np.where((X > 4).all(axis=1), 0.6, 0.05)  # fails in one corner
        >>> predicted = np.where(wrong, 1 - y, y).astype(float)
        >>> slicer = DominoSlicer(n_slices=1, n_mixture_components=4, random_state=0)
        >>> found = slicer.fit(None, X, y, predicted).describe()
        >>> bool(found["q_value"][0] < 0.001), found["flag"].item()
        (True, '')
        >>> print(found["words"].item())
        28 % of rows, wrong in 60 % (50 to 69 %) against 6.6 % elsewhere, most often predicts 1 for 0
        """
        check_is_fitted(self, "profile_")
        asked = description.Asked(features, metadata, phrases, phrase_embeddings, level)
        if data is None and (embeddings is None or isinstance(embeddings, str)):
            return description.describe(self, None, asked)
        found = given(data, embeddings, targets, pred_probs, losses, sample_weight)
        beside = {"embeddings": found.embeddings, "metadata": metadata, "features": features}
        refuse_other_order(data, beside)
        return description.describe(self, found, asked)

    def _learned(self) -> Facts:
        return telling.facts(self)

    # For the slicers themselves ------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        for name, (meaningful, expected) in self.MEANINGS.items():
            check(name, getattr(self, name), meaningful, expected)

    @property
    def _n_components(self) -> int | None:
        """Principal components that slices are sought in; None: the embeddings as they are."""
        return self.n_pca_components

    @property
    def _dtype(self) -> str:
        """Of prepared rows: published numbers are those of float64."""
        return "float64" if self.compat else "float32"

    @property
    def _holdout(self) -> float:
        """Share of the rows that the fit does not see: none of the published ones."""
        return 0.0 if self.compat else self.holdout

    def _projection(self, seen: Survey) -> Projection:
        """Coordinates in which slices are sought."""
        if self._n_components is None:
            return Projection(seen.mean, None)
        return principal(seen.mean, seen.scatter, self._n_components)

    def _begin(self, found: Given, **given: Any) -> Begun:
        """What kind of outcome there is, and in which coordinates: one pass. A checkpoint is looked for.

        `given` is what else was given to the fit, as a fingerprint can hold it.
        """
        if found.is_empty:
            raise DataError("there are no rows to learn slices from: pass some")
        resumed = checkpoint.read(self.checkpoint)
        seed = noise.seed_of(self.random_state) if resumed is None else resumed.seed
        kind = learn_kind(found)
        rows = kind.rows(found, self.invalid)
        seen = survey(rows, kind, self._n_components is not None, seed, self._holdout)
        if not seen.n_rows:
            raise DataError(
                "all rows have the weight 0: nothing can be learned from them; give some a weight above 0"
            )
        warn_of(kind, seen.error, seen.n_rows)
        preparation = Preparation(kind, self._projection(seen), self._dtype, seed, self._holdout)
        parameters = {name: value for name, value in self.get_params().items() if name != "checkpoint"}
        if not is_whole(self.random_state):  # the seed that it gave is in the checkpoint
            parameters["random_state"] = None
        job = checkpoint.fingerprint(
            {"parameters": parameters, "kind": kind.fingerprint, "rows": seen.fingerprint, **given}
        )
        checkpoint.check(resumed, job, self.checkpoint)
        return Begun(rows, seen, preparation, job, None if resumed is None else resumed.state)

    def _write(self, begun: Begun, state: Any) -> None:
        """Keep the state of a fit, where a path was given for it."""
        checkpoint.write(self.checkpoint, checkpoint.Checkpoint(begun.job, begun.preparation.seed, state))

    def _set(self, begun: Begun, slices: Slices, **found: Any) -> Self:
        """Set what was learned, and what `describe` tells of: one pass. At once, or an earlier fit stays."""
        rows, preparation = begun.rows, begun.preparation
        told = rows.only(*(name for name in rows.columns if name != "resp"))
        everything = {
            "preparation_": preparation,
            "markers_": rows.markers,
            "n_features_in_": rows.n_markers,
            "n_invalid_": begun.seen.n_invalid,
            "seed_": preparation.seed,
            "classes_": preparation.kind.classes,
            "profile_": profile(told, slices, preparation),
            **found,
        }
        for name, value in everything.items():
            setattr(self, name, value)
        return self

    def _rows(self, found: Given) -> Rows:
        """Rows to be told about, their columns matched with those of the fit."""
        check_is_fitted(self, ["preparation_", "profile_"])
        self._refuse_damaged()
        rows = self.preparation_.kind.rows(found, self.invalid)
        return rows.matched(self.markers_, self.n_features_in_)

    @property
    def _is_sound(self) -> bool:
        """Whether what was learned belongs together."""
        projection = self.preparation_.projection
        fits = self._slices.centres.shape[1] == projection.n_columns
        return bool(fits and len(projection.mean) == self.n_features_in_)

    def _refuse_damaged(self) -> None:
        """Parts from a damaged file may not belong together, and kernels check no bounds."""
        try:
            sound = self._is_sound
        except (AttributeError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(
                f"what this {type(self).__name__} has learned does not fit together: it was saved damaged; "
                "fit it again"
            )

    def _map(self, leaf: Any, found: Given, dtype: Any, slices: Slices | None = None) -> Any:
        rows = self._rows(found)
        slices = self._slices if slices is None else slices
        told = {"slices": slices, "preparation": self.preparation_}
        fill = np.nan if np.dtype(dtype).kind == "f" else 0  # of rows that are not finite, where let in
        result = passes.map_rows(leaf, rows, slices.n_slices, dtype=dtype, fill=fill, **told)
        return graph.compute(result, in_memory=True) if rows.in_memory else result


def membership_leaf(block: Block, slices: Slices, preparation: Preparation) -> np.ndarray:
    """Memberships of the rows of a raw block, (n, n_slices)."""
    prepared = prepare(block, preparation)
    return slices.memberships(prepared.x, known_outcomes(prepared, preparation.kind))


def assigned_leaf(block: Block, slices: Slices, preparation: Preparation) -> np.ndarray:
    """Slices that the rows of a raw block are assigned to, (n, n_slices) 0 or 1."""
    prepared = prepare(block, preparation)
    return slices.assigned(prepared.x, known_outcomes(prepared, preparation.kind))
