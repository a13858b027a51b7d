"""What is kept of a ranking until rows are asked."""

import numpy as np

from scaleshift.auc.evidence import Evidence
from scaleshift.auc.fitting import Task, choose
from scaleshift.auc.moments import class_moments
from scaleshift.auc.ranking import auc_binormal, objective
from scaleshift.auc.selection import Options
from scaleshift.blocks.rows import as_rows


def test_no_covariances_are_kept_for_every_contrast():
    """Of 20 labels there are 190 pairs: their scores' moments are kept, and are those of the covariances."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 50)) + y[:, None] * (np.arange(50) < 3)
    evidence = Evidence(class_moments(as_rows(x, y), None), np.arange(50))
    sign = np.array([-1, 1], np.int8)
    chosen = choose(evidence, sign, Task(Options((1, 3), (0.1,)), "best", None, [], [], []))
    assert chosen.found.covariance.shape == (2, 50)
    found = evidence.contrast(sign)
    np.testing.assert_allclose(chosen.found.variance, found.variance, rtol=1e-12)
    gap, spread = chosen.scores.mean[1] - chosen.scores.mean[0], chosen.scores.variance.sum(axis=0)
    np.testing.assert_allclose((1 - gap) ** 2 + spread, objective(found, chosen.path), rtol=1e-10)
    assert (auc_binormal(found, chosen.path) > 0.7).all()
