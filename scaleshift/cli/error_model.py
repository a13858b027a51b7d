"""Which model is meant?  One of scaleshift's by name, or an estimator in a file, refitted where it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from scaleshift.errors import DataError

NUMBERS, CLASSES = ("ols", "ridge", "lasso"), ("logistic", "multinomial")
NAMES = (*NUMBERS, *CLASSES)
NEVER = "never"


@dataclass(frozen=True)
class Model:
    """A model, and what is to be known of it before cells are read."""

    name: str  # as it was passed
    model: Any  # a name, or an estimator
    of_classes: bool  # whether it predicts labels, rather than numbers
    refit: str = "cold"
    features: list[str] | None = None  # that it names
    remarks: list[str] = field(default_factory=list)

    @property
    def is_refitted(self) -> bool:
        """Whether replicates are fitted anew."""
        return self.refit != NEVER


def open_named(
    name: str, trust: Sequence[str] = (), refit: str | None = None, trust_pickle: bool = False
) -> Model:
    """The model of a name or a file.

    Parameters
    ----------
    name : str
        One of `NAMES`, or the path of a ``.skops`` or ``.onnx`` file, or of a pickle.
    trust : sequence of str
        Types of a ``.skops`` file that may be built.
    refit : {"cold", "warm", "never"}, optional
        Where left out: "cold", and "never" for ``.onnx``, which cannot be refitted.
    trust_pickle : bool, default False
        Whether a pickle is opened, which runs what is in it.

    Raises
    ------
    click.UsageError
        If the name is unknown, or an option does not go with it.
    DataError
        If the file cannot be opened.
    """
    from scaleshift.spelling import suggestion

    if name in NAMES:
        for option, given in (("--trust", trust), ("--trust-pickle", trust_pickle), ("--refit", refit)):
            if given:
                raise click.UsageError(f"{option} goes with a model file, and --model {name} is none")
        return Model(name, name, name in CLASSES)
    if not Path(name).suffix and not Path(name).exists():
        raise click.BadParameter(
            f"{name!r}: expected one of {', '.join(NAMES)}, or a model file, .skops or .onnx"
            f"{suggestion(name, NAMES)}",
            param_hint="--model",
        )
    return _of_file(name, trust, refit, trust_pickle)


def _of_file(name: str, trust: Sequence[str], refit: str | None, trust_pickle: bool) -> Model:
    from sklearn.base import is_regressor

    from scaleshift.models import ModelFile, pickle_file
    from scaleshift.models.onnx_file import OnnxModel

    file = ModelFile.of(name, trust, trust_pickle)
    model = file.opened
    names = getattr(model, "feature_names_in_", None)
    features = None if names is None else [str(one) for one in names]
    if not isinstance(model, OnnxModel):
        of_classes = not is_regressor(model)
        run = [pickle_file.remark(name)] if trust_pickle else []
        if refit == NEVER:
            return Model(name, file, of_classes, NEVER, features, run)
        return Model(name, model, of_classes, refit or "cold", features, run)
    if refit not in (None, NEVER):
        raise click.UsageError(f"--refit {refit}: {name} is an ONNX model, which cannot be refitted")
    if not hasattr(model, "predict_proba"):
        raise DataError(
            f"{name} gives labels alone, without probabilities: export it with them, or pass it as .skops"
        )
    remark = (
        f"{name} is an ONNX model, which cannot be refitted: the error is that of the model as it is, and "
        "the source tells only how its probabilities are calibrated"
    )
    remarks = [remark]
    if model.classes_ is None:
        remarks.append(f"{name} names no classes: its columns are taken as the labels in their order")
    return Model(name, file, True, NEVER, features, remarks)
