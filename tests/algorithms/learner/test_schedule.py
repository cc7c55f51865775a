"""The loss coefficients as functions of the iteration."""

from __future__ import annotations

import pytest

from rllib_minestudio.algorithms.learner.objective import annealed, loss_coefficients
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
