"""A bar for passes that take long, on a terminal; nothing otherwise."""

import io

import dask.array as da
import pytest
from rich.console import Console

from scaleshift.cli import progress


def drawn(terminal):
    bar = progress.ProgressBar()
    bar.console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with bar:
        da.ones(100, chunks=1).map_blocks(lambda block: block + 1, dtype=float).sum().compute(
            scheduler="sync"
        )
    return bar.console.file.getvalue()


def test_a_long_pass_shows_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", -1.0)
    assert "reading blocks" in drawn(terminal=True)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_short_pass_shows_nothing(terminal):
    assert drawn(terminal) == ""


def test_nothing_is_drawn_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", -1.0)
    assert drawn(terminal=False) == ""
