"""How do labels get into a study that is on disk already? All told first, then written, marked meanwhile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import zarr

from scaleshift import full_disk
from scaleshift.cells.labels.codes import UNLABELLED_WORDS, CellLabels
from scaleshift.cells.labels.hierarchy import Hierarchy
from scaleshift.cells.labels.report import Counts, report_of
from scaleshift.cells.labels.sources import NO_LABELS, Request, read_parents, tell_labels
from scaleshift.cells.layout import commit, write_label_codes, write_label_names
from scaleshift.cells.manifest import LABEL_CODES, Manifest, array_of, locate, open_study, refuse_unfinished
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.reader import forget_arrays, store_at
from scaleshift.errors import DataError

BATCH = 1_000_000  # cells, about


def label_cells(
    store: str | os.PathLike[str],
    labels: Any,
    *,
    column: str | None = None,
    sample: str | None = None,
    unlabelled: Iterable[str] = UNLABELLED_WORDS,
    first_event: int | None = None,
    parents: Any = None,
    gates: Iterable[str] | None = None,
    overlap: str | None = None,
    fcs: Any = None,
) -> dict[str, Any]:
    """Write labels into a study on disk, in place of those that it has.

    Everything is read and checked first: what cannot be used changes nothing. While labels are written,
    and after a kill until this is run again, the study cannot be opened; datasets that were opened before
    are refused from then on.

    Parameters
    ----------
    store : path or URL
        A finished study.
    labels : path, str or pandas.DataFrame
        - A table (CSV, TSV, parquet, AnnData's .h5ad or Zarr store, DataFrame) with a column `file` or
          `sample`, a column `event` and one with the label, in any order of rows. Without `event` the rows
          of each sample are its events, in order, and all of them. A study of one sample needs no
          `file` or `sample`. Files go by path or base name, with or without extension; of one name, by
          their last folders.
        - A folder of gates: GATE.csv with the columns `file` or `sample`, and `event`; or SAMPLE/GATE.csv
          with the column `event`. The file's name is the label.
        - A FlowJo workspace (.wsp), gated by FlowKit (extra `flowjo`): each cell gets its deepest gate.
        - "channel:NAME": a column of X that holds whole numbers.
        - "none": takes away the labels that there are.
    column : str, default "label"
        The column with the labels, of a table.
    sample : str, optional
        The column with the samples, of a table, where it is not called `sample`.
    unlabelled : iterable of str
        Words that mean "no label", whatever their case; names of gates too. Missing values and "" always do.
        Default: "0", "ungated", "unlabeled", "unlabelled", "unknown".
    first_event : 0 or 1, optional
        Number of the first event of a file or sample. Default: 0 where there is an event 0, 1 where there
        is one whose number is that of all events of its file; without either one must be given.
    parents : mapping, path or pandas.DataFrame, optional
        Label to the population that it is part of; a sheet has the columns `label` and `parent`. Of two
        gates that hold a cell, one part of the other, the inner one counts. Default: those of the
        workspace; of a folder of gates, the smallest gate that holds all cells of a gate; else none.
    gates : iterable of str, optional
        Only these gates, of a folder or workspace. Default: all.
    overlap : "refuse" or "first", default "refuse"
        What to do with cells in two gates neither of which is part of the other: refuse, or take the deeper
        one, of two as deep the one that stands first (in `gates`, else by name, or in the workspace).
    fcs : path or list of paths, optional
        FCS files of a workspace, or their folder. Default: where the study says they are.

    Returns
    -------
    dict
        What was done, JSON-able: `labels` (label, parent, n_cells, n_samples), `samples` (n_cells,
        n_labelled, cells by label), `n_labelled`, `n_unlabelled`, `unlabelled_words`,
        `samples_without_labels`, `parents`, `remarks`.

    Raises
    ------
    SchemaError
        If there is no finished study at the path.
    DataError
        If a file, sample, column or gate is not known, an event is not there or has two labels, it is not
        clear from what number events count, gates overlap, no cell gets a label, `parents` misspells a
        label, or a package is missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from scaleshift.cells import as_cells, open_cells, write_cells
    >>> table = pd.DataFrame({"sample": ["b", "a"], "event": [1, 0], "label": ["T", "unknown"]})
    >>> with TemporaryDirectory() as folder:
    ...     write_cells(as_cells([[1.0], [2.0], [3.0]], sample=["a", "b", "b"]), f"{folder}/study.zarr")
    ...     report = label_cells(f"{folder}/study.zarr", table)
    ...     open_cells(f"{folder}/study.zarr")["label_code"].values.tolist(), report["n_labelled"]
    ([-1, -1, 0], 1)
    """
    request = Request(
        labels, column=column, sample=sample, first_event=first_event, gates=gates, overlap=overlap, fcs=fcs
    )
    group, manifest = open_study(locate(store))
    refuse_unfinished(replace(manifest, labelling=False))
    hierarchy = Hierarchy({} if parents is None else read_parents(parents))
    with contextlib.closing(CellLabels(manifest.n_cells, unlabelled, request.as_words)) as told:
        around, remarks = tell_labels(told, request, hierarchy, group, manifest)
        if request.kind != NO_LABELS:
            _refuse_without_labels(told, request.place)
            hierarchy.refuse_misspelt([str(label) for label in told.labels()])
        with full_disk.told(
            manifest.path, "then label it again; labels that are half written are refused until then"
        ):
            return _write(manifest, told, around, remarks)


def _refuse_without_labels(told: CellLabels, place: str) -> None:
    """Nobody means to lose the labels of a study by a header without rows."""
    if told.values:
        return
    words = [f"{word!r} ({n} times)" for word, n in told.unlabelled.items() if word]
    why = f": taken as unlabelled: {several(words)}" if words else ""
    words_fix = "pass unlabelled=[] (--unlabelled '') if these are labels, or " if words else ""
    raise DataError(
        f"{place} labels no cell{why}; {words_fix}pass {NO_LABELS!r} in its place to take all labels away"
    )


def _write(
    manifest: Manifest, told: CellLabels, hierarchy: Hierarchy, remarks: list[Problem]
) -> dict[str, Any]:
    """Write what was told; the study is marked from before the first change until after the last one."""
    group = zarr.open_group(
        store_at(manifest.path, read_only=False), mode="r+", zarr_format=3, use_consolidated=False
    )
    stored = array_of(group, LABEL_CODES, manifest.path)
    chunk = (stored.shards or stored.chunks)[0]
    labels = told.labels()
    # The new id keeps datasets that were opened before from taking new codes for old labels.
    marked = replace(manifest, study=uuid4().hex, labels=(), parents={}, labelling=True)
    commit(group, marked)
    forget_arrays()
    write_label_names(group, labels)
    counts = Counts(manifest, len(labels))
    for first, codes in told.coded(labels, max(1, BATCH // chunk) * chunk):
        write_label_codes(group, first, codes)
        counts.add(first, codes)
    done = replace(marked, labels=labels, parents=hierarchy.around(map(str, labels)), labelling=False)
    commit(group, done)
    return report_of(done, counts, told, remarks)
