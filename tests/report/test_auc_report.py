"""Rankings as tables, as text and as a picture: few features and many, with and without held-out rows."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import scaleshift as ss
from scaleshift import report
from scaleshift.errors import DataError
from scaleshift.report.auc_words import in_words, number

RNG = np.random.default_rng(0)
Y = RNG.random(2_000) < 0.1
X = RNG.normal(size=(2_000, 8))
X[Y, :2] += 1.5
X[Y, 2] -= 1.0
NAMES = ["CD3", "=cmd|' /C calc'!A0", "[red]$CD45$[/red]", "\x1b[31mCD4", *"abcd"]


def told(model):
    return model.describe(), model.path_


def shown(features, path, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.auc_text(features, path, width=width))
    console.file.close()
    return console.export_text()


@pytest.fixture(scope="module")
def three():
    """Three features of eight that differ, and names that would do harm."""
    table = pd.DataFrame(X, columns=NAMES)
    return told(ss.SparseAUC(k=3, random_state=0).fit(table, np.where(Y, "NK", "B")))


@pytest.fixture(scope="module")
def named():
    return told(ss.SparseAUC(k=3, pos_label="NK", random_state=0).fit(X, np.where(Y, "NK", "B")))


@pytest.fixture(scope="module")
def several():
    y = RNG.integers(0, 3, 2_000)
    x = RNG.normal(size=(2_000, 5))
    x[np.arange(2_000), y] += 2
    return told(ss.SparseAUC(random_state=0).fit(x, np.array(["B", "NK", "T"])[y]))


# In rows -----------------------------------------------------------------------------------------------


def test_rows_have_every_feature_the_chosen_ones_first(three):
    features, _ = three
    table = report.auc_table(features)
    assert sorted(table["feature"]) == sorted(NAMES)
    assert table["rank"].tolist() == list(range(1, 9))
    assert table["selected"].tolist() == 3 * [True] + 5 * [False]
    assert table["coef_scaled"][:3].abs().is_monotonic_decreasing
    assert table["stability"][3:].is_monotonic_decreasing
    by_name = table.set_index("feature")
    for name in ("coef", "auc_alone", "mean_positive"):
        assert by_name.loc[NAMES, name].tolist() == features[name].values.tolist()


def test_the_path_names_what_each_size_takes(three):
    _, path = three
    table = report.auc_path_table(path)
    assert table["k"].tolist() == [1, 2, 3]
    assert [len(text.split("; ")) for text in table["features"]] == [1, 2, 3]
    assert table["selected"].tolist() == [False, False, True]
    assert table["auc"].tolist() == path["auc"].values.tolist()


def test_a_csv_runs_nothing_in_a_spreadsheet(three, tmp_path):
    report.auc_table(three[0], tmp_path / "features.csv")
    report.auc_path_table(three[1], tmp_path / "path.csv")
    for name in ("features.csv", "path.csv"):
        read = pd.read_csv(tmp_path / name).astype(str)
        assert not read.map(lambda cell: cell.startswith("=")).to_numpy().any()
    assert "'=cmd|' /C calc'!A0" in pd.read_csv(tmp_path / "features.csv")["feature"].tolist()
    with pytest.raises(DataError, match=r"only \.csv is written"):
        report.auc_table(three[0], tmp_path / "features.parquet")


def test_several_contrasts_have_their_rows_one_after_the_other(several):
    features, path = several
    table = report.auc_table(features)
    assert table["contrast"].tolist() == 5 * ["B"] + 5 * ["NK"] + 5 * ["T"]
    assert set(report.auc_path_table(path)["contrast"]) == {"B", "NK", "T"}
    one = report.auc_table(features.sel(contrast="NK").drop_vars("contrast"))
    assert one.equals(table[table["contrast"] == "NK"].drop(columns="contrast").reset_index(drop=True))


# For the terminal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_is_cut_whatever_the_width(named, width):
    features, path = named
    text = shown(features, path, width)
    for name in features["coef_scaled"].values[features["selected"].values]:
        assert f"{name:+.3f}" in text
    flat = " ".join(text.split())
    assert f"held-out AUC {number(float(features['auc']))}" in flat
    assert f"{Y.sum()} positives, {(~Y).sum()} negatives" in flat
    for value in path["auc"].values:
        assert number(value) in text


def test_directions_are_those_of_the_means(named):
    lines = {
        line.split()[1]: line for line in shown(*named).splitlines() if line.strip()[:1] in ("1", "2", "3")
    }
    assert "higher" in lines["0"]
    assert "higher" in lines["1"]
    assert "lower" in lines["2"]
    assert "-0." in lines["2"]


def test_names_are_shown_as_they_are(three):
    features, path = three
    swapped = features.assign(selected=("feature", [False, True, True, True, *4 * [False]]))
    text = str(report.auc_text(swapped, path, width=100))
    assert "[red]$CD45$[/red]" in text
    assert "\x1b" not in text
    assert "\N{REPLACEMENT CHARACTER}[31mCD4" in text
    assert text.splitlines() == [line.rstrip() for line in shown(swapped, path).splitlines()]


def test_a_result_opened_from_a_store_is_shown_too(named):
    lazy = [dataset.chunk() for dataset in named]
    assert str(report.auc_text(*lazy, width=90)) == str(report.auc_text(*named, width=90))
    assert report.auc_table(lazy[0]).equals(report.auc_table(named[0]))
    assert len(report.auc_plot(*lazy).axes) == len(report.auc_plot(*named).axes)


def test_several_contrasts_are_told_one_below_the_other(several):
    text = shown(*several)
    heads = [line.split(":")[0] for line in text.splitlines() if ": held-out AUC 0." in line]
    assert [head for head in heads if not head.startswith("-")] == ["B", "NK", "T"]


def test_datasets_of_two_models_are_refused(named, several):
    with pytest.raises(DataError, match="other contrasts"):
        report.auc_text(named[0], several[1])
    with pytest.raises(DataError, match="pass the describe"):
        report.auc_text(xr.Dataset(), named[1])
    with pytest.raises(DataError, match="pass the path_"):
        report.auc_plot(named[0], named[0])
    with pytest.raises(DataError, match="expected"):
        report.auc_path_table(named[0])


def test_of_many_features_the_first_are_listed():
    y = RNG.random(600) < 0.3
    features, path = told(
        ss.SparseAUC(k=60, cv=2, n_halves=0).fit(RNG.normal(size=(600, 80)) + y[:, None], y)
    )
    text = shown(features, path)
    assert "and 30 more" in text
    assert "60*" in text


# In words ----------------------------------------------------------------------------------------------


def words(features, path, **changed):
    for name, value in changed.items():
        features = features.assign(
            {name: (features[name].dims, np.broadcast_to(value, features[name].shape))}
        )
    return " | ".join(in_words(features, path))


def test_a_clear_ranking_has_no_doubts_but_what_one_feature_does(named):
    text = words(*named)
    assert text.startswith("one feature, ")
    assert "few" not in text
    assert "chance" not in text
    assert "another sample" not in text
    assert "left out" not in text


def test_doubts_are_said(named):
    stable = np.array([1.0, 0.4, 0.9, 0.35, 0, 0, 0, 0.1])
    text = words(*named, stability=stable)
    assert "1: in fewer than half of the rankings learned from halves of the data" in text
    assert "left out, and nearly as stable as one that was chosen: 3 (0.35)" in text
    assert "within two standard errors of 0.5" in words(*named, auc=0.52, auc_se=0.02)
    assert "12 positives are few" in words(*named, weight_positive=12.0)
    assert "the AUC may be off by 0.002" in words(*named, auc_bound=0.002)
    assert "0: weighted against" in words(*named, mean_positive=np.array([-9.0, 9, -9, *5 * [0]]))
    unlearned = words(*named, auc=np.nan, auc_se=np.nan)
    assert unlearned.startswith("without cross-validation nothing is held out")
    assert "nothing is ranked" in words(*named, selected=False)


def test_fewer_features_that_do_as_well_are_named(named):
    features, path = named
    flat = path.assign(auc=("k", [0.6, 0.899, 0.9]), auc_se=("k", [0.01, 0.01, 0.01]))
    assert "2 features would do within a standard error: held-out AUC 0.899" in words(features, flat)
    steep = path.assign(auc=("k", [0.6, 0.7, 0.9]), auc_se=("k", [0.01, 0.01, 0.01]))
    assert "would do" not in words(features, steep)


# The picture -------------------------------------------------------------------------------------------


def names_of(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_the_picture_marks_the_chosen_size_and_names_the_chosen_features(named, tmp_path):
    figure = report.auc_plot(*named, tmp_path / "auc.png")
    left, right = figure.axes[:2]
    assert left.get_xlabel() == "number of features (dashed: 3, chosen)"
    line = left.get_lines()[0]
    assert line.get_ydata().tolist() == named[1]["auc"].values.tolist()
    assert sorted(names_of(right)) == ["0", "1", "2"]
    assert right.get_title(loc="left").startswith("3 features, held-out AUC 0.9")
    assert (tmp_path / "auc.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match=r"only \.png"):
        report.auc_plot(*named, tmp_path / "auc.pdf")


def test_bars_point_to_where_their_weights_do(named):
    features = named[0]
    right = report.auc_plot(*named).axes[1]
    weights = dict(zip(map(str, features["feature"].values), features["coef_scaled"].values, strict=True))
    drawn = [bar.get_width() for bar in right.patches]
    assert drawn == [weights[name] for name in names_of(right)]
    colours = {np.sign(bar.get_width()): bar.get_facecolor() for bar in right.patches}
    assert colours[1] != colours[-1]


def test_markup_and_long_names_are_drawn_as_they_are(three, tmp_path):
    features, path = three
    long = features.assign_coords(feature=["$x" * 40, *NAMES[1:]])
    right = report.auc_plot(long, path.assign_coords(feature=long["feature"]), tmp_path / "a.png").axes[1]
    assert all(len(name) <= 32 for name in names_of(right))
    assert "[red]$CD45$[/red]" in names_of(right)


@pytest.mark.parametrize("cv", [None, 3])
def test_one_feature_is_a_picture_too(cv, tmp_path):
    model = ss.SparseAUC(k=1, cv=cv, random_state=0).fit(X[:, :1], Y)
    figure = report.auc_plot(*told(model), tmp_path / "a.png")
    assert figure.axes[1].get_title(loc="left").startswith("1 feature")
    assert ("held-out" in figure.axes[0].get_ylabel()) == (cv is not None)


def test_twenty_thousand_features_are_a_small_picture_and_a_long_table(tmp_path):
    d, chosen = 20_000, 40
    coef = np.zeros(d)
    coef[:chosen] = np.linspace(1, 0.1, chosen)
    by_feature = {name: ("feature", coef.copy()) for name in ("coef", "coef_scaled", "mean_positive")}
    by_feature |= {"mean_negative": ("feature", np.zeros(d)), "stability": ("feature", np.full(d, 0.5))}
    by_feature |= {"auc_alone": ("feature", np.full(d, np.nan)), "selected": ("feature", coef > 0)}
    scalars = {
        "auc": 0.9,
        "auc_se": 0.01,
        "auc_binormal": 0.9,
        "weight_positive": 9.5,
        "weight_negative": 1e6,
    }
    features = xr.Dataset(by_feature).assign(scalars).assign_coords(feature=[f"gene {i}" for i in range(d)])
    ks = {name: ("k", [0.8, 0.9]) for name in ("auc", "auc_se", "auc_binormal", "objective")}
    path = xr.Dataset({**ks, "selected": ("k", [False, True]), "coef": (("k", "feature"), [coef, coef])})
    path = path.assign_coords(k=[1, chosen], feature=features["feature"])
    figure = report.auc_plot(features, path, tmp_path / "a.png")
    assert figure.get_size_inches()[1] < 7
    assert len(figure.axes[1].patches) == 20
    assert "(the first 20)" in figure.axes[1].get_title(loc="left")
    assert len(report.auc_table(features)) == d
    text = shown(features, path)
    assert "9.5 positives, 1000000 negatives" in text
    assert "and 10 more" in text


def test_several_contrasts_have_a_row_of_panels_each(several):
    figure = report.auc_plot(*several)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[::2] == [f"{name}: AUC by number of features" for name in ("B", "NK", "T")]
    many = [
        xr.concat([one] * 5, "contrast").assign_coords(contrast=list("abcdefghijklmno")) for one in several
    ]
    crowded = report.auc_plot(*many)
    assert len(crowded.axes) == 24
    assert crowded.get_suptitle() == "the first 12 of 15 contrasts"


def test_nothing_to_rank_is_a_picture_and_a_sentence(named, tmp_path):
    features, path = named
    nothing = features.assign(selected=features["selected"] & False)
    report.auc_plot(nothing, path, tmp_path / "a.png")
    assert "no feature differs" in shown(nothing, path)
