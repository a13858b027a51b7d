"""Do answers depend on rows alone, and not on how they come?  Chunks, dtypes, odd rows, odd columns."""

import dask.array as da
import numpy as np
import pytest
from gaussian_jobs import DEFAULTS, answers, job, sums_of, target

from scaleshift.blocks.block import Column
from scaleshift.blocks.buckets import random_buckets
from scaleshift.blocks.rows import as_rows, with_columns, with_numbers
from scaleshift.encoding import decode, encode
from scaleshift.error.family import Job, Settings
from scaleshift.error.gaussian import learn
from scaleshift.errors import DataError

METHODS = ("direct", "decomposed", "corrected", "cv")


def data(n=200, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 3
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n) + 5, 2 * rng.normal(size=(50, p))


def chunked(X, y, model, chunks, **settings):
    rows = with_numbers(as_rows(da.from_array(X, chunks=(chunks, -1))), outcome=y)
    rows = with_columns(rows, label=Column(np.zeros(len(y), int), np.array(["all"]), coded=True))
    return Job(rows, random_buckets(rows, 5, 0), Settings(model=model, **{**DEFAULTS, **settings}))


@pytest.mark.parametrize("model", ["ols", "ridge", "lasso"])
def test_chunks_change_nothing(model):
    X, y, Xt = data()
    settings = {
        "generator": "auto",
        "n_bootstrap": 50,
        "methods": ("direct", "decomposed", "corrected", "cv"),
    }
    whole = learn(job(X, y, model, folds=5, **settings))
    parts = learn(chunked(X, y, model, 37, **settings))
    lazy = as_rows(da.from_array(Xt, chunks=(7, -1)))
    told = parts.answers(parts.target_sums({"t": lazy}, noise=False)["t"])
    for method, expected in answers(whole, Xt).items():
        np.testing.assert_allclose(told[method][:5], expected[:5], rtol=1e-10)
    np.testing.assert_allclose(parts.in_b, whole.in_b, rtol=1e-10)


def test_products_of_float32_rows_are_float64():
    X, y, Xt = data()
    X, Xt = X.astype(np.float32), Xt.astype(np.float32)
    single, double = learn(job(X, y, "ols")), learn(job(X.astype(np.float64), y, "ols"))
    np.testing.assert_allclose(
        answers(single, Xt)["direct"].error, answers(double, Xt.astype(float))["direct"].error, rtol=1e-12
    )


def test_large_means_cost_no_digits():
    X, y, Xt = data()
    near, far = learn(job(X, y, "ols")), learn(job(X + 1e6, y + 1e7, "ols"))
    np.testing.assert_allclose(
        answers(far, Xt + 1e6)["direct"][:4], answers(near, Xt)["direct"][:4], rtol=1e-8
    )


def test_units_of_columns_do_not_matter_to_least_squares():
    X, y, Xt = data()
    unit = 10.0 ** np.arange(-9, 9, 3)
    found, scaled = learn(job(X, y, "ols")), learn(job(X * unit, y, "ols"))
    np.testing.assert_allclose(scaled.predict(Xt * unit), found.predict(Xt), rtol=1e-9)
    assert scaled.freedom == 7


def test_rows_without_outcome_are_not_learned_from():
    X, y, Xt = data()
    more = np.concatenate([X, 100 + X[:20]])
    found = learn(job(more, np.concatenate([y, np.full(20, np.nan)]), "ols"))
    np.testing.assert_allclose(
        answers(found, Xt)["direct"][:4], answers(learn(job(X, y, "ols")), Xt)["direct"][:4]
    )


def test_rows_that_are_not_finite_are_left_out_and_counted():
    X, y, Xt = data()
    holed, holed_t = X.copy(), np.concatenate([Xt, np.full((3, 6), np.nan)])
    holed[[3, 5], 2] = np.nan, np.inf
    found = learn(job(holed, y, "ridge", alpha=0.1, invalid="drop"))
    expected = learn(job(np.delete(X, [3, 5], 0), np.delete(y, [3, 5]), "ridge", alpha=0.1))
    sums = sums_of(found, holed_t, invalid="drop")
    assert (found.n_invalid, float(sums["n"]), float(sums["n_rows"])) == (2, 50, 53)
    np.testing.assert_allclose(
        found.answers(sums)["decomposed"].error, answers(expected, Xt)["decomposed"].error, rtol=1e-12
    )
    with pytest.raises(DataError, match="NaN or infinite"):
        sums_of(found, holed_t)


def test_a_target_without_finite_rows_has_a_reason():
    X, y, _ = data()
    found = learn(job(X, y, "lasso", alpha=0.1))
    sums = sums_of(found, np.full((2, 6), np.nan), invalid="drop")
    told = found.answers(sums)["direct"]
    assert np.isnan(told.error)
    assert "no row" in told.reason
    assert any("no row" in remark for remark in found.remarks(sums))


def test_a_target_of_one_row_has_the_error_of_that_row():
    X, y, Xt = data()
    found = learn(job(X, y, "ols"))
    expected = found.noise.total * (1 + found.extrapolation(Xt[:1])[0])
    np.testing.assert_allclose(answers(found, Xt[:1])["direct"].error, expected, rtol=1e-12)


