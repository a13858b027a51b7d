"""Which values of the metadata find a slice?  The best leaf of a small tree, in words.

The tree is grown on one half of a sample of the judging rows; how good its leaf is, the other half tells.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from scaleshift.blocks import noise, passes, states
from scaleshift.blocks.block import Block, Rows
from scaleshift.errors import DataError
from scaleshift.slices.describing.words import shown
from scaleshift.slices.prepared import Preparation, held_out
from scaleshift.slices.survey import checked_weight

if TYPE_CHECKING:
    from scaleshift.slices.base import Slices

ROWS = 20_000  # of the sample
DEPTH = 2
LEAST_LEAF = 5  # rows of the sample in a leaf
MOST_LEVELS = 30  # of a category: the most frequent ones
Box = dict[int, tuple[float, float]]  # column -> values in (low, high]
ALPHA = 0.01  # a rule that the other half does not bear out is none
QUESTION = 0.05  # of the harmonic mean of precision and coverage


class Rule(NamedTuple):
    """What finds a slice."""

    text: str = ""
    precision: float = np.nan  # share of the rule's rows that belong to the slice
    coverage: float = np.nan  # share of the slice's rows that the rule finds


def rules(
    rows: Rows, slices: Slices, preparation: Preparation, metadata: pd.DataFrame, only_held: bool
) -> list[Rule]:
    """The best rule for each slice: one pass over the embeddings.

    Parameters
    ----------
    rows : Rows
    slices : Slices
    preparation : Preparation
    metadata : pandas.DataFrame
        One row a row.
    only_held : bool
        Whether rows that the fit saw are left out.
    """
    if not isinstance(metadata, pd.DataFrame):
        raise DataError(
            f"metadata is a {type(metadata).__name__}: expected a pandas DataFrame, one row a row"
        )
    if len(metadata) != rows.x.shape[0]:
        raise DataError(
            f"metadata has {len(metadata)} rows, the embeddings have {rows.x.shape[0]}: pass as many"
        )
    row, members = sampled(rows, slices, preparation, only_held)
    if not len(row):
        return [Rule()] * slices.n_slices
    questions = _questions(metadata.iloc[row])
    if not questions:
        return [Rule()] * slices.n_slices
    half = (noise.keys_of(preparation.seed, "rules", row) & np.uint64(1)).astype(bool)
    table = np.column_stack([question.values for question in questions])
    return [_rule(table, questions, inside, half) for inside in members.T]


def sampled(
    rows: Rows, slices: Slices, preparation: Preparation, only_held: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Absolute numbers of some judging rows, and the slices they belong to: (k,), (k, S) bool."""
    n = np.array([ROWS])
    drawn = passes.total(
        drawn_leaf,
        replace(rows, columns={name: of for name, of in rows.columns.items() if name == "weight"}),
        None,
        merge=functools.partial(states.merge_smallest, n),
        n=n,
        slices=slices,
        preparation=preparation,
        holdout=preparation.holdout if only_held else 0.0,
    )
    order = np.argsort(drawn["row"])
    return drawn["row"][order], drawn["x"][order]


def drawn_leaf(
    block: Block, n: np.ndarray, slices: Slices, preparation: Preparation, holdout: float
) -> dict[str, np.ndarray]:
    """The rows that are drawn of one raw block; in place of embeddings the slices they belong to."""
    by = functools.partial(judging, seed=preparation.seed, holdout=holdout)
    drawn = states.smallest(block, n, by, preparation.seed, "metadata")
    x = preparation.projection(drawn["x"], np.dtype(preparation.dtype))
    return {**drawn, "x": slices.members(x)}


def judging(block: Block, seed: int, holdout: float) -> np.ndarray:
    """Stratum 0 for the rows that judge, -1 for others; all that count judge where no share is held out."""
    judges = checked_weight(block) > 0
    if holdout:
        judges &= held_out(block, seed, holdout)
    return np.where(judges, 0, -1)


@dataclass(frozen=True)
class Question:
    """A column of numbers that a tree may cut, and what its sides mean."""

    name: str
    values: np.ndarray  # (k,)
    level: str | None = None  # of a category: above the cut is "name == level", below it is not
    scale: str = "number"  # or "time"

    def text(self, low: float, high: float) -> str:
        """What it says of a row that its value lies in (low, high]."""
        if self.level == "missing":
            return f"{self.name} is {'missing' if low > 0 else 'known'}"
        if self.level is not None:
            return f"{self.name} {'==' if low > 0 else '!='} {self.level}"
        if np.isfinite(low) and np.isfinite(high):
            return f"{self._shown(low)} < {self.name} <= {self._shown(high)}"
        return (
            f"{self.name} > {self._shown(low)}" if np.isfinite(low) else f"{self.name} <= {self._shown(high)}"
        )

    def _shown(self, number: float) -> str:
        if self.scale == "time":
            return str(pd.Timestamp(int(number * 1e9)).floor("s"))
        return f"{number:.4g}"


