"""Which method for this study? A league table with checkable numbers, and a recommendation with a reason."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import scaleshift as ss
from scaleshift.blocks.rows import as_rows
from scaleshift.quantify import methods as registry
from scaleshift.quantify import trial_cells
from scaleshift.quantify.trial_cells import gather
from scaleshift.quantify.trials import (
    CLASS_OUT,
    LABEL_SHIFT,
    SAMPLE_OUT,
    SAMPLE_OUT_UNGATED,
    SETTINGS,
    splits,
)

CENTRES = np.array([[-4.0, 0], [4.0, 0], [0, 6.0]])
FAR = np.array([0.0, -12.0])
QUICK = {"n_bootstrap": 0, "bandwidth": 2.0, "random_state": 0}
HARD, SOFT = ss.DFM("landmarks", soft=False, **QUICK), ss.DFM("landmarks", **QUICK)


def study(ungated, moved=0.0, n_samples=4, n=400, seed=0):
    """Samples of three classes, whose cells all lie `moved` aside, each sample in another direction."""
    rng = np.random.default_rng(seed)
    x, y, sample = [], [], []
    for i in range(n_samples):
        code = rng.choice(3, n, p=rng.dirichlet([4, 4, 4]))
        unknown = rng.random(n) < ungated
        angle = 2 * np.pi * i / n_samples
        aside = moved * np.array([np.cos(angle), np.sin(angle)])
        x.append(np.where(unknown[:, None], FAR, CENTRES[code]) + aside + rng.standard_normal((n, 2)))
        y.append(np.where(unknown, None, np.array(["a", "b", "c"], object)[code]))
        sample += [f"S{i}"] * n
    return np.concatenate(x), np.concatenate(y), np.array(sample)


class Fixed:
    """Says the same of every sample."""

    def __init__(self, shares, unknown=0.0, reach=np.nan):
        self.shares, self.unknown, self.reach = shares, unknown, reach

    def fit(self, X, y, sample=None):
        return self

    def predict(self, X, sample=None):
        labels, samples = list(self.shares), np.unique(sample)
        share = np.tile(list(self.shares.values()), (len(samples), 1))
        variables = {"proportion": share, "proportion_low": share - self.reach}
        variables["proportion_high"] = share + self.reach
        data = {name: (("sample", "label"), values) for name, values in variables.items()}
        data["unknown"] = ("sample", np.full(len(samples), self.unknown))
        return xr.Dataset(data, {"sample": samples, "label": labels})


class NoUnlabelled(Fixed):
    """Cannot take cells without a label."""

    def fit(self, X, y, sample=None):
        if any(label is None for label in y):
            raise RuntimeError("what is None?\nnobody knows")
        return self


EVEN = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def test_errors_are_those_to_the_shares_of_the_left_out_samples():
    x, y, sample = study(ungated=0.3)
    table = ss.quantify.compare({"even": Fixed(EVEN, unknown=0.1)}, x, y, sample, random_state=0)
    assert table["setting"].values.tolist() == list(SETTINGS)
    for setting, among in ((SAMPLE_OUT, y != None), (SAMPLE_OUT_UNGATED, y == y)):  # noqa: E711
        found = table["trial_error"][0, (table["trial_setting"] == setting).values]
        for name, error in zip(found["left_out"].values, found.values, strict=True):
            mine = y[among & (sample == name)]
            truth = np.array([np.mean(mine == label) for label in "abc"])
            assert error == pytest.approx(np.abs(1 / 3 - truth).sum(), abs=1e-12)
        np.testing.assert_allclose(table["error"].sel(setting=setting), found.mean(), rtol=1e-12)
    unknown = np.mean([np.mean(y[sample == name] == None) for name in np.unique(sample)])  # noqa: E711
    assert table["unknown_error"].sel(setting=SAMPLE_OUT).item() == pytest.approx(0.1)
    assert table["unknown_error"].sel(setting=SAMPLE_OUT_UNGATED).item() == pytest.approx(unknown - 0.1)


def test_a_class_left_out_is_unknown_and_no_error_of_the_others():
    x, y, sample = study(ungated=0)
    table = ss.quantify.compare({"even": Fixed(EVEN)}, x, y, sample, settings=[CLASS_OUT], random_state=0)
    by_class = dict(zip(table["left_out"].values, table["trial_unknown_error"].values[0], strict=True))
    assert set(by_class) == {"a", "b", "c"}
    for label, error in by_class.items():
        assert error == pytest.approx(np.mean(y == label), abs=0.01)  # of a half of the cells


def test_coverage_is_the_share_of_intervals_that_hold_the_truth():
    three = {"all": Fixed(EVEN, reach=1.0), "none": Fixed(EVEN, reach=-1.0), "no intervals": Fixed(EVEN)}
    table = ss.quantify.compare(three, *study(ungated=0.1), random_state=0)
    np.testing.assert_array_equal(table["coverage"][0], 1)
    np.testing.assert_array_equal(table["coverage"][1], 0)
    assert np.isnan(table["coverage"][2]).all()


def test_a_method_that_ignores_unknown_cells_loses_where_a_class_is_left_out():
    table = ss.quantify.compare({"hard": HARD, "soft": SOFT}, *study(ungated=0), random_state=0)
    hard, soft = table["error"].sel(setting=CLASS_OUT).values
    assert hard > 0.25
    assert soft < 0.05
    hard, soft = table["error"].sel(setting=LABEL_SHIFT).values
    assert max(hard, soft) < 0.03


def test_one_failing_method_leaves_the_numbers_of_the_others():
    data = study(ungated=0.2)
    alone = ss.quantify.compare({"soft": SOFT}, *data, random_state=0)
    broken = {"broken": ss.DFM(bandwidth=-1), "picky": NoUnlabelled(EVEN), "soft": SOFT}
    table = ss.quantify.compare(broken, *data, random_state=0)
    xr.testing.assert_equal(table["trial_error"].loc[{"method": ["soft"]}], alone["trial_error"])
    assert np.isnan(table["error"].loc["broken"]).all()
    assert "bandwidth=-1: expected" in table["flag"].loc["broken"].values[0]
    picky = table.loc[{"method": "picky"}]
    assert np.isnan(picky["error"].values).tolist() == [setting == SAMPLE_OUT_UNGATED for setting in SETTINGS]
    assert picky["flag"].values.tolist() == ["", "", "", "", "RuntimeError: what is None?"]
    assert table.recommendation == "soft"


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ({"a": 0.5, "b": 0.5}, "the result lacks the label(s) c"),
        ({**EVEN, "b": np.nan}, "no proportion of b"),
    ],
)
def test_an_answer_without_all_classes_is_a_failure(shares, reason):
    table = ss.quantify.compare({"some": Fixed(shares)}, *study(ungated=0), random_state=0)
    assert reason in table["flag"].sel(setting=SAMPLE_OUT).item()
    assert np.isnan(table["error"].sel(setting=SAMPLE_OUT)).all()
    assert table.recommendation == ""


def test_the_table_is_the_same_for_any_chunks():
    x, y, sample = study(ungated=0.2)
    several = {"soft": SOFT, "hard": HARD}
    expected = ss.quantify.compare(several, x, y, sample, random_state=3, cells_per_sample=150)
    for rows in (130, 1_600):
        cells = ss.as_cells(da.from_array(x, chunks=(rows, 2)), sample=sample, label=y)
        found = ss.quantify.compare(several, cells, random_state=3, cells_per_sample=150)
        for name in ("error", "error_se", "unknown_error", "trial_error", "score"):
            xr.testing.assert_equal(found[name], expected[name])
        assert found.reason == expected.reason


def test_the_cells_are_read_once():
    x, y, sample = study(ungated=0.2)

    class Counted:
        shape, dtype, ndim, reads = x.shape, x.dtype, 2, 0

        def __getitem__(self, index):
            self.reads += 1
            return x[index]

    counted = Counted()
    lazy = da.from_array(counted, chunks=(160, 2), meta=x[:0])
    ss.quantify.compare({"even": Fixed(EVEN)}, lazy, y, sample, random_state=0, cells_per_sample=50)
    assert counted.reads == 10  # blocks


def test_the_recommendation_changes_with_the_data():
    both = {"hard": HARD, "soft": SOFT}
    far = ss.quantify.compare(both, *study(ungated=0.3), random_state=0)
    moved = ss.quantify.compare(both, *study(ungated=0, moved=1.5), random_state=0)
    assert (far.recommendation, moved.recommendation) == ("soft", "hard")
    assert "the least error where one of 4 samples is left out" in moved.reason
    assert "much worse where a class is left out" not in moved.reason  # nothing is unknown there


@pytest.mark.parametrize("n_samples", [1, 2])
def test_few_samples_cannot_tell_and_the_default_is_recommended(n_samples):
    data = study(ungated=0.2, n_samples=n_samples)
    table = ss.quantify.compare({registry.default(): Fixed(EVEN), "soft": SOFT}, *data, random_state=0)
    assert table.recommendation == registry.default()
    assert "too little of how samples differ" in table.reason
    without = ss.quantify.compare({"even": Fixed(EVEN), "soft": SOFT}, *data, random_state=0)
    assert without.recommendation == "soft"


def test_samples_without_any_label_count_for_nothing():
    x, y, sample = study(ungated=0.2)
    expected = ss.quantify.compare({"soft": SOFT}, x, y, sample, random_state=0)
    rng = np.random.default_rng(9)
    more = [np.concatenate([x, rng.normal(size=(700, 2))]), np.append(y, [None] * 700)]
    table = ss.quantify.compare({"soft": SOFT}, *more, np.append(sample, ["T"] * 700), random_state=0)
    xr.testing.assert_equal(table["trial_error"], expected["trial_error"])
    assert "T" not in table.samples


@pytest.mark.parametrize("names", [[-1, 0, 7], [True, False, None], [0.5, 1.5, 2.5]])
def test_labels_of_any_type_give_the_same_table(names):
    x, y, sample = study(ungated=0.2)
    y = np.where(y == "c", None, y) if None in names else y  # two classes and no third
    renamed = np.array([None if label is None else names["abc".index(label)] for label in y], object)
    order = {"a": 1, "b": 0} if None in names else {"a": 0, "b": 1, "c": 2}  # False before True
    first, second = (
        ss.quantify.compare({"soft": SOFT}, x, labels, sample, random_state=0, settings=[SAMPLE_OUT_UNGATED])
        for labels in (renamed, np.array([None if v is None else "xyz"[order[v]] for v in y], object))
    )
    np.testing.assert_allclose(first["trial_error"], second["trial_error"], rtol=1e-12)


def test_warnings_of_a_method_are_in_its_flag():
    class Warns(Fixed):
        def fit(self, X, y, sample=None):
            import warnings

            warnings.warn("not converged", UserWarning, stacklevel=1)
            return self

    table = ss.quantify.compare({"warns": Warns(EVEN)}, *study(ungated=0), settings=[SAMPLE_OUT])
    assert table["flag"].item() == "warning: not converged"
    assert np.isfinite(table["error"]).all()


# Which cells, which splits -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells():
    x, y, sample = study(ungated=0.2)
    return gather(as_rows(x, y, sample), 300, seed=0)


def test_shares_of_the_drawn_cells_are_those_of_the_samples(cells):
    _, y, sample = study(ungated=0.2)
    for code, name in enumerate(cells.samples):
        mine = cells.label[cells.sample == code]
        assert abs(len(mine) - 300) <= 3
        for label, known in enumerate(["a", "b", "c"]):
            assert np.mean(mine == label) == pytest.approx(np.mean(y[sample == name] == known), abs=0.01)


def test_no_target_row_is_learned_from(cells):
    found = list(splits(cells, list(SETTINGS), n_draws=2, n_left_out=6, seed=0))
    assert {trial.setting for split in found for trial in split.trials} == set(SETTINGS)
    for split in found:
        for trial in split.trials:
            assert not np.isin(trial.rows, split.source).any()
            if trial.setting == CLASS_OUT:
                assert trial.unit not in cells.labels[np.unique(cells.label[split.source])]
                assert trial.unit in cells.labels[np.unique(cells.label[trial.rows])]
            if trial.setting.startswith(SAMPLE_OUT):
                assert cells.samples[np.unique(cells.sample[trial.rows])].tolist() == [trial.unit]
                assert trial.unit not in cells.samples[np.unique(cells.sample[split.source])]
            unlabelled = (cells.label[trial.rows] < 0).any(), (cells.label[split.source] < 0).any()
            assert set(unlabelled) == {trial.setting == SAMPLE_OUT_UNGATED}


def test_as_many_are_left_out_as_wanted_the_largest_classes_first(cells):
    found = list(splits(cells, [CLASS_OUT, SAMPLE_OUT], n_draws=1, n_left_out=2, seed=0))
    n_cells = np.bincount(cells.label[cells.label >= 0])
    largest = cells.labels[np.argsort(-n_cells)[:2]]
    assert [s.trials[0].unit for s in found if s.trials[0].setting == CLASS_OUT] == largest.tolist()
    assert len({s.trials[0].unit for s in found if s.trials[0].setting == SAMPLE_OUT}) == 2


def test_resampled_shares_are_spread_over_the_simplex(cells):
    (split,) = splits(cells, [LABEL_SHIFT], n_draws=200, n_left_out=1, seed=0)
    shares = np.array([np.bincount(cells.label[t.rows], minlength=3) / len(t.rows) for t in split.trials])
    np.testing.assert_allclose(shares.mean(axis=0), 1 / 3, atol=0.06)
    np.testing.assert_allclose(shares.var(axis=0), 1 / 18, atol=0.02)  # of the flat Dirichlet


def test_of_more_samples_than_fit_some_are_drawn(monkeypatch):
    monkeypatch.setattr(trial_cells, "MAX_CELLS", 600)
    x, y, sample = study(ungated=0.2)
    found = gather(as_rows(x, y, sample), 200, seed=0)
    assert len(found.samples) == 3
    assert len(found.label) < 620


# Names and refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.available())
def test_every_named_method_can_be_made(name):
    made = registry.make(name, random_state=3)
    assert made.get_params()["random_state"] == 3
    for parameter, value in registry.METHODS[name].parameters.items():
        assert made.get_params()[parameter] == value
    assert registry.accepted(name).isdisjoint(registry.METHODS[name].parameters)


def test_settings_of_a_method_that_has_none_are_refused_with_those_that_have_one():
    assert registry.make("soft-fourier", n_features=20, bandwidth=2.0).features.n_features == 20
    with pytest.raises(ss.DataError, match=r"bbse has no bandwidth: .*soft-fourier.* has"):
        registry.make("bbse", bandwidth=2.0)
    with pytest.raises(ss.DataError, match=r"no method 'magic': choose one of .*soft-fourier"):
        registry.make("magic")


def test_two_of_one_class_and_names_stand_side_by_side():
    data = study(ungated=0, n_samples=1)
    table = ss.quantify.compare([HARD, SOFT, "hard-fourier"], *data, settings=[LABEL_SHIFT], n_draws=1)
    assert table["method"].values.tolist() == ["DFM", "DFM-2", "hard-fourier"]


X, Y, S = study(ungated=0, n_samples=1, n=60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": None}, "there are no labels to compare methods by"),
        ({"y": np.array([None] * len(X))}, "none of the 60 rows has a label"),
        ({"X": None}, "pass X"),
        ({"methods": []}, "no methods to compare"),
        ({"methods": "soft-fourier"}, "expected a mapping of names to quantifiers, or a list"),
        ({"methods": ["magic"]}, "there is no method 'magic'"),
        ({"methods": {"a number": 3}}, "the method a number, of type int, lacks fit or predict"),
        ({"settings": ["elsewhere"]}, "expected a list of some of label shift, class left out"),
        ({"settings": [SAMPLE_OUT]}, "1 sample\\(s\\) allow none of the settings sample left out"),
        ({"n_draws": 0}, "n_draws=0: expected a number from 1"),
        ({"X": np.where(np.arange(60)[:, None] == 5, np.nan, X)}, "NaN or infinite values"),
    ],
)
def test_what_cannot_be_compared_is_said(arguments, message):
    given = {"methods": {"even": Fixed(EVEN)}, "X": X, "y": Y, "sample": S, **arguments}
    with pytest.raises(ss.DataError, match=message):
        ss.quantify.compare(**given)


def test_a_fresh_copy_is_fitted_each_time():
    class Counts(Fixed):
        fits = 0

        def fit(self, X, y, sample=None):
            self.fits += 1
            assert self.fits == 1
            return self

    method = Counts(EVEN)
    table = ss.quantify.compare({"counts": method}, *study(ungated=0.1), random_state=0)
    assert method.fits == 0
    assert (table["flag"] == "").all()
