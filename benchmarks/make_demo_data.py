"""How the packaged study, scaleshift/data/multicenter8_cytof.npz, is made from the full one.

    python benchmarks/make_demo_data.py multicenter16_cytof.npz [OUTPUT]

The full study has 929,685 cells in 16 samples. Kept: 8 samples with an equal number of cells each, drawn
at random without regard to label, so that every sample keeps its class proportions. Values are copied as
they are. The same source gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

# Four samples from each half of the study, which differ in composition and intensity. S01 and S02 look
# like replicates: a pair with next to no shift, to compare the others with.
SAMPLES = ("S01", "S02", "S05", "S07", "S09", "S11", "S13", "S15")
CELLS_PER_SAMPLE = 18_000  # about 1.7 MB; 144,000 cells are more than one default chunk of a store
OUTPUT = Path(__file__).parents[1] / "scaleshift" / "data" / "multicenter8_cytof.npz"


def subsample(source: Path, output: Path) -> None:
    """Draw the cells and write them in the layout of the source: integers, column-major, compressed."""
    rng = np.random.default_rng(0)
    with np.load(source, allow_pickle=False) as full:
        names = full["sample_names"].tolist()
        code = full["sample"]
        rows = [
            np.sort(rng.choice(np.flatnonzero(code == names.index(name)), CELLS_PER_SAMPLE, replace=False))
            for name in SAMPLES
        ]
        kept = np.concatenate(rows)
        np.savez_compressed(
            output,
            X=np.asfortranarray(full["X"][kept]),
            y=full["y"][kept],
            sample=np.repeat(np.arange(len(SAMPLES), dtype=np.uint8), CELLS_PER_SAMPLE),
            sample_names=np.array(SAMPLES),
            **{key: full[key] for key in ("scale", "classes", "ungated", "markers")},
            **{key: full[key] for key in ("transform", "source", "licence")},
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the full study, multicenter16_cytof.npz")
    parser.add_argument("output", type=Path, nargs="?", default=OUTPUT)
    arguments = parser.parse_args()
    subsample(arguments.source, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")
