"""A model shows what it has learned, as text and as HTML, and nothing that it holds can break that."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from rich.console import Console
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import scaleshift as ss
from scaleshift import fitted

MARKUP = "<script>alert(1)</script>"
RNG = np.random.default_rng(0)
SIDE = np.repeat([-2.0, 2.0], 300)
X = pd.DataFrame(RNG.normal(SIDE[:, None], size=(600, 2)), columns=["CD3", f"CD4{MARKUP}"])
Y = np.where(SIDE < 0, f"B{MARKUP}", "T")
SAMPLE = np.tile(["S1", "S2"], 300)
ALONE = {"br", "hr", "img", "input", "link", "meta"}

FITS = {
    "DFM": lambda: ss.DFM(random_state=0).fit(X, Y, SAMPLE),
    "exact": lambda: ss.DFM("energy", n_bootstrap=0, random_state=0).fit(X, Y),
    "BBSE": lambda: ss.BBSE(random_state=0).fit(X, Y),
    "open set": lambda: ss.OpenSetQuantifier(random_state=0).fit(X, Y, SAMPLE),
    "Domino": lambda: ss.DominoSlicer(1, n_mixture_components=2, random_state=0).fit(
        None, X, Y, 0.5 + SIDE / 5
    ),
    "Spotlight": lambda: ss.SpotlightSlicer(0.1, 50, n_slices=1, random_state=0).fit(
        embeddings=X, losses=SIDE + RNG.random(600)
    ),
    "sparse AUC": lambda: ss.SparseAUC(k=1, random_state=0).fit(X, Y),
    "several labels": lambda: ss.SparseAUC(k=1, random_state=0).fit(X, np.char.add(Y.astype(str), SAMPLE)),
    "online": lambda: ss.auc.SPAM().fit(X, Y),
    "least squares": lambda: ss.PredictionError("ols", random_state=0).fit(X, SIDE + RNG.normal(size=600)),
    "logistic": lambda: ss.PredictionError("logistic", n_bootstrap=20, random_state=0).fit(X, Y),
    "estimator": lambda: ss.PredictionError(Ridge(), n_bootstrap=20, random_state=0).fit(X, SIDE),
}


@pytest.fixture(scope="module", params=FITS, ids=lambda name: name.replace(" ", "-"))
def model(request):
    return FITS[request.param]()


class Tags(HTMLParser):
    """Tags of a page, and whether each is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        self.open += [tag] * (tag not in ALONE)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tags_of(html):
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    return tags


def test_before_a_fit_a_model_is_shown_as_scikit_learn_does_it(model):
    fresh = clone(model)
    assert repr(fresh) == BaseEstimator.__repr__(fresh)
    assert fitted.facts(fresh) == {}
    assert "sk-top-container" in fresh._repr_html_()


def test_after_it_the_constructor_line_comes_first_and_what_was_learned_below(model):
    first, *rest = repr(model).splitlines()
    assert first == BaseEstimator.__repr__(model)
    assert 2 <= len(rest) <= 16
    assert all(line.startswith("  ") and len(line) <= fitted.WIDTH for line in rest)
    assert str(model) == repr(model)


def test_the_card_tells_the_same_facts_and_every_parameter(model):
    html = model._repr_html_()
    for name, words in fitted.facts(model).items():
        assert f">{name}</th>" in html
        assert words or not isinstance(words, str)
    for name in model.get_params(deep=False):
        assert f">{name}</th>" in html


def test_the_card_is_whole_loads_nothing_and_has_no_markup_of_its_names(model):
    tags = tags_of(model._repr_html_())
    assert tags.seen <= {"div", "b", "table", "tr", "th", "td", "details", "summary", "code"}
    assert {name for name, _ in tags.attributes} == {"style", "scope"}
    assert not re.search("url|http|@import", " ".join(value for _, value in tags.attributes))


def test_the_card_has_the_colours_of_the_notebook():
    styles = " ".join(value for _, value in tags_of(FITS["DFM"]()._repr_html_()).attributes)
    colours = re.findall(r"(?<![a-z-])(?:color|background): ([a-z]+)", styles)
    assert set(colours) <= {"inherit", "transparent"}


def test_names_with_markup_are_escaped_in_the_card_and_legible_in_the_text():
    model = FITS["DFM"]()
    assert "&lt;script&gt;" in model._repr_html_()
    assert MARKUP in repr(model)


def test_a_saved_model_is_shown_as_before(model, tmp_path):
    if isinstance(model, ss.PredictionError) and not isinstance(model.model, str):
        pytest.skip("what was learned of an estimator is not saved")
    model.save(tmp_path / "model")
    again = ss.load(tmp_path / "model")
    assert repr(again) == repr(model)
    assert again._repr_html_() == model._repr_html_()


def test_notebooks_get_both_and_text_alone_where_scikit_learn_is_told_so(model):
    both = model._repr_mimebundle_()
    assert both == {"text/plain": repr(model), "text/html": model._repr_html_()}
    with sklearn.config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize("left", [0, 1, 3])
def test_half_of_a_fit_shows_what_it_can_and_never_raises(model, left):
    half = clone(model)
    for name in sorted(name for name in vars(model) if name.endswith("_"))[:left]:
        setattr(half, name, getattr(model, name))
    assert repr(half).startswith(BaseEstimator.__repr__(half))
    assert half._repr_html_()


