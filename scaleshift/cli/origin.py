"""Where does a result come from?  Study, selection, treatment and import, as text that tables show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from scaleshift.cells.manifest import Manifest

IMPORT = "uns/import"  # in a study that was made of files
FILE_NAME = "file_name"  # coordinate on sample
MOST_FILES = 20  # of a sample that are named
COMPENSATION = {"spillover": "by spillover matrices", "none": "none"}
SCALING = {
    None: "none",
    "robust": "each sample by its own 1 % and 99 % quantiles",
    "z": "each sample by its own mean and standard deviation",
}


def with_origin(
    result: xr.Dataset, store: str | Path, manifest: Manifest, cells: xr.Dataset, asked: Mapping[str, str]
) -> xr.Dataset:
    """The result with the files of its samples, and attributes that say how it was made.

    Parameters
    ----------
    result : xarray.Dataset
    store : path
        The study, as the user named it.
    manifest : Manifest
        What the study holds.
    cells : xarray.Dataset
        The targets, as they were quantified.
    asked : mapping of str to str
        What the user selected: source or model, and target.
    """
    features = cells["marker"].values.tolist()
    attributes = {
        "study": str(store),
        **asked,
        "features": json.dumps(features, ensure_ascii=False),
        "transform": transform_in_words(manifest.transform, features),
        "compensation": _in_words(manifest.compensation, COMPENSATION),
        "scaling": SCALING.get(cells.attrs.get("scaling"), str(cells.attrs.get("scaling"))),
        **_import(manifest.path),
    }
    files = _files(manifest.files, result["sample"].values.tolist())
    if any(files) and FILE_NAME not in result.variables:
        result = result.assign_coords({FILE_NAME: ("sample", np.array(files, dtype=object))})
    return result.assign_attrs(attributes)


def transform_in_words(record: Any, features: Sequence[str]) -> str:
    """What was done to which features: `arcsinh(x / 5)`, or `arcsinh(x / 5): CD3, CD4; none: CD8`.

    Examples
    --------
    >>> record = {"version": 1, "markers": {"CD3": {"name": "arcsinh", "cofactor": 5.0}}}
    >>> transform_in_words(record, ["CD3"]), transform_in_words(None, ["CD3"])
    ('arcsinh(x / 5)', 'not known')
    """
    from scaleshift.cells.treatment import transform
    from scaleshift.errors import SchemaError

    try:
        of_marker = transform.from_json(record)
    except SchemaError:  # a study of arrays: its maker says what was done, in any words
        return _in_words(record, {})
    by_transform: dict[str, list[str]] = {}
    for name in features:
        by_transform.setdefault(str(of_marker.get(name, "not known")), []).append(name)
    if len(by_transform) == 1:
        return next(iter(by_transform))
    return "; ".join(f"{done}: {', '.join(names)}" for done, names in by_transform.items())


def _in_words(value: Any, words: Mapping[str, str]) -> str:
    if value is None:
        return "not known"
    return words.get(value, value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _files(entries: Iterable[Any], samples: Sequence[Any]) -> list[str | None]:
    """Names of the files that each sample's cells came from, without their folders."""
    of: dict[str, dict[str, None]] = {}
    for entry in entries:
        if isinstance(entry, Mapping) and {"path", "sample"} <= set(entry):
            of.setdefault(str(entry["sample"]), {})[os.path.basename(str(entry["path"]))] = None
    return [_listed(list(of.get(str(name), {}))) or None for name in samples]


def _listed(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MOST_FILES} more"] if len(names) > MOST_FILES else []
    return "; ".join([*names[:MOST_FILES], *more])


def _import(location: str) -> dict[str, str]:
    """What the import of files left out, chose and warned of; nothing for a study of arrays."""
    import zarr

    from scaleshift.cells.manifest import open_study
    from scaleshift.cells.reader import read_text

    array = open_study(location)[0].get(IMPORT)
    if not isinstance(array, zarr.Array):
        return {}
    report = json.loads(read_text(array))
    left_out = report.get("left_out", [])
    problems = [problem for problem in report.get("problems", []) if problem["level"] != "note"]
    folder = _common_folder([*left_out, *(file["path"] for file in report.get("files", []))])
    lists = {
        "import_left_out": [_inside(path, folder) for path in left_out],
        "import_said": report.get("said", []),
        "import_problems": [_sentence(problem, folder) for problem in problems],
    }
    return {name: json.dumps(found, ensure_ascii=False) for name, found in lists.items()}


def _sentence(problem: Mapping[str, str], folder: str) -> str:
    fix = f"; {problem['fix']}" if problem["fix"] else ""
    return f"{problem['level']}: {_inside(problem['place'], folder)}: {problem['text']}{fix}"


def _common_folder(paths: Sequence[str]) -> str:
    """The folder that holds all files: where it lies says nothing about the study."""
    folders = [os.path.dirname(path) for path in paths if os.path.isabs(path)]
    return os.path.commonpath(folders) if folders else ""


def _inside(path: str, folder: str) -> str:
    return os.path.relpath(path, folder) if folder and path.startswith(folder) else path
