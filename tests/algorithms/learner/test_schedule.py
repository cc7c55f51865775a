"""The loss coefficients as functions of the iteration."""

from __future__ import annotations

import math

import pytest
from ray.rllib.utils.schedules.piecewise_schedule import PiecewiseSchedule

from rllib_minestudio.algorithms.learner.objective import (
    KL_FACTOR_BOUND,
    adapted,
    annealed,
    loss_coefficients,
)
from rllib_minestudio.algorithms.options import PPOOptions

OPTIONS = PPOOptions(kl_coeff=0.2, kl_decay=0.5, entropy_coeff=0.01, vf_warmup_iterations=2)


@pytest.mark.parametrize("iteration", [0, 1])
def test_warmup_trains_values_only_and_publishes_nothing(iteration):
    coefficients = loss_coefficients(iteration, OPTIONS)
    assert coefficients == (0.0, 1.0, 0.0, False)


def test_kl_decays_from_the_first_iteration_on():
    coefficients = loss_coefficients(3, OPTIONS)
    assert coefficients.policy == 1.0
    assert coefficients.publish
    assert coefficients.entropy == 0.01
    assert coefficients.kl == pytest.approx(0.2 * 0.5**3)


def test_the_entropy_bonus_decays_from_the_first_iteration_on():
    options = PPOOptions(entropy_coeff=0.01, entropy_decay=0.5)
    assert [loss_coefficients(i, options).entropy for i in (0, 1, 3)] == [0.01, 0.005, 0.00125]


def test_the_rate_falls_to_zero_as_in_minestudio():
    rates = [annealed(0.4, iteration, 4) for iteration in range(6)]
    assert rates == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0, 0.0])


def test_schedules_are_linear_between_their_points_and_know_no_decay():
    options = PPOOptions(
        kl_coeff=[[0, 0.4], [100, 0.2], [300, 0.0]], entropy_coeff=[(0, 0.0), (200, 1.0)]
    )
    found = [loss_coefficients(7, options, env_steps=steps) for steps in (0, 50, 100, 250, 10**9)]
    assert [one.kl for one in found] == pytest.approx([0.4, 0.3, 0.2, 0.05, 0.0])
    assert [one.entropy for one in found] == pytest.approx([0.0, 0.25, 0.5, 1.0, 1.0])


def test_a_schedule_is_rllibs():
    points = [[0, 0.3], [70, 0.1], [200, 0.9]]
    theirs = PiecewiseSchedule(points, outside_value=points[-1][1], framework=None)
    options = PPOOptions(entropy_coeff=points)
    for steps in range(0, 300, 13):
        ours = loss_coefficients(0, options, env_steps=steps).entropy
        assert ours == pytest.approx(float(theirs.value(steps)), rel=1e-6)


@pytest.mark.parametrize(
    ("kl", "factor"),
    [(0.5, 1.0), (0.55, 1.01), (0.45, 0.99), (0.6, 1.02), (50.0, 1.02), (0.0, 0.98)],
)
def test_the_adaptive_coefficient_moves_with_the_bounded_relative_error(kl, factor):
    assert adapted(1.0, kl, target=0.5, rate=0.1) == pytest.approx(factor)
    assert adapted(3.0, kl, target=0.5, rate=0.1) == pytest.approx(3.0 * factor)


def test_an_unknown_kl_changes_nothing_and_a_constant_one_not_without_bound():
    assert adapted(0.7, math.nan, target=0.5, rate=0.1) == 0.7
    factor = 1.0
    for _ in range(2000):
        factor = adapted(factor, 0.0, target=0.5, rate=0.1)
    assert factor == 1.0 / KL_FACTOR_BOUND


def test_the_adaptive_coefficient_starts_from_kl_coeff_and_knows_no_decay():
    options = PPOOptions(kl_coeff=0.2, kl_target=0.5)
    assert loss_coefficients(9, options, kl_factor=1.5).kl == pytest.approx(0.3)
    without = PPOOptions(kl_coeff=0.2, kl_decay=1.0)
    assert loss_coefficients(9, without, kl_factor=1.5).kl == 0.2
