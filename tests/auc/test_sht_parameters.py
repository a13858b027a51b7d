"""What the solver of the source obeys, and what it refuses."""

import numpy as np
import pytest

import scaleshift as ss
from scaleshift.auc.descending import _best
from scaleshift.errors import DataError

RNG = np.random.default_rng(0)
Y = RNG.random(200) < 0.5
X = RNG.normal(size=(200, 5)) + Y[:, None] * (np.arange(5) < 2)


@pytest.mark.parametrize("parameter", [{"positive": True}, {"debias": True}, {"alpha": [0.1, 1.0]}])
def test_what_would_be_ignored_is_refused(parameter):
    with pytest.raises(DataError, match="solver='sht' knows no"):
        ss.SparseAUC(k=2, solver="sht", cv=None, **parameter).fit(X, Y)


def test_an_order_of_blocks_is_for_descents_alone():
    """Cross-validation of other solvers goes on."""
    model = ss.SparseAUC(k=2, order=[0], block_size=10, n_halves=0, random_state=0).fit(X, Y)
    assert model.auc_ > 0.7


def test_one_standard_error_takes_fewer_features():
    auc = np.array([[0.7, 0.80, 0.85], [0.6, 0.83, 0.79], [0.7, 0.79, 0.82], [np.nan] * 3])
    assert _best(auc, "best") == 2
    assert _best(auc, "one_se") == 1
    assert _best(auc[:1], "one_se") == 2
    assert _best(auc[3:], "one_se") == 2
