"""Which phrase says what a slice shows?  That whose embedding points where the slice's mean lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scaleshift.errors import DataError

MOST = 10  # phrases a slice


def check_phrases(phrases: Sequence[str] | None, embeddings: Any, d: int) -> np.ndarray | None:
    """Embeddings of candidate phrases as (m, d) numbers, None where none are given."""
    if phrases is None and embeddings is None:
        return None
    if phrases is None or embeddings is None:
        raise DataError("phrases= and phrase_embeddings= belong together: pass both")
    if isinstance(phrases, str):
        raise DataError(f"phrases={phrases!r} is one phrase: pass a list")
    vectors = np.asarray(embeddings, np.float64)
    if vectors.shape != (len(phrases), d) or not len(phrases):
        raise DataError(
            f"phrase_embeddings has the shape {vectors.shape}, expected {(len(phrases), d)}: one row a "
            "phrase, in the space of the embeddings"
        )
    if not np.isfinite(vectors).all():
        row = np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0]
        raise DataError(
            f"phrase_embeddings has NaN or infinite values, first in row {row}: leave the phrase out"
        )
    return vectors


def ranked(directions: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Phrases of each slice, best first: numbers and cosines, (S, min(m, MOST)); NaN last.

    Parameters
    ----------
    directions : numpy.ndarray, shape (S, d)
        From the mean of all rows to that of the slice.
    vectors : numpy.ndarray, shape (m, d)

    Examples
    --------
    >>> number, cosine = ranked(np.array([[0.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 3.0]]))
    >>> number.tolist(), cosine.round(3).tolist()
    ([[1, 0]], [[0.707, 0.0]])
    """
    vectors = vectors / np.maximum(
        np.abs(vectors).max(axis=1, keepdims=True), np.finfo(float).tiny
    )  # squares
    lengths = np.linalg.norm(directions, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    cosine = np.divide(directions @ vectors.T, lengths, out=np.full(lengths.shape, np.nan), where=lengths > 0)
    number = np.argsort(-cosine, axis=1, kind="stable")[:, :MOST]
    return number, np.take_along_axis(cosine, number, axis=1)
