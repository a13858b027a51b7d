"""Which scale are intensities brought to, column by column, and how do they come back?"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scaleshift.cells.sheets.channels import Kind, Modality
from scaleshift.cells.treatment import logicle
from scaleshift.errors import DataError, SchemaError
from scaleshift.spelling import meant, suggestion

COFACTORS: dict[str, float] = {"mass": 5.0, "fluorescence": 150.0}
KNOWN_AS = {"mass": "mass cytometry", "fluorescence": "fluorescence"}
FORMS = "'auto', 'none', 'arcsinh', 'arcsinh:COFACTOR', 'logicle' or 'logicle:T,W,M,A'"
DEFAULT = "default"  # in a mapping: what the markers get that it does not name
VERSION = 1
TILE = 8_192  # rows that are held in float64 at once


class Transform(ABC):
    """A monotone function of an intensity; a frozen dataclass whose fields are its parameters."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, values: np.ndarray) -> np.ndarray:
        """Transform intensities of any shape; float64."""

    @abstractmethod
    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Bring transformed values back; float64."""

    def to_json(self) -> dict[str, Any]:
        """As a JSON value; `from_json` reads it."""
        return {"name": self.name, **{key: float(value) for key, value in vars(self).items()}}

    @staticmethod
    def from_json(value: Any) -> Transform:
        """The transform of a JSON value.

        Raises
        ------
        SchemaError
            If there is no transform of that name, or it has other parameters.

        Examples
        --------
        >>> Transform.from_json({"name": "arcsinh", "cofactor": 5.0})
        Arcsinh(cofactor=5.0)
        """
        name = value.get("name") if isinstance(value, Mapping) else None
        if not isinstance(name, str) or name not in TRANSFORMS:
            raise SchemaError(
                f"a stored transform is {value!r}; known: {', '.join(TRANSFORMS)}; update scaleshift"
            )
        try:
            return TRANSFORMS[name](**{key: item for key, item in value.items() if key != "name"})
        except (TypeError, DataError) as error:
            raise SchemaError(
                f"a stored transform {name!r} cannot be made ({error}): update scaleshift"
            ) from error


@dataclass(frozen=True)
class Identity(Transform):
    """Leaves values as they are.

    Examples
    --------
    >>> Identity().apply(np.array([3.0])).tolist(), str(Identity())
    ([3.0], 'none')
    """

    name = "none"

    def __str__(self) -> str:
        return self.name

    def apply(self, values: np.ndarray) -> np.ndarray:
        """The values as float64."""
        return np.asarray(values, np.float64)

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """The values as float64."""
        return np.asarray(values, np.float64)


@dataclass(frozen=True)
class Arcsinh(Transform):
    """arcsinh(x / cofactor): linear up to about the cofactor, logarithmic beyond.

    Parameters
    ----------
    cofactor : float
        In units of the intensities, above 0.

    Examples
    --------
    >>> Arcsinh(5).apply(np.array([0.0, 5.0])).round(4).tolist(), str(Arcsinh(5))
    ([0.0, 0.8814], 'arcsinh(x / 5)')
    """

    cofactor: float
    name = "arcsinh"

    def __post_init__(self) -> None:
        if not _is_real(self.cofactor) or self.cofactor <= 0:
            raise DataError(f"arcsinh with cofactor={self.cofactor!r}: expected a number above 0")

    def __str__(self) -> str:
        return f"arcsinh(x / {self.cofactor:g})"

    def apply(self, values: np.ndarray) -> np.ndarray:
        """arcsinh(x / cofactor)."""
        return np.arcsinh(np.asarray(values, np.float64) / self.cofactor)

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Cofactor times sinh."""
        with np.errstate(over="ignore"):
            return np.sinh(np.asarray(values, np.float64)) * self.cofactor


@dataclass(frozen=True)
class Logicle(Transform):
    """The logicle scale: T at 1, linear around zero; `scaleshift.cells.treatment.logicle` has the formula.

    Parameters
    ----------
    T : float, default 262144
        Intensity at the top of the scale.
    W : float, default 0.5
        Decades of the linear region on either side of zero, at most M / 2.
    M : float, default 4.5
        Decades of the scale.
    A : float, default 0
        Additional decades of negative intensities, from -W to M - 2 W.

    Examples
    --------
    >>> Logicle().apply(np.array([0.0, 262144.0])).round(4).tolist(), str(Logicle())
    ([0.1111, 1.0], 'logicle(T=262144, W=0.5, M=4.5, A=0)')
    """

    T: float = 262_144.0
    W: float = 0.5
    M: float = 4.5
    A: float = 0.0
    name = "logicle"

    def __post_init__(self) -> None:
        if not all(map(_is_real, dataclasses.astuple(self))):
            raise DataError(f"logicle with {dataclasses.astuple(self)}: expected the numbers T, W, M, A")
        logicle.coefficients(*dataclasses.astuple(self))

    def __str__(self) -> str:
        numbers = ", ".join(f"{key}={value:.10g}" for key, value in dataclasses.asdict(self).items())
        return f"logicle({numbers})"

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Places on the scale."""
        return logicle.forward(values, *dataclasses.astuple(self))

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Intensities at places of the scale."""
        return logicle.inverse(values, *dataclasses.astuple(self))


