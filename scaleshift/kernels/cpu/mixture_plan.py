"""What do components and outcomes become for the loop of the mixture pass? Padded arrays of float32."""

from typing import NamedTuple

import numpy as np

from scaleshift.kernels.cpu import mixture_steps as steps
from scaleshift.kernels.cpu.transpose import SIDE
from scaleshift.kernels.cpu.work import work_rows
from scaleshift.kernels.mixture import EPSILON, Components, Outcomes
from scaleshift.kernels.reference import Array

# Up to here outcomes are lines of numbers; beyond, labels are codes, and other outcomes are left to BLAS
_FEW_LABELS = 8
_FEW = 32
LOST = -1e29  # log2 density of a row below which it is lost: float32 does not hold it
LOG2E = np.log2(np.e)
_NEVER = np.float32(-1e30)  # log2 density of a component of weight 0


class Plan(NamedTuple):
    """Components as the compiled loop wants them: densities are 2^(bias - sum (scale x + shift)^2)."""

    scales: np.ndarray  # (K', d') float32, K' even and d' a multiple of a block's columns
    shifts: np.ndarray
    biases: np.ndarray  # (K'',) float32, K'' a multiple of a block's components
    offsets: np.ndarray  # (R,) what biases are less by, in float64
    bounds: np.ndarray  # (R + 1,) where models begin
    label_terms: np.ndarray  # (K, C) float32, by lines of the outcomes
    code_terms: np.ndarray  # (K, C + 1) float32, by code, where there are many labels
    agreement: np.ndarray  # (K, C) float32: probabilities of predictions, where they are few
    power: np.float32  # of agreement
    first: int  # line of the first of these predictions
    given: bool  # whether the loop finds terms of the densities in `joint`


class Work(NamedTuple):
    """What a chunk of rows is turned into."""

    rows: np.ndarray  # (d'', tile) columns of a tile
    square: np.ndarray
    joint: np.ndarray  # (K'', tile) densities, then responsibilities
    highest: np.ndarray
    mass: np.ndarray
    weights: np.ndarray  # (chunk,) float32, 0 beyond the rows
    codes: np.ndarray  # (chunk,) int32 labels, the last one is missing; empty where they are few
    lines: np.ndarray  # (lines, chunk) float32 labels as 0 or 1, predictions, others


class Sums(NamedTuple):
    """What the compiled loop adds to."""

    evidence: np.ndarray  # (R,)
    n: np.ndarray  # (K,)
    moments: np.ndarray  # (K'', 2, d')
    lines: np.ndarray  # (K, lines)
    codes: np.ndarray  # (C + 1, K)


def is_representable(plan: Plan) -> bool:
    """Whether float32 holds the parameters, and each model has a component of some weight."""
    numbers = plan.scales, plan.shifts, plan.biases
    return bool(all(np.isfinite(part).all() for part in numbers) and (plan.offsets > LOST).all())


def _few(outcome: Array) -> bool:
    """Whether an outcome becomes lines of numbers."""
    return bool(outcome.shape[1] <= _FEW)


def wide_outcomes(outcomes: Outcomes) -> dict[str, np.ndarray]:
    """Outcomes that need products by BLAS."""
    parts = {"prediction": outcomes.prediction, "extra": outcomes.extra}
    return {name: part for name, part in parts.items() if part is not None and not _few(part)}


def has_codes(outcomes: Outcomes) -> bool:
    """Whether there are labels, and too many for lines."""
    return outcomes.label is not None and outcomes.n_labels > _FEW_LABELS


def count_lines(outcomes: Outcomes) -> dict[str, int]:
    """How many lines of numbers each outcome becomes, if it does."""
    counts = {"label": outcomes.n_labels} if outcomes.label is not None and not has_codes(outcomes) else {}
    parts = {"prediction": outcomes.prediction, "extra": outcomes.extra}
    return counts | {name: part.shape[1] for name, part in parts.items() if part is not None and _few(part)}


