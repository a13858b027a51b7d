"""Which features rank the positives, and how well?  For the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from rich import box
from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from scaleshift.blocks.sizes import count
from scaleshift.errors import DataError
from scaleshift.report.auc_words import chosen, in_words, number, over, positive_of, selected
from scaleshift.report.digits import rows
from scaleshift.report.names import printable
from scaleshift.report.printed import Printed

FEATURES = ("coef", "coef_scaled", "selected", "stability", "auc_alone", "mean_positive", "mean_negative")
OF_RANKING = ("auc", "auc_se", "auc_binormal", "weight_positive", "weight_negative")
PATH = ("coef", "auc", "auc_se", "auc_binormal", "objective")
SEVERAL = "contrast"
MOST_ROWS = 30  # features that are listed; the CSV has all
MOST_ROWS_EACH = 10  # of several contrasts
MOST_SIZES = 8  # numbers of features whose AUC is shown
OTHER_COLUMNS = 46  # characters beside the names
CHOSEN = "*: the number of features that was chosen"
Contrast = tuple[str | None, xr.Dataset]  # name and part of the result
CAPTION = (
    "weight: for one standard deviation within the classes; stability: share of halves of the data that "
    "choose the feature too; AUC alone: of the feature by itself"
)


def auc_text(result: xr.Dataset, path_: xr.Dataset, *, width: int | None = None) -> Printed:
    """Chosen features for the terminal, the held-out AUC above and what to mind below.

    Names are shown as they are: markup in them has no effect.

    Parameters
    ----------
    result : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns.
    path_ : xarray.Dataset
        Its ``path_``.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If either is another dataset.

    Examples
    --------
    >>> print(auc_text(_example(), _example_path(), width=80))
    T: held-out AUC 0.910 (standard error 0.010) with 1 feature; 50 positives, 950
    negatives
    <BLANKLINE>
     rank  feature  weight  in positives  stability  AUC alone
     ─────────────────────────────────────────────────────────
        1  CD3      +0.500  higher             1.00      0.910
    <BLANKLINE>
    weight: for one standard deviation within the classes; stability: share of
    halves of the data that choose the feature too; AUC alone: of the feature by
    itself
    <BLANKLINE>
     features           1*      2
     held-out AUC    0.910  0.920
     standard error  0.010  0.010
    """
    found = contrasts(result, (*FEATURES, *OF_RANKING), "features", "describe()")
    paths = same_contrasts(found, path_)
    room = Console().width if width is None else width
    parts: list[RenderableType] = []
    for (name, one), (_, path) in zip(found, paths, strict=True):
        parts += [Text("")] if parts else []
        parts += _ranking(one, name, len(found), room)
        parts += [Text(CAPTION, "italic"), Text("")] if one is found[-1][1] else []
        parts.append(_path(path))
        words = in_words(one, path)
        if words:
            parts += [Text(""), Constrain(_listed(words), room)]
    return Printed(*parts, width=width)


def ranking_text(result: xr.Dataset, *, width: int | None = None) -> Printed:
    """Chosen features for the terminal, without the path behind them: `auc_text` shows both.

    Parameters
    ----------
    result : xarray.Dataset
        What ``describe`` of a `SparseAUC` returns.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If it is another dataset.

    Examples
    --------
    >>> print(str(ranking_text(_example(), width=80)).splitlines()[5].strip())
    1  CD3      +0.500  higher             1.00      0.910
    """
    found = contrasts(result, (*FEATURES, *OF_RANKING), "features", "describe()")
    room = Console().width if width is None else width
    parts: list[RenderableType] = []
    for name, one in found:
        parts += [*([Text("")] if parts else []), *_ranking(one, name, len(found), room)]
    return Printed(*parts, Text(CAPTION, "italic"), width=width)


def path_text(path_: xr.Dataset, *, width: int | None = None) -> Printed:
    """AUC by number of features, for the terminal: `auc_text` shows the features too.

    Parameters
    ----------
    path_ : xarray.Dataset
        ``path_`` of a `SparseAUC`.
    width : int, optional
        Characters a line; default: those of the terminal.

    Returns
    -------
    Printed
        For `print`, or for a `rich.console.Console` of that width.

    Raises
    ------
    DataError
        If it is another dataset.

    Examples
    --------
    >>> print(path_text(_example_path(), width=80))
     features           1*      2
     held-out AUC    0.910  0.920
     standard error  0.010  0.010
    <BLANKLINE>
    *: the number of features that was chosen
    """
    parts: list[RenderableType] = []
    for name, path in contrasts(path_, PATH, "path", "path_"):
        parts += [] if name is None else [Text(printable(name), "bold")]
        parts += [_path(path), Text("")]
    return Printed(*parts, Text(CHOSEN, "italic"), width=width)


def same_contrasts(found: list[Contrast], path_: xr.Dataset) -> list[Contrast]:
    """Parts of a path, which are those of a ranking.

    Raises
    ------
    DataError
        If they are others, or it is no path.
    """
    paths = contrasts(path_, PATH, "path", "path_")
    if [name for name, _ in found] != [name for name, _ in paths]:
        raise DataError("describe() and path_ are of other contrasts: pass those of one model")
    return paths


def _ranking(one: xr.Dataset, name: str | None, n_contrasts: int, room: int) -> list[RenderableType]:
    """What ranks what, and by which features."""
    most = MOST_ROWS if n_contrasts == 1 else MOST_ROWS_EACH
    return [Text(headline(one, name), "bold"), _features(one, most, room)]


def headline(one: xr.Dataset, name: str | None) -> str:
    """What ranks what, and how well."""
    name = positive_of(one) + over(one) if name is None else name
    auc = float(one["auc"])
    if np.isfinite(auc):
        error = float(one["auc_se"])
        told = f"held-out AUC {number(auc)}"
        told += f" (standard error {number(error)})" if np.isfinite(error) else ""
    else:
        told = (
            f"no held-out AUC (of normal scores of the training rows: {number(float(one['auc_binormal']))})"
        )
    positives, negatives = (rows(one[side].item()) for side in ("weight_positive", "weight_negative"))
    features = count(len(chosen(one)), "feature", "features")
    return printable(f"{name}: {told} with {features}; {positives} positives, {negatives} negatives")


def _features(one: xr.Dataset, most: int, room: int) -> Table:
    """Chosen features, the largest weight first."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("rank", justify="right", no_wrap=True)
    shown.add_column("feature", overflow="fold", max_width=max(room - OTHER_COLUMNS, 12))
    shown.add_column("weight", justify="right", no_wrap=True)
    shown.add_column("in positives", no_wrap=True)
    for heading in ("stability", "AUC alone"):
        shown.add_column(heading, justify="right", no_wrap=True)
    features = chosen(one)
    weights = one["coef_scaled"].values
    digits = _digits(weights[features])
    for rank, i in enumerate(features[:most].tolist(), 1):
        alone, stability = float(one["auc_alone"][i]), float(one["stability"][i])
        cells = [
            str(rank),
            printable(one["feature"].values[i]),
            f"{weights[i]:+.{digits}f}",
            direction(one, i),
            "-" if np.isnan(stability) else f"{stability:.2f}",
            number(max(alone, 1 - alone)),  # in its direction, which stands beside
        ]
        shown.add_row(*map(Text, cells))
    if len(features) > most:
        shown.add_row(Text(""), Text(f"and {len(features) - most} more"))
    return shown


