"""What turns stored values into measured ones: logarithmic amplifiers, gains, the clock?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scaleshift.cells.fcs.remarks import Remarks
from scaleshift.cells.fcs.text import number, words


@dataclass(frozen=True)
class Scale:
    """What is done to one channel: `10 ** (decades * x / top) * lowest` if decades > 0, then / gain * step.

    Attributes
    ----------
    channel : int
        Counted from 0.
    decades, lowest, top : float
        $PnE and $PnR; decades = 0 for a linear channel.
    gain, step : float
        $PnG, and $TIMESTEP for the channel Time, which has no gain.
    """

    channel: int
    decades: float = 0.0
    lowest: float = 1.0
    top: float = 1.0
    gain: float = 1.0
    step: float = 1.0


def find_scales(
    keywords: Mapping[str, str], channels: Sequence[str], integer: Sequence[bool]
) -> tuple[tuple[Scale, ...], list[str]]:
    """Scales of the channels that need one.

    Parameters
    ----------
    keywords : mapping of str
    channels : sequence of str
        $PnN.
    integer : sequence of bool
        Whether the channel is stored as integers: floats are linear whatever $PnE says.

    Returns
    -------
    scales : tuple of Scale
    warnings : list of str
        Where a keyword makes no sense; the channel is left as it is then.

    Examples
    --------
    >>> keywords = {"$P1E": "4,0", "$P1R": "1024", "$P2G": "0"}
    >>> scales, warnings = find_scales(keywords, ["FL1", "FL2"], [True, True])
    >>> scales
    (Scale(channel=0, decades=4.0, lowest=1.0, top=1024.0, gain=1.0, step=1.0),)
    >>> warnings
    ["$P2G: is '0'; taken as 1"]
    """
    scales: list[Scale] = []
    remarks = Remarks()
    for i, (name, is_integer) in enumerate(zip(channels, integer, strict=True)):
        is_time = name.lower() == "time"
        decades, lowest, top = _amplifier(keywords, i + 1, is_integer, remarks)
        gain = 1.0 if is_time else _gain(keywords, i + 1, remarks)
        step = _time_step(keywords, remarks) if is_time else 1.0
        if (decades, gain, step) != (0.0, 1.0, 1.0):
            scales.append(Scale(i, decades, lowest, top, gain, step))
    return tuple(scales), remarks.lines()


def apply_scales(events: np.ndarray, scales: Sequence[Scale]) -> None:
    """Scale the columns of events (n, n_channels) in place, in float64 before they are stored again."""
    for scale in scales:
        column = events[:, scale.channel].astype(np.float64)
        if scale.step != 1.0:
            column *= scale.step
        if scale.decades > 0:
            column = 10.0 ** (scale.decades * column / scale.top) * scale.lowest
        if scale.gain != 1.0:
            column /= scale.gain
        events[:, scale.channel] = column


def _amplifier(
    keywords: Mapping[str, str], n: int, is_integer: bool, remarks: Remarks
) -> tuple[float, float, float]:
    """Decades, lowest value and range of $PnE and $PnR; (0, 1, 1) for a linear channel."""
    told = words(keywords.get(f"$P{n}E"))
    if not told:
        return 0.0, 1.0, 1.0
    numbers = [number(part) for part in told.split(",", 2)]
    decades = numbers[0]
    if decades is None or decades < 0 or (decades > 0 and (len(numbers) != 2 or numbers[1] is None)):
        remarks.add(f"$P{n}E", f"is {told[:20]!r}, no pair of numbers; taken as linear")
        return 0.0, 1.0, 1.0
    if decades == 0:
        return 0.0, 1.0, 1.0
    if not is_integer:
        remarks.add(f"$P{n}E", f"is {told[:20]!r} for floats, which are linear; left aside")
        return 0.0, 1.0, 1.0
    top = number(keywords.get(f"$P{n}R"))
    if top is None or top <= 0:
        remarks.add(f"$P{n}E", f"is {told[:20]!r} without a range in $PnR; taken as linear")
        return 0.0, 1.0, 1.0
    return decades, numbers[1] or 1.0, top  # FCS 3.1: decades,0 means decades,1


def _gain(keywords: Mapping[str, str], n: int, remarks: Remarks) -> float:
    told = words(keywords.get(f"$P{n}G"))
    if not told:
        return 1.0
    gain = number(told)
    if gain is None or gain <= 0:
        remarks.add(f"$P{n}G", f"is {told[:20]!r}; taken as 1")
        return 1.0
    return gain


def _time_step(keywords: Mapping[str, str], remarks: Remarks) -> float:
    if "$TIMESTEP" not in keywords:
        return 1.0
    step = number(keywords["$TIMESTEP"])
    if step is None or step <= 0:
        told = words(keywords["$TIMESTEP"])[:20]
        remarks.add("$TIMESTEP", f"is {told!r}, no number above 0; Time was left as it is stored")
        return 1.0
    return step
