"""What can I try the package on? A small real study that ships with it, and made-up problems."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np
import xarray as xr

from scaleshift.errors import DataError

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


__all__ = ["load_demo", "make_label_shift"]

NOISES = ("none", "background", "far", "near")


class Problem(NamedTuple):
    """A labelled source and an unlabelled target whose class shares are known, of `make_label_shift`."""

    x: np.ndarray  # (n, d) source
    y: np.ndarray  # (n,) source labels 0 .. c - 1
    target: np.ndarray  # (m, d)
    proportions: np.ndarray  # (c,) realised in the target; they sum to 1 - unknown
    unknown: float
    alpha: np.ndarray  # (c,) what the known target cells were drawn with


def make_label_shift(
    seed: int, noise: str = "none", eps: float = 0.0, d: int = 5, c: int = 5, n: int = 10_000
) -> Problem:
    """Gaussian classes whose shares differ between source and target; some cells may be of none of them.

    Parameters
    ----------
    seed : int
    noise : {"none", "background", "far", "near"}
        What unknown cells are: uniform over the target's range, a Gaussian far from all classes, or one more
        that lies among them.
    eps : float
        Share of unknown cells in the target.
    d, c, n : int
        Markers, classes, and rows of known classes in each of source and target.

    Returns
    -------
    Problem

    Raises
    ------
    DataError
        For an unknown noise, or a share outside [0, 1).

    Examples
    --------
    >>> problem = make_label_shift(0, "far", 0.3)
    >>> problem.x.shape, problem.target.shape, round(problem.unknown, 3)
    ((10000, 5), (14286, 5), 0.3)
    """
    if noise not in NOISES or not 0 <= eps < 1:
        raise DataError(
            f"noise={noise!r}, eps={eps!r}: expected one of {', '.join(NOISES)}, and a share in [0, 1)"
        )
    if noise == "none":
        eps = 0.0
    rng = np.random.default_rng(1000 + seed)
    means = rng.normal(0, 3.0, (c, d))
    factors = []
    for _ in range(c):
        a = rng.standard_normal((d, d))
        factors.append(np.linalg.cholesky(a @ a.T / d + 0.5 * np.eye(d)))
    beta = rng.dirichlet(5 * np.ones(c))
    alpha = rng.dirichlet(2 * np.ones(c))
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    near = rng.normal(0, 3.0, d)

    rng = np.random.default_rng([seed, int(eps * 1000), NOISES.index(noise)])

    def draw(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(c, n, p=shares)
        x = np.empty((n, d))
        for i in range(c):
            rows = y == i
            x[rows] = means[i] + rng.standard_normal((rows.sum(), d)) @ factors[i].T
        return x, y

    x, y = draw(beta)
    target, truth = draw(alpha)
    m = round(n * eps / (1 - eps))
    if noise == "background":
        unknown = rng.uniform(target.min(0), target.max(0), (m, d))
    elif noise == "far":
        radius = np.linalg.norm(means - means.mean(0), axis=1).max()
        unknown = means.mean(0) + 3 * radius * direction + rng.standard_normal((m, d))
    elif noise == "near":
        unknown = near + rng.standard_normal((m, d))
    else:
        unknown = np.empty((0, d))
    share = m / (n + m)
    proportions = np.bincount(truth, minlength=c) / n * (1 - share)
    return Problem(x, y, np.vstack([target, unknown]), proportions, share, alpha)
