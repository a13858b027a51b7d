"""How is a pass of expectation-maximisation made fast? Each tile of rows is read once and never leaves the cache.

float32, for diagonal and spherical covariances. Densities are in log2 units, squares of (x - mu) / sigma, so that
nothing cancels; sums of a tile are float32 and added up in float64. The steps are in `mixture_steps`.
"""

from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels import mixture as reference
from scaleshift.kernels.cpu import mixture_steps as steps
from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.transpose import SIDE, transpose_rows
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.mixture import Components, Outcomes
from scaleshift.kernels.reference import host_codes

_CHUNK_TILES = 8  # rows for one call of the compiled loop: a few thousand
_FEW = 8  # outcomes: up to here each of them is a line of numbers, beyond labels are codes, others go to BLAS
_NEVER = np.float32(-1e30)  # log2 density of a component of weight 0
_LOST = -1e29  # log2 density of rows in no component: of any component, or float32 does not hold it
_LOG2E = np.log2(np.e)


def mixture_sums(x: np.ndarray, outcomes: Outcomes, components: Components) -> dict[str, np.ndarray]:
    """One pass of expectation-maximisation over a block: the same as `mixture.mixture_sums`.

    In float32 for float32 rows and covariances of the types "diag" and "spherical"; all else is left to the
    reference, and so are rows some 10^14 standard deviations away from every component. Sums are off by about
    1e-7 of their norm; log densities by 1e-7 of their value, which shows in responsibilities of rows that
    are hundreds of standard deviations away. What the sums of a model are does not depend on other models.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Embeddings about their mean: an offset of many standard deviations costs digits. Free of NaN.
    outcomes : Outcomes
    components : Components

    Returns
    -------
    dict of float64 numpy.ndarray
        mass, log_likelihood, n, x, xx and, where given, label, prediction and extra, as in the reference.

    Raises
    ------
    ValueError
        If a label is not below `n_labels`, there is not one a row, or the columns do not match.

    Examples
    --------
    >>> x = np.array([[-5.0], [5.0], [6.0]], dtype=np.float32)
    >>> two = Components("diag", (2,), np.array([0.5, 0.5]), np.array([[-5.0], [5.0]]), np.ones((2, 1)))
    >>> mixture_sums(x, Outcomes(), two)["n"].round(6).tolist()
    [1.0, 2.0]
    """
    if x.dtype != np.float32 or components.covariance_type not in ("diag", "spherical"):
        return reference.mixture_sums(x, outcomes, components)
    outcomes = _checked(x, outcomes, components)
    plan = _prepare(components, outcomes)
    if not _is_representable(plan):
        return reference.mixture_sums(x, outcomes, components)
    work = _work(x.shape[1], outcomes, plan)
    total: dict[str, np.ndarray] = {}
    n_rows = work.weights.size
    for start in range(0, max(len(x), 1), n_rows):
        rows = slice(start, start + n_rows)
        found = _chunk_sums(x[rows], outcomes.rows(rows), components, plan, work)
        if found is None:
            found = reference.mixture_sums(x[rows], outcomes.rows(rows), components)
        total = {name: total.get(name, 0.0) + value for name, value in found.items()}
    return total


class _Plan(NamedTuple):
    """Components as the compiled loop wants them: about 0 the densities are 2^(bias - sum (scale x + shift)^2)."""

    scales: np.ndarray  # (K', d') float32, K' even and d' a multiple of a block's columns
    shifts: np.ndarray
    biases: np.ndarray  # (K'',) float32, K'' a multiple of a block's components
    offsets: np.ndarray  # (R,) what biases are less by, in float64
    bounds: np.ndarray  # (R + 1,) where models begin
    label_terms: np.ndarray  # (K, C) float32, by lines of the outcomes
    code_terms: np.ndarray  # (K, C + 1) float32, by code, where there are many labels
    agreement: np.ndarray  # (K, C) float32: probabilities of predictions, where they are few
    power: np.float32  # of agreement
    given: bool  # whether the loop finds terms of the densities in `joint`


class _Work(NamedTuple):
    """What a chunk of rows is turned into."""

    rows: np.ndarray  # (d'', tile) columns of a tile
    square: np.ndarray
    joint: np.ndarray  # (K'', tile) densities, then responsibilities
    highest: np.ndarray
    mass: np.ndarray
    weights: np.ndarray  # (chunk,) float32, 0 beyond the rows
    codes: np.ndarray  # (chunk,) int32 labels, the last one is missing; empty where they are few
    lines: np.ndarray  # (lines, chunk) float32 labels as 0 or 1, predictions, others


class _Sums(NamedTuple):
    """What the compiled loop adds to."""

    evidence: np.ndarray  # (R,)
    n: np.ndarray  # (K,)
    moments: np.ndarray  # (K'', 2, d')
    lines: np.ndarray  # (K, lines)
    codes: np.ndarray  # (C + 1, K)


