"""Intervals against closed forms."""

import numpy as np
import pytest
from scipy.stats import binom

from rllib_minestudio.benchmark.results import mean_interval, mean_of_means_interval


@pytest.mark.parametrize(("successes", "count"), [(3, 10), (45, 100), (1, 7)])
def test_the_bootstrap_of_a_rate_is_a_binomial(successes, count):
    # The drawn mean is Binomial(count, successes / count) / count.
    low, high = mean_interval([1.0] * successes + [0.0] * (count - successes))
    exact = binom(count, successes / count)
    assert abs(low - exact.ppf(0.025) / count) <= 1 / count
    assert abs(high - exact.ppf(0.975) / count) <= 1 / count


def test_the_mean_of_many_numbers_is_normal():
    values = np.random.default_rng(1).normal(3.0, 2.0, 500)
    low, high = mean_interval(values)
    error = values.std() / np.sqrt(500)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_groups_count_alike_however_many_numbers_they_have():
    # Of two groups of equal numbers only the draw of groups is random: 0, 1/2 or 1.
    assert mean_of_means_interval([[0.0], [1.0] * 50]) == (0.0, 1.0)
    assert mean_of_means_interval([[0.25] * 3, [0.25] * 9]) == (0.25, 0.25)
    low, high = mean_of_means_interval([[0.0] * 5] * 60 + [[1.0] * 5] * 40)
    assert low == pytest.approx(0.4 - 1.96 * 0.049, abs=0.02)
    assert high == pytest.approx(0.4 + 1.96 * 0.049, abs=0.02)


def test_equal_numbers_have_equal_intervals():
    values = np.random.default_rng(2).random(30)
    assert mean_interval(values) == mean_interval(list(values))
