"""What are the numbers of some events, given their bytes?"""

from __future__ import annotations

import numpy as np

from scaleshift.cells.fcs.layout import BIG, BIG_WORDS, LITTLE_WORDS, Layout, Run


def is_stored_as_read(layout: Layout) -> bool:
    """Whether the bytes of DATA are the matrix itself: floats of one type in the machine's byte order."""
    run = layout.runs[0]
    plain = len(layout.runs) == 1 and run.kind == "f" and _is_simple(layout, run)
    return plain and _dtype(layout, run) == np.dtype(layout.dtype)


def decode(data: np.ndarray, layout: Layout, out: np.ndarray) -> None:
    """Decode whole events into a matrix; bits above $PnR are masked away.

    Parameters
    ----------
    data : array of uint8, (n * row_bytes,)
    layout : Layout
    out : array of layout.dtype, (n, n_channels)
        Filled.
    """
    for run in layout.runs:
        if _is_simple(layout, run):
            values = _columns(data, layout, run, _dtype(layout, run), len(out))
        else:
            values = _assemble(data, layout, run, len(out))
        if run.masks is not None:
            values = values & np.array(run.masks, dtype=values.dtype.newbyteorder("="))
        out[:, run.first : run.stop] = values


def _is_simple(layout: Layout, run: Run) -> bool:
    """Whether numpy has this type; not so 24 bits, nor 32 bits in words of another order."""
    return run.width in (1, 2, 8) or (run.width == 4 and layout.order not in (LITTLE_WORDS, BIG_WORDS))


def _dtype(layout: Layout, run: Run) -> np.dtype:
    return np.dtype(f"{layout.order[0]}{run.kind}{run.width}")


def _columns(
    data: np.ndarray, layout: Layout, run: Run, dtype: np.dtype, n: int, offset: int = 0
) -> np.ndarray:
    """View of the run's values, (n, channels of the run), or of parts of them `offset` bytes behind."""
    shape, strides = (n, run.stop - run.first), (layout.row_bytes, run.width)
    return np.ndarray(shape, dtype, data.data, run.offset + offset, strides)


def _assemble(data: np.ndarray, layout: Layout, run: Run, n: int) -> np.ndarray:
    """Values of the run put together from bytes or 16-bit words."""
    part = 2 if layout.order in (LITTLE_WORDS, BIG_WORDS) else 1
    dtype = np.dtype(f"{layout.order[0]}u{part}")
    offsets = range(0, run.width, part)
    highest_first = layout.order in (BIG, LITTLE_WORDS)
    total = np.zeros((n, run.stop - run.first), np.uint32 if run.width <= 4 else np.uint64)
    for offset in offsets if highest_first else reversed(offsets):
        total <<= 8 * part
        total |= _columns(data, layout, run, dtype, n, offset)
    return total.view(np.float32) if run.kind == "f" else total