def _checked(x: np.ndarray, outcomes: Outcomes, components: Components) -> Outcomes:
    """Refuse what compiled loops would read beyond its end; labels become int32."""
    d = components.means.shape[1]
    if x.ndim != 2 or x.shape[1] != d:
        raise ValueError(f"components have {d} columns, but x has the shape {x.shape}")
    for name, outcome in outcomes._asdict().items():
        if hasattr(outcome, "shape") and len(outcome) != len(x):
            raise ValueError(f"{name} has {len(outcome)} rows, but x has {len(x)}")
    if outcomes.label is None:
        return outcomes
    return outcomes._replace(label=host_codes(outcomes.label, outcomes.n_labels, len(x)))


def _is_representable(plan: _Plan) -> bool:
    """Whether float32 holds the parameters, and each model has a component of some weight."""
    numbers = plan.scales, plan.shifts, plan.biases
    return bool(all(np.isfinite(part).all() for part in numbers) and (plan.offsets > _LOST).all())


def _few(outcome: Any) -> bool:
    """Whether an outcome becomes lines of numbers."""
    return outcome is not None and outcome.shape[1] <= _FEW


def _wide(outcomes: Outcomes) -> dict[str, np.ndarray]:
    """Outcomes that need products by BLAS."""
    parts = {"prediction": outcomes.prediction, "extra": outcomes.extra}
    return {name: part for name, part in parts.items() if part is not None and not _few(part)}


def _has_codes(outcomes: Outcomes) -> bool:
    """Whether there are labels, and too many for lines."""
    return outcomes.label is not None and outcomes.n_labels > _FEW


def _lines(outcomes: Outcomes) -> dict[str, np.ndarray]:
    """Outcomes that become lines, by row."""
    parts = {"prediction": outcomes.prediction, "extra": outcomes.extra}
    found = {name: part for name, part in parts.items() if _few(part)}
    if outcomes.label is not None and outcomes.n_labels <= _FEW:
        found = {"label": outcomes.label[:, None] == np.arange(outcomes.n_labels), **found}
    return found


