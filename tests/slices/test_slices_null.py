"""Errors that have nothing to do with the embeddings are not taken for slices."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from slices_null import LEVEL, LOSSES, describe_errors, describe_losses

from scaleshift import DominoSlicer, SpotlightSlicer
from scaleshift.blocks.block import Block
from scaleshift.slices.base import HOLDOUT
from scaleshift.slices.describing.judging import fisher, welch
from scaleshift.slices.survey import held_out

N = 40


def check(described):
    """At most 5 % of data sets have a discovery, and p-values are nowhere below the uniform ones."""
    false = sum(bool((found["q_value"] <= LEVEL).any()) for found in described)
    assert false <= stats.binom.ppf(0.99, len(described), LEVEL)
    p = np.concatenate([found["p_value"].values for found in described])
    p = p[np.isfinite(p)]
    assert len(p) > 4 * len(described)
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.001
    assert p.mean() > 0.4


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
def test_false_discoveries_are_few():
    check([describe_errors(seed) for seed in range(1_000, 1_000 + N)])


@pytest.mark.filterwarnings("ignore:the mixture did not converge")
@pytest.mark.parametrize("kind", ["exponential", "right or wrong"])
def test_losses_make_few_false_discoveries(kind):
    check([describe_losses(seed, kind) for seed in range(2_000, 2_000 + N // 2)])


def test_the_test_of_errors_never_rejects_too_often():
    # All ways to choose the slice's rows: exact, whatever the numbers.
    for n, errors, inside in [(20, 5, 7), (12, 11, 3), (30, 1, 29), (9, 4, 9)]:
        hits = np.arange(errors + 1)
        probability = stats.hypergeom.pmf(hits, n, errors, inside)
        p = np.array([fisher(*map(np.array, ([h], [inside], [errors - h], [n - inside])))[0] for h in hits])
        for level in p:
            assert probability[p <= level].sum() <= level + 1e-12


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_the_test_of_losses_rejects_about_as_often_as_it_says(kind):
    rng = np.random.default_rng(0)
    p = []
    for _ in range(4_000):
        loss = LOSSES[kind](rng, 500)
        sums = [
            np.array([number])
            for rows in (loss[:20], loss[20:])
            for number in (rows.sum(), rows @ rows, float(len(rows)))
        ]
        p.append(welch(*sums)[0])
    assert (np.array(p) <= 0.05).mean() <= 0.05 + (0.03 if kind == "skewed to the left" else 0.01)


def test_slices_of_equal_losses_have_no_more_certainty_than_choices():
    def p_value(*sums):
        return welch(*(np.array([number]) for number in sums))[0]

    assert p_value(2.0, 2.0, 2.0, 0.0, 0.0, 8.0) == pytest.approx(1 / 45)  # both rows lost, of ten
    assert np.isnan(p_value(1.0, 1.0, 1.0, 0.0, 0.0, 9.0))


def failing(seed=0, n=3_000):
    """A classifier that fails in a corner, and which rows a fit of this seed holds out."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) + 5 * (rng.random(n) < 0.2)[:, None]
    y = rng.integers(0, 3, n)
    wrong = rng.random(n) < np.where(x[:, 0] > 2.5, 0.5, 0.03)
    block = Block(x, {}, 0, np.ones(n, bool), np.zeros(3))
    return x, y, np.where(wrong, (y + 1) % 3, y), held_out(block, seed, HOLDOUT)


@pytest.mark.parametrize(
    "slicer",
    [
        DominoSlicer(2, n_mixture_components=6, random_state=0),
        SpotlightSlicer(0.1, 50, n_slices=2, random_state=0),
    ],
    ids=["domino", "spotlight"],
)
def test_what_becomes_of_rows_held_out_changes_no_slice(slicer):
    x, y, predicted, held = failing(n=12_000)  # more than a sample has
    other = np.where(held, (y + 1) % 3, y), np.where(held, y, predicted)
    expected = clone(slicer).fit(None, x, y, predicted)
    found = clone(slicer).fit(None, x, *other)
    assert found.describe()["error_rate"].max() > 0.9  # all of these are wrong now
    np.testing.assert_allclose(found.means_, expected.means_, rtol=1e-9)
    np.testing.assert_array_equal(
        found.predict(None, x, y, predicted), expected.predict(None, x, y, predicted)
    )
