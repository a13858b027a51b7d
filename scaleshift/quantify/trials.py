"""What does a comparison try? Sources and targets whose truth is known, in the settings of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scaleshift.blocks import noise
from scaleshift.quantify.trial_cells import TrialCells

LABEL_SHIFT = "label shift"
CLASS_OUT = "class left out"
SAMPLE_OUT = "sample left out"
SAMPLE_OUT_RESAMPLED = "sample left out + label shift"
SAMPLE_OUT_UNGATED = "sample left out + ungated"
#: setting -> what is done
SETTINGS = {
    LABEL_SHIFT: "source and target are disjoint halves of the labelled cells, the target drawn again with "
    "class shares from the flat Dirichlet distribution",
    CLASS_OUT: "the same halves, one class removed from the source, the target as it is: its cells of that "
    "class are unknown",
    SAMPLE_OUT: "the labelled cells of one sample, learned from those of the others",
    SAMPLE_OUT_RESAMPLED: "the same, the target drawn again with class shares from the flat Dirichlet "
    "distribution",
    SAMPLE_OUT_UNGATED: "one sample with the cells that no label holds, which are unknown, learned from the "
    "others with theirs",
}
OF_SAMPLES = (SAMPLE_OUT, SAMPLE_OUT_RESAMPLED, SAMPLE_OUT_UNGATED)

LEAST_CELLS = 50  # labelled, of a sample that is left out
LEAST_OF_CLASS = 20  # cells to draw a resampled share from
MOST_DRAWN = 5_000  # cells of a resampled target


@dataclass(frozen=True)
class Trial:
    """A target: rows, and what they are a trial of."""

    setting: str
    unit: str  # what is left out, or the number of the draw: trials of one unit are no independent evidence
    rows: np.ndarray


@dataclass(frozen=True)
class Split:
    """A source, and the targets that are asked with it."""

    source: np.ndarray  # rows
    trials: tuple[Trial, ...]


def splits(
    cells: TrialCells, settings: Sequence[str], n_draws: int, n_left_out: int, seed: int
) -> Iterator[Split]:
    """All splits that the cells allow, in the order of `SETTINGS`.

    Leaving out needs three classes, or two samples of which one has 50 labelled cells; of more than
    `n_left_out` the largest classes, and samples at random.
    """
    left_out = _left_out(cells, n_left_out, seed)
    for found in (
        _halves(cells, n_draws, seed),
        _classes_out(cells, n_left_out),
        _samples_out(cells, left_out, n_draws, seed),
        _samples_out_ungated(cells, left_out),
    ):
        for split in found:
            trials = tuple(trial for trial in split.trials if trial.setting in settings)
            if trials:
                yield Split(split.source, trials)


def truth(cells: TrialCells, split: Split, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Classes that the source holds, as codes, and their shares of the target's rows."""
    known = np.unique(cells.label[split.source])
    known = known[known >= 0]
    share = np.bincount(cells.label[trial.rows] + 1, minlength=len(cells.labels) + 1) / len(trial.rows)
    return known, share[1 + known]


def _halves(cells: TrialCells, n_draws: int, seed: int) -> Iterator[Split]:
    source, target = _disjoint(cells)
    draws = _resampled(cells, target, n_draws, noise.generator(seed, LABEL_SHIFT))
    if draws:
        numbered = enumerate(draws, 1)
        yield Split(source, tuple(Trial(LABEL_SHIFT, f"draw {i}", rows) for i, rows in numbered))


def _classes_out(cells: TrialCells, n_left_out: int) -> Iterator[Split]:
    source, target = _disjoint(cells)
    n_rows = np.bincount(cells.label[target], minlength=len(cells.labels))
    present = np.flatnonzero(n_rows)
    if present.size < 3:  # with one class left nothing is asked
        return
    for code in present[np.argsort(-n_rows[present], kind="stable")][:n_left_out]:
        trial = Trial(CLASS_OUT, str(cells.labels[code]), target)
        yield Split(source[cells.label[source] != code], (trial,))


def _samples_out(cells: TrialCells, left_out: np.ndarray, n_draws: int, seed: int) -> Iterator[Split]:
    for code in left_out:
        name = str(cells.samples[code])
        source = np.flatnonzero((cells.sample != code) & (cells.label >= 0))
        target = np.flatnonzero((cells.sample == code) & (cells.label >= 0))
        learned = target[np.isin(cells.label[target], cells.label[source])]
        draws = _resampled(cells, learned, n_draws, noise.generator(seed, f"{SAMPLE_OUT_RESAMPLED} {name}"))
        resampled = (Trial(SAMPLE_OUT_RESAMPLED, name, rows) for rows in draws)
        yield Split(source, (Trial(SAMPLE_OUT, name, target), *resampled))


def _samples_out_ungated(cells: TrialCells, left_out: np.ndarray) -> Iterator[Split]:
    for code in left_out:
        mine = cells.sample == code
        if (cells.label[mine] < 0).any():
            trial = Trial(SAMPLE_OUT_UNGATED, str(cells.samples[code]), np.flatnonzero(mine))
            yield Split(np.flatnonzero(~mine), (trial,))


def _left_out(cells: TrialCells, n_left_out: int, seed: int) -> np.ndarray:
    """Codes of the samples that are left out in turn; none where no other is left to learn from."""
    n_labelled = np.bincount(cells.sample[cells.label >= 0], minlength=len(cells.samples))
    enough = np.flatnonzero(n_labelled >= LEAST_CELLS)
    if np.count_nonzero(n_labelled) < 2:
        return enough[:0]
    return np.sort(noise.generator(seed, "left-out samples").permutation(enough)[:n_left_out])


def _disjoint(cells: TrialCells) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the labelled rows of each sample and class; an odd row is the source's."""
    labelled = cells.label >= 0
    return np.flatnonzero(labelled & (cells.rank % 2 == 0)), np.flatnonzero(labelled & (cells.rank % 2 == 1))


def _resampled(
    cells: TrialCells, rows: np.ndarray, n_draws: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Rows drawn again, with replacement, to random shares of their classes; none with under two classes."""
    by_class = [rows[cells.label[rows] == code] for code in np.unique(cells.label[rows])]
    by_class = [mine for mine in by_class if len(mine) >= LEAST_OF_CLASS]
    if len(by_class) < 2:
        return []
    n = min(sum(map(len, by_class)), MOST_DRAWN)
    draws = []
    for shares in rng.dirichlet(np.ones(len(by_class)), n_draws):
        counts = rng.multinomial(n, shares)
        draws.append(np.concatenate([rng.choice(mine, k) for mine, k in zip(by_class, counts, strict=True)]))
    return draws
