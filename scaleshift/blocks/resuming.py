"""How does a killed fit go on?  What is finished lies in a folder, and is not made again."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from scaleshift import checkpoint
from scaleshift.blocks import graph, noise, passes
from scaleshift.blocks.block import Block, Rows
from scaleshift.blocks.rows import first_rows
from scaleshift.checkpoint import Checkpoint
from scaleshift.errors import DataError
from scaleshift.parameters import check, is_whole

LOOKED_AT = 100  # rows at the start, in the middle and at the end, whose sums tell data apart
TILE = 4_096  # rows
INFINITE = 1e9  # in place of the largest numbers, beside which others vanish
Made = TypeVar("Made")


def seed_of(path: Any, random_state: Any) -> int:
    """Seed of an earlier fit that was killed, or a new one; one that is given is obeyed."""
    if path is not None:
        is_path = isinstance(path, str | os.PathLike) and "\0" not in (name := os.fspath(path)) and name
        check("checkpoint", path, lambda _: is_path, "the path of a folder, or None")
    resumed = None if path is None or is_whole(random_state) else checkpoint.read(_inside(path, "job"))
    return noise.seed_of(random_state) if resumed is None else resumed.seed


def kept_in(path: str | os.PathLike[str], fingerprint: str, seed: int) -> Kept:
    """The folder of a job, made or found.

    Raises
    ------
    DataError
        If it is of another job, or no folder.
    """
    job = _inside(path, "job")
    found = checkpoint.read(job)
    checkpoint.check(found, fingerprint, path)
    if found is None:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"checkpoint={os.fspath(path)!r} is no folder ({error.strerror}): choose another"
            ) from error
        checkpoint.write(job, Checkpoint(fingerprint, seed, {}))
    return Kept(os.fspath(path), fingerprint, seed)


class Kept:
    """What a job has finished, in a folder."""

    def __init__(self, path: str, fingerprint: str, seed: int):
        self.path, self.fingerprint, self.seed = path, fingerprint, seed

    def __call__(self, name: str, make: Callable[[], Made]) -> Made:
        """What has a name: that which is there, or which is made now."""
        found = self.read(name)
        if found is not None:
            return found
        made = make()
        self.write(name, made)
        return made

    def read(self, name: str) -> Any:
        """What has a name, or None."""
        found = checkpoint.read(_inside(self.path, name))
        checkpoint.check(found, self.fingerprint, self.path)
        return None if found is None else found.state

    def write(self, name: str, made: Any) -> None:
        """Keep what has a name."""
        checkpoint.write(_inside(self.path, name), Checkpoint(self.fingerprint, self.seed, made))

    def forget(self, beginning: str) -> None:
        """Delete what has names that begin so."""
        for name in os.listdir(self.path):
            if name.startswith(beginning):
                shutil.rmtree(_inside(self.path, name), ignore_errors=True)


class Walk:
    """The passes of a fit in their order: a driver that was killed walks the same way again, without them.

    What a driver asks next follows from the passes before, so that their number tells which one it is.

    Parameters
    ----------
    kept : Kept or None
        None: nothing is kept.
    name : str
        Of its passes.
    """

    def __init__(self, kept: Kept | None, name: str = "pass"):
        self.kept, self.name, self.n = kept, name, 0

    def step(self, make: Callable[[], Made]) -> Made:
        """What the next pass gives."""
        if self.kept is None:
            return make()
        self.n += 1
        return self.kept(f"{self.name}-{self.n:04d}", make)

    def part(self, make: Callable[[Walk], Made]) -> Made:
        """What some passes give together; once it is there, they are forgotten."""
        if self.kept is None:
            return make(self)
        inner = Walk(self.kept, f"{self.name}-{self.n + 1:04d}")
        found = self.step(lambda: make(inner))
        self.kept.forget(f"{inner.name}-")
        return found


class KeptReplicates:
    """Finished replicates in the folder of a job: a part of it a wave.

    Parameters
    ----------
    kept : Kept
    name : str
        What they are replicates of.
    """

    def __init__(self, kept: Kept, name: str):
        self.kept, self.name = kept, name

    def read(self) -> dict[int, dict[str, np.ndarray]]:
        """Results by key."""
        found: dict[int, dict[str, np.ndarray]] = {}
        for number in self._waves():
            wave = self.kept.read(f"{self.name}-{number:06d}")
            for place, key in enumerate(wave["key"].tolist()):
                found[key] = {name: np.asarray(each[place]) for name, each in wave["results"].items()}
        return found

    def add(self, results: Mapping[int, Mapping[str, np.ndarray]]) -> None:
        """Keep a wave, whose results have the same names and shapes."""
        names = next(iter(results.values()))
        stacked = {name: np.stack([result[name] for result in results.values()]) for name in names}
        wave = {"key": np.array(list(results), np.int64), "results": stacked}
        self.kept.write(f"{self.name}-{max(self._waves(), default=-1) + 1:06d}", wave)

    def _waves(self) -> list[int]:
        pattern = re.compile(re.escape(self.name) + r"-(\d{6,})")
        found = map(pattern.fullmatch, os.listdir(self.kept.path))
        return sorted(int(name[1]) for name in found if name)


def rows_told(rows: Rows) -> dict[str, Any]:
    """What tells rows from others by X alone, the same for any chunks of them."""
    return {
        "rows": [rows.x.shape[0], rows.n_markers, rows.markers],
        "looked_at": [short(factors(0, len(few)) @ few.astype(np.float64)) for few in _some_rows(rows)],
    }


def columns_told(rows: Rows) -> dict[str, list[str]]:
    """What tells the columns of rows from others: one pass over them."""
    if not rows.columns:
        return {}
    layout = {name: () for name in rows.columns}
    return {
        name: short(total[None]) for name, total in passes.total(sums_told, rows.without_x(), layout).items()
    }


def sums_told(block: Block) -> dict[str, np.ndarray]:
    """Sums of each column, each value times a factor of its row and place: the order counts."""
    n = len(block.valid)
    factor = factors(block.start, n)
    found = {}
    for name, values in block.columns.items():
        values = values.reshape(n, math.prod(values.shape[1:]))
        place, sums = factors(0, values.shape[1]), np.zeros(())
        for first in range(0, n, TILE):  # what is made of them is small beside them
            wide = values[first : first + TILE].astype(np.float64)
            wide = np.nan_to_num(wide, nan=-1e3, posinf=INFINITE, neginf=-INFINITE) + 2
            sums += factor[first : first + TILE] @ wide @ place
        found[name] = sums
    return found


def factors(start: int, n: int) -> np.ndarray:
    """A number between 1/2 and 3/2 of each row, (n,)."""
    return noise.keys(0, "fingerprint", start, n) / 2.0**64 + 0.5


def short(values: np.ndarray) -> list[str]:
    """To as many digits as other chunks leave alone."""
    return [f"{value:.9g}" for value in values.tolist()]


def _inside(path: Any, name: str) -> str:
    return os.path.join(os.fspath(path), name)


def _some_rows(rows: Rows) -> list[np.ndarray]:
    """Rows at the start, in the middle and at the end, for any chunks."""
    n, found = rows.x.shape[0], []
    for start in sorted({0, n // 2, max(n - LOOKED_AT, 0)}):
        x = rows.x[start : start + LOOKED_AT]  # of one block or of two
        x = x if rows.is_one_block else graph.compute(x, rows.in_memory)
        few = first_rows(Rows(x, {}), LOOKED_AT)
        found += [few] if len(few) else []
    return found
