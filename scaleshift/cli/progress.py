"""How far is it?  A bar on the terminal for what takes longer than 2 s: what is done, and what is left."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from scaleshift import doing

DELAY = 2.0  # seconds
PAUSE = 1.0  # seconds between two questions to a scheduler
MOST_KEYS = 1_000  # that it is asked about
DONE = ("memory", "released", "erred", "forgotten", None)  # None: it was there, and is not any more
WORDS = "reading blocks"


class ProgressBar:
    """Draws on standard error while it lasts; nothing where that is no terminal.

    It shows the steps that the library tells, and how far the innermost one is that is counted, such as
    samples or refits; else how many tasks are done of the pass that Dask computes, here or on a cluster. A
    pass has the number that it has in its step.
    """

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._lock = threading.RLock()
        self._steps: tuple[doing.Step, ...] = ()
        self._counted: tuple[doing.Step | None, float] = None, 0.0  # and its share, which does not go back
        self._pass: Any = None  # what is computed; what its own tasks compute is not counted
        self._share: float | None = None  # of the pass
        self._shown: Any = None  # pass or step
        self._since = self._started = time.monotonic()
        self._n_passes = 0
        self._open = contextlib.ExitStack()

    def __enter__(self) -> ProgressBar:
        if not self.console.is_interactive:
            return self
        from dask.callbacks import Callback

        columns = TextColumn("{task.description}"), BarColumn(12), Times(self)
        # What is printed goes its own way: it may be read by a machine.
        self._bar = Progress(
            *columns, console=self.console, transient=True, refresh_per_second=4, redirect_stdout=False
        )
        self._bar.add_task(WORDS, total=None)
        self._open.callback(self._stop)
        self._open.enter_context(doing.listening(self))
        self._open.enter_context(Callback(start=self._begin, posttask=self._posttask, finish=self._finish))
        self._timer = threading.Timer(DELAY, self._bar.start)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._bar.live.is_started:
            self._bar.stop()

    # What is told ----------------------------------------------------------------------------------------

    def changed(self, steps: tuple[doing.Step, ...]) -> None:
        """Take what is being done now."""
        with self._lock:
            if steps[-1:] != self._steps[-1:]:
                self._n_passes = 0
            self._steps = steps
            self._draw()

    @contextlib.contextmanager
    def submitted(self, client: Any, collections: tuple[Any, ...]) -> Iterator[None]:
        """Ask a scheduler how far it is while it computes."""
        done = threading.Event()
        arguments = (client, collections, done)
        threading.Thread(target=self._ask, args=arguments, daemon=True, name="scaleshift-progress").start()
        self._begin(collections)
        try:
            yield
        finally:
            done.set()
            self._finish(collections)

    def _ask(self, client: Any, collections: tuple[Any, ...], done: threading.Event) -> None:
        """How many of some keys are done; a scheduler that gives no answer is not asked again."""
        keys: list[Any] | None = None
        while not done.wait(PAUSE):
            try:
                asked = spread(collections) if keys is None else keys
                states = client.sync(client.scheduler.get_task_status, keys=asked)
            except Exception:  # the scheduler is lost, which the pass itself tells
                return
            if keys is None:  # a graph is optimised on its way: some of its keys never arrive
                keys = [key for key in asked if states[key] is not None]
            if keys:
                self._advance(collections, sum(states[key] in DONE for key in keys) / len(keys))

    def _posttask(self, key: Any, value: Any, graph: Any, state: Any, worker: Any) -> None:
        left = sum(len(state[name]) for name in ("ready", "waiting", "running"))
        self._advance(graph, len(state["finished"]) / (len(state["finished"]) + left))

    def _begin(self, computed: Any) -> None:
        with self._lock:
            if self._pass is None:
                self._pass, self._n_passes = computed, self._n_passes + 1
                self._draw()

    def _advance(self, computed: Any, share: float) -> None:
        with self._lock:
            if self._pass is computed:
                self._share = share
                self._draw()

    def _finish(self, computed: Any, *_: Any) -> None:
        with self._lock:
            if self._pass is computed:
                self._pass = self._share = None
                self._draw()

    # What is drawn ---------------------------------------------------------------------------------------

    def _draw(self) -> None:
        step = self._innermost_counted()
        shown = self._pass if step is None else step
        if shown is not self._shown:
            self._shown, self._since = shown, time.monotonic()
        share = self._share if step is None else self._share_of_counted(step)
        (task,) = self._bar.tasks
        task.description = self._words()
        task.total = None if share is None else 1.0  # None: nobody knows how far it is
        task.completed = share or 0.0

    def times(self, share: float) -> str:
        """How long since the start, and how long until what is shown is done, if it goes on like this."""
        now = time.monotonic()
        elapsed = _clock(now - self._started)
        if not share:
            return elapsed
        left = (now - self._since) * (1 - share) / share
        return f"{share:4.0%}  {elapsed}, {_clock(left)} left"

    def _innermost_counted(self) -> doing.Step | None:
        return next((step for step in reversed(self._steps) if step.of), None)

    def _share_of_counted(self, step: doing.Step) -> float:
        before = self._counted[1] if self._counted[0] is step else 0.0
        under_way = (self._share or 0.0) * min(step.at_once, step.of - step.done)
        share = max(before, min((step.done + under_way) / step.of, 1.0))
        self._counted = step, share
        return share

    def _words(self) -> str:
        told = [self._told(step) for step in self._steps[-2:]] or [WORDS]
        number = f", pass {self._n_passes}" if self._n_passes > 1 and not self._innermost_counted() else ""
        return f"{': '.join(told)}{number}"

    def _told(self, step: doing.Step) -> str:
        if not step.of:
            return step.what
        share = self._counted[1] if self._counted[0] is step else 0.0
        return f"{max(step.done, int(share * step.of))} of {step.of} {step.what}"


class Times(ProgressColumn):
    """The times of a bar."""

    def __init__(self, bar: ProgressBar) -> None:
        super().__init__()
        self.bar = bar

    def render(self, task: Task) -> Text:
        """Draw it anew at each refresh."""
        return Text(self.bar.times(task.completed))


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def spread(collections: tuple[Any, ...]) -> list[Any]:
    """Some keys of the graph of these collections, spread evenly over it."""
    keys: dict[Any, None] = {}
    for collection in collections:
        for layer in collection.__dask_graph__().layers.values():
            keys.update(dict.fromkeys(layer.get_output_keys()))
    return list(keys)[:: -(-len(keys) // MOST_KEYS) or 1]
