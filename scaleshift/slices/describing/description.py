"""What is each slice, for a person?  Its size, errors, tests, features and exemplars as one Dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from scaleshift.blocks.block import Rows
from scaleshift.blocks.rows import with_numbers
from scaleshift.checkpoint import fingerprint
from scaleshift.errors import DataError
from scaleshift.kernels.reference import to_numpy
from scaleshift.parameters import check_level
from scaleshift.slices.describing import judging, phrases, words
from scaleshift.slices.describing.judging import Judges, Verdict
from scaleshift.slices.describing.profile import Features, SliceProfile, has_confusion, profile, same_rows
from scaleshift.slices.describing.rules import Rule, rules
from scaleshift.slices.describing.variables import VARIABLES, dataset
from scaleshift.slices.inputs import Given
from scaleshift.slices.outcomes import warn_of

if TYPE_CHECKING:
    from scaleshift.slices.base import Slicer

CLEAR_RULE = 0.5  # harmonic mean of precision and coverage of a rule that is told in words
SHARED = 0.5  # of a slice's rows: more, and it is the same as the other


class Asked(NamedTuple):
    """What else is wanted of a description than the outcomes tell."""

    features: Any = None
    metadata: Any = None
    phrases: Any = None
    phrase_embeddings: Any = None
    level: float = 0.95


def describe(slicer: Slicer, found: Given | None, asked: Asked) -> xr.Dataset:
    """Describe the slices by some rows, or by those of the fit where none are given."""
    check_level(asked.level)
    vectors = phrases.check_phrases(asked.phrases, asked.phrase_embeddings, slicer.n_features_in_)
    if found is None:
        if asked.features is not None or asked.metadata is not None:
            raise DataError("features= and metadata= are of rows: pass these with data= or embeddings=")
        seen, names, whose, told = slicer.profile_, slicer.markers_, "same", None
    else:
        rows = slicer._rows(found)
        columns = _features(asked.features, rows)
        if columns is not None:
            rows = with_numbers(rows, features=columns.values)
        seen = profile(rows, slicer._slices, slicer.preparation_, columns)
        if seen.features is not None and not np.isfinite(seen.features).all():
            raise DataError("squares of the features overflow: bring their columns to a scale near 1")
        names = rows.markers or slicer.markers_
        names = tuple(columns.names) if columns is not None else names
        whose = same_rows(seen, slicer.profile_)
        told = _rules(slicer, rows, asked.metadata, judging.judges_of(seen, whose))
    judges = judging.judges_of(seen, whose)
    verdict = judging.judge(seen, judges, asked.level)
    if found is not None:
        warn_of(slicer.preparation_.kind, verdict.overall_error_rate, int(verdict.total))
    values = {
        **_numbers(seen, verdict),
        **_confusion(slicer, seen, judges),
        **_rule_values(told),
        **_phrase_values(seen, asked.phrases, vectors),
    }
    if hasattr(slicer, "slice_components_"):
        values["component"] = slicer.slice_components_
    values["flag"] = _flags(values, verdict, judges, asked.level)
    coords = _coords(slicer, seen, names)
    unit = float(seen.tally("w")[-1] / max(seen.tally("n")[-1], 1))
    values["words"] = _words(values, names, coords, unit)
    return dataset(VARIABLES, values, coords, _attributes(slicer, judges, whose, asked.level))


# Numbers -----------------------------------------------------------------------------------------------


def _numbers(seen: SliceProfile, verdict: Verdict) -> dict[str, Any]:
    """What the profile and its judging rows say."""
    w = seen.tally("w")
    overlap = np.divide(seen.overlap, w[:-2, None], out=np.zeros(seen.overlap.shape), where=w[:-2, None] > 0)
    np.fill_diagonal(overlap, 1.0)
    same = np.where(np.tril(overlap) > SHARED, 1, 0).argmax(axis=1)
    moments = seen.embedding if seen.features is None else seen.features
    return {
        "size": w[:-2],
        "share": np.where(verdict.n > 0, verdict.share, judging.ratio(w[:-2], w[-1:])),
        "error_rate": verdict.error_rate,
        "error_low": verdict.error_low,
        "error_high": verdict.error_high,
        "error_rate_rest": verdict.error_rate_rest,
        "excess_errors": (verdict.error_rate - verdict.overall_error_rate) * w[:-2],
        "loss": verdict.loss,
        "loss_gap": verdict.loss - verdict.loss_rest,
        "p_value": verdict.p_value,
        "q_value": judging.q_values(verdict.p_value),
        "judging_rows": verdict.n.astype(np.int64),
        "judging_share": verdict.share,
        "difference": _difference(moments, verdict.beside),
        "overlap": overlap,
        "same_rows_as": same.astype(np.int64),
        "exemplar": seen.exemplar,
        "overall_error_rate": verdict.overall_error_rate,
        "overall_loss": verdict.overall_loss,
        "n_rows": np.int64(seen.tally("n")[-1]),
        "n_effective": verdict.total,
    }


def _difference(moments: np.ndarray, beside: bool) -> np.ndarray:
    """(mean - mean of the rest) / root of the mean of both variances, (S, m); 0 where nothing varies."""
    mass, sums, squares = moments
    inside = mass[:-2], sums[:-2], squares[:-2]
    outside = tuple(judging.rest_of(part, beside) for part in moments)
    means, variances = [], []
    for w, x, xx in (inside, outside):
        known = np.where(w > 1e-9 * mass[-1], w, np.nan)
        means.append(x / known)
        variances.append(np.maximum(xx / known - (x / known) ** 2, 0.0))
    overall = np.maximum(squares[-1] / np.maximum(mass[-1], np.finfo(float).tiny), 0.0)
    spread = np.sqrt((variances[0] + variances[1]) / 2)
    varies = spread > 1e-7 * np.sqrt(overall)
    difference = means[0] - means[1]
    found = np.divide(difference, spread, out=np.zeros(difference.shape), where=varies)
    return np.where(np.isfinite(difference), found, np.nan)


def _confusion(slicer: Slicer, seen: SliceProfile, judges: Judges) -> dict[str, Any]:
    if seen.confusion is None or not has_confusion(slicer.preparation_.kind):
        return {}
    return {"confusion": seen.confusion[judges.parts, :-2].sum(axis=0)}


# What was asked for ------------------------------------------------------------------------------------


def _features(features: Any, rows: Rows) -> Features | None:
    """Features with names, and numbers near their means; of lazy ones these are not known."""
    if features is None:
        return None
    names = None
    if isinstance(features, pd.DataFrame):
        names = [str(name) for name in features.columns]
        for name, column in features.items():
            if not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
                raise DataError(f"features has the column {name!r} of {column.dtype}: expected numbers")
        features = features.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(features, xr.DataArray):
        index = features.indexes.get(features.dims[-1])
        names = None if index is None else [str(name) for name in index]
        features = features.data
    if not isinstance(features, da.Array):
        features = to_numpy(features)
    if features.dtype.kind not in "biuf":
        raise DataError(f"features has dtype {features.dtype}, expected numbers")
    if features.ndim != 2:
        raise DataError(f"features has {features.ndim} dimensions: expected (n, m), one row a row of data")
    if not isinstance(features, da.Array) and len(features) != rows.x.shape[0]:
        raise DataError(
            f"features has {len(features)} rows, the embeddings have {rows.x.shape[0]}: pass as many"
        )
    names = names or [f"feature {i}" for i in range(features.shape[1])]
    shift = np.zeros(features.shape[1])
    if not isinstance(features, da.Array) and len(features):
        first = np.asarray(features[:1_000], np.float64)
        known = np.isfinite(first)
        shift = np.where(known, first, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return Features(names, features, shift)


def _rules(slicer: Slicer, rows: Rows, metadata: Any, judges: Judges) -> list[Rule] | None:
    if metadata is None:
        return None
    only_held = judges.parts == slice(1, 2)
    return rules(rows, slicer._slices, slicer.preparation_, metadata, only_held)


def _rule_values(told: list[Rule] | None) -> dict[str, Any]:
    if told is None:
        return {}
    return {
        "rule": np.array([rule.text for rule in told], dtype=str),
        "rule_precision": np.array([rule.precision for rule in told]),
        "rule_coverage": np.array([rule.coverage for rule in told]),
    }


def _phrase_values(seen: SliceProfile, names: Any, vectors: np.ndarray | None) -> dict[str, Any]:
    if vectors is None:
        return {}
    mass, sums, _ = seen.embedding
    means = np.divide(sums, mass, out=np.zeros(sums.shape), where=mass > 0)
    directions = np.where(mass[:-2] > 0, means[:-2] - means[-1], 0.0)
    number, cosine = phrases.ranked(directions, vectors)
    return {"phrase": np.array([str(name) for name in names], dtype=str)[number], "phrase_score": cosine}


# Words -------------------------------------------------------------------------------------------------


def _flags(values: Mapping[str, Any], verdict: Verdict, judges: Judges, level: float) -> np.ndarray:
    """Reasons for caution, by slice."""
    unknown = not (np.isfinite(verdict.overall_error_rate) or np.isfinite(verdict.overall_loss))
    flags = []
    for k in range(len(verdict.n)):
        reasons = [judges.reason] if judges.reason else []
        if values["size"][k] == 0:
            reasons.append("no members")
        elif unknown:
            reasons.append("errors not known")
        else:
            reasons += _doubts(values, verdict, judges, k, level)
        if values["same_rows_as"][k] != k:
            reasons.append(f"same rows as slice {values['same_rows_as'][k]}")
        flags.append("; ".join(reasons))
    return np.array(flags, dtype=str)


def _doubts(values: Mapping[str, Any], verdict: Verdict, judges: Judges, k: int, level: float) -> list[str]:
    """Why one slice may be none."""
    reasons = ["few rows"] if verdict.n[k] < judging.FEW_ROWS else []
    gap = verdict.error_rate[k] - verdict.error_rate_rest[k]
    gap = gap if np.isfinite(verdict.overall_error_rate) else values["loss_gap"][k]
    if gap <= 0:
        reasons.append("not worse than the rest")
    elif not judges.reason and not values["q_value"][k] <= 1 - level:
        reasons.append("not significantly worse than the rest")
    return reasons


def _words(values: Mapping[str, Any], names: Any, coords: Mapping[str, Any], unit: float) -> np.ndarray:
    """One sentence a slice, with its flag; `unit` is the mean weight of a row."""
    sentences = []
    for k in range(len(values["size"])):
        if values["size"][k] == 0:
            sentences.append("no rows")
            continue
        facts = [f"{words.percent(values['share'][k])} of rows"]
        if np.isfinite(values["error_rate"][k]):
            interval = values["error_low"][k], values["error_high"][k]
            facts.append(words.wrong(values["error_rate"][k], *interval, values["error_rate_rest"][k]))
        elif np.isfinite(values["loss"][k]):
            facts.append(words.lost(values["loss"][k], values["loss"][k] - values["loss_gap"][k]))
        if "confusion" in values:
            facts.append(words.confused(values["confusion"][k] / (unit or 1.0), coords["label"]))
        asides = [words.apart(values["difference"][k], names)] if names is not None else []
        if "rule" in values and _finds(values["rule_precision"][k], values["rule_coverage"][k]):
            asides.append(_rule_words(values, k))
        if "phrase" in values:
            asides.append(f"like {values['phrase'][k, 0]!s}")
        doubt = f" [{values['flag'][k]}]" if values["flag"][k] else ""
        sentences.append(words.sentence(facts, *asides) + doubt)
    return np.array(sentences, dtype=str)


def _rule_words(values: Mapping[str, Any], k: int) -> str:
    """A rule with what it finds of the slice, and what else it finds."""
    precision, coverage = (words.percent(values[f"rule_{of}"][k]) for of in ("precision", "coverage"))
    return f"{coverage} of it where {values['rule'][k]}, and {precision} of such rows are in it"


def _finds(precision: float, coverage: float) -> bool:
    """Whether a rule is worth telling: most of its rows are in the slice, and most of the slice's in it."""
    return 2 * precision * coverage > CLEAR_RULE * (precision + coverage)


