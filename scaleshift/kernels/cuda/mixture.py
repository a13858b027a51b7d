"""Passes of expectation-maximisation on a GPU: see mixture.cu for how, `cpu.mixture` for the same on a CPU.

Blocks are cut into pieces by the shape of their rows alone, pieces into chunks of 1024 rows; sums of chunks,
then of pieces, are added in the order of the rows. So sums have the same bits at every run, and those of a
model do not depend on the others.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from scaleshift.kernels import mixture as reference
from scaleshift.kernels.cpu.mixture import checked
from scaleshift.kernels.cpu.mixture_plan import LOG2E
from scaleshift.kernels.cuda import device
from scaleshift.kernels.cuda.device import THREADS, Kernels, Lane
from scaleshift.kernels.cuda.mixture_plan import CHUNK, LANES, TILE, Plan, round_up
from scaleshift.kernels.mixture import Components, Outcomes
from scaleshift.kernels.reference import Array, library, namespace

_KERNELS = Kernels.of("mixture")


def mixture_sums(x: Array, outcomes: Outcomes, components: Components) -> dict[str, np.ndarray]:
    """One pass of expectation-maximisation over a block: the same as `mixture.mixture_sums`.

    In float32 for float32 rows and covariances of the types "diag" and "spherical"; all else is left to the
    reference, and so are the 1024 rows around one that is 10^14 standard deviations away from every
    component. Sums are off by about 1e-7 of their norm. Sums of a model do not depend on the others.

    Device memory: of each of two pieces 64 MB of rows and what is known of them, and 64 MB of densities (4
    bytes a row and component) and sums (8 bytes each, of every 1024 rows), or what 1024 rows need where that
    is more; besides the parameters.
    Resident arrays are used as they are where they are contiguous and float32, and copied as a whole
    otherwise; labels are checked on the host.

    Parameters
    ----------
    x : (n, d) array
        Embeddings about their mean, numpy or CuPy: an offset of many standard deviations costs digits. Free
        of NaN.
    outcomes : Outcomes
        Of numpy or CuPy arrays.
    components : Components

    Returns
    -------
    dict of float64 numpy.ndarray
        mass, log_likelihood, n, x, xx and, where given, label, prediction and extra, as in the reference.

    Raises
    ------
    ValueError
        If a label is not below `n_labels`, there is not one a row, or the columns do not match.
    """
    if x.dtype != np.float32 or components.covariance_type not in ("diag", "spherical"):
        return reference.mixture_sums(x, outcomes, components)
    outcomes = checked(x, outcomes, components)
    plan = Plan.of(outcomes, components)
    if plan is None:
        return reference.mixture_sums(x, outcomes, components)
    totals = np.zeros(plan.length), np.zeros(plan.n_models)
    lost: list[slice] = []
    for rows, found in _worked(_Sums, x, outcomes, plan, plan.piece_rows):
        for total, part in zip(totals, found, strict=False):
            total += part
        lost += _lost_chunks(rows, found[-1])
    weight = outcomes.weight
    mass = float(len(x) if weight is None else namespace(weight).asarray(weight, dtype=np.float64).sum())
    left = [reference.mixture_sums(x[rows], outcomes.rows(rows), components) for rows in lost]
    mass -= sum(part["mass"][0] for part in left)
    sums = {"mass": np.array([mass]), **plan.named(totals[0], outcomes)}
    sums["log_likelihood"] = (totals[1] + mass * plan.offsets) / LOG2E
    return {name: value + sum(part[name] for part in left) for name, value in sums.items()}


def responsibilities(x: Array, outcomes: Outcomes, components: Components) -> np.ndarray:
    """P(S = k | a row's embedding and what is known of it) of one mixture: `mixture.responsibilities`.

    In float32, and in the cases in which `mixture_sums` is; all else is left to the reference.

    Parameters
    ----------
    x : (n, d) array
        Embeddings about their mean, numpy or CuPy.
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
    """
    if x.dtype != np.float32 or components.covariance_type not in ("diag", "spherical"):
        return reference.responsibilities(x, outcomes, components)
    outcomes = checked(x, outcomes._replace(weight=None, extra=None), components)
    plan = Plan.of(outcomes, components)
    if plan is None:
        return reference.responsibilities(x, outcomes, components)
    result = np.empty((len(x), plan.n_components), dtype=np.float32)
    for rows, (found, lost) in _worked(_Shares, x, outcomes, plan, min(plan.piece_rows, plan.work_rows)):
        result[rows] = found
        for chunk in _lost_chunks(rows, lost):
            result[chunk] = reference.responsibilities(x[chunk], outcomes.rows(chunk), components)
    return result


def _worked(
    kind: "type[_Sums | _Shares]", x: Array, outcomes: Outcomes, plan: Plan, size: int
) -> Iterator[tuple[slice, tuple[np.ndarray, ...]]]:
    """Let two lanes work on pieces in turn, and yield what they found, in the order of the rows."""
    x = _resident(x)
    outcomes = outcomes._replace(
        prediction=_resident(outcomes.prediction),
        weight=_resident(outcomes.weight),
        extra=_resident(outcomes.extra),
    )
    with device.device_of(x).lanes(min(2, -(-len(x) // size))) as lanes:
        idle = deque(kind(lane, plan, min(size, len(x))) for lane in lanes)
        busy: deque[tuple[slice, _Sums | _Shares]] = deque()
        for start in range(0, len(x), size):
            if not idle:
                rows, worker = busy.popleft()
                yield rows, worker.finish()
                idle.append(worker)
            rows = slice(start, min(start + size, len(x)))
            idle[0].start(x[rows], outcomes.rows(rows))
            busy.append((rows, idle.popleft()))
        for rows, worker in busy:
            yield rows, worker.finish()


def _resident(part: Array | None) -> Array | None:
    """An array on a GPU as contiguous float32; those on the host become that on their way."""
    if part is None or library(part) != "cupy":
        return part
    return namespace(part).ascontiguousarray(part, dtype=np.float32)


def _lost_chunks(rows: slice, lost: np.ndarray) -> list[slice]:
    """Rows of the chunks of a piece that are left to the reference."""
    starts = rows.start + CHUNK * np.flatnonzero(lost)
    return [slice(start, min(start + CHUNK, rows.stop)) for start in starts.tolist()]


class _Given(NamedTuple):
    """A piece on the device: an array of one number in place of what is not there."""

    x: Array
    codes: Array
    weights: Array
    prediction: Array
    extra: Array


class _Worker:
    """A lane with the tables of a plan, and memory for the densities of some rows."""

    def __init__(self, lane: Lane, plan: Plan, n: int) -> None:
        self._lane, self._plan = lane, plan
        self._tables = [lane.upload(table) for table in plan.tables]
        self._work_rows = min(plan.work_rows, round_up(n, CHUNK))
        self._joint = lane.empty((len(plan.biases), self._work_rows), np.float32)
        self._given: _Given
        self._lost: Array

    def _send(self, x: Array, outcomes: Outcomes) -> None:
        """Bring a piece to the device."""
        label = outcomes.label
        codes = np.zeros(1) if label is None else np.where(np.less(label, 0), outcomes.n_labels, label)
        parts = (outcomes.weight, outcomes.prediction, outcomes.extra)
        self._given = _Given(
            self._sent(x),
            self._lane.upload(codes, np.int32),
            *(self._sent(np.zeros(1) if part is None else part) for part in parts),
        )
        self._lost = self._lane.upload(np.zeros(-(-len(x) // CHUNK), dtype=np.int32))

    def _sent(self, part: Array) -> Array:
        return self._lane.upload(part, np.float32) if isinstance(part, np.ndarray) else part

    def _received(self, *parts: Array) -> tuple[np.ndarray, ...]:
        """What was found, once it is there; the piece makes room for the next one."""
        found = tuple(self._lane.download(part) for part in parts)
        del self._given
        return found

    def _launch(self, function: str, grid: tuple[int, ...], *arguments: Any) -> None:
        self._lane.launch(_KERNELS, function, grid, arguments)

    def _find_shares(self, rows: slice, weighted: bool, evidence: Array) -> None:
        """Set the responsibilities of some rows of the piece, times weights if there are any."""
        plan, given = self._plan, self._given
        scales, shifts, biases, agreement, terms, bounds = self._tables
        n, stride = np.int32(rows.stop - rows.start), np.int32(self._work_rows)
        tiles = -(-int(n) // TILE)
        grid, joint, n_components = (plan.blocks, tiles), (self._joint, stride), np.int32(plan.n_components)
        agreeing = np.int32(plan.n_agreeing)
        if agreeing:
            table = agreement, n_components, plan.power
            self._launch("mixture_agreement", grid, given.prediction[rows], n, agreeing, *table, *joint)
        gaussian = scales, shifts, biases, n_components
        known = given.codes[rows], terms, np.int32(len(terms) > 1), agreeing
        self._launch("mixture_joint", grid, given.x[rows], n, np.int32(plan.d), *gaussian, *known, *joint)
        weights = given.weights[rows], np.int32(weighted)
        lost = self._lost[rows.start // CHUNK :]
        self._launch("mixture_shares", (plan.n_models, tiles), *joint, n, bounds, *weights, evidence, lost)


class _Sums(_Worker):
    """A worker that sums."""

    def __init__(self, lane: Lane, plan: Plan, n: int) -> None:
        super().__init__(lane, plan, n)
        self._records = lane.empty((self._work_rows // CHUNK, plan.length), np.float64)
        self._evidence = lane.empty((self._work_rows // TILE, plan.n_models), np.float64)
        self._totals: tuple[Array, Array]

    def start(self, x: Array, outcomes: Outcomes) -> None:
        """Begin with a piece."""
        plan = self._plan
        self._send(x, outcomes)
        self._totals = self._lane.upload(np.zeros(plan.length)), self._lane.upload(np.zeros(plan.n_models))
        for start in range(0, len(x), self._work_rows):
            rows = slice(start, min(start + self._work_rows, len(x)))
            self._find_shares(rows, outcomes.weight is not None, self._evidence)
            self._add_products(rows)
            for total, records in zip(self._totals, (self._records, self._evidence), strict=True):
                self._add(records, total, rows)

    def finish(self) -> tuple[np.ndarray, ...]:
        """Sums, evidence of the models, and which chunks are lost."""
        return self._received(*self._totals, self._lost)

    def _add_products(self, rows: slice) -> None:
        """Set the records of the chunks of some rows."""
        plan, given = self._plan, self._given
        n = np.int32(rows.stop - rows.start)
        chunks = -(-int(n) // CHUNK)
        codes, length = given.codes[rows], np.int64(plan.length)
        shares = self._joint, np.int32(self._work_rows)
        labels = codes, np.int32(plan.n_codes)
        predictions = given.prediction[rows], np.int32(plan.n_classes)
        extra = given.extra[rows], np.int32(plan.n_extra)
        columns = given.x[rows], n, np.int32(plan.d), *labels, *predictions, *extra
        to = np.int32(plan.n_components), self._records, length
        grid = plan.blocks, plan.tiles[0], chunks
        self._launch("mixture_products", grid, *columns, *shares, *to)
        records = self._records.reshape(-1)[plan.products :]
        grid = plan.blocks, plan.label_tiles, chunks
        self._launch("mixture_labels", grid, codes, n, *shares, records, length)

    def _add(self, records: Array, total: Array, rows: slice) -> None:
        """Add the records of some rows, one a chunk or a power of two."""
        parts = len(records) // (self._work_rows // CHUNK)
        n, shift = -(-(rows.stop - rows.start) * parts // CHUNK), parts.bit_length() - 1
        sizes = np.int32(n), np.int32(shift), np.int64(total.size)
        lost = self._lost[rows.start // CHUNK :]
        self._launch("mixture_add", (-(-total.size // THREADS),), records, *sizes, lost, total)


class _Shares(_Worker):
    """A worker that finds the responsibilities of the rows of a piece, which are no more than it works on."""

    def __init__(self, lane: Lane, plan: Plan, n: int) -> None:
        super().__init__(lane, plan, n)
        self._evidence = lane.empty((self._work_rows // TILE, 1), np.float64)
        self._turned = lane.empty((self._work_rows, plan.n_components), np.float32)
        self._n = 0

    def start(self, x: Array, outcomes: Outcomes) -> None:
        """Begin with a piece."""
        self._n = len(x)
        self._send(x, outcomes)
        self._find_shares(slice(0, self._n), False, self._evidence)
        sizes = np.int32(self._work_rows), np.int32(self._n), np.int32(self._plan.n_components)
        grid = -(-self._n // LANES), self._plan.blocks
        self._launch("mixture_turn", grid, self._joint, *sizes, self._turned)

    def finish(self) -> tuple[np.ndarray, ...]:
        """Responsibilities, and which chunks are lost."""
        return self._received(self._turned[: self._n], self._lost)