def test_sums_of_parts_add_up():
    X, y, Xt = data()
    found = learn(job(X, y, "ridge", alpha=0.1))
    parts = [sums_of(found, part) for part in (Xt[:20], Xt[20:])]
    added = {name: parts[0][name] + parts[1][name] for name in parts[0]}
    np.testing.assert_allclose(
        found.answers(added)["direct"][:4], answers(found, Xt)["direct"][:4], rtol=1e-12
    )


def test_a_constant_column_changes_nothing():
    X, y, Xt = data()
    for model, alpha in (("ols", None), ("ridge", 0.1), ("lasso", 0.1)):
        wide = np.insert(X, 2, 0.1, axis=1)
        found = learn(job(wide, y, model, alpha=alpha))
        expected = learn(job(X, y, model, alpha=alpha))
        assert found.coef[2] == 0
        told, plain = answers(found, np.insert(Xt, 2, 0.1, axis=1)), answers(expected, Xt)
        if model != "lasso":  # whose replicates have draws of their own: one more column, other numbers
            assert told["decomposed"].error == pytest.approx(plain["decomposed"].error, rel=1e-9)
        assert found.err_in == pytest.approx(expected.err_in, rel=1e-9)


def test_collinear_columns_take_one_degree_of_freedom():
    X, y, Xt = data()
    found = learn(job(np.c_[X, X[:, 0] + X[:, 1]], y, "ols"))
    assert found.freedom == 7
    both = np.c_[Xt, Xt[:, 0] + Xt[:, 1]]
    np.testing.assert_allclose(
        answers(found, both)["direct"][:4], answers(learn(job(X, y, "ols")), Xt)["direct"][:4]
    )


def test_more_columns_than_rows_give_the_smallest_least_squares():
    X, y, Xt = data(20, 40)
    found = learn(job(X, y, "ols", folds=4, methods=("direct", "cv")))
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(found.coef, np.linalg.pinv(centred) @ (y - y.mean()), rtol=1e-8, atol=1e-10)
    told = answers(found, Xt)
    assert np.isnan(told["direct"].error)
    assert "leave 0 of 20 rows" in told["direct"].reason
    assert np.isfinite(told["cv"].error)


@pytest.mark.parametrize("model", ["ridge", "lasso"])
def test_penalised_models_of_more_columns_than_rows_are_told(model):
    X, y, Xt = data(30, 60)
    found = learn(job(X, y, model, folds=5, generator="auto"))
    told = answers(found, Xt)
    assert told["direct"].error > found.noise.total > 0
    assert np.isfinite([told["decomposed"].error, told["direct"].low, told["direct"].high]).all()


def test_least_squares_are_no_generator_near_saturation():
    X, y, _ = data(30, 28)
    for generator in ("ols", "relaxed"):
        with pytest.raises(DataError, match="generator='plugin'"):
            learn(job(X, y, "ridge", alpha=0.1, generator=generator))
    assert learn(job(X, y, "ridge", alpha=0.1, folds=3, generator="auto")).share == 0


def test_what_cannot_be_learned_is_said():
    X, y, _ = data()
    cases = [
        (X, np.full(200, 0.1), {}, "all outcomes are the same"),
        (X[:2], y[:2], {}, "3 are needed"),
        (X, y, {"model": "ridge", "alpha": -1.0}, "from 0"),
        (X, y, {"model": "lasso"}, "give alpha, or cv"),
        (X, y, {"model": "lasso", "alpha": 0.1, "n_bootstrap": 1}, "2 replicates"),
        (X * 1e200, y, {}, "too large"),
        (X, y * 1e200, {}, "too large"),
        (X, np.where(np.arange(200) == 3, np.inf, y), {}, "infinite"),
    ]
    for x, outcome, settings, words in cases:
        with pytest.raises(DataError, match=words):
            learn(job(x, outcome, **{"model": "ols", **settings}))


def test_a_clean_run_warns_of_nothing_where_variance_is_told():
    X, y, Xt = data()
    found = learn(job(X, y, "ols"))
    assert found.remarks(sums_of(found, Xt)) == []
    narrow = learn(job(X[:9], y[:9], "ols"))
    assert "degrees of freedom" not in str(narrow.remarks(sums_of(narrow, Xt)))
    saturated = learn(job(X[:7], y[:7], "ols"))
    assert "degrees of freedom" in saturated.remarks(sums_of(saturated, Xt))[0]


def test_a_saved_family_answers_alike():
    X, y, Xt = data()
    found = learn(job(X, y, "lasso", folds=5, n_bootstrap=40, methods=METHODS))
    told = answers(found, Xt)  # before: what was made on the way is not saved
    tree, arrays = encode(found)
    loaded = decode(tree, lambda name, dtype, shape: arrays[name].reshape(shape))
    assert loaded.answers(sums_of(loaded, Xt)) == told
    assert max(array.size for array in arrays.values()) <= 7 * 101


def test_targets_come_by_name():
    X, y, Xt = data()
    found = learn(job(X, y, "ols"))
    sums = found.target_sums({"near": target(X), "far": target(10 * Xt)}, noise=False)
    near, far = (found.answers(sums[name])["direct"].error for name in ("near", "far"))
    assert far > 2 * near
