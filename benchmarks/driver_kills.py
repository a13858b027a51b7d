"""What is done twice where a command of the command line is killed and started again?

Each command runs undisturbed first. Then it is killed with SIGKILL at random times, some of them while it is
starting, and started again, until it ends. A child of this file is the command line, and writes a byte into
a file whenever a unit of work begins.
"""

from __future__ import annotations

import functools
import importlib
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

from fcs import write_file
from jobs import folder_digest
from sklearn.exceptions import ConvergenceWarning
from slices_out_of_core import arrays_of, make_store
from stores import in_child

import scaleshift as ss
from scaleshift import checkpoint
from scaleshift.cells.manifest import read_manifest
from scaleshift.errors import ScaleshiftError

CHANNELS, EVENTS, COLUMNS, ROWS_A_SECOND = 20, 20_000, 32, 100_000
FILES_A_SECOND = 12
STARTING = 1.5  # seconds in which a command is still starting, about
IN_START = 5  # one kill of so many falls there
OUT, STORE, STATE = "out", "study.zarr", "state"


@dataclass(frozen=True)
class Command:
    """A command that can be resumed. Paths are relative to a folder."""

    make: Callable[[Path, float], None]  # its data, enough for about so many seconds
    arguments: tuple[str, ...]
    again: tuple[str, ...]  # more of them once it was killed
    unit: tuple[str, str]  # a function of a module: a call is a unit of work
    kept: Callable[[Path], int]  # units that are done for good
    result: str  # a folder
    left_out: tuple[str, ...] = ()  # files of it that tell when or where
    at_most: int = 1  # units that may be lost a kill
    share: int = 1  # one of so many kills: for those that start slowly


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
        ("scaleshift.cells.intake.assembly", "write_chunk"),
        _chunks_kept,
        STORE,
        at_most=8,  # chunks that are written between two commits, four a thread
    ),
    "slices": Command(
        _store,
        ("slices", "store.zarr", *ARRAYS, *("--checkpoint", STATE, "--output", OUT, "--quiet")),
        (),
        ("scaleshift.slices.mixtures.expectation", "step"),
        _iterations_kept,
        OUT,
        share=4,  # it needs few iterations
    ),
    "fit": Command(
        _store,
        ("fit", "store.zarr", "100"),
        (),
        ("scaleshift.slices.mixtures.expectation", "step"),
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
    begun = life(command, folder, (), None)
    undisturbed = time.perf_counter() - start
    expected = folder_digest(folder / command.result, command.left_out)
    for name in (STORE, STATE, OUT):
        shutil.rmtree(folder / name, ignore_errors=True)
    chance, lost, total = random.Random(seed), list[int](), 0
    start = time.perf_counter()
    while True:
        before = command.kept(folder)
        wait = None if len(lost) == kills else _wait(chance, len(lost), undisturbed, kills)
        began = life(command, folder, command.again if total else (), wait)
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
        "equal": folder_digest(folder / command.result, command.left_out) == expected,
    }


def _wait(chance: random.Random, number: int, undisturbed: float, kills: int) -> tuple[bool, float]:
    """When to kill: seconds after the start, or after the first unit of work."""
    if number % IN_START == IN_START - 1:
        return True, chance.uniform(0, STARTING)
    return False, chance.uniform(0, 2 * max(undisturbed - STARTING, 1) / (kills + 1))


def life(command: Command, folder: Path, more: tuple[str, ...], wait: tuple[bool, float] | None) -> int:
    """One process, until it ends or is killed; units of work begun. The file "ended" says that it ended."""
    log, ended = folder / "begun", folder / "ended"
    log.unlink(missing_ok=True)
    ended.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, __file__, *command.unit, *command.arguments, *more], cwd=folder
    )
    if wait is not None:
        at_once, seconds = wait
        while not at_once and not log.exists() and process.poll() is None:
            time.sleep(0.02)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    code = process.wait()
    if code == 0:
        ended.touch()
    elif code != -signal.SIGKILL:
        raise SystemExit(f"{' '.join(command.arguments[:2])} failed with {code}")
    return log.stat().st_size if log.exists() else 0


def counting(module: str, name: str) -> None:
    """Have every call of a function write a byte into the file "begun", as it begins."""
    of = importlib.import_module(module)
    function = getattr(of, name)
    log = os.path.abspath("begun")

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not getattr(arguments[0], "is_one_block", False):  # a step on a sample is no pass over the store
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(file, b".")
            os.close(file)
        return function(*arguments, **named)

    setattr(of, name, call)


if __name__ == "__main__":
    from scaleshift.cli import main

    counting(*sys.argv[1:3])
    if sys.argv[3] == "fit":
        fit(sys.argv[4], int(sys.argv[5]))
    else:
        main(sys.argv[3:], prog_name="scaleshift")
