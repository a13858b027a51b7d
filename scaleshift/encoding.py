"""How does an object become a tree of JSON and arrays, and come back to the bit? Data only, never code.

None, bools, whole and finite numbers, text and lists are JSON as they are. Everything else is a node
``{"type": ..., ...}``: "float" (nan, inf), "tuple", "dict", "scalar" (numpy), "array" (numbers, by the name
under which they are stored), "items" (arrays of text or of objects) and "object" (of a class in `CLASSES`).
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from scaleshift.errors import DataError, SchemaError

# Classes that can be saved, each with its module: scikit-learn estimators (constructor parameters and fitted
# attributes) and dataclasses (fields). A new one is one line here.
CLASSES: dict[str, str] = {
    "AdjustedCount": "scaleshift.quantify.families.counting",
    "Asked": "scaleshift.error.refits.estimators",
    "Ascent": "scaleshift.slices.spotlights.steps",
    "BBSE": "scaleshift.quantify.families.bbse",
    "Calibration": "scaleshift.quantify.classifier.calibration",
    "CategoricalFamily": "scaleshift.error.categorical.family",
    "Checkpoint": "scaleshift.checkpoint",
    "Classification": "scaleshift.slices.outcomes",
    "ClassMoments": "scaleshift.auc.moments",
    "ClassifierEmbedding": "scaleshift.quantify.features.classifier",
    "ClassifierFeatures": "scaleshift.quantify.features.classifier",
    "ClassifyAndCount": "scaleshift.quantify.families.counting",
    "ClosedForm": "scaleshift.error.gaussian.closed",
    "Clusters": "scaleshift.error.gaussian.clusters",
    "Counted": "scaleshift.error.categorical.frame",
    "Counts": "scaleshift.quantify.open_set.answers",
    "CrossFit": "scaleshift.quantify.classifier.cross_fit",
    "Fitted": "scaleshift.error.categorical.newton",
    "Frame": "scaleshift.error.categorical.frame",
    "InSample": "scaleshift.error.categorical.judging",
    "Outcomes": "scaleshift.error.gaussian.sums",
    "PenaltyCurve": "scaleshift.error.gaussian.choosing",
    "DFM": "scaleshift.quantify.dfm",
    "Descent": "scaleshift.auc.sht",
    "DominoSlicer": "scaleshift.slices.domino",
    "DyS": "scaleshift.quantify.families.dys",
    "EnergyEmbedding": "scaleshift.quantify.features.energy",
    "EnergyKernel": "scaleshift.quantify.features.energy",
    "ExactEmbedding": "scaleshift.quantify.features.exact",
    "ExactKernel": "scaleshift.quantify.features.exact",
    "FSAUC": "scaleshift.auc.online.fsauc",
    "Fit": "scaleshift.slices.mixtures.expectation",
    "FoundSpotlight": "scaleshift.slices.spotlights.membership",
    "FourierEmbedding": "scaleshift.quantify.features.fourier",
    "FourierFeatures": "scaleshift.quantify.features.fourier",
    "FrozenFamily": "scaleshift.error.refits.frozen",
    "GaussianFamily": "scaleshift.error.gaussian.family",
    "GaussianKernel": "scaleshift.quantify.features.exact",
    "HDx": "scaleshift.quantify.families.hdx",
    "HeldOut": "scaleshift.error.held_out",
    "HSGHT": "scaleshift.auc.online.hsght",
    "LandmarkEmbedding": "scaleshift.quantify.features.landmarks",
    "LandmarkFeatures": "scaleshift.quantify.features.landmarks",
    "Landmarks": "scaleshift.quantify.open_set.landmarks",
    "Learned": "scaleshift.quantify.open_set.learning",
    "LearnedRanking": "scaleshift.auc.fitting",
    "Logistic": "scaleshift.quantify.classifier.logistic",
    "Losses": "scaleshift.slices.outcomes",
    "MLLS": "scaleshift.quantify.families.mlls",
    "MappedClassifierEmbedding": "scaleshift.quantify.features.classifier",
    "MarkerHistogramEmbedding": "scaleshift.quantify.features.histograms",
    "Mixture": "scaleshift.slices.mixtures.mixture",
    "ModelFile": "scaleshift.models.file",
    "Monitor": "scaleshift.error.monitor",
    "NoiseVariance": "scaleshift.error.gaussian.clusters",
    "OneClass": "scaleshift.quantify.classifier.models",
    "OpenSetQuantifier": "scaleshift.quantify.open_set.open_set",
    "OuterReplicates": "scaleshift.error.gaussian.nested",
    "CentredPart": "scaleshift.error.gaussian.design",
    "Parts": "scaleshift.quantify.classifier.parts",
    "PosteriorEmbedding": "scaleshift.quantify.features.posterior",
    "Preparation": "scaleshift.slices.prepared",
    "PredictionError": "scaleshift.error.prediction_error",
    "Profile": "scaleshift.quantify.open_set.profile",
    "Projection": "scaleshift.slices.projection",
    "Prototypes": "scaleshift.quantify.prototypes",
    "RLLS": "scaleshift.quantify.families.rlls",
    "Refinement": "scaleshift.slices.spotlights.search",
    "Residuals": "scaleshift.slices.outcomes",
    "SampleStates": "scaleshift.quantify.targets",
    "ScoreHistogramEmbedding": "scaleshift.quantify.features.histograms",
    "SOLAM": "scaleshift.auc.online.solam",
    "SourceSums": "scaleshift.error.gaussian.sums",
    "SPAM": "scaleshift.auc.online.spam",
    "Scored": "scaleshift.quantify.open_set.learning",
    "Scorer": "scaleshift.quantify.open_set.scoring",
    "SliceProfile": "scaleshift.slices.describing.profile",
    "Seen": "scaleshift.error.held_out",
    "Settings": "scaleshift.error.family",
    "SlicedEmbedding": "scaleshift.quantify.features.sliced",
    "SlicedEnergy": "scaleshift.quantify.features.sliced",
    "SourceState": "scaleshift.quantify.source",
    "SparseAUC": "scaleshift.auc.sparse_auc",
    "SpotlightSlicer": "scaleshift.slices.spotlight",
    "SpotlightSlices": "scaleshift.slices.spotlights.membership",
    "RefitSpread": "scaleshift.error.gaussian.spread",
    "StoIHT": "scaleshift.auc.online.stoiht",
    "Strata": "scaleshift.quantify.open_set.strata",
    "TargetState": "scaleshift.error.targets",
    "Watch": "scaleshift.error.watch",
}
FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
ARRAY_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")  # one name, never ".."
DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[0-9]{1,9})")
PLAIN = (bool, int, float, str, type(None))

Arrays = dict[str, np.ndarray]
Read = Callable[[str, np.dtype, tuple[int, ...]], np.ndarray]


def encode(thing: Any) -> tuple[Any, Arrays]:
    """Tree of an object, and the arrays that it names, little-endian.

    Raises
    ------
    DataError
        If the object is of no class in `CLASSES`, or holds a value that cannot be saved: names the attribute.

    Examples
    --------
    >>> from scaleshift import GaussianKernel
    >>> encode(GaussianKernel(bandwidth=2.0))
    ({'type': 'object', 'class': 'GaussianKernel', 'parameters': {'bandwidth': 2.0}, 'fitted': {}}, {})
    """
    if not _is_known(type(thing)):
        raise _refusal(thing, "")
    arrays: Arrays = {}
    return _encode_object(thing, "", arrays), arrays


def decode(node: Any, read: Read) -> Any:
    """The value of a node; `read` gives the array of a name, a dtype and a shape.

    Raises
    ------
    SchemaError
        If the node names a class, parameter, field, attribute, dtype or array that there cannot be.
    Exception
        Of any kind, if the node was not made by `encode`.

    Examples
    --------
    >>> decode([{"type": "tuple", "items": [1, {"type": "float", "value": "inf"}]}], None)
    [(1, inf)]
    """
    if isinstance(node, list):
        return [decode(item, read) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node["type"]
    if kind == "float":
        return float(node["value"])
    if kind == "tuple":
        return tuple(decode(item, read) for item in node["items"])
    if kind == "dict":
        return _decode_values(node["items"], read)
    if kind == "scalar":
        return _dtype(node["dtype"]).type(decode(node["value"], read))
    if kind == "array":
        return _decode_array(node, read)
    if kind == "items":
        return _decode_items(node, read)
    if kind == "object":
        return _decode_object(node, read)
    raise SchemaError(f"a value of the unknown type {kind!r} is stored")


# Values to nodes ---------------------------------------------------------------------------------------


def _encode(value: Any, path: str, arrays: Arrays) -> Any:
    """Node of a value; `path` says where in the object it stands."""
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return {"type": "float", "value": str(value)}
    if kind in PLAIN:
        return value
    if kind is list:
        return [_encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]
    if kind is tuple:
        items = [_encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]
        return {"type": "tuple", "items": items}
    if kind is dict:
        return {"type": "dict", "items": _encode_values(value, path, arrays)}
    if isinstance(value, np.generic) and DTYPE.fullmatch(value.dtype.str):
        return {"type": "scalar", "dtype": value.dtype.str, "value": _encode(value.item(), path, arrays)}
    if kind is np.ndarray:
        return _encode_array(value, path, arrays)
    if _is_known(kind):
        return _encode_object(value, path, arrays)
    raise _refusal(value, path)


def _encode_values(values: Mapping[Any, Any], path: str, arrays: Arrays) -> dict[str, Any]:
    for name in values:
        if type(name) is not str:
            raise DataError(f"{path} has the key {name!r}, and only text can be a key: convert it")
    prefix = f"{path}." if path else ""
    return {name: _encode(value, prefix + name, arrays) for name, value in values.items()}


def _encode_array(array: np.ndarray, path: str, arrays: Arrays) -> dict[str, Any]:
    dtype, shape = array.dtype, list(array.shape)
    if dtype.kind in "UO":
        items = array.ravel().tolist()
        for item in items:
            if type(item) not in PLAIN and not isinstance(item, np.generic):
                raise _refusal(item, path)
        name = "object" if dtype.kind == "O" else dtype.str
        return {"type": "items", "dtype": name, "shape": shape, "items": _encode(items, path, arrays)}
    if not DTYPE.fullmatch(dtype.str):
        raise _refusal(array, path)
    name = _array_name(path, arrays)
    arrays[name] = array.astype(dtype.newbyteorder("<"), copy=False)
    return {"type": "array", "name": name, "dtype": dtype.str, "shape": shape}


def _array_name(path: str, taken: Iterable[str]) -> str:
    """The path, as far as every file system takes it as a name, and unique there."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "-", path)[:100].rstrip(".")
    known = {name.casefold() for name in taken}
    name, n = stem, 2
    while name.casefold() in known:
        name, n = f"{stem}-{n}", n + 1
    return name


