"""What `describe` tells is what counting the rows by hand tells, however they come."""

import json

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from described import BallSlicer, corner, domino
from scipy import stats

import scaleshift as ss
from scaleshift.blocks import noise
from scaleshift.errors import ChunkError, DataError


@pytest.fixture(scope="module")
def fitted():
    data, there = corner()
    return domino().fit(data), data, there


def held(n, share=0.2, seed=0):
    return noise.keys(seed, "holdout", 0, n) < np.uint64(share * 2.0**64)


def members_of(slicer, x):
    projected = slicer.preparation_.projection(x, np.dtype(slicer.preparation_.dtype))
    return slicer._slices.members(projected), slicer._slices.typicality(projected)


def same(a, b, skip=(), rtol=1e-9):
    assert set(a.variables) == set(b.variables)
    for name in a.variables:
        if name in skip:
            continue
        if a[name].dtype.kind == "f":
            np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_planted_slice_is_told_as_it_was_planted(fitted):
    slicer, _, there = fitted
    found = slicer.describe()
    assert float(found["share"][0]) == pytest.approx(there.mean(), abs=0.01)
    assert float(found["error_low"][0]) < 0.6 < float(found["error_high"][0])
    assert float(found["q_value"][0]) < 1e-6
    assert found["flag"].values.tolist()[0] == ""
    words = found["words"].values.tolist()[0]
    assert "% of rows, wrong in" in words
    assert "elsewhere, most often predicts '" in words
    assert "column" not in words  # nobody named the columns


@pytest.mark.parametrize("whose", ["fit", "others"])
def test_numbers_are_those_of_counting_by_hand(fitted, whose):
    slicer, data, _ = fitted
    if whose == "others":
        data, _ = corner(seed=9)
    found = slicer.describe(data)
    x, y, p = data["embedding"], data["target"], data["pred_probs"]
    members, typicality = members_of(slicer, x)
    judges = held(len(x)) if whose == "fit" else np.ones(len(x), bool)
    predicted = np.array(["B", "NK", "T"])[p.argmax(axis=1)]
    wrong = predicted != y
    loss = -np.log(np.where(wrong, 0.1, 0.8))
    for k in range(2):
        inside = members[:, k]
        outside = ~members.any(axis=1)  # of both slices: what each is held against
        a, b = judges & inside, judges & outside
        expected = {
            "size": inside.sum(),
            "share": inside[judges].mean(),
            "error_rate": wrong[a].mean(),
            "error_rate_rest": wrong[b].mean(),
            "excess_errors": (wrong[a].mean() - wrong[judges].mean()) * inside.sum(),
            "loss": loss[a].mean(),
            "loss_gap": loss[a].mean() - loss[b].mean(),
            "judging_rows": a.sum(),
            "p_value": stats.fisher_exact(
                [[wrong[a].sum(), (~wrong)[a].sum()], [wrong[b].sum(), (~wrong)[b].sum()]], "greater"
            ).pvalue,
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found[name].values[k], value, rtol=1e-9, err_msg=name)
        low, high = stats.binomtest(int(wrong[a].sum()), int(a.sum())).proportion_ci(0.95, "wilson")
        assert (float(found["error_low"][k]), float(found["error_high"][k])) == pytest.approx((low, high))
        table = pd.crosstab(y[a], predicted[a]).reindex(index=["B", "NK", "T"], columns=["B", "NK", "T"])
        np.testing.assert_array_equal(found["confusion"].values[k], table.fillna(0).to_numpy())
        spread = np.sqrt((x[inside].var(axis=0) + x[outside].var(axis=0)) / 2)
        gap = (x[inside].mean(axis=0) - x[outside].mean(axis=0)) / spread
        np.testing.assert_allclose(found["difference"].values[k], gap, rtol=1e-9)
        best = np.flatnonzero(inside)[np.argsort(-typicality[inside, k], kind="stable")[:10]]
        np.testing.assert_array_equal(found["exemplar"].values[k], best)
    np.testing.assert_allclose(found["q_value"], stats.false_discovery_control(found["p_value"]))


