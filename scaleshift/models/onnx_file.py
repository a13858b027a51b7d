"""What does an ONNX model say of rows?  It is carried as bytes, and its session opened once a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from scaleshift.cells.optional import optional
from scaleshift.errors import DataError
from scaleshift.models.onnx_bytes import refuse_elsewhere

EXTRA = "onnx"
PROVIDERS = ["CPUExecutionProvider"]
INPUTS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
LABELS = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")
MAPS = "seq(map("  # what skl2onnx makes of probabilities unless it is told zipmap=False
QUIET = 4  # of onnxruntime's own log: errors are raised, and what it would print may hold a model's words


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model that travels to other processes as its bytes."""

    content: bytes = field(repr=False)
    name: str  # of the file, for errors
    inputs: tuple[str, ...]  # one (n, d), or d of (n, 1), one a feature
    dtype: np.dtype
    output: str
    n_features_in_: int | None  # None where the model takes any
    feature_names_in_: tuple[str, ...] | None  # those of several inputs
    classes_: np.ndarray | None  # None where the model does not tell
    labels: str | None = None  # output that names the most probable class

    @property
    def nbytes(self) -> int:
        """What it weighs in a graph."""
        return len(self.content)

    def run(self, x: Any, output: str | None = None) -> Any:
        """What an output is for rows, (n, d)."""
        values = np.ascontiguousarray(np.asarray(x), self.dtype)
        fed = {self.inputs[0]: values}
        if len(self.inputs) > 1:
            fed = {name: values[:, [i]] for i, name in enumerate(self.inputs)}
        try:
            return session_of(self.content).run([output or self.output], fed)[0]
        except Exception as error:  # onnxruntime's errors share no class
            raise DataError(f"{self.name} failed on {values.shape[0]} rows ({_first_line(error)})") from error


class OnnxProbabilities(OnnxModel):
    """Gives probabilities of the classes."""

    def predict_proba(self, x: Any) -> np.ndarray:
        """Probabilities, (n, C)."""
        found = self.run(x)
        if isinstance(found, list):
            return _of_maps(found, self.classes_)
        return np.asarray(found)

    def most_probable(self, x: Any) -> np.ndarray | None:
        """The labels that the model itself gives, (n,); None where it gives none."""
        return None if self.labels is None else np.asarray(self.run(x, self.labels)).reshape(len(x))


class OnnxLabels(OnnxModel):
    """Gives labels alone."""

    def predict(self, x: Any) -> np.ndarray:
        """Labels, (n,)."""
        return np.asarray(self.run(x)).reshape(len(x))


def read(content: bytes, name: str) -> OnnxModel:
    """The model in the bytes of a file.

    Raises
    ------
    DataError
        If onnxruntime is missing, the file is damaged or keeps weights elsewhere, it takes other inputs than
        one of numbers (n, d) or one (n, 1) a feature, or its outputs hold neither probabilities nor labels.
    """
    optional("onnxruntime", EXTRA, f"opening {name}")
    refuse_elsewhere(content, name)
    try:
        session = session_of(content)
    except Exception as error:
        raise DataError(
            f"{name} cannot be opened by onnxruntime ({_first_line(error)}); export it again, or update "
            "onnxruntime"
        ) from error
    inputs, dtype, n_features = _inputs(session.get_inputs(), name)
    output, label = _outputs(session.get_outputs(), name)
    names = inputs if len(inputs) > 1 else None
    if output is None:
        return OnnxLabels(content, name, inputs, dtype, label, n_features, names, None)
    model = OnnxProbabilities(content, name, inputs, dtype, output.name, n_features, names, None, label)
    return _with_classes(model) if output.type.startswith(MAPS) else model


@lru_cache(maxsize=4)
def session_of(content: bytes) -> Any:
    """The session of a model, one a process; Dask gives the threads."""
    runtime = optional("onnxruntime", EXTRA, "running an ONNX model")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    return runtime.InferenceSession(content, options, providers=PROVIDERS)


def _inputs(found: Sequence[Any], name: str) -> tuple[tuple[str, ...], np.dtype, int | None]:
    """Names, dtype and number of features of what a model takes."""
    shown = ", ".join(f"{i.name} {i.type} {i.shape}" for i in found) or "none"
    expected = (
        f"{name} takes {shown}: expected float32 or float64 of shape (rows, features), or one a feature"
    )
    types = {one.type for one in found}
    if len(types) != 1 or not types <= set(INPUTS) or any(len(one.shape or ()) != 2 for one in found):
        raise DataError(expected)
    widths = [one.shape[1] for one in found]
    dtype = np.dtype(INPUTS[types.pop()])
    names = tuple(one.name for one in found)
    if len(found) > 1:
        if any(width != 1 for width in widths):
            raise DataError(expected)
        return names, dtype, len(found)
    return names, dtype, widths[0] if isinstance(widths[0], int) and widths[0] > 0 else None


def _outputs(found: Sequence[Any], name: str) -> tuple[Any, Any]:
    """The output of probabilities, and the name of the one of labels; None for what there is not."""
    maps = [one for one in found if one.type.startswith(MAPS)]
    numbers = [one for one in found if one.type in INPUTS]
    if len(numbers) > 1:
        named = [one for one in numbers if "prob" in one.name.lower()]
        numbers = named if len(named) == 1 else numbers
    probabilities = maps or numbers
    labels = [one.name for one in found if one.type in LABELS]
    label = labels[0] if len(labels) == 1 else None
    if len(probabilities) == 1:
        return probabilities[0], label
    if not probabilities and label is not None:
        return None, label
    shown = ", ".join(f"{one.name} {one.type}" for one in found)
    raise DataError(
        f"{name} gives {shown}: expected one output of probabilities, its name with 'prob' where there are "
        "several of decimal numbers, or one of labels"
    )


def _with_classes(model: OnnxProbabilities) -> OnnxProbabilities:
    """The same, its classes found by asking it of one row of zeros."""
    width = model.n_features_in_
    if width is None:
        raise DataError(
            f"{model.name} takes any number of features, and names its classes only as it runs: export it "
            "with a fixed number of features, or with zipmap=False"
        )
    first: Mapping[Any, float] = model.run(np.zeros((1, width)))[0]
    return replace(model, classes_=np.array(list(first)))


def _of_maps(found: Sequence[Mapping[Any, float]], classes: np.ndarray | None) -> np.ndarray:
    """Rows that map classes to probabilities, as (n, C)."""
    keys = list(found[0]) if classes is None else classes.tolist()
    return np.array([[row[key] for key in keys] for row in found], np.float64).reshape(len(found), len(keys))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300] or type(error).__name__
