"""An FCS file as bytes, written after the standard: by another hand than the reader, for its tests."""

import numpy as np

ORDERS = {
    "1,2,3,4": (1, 2, 3, 4),
    "4,3,2,1": (4, 3, 2, 1),
    "1,2": (1, 2),
    "2,1": (2, 1),
    "3,4,1,2": (3, 4, 1, 2),
    "2,1,4,3": (2, 1, 4, 3),
}
BITS = {"I": 16, "F": 32, "D": 64}
HEADER_BYTES = 58


def fcs_bytes(
    events,
    channels,
    markers=None,
    *,
    version="FCS3.1",
    datatype="F",
    byteord="1,2,3,4",
    bits=None,
    types=None,
    ranges=None,
    keywords=None,
    delimiter="/",
    encoding="utf-8",
    closed=True,
    header_data=None,
    text_data=None,
    exclusive_end=0,
    gap=0,
    supplement=None,
    following=b"",
):
    """One data set: HEADER, TEXT, a gap, DATA, a supplemental TEXT, and the next data set.

    events: (n, n_channels); integers are stored as they are, higher bits too.
    bits, types, ranges: one for all channels, or one for each; types writes $PnDATATYPE.
    keywords: added, or put in place of what stands there; None leaves a keyword out.
    header_data, text_data: (begin, end) in place of the true ones; None in a pair is written as blank.
    following: bytes of another data set, to which $NEXTDATA points.
    """
    events = np.atleast_2d(events)
    n, n_channels = events.shape
    kinds = list(types) if types else [datatype] * n_channels
    widths = _each(bits if bits is not None else [BITS[kind] for kind in kinds], n_channels)
    tops = _each(ranges if ranges is not None else [2**width for width in widths], n_channels)
    data = _data(events, kinds, [(-(-width // 8)) for width in widths], byteord)
    more = _text(supplement or {}, delimiter, encoding, True) if supplement else b""

    def text(begin, end, following_at):
        begin_data, end_data = text_data if text_data is not None else (begin, end)
        told = {
            "$BEGINANALYSIS": "0",
            "$ENDANALYSIS": "0",
            "$BEGINSTEXT": f"{end + 1 if more else 0:012d}",
            "$ENDSTEXT": f"{end + len(more) if more else 0:012d}",
            "$BEGINDATA": _shown(begin_data, 12),
            "$ENDDATA": _shown(end_data, 12),
            "$BYTEORD": byteord,
            "$DATATYPE": datatype,
            "$MODE": "L",
            "$NEXTDATA": f"{following_at if following else 0:012d}",
            "$PAR": str(n_channels),
            "$TOT": str(n),
        }
        for i, name in enumerate(channels, start=1):
            told |= {
                f"$P{i}B": str(widths[i - 1]),
                f"$P{i}E": "0,0",
                f"$P{i}N": name,
                f"$P{i}R": str(tops[i - 1]),
            }
            if markers is not None and markers[i - 1]:
                told[f"$P{i}S"] = markers[i - 1]
            if types:
                told[f"$P{i}DATATYPE"] = kinds[i - 1]
        told |= keywords or {}
        return _text({k: v for k, v in told.items() if v is not None}, delimiter, encoding, closed)

    begin = HEADER_BYTES + len(text(0, 0, 0)) + gap
    end = begin + len(data) - 1 + exclusive_end
    following_at = begin + len(data) + len(more)
    segment = text(begin, end, following_at)
    header = version.encode().ljust(10)
    for offset in (HEADER_BYTES, HEADER_BYTES + len(segment) - 1, *(header_data or (begin, end)), 0, 0):
        header += _shown(offset, 8, " ").encode()
    return header + segment + b" " * gap + data + more + following


def _each(value, n):
    return [value] * n if np.isscalar(value) else list(value)


def _shown(offset, width, fill="0"):
    return " " * width if offset is None else str(offset).rjust(width, fill)


def _text(keywords, delimiter, encoding, closed):
    escaped = [piece.replace(delimiter, 2 * delimiter) for pair in keywords.items() for piece in pair]
    return (delimiter + delimiter.join(escaped) + (delimiter if closed else "")).encode(encoding)


def _data(events, kinds, widths, byteord):
    """Bytes of all events, channel by channel put into the order of $BYTEORD."""
    columns = []
    for column, kind, width in zip(events.T, kinds, widths, strict=True):
        stored = column.astype("<u8") if kind == "I" else column.astype("<f4" if kind == "F" else "<f8")
        little = stored[:, None].view(np.uint8)[:, :width]
        columns.append(little[:, _significance(byteord, width)])
    return np.concatenate(columns, axis=1).tobytes() if columns else b""


def _significance(byteord, width):
    """For each stored byte the byte of the little-endian value that stands there."""
    order = ORDERS[byteord]
    if order in ((3, 4, 1, 2), (2, 1, 4, 3)):
        if width == 4:
            return [place - 1 for place in order]
        assert width <= 2
        return list(range(width)) if order[0] == 3 else list(range(width))[::-1]
    return list(range(width)) if order[0] == 1 else list(range(width))[::-1]
