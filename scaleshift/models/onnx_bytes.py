"""Does an ONNX file hold all that it needs?  Weights in other files could be any file: they are refused.

The file is a message of Protocol Buffers: fields of a number, a kind and a content, some of which are
messages again. Those that can hold a tensor are followed, without unpacking any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scaleshift.errors import DataError

#: Of each message that can hold tensors, the numbers of those fields, and what they are; from onnx.proto
TENSORS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
}
EXTERNAL_DATA, DATA_LOCATION = 13, 14  # of a tensor: where its numbers are; 1 if not in this file
NUMBER, EIGHT_BYTES, CONTENT, FOUR_BYTES = 0, 1, 2, 5  # kinds of fields
LONGEST = 10  # bytes of a number


def refuse_elsewhere(content: bytes, name: str) -> None:
    """Raise DataError for a model whose weights lie in other files, or that is no message at all.

    Examples
    --------
    >>> refuse_elsewhere(b"", "model.onnx")
    >>> refuse_elsewhere(b"text", "model.onnx")
    Traceback (most recent call last):
        ...
    scaleshift.errors.DataError: model.onnx cannot be opened by onnxruntime: it is no ONNX file, ...
    """
    waiting: list[tuple[str, memoryview]] = [("model", memoryview(content))]
    try:
        while waiting:
            kind, message = waiting.pop()
            for number, value in _fields(message):
                if kind == "tensor" and (number == EXTERNAL_DATA or (number == DATA_LOCATION and value != 0)):
                    raise DataError(
                        f"{name} keeps weights in other files, which are not opened: save it as one file, "
                        "onnx.save(onnx.load(path), another_path)"
                    )
                inner = TENSORS.get(kind, {}).get(number)
                if inner is not None:
                    if not isinstance(value, memoryview):
                        raise ValueError
                    waiting.append((inner, value))
    except (ValueError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{name} cannot be opened by onnxruntime: it is no ONNX file, or a damaged one; export it again"
        ) from None


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a message: a number, or its bytes."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        if key >> 32:  # readers of C++ drop those bits, and see another field
            raise ValueError
        kind = key & 7
        if kind == NUMBER:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        if kind == CONTENT:
            length, at = _number(message, at)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            length = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ValueError
        if at + length > len(message):
            raise ValueError
        yield key >> 3, message[at : at + length]
        at += length


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number at a place, seven bits a byte, and the place behind it."""
    value = 0
    for i in range(LONGEST):
        byte = message[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, at + i + 1
    raise ValueError