# Transforms that can be stored and asked for. A new one is a class and its entry here.
TRANSFORMS: dict[str, type[Transform]] = {cls.name: cls for cls in (Identity, Arcsinh, Logicle)}


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


# Which transform for which column ----------------------------------------------------------------------


def resolve(
    transform: Any, *, names: Sequence[str], kinds: Sequence[Kind], modality: Modality
) -> tuple[tuple[Transform, ...], list[str]]:
    """The transform of every column, and what to say about the choice.

    Parameters
    ----------
    transform : str, Transform or mapping
        "auto": arcsinh with the cofactor of the modality (5 for mass cytometry, 150 for fluorescence) for
        markers; other columns, and all of an unknown modality, stay as they are. "none", "arcsinh",
        "arcsinh:COFACTOR", "logicle", "logicle:T,W,M,A" or a `Transform`: for all markers. A mapping of
        column name to one of these; markers that it does not name get its entry "default", or "auto".
    names : sequence of str
        Of the columns.
    kinds : sequence of {"marker", "scatter", "time", "other"}
        Of the columns.
    modality : {"mass", "fluorescence", "unknown"}

    Returns
    -------
    transforms : tuple of Transform
        One a column.
    sentences : list of str

    Raises
    ------
    DataError
        If a transform is not known or its parameters have no meaning, or a column is not known.

    Examples
    --------
    >>> transforms, sentences = resolve("auto", names=["Time", "CD3"], kinds=["time", "marker"],
    ...                                 modality="mass")
    >>> [str(t) for t in transforms]
    ['none', 'arcsinh(x / 5)']
    >>> sentences[0]
    'arcsinh(x / 5) for CD3: mass cytometry by its channel names; pass transform=... (--transform) to choose'
    >>> sentences[1]
    'Time stays as it is: no marker'
    """
    asked, default = {}, transform
    if isinstance(transform, Mapping):
        asked = dict(transform)
        default = "auto" if DEFAULT in names else asked.pop(DEFAULT, "auto")
        for name in asked:
            if name not in names:
                raise DataError(
                    f"transform names the column {name!r}, which there is not{suggestion(name, names)}"
                )
    found: Transform
    chosen: list[Transform] = []
    reasons: dict[tuple[Transform, str], list[str]] = {}
    for name, kind in zip(names, kinds, strict=True):
        wanted = asked.get(name, default if kind == "marker" else "auto")
        found, reason = Identity(), "no marker"
        if kind == "marker" or wanted != "auto":
            found, reason = _choice(wanted, modality)
        chosen.append(found)
        reasons.setdefault((found, reason), []).append(name)
    markers = {name for name, kind in zip(names, kinds, strict=True) if kind == "marker"}
    said = [_sentence(found, reason, columns, markers) for (found, reason), columns in reasons.items()]
    return tuple(chosen), sorted(said, key=lambda text: text.endswith("no marker"))


def _choice(asked: Any, modality: Modality) -> tuple[Transform, str]:
    """The transform that is asked for, and why it is this one."""
    if isinstance(asked, Transform):
        return asked, "as asked"
    name, given, numbers = asked.partition(":") if isinstance(asked, str) else ("", "", "")
    if name not in {"auto", *TRANSFORMS} or (given and name in ("auto", Identity.name)):
        raise DataError(f"transform={asked!r}: expected {FORMS}{meant(name, ['auto', *TRANSFORMS])}")
    if name == "auto" and modality == "unknown":
        return Identity(), "neither mass cytometry nor fluorescence by the channel names"
    if asked == Arcsinh.name and modality == "unknown":
        raise DataError(
            "transform='arcsinh': the cofactor cannot be guessed, for this is neither mass cytometry nor "
            "fluorescence by its channel names: pass 'arcsinh:5' (mass) or 'arcsinh:150' (fluorescence)"
        )
    if asked in ("auto", Arcsinh.name):
        return Arcsinh(COFACTORS[modality]), f"{KNOWN_AS[modality]} by its channel names"
    parameters = _numbers(numbers, asked) if given else []
    try:
        return TRANSFORMS[name](*parameters), "as asked"
    except TypeError as error:
        raise DataError(f"transform={asked!r}: expected {FORMS}") from error


