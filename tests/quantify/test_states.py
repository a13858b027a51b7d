"""States of sources and of samples can be kept, added and shared without the cells."""

import numpy as np
import pytest
from three_classes import draw

import scaleshift as ss
from scaleshift.quantify import source

X, Y = draw(3_000, [0.3, 0.3, 0.4], seed=0)
T, _ = draw(4_000, [0.7, 0.2, 0.1], seed=1)
HALVES = (slice(0, 1_400), slice(1_400, None))
MAPS = [ss.FourierFeatures(200), ss.LandmarkFeatures(landmarks=X[:60])]


def fitted(part, y=Y, sample=None, **settings):
    model = ss.DFM(**{"features": MAPS[0], "bandwidth": 2.0, "random_state": 0, **settings})
    return model.fit(X[part], y[part], sample)


@pytest.mark.parametrize("features", MAPS)
def test_a_merged_model_is_the_model_of_both_sources(features):
    whole = fitted(slice(None), features=features)
    merged = fitted(HALVES[0], features=features).merge(fitted(HALVES[1], features=features))
    np.testing.assert_allclose(merged.gram_, whole.gram_, rtol=1e-6)
    assert merged.class_counts_.tolist() == whole.class_counts_.tolist()
    a, b = merged.predict(T), whole.predict(T)
    np.testing.assert_allclose(a["proportion"], b["proportion"], atol=1e-6)
    np.testing.assert_allclose(a["proportion_low"], b["proportion_low"], atol=0.01)


def test_merging_has_no_order():
    first, second = (fitted(half) for half in HALVES)
    assert first.merge(second).predict(T).equals(second.merge(first).predict(T))


def test_a_map_learned_by_one_model_serves_the_other():
    first = ss.DFM("landmarks", random_state=0).fit(X[HALVES[0]], Y[HALVES[0]])
    second = ss.DFM(features=first.embedding_, random_state=1).fit(X[HALVES[1]], Y[HALVES[1]])
    assert first.merge(second).class_counts_.sum() == len(X)
    assert second.bandwidth_ == first.bandwidth_


def test_labels_of_either_model_are_known_to_the_merged_one():
    first = fitted(np.flatnonzero(Y != "c"))
    second = fitted(np.flatnonzero(Y != "a"))
    merged = first.merge(second)
    assert merged.labels_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(
        merged.predict(T)["proportion"], fitted(slice(None)).predict(T)["proportion"], atol=0.02
    )


def test_samples_of_both_models_are_source_samples_of_the_merged_one():
    first = fitted(HALVES[0], sample=np.repeat(["s1", "s2"], 700))
    second = fitted(HALVES[1], sample=np.repeat(["s3", "s4"], 800))
    merged = first.merge(second)
    assert merged.source_samples_ == ["s1", "s2", "s3", "s4"]
    assert merged.source_.part_counts.shape == (3, 4)
    assert merged.source_.part_counts.sum() == merged.source_.counts.sum() == 3_000
    with pytest.raises(ss.DataError, match=r"share the sample\(s\) s1, s2: a cell would count twice"):
        first.merge(first)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bandwidth": 3.0}, "different feature maps: fit the other one with features=model.embedding_"),
        ({"random_state": 1}, "different feature maps"),
        ({"features": "landmarks"}, "different feature maps"),
        ({"n_bootstrap": 0}, "one model has folds, the other not"),
    ],
)
def test_models_that_do_not_fit_together_are_not_merged(settings, message):
    with pytest.raises(ss.DataError, match=message):
        fitted(HALVES[0]).merge(fitted(HALVES[1], **settings))


def test_exact_kernels_cannot_be_merged():
    model = fitted(HALVES[0], features="gaussian")
    with pytest.raises(ss.DataError, match="exact kernel cannot be merged"):
        model.merge(model)


