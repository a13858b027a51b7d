"""What is done twice where a command of the command line is killed and started again?

Each command runs undisturbed first. Then it is killed with SIGKILL at random times, some of them while it is
starting, and started again, until it ends. A child of this file is the command line, and writes a byte into
a file whenever a unit of work begins.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from fcs import write_file
from jobs import MARKERS, folder_digest
from sklearn.exceptions import ConvergenceWarning
from slices_out_of_core import arrays_of, make_store
from stores import CHUNK, in_child, make_block

import scaleshift as ss
from scaleshift import checkpoint
from scaleshift.blocks.block import Kept
from scaleshift.cells.intake import assembly
from scaleshift.cells.manifest import read_manifest
from scaleshift.cli import unfinished
from scaleshift.errors import ScaleshiftError
from scaleshift.quantify import pieces
from scaleshift.slices.mixtures import expectation

CHANNELS, EVENTS, COLUMNS, ROWS_A_SECOND = 20, 20_000, 32, 100_000
FILES_A_SECOND = 12
STARTING = 1.5  # seconds in which a command is still starting, about
IN_START = 5  # one kill of so many falls there
OUT, STORE, STATE = "out", "study.zarr", "state"


WRITTEN = "**/*.csv", "**/c", "**/c/**/*"  # tables, and the numbers in Zarr arrays
Note = Callable[[], None]  # called as a unit of work begins


@dataclass(frozen=True)
class Command:
    """A command that can be resumed. Paths are relative to a folder."""

    make: Callable[[Path, float], None]  # its data, enough for about so many seconds
    arguments: tuple[str, ...]
    again: tuple[str, ...]  # more of them once it was killed
    count: Callable[[Note], None]  # has every unit of work noted, in the process where it is done
    kept: Callable[[Path], int]  # units that are done for good
    result: str  # a folder
    compared: tuple[str, ...] = WRITTEN  # what of it says nothing of when and where
    at_most: int = 1  # units that may be lost a kill
    share: int = 1  # one of so many kills: for those that start slowly


def _chunks(note: Note) -> None:
    assembly.write_chunk = noted(assembly.write_chunk, note)


def _steps(note: Note) -> None:
    step = expectation.step

    def counted(kept: Kept, *more: Any) -> Any:
        of_a_sample = kept.is_one_block
        return (step if of_a_sample else noted(step, note))(kept, *more)

    expectation.step = counted


def _pieces(note: Note) -> None:
    each = pieces._each
    pieces._each = lambda answer, *more: each(noted(answer, note), *more)


def noted(function: Callable[..., Any], note: Note) -> Callable[..., Any]:
    """The function, which notes that it begins."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        note()
        return function(*arguments, **named)

    return call


def _files(folder: Path, seconds: float) -> None:
    (folder / "data").mkdir()
    for number in range(max(24, round(FILES_A_SECOND * seconds))):
        write_file(folder / "data" / f"{number:05d}.fcs", "F", "<f4", EVENTS, CHANNELS)


def _chunks_kept(folder: Path) -> int:
    try:
        return read_manifest(folder / STORE).n_cells // EVENTS
    except (ScaleshiftError, OSError):  # nothing is there yet
        return 0


def _store(folder: Path, seconds: float) -> None:
    in_child(make_store, folder / "store.zarr", max(500_000, round(ROWS_A_SECOND * seconds)), COLUMNS)


def _iterations_kept(folder: Path) -> int:
    found = checkpoint.read(folder / STATE)
    return 0 if found is None else max(fit.n_iter for fit in found.state)


def _samples(folder: Path, seconds: float) -> None:
    in_child(make_samples, folder / STORE, max(5, round(seconds)))


