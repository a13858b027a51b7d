"""Which quantifiers have a name, and what is each of them? The registry of `compare` and of `--method`.

Importing this imports no method: names are looked up among scaleshift's public names when one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scaleshift.errors import DataError
from scaleshift.spelling import meant


@dataclass(frozen=True)
class Method:
    """A quantifier by name: a public class of scaleshift and the parameters that make it this one."""

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    size: Callable[[int], dict[str, Any]] | None = None  # how many features it has, as parameters
    has_bandwidth: bool = False


def _map(name: str) -> Callable[[int], dict[str, Any]]:
    return lambda n: {"features": _public(name)(n)}


def _matching(features: str, soft: bool) -> Method:
    sized = {"fourier": _map("FourierFeatures"), "landmarks": _map("LandmarkFeatures")}
    return Method("DFM", {"features": features, "soft": soft}, sized[features], has_bandwidth=True)


#: In order of simplicity, which breaks ties; a new method is a line here.
METHODS: dict[str, Method] = {
    "open-set": Method("OpenSetQuantifier", size=lambda n: {"n_landmarks": n}),
    "cc": Method("ClassifyAndCount", {"probabilistic": False}),
    "pcc": Method("ClassifyAndCount", {"probabilistic": True}),
    "acc": Method("AdjustedCount", {"probabilistic": False}),
    "pacc": Method("AdjustedCount", {"probabilistic": True}),
    "bbse": Method("BBSE"),
    "soft-bbse": Method("BBSE", {"soft": True}),
    "rlls": Method("RLLS"),
    "mlls": Method("MLLS"),
    "hdx": Method("HDx"),
    "dys": Method("DyS"),
    "hard-landmarks": _matching("landmarks", soft=False),
    "soft-landmarks": _matching("landmarks", soft=True),
    "hard-fourier": _matching("fourier", soft=False),
    "soft-fourier": _matching("fourier", soft=True),
    "soft-energy": Method("DFM", {"features": "sliced-energy", "soft": True}),
}
#: What `compare` tries where nothing is said: one of each kind that is the best of all somewhere.
LEAGUE = ("open-set", "cc", "bbse", "mlls", "hard-landmarks", "soft-landmarks", "soft-fourier")


def available() -> list[str]:
    """Names of all methods."""
    return list(METHODS)


def league() -> list[str]:
    """Names of those that are compared where nothing is said."""
    return list(LEAGUE)


def default() -> str:
    """Name of the method to use where the data cannot tell which is best."""
    return "open-set"


def make(name: str, *, n_features: int | None = None, **parameters: Any) -> Any:
    """An unfitted quantifier.

    Parameters
    ----------
    name : str
        One of `available`.
    n_features : int, optional
        How many features or landmarks, for those that have some.
    **parameters
        Of its class, in addition to those that make it this method.

    Raises
    ------
    DataError
        If there is no such method, or if it has no such parameter: names those that have.

    Examples
    --------
    >>> make("hard-landmarks", random_state=0)
    DFM(features='landmarks', random_state=0, soft=False)
    """
    known = available()
    if name not in known:
        listed = ", ".join(known)
        raise DataError(f"there is no method {name!r}: choose one of {listed}{meant(name, known)}")
    method, asked = METHODS[name], set(parameters) | ({"n_features"} if n_features is not None else set())
    lacking = sorted(asked - accepted(name))
    if lacking:
        raise DataError(f"{name} has no {lacking[0]}: {', '.join(having(lacking[:1])) or 'no method'} has")
    if n_features is not None and method.size is not None:
        parameters |= method.size(n_features)
    return _public(method.estimator)(**{**method.parameters, **parameters})


def accepted(name: str) -> set[str]:
    """Settings that a method has: parameters of its class, and n_features.

    Examples
    --------
    >>> {"n_features", "bandwidth", "soft"} & accepted("soft-fourier") == {"n_features", "bandwidth"}
    True
    """
    method = METHODS[name]
    found = set(_public(method.estimator)().get_params(deep=False)) - set(method.parameters)
    if not method.has_bandwidth:
        found.discard("bandwidth")
    return found | ({"n_features"} if method.size else set())


def having(settings: Iterable[str]) -> list[str]:
    """Names of the methods that have all of these settings."""
    wanted = set(settings)
    return [name for name in available() if wanted <= accepted(name)]


def _public(name: str) -> Any:
    import scaleshift

    return getattr(scaleshift, name)
