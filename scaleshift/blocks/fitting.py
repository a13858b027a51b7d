"""Does a planned job fit, and what would?  Chunks, threads, memory, features: from the plan's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaleshift.blocks.room import Room
from scaleshift.blocks.sizes import count, size

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Pass

PROCESS_BYTES = 300_000_000  # of a Python process with the packages and compiled kernels, about
SHARE_OF_MEMORY = 1 / 3  # of a worker: a state above it cannot be merged with others
FEWEST_ROWS = 100  # of a chunk that is worth a task


@dataclass(frozen=True)
class Fit:
    """The passes of a job, and the memory that they have."""

    passes: Sequence[Pass]
    room: Room
    block_rows: int
    base: int  # what a process takes before a job

    def peak(self, n_threads: int | None = None) -> int:
        """Memory of a process that works on so many blocks at once."""
        n = self.room.n_threads if n_threads is None else n_threads
        needs = (max(n * part.thread_bytes + part.worker_bytes, part.merge_bytes) for part in self.passes)
        return self.base + max(needs, default=0)

    @property
    def left(self) -> list[tuple[Pass, int]]:
        """Memory that the threads share in each pass."""
        assert self.room.n_bytes is not None
        return [(part, self.room.n_bytes - self.base - part.worker_bytes) for part in self.passes]

    @property
    def merges(self) -> bool:
        """Whether the states fit as they merge; else neither smaller chunks nor fewer threads help."""
        assert self.room.n_bytes is not None
        return self.base + max(part.merge_bytes for part in self.passes) <= self.room.n_bytes

    @property
    def n_threads(self) -> int:
        """Threads that fit, 0 where not even one does."""
        if not self.merges:
            return 0
        return max(min(left // max(part.thread_bytes, 1) for part, left in self.left), 0)

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk that fit on all threads; 0 where chunks are not what is too large."""
        if not self.merges:
            return 0
        rows = float(self.block_rows)
        for part, left in self.left:
            by_row = (part.thread_bytes - part.fixed_bytes) / max(self.block_rows, 1)
            if by_row > 0:
                rows = min(rows, (left / self.room.n_threads - part.fixed_bytes) / by_row)
            elif self.room.n_threads * part.thread_bytes > left:
                return 0
        return int(rows) if rows >= FEWEST_ROWS else 0


def fit_of(passes: Sequence[Pass], room: Room, block_rows: int) -> Fit:
    """The passes beside what there is; this process, which plans, is there already."""
    return Fit(passes, room, block_rows, PROCESS_BYTES if room.is_cluster else 0)


def fewer_of(share: float, what: str, n: int, power: int = 1) -> str:
    """How many of something make a state so much smaller, which grows with a power of their number.

    Examples
    --------
    >>> fewer_of(0.25, "features", 1_000, power=2)
    '500 features in place of 1,000'
    """
    return f"{int(n * share ** (1 / power)):,} {what} in place of {n:,}"


def problems(fit: Fit, way_out: str, fewer: Callable[[float], str] | None) -> list[str]:
    """What of a job does not fit, with the way out in numbers; nothing where no limit is known.

    Parameters
    ----------
    fit : Fit
    way_out : str
        What to do where states are too large.
    fewer : callable, optional
        ``fewer(share) -> text``: the sizes, such as a number of features, whose states are at most that share
        of what they are now.
    """
    limit = fit.room.n_bytes
    if limit is None or not fit.passes:
        return []
    found, whose = [], fit.room.whose
    state, peak = max(part.state_bytes for part in fit.passes), fit.peak()
    allowed = limit * SHARE_OF_MEMORY
    if state > allowed:
        numbers = [fewer(allowed / state)] if fewer else []
        found.append(
            f"a state of {size(state)} is more than a third of {whose}'s {size(limit)}: {way_out}; what "
            f"would fit: {', or '.join([*numbers, f'{size(state / SHARE_OF_MEMORY)} of memory'])}"
        )
    if peak > limit:
        threads = count(fit.room.n_threads, "thread", "threads")
        if fit.room.is_cluster:
            subject, advice = f"a worker of {threads}", "give workers fewer threads or more memory"
        else:
            subject, advice = f"this machine with {threads}", "take fewer threads"
        found.append(
            f"{subject} may need {size(peak)} and has {size(limit)}: {advice}, or store smaller chunks; what "
            f"would fit: {', or '.join(_ways(fit, peak))}"
        )
    return found


def _ways(fit: Fit, peak: int) -> list[str]:
    rows, threads = fit.chunk_rows, fit.n_threads
    return [
        *([f"chunks of about {rows:,} rows in place of {fit.block_rows:,}"] if rows else []),
        *([count(threads, "thread", "threads")] if threads else []),
        f"{size(peak)} of memory",
    ]
