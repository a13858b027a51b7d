"""What is to be said of expected errors?  The sentence on a target, and what its letters stand for."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.report import about
from scaleshift.report.names import printable, short

JOINT = "; "  # between the reasons of a flag
UNRELIABLE = "!"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_NAMES, MOST_FEATURES = 4, 3  # of targets that a reason names; beyond, they are counted
LONGEST_NAME = 32  # characters, in a sentence
LOSSES = {
    "squared": "mean squared error",
    "counting": "share of wrong labels",
    "deviance": "deviance: -2 log of the probability of the label",
    "brier": "Brier score, summed over the labels",
}


def number(value: float) -> str:
    """Three digits: errors are in the units of the loss, of any size.

    Examples
    --------
    >>> number(0.1204), number(8.144), number(1234.5), number(0.00001234), number(float("nan"))
    ('0.120', '8.14', '1234', '1.23e-05', '-')
    """
    if not np.isfinite(value):
        return "-" if np.isnan(value) else str(value)
    size = abs(value)
    if size and not 1e-4 <= size < 1e6:
        return f"{value:.2e}"
    decimals = 3 if not size else int(np.clip(2 - np.floor(np.log10(size)), 0, 6))
    return f"{value:.{decimals}f}"


def interval(low: float, high: float) -> str:
    """Both ends, "-" where neither is known.

    Examples
    --------
    >>> interval(0.1, 0.15), interval(float("nan"), float("nan"))
    ('0.100 to 0.150', '-')
    """
    return "-" if np.isnan(low) and np.isnan(high) else f"{number(low)} to {number(high)}"


def methods(result: xr.Dataset) -> list[str]:
    """Names of the methods; the first is the one that is told first."""
    return [str(name) for name in result["method"].values.tolist()]


def in_sample(result: xr.Dataset) -> float:
    """Error at the source's own covariates, by the first method."""
    return float(result["error_in_sample"].values[0])


def cross_validated(result: xr.Dataset) -> float:
    """Cross-validated error of the source, which is the same for all targets; NaN without.

    Its variable, or the method "cv"; as the first method it is told like any.
    """
    if "error_cv" in result:
        return float(result["error_cv"])
    if "cv" not in methods(result)[1:]:
        return np.nan
    found = result["error"].transpose("target", "method").values[:, methods(result).index("cv")]
    known = found[np.isfinite(found)]
    return float(known[0]) if known.size else np.nan


def beside(result: xr.Dataset) -> list[int]:
    """Places of the methods that stand beside the first one: those that are known of a target."""
    known = np.isfinite(result["error"].transpose("target", "method").values).any(axis=0)
    return [i for i in range(result.sizes["method"]) if i and known[i]]


def silent(result: xr.Dataset) -> list[str]:
    """Names of methods that have no answer for any target, which a model does not have, as a rule."""
    known = np.isfinite(result["error"].transpose("target", "method").values).any(axis=0)
    return [name for i, name in enumerate(methods(result)) if i and not known[i]]


def sentence(one: xr.Dataset) -> str:
    """What to expect of one target.

    Parameters
    ----------
    one : xarray.Dataset
        A result with a single target.
    """
    error, low, high = (
        float(one[name].transpose("target", "method").values[0, 0])
        for name in ("error", "error_low", "error_high")
    )
    name = short(one["target"].values[0], LONGEST_NAME)
    if np.isnan(error):
        return f"expected error on '{name}': not known"
    told = f"expected error on '{name}': {number(error)}"
    told += f" ({interval(low, high)})" if np.isfinite([low, high]).any() else ""
    source = in_sample(one)
    told += f", source {number(source)}" if np.isfinite(source) else ""
    if not has_observed(one):
        return told
    return f"{told}; observed {observed(float(one['observed'][0]), float(one['observed_se'][0]))}"


def has_observed(result: xr.Dataset) -> bool:
    """Whether outcomes of some rows are known after all."""
    return "observed" in result and bool((result["n_observed"] > 0).any())