def direction(one: xr.Dataset, feature: int) -> str:
    """Whether positives have more of a feature or less."""
    gap = one["mean_positive"].values[feature] - one["mean_negative"].values[feature]
    return "higher" if gap > 0 else "lower" if gap < 0 else "-"


def _digits(weights: np.ndarray) -> int:
    """Decimals that show three digits of the largest weight."""
    largest = np.abs(weights).max(initial=0)
    return int(np.clip(2 - np.floor(np.log10(largest)), 0, 8)) if largest > 0 else 2


def _path(path: xr.Dataset) -> Table:
    """AUC by number of features, of some of them: the first, the last, the chosen, the best."""
    held_out = bool(np.isfinite(path["auc"].values).any())
    name = "auc" if held_out else "auc_binormal"
    values, sizes = path[name].values, path["k"].values.tolist()
    known = np.flatnonzero(np.isfinite(values))
    shown = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    places = _some(known, [int(known[values[known].argmax()]), *np.flatnonzero(selected(path))])
    rows = [
        [" features", *(f"{sizes[i]}{'*' if selected(path)[i] else ''}" for i in places)],
        [" held-out AUC" if held_out else " AUC in training", *(number(values[i]) for i in places)],
    ]
    if held_out and np.isfinite(path["auc_se"].values[places]).any():
        rows.append([" standard error", *(number(path["auc_se"].values[i]) for i in places)])
    shown.add_column(no_wrap=True)
    for _ in places:
        shown.add_column(justify="right", no_wrap=True)
    for row in rows:
        shown.add_row(*map(Text, row))
    return shown