def _numbers(text: str, asked: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise DataError(f"transform={asked!r}: {text!r} are no numbers, expected {FORMS}") from error


def _sentence(found: Transform, reason: str, columns: list[str], markers: set[str]) -> str:
    """What was chosen for some columns, and why."""
    n = len(columns)
    what = f"{n} markers" if n > 3 and markers.issuperset(columns) else f"{n} columns"
    subject = what if n > 3 else ", ".join(columns)
    if found != Identity():
        way_out = "" if reason == "as asked" else "; pass transform=... (--transform) to choose"
        return f"{found} for {subject}: {reason}{way_out}"
    choose = "; pass transform='arcsinh:5' (--transform) or another one to choose"
    way_out = choose if reason.startswith("neither") else ""
    return f"{subject} {'stays as it is' if n == 1 else 'stay as they are'}: {reason}{way_out}"


# Tables ------------------------------------------------------------------------------------------------


def transform_columns(values: np.ndarray, transforms: Sequence[Transform]) -> np.ndarray:
    """Transform a table, each column its own way.

    Parameters
    ----------
    values : numpy.ndarray, shape (n, n_columns)
    transforms : sequence of Transform
        One a column.

    Returns
    -------
    numpy.ndarray of float32, shape (n, n_columns)
        Computed in float64; NaN and infinities stay what they are.

    Examples
    --------
    >>> transform_columns(np.array([[1.0, 5.0]]), [Identity(), Arcsinh(5)]).round(2).tolist()
    [[1.0, 0.8799999952316284]]
    """
    return _by_column(values, transforms, "apply")


def inverse_columns(values: np.ndarray, transforms: Sequence[Transform]) -> np.ndarray:
    """Bring a transformed table back: the inverse of `transform_columns`, float32.

    Examples
    --------
    >>> inverse_columns(transform_columns(np.array([[1.0, 5.0]]), [Identity(), Arcsinh(5)]),
    ...                 [Identity(), Arcsinh(5)]).round(3).tolist()
    [[1.0, 5.0]]
    """
    return _by_column(values, transforms, "inverse")


def _by_column(values: np.ndarray, transforms: Sequence[Transform], way: str) -> np.ndarray:
    """Columns of the same transform together, some rows at a time: float64 temporaries stay small."""
    if values.ndim != 2 or values.shape[1] != len(transforms):
        raise DataError(
            f"a table of shape {values.shape} and {len(transforms)} transforms: expected one a column"
        )
    groups: dict[Transform, list[int]] = {}
    for column, transform in enumerate(transforms):
        groups.setdefault(transform, []).append(column)
    result = np.empty(values.shape, np.float32)
    rows_at_once = max(TILE // max(len(transforms), 1), 1)
    with np.errstate(over="ignore"):
        for first in range(0, len(values), rows_at_once):
            rows = slice(first, first + rows_at_once)
            for transform, columns in groups.items():
                result[rows, columns] = getattr(transform, way)(values[rows, columns])
    return result


def to_json(names: Iterable[str], transforms: Iterable[Transform]) -> dict[str, Any]:
    """What a study's record says of its transforms; `from_json` reads it.

    Parameters
    ----------
    names : iterable of str
        Of the columns, each once.
    transforms : iterable of Transform
        One a column.

    Examples
    --------
    >>> to_json(["CD3"], [Arcsinh(5.0)])
    {'version': 1, 'markers': {'CD3': {'name': 'arcsinh', 'cofactor': 5.0}}}
    """
    columns: dict[str, Any] = {}
    for name, transform in zip(names, transforms, strict=True):
        if name in columns:
            raise DataError(f"transforms of the column {name!r} twice: names must be unique, leave one out")
        columns[name] = transform.to_json()
    return {"version": VERSION, "markers": columns}


def from_json(record: Any) -> dict[str, Transform]:
    """The transform of each column, of what `to_json` made; other entries of the record are passed over.

    Raises
    ------
    SchemaError
        If it is no such record, of another version, or names an unknown transform.

    Examples
    --------
    >>> from_json(to_json(["CD3"], [Arcsinh(5.0)]))
    {'CD3': Arcsinh(cofactor=5.0)}
    """
    if not isinstance(record, Mapping) or not isinstance(record.get("markers"), Mapping):
        raise SchemaError(
            f"the stored transform is {str(record)[:80]!r}, expected a transform for each marker"
        )
    if record.get("version") != VERSION:
        raise SchemaError(
            f"the stored transform has the version {record.get('version')!r}, this scaleshift knows "
            f"{VERSION}: update scaleshift"
        )
    return {str(name): Transform.from_json(value) for name, value in record["markers"].items()}