def test_nothing_that_stands_in_place_of_a_learned_number_can_break_it(model):
    for name in [name for name in vars(model) if name.endswith("_")]:
        for wrong in (None, "?", np.empty((0, 3)), object()):
            broken = clone(model)
            vars(broken).update({**vars(model), name: wrong})
            assert repr(broken).startswith(type(model).__name__)
            assert broken._repr_html_()


class Unshowable(Ridge):
    def __repr__(self, *_):
        raise RuntimeError("no words")


def test_an_estimator_inside_that_cannot_be_shown_does_not_hide_the_model():
    for model in (ss.BBSE(Unshowable()), ss.PredictionError(Unshowable(), n_bootstrap=2).fit(X, SIDE)):
        assert repr(model).startswith(type(model).__name__)
        assert "Unshowable()" in model._repr_html_()


def test_within_another_estimator_a_model_is_its_constructor_line():
    model = FITS["sparse AUC"]()
    line = BaseEstimator.__repr__(model)
    inside = repr(GridSearchCV(model, {"k": [1, 2]}))
    assert line in inside
    assert "learned from" not in inside
    assert "learned from" not in repr(make_pipeline(PCA(), model))
    outer = ss.PredictionError(model, "counting", n_bootstrap=2, refit="never", random_state=0).fit(X, Y)
    assert repr(outer).count("learned from") == outer._repr_html_().count("learned from") == 1
    assert "learned from" not in outer.predict({"there": X}).attrs["parameters"]


def test_long_constructor_lines_are_wrapped_as_scikit_learn_wraps_its_own():
    long = {"n_features": 10, "k": list(range(30)), "alpha": [0.1] * 12}
    model = ss.SparseAUC(k=long["k"], alpha=long["alpha"], solver="moments", random_state=0)
    assert max(map(len, repr(model).splitlines())) <= fitted.WIDTH
    assert max(map(len, repr(GridSearchCV(model, {"cv": [2]})).splitlines())) <= fitted.WIDTH


def test_many_labels_take_two_lines_and_the_first_rows_of_a_table():
    labels = np.repeat([f"population {i:03d}" for i in range(100)], 2)
    model = ss.DFM(random_state=0, bandwidth=1.0).fit(RNG.normal(size=(200, 2)), labels)
    assert len(repr(model).splitlines()) < 12
    assert "100: population 000 (2)" in repr(model)
    assert len(re.findall(r">population \d+</th>", model._repr_html_())) == fitted.MOST_ROWS
    assert "and 80 more" in model._repr_html_()


def test_text_holds_no_control_characters_of_names():
    model = ss.DFM(random_state=0, bandwidth=1.0).fit(X, np.where(SIDE < 0, "a\x1b[2J\nb", "c"))
    assert "\x1b" not in repr(model)
    assert "a [2J b (300)" in repr(model)


def test_the_card_holds_neither_control_characters_nor_all_of_an_endless_name():
    labels = np.where(SIDE < 0, "a\x1b[2J\u202e\nb", "c" * 100_000)
    html = ss.DFM(random_state=0, bandwidth=1.0).fit(X, labels)._repr_html_()
    assert html.isprintable()
    assert ">a [2J  b</th>" in html
    assert len(html) < 10_000


def test_rich_prints_the_text():
    console = Console(record=True, width=200)
    with console.capture() as captured:
        console.print(FITS["open set"](), highlight=False, markup=False)
    assert "estimator     " in captured.get()


def test_facts_are_those_of_the_fit_and_of_what_came_after():
    model = FITS["least squares"]()
    assert fitted.facts(model)["learned from"] == "600 rows of 2 features"
    assert "targets" not in fitted.facts(model)
    model.update({"site": X[:50]})
    assert fitted.facts(model)["targets"] == {"site": "50 rows"}
    ranking = FITS["sparse AUC"]()
    assert "prior" not in fitted.facts(ranking)
    assert fitted.facts(ranking.set_prior(0.25))["prior"].endswith("T: 0.25")


def test_labels_and_their_rows_are_told_as_they_were_counted():
    dropped = X.copy()
    dropped.iloc[0, 0] = np.nan
    model = ss.DFM(random_state=0, invalid="drop").fit(dropped, Y, SAMPLE)
    assert fitted.facts(model)["labels"] == {f"B{MARKUP}": "299", "T": "300"}
    assert fitted.facts(model)["learned from"] == "599 labelled rows of 2 samples, 1 row left out"


def test_classes_that_cannot_be_told_apart_are_named():
    twins = np.where(np.arange(600) % 2, "twin 1", "twin 2")
    model = ss.DFM(random_state=0, bandwidth=1.0).fit(X, twins)
    assert "twin 1 and twin 2" in fitted.facts(model)["not told apart"]


def test_embeddings_are_shown_in_a_line_without_their_numbers():
    embedding = FITS["DFM"]().embedding_
    assert re.fullmatch(r"<FourierEmbedding, 1,000 features, bandwidth \d\.\d+>", repr(embedding))
    assert repr(ss.DFM(embedding)) == f"DFM(features={embedding!r})"
    assert repr(FITS["exact"]().embedding_) == "<EnergyEmbedding>"
