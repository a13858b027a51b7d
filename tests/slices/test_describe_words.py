"""Rules on metadata and phrases find what was planted, and nothing where nothing was."""

import re

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from described import BallSlicer, corner, domino

from scaleshift.errors import DataError
from scaleshift.slices.describing import words
from scaleshift.slices.describing.rules import Question, _told


@pytest.fixture(scope="module")
def fitted():
    data, there = corner(n=6_000)
    return domino(n_slices=1).fit(data), data, there


def metadata_of(there, seed=0):
    """Rows of the slice come from site B and the old; so do few others."""
    rng = np.random.default_rng(seed)
    n = len(there)
    old = there | (rng.random(n) < 0.2)
    return pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "site": np.where(there, "B", rng.choice(["A", "B", "C"], n)),
            "age": np.where(old, rng.uniform(61, 90, n), rng.uniform(20, 60, n)),
        }
    )


def test_a_planted_rule_is_found(fitted):
    slicer, data, there = fitted
    metadata = metadata_of(there)
    found = slicer.describe(data, metadata=metadata)
    rule = found["rule"].values[0]
    parts = dict(zip(("age", "site"), sorted(rule.split(" and ")), strict=True))
    assert parts["site"] == "site == 'B'"
    limit = float(parts["age"].removeprefix("age > "))
    assert 59 < limit < 64
    chosen = ((metadata["site"] == "B") & (metadata["age"] > limit)).to_numpy()
    inside = slicer.predict(None, data["embedding"])[:, 0] == 1
    assert float(found["rule_coverage"][0]) == pytest.approx(chosen[inside].mean(), abs=0.05)
    assert float(found["rule_precision"][0]) == pytest.approx(inside[chosen].mean(), abs=0.1)
    said = found["words"].values[0].split("; ")[-1]
    assert re.fullmatch(rf"\d+ % of it where {re.escape(rule)}, and \d+ % of such rows are in it", said)


def test_a_rule_asks_no_question_that_finds_little_more(fitted):
    slicer, data, there = fitted
    rng = np.random.default_rng(3)
    site = np.where(there, "C", rng.choice(["A", "B", "C"], len(there), p=[0.49, 0.49, 0.02]))
    metadata = pd.DataFrame({"site": site, "age": rng.normal(60, 10, len(there))})
    assert slicer.describe(data, metadata=metadata)["rule"].values[0] == "site == 'C'"


def test_rules_do_not_depend_on_chunks(fitted):
    slicer, data, there = fitted
    lazy = {name: da.from_array(v, chunks=(501, *v.shape[1:])) for name, v in data.items()}
    one, other = (slicer.describe(d, metadata=metadata_of(there)) for d in (data, lazy))
    for name in ("rule", "rule_precision", "rule_coverage"):
        np.testing.assert_array_equal(one[name], other[name])


def test_noise_makes_no_rule(fitted):
    slicer, data, there = fitted
    rules = []
    for seed in range(10):
        metadata = metadata_of(there, seed)
        shuffled = metadata.sample(frac=1, random_state=seed).reset_index(drop=True)
        rules += slicer.describe(data, metadata=shuffled)["rule"].values.tolist()
    assert rules.count("") >= 9


def test_metadata_of_any_kind(fitted):
    slicer, data, there = fitted
    n = len(there)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.where(there, 400, np.arange(n) % 300), "D")
    columns = {
        "batch == True": pd.Series(there, dtype="boolean"),
        "site == 'x'": pd.Categorical(np.where(there, "x", "y")),
        "dose is missing": np.where(there, np.nan, 1.0 + np.arange(n) % 5),
        "drug is missing": np.where(there, None, "aspirin"),
        "day > 2020-12-15": day,
    }
    for expected, values in columns.items():
        metadata = pd.DataFrame({expected.split()[0]: values, "empty": np.full(n, np.nan)})
        rule = slicer.describe(data, metadata=metadata)["rule"].values[0]
        same = {"site == 'x'": "site != 'y'", "batch == True": "batch != False"}
        alternatives = {"drug is missing": "drug != 'aspirin'", **same}
        assert rule.startswith((expected, alternatives.get(expected, expected))), rule


def test_metadata_that_says_nothing(fitted):
    slicer, data, _ = fitted
    for metadata in (pd.DataFrame(index=range(6_000)), pd.DataFrame({"a": np.full(6_000, np.nan)})):
        found = slicer.describe(data, metadata=metadata)
        assert found["rule"].values.tolist() == [""]
        assert np.isnan(found["rule_precision"]).all()


def test_no_rule_for_a_slice_without_members():
    data, there = corner()
    found = BallSlicer([np.full(4, 99.0)], [1.0]).fit(data).describe(data, metadata=metadata_of(there))
    assert found["rule"].values.tolist() == [""]


