"""How is each file of a study compensated? By its own matrix, by one for all, or not at all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scaleshift.cells.files.described import Described
from scaleshift.cells.problem import Problem, several
from scaleshift.cells.sheets.channels import Modality
from scaleshift.cells.treatment.compensation import (
    Spillover,
    already_compensated,
    inverse,
    positions,
)
from scaleshift.cells.treatment.spillover_table import read_spillover
from scaleshift.errors import DataError


class Matrix(NamedTuple):
    """What a file is compensated by."""

    spillover: Spillover
    columns: np.ndarray  # of the file


class Compensating(NamedTuple):
    """The choice for all files.

    Attributes
    ----------
    matrices : dict
        Path to its Matrix; files that are not in it are not compensated.
    state : "spillover" or "none"
        Whether the study's intensities are compensated, here or before.
    problems : list of Problem
    said : list of str
    """

    matrices: dict[str, Matrix]
    state: str
    problems: list[Problem]
    said: list[str]


def choose_compensation(
    wanted: Any, files: Sequence[Described], kinds: Mapping[str, Modality]
) -> Compensating:
    """Choose the matrix of each file.

    Parameters
    ----------
    wanted : "auto", "none", None, path or Spillover
        "auto": each file's own matrix, but for mass cytometry and for files that are compensated already.
    files : sequence of Described
    kinds : mapping
        Path to modality.
    """
    if wanted is None or (isinstance(wanted, str) and wanted == "none"):
        return Compensating({}, "none", [], [])
    own = isinstance(wanted, str) and wanted == "auto"
    given = None if own else wanted if isinstance(wanted, Spillover) else read_spillover(wanted)
    matrices: dict[str, Matrix] = {}
    problems, without, n_before = [], [], 0
    same: dict[Spillover, Spillover] = {}  # equal matrices are kept once
    for file in files:
        if own and kinds[file.path] == "mass":
            continue
        if own and already_compensated(file.channels, file.markers):
            text = "compensated already, by the names of its channels: not done again"
            problems.append(Problem("note", file.path, text))
            n_before += 1
            continue
        spillover = file.spillover if given is None else given
        if spillover is None or spillover.is_identity:
            without.append(file.path)
            continue
        try:
            columns = positions(spillover, file.channels, file.markers, file.path)
            inverse(spillover)
            matrices[file.path] = Matrix(same.setdefault(spillover, spillover), columns)
        except DataError as error:
            text = str(error).removeprefix(file.path).lstrip(":, ")
            problems.append(Problem("error", file.path, text))
    if matrices and without:
        more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
        text = f"holds no spillover matrix, others do: not compensated{more}"
        problems.append(Problem("warning", without[0], text, "pass compensation='none', or a matrix for all"))
    said = _said(matrices, len(files), given)
    if own and not matrices and not n_before and "fluorescence" in kinds.values():
        said = ["compensation: none, for no file holds a spillover matrix"]
    return Compensating(matrices, "spillover" if matrices or n_before else "none", problems, said)


def _said(matrices: Mapping[str, Matrix], n_files: int, given: Spillover | None) -> list[str]:
    """How many files are compensated by what, and which ones otherwise than most."""
    if not matrices:
        return []
    text = f"compensation: {len(matrices)} of {n_files} files, by "
    if given is not None:
        return [text + given.source]
    counts = Counter(matrix.spillover for matrix in matrices.values())
    if len(counts) == 1:
        return [text + "the spillover matrix that all of them hold"]
    usual = counts.most_common(1)[0][0]
    others = [os.path.basename(path) for path, matrix in matrices.items() if matrix.spillover != usual]
    text += f"their own spillover matrices: {len(counts)} different ones"
    return [f"{text}; not the usual one in {several(others)}"]
