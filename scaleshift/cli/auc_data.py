"""Which cells of a study are positives, and which negatives?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from scaleshift.cli.opening import EVERY, Opening
from scaleshift.cli.options import names as between_commas
from scaleshift.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

LEAST = 2  # cells of each side, so that some are held out
MOST_NAMES = 5
POSITIVE, NEGATIVE, LEFT_OUT = 1, 0, -1  # codes of the two sides


@dataclass(frozen=True)
class Asked:
    """What the command line says of the cells."""

    store: str
    positive: str
    negative: Sequence[str] = ()  # labels, or several between commas; none: all others
    against_unlabelled: bool = False
    select: str | None = None
    markers: Sequence[str] | None = None


@dataclass(frozen=True)
class AucData:
    """What is ranked, and what is to be said of it."""

    cells: xr.Dataset  # its two labels are the sides
    positive: Any
    negatives: str  # in words
    n_positive: int
    remarks: list[str]


def read(asked: Asked) -> AucData:
    """Open the cells of both sides: of what grows with the cells, only the labels are read."""
    from scaleshift.cells import open_cells

    opening = Opening(asked.store, asked.markers)
    positive, negatives = _sides(asked, list(opening.manifest.labels))
    samples = opening.select(asked.select or EVERY, "--select")
    cells = open_cells(asked.store, samples, markers=asked.markers)
    n = _counts(cells)  # (n_samples, 1 + n_labels), the first of cells without a label
    labels = cells["label"].values.tolist()
    side = np.array(
        [NEGATIVE if asked.against_unlabelled else LEFT_OUT, *(_side(x, positive, negatives) for x in labels)]
    )
    remarks = []
    gated = n[:, 1:].any(axis=1)
    if asked.against_unlabelled and not gated.all():
        n[~gated] = 0
        remarks.append(
            f"no cell of {_listed(cells['sample'].values[~gated])} has a label: left out, since positives "
            "among them are not known"
        )
    n_positive, n_negative = int(n[:, side == POSITIVE].sum()), int(n[:, side == NEGATIVE].sum())
    _refuse_few(positive, n_positive, n_negative, labels, n, asked)
    if n[:, 0].any() and not asked.against_unlabelled:
        remarks.append(
            f"{n[:, 0].sum()} of {n.sum()} cells have no label: left out (--against-unlabelled counts them "
            "among the negatives)"
        )
    used = n[:, side != LEFT_OUT].any(axis=1)
    if not used.all():  # nothing of the others is read
        cells = open_cells(asked.store, cells["sample"].values[used], markers=asked.markers)
    names = _names(positive, negatives, asked.against_unlabelled)
    told = _in_words(negatives, asked.against_unlabelled)
    return AucData(_two_labels(cells, side, names), positive, told, n_positive, remarks)


def _sides(asked: Asked, labels: list[Any]) -> tuple[Any, list[Any]]:
    """The positive label and the negative ones, as the study has them."""
    if not labels:
        raise DataError(f"{asked.store} has no labels: run `scaleshift label {asked.store} TABLE` first")
    positive = _label(asked.positive, labels, "--positive")
    if not asked.negative:
        others = [label for label in labels if label != positive]
        if not others and not asked.against_unlabelled:
            raise DataError(
                f"{positive!r} is the only label of {asked.store}: --against-unlabelled counts the cells "
                "without one among the negatives"
            )
        return positive, others
    texts = [str(label) for label in labels]
    named = [one for text in asked.negative for one in ([text] if text in texts else between_commas(text))]
    negatives = list(dict.fromkeys(_label(text, labels, "--negative") for text in named))
    if positive in negatives or not negatives:
        problem = f"{positive!r} is the positive label" if negatives else "names no label"
        raise click.BadParameter(problem, param_hint="--negative")
    return positive, negatives


def _label(text: str, labels: list[Any], option: str) -> Any:
    """The label that is written so."""
    from scaleshift.spelling import suggestion

    found = [label for label in labels if str(label) == text.strip()]
    if not found:
        message = f"the study has no label {text!r}{suggestion(text, labels)}"
        raise click.BadParameter(message, param_hint=option)
    return found[0]


def _side(label: Any, positive: Any, negatives: list[Any]) -> int:
    return POSITIVE if label == positive else NEGATIVE if label in negatives else LEFT_OUT


def _counts(cells: xr.Dataset) -> np.ndarray:
    """Cells by sample and label, (n_samples, 1 + n_labels), the first of those without: one pass of codes."""
    from scaleshift.blocks import passes
    from scaleshift.blocks.block import Column
    from scaleshift.blocks.rows import as_rows, with_columns

    n_samples, n_labels = cells.sizes["sample"], cells.sizes["label"]
    pair = cells["sample_code"].data * (n_labels + 1) + (cells["label_code"].data + 1)
    column = Column(pair, np.arange(n_samples * (n_labels + 1)), coded=True)
    rows = with_columns(as_rows(cells), pair=column)
    return passes.counts(rows, "pair").reshape(n_samples, n_labels + 1)


def _refuse_few(
    positive: Any, n_positive: int, n_negative: int, labels: list[Any], n: np.ndarray, asked: Asked
) -> None:
    """Raise DataError where a side has too few cells to learn from; says which labels have some."""
    if min(n_positive, n_negative) >= LEAST:
        return
    where = f"the samples with {asked.select}" if asked.select else asked.store
    by_label = n[:, 1:].sum(axis=0)
    most = np.argsort(-by_label, kind="stable")[:MOST_NAMES]
    there = ", ".join(f"{labels[i]} {by_label[i]}" for i in most.tolist() if by_label[i]) or "none"
    counted = f"cells by label there: {there}; without a label {n[:, 0].sum()}"
    if n_positive < LEAST:
        raise DataError(
            f"{positive!r} has {n_positive} cell(s) in {where}, and a ranking needs {LEAST}; {counted}: "
            "choose other samples, or another --positive"
        )
    way_out = "" if asked.against_unlabelled or not n[:, 0].any() else ", or --against-unlabelled"
    raise DataError(
        f"there are {n_negative} negative cell(s) in {where} beside {n_positive} of {positive!r}, and a "
        f"ranking needs {LEAST}; {counted}: choose other samples, or another --negative{way_out}"
    )


def _names(positive: Any, negatives: list[Any], against_unlabelled: bool) -> np.ndarray:
    """Names of the negative and the positive side: the only other label, or one made for all others."""
    if len(negatives) == 1 and not against_unlabelled:
        return np.array([negatives[0], positive])
    if isinstance(positive, str):
        return np.array([f"not {positive}", positive])
    names = np.empty(2, object)
    names[:] = f"not {positive}", positive
    return names


def _two_labels(cells: xr.Dataset, side: np.ndarray, names: np.ndarray) -> xr.Dataset:
    """The same cells with the sides for labels."""
    codes = cells["label_code"].data.map_blocks(sided, side.astype(np.int32), dtype=np.int32)
    return cells.drop_vars(["label", "label_code"]).assign(label_code=("cell", codes), label=("label", names))


def sided(codes: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Sides of the cells of a block by their label's code, -1 among them."""
    return side[codes + 1]


def _in_words(negatives: list[Any], against_unlabelled: bool) -> str:
    many = len(negatives) > MOST_NAMES
    told = [f"{len(negatives)} other labels"] if many else [str(label) for label in negatives]
    return ", ".join([*told, *(["cells without a label"] if against_unlabelled else [])])


def _listed(names: np.ndarray) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES].tolist())) + (f" and {more} more" if more > 0 else "")
