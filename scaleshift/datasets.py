"""What can I try the package on? The small real study that ships with it."""

from __future__ import annotations

from importlib import resources

import numpy as np
import xarray as xr

DEMO = "multicenter8_cytof.npz"
DESCRIPTION = (
    "Mass cytometry of blood: 8 of 16 samples of a study run at several centres, 18,000 cells each, "
    "subsampled at random from 929,685 cells. S01 to S07 and S09 to S15 come from two halves of the study "
    "that differ in composition and intensity, so pairs across the halves are not pure label shift. S01 "
    "and S02 look like replicates. Cells without a label (17 to 36 % of a sample) lie outside every gate: "
    "a real unknown population. The source does not name its markers."
)


def load_demo() -> xr.Dataset:
    """Load the study that ships with the package: 144,000 blood cells, 8 samples, 8 markers, 4 labels.

    The data are a subsample of those of DeepCyTOF (Li et al. 2017, doi:10.1093/bioinformatics/btx448),
    Apache License 2.0; the notice beside the file says what was changed.

    Returns
    -------
    xarray.Dataset
        A study in memory, as `scaleshift.as_cells` makes it: ``X (cell, marker)`` float32,
        arcsinh(ion count / 5); ``sample_code (cell)`` and ``label_code (cell)`` int32, where -1 is a cell
        outside every gate; coordinates ``marker``, ``sample`` and ``label``. The cells of a sample are
        contiguous. Attributes: title, description, transform, source, licence.

    Examples
    --------
    >>> study = load_demo()
    >>> study["X"].shape
    (144000, 8)
    >>> study["label"].values.tolist()
    ['B_cells', 'CD4_Tcells', 'CD8_Tcells', 'Monocytes']
    >>> ungated = study["label_code"] == -1
    >>> round(float(ungated.mean()), 2)
    0.25
    """
    from scaleshift.cells import as_cells

    packaged = resources.files("scaleshift") / "data" / DEMO
    with packaged.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        X = np.ascontiguousarray(stored["X"] * stored["scale"], dtype=np.float32)
        label_names = stored["classes"].astype(object)
        label_names[np.isin(stored["classes"], stored["ungated"])] = None
        cells = as_cells(
            X,
            sample=stored["sample_names"][stored["sample"]],
            label=label_names[stored["y"]],
            marker=stored["markers"],
        )
        return cells.assign_attrs(
            title="Multi-centre mass cytometry of blood, 8 samples",
            description=DESCRIPTION,
            transform="arcsinh(ion_count / 5), rounded to 1/500",
            source=str(stored["source"]),
            licence=str(stored["licence"]),
        )
