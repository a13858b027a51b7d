"""A real result of every kind, as small as it may be, for tests that go over all of them."""

import functools
import warnings

import numpy as np
import pandas as pd

import scaleshift as ss

RNG = np.random.default_rng(0)


@functools.cache
def cells():
    """Three samples of two labels; some cells have none, and the last sample moved in one marker."""
    label = RNG.choice(["B", "T", None], 1_800, p=[0.3, 0.6, 0.1])
    X = RNG.normal(size=(1_800, 3)) + 5 * (label == "T")[:, None] - 5 * (label == None)[:, None]  # noqa: E711
    sample = np.repeat(["S1", "S2", "S3"], 600)
    X[1_200:, 1] += 1
    table = pd.DataFrame(X, columns=["CD3", "CD19/20", "$CD4$"])
    found = ss.as_cells(table, sample=sample, label=label)
    return found.assign_coords(donor=("sample", ["d1", None, "d/3"]), day=("sample", [0, 7, 14]))


@functools.cache
def quantified():
    model = ss.OpenSetQuantifier(random_state=0, n_bootstrap=20).fit(cells())
    return model.predict(cells())


@functools.cache
def league():
    methods = {"cc": ss.ClassifyAndCount(random_state=0, n_bootstrap=0), "dfm": ss.DFM(n_bootstrap=0)}
    return ss.quantify.compare(methods, cells(), random_state=0, n_draws=2, cells_per_sample=400)


@functools.cache
def diagnosis():
    return ss.quantify.diagnose(ss.DFM(random_state=0, n_bootstrap=0).fit(cells()), cells())


@functools.cache
def gates():
    return ss.report.compare_gated(quantified(), cells())


def _rows(shift):
    X = np.random.default_rng(1).normal(size=(1_500, 3)) + [0, 0, shift]
    y = (X[:, 0] > 0).astype(int)
    wrong = np.random.default_rng(2).random(1_500) < np.where(X[:, 2] > 1, 0.7, 0.05)
    return pd.DataFrame(X, columns=["CD3", "CD19/20", "$CD4$"]), y, np.where(wrong, 1 - y, y).astype(float)


@functools.cache
def slicer():
    return ss.DominoSlicer(n_slices=2, n_mixture_components=6, random_state=0).fit(None, *_rows(0))


@functools.cache
def slices():
    return slicer().describe()


@functools.cache
def grown():
    X, y, probability = _rows(0.5)
    return ss.slices.compare(slices(), slicer().describe(None, X, y, probability))


@functools.cache
def scores():
    X, y, probability = _rows(0)
    planted = np.column_stack([X["$CD4$"] > 1, X["CD3"] > 1])
    return ss.slices.metrics.score(slicer().predict_proba(None, X, y, probability), planted)


@functools.cache
def ranker():
    X, y, _ = _rows(0)
    return ss.SparseAUC(random_state=0, cv=3).fit(X, np.where(y == 1, "T/B", "rest"))


def ranking():
    return ranker().describe()


def path():
    return ranker().path_


@functools.cache
def contrasts():
    X, y, _ = _rows(0)
    return ss.SparseAUC(random_state=0, cv=3).fit(X, np.where(X["CD19/20"] > 1, "C", np.where(y, "A", "B")))


@functools.cache
def roc():
    X, y, _ = _rows(0)
    return ss.roc_auc(y, X["CD19/20"] + X["CD3"], method="histogram", n_bins=20)


@functools.cache
def estimator():
    X, _, _ = _rows(0)
    y = X.to_numpy() @ [1.0, 0.5, 0.0] + np.random.default_rng(3).normal(size=1_500)
    return ss.PredictionError("ols", random_state=0, n_bootstrap=50).fit(X, y)


@functools.cache
def errors():
    return estimator().predict({"site/B": _rows(0.3)[0], "site C": _rows(2)[0]})


def replicates():
    errors()
    return estimator().replicates_


@functools.cache
def observed():
    X, _, _ = _rows(0.3)
    return estimator().observed(X, X["CD3"].to_numpy())


@functools.cache
def weighted():
    return ss.error.importance_weighted(RNG.random(200), RNG.random(200), np.arange(200) % 4)


@functools.cache
def norm():
    from sklearn.linear_model import LogisticRegression

    X, y, _ = _rows(0)
    return ss.error.projection_norm(LogisticRegression().fit(X, y), _rows(1)[0], X)


@functools.cache
def plan():
    return ss.explain(ss.DFM(), cells())


@functools.cache
def study():
    """What `check` and `ingest` say of two files, one of which has too many columns."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for name, numbers in {"s1": [1, 2, 3], "s2": [4, 5, 6]}.items():
            pd.DataFrame({"CD3": numbers, "CD4": numbers}).to_csv(Path(folder, f"{name}.csv"), index=False)
        files = sorted(Path(folder).glob("*.csv"))
        checked = ss.check(files)
        return checked, ss.ingest(files, Path(folder, "study.zarr"))


def every():
    """Name -> (kind, result)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        several = contrasts()
        return {
            "proportions": ("proportions", quantified()),
            "league": ("league", league()),
            "diagnosis": ("diagnosis", diagnosis()),
            "gates": ("gates", gates()),
            "slices": ("slices", slices()),
            "slice comparison": ("slice comparison", grown()),
            "slice scores": ("slice scores", scores()),
            "ranking": ("ranking", ranking()),
            "ranking of contrasts": ("ranking", several.describe()),
            "ranking path": ("ranking path", path()),
            "ranking path of contrasts": ("ranking path", several.path_),
            "roc": ("roc", roc()),
            "errors": ("errors", errors()),
            "replicates": ("replicates", replicates()),
            "observed": ("error estimate", observed()),
            "weighted": ("error estimate", weighted()),
            "projection norm": ("projection norm", norm()),
            "plan": ("plan", plan()),
            "study check": ("study check", study()[0]),
            "import": ("import", study()[1]),
        }
