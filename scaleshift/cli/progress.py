"""How far is this pass?  A bar on the terminal once a pass takes longer than 2 s."""

from __future__ import annotations

import time
from typing import Any

from dask.callbacks import Callback
from rich.console import Console
from rich.progress import Progress

DELAY = 2.0  # seconds


class ProgressBar(Callback):
    """Dask callback that draws with rich on standard error; nothing where that is no terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.started = 0.0

    def _start(self, dsk: Any) -> None:
        self.started = time.monotonic()

    def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker_id: Any) -> None:
        if not self.console.is_terminal or time.monotonic() - self.started < DELAY:
            return
        done = len(state["finished"])
        total = done + sum(len(state[name]) for name in ("ready", "waiting", "running"))
        if self.bar is None:
            self.bar = Progress(console=self.console, transient=True)
            self.bar.start()
            self.task = self.bar.add_task("reading blocks", total=total)
        self.bar.update(self.task, completed=done, total=total)

    def _finish(self, dsk: Any, state: Any, errored: bool) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