def test_rows_that_judge_had_no_say_in_the_slices():
    data, _ = corner()
    out = held(3_000)
    changed = {
        **data,
        "pred_probs": np.where(out[:, None], data["pred_probs"][:, [1, 2, 0]], data["pred_probs"]),
    }
    # The confusion start is made of each row alone: what is held out cannot show anywhere.
    one = domino(init_params="confusion", max_iter=500).fit(data)
    other = domino(init_params="confusion", max_iter=500).fit(changed)
    np.testing.assert_array_equal(one.means_, other.means_)
    np.testing.assert_array_equal(one.slice_components_, other.slice_components_)
    # Held-out rows that were right are now wrong, and the other way round: all that judge.
    np.testing.assert_allclose(one.describe()["error_rate"], 1 - other.describe()["error_rate"])
    assert int(one.describe()["judging_rows"].sum()) < out.sum()
    assert float(one.describe()["n_effective"]) == out.sum()


def test_the_rows_of_the_fit_are_recognised(fitted):
    slicer, data, _ = fitted
    again = slicer.describe(data)
    same(again, slicer.describe(), rtol=0)
    assert again.attrs == slicer.describe().attrs
    assert again.attrs["judged_by"] == "rows held out of the fit"
    lazy = {**data, "embedding": da.from_array(data["embedding"].astype(np.float32), chunks=(700, -1))}
    assert slicer.describe(lazy).attrs["judged_by"] == "rows held out of the fit"


def test_rows_of_the_fit_in_another_order_cannot_judge(fitted):
    slicer, data, _ = fitted
    order = np.random.default_rng(0).permutation(3_000)
    found = slicer.describe({name: values[order] for name, values in data.items()})
    assert np.isnan(found["p_value"]).all()
    assert "another order" in found["flag"].values[0]
    assert "those of the fit among them" in found.attrs["judged_by"]


def test_other_rows_judge_in_any_order(fitted):
    slicer, _, _ = fitted
    data, _ = corner(seed=4)
    order = np.random.default_rng(0).permutation(3_000)
    found, other = slicer.describe(data), slicer.describe({name: v[order] for name, v in data.items()})
    same(found, other, skip=("exemplar",))
    np.testing.assert_array_equal(order[other["exemplar"].values], found["exemplar"].values)
    assert found.attrs["judged_by"] == "all rows given, as rows that the fit did not see"


@pytest.mark.parametrize("chunk", [333, 1_000, 2_999])
def test_chunks_change_nothing(fitted, chunk):
    slicer, _, _ = fitted
    data, _ = corner(n=9_000, seed=5)  # more than one tile
    metadata = pd.DataFrame({"first": data["embedding"][:, 0]})
    lazy = {name: da.from_array(v, chunks=(chunk, *v.shape[1:])) for name, v in data.items()}
    asked = {"metadata": metadata, "features": data["embedding"][:, :2]}
    same(slicer.describe(lazy, **asked), slicer.describe(data, **asked))


def test_fits_of_other_chunks_are_described_alike():
    data, _ = corner()
    lazy = {name: da.from_array(v, chunks=(450, *v.shape[1:])) for name, v in data.items()}
    same(domino().fit(lazy).describe(), domino().fit(data).describe(), rtol=1e-4)


def test_a_class_may_be_absent_in_a_block(fitted):
    slicer, _, _ = fitted
    data, _ = corner(seed=6)
    order = np.argsort(data["target"], kind="stable")
    data = {name: values[order] for name, values in data.items()}
    lazy = {name: da.from_array(v, chunks=(500, *v.shape[1:])) for name, v in data.items()}
    same(slicer.describe(lazy), slicer.describe(data))


