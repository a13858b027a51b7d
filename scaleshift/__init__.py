"""scaleshift: working under distribution shift at any size."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from scaleshift import auc, cells, cluster, datasets, error, models, quantify, report, slices
    from scaleshift.auc.roc import roc_auc
    from scaleshift.auc.sparse_auc import SparseAUC
    from scaleshift.blocks.plan import explain
    from scaleshift.cells import (
        append_cells,
        as_cells,
        check,
        ingest,
        label_cells,
        open_cells,
        write_cells,
    )
    from scaleshift.error.prediction_error import PredictionError
    from scaleshift.errors import (
        ChunkError,
        ClusterError,
        DataError,
        DoesNotFitError,
        NotIdentifiableError,
        ScaleshiftError,
        SchemaError,
    )
    from scaleshift.persistence import load
    from scaleshift.quantify.dfm import DFM
    from scaleshift.quantify.families.bbse import BBSE
    from scaleshift.quantify.families.counting import AdjustedCount, ClassifyAndCount
    from scaleshift.quantify.families.dys import DyS
    from scaleshift.quantify.families.hdx import HDx
    from scaleshift.quantify.families.mlls import MLLS
    from scaleshift.quantify.families.rlls import RLLS
    from scaleshift.quantify.features import (
        ClassifierFeatures,
        EnergyKernel,
        ExactKernel,
        FourierFeatures,
        GaussianKernel,
        LandmarkFeatures,
        SlicedEnergy,
    )
    from scaleshift.quantify.open_set.open_set import OpenSetQuantifier
    from scaleshift.slices.domino import DominoSlicer
    from scaleshift.slices.spotlight import SpotlightSlicer

__all__ = [
    "BBSE",
    "DFM",
    "MLLS",
    "RLLS",
    "AdjustedCount",
    "ChunkError",
    "ClassifierFeatures",
    "ClassifyAndCount",
    "ClusterError",
    "DataError",
    "DoesNotFitError",
    "DominoSlicer",
    "DyS",
    "EnergyKernel",
    "ExactKernel",
    "FourierFeatures",
    "GaussianKernel",
    "HDx",
    "LandmarkFeatures",
    "NotIdentifiableError",
    "OpenSetQuantifier",
    "PredictionError",
    "ScaleshiftError",
    "SchemaError",
    "SlicedEnergy",
    "SparseAUC",
    "SpotlightSlicer",
    "append_cells",
    "as_cells",
    "auc",
    "cells",
    "check",
    "cluster",
    "datasets",
    "error",
    "explain",
    "ingest",
    "label_cells",
    "load",
    "models",
    "open_cells",
    "quantify",
    "report",
    "roc_auc",
    "slices",
    "write_cells",
]

# Public names are imported when first used: a command line that only asks for help stays quick.
_MODULES = {"auc", "cells", "cluster", "datasets", "error", "models", "quantify", "report", "slices"}
_HOMES = {
    "AdjustedCount": "scaleshift.quantify.families.counting",
    "BBSE": "scaleshift.quantify.families.bbse",
    "ClassifierFeatures": "scaleshift.quantify.features",
    "ClassifyAndCount": "scaleshift.quantify.families.counting",
    "DFM": "scaleshift.quantify.dfm",
    "DominoSlicer": "scaleshift.slices.domino",
    "DyS": "scaleshift.quantify.families.dys",
    "EnergyKernel": "scaleshift.quantify.features",
    "ExactKernel": "scaleshift.quantify.features",
    "FourierFeatures": "scaleshift.quantify.features",
    "GaussianKernel": "scaleshift.quantify.features",
    "HDx": "scaleshift.quantify.families.hdx",
    "LandmarkFeatures": "scaleshift.quantify.features",
    "MLLS": "scaleshift.quantify.families.mlls",
    "OpenSetQuantifier": "scaleshift.quantify.open_set.open_set",
    "PredictionError": "scaleshift.error.prediction_error",
    "RLLS": "scaleshift.quantify.families.rlls",
    "SlicedEnergy": "scaleshift.quantify.features",
    "SparseAUC": "scaleshift.auc.sparse_auc",
    "SpotlightSlicer": "scaleshift.slices.spotlight",
    "append_cells": "scaleshift.cells",
    "as_cells": "scaleshift.cells",
    "check": "scaleshift.cells",
    "explain": "scaleshift.blocks.plan",
    "ingest": "scaleshift.cells",
    "label_cells": "scaleshift.cells",
    "load": "scaleshift.persistence",
    "open_cells": "scaleshift.cells",
    "roc_auc": "scaleshift.auc.roc",
    "write_cells": "scaleshift.cells",
    **dict.fromkeys(
        [
            "ChunkError",
            "ClusterError",
            "DataError",
            "DoesNotFitError",
            "NotIdentifiableError",
            "ScaleshiftError",
            "SchemaError",
        ],
        "scaleshift.errors",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"scaleshift.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'scaleshift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
