r"""Is the model still good tonight?  A number and its interval every night, and an alarm, without labels.

    python examples/nightly_monitoring.py --learn TRAINED.zarr [--state FOLDER]               # once
    python examples/nightly_monitoring.py TONIGHT.zarr [--state FOLDER] [--above .1] [--scheduler ADDRESS]
    python examples/nightly_monitoring.py                                                    # a rehearsal

A classifier is trained on labelled cells; nobody labels those of later nights. What was learned is kept in
--state, a folder of a megabyte without the cells, and says how wrong the classifier will be on tonight's:

    tonight.zarr: error 0.140 (0.134 to 0.145), above 0.1: ALARM

and exit code 3 where the *lower* end of the interval is above --above, else 0. Without TONIGHT six nights
are made up, in which an instrument's staining fades from the fourth on, and judged one after the other, in
ten seconds. The true error, which no real night tells, stands beside them as "truly".

--scheduler is where the work is done: "tls://scheduler:8786" or a scheduler file (a cluster that is there),
"local" (processes of this machine), "slurm": whatever `ss.cluster.connect` takes; threads of this machine
where it is left out. Every night by cron,

    30 2 * * *  cd /data && python nightly_monitoring.py $(date +\%F).zarr || mail -s "look at it" me@lab

or by systemd, in a service of a timer whose OnFailure= names the unit that tells someone:

    ExecStart=/opt/env/bin/python nightly_monitoring.py /data/tonight.zarr --state /var/lib/watched

The same on the command line (with a state of its own kind); --for 2 wants two nights in a row:

    scaleshift error trained.zarr --model multinomial --source "night == 0" --target "night == 1" \
        --state watching --alarm-above .1 --alarm-on low --for 2 --forget 1          # once
    scaleshift error tonight.zarr --state watching --scheduler tls://scheduler:8786  # every night

What is assumed: cells that look alike have the same labels as ever. A change of that no method can see.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import xarray as xr

import scaleshift as ss

ALARM = 3  # exit code, as that of scaleshift error
POPULATIONS = np.array(["B", "NK", "T"])
NIGHTS, FADES_FROM, FADES_BY = 6, 4, 0.25


def made_up_night(night: int, n: int) -> xr.Dataset:
    """Cells of three populations in 5 markers, whose staining has faded so far by that night.

    Labels depend on the markers by one law in all nights: covariates shift, nothing else.
    """
    rng = np.random.default_rng(night)
    centres = 2.5 * np.eye(3, 5)
    fade = (1 - FADES_BY) ** max(night - FADES_FROM + 1, 0)
    x = fade * (centres[rng.integers(0, 3, n)] + rng.normal(size=(n, 5)))
    chance = np.exp(x @ centres.T)
    chance /= chance.sum(axis=1, keepdims=True)
    label = POPULATIONS[(chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)]
    cells = ss.as_cells(x, sample=[f"night {night}"] * n, label=label)
    return cells.assign_coords(night=("sample", [night]))


def without_labels(cells: xr.Dataset) -> xr.Dataset:
    """What a real night gives."""
    return ss.as_cells(cells["X"].values, sample=cells["sample"].values[cells["sample_code"].values])


def learn(cells: xr.Dataset, state: Path) -> None:
    """Fit once; what is kept are the model and sums, not the cells."""
    model = ss.PredictionError("multinomial", forget=1, n_bootstrap=100, random_state=0)
    model.fit(cells).save(state)


def judge(cells: xr.Dataset, state: Path, above: float) -> tuple[str, int]:
    """Tonight's error in words, and the exit code; the state is replaced as a whole, once it is known."""
    model = ss.load(state)
    found = model.update({"tonight": cells}).sel(target="tonight")
    error, low, high = (float(found[name].loc["direct"]) for name in ("error", "error_low", "error_high"))
    model.save(state)
    rings = low > above
    words = (
        f"error {error:.3f} ({low:.3f} to {high:.3f}), {'above' if rings else 'not surely above'} {above:g}"
    )
    words += f": {'ALARM' if rings else 'fine'}"
    if flag := str(found["flag"].item()):
        words += f"; mind: {flag}"
    return words, ALARM if rings else 0


def rehearse(state: Path, above: float, n: int) -> int:
    """All made-up nights until the alarm; labels are looked at for the true error alone."""
    learn(made_up_night(0, n), state)
    for night in range(1, NIGHTS + 1):
        cells = made_up_night(night, n)
        words, code = judge(without_labels(cells), state, above)
        truly = float(ss.load(state).observed(cells)["error"])
        print(f"night {night}: {words}  [truly {truly:.3f}]", flush=True)
        if code:
            print(f"the alarm rang in night {night}; the staining fades from night {FADES_FROM} on")
            return code
    return 0


def main() -> int:
    """One night, or the rehearsal; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tonight", type=Path, nargs="?", help="study of tonight's cells; made up if left out")
    parser.add_argument("--learn", type=Path, help="study of labelled cells to learn from, and nothing else")
    parser.add_argument("--state", type=Path, default=Path("watched"), help="folder of the fitted estimate")
    parser.add_argument("--above", type=float, default=0.1, help="share of wrong cells that is too much")
    parser.add_argument("--scheduler", help="an address, a scheduler file, local, slurm")
    parser.add_argument("--cells", type=int, default=20_000, help="of a made-up night")
    given = parser.parse_args()
    with ss.cluster.connect(given.scheduler) if given.scheduler else nullcontext():
        if given.learn is not None:
            learn(ss.open_cells(given.learn), given.state)
            return 0
        if given.tonight is None:
            if given.state.exists():  # of the nights that were: a forgotten argument must not replace it
                parser.error(f"{given.state} is there: name tonight's study, or another --state to rehearse")
            return rehearse(given.state, given.above, given.cells)
        words, code = judge(ss.open_cells(given.tonight), given.state, given.above)
    print(f"{given.tonight}: {words}")
    return code


if __name__ == "__main__":
    sys.exit(main())
