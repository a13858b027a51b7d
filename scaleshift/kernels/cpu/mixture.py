"""How is a pass of expectation-maximisation made fast? Each tile of rows is read once and stays in cache.

float32, for diagonal and spherical covariances. Exponents of densities are sums of ((x - mu) / sigma)^2, so
that nothing cancels; sums of a tile are float32 and are added up in float64.
"""

import numpy as np

from scaleshift.kernels import mixture as reference
from scaleshift.kernels.cpu import mixture_steps as steps
from scaleshift.kernels.cpu.jit import jit
from scaleshift.kernels.cpu.mixture_plan import (
    LOG2E,
    LOST,
    Plan,
    Sums,
    Work,
    count_lines,
    fill,
    give_agreement,
    is_representable,
    make_work,
    prepare,
    wide_outcomes,
)
from scaleshift.kernels.cpu.transpose import transpose_rows
from scaleshift.kernels.mixture import Components, Outcomes
from scaleshift.kernels.reference import host_codes

_CHUNK_TILES = 8  # for one call of the compiled loop: a few thousand rows


def mixture_sums(x: np.ndarray, outcomes: Outcomes, components: Components) -> dict[str, np.ndarray]:
    """One pass of expectation-maximisation over a block: the same as `mixture.mixture_sums`.

    In float32 for float32 rows and covariances of the types "diag" and "spherical"; all else is left to the
    reference, and so are some thousands of rows around one that is 10^14 standard deviations away from every
    component. Sums are off by about 1e-7 of their norm; log densities by 1e-7 of their value, which shows in
    responsibilities of rows that are hundreds of standard deviations away. Sums of a model do not depend on
    the others.

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
    outcomes = checked(x, outcomes, components)
    plan = prepare(components, outcomes)
    if not is_representable(plan):
        return reference.mixture_sums(x, outcomes, components)
    # a single tile where BLAS takes part, so that its responsibilities are at hand
    work = make_work(x.shape[1], outcomes, plan, 1 if wide_outcomes(outcomes) else _CHUNK_TILES)
    total: dict[str, np.ndarray] = {}
    n_rows = work.weights.size
    for start in range(0, max(len(x), 1), n_rows):
        rows = slice(start, start + n_rows)
        found = _chunk_sums(x[rows], outcomes.rows(rows), components, plan, work)
        if found is None:
            found = reference.mixture_sums(x[rows], outcomes.rows(rows), components)
        total = {name: total.get(name, 0.0) + value for name, value in found.items()}
    return total


def responsibilities(x: np.ndarray, outcomes: Outcomes, components: Components) -> np.ndarray:
    """P(S = k | a row's embedding and what is known of it) of one mixture: `mixture.responsibilities`.

    In float32, and in the cases in which `mixture_sums` is; all else is left to the reference.

    Parameters
    ----------
    x : (n, d) numpy.ndarray
        Embeddings about their mean.
    outcomes : Outcomes
        Weights and others than labels and predictions have no part in this.
    components : Components
        Of one model.

    Returns
    -------
    (n, K) numpy.ndarray
        float32, or float64 from the reference. Rows add up to 1.

    Raises
    ------
    ValueError
        As `mixture_sums`.

    Examples
    --------
    >>> two = Components("diag", (2,), np.array([0.5, 0.5]), np.array([[-5.0], [5.0]]), np.ones((2, 1)))
    >>> responsibilities(np.array([[-5.0], [0.0]], dtype=np.float32), Outcomes(), two).round(6).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    if x.dtype != np.float32 or components.covariance_type not in ("diag", "spherical"):
        return reference.responsibilities(x, outcomes, components)
    outcomes = checked(x, outcomes._replace(weight=None, extra=None), components)
    plan = prepare(components, outcomes)
    if not is_representable(plan):
        return reference.responsibilities(x, outcomes, components)
    work = make_work(x.shape[1], outcomes, plan, 1)
    no_sums = Sums(np.zeros(1), np.zeros(0), np.zeros((0, 2, 0)), np.zeros((0, 0)), np.zeros((0, 0)))
    result = np.empty((len(x), len(components.weights)), dtype=np.float32)
    for start in range(0, len(x), steps.TILE):
        rows = slice(start, start + steps.TILE)
        tile, known = x[rows], outcomes.rows(rows)
        if _add_chunk(tile, known, components, plan, work, no_sums):
            result[rows] = work.joint[: result.shape[1], : len(tile)].T
        else:
            result[rows] = reference.responsibilities(tile, known, components)
    return result


def checked(x: np.ndarray, outcomes: Outcomes, components: Components) -> Outcomes:
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


def _chunk_sums(
    x: np.ndarray, outcomes: Outcomes, components: Components, plan: Plan, work: Work
) -> dict[str, np.ndarray] | None:
    """The sums of a chunk of rows; None where a row is lost."""
    n, (n_components, d) = len(x), components.means.shape
    lines = count_lines(outcomes)
    wide = {name: np.asarray(part, np.float32) for name, part in wide_outcomes(outcomes).items()}
    sums = Sums(
        np.zeros(len(components.sizes)),
        np.zeros(n_components),
        np.zeros((plan.biases.size, 2, plan.scales.shape[1])),
        np.zeros((n_components, sum(lines.values()))),
        np.zeros((outcomes.n_labels + 1 if work.codes.size else 0, n_components)),
    )
    if not _add_chunk(x, outcomes, components, plan, work, sums):
        return None
    mass = float(n) if outcomes.weight is None else np.asarray(outcomes.weight, dtype=np.float64).sum()
    found = {"mass": np.array([mass]), "n": sums.n}
    found["log_likelihood"] = (sums.evidence + mass * plan.offsets) / LOG2E
    found["x"], found["xx"] = (sums.moments[:n_components, power, :d] for power in (0, 1))
    first = 0
    for name, n_lines in lines.items():
        found[name] = sums.lines[:, first : first + n_lines]
        first += n_lines
    if work.codes.size:
        found["label"] = sums.codes[:-1].T
    for name, part in wide.items():
        products = [work.joint[model, :n] @ part for _, model in components.models]
        found[name] = np.concatenate(products, dtype=np.float64)
    return found


def _add_chunk(
    x: np.ndarray, outcomes: Outcomes, components: Components, plan: Plan, work: Work, sums: Sums
) -> bool:
    """Add a chunk of rows to its sums; return whether no row is lost."""
    fill(len(x), outcomes, work)
    if plan.given:
        give_agreement(outcomes, components, work.joint)
    if _add_rows(np.require(x, requirements=["C", "ALIGNED"]), plan, work, sums) > LOST:
        return True
    work.rows[:] = work.joint[:] = 0  # what is left of lost rows would be padding of the next
    return False


@jit
def _add_rows(x: np.ndarray, plan: Plan, work: Work, sums: Sums) -> np.float32:
    """Add a chunk to its sums, tile by tile; return the lowest log2 density of a row, less the offset.

    After it `joint` has the weighted responsibilities of the last tile. One function for all steps: those it
    calls are optimised once more as part of it, those in between would be once more again.
    """
    rows, joint, highest, lowest = work.rows, work.joint, work.highest, np.float32(np.inf)
    predictions = work.lines[plan.first :]
    for start in range(0, x.shape[0], steps.TILE):
        tile = x[start : start + steps.TILE]
        weights = work.weights[start : start + steps.TILE]
        transpose_rows(tile, rows, work.square)
        steps.start_joint(joint[: plan.bounds[-1]], plan.biases, plan.given, plan.power)
        steps.subtract_distances(rows, plan.scales, plan.shifts, joint)
        steps.add_terms(joint, plan.label_terms, work.lines, start)
        if plan.code_terms.size:
            steps.add_entries(joint, plan.code_terms, work.codes[start : start + steps.TILE])
        if plan.agreement.size:
            steps.add_agreement(joint, plan.agreement, plan.power, predictions, start, work.mass)
        for model in range(sums.evidence.size):
            part = joint[plan.bounds[model] : plan.bounds[model + 1]]
            steps.normalise(part, weights, highest, work.mass)
            sums.evidence[model] += steps.weighted_sum(weights, highest)
            for density in highest[: tile.shape[0]]:
                lowest = density if density < lowest else lowest
        steps.add_masses(joint, sums.n)
        steps.add_outcomes(joint, work.lines, start, sums.lines)
        if sums.codes.size:
            steps.add_codes(joint, work.codes[start : start + steps.TILE], tile.shape[0], sums.codes)
        steps.add_moments(rows, joint, sums.moments)
    return lowest