def _some(known: np.ndarray, wanted: Sequence[int]) -> list[int]:
    """Places that are shown: the wanted ones, the ends, and others evenly between."""
    evenly = known[np.linspace(0, len(known) - 1, MOST_SIZES - len(set(wanted))).round().astype(int)]
    return sorted({*map(int, evenly), *map(int, wanted)})


def _listed(words: list[str]) -> Table:
    listed = Table.grid(padding=(0, 1, 0, 0))
    listed.add_column(no_wrap=True)
    listed.add_column(overflow="fold")
    for word in words:
        listed.add_row(Text("-"), Text(printable(word)))
    return listed


# Small things ------------------------------------------------------------------------------------------


def contrasts(dataset: xr.Dataset, needed: Sequence[str], what: str, source: str) -> list[Contrast]:
    """Parts of a result, one a contrast, in memory; a single one has no name.

    Raises
    ------
    DataError
        If the result is another one.
    """
    dimension = "k" if what == "path" else "feature"
    lacking = [name for name in needed if name not in dataset]
    if lacking or dimension not in dataset.dims:
        raise DataError(
            f"this tells no {what} of a ranking: it has the variables {sorted(map(str, dataset))}, expected "
            f"{list(needed)} over ({dimension}); pass the {source} of a SparseAUC"
        )
    dataset = dataset.compute()
    if SEVERAL not in dataset.dims:
        return [(None, dataset)]
    names = dataset[SEVERAL].values.tolist()
    return [(str(name), dataset.isel({SEVERAL: i})) for i, name in enumerate(names)]


def _example() -> xr.Dataset:
    """Two features, for the examples of this page."""
    numbers = {"coef": [0.1, 0], "coef_scaled": [0.5, 0], "stability": [1.0, 0.2], "auc_alone": [0.91, 0.6]}
    numbers |= {"mean_positive": [5.0, 1.0], "mean_negative": [1.0, 0.5]}
    found = xr.Dataset({name: ("feature", values) for name, values in numbers.items()})
    found["selected"] = ("feature", [True, False])
    scalars = {"auc": 0.91, "auc_se": 0.01, "auc_binormal": 0.91}
    found = found.assign(scalars | {"weight_positive": 50.0, "weight_negative": 950.0})
    return found.assign_coords(feature=["CD3", "CD19"]).assign_attrs(positive=["T"])


def _example_path() -> xr.Dataset:
    numbers = {"auc": [0.91, 0.92], "auc_se": [0.01, 0.01], "auc_binormal": [0.91, 0.92]}
    found = xr.Dataset({name: ("k", values) for name, values in {**numbers, "objective": [0.4, 0.3]}.items()})
    found["coef"] = (("k", "feature"), [[0.1, 0.0], [0.1, 0.02]])
    found["selected"] = ("k", [True, False])
    return found.assign_coords(k=[1, 2], feature=["CD3", "CD19"])
