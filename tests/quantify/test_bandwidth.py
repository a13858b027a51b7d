"""The automatic bandwidth is chosen by classes that can be told apart, not by the noise of the others."""

import numpy as np
import pytest
from synthetic import make

import scaleshift as ss
from scaleshift.quantify.bandwidth import allocation


def chosen(x, y):
    return ss.DFM(n_bootstrap=0, random_state=0).fit(x, y).bandwidth_


@pytest.mark.parametrize("seed", range(3))
def test_one_population_under_two_names_moves_no_bandwidth(seed):
    problem = make(seed, n=4_000)
    largest = np.bincount(problem.y).argmax()
    second_name = (problem.y == largest) & (np.random.default_rng(99).random(4_000) < 0.5)
    twice = np.where(second_name, 7, problem.y)
    assert chosen(problem.x, twice) == pytest.approx(chosen(problem.x, problem.y), rel=0.03)


def test_a_rare_class_moves_the_bandwidth_little():
    problem = make(0, n=4_000)
    rare = np.flatnonzero(problem.y == np.bincount(problem.y).argmin())
    kept = np.setdiff1d(np.arange(4_000), rare[20:])
    ratio = chosen(problem.x[kept], problem.y[kept]) / chosen(problem.x, problem.y)
    assert 0.65 < ratio < 1.5


def test_a_source_of_one_population_under_two_names_has_a_bandwidth():
    x = np.random.default_rng(0).normal(size=(600, 3))
    assert 0.3 < chosen(x, np.arange(600) % 2) < 3


def test_rare_classes_have_twenty_rows_in_the_subsample_where_there_is_room():
    assert allocation(np.array([10**6, 30, 5])).tolist() == [2_000, 20, 5]
    assert allocation(np.full(100, 10**4)).sum() == 2_000
    assert allocation(np.append(np.full(399, 10**4), 100)).min() == 5