def test_weights_are_repeated_rows(fitted):
    slicer, _, _ = fitted
    data, _ = corner(n=1_500, seed=7)
    times = np.random.default_rng(1).integers(0, 4, 1_500)
    found = slicer.describe(data, sample_weight=times)
    repeated = slicer.describe({name: np.repeat(v, times, axis=0) for name, v in data.items()})
    for name in ("size", "share", "error_rate", "error_rate_rest", "excess_errors", "loss", "loss_gap"):
        np.testing.assert_allclose(found[name], repeated[name], rtol=1e-9, atol=1e-12, err_msg=name)
    for name in ("confusion", "difference", "overlap", "judging_share"):
        np.testing.assert_allclose(found[name], repeated[name], rtol=1e-9, atol=1e-12, err_msg=name)
    # A row that stands for three is no three rows: intervals and tests know.
    assert (found["error_high"] - found["error_low"] > repeated["error_high"] - repeated["error_low"]).all()
    assert int(found["n_rows"]) == (times > 0).sum()


def test_rows_of_weight_zero_are_not_there(fitted):
    slicer, _, _ = fitted
    data, _ = corner(seed=7)
    there = np.random.default_rng(1).random(3_000) < 0.5
    found = slicer.describe(data, sample_weight=there.astype(float))
    fewer = slicer.describe({name: v[there] for name, v in data.items()})
    same(found, fewer, skip=("exemplar",))
    np.testing.assert_array_equal(found["exemplar"], np.flatnonzero(there)[fewer["exemplar"]])


def test_without_held_out_rows_nothing_is_tested():
    data, _ = corner()
    with pytest.warns(UserWarning, match="did not converge"):
        slicer = domino(compat="domino-0.1.5", max_iter=5).fit(data)
    found = slicer.describe()
    assert np.isnan(found["p_value"]).all()
    assert np.isnan(found["q_value"]).all()
    assert all(flag.startswith("nothing held out") for flag in found["flag"].values)
    assert np.isfinite(found["error_rate"]).all()
    assert np.isfinite(slicer.describe(corner(seed=3)[0])["p_value"]).all()


def test_missing_targets_are_left_out(fitted):
    slicer, _, _ = fitted
    data, _ = corner(seed=8)
    some = np.random.default_rng(2).random(3_000) < 0.5
    holes = np.where(some, data["target"].astype(object), None)
    found = slicer.describe({**data, "target": holes})
    known = slicer.describe({name: v[some] for name, v in data.items()})
    for name in ("error_rate", "error_low", "p_value", "loss", "confusion"):
        np.testing.assert_allclose(found[name], known[name], rtol=1e-9, err_msg=name)
    np.testing.assert_array_equal(found["size"], slicer.describe(data)["size"])


@pytest.mark.parametrize("missing", ["no column", "all missing", "NaN"])
def test_targets_may_be_missing(fitted, missing):
    slicer, _, _ = fitted
    data, _ = corner(seed=8)
    del data["target"]
    if missing != "no column":
        data["target"] = np.full(3_000, None if missing == "all missing" else np.nan)
    found = slicer.describe(data)
    assert np.isnan(found["error_rate"]).all()
    assert np.isnan(found["p_value"]).all()
    assert found["flag"].values.tolist() == ["errors not known"] * 2
    assert float(found["share"][0]) > 0.05
    assert found["words"].values[0].endswith("% of rows [errors not known]")


def test_a_slice_may_have_no_members():
    data, there = corner()
    balls = BallSlicer([data["embedding"][there].mean(axis=0), np.full(4, 99.0)], [3.0, 1.0]).fit(data)
    found = balls.describe()
    assert found["size"].values[1] == 0
    assert found["flag"].values[1] == "no members"
    assert found["words"].values[1] == "no rows"
    assert (found["exemplar"].values[1] == -1).all()
    assert np.isnan(found["p_value"].values[1])
    assert found["q_value"].values[0] == found["p_value"].values[0]  # one test, not two
    assert np.isnan(found["difference"].values[1]).all()
    assert found["same_rows_as"].values.tolist() == [0, 1]