def _encode_object(thing: Any, path: str, arrays: Arrays) -> dict[str, Any]:
    head = {"type": "object", "class": type(thing).__name__}
    if dataclasses.is_dataclass(thing):
        fields = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
        return head | {"fields": _encode_values(fields, path, arrays)}
    parameters = thing.get_params(deep=False)
    if isinstance(parameters.get("random_state"), np.random.Generator | np.random.RandomState):
        parameters["random_state"] = None
    for name, value in parameters.items():
        if isinstance(value, os.PathLike):
            parameters[name] = os.fspath(value)
    fitted = {name: value for name, value in vars(thing).items() if FITTED.fullmatch(name)}
    return head | {
        "parameters": _encode_values(parameters, path, arrays),
        "fitted": _encode_values(fitted, path, arrays),
    }


def _is_known(cls: type) -> bool:
    return cls.__name__ in CLASSES and _class(cls.__name__) is cls


def _refusal(value: Any, path: str) -> DataError:
    why = getattr(type(value), "not_saved", None)  # of classes that know why
    if why is not None:
        return DataError(f"{path}{': ' if path else ''}{why}")
    if isinstance(value, np.ndarray):
        what = f"a {type(value).__name__} of dtype {value.dtype}"
    elif inspect.isroutine(value):
        what = "a function"
    else:
        what = f"an object of class {type(value).__module__}.{type(value).__qualname__}"
    return DataError(
        f"{path}{': ' if path else ''}{what} cannot be saved; a saved model holds data and no code: numbers, "
        "text, numpy arrays of them, lists, tuples, dicts, scaleshift's own objects. Replace it by one of "
        "these before saving (a fitted model that stays as it is by scaleshift.models.ModelFile)"
    )