def test_labels_of_another_type_are_not_merged():
    with pytest.raises(ss.DataError, match="in one model and int64 in the other"):
        fitted(HALVES[0]).merge(fitted(HALVES[1], y=np.where(Y == "a", 1, 2)))


@pytest.mark.parametrize("features", ["fourier", "landmarks", "gaussian"])
@pytest.mark.parametrize("sample", [None, np.arange(1_400) % 7])
def test_saved_models_and_states_give_the_same_bits(tmp_path, features, sample):
    model = fitted(HALVES[0], features=features, sample=sample)
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    expected = model.predict(T)
    assert loaded.predict(T).equals(expected)
    model.embed(T).save(tmp_path / "states")
    assert loaded.predict(ss.load(tmp_path / "states")).equals(expected)


def test_merging_loaded_models_gives_the_bits_of_merging_the_models(tmp_path):
    first, second = (fitted(half) for half in HALVES)
    merged = first.merge(second)
    for name, model in (("first", first), ("second", second), ("merged", merged)):
        model.save(tmp_path / name)
    again = ss.load(tmp_path / "first").merge(ss.load(tmp_path / "second"))
    assert again.predict(T).equals(merged.predict(T))
    assert ss.load(tmp_path / "merged").predict(T).equals(merged.predict(T))


# Samples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bootstrap", [0, 200])
def test_states_are_predicted_as_their_cells_are(n_bootstrap):
    model = fitted(slice(None), n_bootstrap=n_bootstrap)
    names = np.repeat(["s10", "s2"], len(T) // 2)
    assert model.predict(model.embed(T, names)).equals(model.predict(T, names))


def test_cells_of_a_later_day_are_added():
    model = fitted(slice(None))
    monday = model.embed(T[:2_500], np.repeat(["s1", "s2"], [1_500, 1_000]))
    tuesday = model.embed(T[2_500:], np.repeat(["s2", "s3"], [500, 1_000]))
    both = monday + tuesday
    assert repr(both) == "SampleStates(3 samples, 4000 cells, 40 folds x 200 sums)"
    assert both.samples.tolist() == ["s1", "s2", "s3"]
    together = model.predict(T, np.repeat(["s1", "s2", "s3"], [1_500, 1_500, 1_000]))
    found = model.predict(both)
    np.testing.assert_allclose(found["proportion"], together["proportion"], atol=1e-7)
    assert found["n_cells"].values.tolist() == [1_500, 1_500, 1_000]


def test_states_of_no_samples_have_no_rows():
    model = fitted(slice(None))
    none = model.embed(T[:0], sample=np.array([], str))
    assert model.predict(none)["proportion"].shape == (0, 3)


def test_states_of_another_map_are_refused():
    model, other = fitted(slice(None)), fitted(slice(None), bandwidth=3.0)
    with pytest.raises(ss.DataError, match="different feature maps or numbers of folds"):
        model.embed(T) + other.embed(T)
    with pytest.raises(ss.DataError, match="embedded by another feature map"):
        model.predict(other.embed(T))


def test_a_sample_without_valid_cells_keeps_its_place():
    model = fitted(slice(None), invalid="drop")
    t = T.copy()
    t[:10] = np.nan
    result = model.predict(model.embed(t, np.repeat(["s1", "s2"], [10, len(T) - 10])))
    assert np.isnan(result["proportion"].sel(sample="s1")).all()
    assert result["n_invalid"].values.tolist() == [10, 0]
    assert result["flag"].values.tolist() == ["no cells; cells left out: 10", ""]


def test_a_block_of_more_groups_than_are_summed_at_a_time_has_the_same_sums(monkeypatch):
    """Rows in random order: many classes, folds and samples meet in each block."""
    names = np.random.default_rng(2).choice(["s1", "s2", "s3"], len(X))
    expected = fitted(slice(None), sample=names).source_
    monkeypatch.setattr(source, "GROUPS_AT_A_TIME", 50)
    found = fitted(slice(None), sample=names).source_
    for name in source.ARRAYS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-4)