def observed(error: float, standard_error: float) -> str:
    """An observed error.

    Examples
    --------
    >>> observed(0.12, 0.0034), observed(float("nan"), float("nan"))
    ('0.120 ± 0.0034', '-')
    """
    if np.isnan(error):
        return "-"
    return f"{number(error)} ± {standard_error:.2g}" if np.isfinite(standard_error) else number(error)


def of_source(result: xr.Dataset) -> list[str]:
    """Errors of the source, to compare with."""
    told = {"in sample": in_sample(result), "cross-validated": cross_validated(result)}
    known = [f"{name} {number(value)}" for name, value in told.items() if np.isfinite(value)]
    return [f"source: {', '.join(known)}"] if known else []


def level(result: xr.Dataset) -> float | None:
    """How often an interval should hold the error, where the result tells."""
    return about.number(about.parameters(result).get("level"))


def of_loss(result: xr.Dataset) -> str:
    """What the numbers are."""
    loss = str(result.attrs.get("loss", ""))
    return printable(LOSSES.get(loss, loss or "expected loss"))


def of_features(one: xr.Dataset) -> list[str]:
    """Which features add most to the error of one target, in a sentence; nothing where that is not known."""
    if "by_feature" not in one:
        return []
    shares = one["by_feature"].transpose("target", "feature").values[0]
    order = np.argsort(-np.nan_to_num(shares), kind="stable")[:MOST_FEATURES]
    most = [i for i in order.tolist() if shares[i] > 0]
    if not most:
        return []
    names = one["feature"].values
    told = [f"{short(names[i], LONGEST_NAME)} ({number(float(shares[i]))})" for i in most]
    return [f"features whose spread adds most to the error: {', '.join(told)}"]


# Flags as letters --------------------------------------------------------------------------------------


def phrases(result: xr.Dataset) -> dict[str, str]:
    """Letter of each kind of reason that occurs, in the order in which they do.

    A reason is a phrase, or a phrase, ": " and what it is about.
    """
    found = dict.fromkeys(phrase for flag in result["flag"].values for phrase, _ in _reasons(flag))
    return {phrase: _letter(i) for i, phrase in enumerate(found)}


def letters(flag: object, unreliable: object, known: dict[str, str]) -> str:
    """Letters of one target's flag, behind a mark where its estimate is not to be relied on.

    Examples
    --------
    >>> letters("few rows: 3; far", True, {"few rows": "a", "far": "b"})
    '! a b'
    """
    found = dict.fromkeys(known[phrase] for phrase, _ in _reasons(flag))
    return " ".join([*([UNRELIABLE] if unreliable else []), *found])


def legend(result: xr.Dataset, known: dict[str, str]) -> list[tuple[str, str]]:
    """Each letter, with its reason in words and the targets that have it."""
    by_phrase: dict[str, list[tuple[str, str]]] = {}
    for name, flag in zip(result["target"].values.tolist(), result["flag"].values.tolist(), strict=True):
        for phrase, detail in _reasons(flag):
            by_phrase.setdefault(phrase, []).append((short(name, LONGEST_NAME), detail))
    rows = [(known[phrase], _told(phrase, of, result.sizes["target"])) for phrase, of in by_phrase.items()]
    if result["unreliable"].values.any():
        rows.insert(0, (UNRELIABLE, "do not rely on the estimate, for the reasons beside it"))
    return rows


def _told(phrase: str, of: list[tuple[str, str]], n_targets: int) -> str:
    details = {detail for _, detail in of}
    same = details.pop() if len(details) == 1 else ""
    words = printable(f"{phrase}: {same}" if same else phrase)
    if n_targets == 1 and not details:
        return words
    if len(of) > MOST_NAMES:
        return f"{words}: {len(of)} of {n_targets} targets"
    return f"{words}: " + ", ".join(
        name if same or not detail else f"{name} ({printable(detail)})" for name, detail in of
    )


def _reasons(flag: object) -> list[tuple[str, str]]:
    parts = [part for part in str(flag).split(JOINT) if part]
    return [(phrase, detail) for phrase, _, detail in (part.partition(": ") for part in parts)]


def _letter(number: int) -> str:
    """One of a to z, then of a2 to z2 and so on."""
    turn, place = divmod(number, len(LETTERS))
    return LETTERS[place] + (str(turn + 1) if turn else "")