def test_rules_are_judged_on_held_out_rows_of_the_fit(fitted):
    slicer, data, there = fitted
    metadata = metadata_of(there)
    seen = slicer.preparation_.seed, slicer.preparation_.holdout
    from scaleshift.blocks import noise

    out = noise.keys(seen[0], "holdout", 0, 6_000) < np.uint64(seen[1] * 2.0**64)
    # Metadata that tell the slice among rows of the fit only cannot make a rule.
    metadata = pd.DataFrame({"leak": np.where(out, 0.0, there.astype(float))})
    assert slicer.describe(data, metadata=metadata)["rule"].values.tolist() == [""]


@pytest.mark.parametrize(
    ("question", "low", "high", "text"),
    [
        (Question("age", np.zeros(1)), 61.0, np.inf, "age > 61"),
        (Question("age", np.zeros(1)), -np.inf, 61.26, "age <= 61.26"),
        (Question("age", np.zeros(1)), 20.0, 61.0, "20 < age <= 61"),
        (Question("site", np.zeros(1), "'B'"), 0.5, np.inf, "site == 'B'"),
        (Question("site", np.zeros(1), "'B'"), -np.inf, 0.5, "site != 'B'"),
        (Question("site", np.zeros(1), "missing"), -np.inf, 0.5, "site is known"),
    ],
)
def test_a_question_in_words(question, low, high, text):
    assert question.text(low, high) == text


def test_that_a_category_has_one_value_says_that_it_has_no_other():
    site = [Question("site", np.zeros(1), f"'{level}'") for level in "ABC"]
    inf = np.inf
    assert _told(site, {0: (-inf, 0.5), 1: (0.5, inf)}) == "site == 'B'"
    assert _told(site, {0: (-inf, 0.5), 2: (-inf, 0.5)}) == "site != 'A' and site != 'C'"
    both = [*site, Question("age", np.zeros(1))]
    assert _told(both, {0: (-inf, 0.5), 3: (61.0, inf)}) == "site != 'A' and age > 61"


def test_a_weak_rule_is_given_and_not_told(fitted):
    slicer, data, there = fitted
    site = np.where(there | (np.random.default_rng(0).random(6_000) < 0.5), "A", "B")
    found = slicer.describe(data, metadata=pd.DataFrame({"site": site}))
    assert found["rule"].values[0] == "site != 'B'" or found["rule"].values[0] == "site == 'A'"
    assert float(found["rule_coverage"][0]) > 0.9
    assert float(found["rule_precision"][0]) < 0.3
    assert "; where" not in found["words"].values[0]


def test_phrases_are_ranked_by_where_the_slice_lies(fitted):
    slicer, data, there = fitted
    direction = data["embedding"][there].mean(axis=0) - data["embedding"].mean(axis=0)
    vectors = np.stack(
        [-direction, [0.0, 0.0, 1.0, -1.0], 3 * direction, direction + np.array([0.0, 0.0, 5.0, 0.0])]
    )
    names = ["opposite", "elsewhere", "there", "near"]
    for found in (
        slicer.describe(phrases=names, phrase_embeddings=vectors),
        slicer.describe(data, phrases=names, phrase_embeddings=vectors, features=data["embedding"][:, :1]),
    ):
        assert found["phrase"].values[0].tolist() == ["there", "near", "elsewhere", "opposite"]
        scores = found["phrase_score"].values[0]
        assert scores[0] == pytest.approx(1.0, abs=0.01)
        assert scores[3] == pytest.approx(-1.0, abs=0.01)
        assert "like there" in found["words"].values[0]


def test_phrases_of_another_space_are_refused(fitted):
    slicer, _, _ = fitted
    with pytest.raises(DataError, match=r"shape \(1, 3\), expected \(1, 4\)"):
        slicer.describe(phrases=["a"], phrase_embeddings=np.zeros((1, 3)))
    with pytest.raises(DataError, match="belong together"):
        slicer.describe(phrases=["a"])
    with pytest.raises(DataError, match="is one phrase"):
        slicer.describe(phrases="cat", phrase_embeddings=np.zeros((3, 4)))
    with pytest.raises(DataError, match="NaN"):
        slicer.describe(phrases=["a"], phrase_embeddings=np.full((1, 4), np.nan))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.0996, "10 %"),
        (0.0995, "10 %"),
        (0.0994, "9.9 %"),
        (0.03, "3.0 %"),
        (1.2e-7, "0.000012 %"),
    ],
)
def test_percentages_have_two_digits_that_say_something(share, text):
    assert words.percent(share) == text


def test_rows_of_weight_zero_make_no_rule(fitted):
    slicer, _, _ = fitted
    data, there = corner(n=4_000, seed=3)
    counts = np.random.default_rng(0).random(4_000) < 0.5
    metadata = pd.DataFrame({"leak": np.where(counts, 0.0, there.astype(float))})
    found = slicer.describe(data, metadata=metadata, sample_weight=counts)
    assert found["rule"].values.tolist() == [""]
    assert slicer.describe(data, metadata=metadata)["rule"].values[0] == "leak > 0.5"