def _questions(metadata: pd.DataFrame) -> list[Question]:
    """All columns as numbers: categories one-hot, a column of their own for missing values."""
    found: list[Question] = []
    for name, column in metadata.items():
        missing = column.isna().to_numpy()
        if missing.all():
            continue
        if pd.api.types.is_datetime64_any_dtype(column):
            seconds = pd.to_datetime(column, utc=True).astype("datetime64[ns, UTC]").astype("int64") / 1e9
            found.append(Question(str(name), _filled(seconds.to_numpy(), missing), scale="time"))
        elif pd.api.types.is_numeric_dtype(column) and not _is_no_scale(column):
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            found.append(Question(str(name), _filled(numbers, missing)))
        else:
            levels = _counted(column, name)
            for level in sorted(levels.index[:MOST_LEVELS], key=str):
                values = (column == level).fillna(False).to_numpy(dtype=np.float64)
                found.append(Question(str(name), values, level=shown(level)))
        if missing.any():
            found.append(Question(str(name), missing.astype(np.float64), level="missing"))
    return found


def _is_no_scale(column: pd.Series) -> bool:
    return bool(pd.api.types.is_bool_dtype(column) or pd.api.types.is_complex_dtype(column))


def _counted(column: pd.Series, name: object) -> pd.Series:
    """How often each value of a column is there."""
    if pd.api.types.is_complex_dtype(column):
        raise DataError(f"the column {name!r} of metadata holds complex numbers: leave it out")
    known = column.dropna()
    if any(isinstance(value, np.ndarray | list | tuple | dict | set) for value in known):
        raise DataError(
            f"the column {name!r} of metadata holds lists: expected one number or word a row; leave it out"
        )
    try:
        return known.value_counts()
    except TypeError as error:
        raise DataError(
            f"the column {name!r} of metadata cannot be counted ({error}): leave it out"
        ) from error


def _filled(numbers: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Numbers that a tree takes; those missing lie in the middle, where they say least."""
    largest = float(np.finfo(np.float32).max)
    return np.where(missing, np.median(numbers[~missing]), np.clip(numbers, -largest, largest))


def _rule(table: np.ndarray, questions: list[Question], inside: np.ndarray, half: np.ndarray) -> Rule:
    """The node of the tree that finds the slice best, as the other half of the rows sees it."""
    if not inside[half].any() or inside[half].all():
        return Rule()
    tree = DecisionTreeClassifier(
        max_depth=DEPTH, min_samples_leaf=LEAST_LEAF, class_weight="balanced", random_state=0
    ).fit(table[half], inside[half])
    boxes = _boxes(tree.tree_)
    if not boxes:
        return Rule()
    # A further question must find clearly more: what it adds on the half it was chosen on is partly luck.
    box = max(boxes, key=lambda b: _score(_within(table[half], b), inside[half])[2] - QUESTION * len(b))
    other, member = _within(table[~half], box), inside[~half]
    precision, coverage, score = _score(other, member)
    hits = int((other & member).sum())
    by_chance = stats.hypergeom.sf(hits - 1, len(member), int(member.sum()), int(other.sum()))
    trivial = _score(np.ones(len(member), bool), member)[2]
    if not hits or by_chance > ALPHA or score <= trivial:
        return Rule()
    return Rule(_told(questions, box), precision, coverage)


def _told(questions: list[Question], box: Box) -> str:
    """A box in words; that a category has one value says that it has no other."""
    told = [
        (questions[column], low > 0, questions[column].text(low, high)) for column, (low, high) in box.items()
    ]
    equal = {question.name for question, above, _ in told if question.level and above}
    return " and ".join(
        text for question, above, text in told if question.name not in equal or (question.level and above)
    )


def _boxes(tree: Any) -> list[Box]:
    """Where the rows of each node but the root lie, those of few questions first."""
    left, right = tree.children_left, tree.children_right
    feature, threshold = tree.feature, tree.threshold
    found: list[Box] = []
    waiting: list[tuple[int, Box]] = [(0, {})]
    while waiting:
        node, box = waiting.pop(0)
        if box:
            found.append(box)
        if left[node] < 0:
            continue
        column, cut = int(feature[node]), float(threshold[node])
        low, high = box.get(column, (-np.inf, np.inf))
        waiting.append((int(left[node]), {**box, column: (low, min(high, cut))}))
        waiting.append((int(right[node]), {**box, column: (max(low, cut), high)}))
    return found


def _within(table: np.ndarray, box: Box) -> np.ndarray:
    """Rows in a box; compared as the tree does it, in float32."""
    table = table.astype(np.float32)
    found = np.ones(len(table), bool)
    for column, (low, high) in box.items():
        found &= (table[:, column] > low) & (table[:, column] <= high)
    return found


def _score(found: np.ndarray, inside: np.ndarray) -> tuple[float, float, float]:
    """Precision, coverage and their harmonic mean."""
    hits = float((found & inside).sum())
    precision, coverage = hits / max(found.sum(), 1), hits / max(inside.sum(), 1)
    return precision, coverage, 2 * hits / max(found.sum() + inside.sum(), 1)
