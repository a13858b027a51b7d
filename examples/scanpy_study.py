"""From a study on disk to scanpy and back: look at the cells there, quantify here.

    python examples/scanpy_study.py [FOLDER]

Writes the demo study to FOLDER (a folder of this name where left out), opens it with anndata, asks scanpy
for the neighbours of a few gated cells, and estimates the proportions of the samples that were not learned
from. Needs anndata and scanpy, which `pip install "scaleshift[examples]"` brings; without scanpy only that
step is left out.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

import scaleshift as ss

try:
    import anndata
except ImportError:
    sys.exit('anndata is missing: pip install ".[examples]"')

SOURCE = ["S01", "S09"]


def write_study(path: Path, cells_a_sample: int | None = None) -> None:
    """Write the demo study, or the first cells of each sample."""
    cells = ss.datasets.load_demo()
    if cells_a_sample is not None:  # the demo's cells stand sample after sample
        place = np.arange(cells.sizes["cell"]) % (cells.sizes["cell"] // cells.sizes["sample"])
        cells = cells.isel(cell=place < cells_a_sample)
    ss.write_cells(cells, path)


def neighbours_of_the_same_label(adata: anndata.AnnData, n_cells: int = 2_000) -> float:
    """Share of a gated cell's neighbours that carry its label: how well the markers tell the labels apart."""
    import scanpy as sc

    gated = np.flatnonzero(adata.obs["label"].notna())
    few = adata[np.random.default_rng(0).permutation(gated)[:n_cells]].copy()
    sc.pp.pca(few)
    sc.pp.neighbors(few, use_rep="X_pca")
    cell, neighbour = few.obsp["connectivities"].nonzero()
    label = few.obs["label"].to_numpy()
    return float(np.mean(label[cell] == label[neighbour]))


def quantify(adata: anndata.AnnData) -> None:
    """Learn from the labelled cells of the source samples and print the others' proportions."""
    is_source = adata.obs["sample"].isin(SOURCE).to_numpy()
    learned = ss.as_cells(adata[is_source], sample="sample", label="label")
    asked = ss.as_cells(adata[~is_source], sample="sample", label="label")
    result = ss.DFM(random_state=0).fit(learned).predict(asked)
    Console().print(ss.report.text(result))
    print("beside the gates:", ss.report.summarize_gated(ss.report.compare_gated(result, asked)))


def main(folder: Path, cells_a_sample: int | None = None) -> None:
    """Run all steps."""
    store = folder / "demo.zarr"
    write_study(store, cells_a_sample)
    adata = anndata.read_zarr(store)
    print(adata)
    if importlib.util.find_spec("scanpy") is None:
        print('scanpy is missing, its step is left out: pip install "scaleshift[examples]"')
    else:
        print(f"neighbours of the same label: {neighbours_of_the_same_label(adata):.0%}")
    quantify(adata)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: python examples/scanpy_study.py [FOLDER]")
    main(Path(sys.argv[1] if len(sys.argv) == 2 else "scanpy_study"))
