r"""A large atlas on SLURM, with a checkpoint: killed in the middle, it goes on to the same bits.

    python examples/slurm_atlas.py [FOLDER] [--samples 40] [--cells 200000] [--scheduler ADDRESS] [--resume]

Writes a made-up atlas to FOLDER/atlas.zarr, block by block and never as a whole in memory; learns from its
first sample; answers for all others with a checkpoint. With --resume that is all, and the same command goes
on where it was killed: give it to SLURM from the folder that holds cluster/,

    export SCALESHIFT_TLS=~/scaleshift-tls        # cluster/tls/make-certificates, once
    sbatch --ntasks=16 cluster/slurm/scaleshift.sbatch python examples/slurm_atlas.py /scratch/atlas --resume

which starts scheduler and workers, whose address is in DASK_SCHEDULER_ADDRESS, and queues the job again
when its time is up, since the command has --resume. From a login node the script sends its workers' jobs
itself (extra slurm; cluster/slurm/jobqueue.yaml, in ~/.config/dask, has what a job asks for):

    python examples/slurm_atlas.py /scratch/atlas --resume --scheduler slurm --jobs 16

Without --resume it shows what a kill does: the answering is started, ended by SIGKILL once a part of some
million cells is finished, started again, and compared with one that nobody disturbed; a minute for 8
million cells. Printed are how many parts outlived the kill, whether all bits are the same, and how far the
proportions are from those planted.

For a study that is no atlas of this file's making, the command line does the same:

    sbatch cluster/slurm/scaleshift.sbatch scaleshift quantify /scratch/study.zarr --source "gated == true" \
        --output /scratch/results --resume
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import dask.array as da
import numpy as np
import xarray as xr

import scaleshift as ss

LABELS, MARKERS, BLOCK = np.array(["B", "Mono", "NK", "T"]), 8, 131_072
CENTRES = 4 * np.eye(len(LABELS), MARKERS)


def shares(sample: int) -> np.ndarray:
    """The planted proportions of a sample."""
    return np.random.default_rng([sample, 0]).dirichlet(np.ones(len(LABELS)))


def codes(sample: int, n: int) -> np.ndarray:
    """Populations of a sample's cells."""
    return np.random.default_rng([sample, 1]).choice(len(LABELS), n, p=shares(sample))


def block_of_cells(block_info: dict, n: int) -> np.ndarray:
    """One block of X: each block can be drawn anew, by whichever worker, to the same numbers."""
    sample, begin = divmod(block_info[None]["array-location"][0][0], n)
    rows = min(block_info[None]["chunk-shape"][0], n - begin)
    noise = np.random.default_rng([sample, 2, begin]).standard_normal((rows, MARKERS), dtype=np.float32)
    return CENTRES[codes(sample, n)[begin : begin + rows]].astype(np.float32) + noise


def write_atlas(path: Path, n_samples: int, n: int) -> None:
    """Write it block by block; labels are known in the first sample alone. Half an atlas is begun anew."""
    unfinished = path.with_name(f"unfinished-{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    rows = tuple(min(BLOCK, n - begin) for begin in range(0, n, BLOCK))
    x = da.map_blocks(block_of_cells, n=n, chunks=(rows * n_samples, MARKERS), dtype=np.float32)
    sample = np.repeat([f"S{i:04d}" for i in range(n_samples)], n)
    label = np.full(n_samples * n, None, dtype=object)
    label[:n] = LABELS[codes(0, n)]
    ss.write_cells(ss.as_cells(x, sample=sample, label=label), unfinished)
    unfinished.rename(path)


def answer(folder: Path, checkpoint: Path, scheduler: str | None, jobs: dict[str, int]) -> xr.Dataset:
    """Learn from the first sample, answer for the others; both keep what is finished."""
    with ss.cluster.connect(scheduler, **jobs) if scheduler else nullcontext():
        names = ss.open_cells(folder / "atlas.zarr")["sample"].values
        source, target = (ss.open_cells(folder / "atlas.zarr", samples=s) for s in (names[:1], names[1:]))
        model = ss.DFM("landmarks", random_state=0, checkpoint=checkpoint / "fit").fit(source)
        return model.predict(target, checkpoint=checkpoint / "answers")


def killed(folder: Path, arguments: list[str]) -> int:
    """Start this script on its own, kill it once a part is finished; the number of parts that it leaves."""
    process = subprocess.Popen([sys.executable, __file__, *arguments, "--resume"], start_new_session=True)
    while not parts(folder):
        if process.poll() is not None:
            sys.exit(f"it ended with exit status {process.returncode} before a part was finished")
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # it and its workers, without a word
    process.wait()
    return parts(folder)


def parts(folder: Path) -> int:
    """Finished parts of the answer."""
    return len(list((folder / "kept" / "answers").glob("samples-*")))


def same_bits(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether no variable differs in a bit."""
    return all(np.array_equal(one[v], other[v], equal_nan=one[v].dtype.kind == "f") for v in one.data_vars)


def main() -> None:
    """Write, answer; or also kill, go on and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("atlas"), help="that all nodes see")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--cells", type=int, default=200_000, help="of a sample")
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")  # which a batch script has set
    parser.add_argument("--scheduler", default=address, help="slurm, local, an address; threads if left out")
    parser.add_argument("--jobs", type=int, help="to send, with --scheduler slurm")
    parser.add_argument("--resume", action="store_true", help="answer alone, and go on where it was killed")
    given = parser.parse_args()
    folder, n_samples, n = given.folder, given.samples, given.cells
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "atlas.zarr").exists():
        write_atlas(folder / "atlas.zarr", n_samples, n)
        print(f"wrote {n_samples * n:,} cells to {folder}/atlas.zarr", flush=True)
    if not given.resume:
        print(f"killed; finished parts that are kept: {killed(folder, sys.argv[1:])}", flush=True)
    work = given.scheduler, {} if given.jobs is None else {"jobs": given.jobs}
    result = answer(folder, folder / "kept", *work)
    ss.report.table(result, folder / "proportions.csv")
    if not given.resume:
        undisturbed = answer(folder, folder / "undisturbed", *work)
        print(f"to the same bits as undisturbed: {'yes' if same_bits(result, undisturbed) else 'NO'}")
    planted = np.array([shares(i) for i in range(1, n_samples)])
    worst = 100 * np.abs(result["proportion"].values - planted).max()
    print(
        f"{result.sizes['sample']} samples, {parts(folder)} parts; {worst:.2f} percentage points off at most"
    )


if __name__ == "__main__":
    main()
