"""What was labelled? Cells by label and by sample, as a dictionary for people and machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleshift.cells.labels.codes import CellLabels
from scaleshift.cells.manifest import Manifest
from scaleshift.cells.problem import Problem, several


class Counts:
    """Cells of each sample and label; the unlabelled ones stand in the first column."""

    def __init__(self, manifest: Manifest, n_labels: int) -> None:
        self._ends = np.cumsum(manifest.counts)
        self.cells = np.zeros((len(manifest.samples), n_labels + 1), np.int64)

    def add(self, first: int, codes: np.ndarray) -> None:
        """Count the codes of consecutive cells, from row `first` on."""
        if not len(codes):
            return
        edges = self._ends[self._ends > first]
        edges = edges[edges <= first + len(codes)]
        start = int(np.searchsorted(self._ends, first, side="right"))
        lengths = np.diff([first, *edges.tolist(), first + len(codes)])
        width = self.cells.shape[1]
        sample = np.repeat(np.arange(len(lengths)), lengths)
        found = np.bincount(sample * width + codes + 1, minlength=len(lengths) * width).reshape(-1, width)
        found = found[: len(self.cells) - start]  # behind the last sample's end stands nothing
        self.cells[start : start + len(found)] += found


def report_of(manifest: Manifest, counts: Counts, told: CellLabels, remarks: list[Problem]) -> dict[str, Any]:
    """The report of `label_cells`."""
    cells = counts.cells
    labels = [
        {
            "label": label,
            "parent": manifest.parents.get(str(label)),
            "n_cells": int(cells[:, code + 1].sum()),
            "n_samples": int((cells[:, code + 1] > 0).sum()),
        }
        for code, label in enumerate(manifest.labels)
    ]
    samples = [
        {
            "sample": name,
            "n_cells": int(row.sum()),
            "n_labelled": int(row[1:].sum()),
            "labels": {str(label): int(n) for label, n in zip(manifest.labels, row[1:], strict=True) if n},
        }
        for name, row in zip(manifest.samples, cells, strict=True)
    ]
    without = [sample["sample"] for sample in samples if not sample["n_labelled"]]
    return {
        "schema": "scaleshift.label/1",
        "store": manifest.path,
        "n_cells": manifest.n_cells,
        "n_labelled": int(cells[:, 1:].sum()),
        "n_unlabelled": int(cells[:, 0].sum()),
        "labels": labels,
        "samples": samples,
        "samples_without_labels": without,
        "unlabelled_words": dict(told.unlabelled),
        "parents": dict(manifest.parents),
        "remarks": [remark.to_json() for remark in [*remarks, *_remarks(manifest.path, told, without)]],
    }


def _remarks(store: str, told: CellLabels, without: list[Any]) -> list[Problem]:
    """What a person should know about cells and samples without a label."""
    remarks = []
    words = {word: n for word, n in told.unlabelled.items() if word}
    if words:
        text = several([f"{word!r} ({n} times)" for word, n in words.items()])
        fix = (
            "pass unlabelled=[] (--unlabelled '') if 0 is a label, as of a clustering" if "0" in words else ""
        )
        remarks.append(Problem("warning" if fix else "note", store, f"taken as unlabelled: {text}", fix))
    if without:
        remarks.append(Problem("note", store, f"{len(without)} samples have no label: {several(without)}"))
    return remarks