def prepare(components: Components, outcomes: Outcomes) -> Plan:
    """Scale, pad and round the parameters; only terms of outcomes that are known."""
    scales, shifts, bias = _gaussian_terms(components)
    n_components, d = components.means.shape
    # what models have in common is added in float64: biases near 0 have small rounding errors
    offsets = np.array([bias[model].max() for _, model in components.models])
    biases = np.zeros(_round_up(n_components, steps.COMPONENTS), dtype=np.float32)
    biases[:n_components] = np.maximum(bias - np.repeat(offsets, components.sizes), _NEVER)
    few = many = agreement = np.zeros((n_components, 0), dtype=np.float32)
    if outcomes.label is not None and components.label_probs is not None:
        logs = np.log2(components.label_probs + EPSILON) * components.label_power
        if has_codes(outcomes):
            many = np.pad(logs.astype(np.float32), ((0, 0), (0, 1)))
        else:
            few = logs.astype(np.float32)
    given = False
    if outcomes.prediction is not None and components.prediction_probs is not None:
        given = not _few(outcomes.prediction)
        agreement = agreement if given else components.prediction_probs.astype(np.float32)
    return Plan(
        scales,
        shifts,
        biases,
        offsets - 0.5 * d * np.log2(2 * np.pi),
        np.cumsum((0, *components.sizes), dtype=np.int64),
        few,
        many,
        agreement,
        np.float32(components.prediction_power),
        count_lines(outcomes).get("label", 0),
        given,
    )


def _gaussian_terms(components: Components) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scales and shifts, padded with zeros; log2 of weight and determinant, (K,) float64."""
    n_components, d = components.means.shape
    variances = np.asarray(components.covariances, dtype=np.float64).reshape(n_components, -1)
    variances = np.broadcast_to(variances, (n_components, d))
    shape = _round_up(n_components, 2), _round_up(d, steps.COLUMNS)
    scales, shifts = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    # weights of 0, and variances that float32 does not hold, which `is_representable` finds
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scales[:n_components, :d] = np.sqrt(0.5 * LOG2E / variances)
        shifts[:n_components, :d] = -components.means * scales[:n_components, :d].astype(np.float64)
        bias = np.log2(components.weights) - 0.5 * np.log2(variances).sum(axis=1)
    return scales, shifts, np.maximum(bias, _NEVER)


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def make_work(d: int, outcomes: Outcomes, plan: Plan, n_tiles: int) -> Work:
    """Zeros for a chunk."""
    n_rows = n_tiles * steps.TILE
    return Work(
        work_rows(_round_up(d, SIDE), steps.TILE),
        np.zeros((SIDE, SIDE), dtype=np.float32),
        work_rows(plan.biases.size, steps.TILE),
        work_rows(1, steps.TILE)[0, : steps.TILE],
        work_rows(1, steps.TILE)[0, : steps.TILE],
        np.zeros(n_rows, dtype=np.float32),
        np.zeros(n_rows if has_codes(outcomes) else 0, dtype=np.int32),
        work_rows(sum(count_lines(outcomes).values()), n_rows),
    )


def fill(n: int, outcomes: Outcomes, work: Work) -> None:
    """Set weights, codes and lines to those of a chunk."""
    work.weights[:n] = 1 if outcomes.weight is None else outcomes.weight
    work.weights[n:] = 0
    label = np.asarray(outcomes.label)
    if work.codes.size:
        work.codes[:n] = np.where(np.less(label, 0), outcomes.n_labels, label)
        work.codes[n:] = outcomes.n_labels
    lines = iter(work.lines[:, :n])
    for name, count in count_lines(outcomes).items():
        for c in range(count):
            if name == "label":
                np.equal(label, c, out=next(lines))
            else:
                next(lines)[:] = getattr(outcomes, name)[:, c]


def give_agreement(outcomes: Outcomes, components: Components, joint: np.ndarray) -> None:
    """Set `joint` to the agreement of components with many predictions, of the rows of one tile."""
    prediction = np.asarray(outcomes.prediction, dtype=np.float32)
    probs = np.asarray(components.prediction_probs, dtype=np.float32)
    for _, model in components.models:
        # model by model: shapes, and with them BLAS's order of summation, do not depend on other models
        joint[model, : len(prediction)] = (prediction @ probs[model].T).T
