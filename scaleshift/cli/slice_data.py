"""Which embeddings, labels and predictions are sliced?  Those of a study, or of any Zarr group."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.options import names as between_commas
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.blocks.block import Column, Invalid


@dataclass(frozen=True)
class Asked:
    """What the command line says of the data."""

    store: str
    model: Path | None
    predictions: str | None
    select: str | None = None
    markers: Sequence[str] | None = None
    embeddings: str | None = None  # of a group that is no study
    targets: str | None = None
    trust: Sequence[str] = ()  # types of a .skops file
    trust_pickle: bool = False
    invalid: Invalid = "raise"

    def check(self) -> None:
        """Refuse what has no meaning together, before anything is read."""
        if (self.model is None) == (self.predictions is None):
            raise click.UsageError(
                "pass --model, a model file, or --predictions, a column of predictions"
                + (": not both" if self.model else "")
            )
        if self.trust and self.model is None:
            raise click.UsageError("--trust goes with --model: it names types of a .skops file")
        if self.trust_pickle and self.model is None:
            raise click.UsageError("--trust-pickle goes with --model: it is about that file")
        if self.embeddings is None and self.targets is not None:
            raise click.UsageError("--targets goes with --embeddings: a study's targets are its labels")
        if self.embeddings is not None:
            if self.targets is None:
                raise click.UsageError("--embeddings goes with --targets, the variable of true labels")
            for option, value in (("--select", self.select), ("--markers", self.markers)):
                if value is not None:
                    raise click.UsageError(f"{option} is for studies: it does not go with --embeddings")


@dataclass(frozen=True)
class SliceData:
    """What a slicer is fitted on, and what is to be said of it."""

    embeddings: Any
    targets: Any
    pred_probs: Any
    sample_weight: Any = None  # 0 for cells without a label
    remarks: list[str] = field(default_factory=list)

    @property
    def known(self) -> dict[str, Any]:
        """As arguments of `predict_proba`."""
        return {"embeddings": self.embeddings, "targets": self.targets, "pred_probs": self.pred_probs}

    @property
    def arguments(self) -> dict[str, Any]:
        """As arguments of `fit`."""
        return {**self.known, "sample_weight": self.sample_weight}


def read(asked: Asked) -> SliceData:
    """Open the data; the model is opened first, and nothing that grows with the rows is read."""
    from scaleshift.models import open_model, pickle_file

    model = None if asked.model is None else open_model(asked.model, asked.trust, asked.trust_pickle)
    found = _of_group(asked, model) if asked.embeddings is not None else _of_study(asked, model)
    if asked.trust_pickle:
        found.remarks.insert(0, pickle_file.remark(asked.model))
    return found


# Of a study --------------------------------------------------------------------------------------------


def _of_study(asked: Asked, model: Any) -> SliceData:
    from scaleshift.blocks.block import Column

    opening = Opening(asked.store, asked.markers)
    samples = opening.select(asked.select or EVERY, "--select")
    found = None if asked.predictions is None else _column_of_study(asked, opening, samples)
    of_x = [] if found is None else found.of_x
    if of_x:
        opening = Opening(asked.store, _without(opening, samples, of_x))
    cells = _labelled(opening, samples)
    labels, x = cells["label"].values, cells["X"]
    remarks: list[str] = []
    if model is not None:
        inputs = _model_inputs(model, x, opening, samples)
        if asked.invalid == "drop" and inputs is not x:  # what the model cannot judge is left out as well
            x = x.where(np.isfinite(inputs).all("marker"))
        classes, predicted = _by_model(model, inputs, labels, remarks, asked.invalid)
    else:
        assert found is not None
        classes, predicted = found.as_predictions(labels, remarks)
    targets = Column(cells["label_code"].data, classes, coded=True)
    weight, left_out = _weight(cells)
    if left_out:
        remarks.append(f"{left_out} of {cells.sizes['cell']} cells have no label: left out")
    return SliceData(x, targets, predicted, weight, remarks)


def _labelled(opening: Opening, samples: list[Any]) -> xr.Dataset:
    """The cells of the samples, of which some must have labels."""
    way_out = f"run `scaleshift label {opening.store} TABLE` first"
    if not opening.manifest.labels:
        raise DataError(f"{opening.store} has no labels, which predictions are compared with: {way_out}")
    cells = opening.cells(samples)
    if not cells.sizes["label"]:
        raise DataError(f"no cell of the selected samples has a label: select others, or {way_out}")
    return cells


def _weight(cells: xr.Dataset) -> tuple[Any, int]:
    """1 for cells with a label and 0 for others, None where all have one; and how many have none."""
    from scaleshift.blocks import passes
    from scaleshift.blocks.rows import as_rows

    n = int(cells.sizes["cell"] - passes.counts(as_rows(cells), "label").sum())
    return (cells["label_code"].data >= 0).astype("u1") if n else None, n


def _model_inputs(model: Any, x: xr.DataArray, opening: Opening, samples: list[Any]) -> Any:
    """The columns that a model asks for by name, else the features."""
    from scaleshift.models import name_of_model
    from scaleshift.spelling import suggestion

    names = getattr(model, "feature_names_in_", None)
    wanted = [] if names is None else [str(name) for name in names]
    known = opening.manifest.markers
    missing = [name for name in wanted if name not in known]
    if missing:
        raise DataError(
            f"{name_of_model(model)} needs the feature(s) {', '.join(missing)}, which {opening.store} lacks"
            f"{suggestion(missing[0], known)}"
        )
    if not wanted or wanted == x["marker"].values.tolist():
        return x
    return Opening(opening.store, wanted).cells(samples)["X"]


def _without(opening: Opening, samples: list[Any], of_x: Sequence[str]) -> list[str]:
    """Features that are not predictions."""
    from scaleshift.cells import open_cells

    features = open_cells(opening.store, samples, markers=opening.markers)["marker"].values.tolist()
    left = [name for name in features if name not in of_x]
    if not left:
        raise DataError(
            f"--predictions {','.join(of_x)} are all the features of {opening.store}: "
            "none is left to slice by"
        )
    return left


@dataclass(frozen=True)
class _Found:
    """A column of predictions of a study: labels, or probabilities."""

    name: str
    labels: Column | None = None
    reopened: Callable[..., Column] | None = None  # of codes: opened with its categories in another order
    probabilities: Any = None  # (n,) or (n, m)
    of_x: tuple[str, ...] = ()

    def as_predictions(self, labels: np.ndarray, remarks: list[str]) -> tuple[np.ndarray, Any]:
        """All classes, and the predictions for a slicer."""
        if self.labels is not None:
            assert self.labels.categories is not None
            classes = _union(f"--predictions {self.name}", self.labels.categories, labels)
            if self.reopened is not None:
                return classes, self.reopened(order=lambda stored: classes)
            return classes, replace(self.labels, categories=classes)
        n = self.probabilities.shape[1] if self.probabilities.ndim == 2 else 1
        if n == 1 and len(labels) == 2:
            remarks.append(f"{self.name} is taken as the probability of {labels[1]}, the second label")
            return labels, self.probabilities
        if n != len(labels):
            listed = ", ".join(map(str, labels))
            raise DataError(
                f"--predictions {self.name}: {n} column(s) of probabilities, and {len(labels)} labels "
                f"({listed}): name one column of X a label, in this order, or one of obs of predicted labels"
            )
        remarks.append(f"{self.name} are taken as the probabilities of {', '.join(map(str, labels))}")
        return labels, self.probabilities


def _column_of_study(asked: Asked, opening: Opening, samples: list[Any]) -> _Found:
    """Predictions by their name: of obs, else of X, there also several between commas."""
    from scaleshift.cells import open_cells
    from scaleshift.cells.columns import column_names, open_column
    from scaleshift.slices.inputs import label_column
    from scaleshift.spelling import suggestion

    name, markers = str(asked.predictions), opening.manifest.markers
    of_obs = [column for column in column_names(asked.store) if column not in ("sample", "label")]
    if name == "label":
        raise click.UsageError("--predictions label: the labels are what predictions are compared with")
    if name in of_obs:
        column = open_column(asked.store, name, samples)
        if column.categories is not None:
            return _Found(name, column, partial(open_column, asked.store, name, samples))
        if column.values.dtype.kind == "f":
            return _Found(name, probabilities=column.values)
        return _Found(name, labels=label_column(column.values, f"{name} "))
    wanted = [name] if name in markers else between_commas(name)
    unknown = [one for one in wanted if one not in markers]
    if unknown or not wanted:
        first = unknown[0] if unknown else name
        raise DataError(
            f"{asked.store} has no column {first!r} in obs or X for --predictions"
            f"{suggestion(first, [*of_obs, *markers])}"
        )
    x = open_cells(asked.store, samples, markers=wanted)["X"].data
    return _Found(name, probabilities=x if len(wanted) > 1 else x[:, 0], of_x=tuple(wanted))


# Of a group --------------------------------------------------------------------------------------------


def _of_group(asked: Asked, model: Any) -> SliceData:
    from scaleshift.slices.inputs import label_column

    group = _open_group(asked.store)
    x = _variable(group, asked, "--embeddings", str(asked.embeddings))
    targets = _variable(group, asked, "--targets", str(asked.targets))
    if model is None:
        return SliceData(x, targets, _variable(group, asked, "--predictions", str(asked.predictions)))
    column = label_column(targets, "target")
    assert column.categories is not None
    remarks: list[str] = []
    classes, predicted = _by_model(model, x, column.categories, remarks, asked.invalid)
    return SliceData(x, replace(column, categories=classes), predicted, None, remarks)


def _open_group(store: str) -> xr.Dataset:
    """A Zarr v3 group as xarray shows it, lazily. Older ones can hold pickles, and are not opened."""
    import xarray as xr

    from scaleshift.cells.reader import store_at

    if "://" not in store and not os.path.exists(store):
        raise DataError(f"{store} does not exist: expected a Zarr v3 group")
    try:
        guarded = store_at(store, read_only=True)
        return xr.open_zarr(guarded, zarr_format=3, consolidated=False, chunks={})
    except Exception as error:  # whatever xarray and zarr make of something else
        raise DataError(f"{store} cannot be opened as a Zarr v3 group ({error})") from error


def _variable(group: xr.Dataset, asked: Asked, option: str, name: str) -> Any:
    from scaleshift.spelling import suggestion

    if name not in group.variables:
        hint = suggestion(name, map(str, group.variables))
        raise DataError(f"{asked.store} has no variable {name!r} for {option}{hint}")
    return group[name]


# Of both -----------------------------------------------------------------------------------------------


def _by_model(
    model: Any, x: Any, labels: np.ndarray, remarks: list[str], invalid: Invalid
) -> tuple[np.ndarray, Any]:
    """All classes, and a model's probabilities in their order."""
    from scaleshift.models import known_classes, name_of_model, other_classes, predictions

    known = known_classes(model)
    name = name_of_model(model)
    if known is None:
        known = np.sort(labels)  # as scikit-learn has its columns
        if hasattr(model, "predict_proba"):
            remarks.append(f"{name} names no classes: its columns are taken as {', '.join(map(str, known))}")
        return labels, predictions(model, x, classes=labels, columns=known, invalid=invalid)
    strange = [label for label in labels.tolist() if label not in known.tolist()]
    if strange:
        raise DataError(other_classes(model, known.tolist(), labels.tolist()))
    classes = _union(name, known, labels)
    return classes, predictions(model, x, classes=classes, invalid=invalid)


def _union(what: str, predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels, and behind them what is predicted beside them; DataError where nothing is the same."""
    theirs, ours = predicted.tolist(), labels.tolist()
    if not set(theirs) & set(ours):
        kinds = [type(names[0]).__name__ if names else "nothing" for names in (theirs, ours)]
        types = f" ({kinds[0]} against {kinds[1]})" if kinds[0] != kinds[1] else ""
        raise DataError(
            f"{what} predicts {', '.join(map(str, theirs[:8]))}, and the labels are "
            f"{', '.join(map(str, ours[:8]))}{types}: no class is the same"
        )
    return np.array([*ours, *(label for label in theirs if label not in ours)])
