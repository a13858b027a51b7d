"""What will this command cost?  Option --plan of verbs that fit: the plan is printed, and nothing runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from scaleshift.blocks.plan import Plan

SCHEMA = "scaleshift.plan/1"
TOTALS = (
    "passes_over_x",
    "n_bytes",
    "n_bytes_stored",
    "cpu_seconds",
    "elapsed_seconds",
    "thread_bytes",
    "worker_bytes",
    "result_bytes",
)

option = click.option(
    "--plan",
    "plan_only",
    is_flag=True,
    help="Print what the fit would cost (passes, bytes, time, memory), and end; exit code 1 where it does "
    "not fit into the memory there is. One block is read for it.",
)


def end(context: click.Context, plan: Plan, as_json: bool) -> NoReturn:
    """Print a plan in place of a result; the exit code says whether the job fits."""
    text = json.dumps(to_json(plan), indent=2) if as_json else str(plan)
    context.call_on_close(lambda: click.echo(text))  # once the progress bar is gone from the terminal
    context.exit(1 if plan.problems else 0)


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan for machines. Version 1 of the schema.

    Examples
    --------
    >>> import numpy as np
    >>> import scaleshift as ss
    >>> plan = ss.explain(ss.DFM(), np.eye(4), ["a", "a", "b", "b"])
    >>> told = to_json(plan)
    >>> told["schema"], told["fits"], told["totals"]["passes_over_x"]
    ('scaleshift.plan/1', True, 2)
    """
    told = asdict(plan)
    passes, problems = told.pop("passes"), told.pop("problems")
    found = {
        "schema": SCHEMA,
        "fits": not problems,
        "problems": list(problems),
        **told,
        "totals": {name: getattr(plan, name) for name in TOTALS},
        "passes": [{**part, "over": list(part["over"])} for part in passes],
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=lambda number: number.item()))
    return plain
