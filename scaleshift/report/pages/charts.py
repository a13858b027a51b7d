"""How is a curve drawn?  As SVG text with the page's own colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from scaleshift.report.names import printable
from scaleshift.report.pages.parts import Chart, Point

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 44
TICKS = 5
APART = 34  # of names of x, at least


def drawn(chart: Chart) -> Markup:
    """A chart as SVG; names in it are escaped.

    Examples
    --------
    >>> chart = Chart("AUC", "features", "<AUC>", [Point(1, 0.9), Point(2, 0.95, 0.94, 0.96)])
    >>> svg = drawn(chart)
    >>> svg.startswith("<svg"), "&lt;AUC&gt;" in svg
    (True, True)
    """
    points = [point for point in chart.points if _can_be_drawn(point, chart.logarithmic)]
    if not points:
        return Markup("")
    xs = [point.x for point in points]
    ys = [y for point in points for y in (point.y, point.low, point.high) if y is not None]
    x = _Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT, chart.logarithmic)
    y = _Axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    text = Markup("<text x='{:.1f}' y='{:.1f}' class='{}'>{}</text>")
    body = [
        Markup("<line class='grid' x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}'/>").format(
            LEFT, WIDTH - RIGHT, y.at(tick), y.at(tick)
        )
        + text.format(LEFT - 8, y.at(tick) + 4, "end", y.shown(tick))
        for tick in y.ticks
    ]
    body += [text.format(x.at(tick), HEIGHT - BOTTOM + 18, "middle", f"{tick:g}") for tick in _spread(xs, x)]
    body.append(text.format((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "middle", chart.x_label))
    body.append(text.format(4, TOP - 2, "start", chart.y_label))
    line = " ".join(f"{x.at(point.x):.1f},{y.at(point.y):.1f}" for point in points)
    body.append(Markup("<polyline points='{}'/>").format(line))
    body += [_dot(point, x, y) for point in points]
    return Markup("<svg viewBox='0 -6 {} {}' role='img' aria-label='{}'>{}</svg>").format(
        WIDTH, HEIGHT + 6, printable(chart.caption), Markup("").join(body)
    )


def _can_be_drawn(point: Point, logarithmic: bool) -> bool:
    ends = [point.x, point.y, *(end for end in (point.low, point.high) if end is not None)]
    return all(map(math.isfinite, ends)) and (point.x > 0 or not logarithmic)


def _dot(point: Point, x: _Axis, y: _Axis) -> Markup:
    at = x.at(point.x)
    bar = Markup("")
    if point.low is not None and point.high is not None:
        bar = Markup("<line class='bar' x1='{0:.1f}' x2='{0:.1f}' y1='{1:.1f}' y2='{2:.1f}'/>").format(
            at, y.at(point.low), y.at(point.high)
        )
    circle = Markup("<circle class='{}' cx='{:.1f}' cy='{:.1f}' r='{}'><title>{}</title></circle>")
    return bar + circle.format(
        "chosen" if point.chosen else "dot",
        at,
        y.at(point.y),
        6 if point.chosen else 4,
        printable(point.note),
    )


class _Axis:
    """Numbers of the data as places on the drawing, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float, logarithmic: bool = False) -> None:
        self.scaled: Callable[[float], float] = math.log if logarithmic else float
        low, high = self.scaled(low), self.scaled(high)
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        self.low, self.high, self.start, self.end = low - room, high + room, start, end
        step = 10 ** math.floor(math.log10((self.high - self.low) / TICKS))
        self.step = next(s * step for s in (1, 2, 5, 10) if (self.high - self.low) / (s * step) <= TICKS)
        first = math.ceil(self.low / self.step)
        self.ticks = [i * self.step for i in range(first, math.floor(self.high / self.step) + 1)]

    def at(self, value: float) -> float:
        return self.start + (self.scaled(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def shown(self, tick: float) -> str:
        digits = max(0, -math.floor(math.log10(self.step)))
        return f"{tick:z,.{digits}f}" if abs(tick) < 1e6 else f"{tick:.3g}"


def _spread(xs: Sequence[float], x: _Axis) -> list[float]:
    """Values of x that are named: not more than fit."""
    named: list[float] = []
    for value in sorted(set(xs)):
        if not named or x.at(value) - x.at(named[-1]) >= APART:
            named.append(value)
    return named
