"""Jobs for tests of the Gaussian engine, as `PredictionError` makes them."""

from pathlib import Path

import numpy as np

from scaleshift.blocks.block import Column
from scaleshift.blocks.buckets import group_buckets, random_buckets
from scaleshift.blocks.rows import as_rows, with_columns, with_numbers
from scaleshift.error.family import Job, Settings

CASES = Path(__file__).parents[1] / "data" / "errx"
DEFAULTS = {
    "loss": "squared",
    "methods": ("direct", "decomposed"),
    "generator": "plugin",
    "alpha": None,
    "penalty": "l2",
    "n_bootstrap": 200,
    "level": 0.95,
    "tol": None,
    "refit": "cold",
    "scale": False,
    "seed": 0,
}


def job(X, y, model, *, folds=None, groups=None, noise=None, invalid="raise", **settings):
    """A job of rows X and outcomes y; `noise`: arrays (B, n) by name."""
    rows = with_numbers(as_rows(X, invalid=invalid), outcome=y, **{k: e.T for k, e in (noise or {}).items()})
    codes = np.where(np.isnan(np.asarray(y, float)), -1, 0)
    rows = with_columns(rows, label=Column(codes, np.array(["all"]), coded=True))
    if groups is not None:
        names, number = np.unique(groups, return_inverse=True)
        rows = with_columns(rows, group=Column(number, names, coded=True))
    buckets = None
    if folds:
        make = random_buckets if groups is None else group_buckets
        buckets = make(rows, folds, 0)
    return Job(rows, buckets, Settings(model=model, **{**DEFAULTS, **settings}))


def target(X, noise=None, invalid="raise"):
    """Rows of a target."""
    rows = as_rows(X, invalid=invalid)
    return rows if noise is None else with_numbers(rows, noise=noise.T)


def sums_of(family, X, noise=None, invalid="raise"):
    """Sums of one target."""
    return family.target_sums({"t": target(X, noise, invalid)}, noise is not None)["t"]


def answers(family, X, noise=None):
    """Answers for one target."""
    return family.answers(sums_of(family, X, noise))


def case(name):
    """A reference case, its arrays and numbers by key."""
    with np.load(CASES / f"{name}.npz", allow_pickle=False) as stored:
        return {key: stored[key][()] for key in stored}