def test_few_members_are_flagged_and_all_shown():
    data, _ = corner()
    data["embedding"][[5, 700, 2_500]] = [[50.0] * 4, [50.1] * 4, [50.3] * 4]
    found = BallSlicer([[50.0] * 4], [2.0]).fit(data).describe()
    assert found["exemplar"].values[0].tolist() == [5, 700, 2_500] + [-1] * 7
    assert "few rows" in found["flag"].values[0]


def test_a_slice_that_is_no_worse_is_flagged_and_said_so():
    data, _ = corner()
    found = BallSlicer([[0.0] * 4, [5.0, 5.0, 0.0, 0.0]], [1.5, 3.0]).fit(data).describe()
    assert "worse than the rest" in found["flag"].values[0]
    assert found["words"].values[0].endswith(f"[{found['flag'].values[0]}]")
    assert found["flag"].values[1] == ""


def test_a_slice_is_held_against_healthy_rows_also_beside_a_worse_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6_000, 2)) + 12 * rng.choice(3, 6_000, p=[0.9, 0.07, 0.03])[:, None]
    place = np.rint(x.mean(axis=1) / 12).astype(int)
    wrong = rng.random(6_000) < np.array([0.02, 0.9, 0.1])[place]
    y = rng.integers(0, 2, 6_000)
    data = {"embedding": x, "target": y, "pred_probs": np.where(wrong, 1 - y, y).astype(float)}
    found = (
        BallSlicer([[12.0] * 2, [24.0] * 2], [6.0, 6.0])
        .fit(data)
        .describe({name: values[:5_999] for name, values in data.items()})
    )
    assert (found["q_value"] < 1e-3).all()  # .1 is more than .02, though less than the .08 of all others
    np.testing.assert_allclose(found["error_rate_rest"], wrong[place == 0].mean(), atol=0.002)
    assert found["flag"].values.tolist() == ["", ""]


def test_overlap_is_the_share_of_rows_in_both():
    data, _ = corner()
    x = data["embedding"]
    centres, radii = [[5.0, 5.0, 0.0, 0.0], [5.0, 5.0, 0.0, 0.0], [0.0] * 4], [2.0, 2.2, 2.0]
    found = BallSlicer(centres, radii).fit(data).describe()
    inside = [np.linalg.norm(x - c, axis=1) <= r for c, r in zip(centres, radii, strict=True)]
    expected = [[(a & b).sum() / a.sum() for b in inside] for a in inside]
    np.testing.assert_allclose(found["overlap"], expected, rtol=1e-12)
    assert found["same_rows_as"].values.tolist() == [0, 0, 2]
    assert "same rows as slice 0" in found["flag"].values[1]


def test_many_labels_have_no_confusion():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2_000, 3)), rng.integers(0, 31, 2_000)
    found = domino().fit(None, x, y, np.where(rng.random(2_000) < 0.3, (y + 1) % 31, y)).describe()
    assert "confusion" not in found
    assert (found["judging_rows"] > 0).any()  # a component that only labels tell apart has no members
    np.testing.assert_array_equal(np.isfinite(found["error_rate"]), found["judging_rows"] > 0)


@pytest.mark.parametrize("kind", ["losses", "residuals"])
def test_losses_are_judged_where_there_are_no_errors(kind):
    data, there = corner()
    rng = np.random.default_rng(0)
    error = rng.normal(size=3_000) * np.where(there, 4.0, 1.0)
    x = data["embedding"]
    slicer = domino(n_slices=1)
    slicer = (
        slicer.fit(None, x, losses=error**2)
        if kind == "losses"
        else slicer.fit(None, x, error + 3, 0 * error + 3)
    )
    found = slicer.describe()
    members, _ = members_of(slicer, x)
    out, inside = held(3_000), members[:, 0]
    assert float(found["loss"][0]) == pytest.approx((error**2)[out & inside].mean())
    welch = stats.ttest_ind(
        (error**2)[out & inside], (error**2)[out & ~inside], equal_var=False, alternative="greater"
    )
    assert float(found["p_value"][0]) == pytest.approx(welch.pvalue, rel=1e-6)
    assert np.isnan(found["error_rate"]).all()
    assert "mean loss" in found["words"].values[0]


