"""What do components and outcomes become for the mixture kernels of a GPU? Padded tables, records of sums."""

import math
from typing import NamedTuple

import numpy as np

from scaleshift.kernels.cpu.mixture_plan import has_codes, is_representable, prepare
from scaleshift.kernels.cuda.device import THREADS
from scaleshift.kernels.mixture import Components, Outcomes

# as in mixture.cu
LANES = 32
TILE = 128
CHUNK = 1024
_GROUP = 8
_TOGETHER = 32
_LABELS = 128

_PIECE_BYTES = 1 << 26  # of rows and what is known of them
_PIECE_CHUNKS = 1 << 10
_SCRATCH_BYTES = 1 << 26  # of densities and of sums of chunks


class Plan(NamedTuple):
    """Components as the kernels want them, padded, and what is summed of rows."""

    scales: np.ndarray  # (K', d')
    shifts: np.ndarray
    biases: np.ndarray  # (K',)
    agreement: np.ndarray  # (K', C') probabilities of predictions; zeros where they have no part in densities
    terms: np.ndarray  # (C + 1, K') of labels, 0 where one is missing
    bounds: np.ndarray  # (R + 1,) where models begin
    power: np.float32  # of agreement
    offsets: np.ndarray  # (R,) what biases are less by, in float64
    n_components: int
    d: int
    n_labels: int  # whose sums are asked for
    n_codes: int  # of these, those that become columns
    n_agreeing: int  # columns of predictions that have a part in densities: all or none
    n_classes: int  # columns of predictions
    n_extra: int

    @classmethod
    def of(cls, outcomes: Outcomes, components: Components) -> "Plan | None":
        """Scale, pad and round; None where float32 does not hold it."""
        _check_classes(outcomes, components)
        plan = prepare(components, outcomes)
        if not is_representable(plan):
            return None
        n_components, d = components.means.shape
        n_padded = round_up(n_components, _TOGETHER)
        agreement = components.prediction_probs
        if outcomes.prediction is None or agreement is None:
            agreement = np.zeros((n_components, 1))
        logs = plan.code_terms[:, :-1] if plan.code_terms.size else plan.label_terms
        terms = np.zeros((logs.shape[1] + 1, n_padded), dtype=np.float32)
        terms[:-1, :n_components] = logs.T
        n_labels = 0 if outcomes.label is None else outcomes.n_labels
        n_classes = 0 if outcomes.prediction is None else outcomes.prediction.shape[1]
        return cls(
            _padded(plan.scales, n_components, n_padded),
            _padded(plan.shifts, n_components, n_padded),
            _padded(plan.biases[:, None], n_components, n_padded)[:, 0],
            _padded(agreement, n_components, n_padded),
            terms,
            plan.bounds.astype(np.int32),
            plan.power,
            plan.offsets,
            n_components,
            d,
            n_labels,
            0 if has_codes(outcomes) else n_labels,
            n_agreeing=0 if components.prediction_probs is None else n_classes,
            n_classes=n_classes,
            n_extra=0 if outcomes.extra is None else outcomes.extra.shape[1],
        )

    @property
    def tables(self) -> tuple[np.ndarray, ...]:
        """What the kernels read again and again."""
        return self.scales, self.shifts, self.biases, self.agreement, self.terms, self.bounds

    @property
    def n_models(self) -> int:
        """R."""
        return self.bounds.size - 1

    @property
    def blocks(self) -> int:
        """Blocks of components."""
        return len(self.biases) // _TOGETHER

    @property
    def width(self) -> int:
        """Columns whose sums are products: those of x, 1, and those of outcomes."""
        return self.d + 1 + self.n_codes + self.n_classes + self.n_extra

    @property
    def tiles(self) -> tuple[int, int]:
        """Blocks of columns, and those of them that have columns of x."""
        return -(-self.width // LANES), -(-self.d // LANES)

    @property
    def products(self) -> int:
        """Length of the part of a record that is made of products."""
        return sum(self.tiles) * self.blocks * THREADS * _GROUP

    @property
    def label_tiles(self) -> int:
        """Blocks of labels that are many."""
        return -(-self.n_labels // _LABELS) if self.n_labels > self.n_codes else 0

    @property
    def length(self) -> int:
        """Of a record: the sums of a chunk."""
        return self.products + self.label_tiles * _LABELS * len(self.biases)

    @property
    def piece_rows(self) -> int:
        """Rows on a lane at a time: whatever the components."""
        row_bytes = 4 * (self.d + self.n_classes + self.n_extra + 2)
        return CHUNK * min(max(_PIECE_BYTES // (CHUNK * row_bytes), 1), _PIECE_CHUNKS)

    @property
    def work_rows(self) -> int:
        """Rows whose densities are there at a time."""
        chunk_bytes = 4 * CHUNK * len(self.biases) + 8 * self.length
        return CHUNK * max(_SCRATCH_BYTES // chunk_bytes, 1)

    def named(self, record: np.ndarray, outcomes: Outcomes) -> dict[str, np.ndarray]:
        """Undo the layout of a record: sums by name."""
        parts = []
        start = 0
        for tiles in self.tiles:
            shape = tiles, self.blocks, _GROUP, THREADS // LANES, LANES
            part = record[start : start + math.prod(shape)].reshape(shape)
            start += part.size
            by_component = part.transpose(1, 3, 2, 0, 4).reshape(len(self.biases), -1)
            parts.append(by_component[: self.n_components])
        products, squares = parts
        found = {"x": products[:, : self.d], "xx": squares[:, : self.d], "n": products[:, self.d]}
        first = self.d + 1
        for name, count in (("label", self.n_codes), ("prediction", self.n_classes), ("extra", self.n_extra)):
            if getattr(outcomes, name) is not None:
                found[name] = products[:, first : first + count]
            first += count
        if self.label_tiles:
            by_label = record[start:].reshape(-1, len(self.biases))
            found["label"] = by_label[: self.n_labels, : self.n_components].T
        return found


def round_up(number: int, step: int) -> int:
    """The least multiple of a step that is no smaller.

    Examples
    --------
    >>> round_up(33, 32)
    64
    """
    return -(-number // step) * step


def _check_classes(outcomes: Outcomes, components: Components) -> None:
    """Refuse tables of other classes than outcomes have: a GPU would read beyond them."""
    asked = {
        "label_probs": None if outcomes.label is None else outcomes.n_labels,
        "prediction_probs": None if outcomes.prediction is None else outcomes.prediction.shape[1],
    }
    for name, n_classes in asked.items():
        table = getattr(components, name)
        if table is not None and n_classes is not None and table.shape[1] != n_classes:
            raise ValueError(f"{name} has {table.shape[1]} columns, but outcomes have {n_classes} classes")


def _padded(table: np.ndarray, n: int, n_padded: int) -> np.ndarray:
    """The first n rows of a table in float32, and zeros: whole blocks of components and 32 columns."""
    result = np.zeros((n_padded, round_up(table.shape[1], LANES)), dtype=np.float32)
    result[:n, : table.shape[1]] = table[:n]
    return result
