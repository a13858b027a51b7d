"""What is to be minded of a ranking?  Doubts, and what would do nearly as well, in sentences."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scaleshift.blocks.sizes import count
from scaleshift.cells.problem import several
from scaleshift.report.names import short

FEW = 50  # positives, below which the standard error over folds says too little
UNSTABLE = 0.5  # of the halves
NEARLY = 0.1  # less stable than the least stable feature that was chosen
LEAST = 0.3  # stability that is worth a word
COARSE = 5e-4  # error that counting scores in bins may have
MOST_NAMES = 5
LONGEST_NAME = 32  # characters of a feature in a sentence


def in_words(one: xr.Dataset, path: xr.Dataset) -> list[str]:
    """Sentences on one ranking, the gravest first.

    Parameters
    ----------
    one : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns, of one contrast.
    path : xarray.Dataset
        Its ``path_``.

    Returns
    -------
    list of str
    """
    return [*of_auc(one), *of_path(path), *of_features(one)]


def of_auc(one: xr.Dataset) -> list[str]:
    """How far the AUC can be trusted."""
    auc, error = float(one["auc"]), float(one["auc_se"])
    if not len(chosen(one)):
        return ["no feature differs between positives and negatives: nothing is ranked"]
    if np.isnan(auc):
        return [
            "without cross-validation nothing is held out: the AUC shown is of the rows that were learned "
            "from, and too high"
        ]
    words = []
    if auc - 2 * error < 0.5:
        words.append("the AUC is within two standard errors of 0.5, which is chance")
    fewest = min(float(one["weight_positive"]), float(one["weight_negative"]))
    if fewest < FEW:
        side = "positives" if fewest == float(one["weight_positive"]) else "negatives"
        words.append(
            f"{fewest:g} {side} are few: with others the AUC may differ by more than the standard error says"
        )
    if float(one.get("auc_bound", 0)) > COARSE:
        words.append(
            f"scores were counted in bins: the AUC may be off by {float(one['auc_bound']):.1g}, no more"
        )
    return words


def of_path(path: xr.Dataset) -> list[str]:
    """What fewer features would attain."""
    sizes, auc, error = path["k"].values, path["auc"].values, np.nan_to_num(path["auc_se"].values)
    here = np.flatnonzero(selected(path))
    if not here.size or not np.isfinite(auc[here[0]]) or sizes[here[0]] == 1:
        return []
    words, place = [], int(here[0])
    enough = np.flatnonzero((auc >= auc[place] - error[place]) & (sizes < sizes[place])).tolist()
    if "one_se" in str(path.attrs.get("parameters")):  # fewer were asked for, and are there
        enough = [place for place in enough if place == 0]
    if sizes[0] == 1 and np.isfinite(auc[0]):
        coef = path["coef"].transpose("k", "feature").values[0]
        names = path["feature"].values[np.flatnonzero(np.nan_to_num(coef))]
        if names.size:
            also = ", within a standard error" if 0 in enough else ""
            words.append(
                f"one feature, {short(names[0], LONGEST_NAME)}, has a held-out AUC of {number(auc[0])}{also}"
            )
    if enough and not (enough[0] == 0 and words):
        least = enough[0]
        n = count(int(sizes[least]), "feature", "features")
        words.append(f"{n} would do within a standard error: held-out AUC {number(auc[least])}")
    return words


def of_features(one: xr.Dataset) -> list[str]:
    """Which features another sample might do without, and which it might take."""
    stability, names, words = one["stability"].values, one["feature"].values, []
    features = chosen(one)
    if features.size and np.isfinite(stability[features]).any():
        doubtful = features[stability[features] < UNSTABLE]
        if doubtful.size:
            words.append(
                f"{_listed(names[doubtful])}: in fewer than half of the rankings learned from halves of the "
                "data; another sample might choose others"
            )
        others = np.setdiff1d(np.arange(len(names)), features)
        least = max(np.nanmin(stability[features]) - NEARLY, LEAST)
        near = others[stability[others] >= least]
        near = near[np.argsort(-stability[near], kind="stable")]
        if near.size:
            told = [f"{short(names[i], LONGEST_NAME)} ({stability[i]:.2f})" for i in near.tolist()]
            most = several(told, MOST_NAMES)
            words.append(f"left out, and nearly as stable as one that was chosen: {most}")
    gap = (one["mean_positive"] - one["mean_negative"]).values
    against = features[one["coef"].values[features] * gap[features] < 0]
    if against.size:
        words.append(f"{_listed(names[against])}: weighted against the own difference, to correct for others")
    return words


def _listed(names: np.ndarray) -> str:
    return several([short(name, LONGEST_NAME) for name in names.tolist()], MOST_NAMES)


# Small things ------------------------------------------------------------------------------------------


def positive_of(one: xr.Dataset) -> str:
    """Names of the positive labels."""
    named = one.attrs.get("positive", "")
    return ", ".join(map(str, named)) if isinstance(named, list | tuple) else str(named)


def over(one: xr.Dataset) -> str:
    """What the positives are told from, where it is a label: " over T"."""
    return f" over {one.attrs['negative']}" if one.attrs.get("negative") else ""


def selected(one: xr.Dataset) -> np.ndarray:
    """Which are chosen, features or numbers of them; what only another contrast has is NaN, and not."""
    return np.equal(one["selected"].values, True)


def chosen(one: xr.Dataset) -> np.ndarray:
    """Places of the features of the ranking, the largest weight first."""
    used = np.flatnonzero(selected(one))
    return used[np.argsort(-np.abs(one["coef_scaled"].values[used]), kind="stable")]


def ranked(one: xr.Dataset) -> np.ndarray:
    """Places of all features: the chosen ones, then by stability, then by what they rank alone."""
    first = chosen(one)
    rest = np.setdiff1d(np.arange(one.sizes["feature"]), first)
    stability = np.nan_to_num(one["stability"].values[rest])
    alone = np.abs(np.nan_to_num(one["auc_alone"].values[rest], nan=0.5) - 0.5)
    return np.concatenate([first, rest[np.lexsort((-alone, -stability))]])


def number(value: float) -> str:
    """An AUC with three decimals, and with more where it is next to 1 or 0.

    Examples
    --------
    >>> number(0.91234), number(0.99987), number(0.00012), number(0.9999999), number(float("nan"))
    ('0.912', '0.99987', '0.00012', '1.000', '-')
    """
    if np.isnan(value):
        return "-"
    apart = min(abs(value), abs(1 - value))
    if apart < 5e-6 or apart >= 9.5e-3:
        return f"{value:.3f}"
    return f"{value:.{min(int(np.ceil(-np.log10(apart))) + 1, 6)}f}"