def test_features_far_from_zero_keep_their_differences():
    near, far = (domino(n_pca_components=None).fit(corner(offset=o)[0]).describe() for o in (0.0, 1e4))
    np.testing.assert_allclose(near["difference"], far["difference"], rtol=1e-5, atol=1e-6)


def test_markers_tell_what_sets_a_slice_apart():
    data, _ = corner()
    frame = pd.DataFrame(data["embedding"] * [1, -1, 1, 1], columns=["CD19", "CD45", "CD3", "CD4"])
    found = domino(n_slices=1).fit(None, frame, data["target"], data["pred_probs"]).describe()
    assert found["feature"].values.tolist() == list(frame.columns)
    assert {"CD19 high", "CD45 low"} == set(found["words"].values[0].split("; ")[1].split(", "))


@pytest.mark.parametrize("lazy", [False, True])
def test_given_features_take_the_place_of_the_embeddings(fitted, lazy):
    slicer, data, there = fitted
    values = np.column_stack([there + np.random.default_rng(0).normal(size=3_000), np.zeros(3_000)])
    values[::7, 0] = np.nan
    features = pd.DataFrame(values, columns=["age", "constant"])
    if lazy:
        features = xr.DataArray(
            da.from_array(values, chunks=(400, 2)), dims=("row", "name"), coords={"name": ["age", "constant"]}
        )
    found = slicer.describe(data, features=features)
    members, known = members_of(slicer, data["embedding"])[0], np.isfinite(values[:, 0])
    a, b = values[members[:, 0] & known, 0], values[~members.any(axis=1) & known, 0]
    expected = (a.mean() - b.mean()) / np.sqrt((a.var() + b.var()) / 2)
    assert found["feature"].values.tolist() == ["age", "constant"]
    assert float(found["difference"][0, 0]) == pytest.approx(expected, rel=1e-9)
    assert float(found["difference"][0, 1]) == 0.0
    assert found["words"].values[0].endswith("; age high")


def test_a_saved_slicer_describes_the_same(fitted, tmp_path):
    slicer, data, _ = fitted
    slicer.save(tmp_path / "slicer")
    again = ss.load(tmp_path / "slicer")
    assert again.describe().identical(slicer.describe())
    assert again.describe(data).identical(slicer.describe(data))


def test_a_description_is_plain_data_that_explains_itself(fitted):
    found = fitted[0].describe()
    again = xr.Dataset.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again["words"].values.tolist() == found["words"].values.tolist()
    assert again.attrs == found.attrs
    for name, variable in found.data_vars.items():
        assert variable.attrs["long_name"], name


def test_what_makes_no_sense_is_refused(fitted):
    slicer, data, _ = fitted
    with pytest.raises(DataError, match="level=2: expected"):
        slicer.describe(level=2)
    with pytest.raises(DataError, match="features= and metadata= are of rows"):
        slicer.describe(features=np.zeros((3_000, 1)))
    with pytest.raises(DataError, match="features has 2 rows, the embeddings have 3000"):
        slicer.describe(data, features=np.zeros((2, 1)))
    with pytest.raises(ChunkError):
        slicer.describe(data, features=da.zeros((2, 1)))
    with pytest.raises(DataError, match="features has the column 'a' of"):
        slicer.describe(data, features=pd.DataFrame({"a": ["x"] * 3_000}))
    with pytest.raises(DataError, match="metadata is a dict"):
        slicer.describe(data, metadata={"a": np.zeros(3_000)})
    with pytest.raises(DataError, match="metadata has 2 rows"):
        slicer.describe(data, metadata=pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(DataError, match="X has 3 columns, the model was fitted on 4"):
        slicer.describe({**data, "embedding": data["embedding"][:, :3]})
