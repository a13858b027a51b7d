"""Has a target been above the bound for long enough to ring?  Consecutive updates, counted by target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scaleshift.errors import DataError
from scaleshift.spelling import meant

ON = ("error", "low")  # what has to pass the bound: the estimate, or the lower end of its interval


@dataclass(frozen=True)
class Watch:
    """Counts of consecutive updates above a bound; a value that counts them makes the next one.

    Parameters
    ----------
    above : float
        The bound, in the units of the error. A value that is equal has not passed it.
    on : {"error", "low"}, default "error"
        What is compared: the estimate, or the lower end of its interval.
    n : int, default 1
        Consecutive updates above the bound after which it rings.
    consecutive : dict of str to int
        By target, the updates above up to now.

    Raises
    ------
    DataError
        If the bound is no finite number, `on` is unknown or `n` is below 1.

    Examples
    --------
    >>> watch = Watch(above=0.1, n=2).updated({"A": 0.2, "B": 0.05})
    >>> watch.consecutive, watch.ringing()
    ({'A': 1, 'B': 0}, [])
    >>> watch.updated({"A": 0.3}).ringing()
    ['A']
    """

    above: float
    on: str = "error"
    n: int = 1
    consecutive: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not -float("inf") < self.above < float("inf"):
            raise DataError(f"above={self.above!r}: expected a finite number, in the units of the error")
        if self.on not in ON:
            raise DataError(f"on={self.on!r}: expected one of {', '.join(ON)}{meant(self.on, ON)}")
        if self.n < 1:
            raise DataError(f"n={self.n!r}: expected a number of updates from 1")

    def updated(self, values: Mapping[str, float]) -> Watch:
        """The watch after one more update of some targets.

        Parameters
        ----------
        values : mapping of str to float
            By target, what is compared with the bound. NaN is not above it. Targets that are not in it keep
            their counts.
        """
        counted = {name: self._next(name, value) for name, value in values.items()}
        return replace(self, consecutive={**self.consecutive, **counted})

    def _next(self, name: str, value: float) -> int:
        return self.consecutive.get(name, 0) + 1 if value > self.above else 0

    def ringing(self, names: Iterable[str] | None = None) -> list[str]:
        """Targets that have been above for `n` updates or more, of these or of all."""
        chosen = self.consecutive if names is None else names
        return [name for name in chosen if self.consecutive.get(name, 0) >= self.n]

    def is_of(self, other: Watch) -> bool:
        """Whether both compare the same with the same bound: counts of one are counts of the other."""
        return (self.above, self.on) == (other.above, other.on)

    def judging(self, above: float | None = None, on: str | None = None, n: int | None = None) -> Watch:
        """The watch with other settings; None leaves one as it is.

        Counts start anew where the bound or what is compared with it is another: they were of that one.

        Examples
        --------
        >>> watch = Watch(0.1).updated({"A": 0.2})
        >>> watch.judging(n=3).consecutive, watch.judging(above=0.15).consecutive
        ({'A': 1}, {})
        """
        above = self.above if above is None else above
        on = self.on if on is None else on
        other = Watch(above, on, self.n if n is None else n)
        return replace(other, consecutive=self.consecutive) if other.is_of(self) else other
