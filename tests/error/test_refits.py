"""Any estimator, refitted to drawn outcomes: the reference cases, the same bits anywhere."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from scaleshift import encoding
from scaleshift.blocks.block import Column
from scaleshift.blocks.buckets import random_buckets
from scaleshift.blocks.rows import as_rows, with_columns, with_numbers
from scaleshift.error.family import Job, Settings
from scaleshift.error.refits import learn
from scaleshift.errors import DataError

CASES = Path(__file__).parents[1] / "data" / "errx"
METHODS = ("direct", "decomposed", "corrected", "cv")
RNG = np.random.default_rng(0)
N, P = 300, 4
X = RNG.normal(size=(N, P))
LOGIT = X @ [1.5, -1.0, 0.5, 0.0]
Y = np.where(RNG.random(N) < 1 / (1 + np.exp(-LOGIT)), "sick", "well")
XT = 1.5 * RNG.normal(size=(200, P)) + 0.3
NUMBER = LOGIT + RNG.normal(size=N)


def settings(model, loss="counting", **options):
    given = {
        "methods": METHODS,
        "generator": "plugin",
        "alpha": None,
        "penalty": "l2",
        "n_bootstrap": 24,
        "level": 0.95,
        "tol": None,
        "refit": "cold",
        "scale": False,
        "seed": 7,
    }
    return Settings(model, loss, **{**given, **options})


def job_of(rows, cv=5, **options):
    return Job(rows, random_buckets(rows, cv, 7) if cv else None, settings(**options))


def labelled(x=X, y=Y, chunks=None, **options):
    return as_rows(x if chunks is None else da.from_array(x, chunks=(chunks, -1)), y, **options)


def numbered(x=X, y=NUMBER):
    rows = with_numbers(as_rows(x), outcome=y)
    return with_columns(rows, label=Column(np.zeros(len(x), np.int8), np.array(["all"]), coded=True))


def answered(rows, targets, cv=5, **options):
    family = learn(job_of(rows, cv, **options))
    sums = family.target_sums({name: as_rows(x) for name, x in targets.items()}, noise=False)
    return family, sums


def relative(found, expected):
    return np.abs(found / expected - 1).max()


def case_of(name):
    with np.load(CASES / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


# Reference cases ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logit():
    case = case_of("logit_l2_count")
    rows = with_numbers(as_rows(case["X"], case["y"]), train=case["U"].T, fresh=case["Unew"].T)
    target = with_numbers(as_rows(case["Xt"]), noise=case["Ut"].T)
    n, lam2 = len(case["y"]), float(case["lam2"])
    model = LogisticRegression(C=1 / (n * lam2), tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    family = learn(job_of(rows, None, model=model, n_bootstrap=len(case["U"])))
    return case, family, family.target_sums({"t": target}, noise=True)["t"]


def test_counts_of_the_logistic_case_are_exact(logit):
    case, family, sums = logit
    np.testing.assert_array_equal(sums["drawn"] / sums["n"], case["err_b"])
    np.testing.assert_array_equal(family.last["drawn"], case["in_b"])


def test_integrated_losses_of_the_logistic_case(logit):
    case, family, sums = logit
    assert relative(family.err_b(sums), case["err_b_rb"]) < 1e-8
    assert relative(family.in_b, case["in_b_rb"]) < 1e-8


def test_answers_of_the_logistic_case(logit):
    case, family, sums = logit
    found = family.answers(sums)
    assert found["direct"].error == pytest.approx(float(case["dir_rb"]), rel=1e-8)
    assert found["direct"].drawn == pytest.approx(float(case["dir"]), rel=1e-12)
    assert family.apparent == pytest.approx(float(case["apparent"]), rel=1e-12)
    # The covariance is estimated about known means, by another divisor: equal up to Monte-Carlo error.
    in_sample, noise = family.error_in_sample["decomposed"], np.std(family.last["optimism"])
    assert abs(in_sample - case["err_in"]) < 4 * noise / np.sqrt(len(case["U"]))
    difference = found["decomposed"].error - in_sample
    assert difference == pytest.approx(float(np.mean(case["err_b_rb"] - case["in_b_rb"])), abs=1e-10)


def test_least_squares_reproduces_the_case_but_for_its_noise_variance():
    """The engine's variance is that of held-out residuals; errors by it are the case's."""
    case = case_of("ols")
    rows = with_numbers(numbered(case["X"], case["y"]), train=case["E"].T, fresh=case["Enew"].T)
    target = with_numbers(as_rows(case["Xt"]), noise=case["Et"].T)
    model, n_bootstrap = LinearRegression(), len(case["E"])
    family = learn(job_of(rows, model=model, loss="squared", n_bootstrap=n_bootstrap))
    sums = family.target_sums({"t": target}, noise=True)["t"]
    s2, sigma2 = float(case["s2"]), family.sigma2
    assert relative(family.err_b(sums) / sigma2, case["err_b_rb"] / s2) < 1e-10
    assert relative(family.in_b / sigma2, case["in_b_rb"] / s2) < 1e-10
    assert relative(sums["drawn"] / sums["n"] / sigma2, case["err_b"] / s2) < 1e-10
    optimism = family.last["optimism"].mean() / sigma2
    noise = family.last["optimism"].std() / sigma2 / np.sqrt(n_bootstrap)
    assert abs(optimism - 2 * case["df"] / len(case["y"])) < 4 * noise


def test_intervals_of_least_squares_are_near_the_exact_ones():
    """Wider by the Monte-Carlo noise of single refits, and about the same error."""
    case = case_of("ols")
    rows = numbered(case["X"], case["y"])
    family, sums = answered(
        rows, {"t": case["Xt"]}, model=LinearRegression(), loss="squared", n_bootstrap=400
    )
    found = family.answers(sums["t"])["direct"]
    width, exact = np.log(found.high / found.low), np.log(case["ci_hi"] / case["ci_lo"])
    assert found.low < found.error < found.high
    assert 0.9 < width / exact < 2


# What is learned ---------------------------------------------------------------------------------------


def test_held_out_losses_are_those_of_models_that_have_not_seen_the_rows():
    rows, model = labelled(), LogisticRegression()
    family, job = learn(job_of(rows, model=model)), job_of(rows, model=model)
    fold = job.buckets(rows.loader(rows.x, *rows.arrays, start=0))
    wrong = np.empty(N, bool)
    for k in range(5):
        fitted = LogisticRegression().fit(X[fold != k], Y[fold != k])
        wrong[fold == k] = fitted.predict(X[fold == k]) != Y[fold == k]
        here = family.held_out(X, np.full(N, k))
        np.testing.assert_allclose(here, fitted.predict_proba(X), rtol=1e-12)
    assert family.cv_error == pytest.approx(wrong.mean(), rel=1e-12)
    means = [wrong[fold == k].mean() for k in range(5)]
    assert family.cv_error_se == pytest.approx(np.std(means, ddof=1) / np.sqrt(5), rel=1e-10)
    np.testing.assert_array_equal(family.held_out(X, np.full(N, -1)), family.predict(X))


def test_the_estimator_is_given_labels_and_is_left_as_it_was():
    class Seen(LogisticRegression):
        def fit(self, x, y):
            assert set(y) == {"sick", "well"}
            return super().fit(x, y)

    model = Seen()
    family, sums = answered(labelled(), {"t": XT}, model=model, n_bootstrap=4)
    assert np.isfinite(family.err_b(sums["t"])).all()
    assert not hasattr(model, "classes_")


def test_rows_without_an_outcome_are_not_learned_from():
    y = np.where(np.arange(N) < 100, None, Y)
    family, _ = answered(labelled(y=y), {"t": XT}, model=LogisticRegression(), n_bootstrap=2)
    assert family.n == N - 100
    expected = LogisticRegression().fit(X[100:], Y[100:]).predict_proba(XT)
    np.testing.assert_allclose(family.predict(XT), expected, rtol=1e-12)
    number = np.where(np.arange(N) < 100, np.nan, NUMBER)
    family = learn(job_of(numbered(y=number), model=LinearRegression(), loss="squared"))
    np.testing.assert_allclose(
        family.predict(XT), LinearRegression().fit(X[100:], NUMBER[100:]).predict(XT), rtol=1e-10
    )


def test_auto_does_not_believe_a_model_that_has_learned_its_rows_by_heart():
    model, targets = KNeighborsClassifier(1), {"t": XT}
    errors = {}
    for generator in ("plugin", "auto"):
        family, sums = answered(labelled(), targets, model=model, generator=generator)
        errors[generator] = family.answers(sums["t"])["direct"].error
    assert errors["plugin"] == 0
    assert errors["auto"] > 0.1
    assert "temperature" in family.generator


def test_a_frozen_model_is_believed_as_far_as_labelled_rows_allow():
    model = LogisticRegression().fit(X[:150], Y[:150])
    options = {"model": model, "refit": "never", "generator": "auto"}
    found = {}
    for chunks in (None, 37):
        family, sums = answered(labelled(X[150:], Y[150:], chunks), {"t": XT}, None, **options)
        found[chunks] = family.answers(sums["t"])
    observed = (model.predict(X[150:]) != Y[150:]).mean()
    assert family.cv_error == pytest.approx(observed, rel=1e-12)
    direct = family.answers(sums["t"])["direct"].error
    decomposed = observed + direct - family.error_in_sample["direct"]
    assert found[37]["decomposed"].error == pytest.approx(decomposed, rel=1e-12)
    assert found[None]["direct"].error == pytest.approx(direct, rel=1e-12)
    assert "corrected" not in found[None]
    sharp, _ = answered(labelled(X[150:], Y[150:]), {}, None, **{**options, "generator": "plugin"})
    expected = 1 - model.predict_proba(X[150:]).max(axis=1)
    assert sharp.error_in_sample["direct"] == pytest.approx(expected.mean(), rel=1e-12)


def test_a_frozen_model_with_labels_alone_can_be_judged():
    model = RidgeClassifier().fit(X[:150], Y[:150])
    family, sums = answered(
        labelled(X[150:], Y[150:]), {"t": XT}, None, model=model, refit="never", generator="auto"
    )
    found = family.answers(sums["t"])
    assert found["decomposed"].error == pytest.approx(family.cv_error, abs=1e-12)
    assert 0.1 < found["direct"].error < 0.5


# Replicates --------------------------------------------------------------------------------------------


def test_raising_the_number_of_replicates_keeps_the_earlier_ones():
    few, some = (
        answered(labelled(), {"t": XT}, model=LogisticRegression(), n_bootstrap=b)[0] for b in (5, 12)
    )
    assert few.in_b.shape == (5,)
    np.testing.assert_array_equal(some.in_b[:5], few.in_b)


def test_any_chunks_give_the_same_errors():
    found = [
        answered(labelled(chunks=chunks), {"t": XT}, model=LogisticRegression(tol=1e-10))[0].in_b
        for chunks in (None, 41, 150)
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-10)


def test_a_target_is_the_same_alone_and_beside_others_and_batches_add():
    _, alone = answered(labelled(), {"t": XT}, model=LogisticRegression())
    family, parts = answered(labelled(), {"t": XT, "a": XT[:80], "b": XT[80:]}, model=LogisticRegression())
    np.testing.assert_array_equal(alone["t"]["integrated"], parts["t"]["integrated"])
    added = {name: parts["a"][name] + parts["b"][name] for name in parts["a"]}
    for method in ("direct", "decomposed", "corrected"):
        found, whole = family.answers(added)[method], family.answers(parts["t"])[method]
        assert found.error == pytest.approx(whole.error, rel=1e-12)
        assert found.high == pytest.approx(whole.high, rel=1e-12)


def test_it_stops_when_the_error_is_known_well_enough():
    options = {"model": LogisticRegression(), "n_bootstrap": 200}
    family, sums = answered(labelled(), {"t": XT}, tol=0.01, **options)
    done = np.isfinite(family.err_b(sums["t"])).sum()
    assert done in (16, 32, 48)
    assert family.answers(sums["t"])["direct"].mc_error < 0.01
    _, all_of_them = answered(labelled(), {"t": XT}, tol=1e-9, **options)
    assert np.isfinite(all_of_them["t"]["integrated"]).all()


class Counted(LogisticRegression):
    """Notes each fit in a folder."""

    def __init__(self, folder=None, C=1.0):
        super().__init__(C=C)
        self.folder = folder

    def fit(self, x, y):
        Path(tempfile.mkstemp(dir=self.folder)[1])
        return super().fit(x, y)


def test_finished_replicates_are_not_fitted_again(tmp_path):
    fits, state = tmp_path / "fits", tmp_path / "state"
    fits.mkdir()
    options = {"model": Counted(str(fits)), "checkpoint": str(state)}
    first, _ = answered(labelled(), {"t": XT}, n_bootstrap=8, **options)
    assert len(list(fits.iterdir())) == 6 + 8
    again, more = answered(labelled(), {"t": XT}, n_bootstrap=12, **options)
    assert len(list(fits.iterdir())) == 2 * 6 + 12
    np.testing.assert_array_equal(again.in_b[:8], first.in_b)
    assert np.isfinite(more["t"]["integrated"]).all()
    other, _ = answered(labelled(), {"u": XT + 1}, n_bootstrap=8, **options)  # stands beside
    assert len(list(fits.iterdir())) == 3 * 6 + 12 + 8
    np.testing.assert_array_equal(other.in_b, first.in_b)


def test_a_process_that_is_killed_leaves_its_finished_waves(tmp_path):
    """The fit is made again, and 6 folds' and 12 replicates' fits; the 6 of the first wave are not."""
    fits, state = tmp_path / "fits", tmp_path / "state"
    fits.mkdir()
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import dask
        from test_refits import XT, Counted, answered, labelled
        class Killing(Counted):
            def fit(self, x, y):
                if len(os.listdir(self.folder)) == 6 + 6 + 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().fit(x, y)
        Killing.__qualname__ = "Counted"
        with dask.config.set(scheduler="synchronous", num_workers=1):
            model = Killing({str(fits)!r})
            answered(labelled(), {{"t": XT}}, n_bootstrap=18, model=model, checkpoint={str(state)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -9
    assert len(list(fits.iterdir())) == 6 + 6 + 3
    options = {"model": Counted(str(fits)), "n_bootstrap": 18}
    found, _ = answered(labelled(), {"t": XT}, checkpoint=str(state), **options)
    assert len(list(fits.iterdir())) == 15 + 6 + 12
    expected, _ = answered(labelled(), {"t": XT}, **options)
    np.testing.assert_array_equal(found.in_b, expected.in_b)


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (np.roll(Y, 1), {}),
        (Y, {"seed": 8}),
        (Y, {"generator": "auto"}),
        (Y, {"model": LogisticRegression(C=2)}),
    ],
    ids=["labels", "seed", "generator", "model"],
)
def test_replicates_of_another_fit_are_refused(tmp_path, y, options):
    given = {"model": LogisticRegression(), "checkpoint": str(tmp_path / "state"), "n_bootstrap": 4}
    answered(labelled(), {"t": XT}, **given)
    with pytest.raises(DataError, match="is of other data or parameters"):
        answered(labelled(y=y), {"t": XT}, **{**given, **options})


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()])
def test_warm_refits_go_on_from_the_fitted_model(model):
    cold, _ = answered(labelled(), {"t": XT}, model=model, n_bootstrap=6)
    warm, _ = answered(labelled(), {"t": XT}, model=model, n_bootstrap=6, refit="warm")
    assert not np.array_equal(cold.in_b, warm.in_b)
    np.testing.assert_allclose(cold.in_b, warm.in_b, atol=0.2)


def test_a_network_is_refitted_warm():
    model = MLPClassifier((8,), max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        family, sums = answered(
            labelled(), {"t": XT}, model=model, n_bootstrap=4, refit="warm", generator="auto"
        )
    assert np.isfinite(family.err_b(sums["t"])).all()


class Failing(ClassifierMixin, BaseEstimator):
    """Fails in fits that do not learn from the real labels: `often`, or always."""

    def __init__(self, often=False):
        self.often = often

    def fit(self, x, y):
        if len(y) == N and not np.array_equal(y, Y) and (not self.often or (y == "sick").sum() % 2):
            raise ValueError("did not converge")
        self.inner_ = LogisticRegression().fit(x, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, x):
        return self.inner_.predict_proba(x)


def test_a_replicate_that_fails_is_left_out_and_told():
    family, sums = answered(labelled(), {"t": XT}, model=Failing(often=True))
    there = np.isfinite(family.err_b(sums["t"]))
    assert 0 < there.sum() < 24
    assert (
        f"of {np.flatnonzero(there)[-1] + 1} refits to drawn outcomes failed" in family.remarks(sums["t"])[0]
    )
    direct = family.answers(sums["t"])["direct"]
    assert direct.error == pytest.approx(family.err_b(sums["t"])[there].mean(), rel=1e-12)
    whole, _ = answered(labelled(), {"t": XT}, model=LogisticRegression())
    np.testing.assert_array_equal(family.in_b[there], whole.in_b[there])


def test_if_all_fail_the_cause_is_told():
    with pytest.raises(DataError, match=r"none of 24 refits .*Failing.fit failed \(ValueError: did not conv"):
        answered(labelled(), {"t": XT}, model=Failing())


def test_a_class_that_a_replicate_lost_has_probability_0():
    y = np.where(np.arange(N) == 7, "rare", Y)
    family, sums = answered(labelled(y=y), {"t": XT}, cv=None, model=LogisticRegression(), loss="deviance")
    assert family.predict(XT).shape == (200, 3)
    found = family.err_b(sums["t"])
    assert np.isfinite(found).all()
    assert found.max() > found.min() + 0.05  # some have lost it, and pay for it
    assert "without folds" in family.remarks(sums["t"])[0]


def test_a_target_of_one_row_and_one_without():
    empty = np.full((3, P), np.nan)
    family = learn(job_of(labelled(), model=LogisticRegression()))
    targets = {"one": as_rows(XT[:1]), "none": as_rows(empty, invalid="drop")}
    sums = family.target_sums(targets, noise=False)
    assert np.isfinite(family.answers(sums["one"])["direct"].error)
    none = family.answers(sums["none"])["direct"]
    assert np.isnan(none.error)
    assert none.reason == "no rows that are finite"


def loss_of_the_user(y, prediction):
    return np.abs(y - prediction)


def test_a_loss_of_the_users_is_integrated_over_residuals():
    options = {"model": LinearRegression(), "n_bootstrap": 60, "loss": loss_of_the_user}
    family, sums = answered(numbered(), {"t": XT}, **options)
    found = family.answers(sums["t"])["direct"]
    assert found.error == pytest.approx(found.drawn, rel=0.03)
    assert found.error == pytest.approx(np.sqrt(2 / np.pi * family.sigma2), rel=0.05)


def test_cross_validation_alone_needs_no_refits_and_no_probabilities():
    family, sums = answered(labelled(), {"t": XT}, model=RidgeClassifier(), methods=("cv",))
    assert family.answers(sums["t"])["cv"].error == family.cv_error
    assert float(sums["t"]["n"]) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": RidgeClassifier()}, "RidgeClassifier has no predict_proba.*CalibratedClassifierCV"),
        ({"model": KNeighborsClassifier(), "refit": "warm"}, "warm_start nor partial_fit.*refit='cold'"),
        ({"model": LogisticRegression}, r"is a class: pass an object, LogisticRegression\(\)"),
        ({"model": 3}, "int has no fit"),
        ({"model": LogisticRegression(), "generator": "relaxed"}, "generator='relaxed'"),
        ({"model": LogisticRegression(C=-1)}, "LogisticRegression.fit failed"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_way_out(options, message):
    with pytest.raises(DataError, match=message):
        answered(labelled(), {"t": XT}, **options)


def test_saving_says_why_not():
    refitted = learn(job_of(labelled(), model=LogisticRegression(), refit="cold"))
    with pytest.raises(DataError, match=r"learned of an estimator cannot be saved.*is code"):
        encoding.encode(refitted)
    frozen = learn(job_of(labelled(), model=LogisticRegression().fit(X, Y), refit="never"))
    with pytest.raises(DataError, match=r"LogisticRegression cannot be saved.*ModelFile"):
        encoding.encode(frozen)


# Workers -----------------------------------------------------------------------------------------------


class Mortal(LogisticRegression):
    """Kills its worker once, in a fit to drawn labels."""

    def __init__(self, marker=None):
        super().__init__()
        self.marker = marker

    def fit(self, x, y):
        drawn = len(y) == N and not np.array_equal(y, Y)
        if drawn and (y == "sick").sum() % 3 == 0 and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(x, y)


def test_a_killed_worker_changes_no_bit(tmp_path):
    marker, options = tmp_path / "killed", {"n_bootstrap": 20, "checkpoint": str(tmp_path / "state")}
    here, expected = answered(labelled(chunks=100), {"t": XT}, model=LogisticRegression(), n_bootstrap=20)
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**workers) as cluster, Client(cluster):
        family, sums = answered(labelled(chunks=100), {"t": XT}, model=Mortal(str(marker)), **options)
    assert marker.exists()
    np.testing.assert_array_equal(family.predict(XT), here.predict(XT))
    for name, values in expected["t"].items():
        np.testing.assert_array_equal(sums["t"][name], values)
