"""Which random numbers belong to a row?  Those keyed by its absolute number.

Noise is a function of (seed, stream, absolute row), drawn by Philox in tiles of 4096 rows, so that
chunking, workers and restarts change nothing. Always on the host, also for GPU blocks.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from scaleshift.errors import DataError
from scaleshift.kernels.cpu.philox import uniform_tile

TILE = 4096
REPLICATES = 16  # whose noise of a tile is drawn together


def seed_of(random_state: Any) -> int:
    """Turn a `random_state` into the seed of every stream of one fit.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws a fresh seed; a generator is advanced by one draw.

    Returns
    -------
    int
        In [0, 2**63).

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if not isinstance(random_state, int | np.integer):
        raise DataError(f"random_state={random_state!r}: expected None, an int or a numpy Generator")
    return int(random_state) % 2**63


def keys(seed: int, stream: str, start: int, n: int) -> np.ndarray:
    """64 random bits for each of the rows start .. start + n - 1.

    Parameters
    ----------
    seed : int
        As `seed_of` gives it.
    stream : str
        What the noise is for; different streams are independent.
    start : int
        Absolute number of the first row.
    n : int
        Number of rows.

    Returns
    -------
    numpy.ndarray of uint64, shape (n,)

    Examples
    --------
    >>> whole = keys(0, "sample", 0, 10_000)
    >>> bool((keys(0, "sample", 4_000, 500) == whole[4_000:4_500]).all())
    True
    """
    first, last = start // TILE, -(-(start + n) // TILE)
    tiles = [_tile(seed, stream, tile) for tile in range(first, last)]
    if not tiles:
        return np.empty(0, np.uint64)
    offset = start - first * TILE
    return np.concatenate(tiles)[offset : offset + n]


def keys_of(seed: int, stream: str, rows: np.ndarray) -> np.ndarray:
    """64 random bits for each of some rows, by their absolute numbers in any order.

    Examples
    --------
    >>> bool((keys_of(0, "sample", np.array([9_000, 5])) == keys(0, "sample", 0, 10_000)[[9_000, 5]]).all())
    True
    """
    tile, within = np.divmod(np.asarray(rows, np.int64), TILE)
    found = np.empty(len(tile), np.uint64)
    order = np.argsort(tile, kind="stable")
    numbers, first = np.unique(tile[order], return_index=True)
    for number, begin, end in zip(numbers, first, np.append(first[1:], len(tile)), strict=True):
        here = order[begin:end]
        found[here] = _tile(seed, stream, int(number))[within[here]]
    return found


def uniforms(seed: int, stream: str, start: int, n: int, n_replicates: int) -> np.ndarray:
    """A uniform number for each of the rows start .. start + n - 1 and each replicate.

    More replicates leave those of fewer as they are.

    Parameters
    ----------
    seed, stream, start, n
        As for `keys`.
    n_replicates : int

    Returns
    -------
    numpy.ndarray of float64, shape (n, n_replicates)
        In [0, 1).

    Examples
    --------
    >>> few = uniforms(0, "train", 4_000, 500, 3)
    >>> bool((uniforms(0, "train", 0, 10_000, 20)[4_000:4_500, :3] == few).all())
    True
    """
    first, last = start // TILE, -(-(start + n) // TILE)
    found = np.empty((n, n_replicates))
    for tile in range(first, last):
        begin, end = max(tile * TILE, start), min((tile + 1) * TILE, start + n)
        place, rows = np.array([tile, 2], np.uint64), found[begin - start : end - start]
        uniform_tile(*_key(seed, stream), *place, TILE, REPLICATES, begin - tile * TILE, rows)
    return found


def uniforms_of(seed: int, stream: str, start: int, n: int, replicate: int) -> np.ndarray:
    """A uniform number for each of some rows and one replicate: its column of `uniforms`, drawn alone.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)

    Examples
    --------
    >>> column = uniforms_of(0, "train", 4_000, 500, 17)
    >>> bool((uniforms(0, "train", 4_000, 500, 20)[:, 17] == column).all())
    True
    """
    block, place = divmod(replicate, REPLICATES)
    first, last = start // TILE, -(-(start + n) // TILE)
    found = np.empty(n)
    for tile in range(first, last):
        begin, end = max(tile * TILE, start), min((tile + 1) * TILE, start + n)
        philox = _philox(seed, stream, tile, 2, block, skipped=place * TILE)
        part = philox.random_raw(TILE)[begin - tile * TILE : end - tile * TILE]
        found[begin - start : end - start] = (part >> np.uint64(11)) * 2.0**-53
    return found


def of_replicate(seed: int, stream: str, replicate: int) -> np.random.Generator:
    """Generator of what one replicate draws on the driver or in its own task, not by row.

    Examples
    --------
    >>> a, b = (of_replicate(0, "train", number).normal() for number in (0, 1))
    >>> a == of_replicate(0, "train", 0).normal(), a == b
    (True, False)
    """
    entropy = [*_key(seed, stream).tolist(), replicate]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def generator(seed: int, stream: str) -> np.random.Generator:
    """Generator for what is drawn once on the driver (frequencies, say), not by row."""
    # From a SeedSequence, not a key: scipy spawns children from it.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(_key(seed, stream).tolist())))


def _tile(seed: int, stream: str, tile: int) -> np.ndarray:
    # The tile number sits in the counter's third word: a tile uses the first one only.
    return _philox(seed, stream, tile, 1).random_raw(TILE)


def _philox(
    seed: int, stream: str, tile: int, kind: int, block: int = 0, skipped: int = 0
) -> np.random.Philox:
    # The counter's first word counts fours of numbers.
    counter = np.array([skipped // 4, block, tile, kind], np.uint64)
    return np.random.Philox(key=_key(seed, stream), counter=counter)


def _key(seed: int, stream: str) -> np.ndarray:
    return np.array([seed, zlib.crc32(stream.encode())], np.uint64)