def _prepare(components: Components, outcomes: Outcomes) -> _Plan:
    """Scale, pad and round the parameters; only terms of outcomes that are known."""
    n_components, d = components.means.shape
    variances = np.asarray(components.covariances, dtype=np.float64).reshape(n_components, -1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scale = np.broadcast_to(np.sqrt(0.5 * _LOG2E / variances), (n_components, d))
        bias = np.log2(components.weights) - 0.5 * np.log2(np.broadcast_to(variances, scale.shape)).sum(axis=1)
        shape = -(-n_components // 2) * 2, -(-d // steps.COLUMNS) * steps.COLUMNS
        scales, shifts = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
        scales[:n_components, :d] = scale
        shifts[:n_components, :d] = -components.means * scales[:n_components, :d].astype(np.float64)
    bias[components.weights == 0] = _NEVER
    # biases near 0 have small rounding errors
    offsets = np.array([bias[model].max() for _, model in components.models])
    biases = np.zeros(-(-n_components // steps.COMPONENTS) * steps.COMPONENTS, dtype=np.float32)
    biases[:n_components] = np.maximum(bias - np.repeat(offsets, components.sizes), _NEVER)
    n_labels, terms = outcomes.n_labels, np.zeros((n_components, 0), dtype=np.float32)
    many, agreement, given = terms, terms, False
    if outcomes.label is not None and components.label_probs is not None:
        logs = np.log2(components.label_probs + reference.EPSILON) * components.label_power
        if n_labels <= _FEW:
            terms = logs.astype(np.float32)
        else:
            many = np.pad(logs.astype(np.float32), ((0, 0), (0, 1)))
    if outcomes.prediction is not None and components.prediction_probs is not None:
        given = not _few(outcomes.prediction)
        agreement = agreement if given else components.prediction_probs.astype(np.float32)
    bounds = np.cumsum((0, *components.sizes), dtype=np.int64)
    power = np.float32(components.prediction_power)
    offsets = offsets - 0.5 * d * np.log2(2 * np.pi)
    return _Plan(scales, shifts, biases, offsets, bounds, terms, many, agreement, power, given)


def _work(d: int, outcomes: Outcomes, plan: _Plan) -> _Work:
    """Zeros for a chunk: a single tile where BLAS takes part, so that its responsibilities are at hand."""
    n_rows = steps.TILE * (1 if _wide(outcomes) else _CHUNK_TILES)
    n_lines = sum(line.shape[1] for line in _lines(outcomes.rows(slice(0, 0))).values())
    return _Work(
        work_rows(-(-d // SIDE) * SIDE, steps.TILE),
        np.zeros((SIDE, SIDE), dtype=np.float32),
        work_rows(plan.biases.size, steps.TILE),
        work_rows(1, steps.TILE)[0, : steps.TILE],
        work_rows(1, steps.TILE)[0, : steps.TILE],
        np.zeros(n_rows, dtype=np.float32),
        np.zeros(n_rows if _has_codes(outcomes) else 0, dtype=np.int32),
        work_rows(n_lines, n_rows),
    )


def _chunk_sums(
    x: np.ndarray, outcomes: Outcomes, components: Components, plan: _Plan, work: _Work
) -> dict[str, np.ndarray] | None:
    """The sums of a chunk of rows; None where a row is lost."""
    n, (n_components, d) = len(x), components.means.shape
    lines = _fill(n, outcomes, work)
    wide = {name: part.astype(np.float32) for name, part in _wide(outcomes).items()}
    if plan.given:
        _give_agreement(wide["prediction"], components, work.joint)
    sums = _Sums(
        np.zeros(len(components.sizes)),
        np.zeros(n_components),
        np.zeros((plan.biases.size, 2, plan.scales.shape[1])),
        np.zeros((n_components, sum(lines.values()))),
        np.zeros((outcomes.n_labels + 1 if work.codes.size else 0, n_components)),
    )
    if not _add_rows(np.require(x, requirements=["C", "ALIGNED"]), plan, work, sums) > _LOST:
        return None
    mass = float(n) if outcomes.weight is None else np.asarray(outcomes.weight, dtype=np.float64).sum()
    found = {"mass": np.array([mass]), "n": sums.n}
    found["log_likelihood"] = (sums.evidence + mass * plan.offsets) / _LOG2E
    found["x"], found["xx"] = (sums.moments[:n_components, power, :d] for power in (0, 1))
    first = 0
    for name, n_lines in lines.items():
        found[name] = sums.lines[:, first : first + n_lines]
        first += n_lines
    if work.codes.size:
        found["label"] = sums.codes[:-1].T
    for name, part in wide.items():
        # model by model: shapes, and with them BLAS's order of summation, do not depend on other models
        products = [work.joint[model, :n] @ part for _, model in components.models]
        found[name] = np.concatenate(products, dtype=np.float64)
    return found


def _fill(n: int, outcomes: Outcomes, work: _Work) -> dict[str, int]:
    """Set weights, codes and lines to those of a chunk; return how many lines each outcome has."""
    work.weights[:n] = 1 if outcomes.weight is None else outcomes.weight
    work.weights[n:] = 0
    if work.codes.size:
        work.codes[:n] = np.where(outcomes.label < 0, outcomes.n_labels, outcomes.label)
        work.codes[n:] = outcomes.n_labels
    n_lines, first = {}, 0
    for name, part in _lines(outcomes).items():
        n_lines[name] = part.shape[1]
        work.lines[first : first + part.shape[1], :n] = part.T
        first += part.shape[1]
    return n_lines


def _give_agreement(prediction: np.ndarray, components: Components, joint: np.ndarray) -> None:
    """Start the densities with the terms of many predictions."""
    for _, model in components.models:
        probs = components.prediction_probs[model].astype(np.float32)
        agreement = np.log2(probs @ prediction.T + steps.EPSILON)
        joint[model, : len(prediction)] = np.float32(components.prediction_power) * agreement


@jit
def _add_rows(x: np.ndarray, plan: _Plan, work: _Work, sums: _Sums) -> float:
    """Add a chunk to its sums, tile by tile; return the lowest log2 density of a row."""
    lowest = np.inf
    joint = work.joint
    for start in range(0, x.shape[0], steps.TILE):
        tile = x[start : start + steps.TILE]
        weights = work.weights[start : start + steps.TILE]
        lowest = min(lowest, _expect(tile, start, weights, plan, work, sums.evidence))
        steps.add_masses(joint, sums.n)
        steps.add_outcomes(joint, work.lines, start, sums.lines)
        if sums.codes.size:
            steps.add_codes(joint, work.codes[start : start + steps.TILE], tile.shape[0], sums.codes)
        steps.add_moments(work.rows, joint, sums.moments)
    return lowest


@jit
def _expect(
    tile: np.ndarray, start: int, weights: np.ndarray, plan: _Plan, work: _Work, evidence: np.ndarray
) -> float:
    """Set `joint` to weighted responsibilities of a tile, whose outcomes begin at `start`.

    Adds the rows' log2 densities, less the offsets, to `evidence`, and returns the lowest.
    """
    joint, highest, lowest = work.joint, work.highest, np.inf
    transpose_rows(tile, work.rows, work.square)
    steps.start_joint(joint, plan.biases, plan.given)
    steps.subtract_distances(work.rows, plan.scales, plan.shifts, joint)
    n_labels = plan.label_terms.shape[1]
    steps.add_terms(joint, plan.label_terms, work.lines, start)
    if plan.code_terms.size:
        steps.add_entries(joint, plan.code_terms, work.codes[start : start + steps.TILE])
    if plan.agreement.size:
        steps.add_agreement(joint, plan.agreement, plan.power, work.lines[n_labels:], start, work.mass)
    for model in range(evidence.size):
        part = joint[plan.bounds[model] : plan.bounds[model + 1]]
        steps.normalise(part, weights, highest, work.mass)
        evidence[model] += steps.weighted_sum(weights, highest)
        for density in highest[: tile.shape[0]]:
            lowest = min(lowest, density)
    return lowest
