"""Which result is this?  Every kind that the library returns, how it is known, and what shows it.

A new kind of result is a module with its table, text and picture, and a line in `KINDS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pandas as pd
import xarray as xr

from scaleshift.errors import DataError
from scaleshift.report.opened import as_made

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Kind:
    """One kind of result.

    Attributes
    ----------
    name : str
    made_by : str
        What returns it, in words.
    recognises : callable
        Whether an object is of this kind: by its variables and dimensions, or its class.
    homes : dict of str to str
        Where the functions "table", "text" and "plot" are: "module:function" of `scaleshift.report`, which is
        imported when it is called.

    Examples
    --------
    >>> KINDS["league"].made_by
    'quantify.compare'
    """

    name: str
    made_by: str
    recognises: Test
    homes: dict[str, str]

    def show(self, what: str, result: Any, *arguments: Any, **options: Any) -> Any:
        """Call the function for "table", "text" or "plot"; what was opened from a store is shown as made.

        Parameters
        ----------
        what : {"table", "text", "plot"}
        result : object
            Of this kind.
        *arguments, **options
            Those of the function.

        Returns
        -------
        object
            What the function returns.

        Examples
        --------
        >>> import scaleshift as ss
        >>> KINDS["roc"].show("table", ss.roc_auc([0, 1], [0.1, 0.4]))["quantity"].tolist()[:2]
        ['auc', 'bound']
        """
        module, name = self.homes[what].split(":")
        function = getattr(import_module(f"scaleshift.report.{module}"), name)
        return function(as_made(result), *arguments, **options)


def kind_of(result: Any) -> Kind:
    """Say which kind of result this is.

    Parameters
    ----------
    result : object
        What a public function or method of the library returned.

    Returns
    -------
    Kind

    Raises
    ------
    DataError
        If it is none: names what it is, the way from there to a result, and the kinds there are.

    Examples
    --------
    >>> proportions = xr.Dataset({"proportion": (("sample", "label"), [[0.2, 0.5]])})
    >>> kind_of(proportions).name
    'proportions'
    """
    for kind in KINDS.values():
        if kind.recognises(result):
            return kind
    known = "\n".join(f"  {kind.name}: {kind.made_by}" for kind in KINDS.values())
    raise DataError(f"this is no result, but {_told(result)}. Results are\n{known}")


def has(*variables: str, over: str = "") -> Test:
    """Know a dataset by some of its variables, which together no other kind has.

    Parameters
    ----------
    *variables : str
    over : str
        Dimensions, between blanks, that it has too.
    """

    def test(result: Any) -> bool:
        if not isinstance(result, xr.Dataset):
            return False
        return set(variables) <= set(result.variables) and set(over.split()) <= set(result.dims)

    return test


def is_called(module: str, name: str) -> Test:
    """Know an object by its class, without importing it."""
    return lambda result: (type(result).__module__, type(result).__name__) == (module, name)


def is_number(*variables: str) -> Test:
    """Know a dataset without dimensions by some of its variables."""
    test = has(*variables)
    return lambda result: test(result) and not result.dims


def is_frame(*columns: str) -> Test:
    """Know a data frame by some of its columns."""
    return lambda result: isinstance(result, pd.DataFrame) and set(columns) <= set(result.columns)


def is_mapping(*keys: str) -> Test:
    """Know a mapping by some of its keys."""
    return lambda result: isinstance(result, Mapping) and set(keys) <= set(result)


def _kind(name: str, made_by: str, recognises: Test, table: str, text: str, plot: str) -> tuple[str, Kind]:
    return name, Kind(name, made_by, recognises, {"table": table, "text": text, "plot": plot})


_PLAN = "scaleshift.blocks.plan", "Plan"
_STUDY = "scaleshift.cells.intake.plan", "StudyPlan"
_IMPORT = "scaleshift.cells.intake.report", "IngestReport"
# fmt: off
#: name -> kind; what is asked for first stands first
KINDS: dict[str, Kind] = dict([
    _kind("proportions", "predict of a quantifier", has("proportion"),
          "proportions:proportion_table", "proportions:proportion_text", "proportion_bars:proportion_plot"),
    _kind("league", "quantify.compare", has("error", "score", over="method setting"),
          "ranking:league", "ranking:league_text", "league_picture:league_plot"),
    _kind("diagnosis", "quantify.diagnose", has("verdict", "shift"),
          "diagnosis:diagnosis_table", "diagnosis:diagnosis_text", "diagnosis_picture:diagnosis_plot"),
    _kind("gates", "report.compare_gated", is_frame("sample", "gated", "estimated", "difference"),
          "gates:gated_table", "gates:gated_text", "gates:gated_plot"),
    _kind("slices", "describe of a slicer", has("error_rate", "words", over="slice"),
          "slices:slice_table", "slices:slice_text", "slices:slice_plot"),
    _kind("slice comparison", "slices.compare", has("growth", "words", over="slice"),
          "growth:growth_table", "growth:growth_text", "growth_picture:growth_plot"),
    _kind("slice scores", "slices.metrics.score", has("precision_at_k", "discovery_rate"),
          "planted:planted_table", "planted:planted_text", "planted:planted_plot"),
    _kind("ranking", "describe of a SparseAUC", has("coef_scaled", "selected", over="feature"),
          "auc_rows:auc_table", "auc:ranking_text", "auc_picture:ranking_plot"),
    _kind("ranking path", "path_ of a SparseAUC", has("coef", "auc", "selected", over="k"),
          "auc_rows:auc_path_table", "auc:path_text", "auc_picture:path_plot"),
    _kind("roc", "roc_auc", is_number("auc", "bound"),
          "numbers:numbers_table", "numbers:numbers_text", "numbers:numbers_plot"),
    _kind("errors", "predict or update of a PredictionError", has("error", over="target method"),
          "error:error_table", "error:error_text", "error_picture:error_plot"),
    _kind("replicates", "replicates_ of a PredictionError", has("in_b", over="replicate"),
          "replicates:replicate_table", "replicates:replicate_text", "replicates:replicate_plot"),
    _kind("error estimate", "functions of scaleshift.error, PredictionError.observed", is_number("error"),
          "numbers:numbers_table", "numbers:numbers_text", "numbers:numbers_plot"),
    _kind("projection norm", "error.projection_norm", is_number("norm"),
          "numbers:numbers_table", "numbers:numbers_text", "numbers:numbers_plot"),
    _kind("plan", "explain", is_called(*_PLAN),
          "plans:plan_table", "plans:plan_text", "plans:plan_plot"),
    _kind("study check", "cells.check", is_called(*_STUDY),
          "studies:study_table", "studies:study_text", "studies:study_plot"),
    _kind("import", "ingest", is_called(*_IMPORT),
          "studies:study_table", "studies:study_text", "studies:study_plot"),
    _kind("labelling", "label_cells", is_mapping("labels", "samples", "n_labelled", "n_unlabelled"),
          "studies:label_table", "studies:label_text", "studies:label_plot"),
])
# fmt: on


def _told(result: Any) -> str:
    """What something else is, and the way from there to a result."""
    if isinstance(result, xr.Dataset):
        if "X" in result:
            return "a dataset of cells: pass what predict, describe, ... say of them"
        variables = ", ".join(sorted(map(str, result.variables))[:8]) or "none"
        return f"a Dataset with the variables {variables} over ({', '.join(map(str, result.dims))})"
    if isinstance(result, str | os.PathLike):
        return "a path or name: open what is there first, as with xarray.open_zarr(path, consolidated=False)"
    if isinstance(result, pd.DataFrame):
        columns = ", ".join(map(str, result.columns[:8])) or "none"
        return f"a DataFrame with the columns {columns}: pass the result that it was made of"
    if isinstance(result, xr.DataArray):
        return "a DataArray, which its own to_pandas() and plot() show"
    if hasattr(result, "fit"):
        return f"a {type(result).__name__}: pass what its methods return, such as predict or describe"
    return "None" if result is None else f"an object of the type {type(result).__name__}"