# Nodes to values ---------------------------------------------------------------------------------------


def _decode_values(nodes: Mapping[str, Any], read: Read) -> dict[str, Any]:
    return {name: decode(node, read) for name, node in nodes.items()}


def _dtype(text: str) -> np.dtype:
    if not DTYPE.fullmatch(text):
        raise SchemaError(f"the unknown dtype {text!r} is stored")
    return np.dtype(text)


def _decode_array(node: Mapping[str, Any], read: Read) -> np.ndarray:
    name, dtype = node["name"], _dtype(node["dtype"])
    if not ARRAY_NAME.fullmatch(name):
        raise SchemaError(f"the array name {name!r} is stored, which is no plain name")
    return read(name, dtype, tuple(node["shape"]))


def _decode_items(node: Mapping[str, Any], read: Read) -> np.ndarray:
    items = decode(node["items"], read)
    array = np.empty(len(items), object if node["dtype"] == "object" else _dtype(node["dtype"]))
    array[:] = items
    return array.reshape(node["shape"])


def _decode_object(node: Mapping[str, Any], read: Read) -> Any:
    cls = _class(node["class"])
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls)]
        _check_names(node["fields"], fields, f"{cls.__name__} field")
        return cls(**_decode_values(node["fields"], read))
    _check_names(node["parameters"], inspect.signature(cls).parameters, f"{cls.__name__} parameter")
    for name in node["fitted"]:
        if not FITTED.fullmatch(name):
            raise SchemaError(f"{cls.__name__}.{name} is stored: fitted attributes are words that end in '_'")
    thing = cls(**_decode_values(node["parameters"], read))
    vars(thing).update(_decode_values(node["fitted"], read))
    return thing


def _class(name: str) -> type:
    """A class of the table; the module comes from the table, never from what is stored."""
    if name not in CLASSES:
        raise SchemaError(f"the class {name!r} is stored, which this scaleshift does not know: upgrade")
    return getattr(importlib.import_module(CLASSES[name]), name)


def _check_names(stored: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in stored:
        if name not in known:
            raise SchemaError(f"the {what} {name!r} is stored, which this scaleshift does not know: upgrade")
