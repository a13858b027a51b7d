"""Fits of every estimator that takes a checkpoint, in children that are killed: a script that tests run.

Prints what each run came to, as JSON: python mortal_fits.py NAME FOLDER KILL [KILL ...]. A KILL is
"before:3", when the third state is about to be written; "after:3", once it stands there; or "at:0.4", from
outside, after that share of the time that the fit takes. The fit is then run to its end.
"""

import hashlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift import checkpoint
from scaleshift.slices import spotlight

N, D = 2_000, 5
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, D)) + 0.9 * (Y[:, None] == np.arange(D))
WRONG = RNG.random(N) < np.where((X > 0.7).sum(axis=1) >= 3, 0.7, 0.05)
P = np.where(WRONG, 1 - (Y > 0), Y > 0).astype(float)
OUTCOME = X @ np.arange(D) + RNG.normal(size=N)
TARGETS = {"near": X[:300] + 0.1, "far": 2 * X[300:700]}


class Rows:
    """An array that notes how many rows of it were read."""

    shape, dtype, ndim = X.shape, X.dtype, 2

    def __init__(self, log):
        self.log = log

    def __getitem__(self, key):
        found = X[key]
        note(self.log, f"rows {len(found)}")
        return found


def note(log, line):
    """Add a line to a file, at once: a process that is killed loses none."""
    with open(log, "a") as file:
        file.write(line + "\n")


def slices(slicer, x):
    found = slicer.fit(None, x, (Y > 0).astype(int), P)
    return [found.predict_proba(None, X, (Y > 0).astype(int), P), *map(np.asarray, found.means_)]


def error(model, x, y, **given):
    found = ss.PredictionError(model, n_bootstrap=40, random_state=0, **given).fit(x, y).predict(TARGETS)
    return [found[name].values for name in ("error", "error_low", "error_high", "error_drawn", "far")]


def auc(x, path, **given):
    found = ss.SparseAUC(random_state=0, checkpoint=path, **given).fit(x, Y > 0)
    return [found.coef_, np.array(found.intercept_), found.path_["auc"].values]


def proportions(model, x):
    found = model.fit(x, Y).predict(X[:400])
    return [found[name].values for name in ("proportion", "proportion_low", "proportion_high", "distance")]


FITS = {
    "domino": lambda x, path: slices(
        ss.DominoSlicer(
            2, n_mixture_components=6, init_params="kmeans", max_iter=12, random_state=0, checkpoint=path
        ),
        x,
    ),
    "spotlight": lambda x, path: slices(
        ss.SpotlightSlicer(num_steps=10, n_slices=2, random_state=0, checkpoint=path), x
    ),
    "spotlight-published": lambda x, path: slices(
        ss.SpotlightSlicer(num_steps=6, n_slices=2, compat="spotlight", checkpoint=path), x
    ),
    "sht": lambda x, path: auc(x, path, solver="sht", k=[2, 3], cv=2, max_iter=48),
    "moments": lambda x, path: auc(x, path, solver="moments", n_halves=4),
    "stream": lambda x, path: auc(x, path, solver="stream", n_screened=3, n_halves=4),
    "logistic": lambda x, path: error("logistic", x, (Y > 0).astype(int), checkpoint=path),
    "logistic-l1": lambda x, path: error("logistic", x, (Y > 0).astype(int), penalty="l1", checkpoint=path),
    "multinomial": lambda x, path: error("multinomial", x, Y, cv=3, checkpoint=path),
    "lasso": lambda x, path: error("lasso", x, OUTCOME, checkpoint=path),
    "ols-groups": lambda x, path: error("ols", x, OUTCOME, checkpoint=path),
    "refits": lambda x, path: error(LogisticRegression(), x, (Y > 0).astype(int), checkpoint=path),
    "dfm": lambda x, path: proportions(ss.DFM(random_state=0, checkpoint=path), x),
    "open-set": lambda x, path: proportions(ss.OpenSetQuantifier(random_state=0, checkpoint=path), x),
}


def run(name, folder, path, kill=None):
    """One child: (whether it came to its end, its seconds)."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    begin, child = time.monotonic(), os.fork()
    if child == 0:
        warnings.simplefilter("ignore")  # a mixture that does not converge in so few passes
        spotlight.SECONDS = 0  # a state after every step
        checkpoint.write = mortal(checkpoint.write, log, *(kill or (None, 0)))
        x = da.from_array(Rows(log), chunks=(500, -1), name=False)
        digest = hashlib.sha256()
        for values in FITS[name](x, path):
            digest.update(np.ascontiguousarray(values).tobytes())
        note(log, f"digest {digest.hexdigest()}")
        os._exit(0)
    if kill is not None and kill[0] == "at":
        time.sleep(kill[1])
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0, time.monotonic() - begin


def mortal(write, log, when, number):
    """The function that writes states, noted; the process dies before or after it writes one."""
    left = number

    def act(path, state):
        nonlocal left
        left -= 1
        note(log, "made")
        if when == "before" and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, state)
        if when == "after" and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return act


def told(folder):
    """Of the log: states made, passes over the rows, and what came out."""
    lines = (folder / "log").read_text().split("\n") if (folder / "log").exists() else []
    rows = sum(int(line.split()[1]) for line in lines if line.startswith("rows"))
    digest = [line.split()[1] for line in lines if line.startswith("digest")]
    return {"made": lines.count("made"), "passes": rows / N, "digest": digest[0] if digest else None}


def main(name, folder, *kills):
    """Run a fit that nothing kills, without and with a checkpoint, then one for each kill and to its end."""
    found = []
    done, _ = run(name, folder, None)
    assert done
    found.append(told(folder))
    done, seconds = run(name, folder, folder / "whole")
    assert done
    found.append(told(folder))
    for kill in kills:
        when, number = kill.split(":")
        given = (when, float(number) * seconds) if when == "at" else (when, int(number))
        done, _ = run(name, folder, folder / "state", given)
        found.append({"killed": not done, **told(folder)})
    done, _ = run(name, folder, folder / "state")
    assert done
    found.append(told(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
