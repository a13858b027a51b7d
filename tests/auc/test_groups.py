"""Folds of whole groups: what is held out are donors, samples or plates that were not seen."""

import dask.array as da
import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import scaleshift as ss
from scaleshift.blocks.buckets import group_buckets
from scaleshift.blocks.rows import as_rows, with_columns
from scaleshift.errors import DataError

N, D = 3_000, 12


def of_donors(n_donors, seed=0):
    """Column 0 tells the classes apart everywhere, columns 1 to 8 each in one donor alone."""
    rng = np.random.default_rng(seed)
    donor = rng.integers(0, n_donors, N)
    y = rng.random(N) < 0.3
    x = rng.normal(size=(N, D))
    x[y, 0] += 0.8
    for one in range(n_donors):
        x[y & (donor == one), 1 + one] += 4
    return x, y, donor


def test_rows_of_a_group_lie_in_one_bucket_and_all_buckets_are_used():
    x, y, donor = of_donors(8)
    rows = with_columns(as_rows(x, y), group=as_rows(x, y, donor).columns["sample"])
    found = group_buckets(rows, 5, seed=0)
    assert found.n == 5
    assert set(found.bucket.tolist()) == set(range(5))


def test_what_holds_within_a_donor_alone_ranks_no_other_donor():
    x, y, donor = of_donors(8)
    by_row = ss.SparseAUC(random_state=0).fit(x, y)
    by_donor = ss.SparseAUC(random_state=0).fit(x, y, groups=donor)
    assert by_row.auc_ > 0.8
    assert by_donor.auc_ < by_row.auc_ - 0.1
    elsewhere, truth, _ = of_donors(1, seed=1)
    elsewhere[:, 1] -= 4 * truth  # a donor with a habit of none of the others
    seen = ss.roc_auc(truth, by_donor.decision_function(elsewhere))["auc"].item()
    assert abs(seen - by_donor.auc_) < 0.05


@pytest.mark.parametrize("chunk", [N, 700])
def test_groups_are_those_of_any_chunking(chunk):
    x, y, donor = of_donors(4)
    whole = ss.SparseAUC(k=3, random_state=0).fit(x, y, groups=donor)
    lazy = [da.from_array(array, chunks=(chunk, *array.shape[1:])) for array in (x, y, donor)]
    found = ss.SparseAUC(k=3, random_state=0).fit(lazy[0], lazy[1], groups=lazy[2])
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-9)
    assert found.auc_ == pytest.approx(whole.auc_, abs=1e-6)


def test_samples_of_a_dataset_are_groups():
    x, y, donor = of_donors(4)
    cells = ss.as_cells(x.astype("f4"), sample=donor, label=np.where(y, "b", "a"))
    given = ss.SparseAUC(k=2, random_state=0).fit(cells, groups="sample")
    arrays = ss.SparseAUC(k=2, random_state=0).fit(x.astype("f4"), np.where(y, "b", "a"), groups=donor)
    np.testing.assert_allclose(given.coef_, arrays.coef_)


def test_splits_of_scikit_learn_are_folds():
    x, y, donor = of_donors(4)
    splits = list(GroupKFold(4).split(x, y, donor))
    given = ss.SparseAUC(k=3, alpha=1.0, cv=splits, random_state=0).fit(x, y)
    grouped = ss.SparseAUC(k=3, alpha=1.0, random_state=0).fit(x, y, groups=donor)
    assert given.n_folds_ == grouped.n_folds_ == 4
    assert given.auc_ == pytest.approx(grouped.auc_, abs=1e-9)


def test_one_group_and_odd_splits_are_refused():
    x, y, _ = of_donors(1)
    with pytest.raises(DataError, match="1 group"):
        ss.SparseAUC(k=2).fit(x, y, groups=np.zeros(N))
    rows = np.arange(N)
    halves = [(rows[: N // 2], rows[N // 2 :])] * 2
    with pytest.raises(DataError, match="split 1 of cv leaves rows out, or tests some again"):
        ss.SparseAUC(k=2, cv=halves).fit(x, y)