def _coords(slicer: Slicer, seen: SliceProfile, names: Any) -> dict[str, Any]:
    classes = slicer.preparation_.kind.classes
    m = (seen.embedding if seen.features is None else seen.features).shape[2]
    slices = np.arange(seen.n_slices)
    feature = list(names) if names is not None else [f"column {i}" for i in range(m)]
    return {
        "slice": slices,
        "other_slice": slices,
        "label": classes,
        "predicted": classes,
        "feature": np.array(feature, dtype=str),
    }


# Attributes --------------------------------------------------------------------------------------------


def fit_of(slicer: Slicer) -> str:
    """Short text that tells one fit from another."""
    centres = slicer._slices.centres.astype(np.float64).tolist()
    job = {"slicer": type(slicer).__name__, "rows": slicer.profile_.check.tolist(), "centres": centres}
    return fingerprint(job)


def _attributes(slicer: Slicer, judges: Judges, whose: str, level: float) -> dict[str, Any]:
    rows = {"others": "all rows given, as rows that the fit did not see", "same": "rows held out of the fit"}
    judged = "all rows, those of the fit among them" if judges.reason else rows[whose]
    return {
        "method": slicer.METHOD,
        "citation": slicer.CITATION,
        "parameters": json.dumps(slicer.get_params(), default=str),
        "seed": slicer.preparation_.seed,
        "fit": fit_of(slicer),
        "judged_by": judged,
        "level": level,
    }