def make_samples(path: Path, n: int) -> None:
    """A study of samples that are a piece each, and a smaller one to learn from; classes are apart."""
    names = ["source", *(f"S{i:03d}" for i in range(n))]
    sizes = [CHUNK, *[pieces.PIECE_ROWS] * n]
    zeros = da.zeros((sum(sizes), MARKERS), chunks=(CHUNK, MARKERS), dtype=np.float32)
    labels = np.random.default_rng(0).integers(0, 3, sum(sizes), dtype=np.int32)
    x = zeros.map_blocks(make_block, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    x = x + 3 * da.from_array(labels, chunks=CHUNK)[:, None].astype(np.float32)
    ss.write_cells(ss.as_cells(x, sample=np.repeat(names, sizes), label=labels), path)


def _pieces_kept(folder: Path) -> int:
    return len(list((folder / OUT / unfinished.NAME / "samples").glob("samples-*")))


def fit(store: str, n_iter: int) -> None:
    """A fit of a program of one's own, of as many iterations as are asked for."""
    found = arrays_of(Path(store))
    slicer = ss.DominoSlicer(random_state=0, tol=0, max_iter=n_iter, checkpoint=STATE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        slicer.fit(embeddings=found["x"], targets=found["y"], pred_probs=found["p"])
    slicer.set_params(checkpoint=None).save(OUT)


ARRAYS = ("--embeddings", "x", "--targets", "y", "--predictions", "p")
COMMANDS = {
    "ingest": Command(
        _files,
        ("ingest", "data", STORE, "--quiet", "--chunk-cells", str(EVENTS)),
        ("--resume",),
        _chunks,
        _chunks_kept,
        STORE,
        compared=("X/**/*", "obs/**/*", "var/**/*"),
        at_most=8,  # chunks that are written between two commits, four a thread
    ),
    "slices": Command(
        _store,
        ("slices", "store.zarr", *ARRAYS, *("--checkpoint", STATE, "--output", OUT, "--quiet")),
        (),
        _steps,
        _iterations_kept,
        OUT,
        share=4,  # it needs few iterations
    ),
    "quantify": Command(
        _samples,
        ("quantify", STORE, "--source", "sample == source", "--output", OUT, "--quiet"),
        ("--resume",),
        _pieces,
        _pieces_kept,
        OUT,
    ),
    "fit": Command(
        _store,
        ("fit", "store.zarr", "100"),
        (),
        _steps,
        _iterations_kept,
        OUT,
    ),
}  # fmt: skip


def killed_driver(command: Command, seconds: float, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """The command undisturbed, and killed; what was done twice."""
    folder.mkdir()
    command.make(folder, seconds)
    kills = -(-kills // command.share)
    start = time.perf_counter()
    begun, work = life(command, folder, (), None)
    undisturbed = time.perf_counter() - start
    expected = folder_digest(folder / command.result, command.compared)
    for name in (command.result, STATE):
        shutil.rmtree(folder / name, ignore_errors=True)
    chance, lost, total = random.Random(seed), list[int](), 0
    start = time.perf_counter()
    while True:
        before = command.kept(folder)
        wait = None if len(lost) == kills else _wait(chance, len(lost), begun, work, kills)
        began, _ = life(command, folder, command.again if (folder / command.result).exists() else (), wait)
        total += began
        if (folder / "ended").exists():
            break
        lost.append(before + began - command.kept(folder))
    elapsed = time.perf_counter() - start
    return {
        "undisturbed_s": undisturbed,
        "killed_s": elapsed,
        "kills": len(lost),
        "units": begun,
        "units_begun": total,
        "lost": lost,
        "lost_at_most": max(lost, default=0),
        "may_be_lost": command.at_most,
        "lost_s_per_kill": (elapsed - undisturbed) / max(len(lost), 1),
        "equal": folder_digest(folder / command.result, command.compared) == expected,
    }


def _wait(chance: random.Random, number: int, units: int, work: float, kills: int) -> tuple[int, float]:
    """When to kill: once so many units of work have begun in this life, and so many seconds later.

    Counted in units, since the seconds of a machine where others work are not those of the undisturbed run.
    """
    if number % IN_START == IN_START - 1:
        return 0, chance.uniform(0, STARTING)
    return chance.randint(1, max(1, round(2 * units / (kills + 1)))), chance.uniform(0, work / units)


def life(
    command: Command, folder: Path, more: tuple[str, ...], wait: tuple[int, float] | None
) -> tuple[int, float]:
    """One process, until it ends or is killed: units of work begun, seconds since the first of them.

    The file "ended" says that it ended.
    """
    log, ended = folder / "begun", folder / "ended"
    log.unlink(missing_ok=True)
    ended.unlink(missing_ok=True)
    call = [sys.executable, __file__, command.arguments[0], *command.arguments, *more]
    process = subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL)
    units, seconds = (1, None) if wait is None else wait
    while process.poll() is None and _begun(log) < units:
        time.sleep(0.01)
    start = time.perf_counter()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    code = process.wait()
    if code == 0:
        ended.touch()
    elif code != -signal.SIGKILL:
        raise SystemExit(f"{' '.join(command.arguments[:2])} failed with {code}")
    return _begun(log), time.perf_counter() - start


def _begun(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def note_begun() -> Note:
    """Writes a byte into the file "begun"."""
    log = os.path.abspath("begun")

    def note() -> None:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b".")
        os.close(file)

    return note


if __name__ == "__main__":
    from scaleshift.cli import main

    COMMANDS[sys.argv[1]].count(note_begun())
    if sys.argv[1] == "fit":
        fit(sys.argv[3], int(sys.argv[4]))
    else:
        main(sys.argv[2:], prog_name="scaleshift")
