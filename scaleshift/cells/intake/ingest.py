"""How do many files become one study?  Planned from their headers, then written chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scaleshift.cells.intake.assembly import assemble
from scaleshift.cells.intake.plan import Options, StudyPlan, plan_study, refuse_errors
from scaleshift.cells.intake.report import IngestReport
from scaleshift.cells.labels.sources import check_request, with_sample
from scaleshift.cells.manifest import is_unicode, locate
from scaleshift.cells.treatment.location_scale import Method
from scaleshift.cells.write import CHUNK_CELLS, cells_of_chunk
from scaleshift.errors import DataError

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def check(
    paths: Paths,
    *,
    meta: Any = None,
    panel: Any = None,
    markers: Sequence[str] | str | None = None,
    transform: Any = "auto",
    compensation: Any = "auto",
    duplicates: str = "raise",
    data_sets: str = "raise",
    sample: str | None = None,
) -> StudyPlan:
    r"""What study would these files make, and what stands in the way? Reads headers only, writes nothing.

    Parameters
    ----------
    paths, meta, panel, markers, transform, compensation, duplicates, data_sets, sample
        As in `ingest`.

    Returns
    -------
    StudyPlan
        Its `problems` say what is wrong, `errors` those that must be mended; `counts` the cells of each
        sample, `columns` the markers and which of them are features, `said` what was chosen.

    Raises
    ------
    DataError
        If a path or sheet does not exist, or no file can be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s1.csv").write_text("CD3,CD4\n1,2\n3,4\n")
    ...     plan = check(folder)
    >>> plan.counts, plan.columns.markers, plan.errors
    ({'s1': 2}, ('CD3', 'CD4'), [])
    """
    options = Options(
        meta=meta, panel=panel, markers=markers, transform=transform, compensation=compensation,
        duplicates=duplicates, data_sets=data_sets, sample=sample,
    )  # fmt: skip
    _check(options)
    return plan_study(paths, options)


def ingest(
    paths: Paths,
    store: str | os.PathLike[str],
    *,
    meta: Any = None,
    panel: Any = None,
    labels: Any = None,
    markers: Sequence[str] | str | None = None,
    transform: Any = "auto",
    compensation: Any = "auto",
    scaling: Method | None = None,
    errors: str = "raise",
    duplicates: str = "raise",
    data_sets: str = "raise",
    sample: str | None = None,
    chunk_cells: int = CHUNK_CELLS,
    resume: bool = False,
) -> IngestReport:
    r"""Make a study of files of events: FCS, LMD, CSV, parquet, h5ad, AnnData Zarr.

    Everything is planned from the files' headers first; then each task writes one chunk of the study. Samples
    count once their last chunk is in, so a killed import leaves a study of what is finished, and
    ``resume=True`` goes on from there. Runs on any Dask scheduler; memory: a few chunks a worker.

    Parameters
    ----------
    paths : path, or iterable of paths
        Files, folders (their FCS files, else AnnData, else parquet, else CSV) and patterns.
    store : path
        Folder or URL of the new study.
    meta : path or pandas.DataFrame, optional
        Sample sheet, CSV, TSV or XLSX: a column `file_name`, and `sample_id` where it is not the file's
        name; all others are metadata. Files without a row are left out. Where files tell their samples, a
        sheet without a column of files has a row a sample. Default: each file is a sample.
    panel : path or pandas.DataFrame, optional
        `fcs_colname, antigen, marker_class`: which channel measures what.
    labels : optional
        What `label_cells` takes: a table, a folder with one CSV a gate, a FlowJo workspace, "channel:NAME";
        or a mapping with `labels` and other arguments of `label_cells`, such as `column`.
    markers : list of str, "common" or None
        The features: these; those that all files have; or all, which all files must then have.
    transform : str or mapping
        "auto" (arcsinh with cofactor 5 for mass cytometry, 150 for fluorescence), "none", "arcsinh:5",
        "logicle", or a mapping from marker to one of these.
    compensation : str, path or Spillover
        "auto" (the matrix of each file), "none", or one matrix for all.
    scaling : {"robust", "z"}, optional
        Scale each sample's features by its own 1 % and 99 % quantiles, or mean and standard deviation.
    errors : {"raise", "skip"}
        Whether files that cannot be used stop the import or are left out.
    duplicates : {"raise", "rename"}
        Of channel names in a file.
    data_sets : {"raise", "split"}
        Whether several data sets in a file are an error or a sample each.
    sample : str, optional
        Column that holds the sample of each row, of tables and AnnData files; also of a table of labels that
        has neither `file` nor `sample`.
    chunk_cells : int, default 131072
        Cells in one chunk; fewer where it would have more than 256 MB.
    resume : bool, default False
        Go on with a killed import of the same files.

    Returns
    -------
    IngestReport
        What was read, dropped, renamed and warned about; also kept in the store.

    Raises
    ------
    DataError
        If a file or sheet is wrong (all of them are listed), the store exists, or `resume` meets another
        import.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("s1", "s2"):
    ...         _ = Path(folder, f"{name}.csv").write_text("CD3,CD4\n1,2\n3,4\n")
    ...     report = ingest(folder, f"{folder}/study.zarr")
    >>> report.n_cells, report.samples, report.markers
    (4, ('s1', 's2'), ('CD3', 'CD4'))
    """
    options = Options(
        meta, panel, markers, transform, compensation, scaling, errors, duplicates, data_sets, sample
    )
    _check(options)
    location = locate(store)
    if not is_unicode(location):
        raise DataError(f"{location!r} is no valid UTF-8: choose another path")
    refuse_taken(location, resume)
    labelling = {"labels": labels} if labels is not None and not isinstance(labels, Mapping) else labels
    if labelling is not None:
        check_request(**{k: v for k, v in labelling.items() if k not in ("unlabelled", "parents")})
        labelling = with_sample(labelling, sample)
    plan = plan_study(paths, options)
    refuse_errors(plan, errors)
    chunk = cells_of_chunk(chunk_cells, len(plan.columns.markers))
    return assemble(plan, location, labels=labelling, chunk_cells=chunk, resume=resume)


def refuse_taken(location: str, resume: bool) -> None:
    """Raise DataError, before anything long runs, where something is at the path already."""
    if not resume and "://" not in location and os.path.lexists(location):
        raise DataError(
            f"{location} exists already: choose another path, delete it, or, if an import was "
            "interrupted, pass resume=True (--resume)"
        )


def _check(options: Options) -> None:
    """Refuse words that are none of the choices."""
    choices = {
        "scaling": (None, "robust", "z"),
        "errors": ("raise", "skip"),
        "duplicates": ("raise", "rename"),
        "data_sets": ("raise", "split"),
    }
    for name, known in choices.items():
        if getattr(options, name) not in known:
            raise DataError(f"{name}={getattr(options, name)!r}: expected {' or '.join(map(repr, known))}")
