"""What does a result claim, and is its bar reached?  Rows of the page of results, made of numbers alone."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Result = Mapping[str, Any]  # what a benchmark wrote


class Bar(NamedTuple):
    """What a number must be, if the claim is to hold."""

    least: float = -math.inf
    most: float = math.inf

    def reached_by(self, number: float) -> bool:
        return self.least <= number <= self.most

    def __str__(self) -> str:
        if self.most == math.inf:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.least == -math.inf else f"{self.least:g} to {self.most:g}"


def at_most(value: float) -> Bar:
    """A bar that is not to be exceeded."""
    return Bar(most=value)


class Row(NamedTuple):
    """One claim. `number` is what the bar is for: mostly a ratio within one run."""

    what: str
    ours: str
    peer: str
    number: float | None
    bar: Bar | None = None
    limits: str = ""  # what limits it

    def cells(self) -> list[str]:
        number = "" if self.number is None else f"{self.number:.3g}"
        verdict = ""
        if self.bar is not None:
            reached = self.number is not None and self.bar.reached_by(self.number)
            verdict = f"{self.bar}: {'reached' if reached else '**missed**'}"
        return [self.what, self.ours, self.peer, number, verdict, self.limits]


Rows = Callable[[Result], Iterable[Row]]
HEAD = ("what", "ours", "peer", "ratio or number", "bar", "what limits it", "machine")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(cell.replace("|", "/") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def missing(what: str, result: Result) -> list[Row]:
    """A row for each peer that could not be timed, with the reason."""
    return [
        Row(what, "", name, None, None, f"not timed: {reason}") for name, reason in result["missing"].items()
    ]


def page(results: Mapping[str, Result], rows: Mapping[str, Rows]) -> str:
    """The page: machines, and a row for each claim, in the order of `rows`."""
    machines: list[Result] = []
    table: list[list[str]] = []
    unmade: list[str] = []
    for name, of in rows.items():
        if name not in results:
            unmade.append(name)
            continue
        try:
            found = list(of(results[name]))
        except KeyError:
            unmade.append(f"{name} (its file is of an older form)")
            continue
        facts = _machine(results[name])
        if facts not in machines:
            machines.append(facts)
        letter = _letter(machines.index(facts))
        table += [[*row.cells(), letter] for row in found]
    told = [f"- **{_letter(i)}**: {', '.join(_facts(one))}" for i, one in enumerate(machines)]
    missed = sum("missed" in row[4] for row in table)
    barred = sum(bool(row[4]) for row in table)
    return "\n".join(
        [
            "# Results of the benchmarks",
            "",
            "Made by `python benchmarks/run.py --table` from the JSON files: nothing here is typed.",
            "Speeds and ratios of a row are of one run on one machine, interleaved, medians; ratios of peers",
            "say how many times longer they take. Repeat all of it with `python benchmarks/run.py`.",
            "",
            f"{barred} rows have a bar, {missed} miss it.",
            "",
            *told,
            "",
            markdown(HEAD, table),
            *(["", f"Not run yet: {', '.join(unmade)}."] if unmade else []),
            "",
        ]
    )


def _machine(result: Result) -> dict[str, Any]:
    """What a machine is: a GPU's facts stand before its host's; the load is of the moment."""
    facts = dict(result.get("machine") or result.get("facts") or {"cpu": "not recorded"})
    facts |= facts.pop("host", {})
    return {key: value for key, value in facts.items() if key not in ("load_average", "free_gb")}


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def _facts(facts: Result) -> list[str]:
    shown = {key: value for key, value in facts.items() if value is not None}
    return [f"{key} {' '.join(value) if isinstance(value, list) else value}" for key, value in shown.items()]
