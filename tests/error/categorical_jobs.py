"""Jobs of the tests of categorical models."""

import numpy as np

from scaleshift.blocks.buckets import random_buckets
from scaleshift.blocks.rows import as_rows, with_numbers
from scaleshift.error.categorical import learn
from scaleshift.error.family import Job, Settings

METHODS = ("direct", "decomposed", "corrected", "cv", "closed_form")


def settings(model="logistic", **changed):
    plain = {
        "loss": "counting",
        "methods": METHODS,
        "generator": "auto",
        "alpha": 0.05,
        "penalty": "l2",
        "n_bootstrap": 25,
        "level": 0.95,
        "tol": None,
        "refit": "cold",
        "scale": False,
        "seed": 0,
    }
    return Settings(model, **{**plain, **changed})


def learned(x, y, model="logistic", folds=None, invalid="raise", **changed):
    rows = as_rows(x, y, invalid=invalid)
    buckets = None if folds is None else random_buckets(rows, folds, 0)
    return learn(Job(rows, buckets, settings(model, **changed)))


def sums_of(family, x, noise=None, invalid="raise"):
    rows = as_rows(x, invalid=invalid)
    if noise is not None:
        rows = with_numbers(rows, noise=noise)
    return family.target_sums({"one": rows}, noise is not None)["one"]


def two_classes(n=150, p=4, seed=0):
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, p)) * np.linspace(0.5, 2, p) + 3
    logit = (x - 3) @ np.r_[1.5, -0.7, np.zeros(p - 2)] + 0.3
    return x, (r.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)


def three_classes(n=180, p=4, seed=0):
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, p)) * np.linspace(0.5, 2, p) - 2
    return x, ((x + 2) @ r.normal(size=(p, 3)) + r.gumbel(size=(n, 3))).argmax(axis=1)
