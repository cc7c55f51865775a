"""Value targets enter the statistics of the value head alike, however many learners share them."""

from __future__ import annotations

import pytest
import torch

from rllib_minestudio.algorithms.learner.gradient_step import single_learner
from rllib_minestudio.algorithms.learner.value_targets import Targets, enter_value_targets
from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.models.value_head import DECAY, RunningStatistics

OPTIONS = PPOOptions(fragments_per_minibatch=4, context_length=8, num_epochs=2)
ITERATIONS, SEQUENCES, STEPS = 50, 16, 16


def targets_of(value_bt):
    nothing_bt, usable_b = torch.zeros_like(value_bt), torch.ones(len(value_bt), dtype=torch.bool)
    return Targets(
        usable_b=usable_b,
        nonfinite_b=~usable_b,
        value_bt=nothing_bt,
        value_target_bt=value_bt,
        advantage_bt=nothing_bt,
        proximal_logp_bt=nothing_bt,
        weight_bt=nothing_bt,
        num_evaluated=0,
    )


@pytest.mark.parametrize("num_learners", [1, 2, 8])
def test_the_statistics_move_as_fast_whatever_the_number_of_learners(num_learners):
    """All learners have the same here, so that a sum over them is a multiple."""
    statistics, expected = RunningStatistics(), RunningStatistics()
    for iteration in range(ITERATIONS):
        torch.manual_seed(iteration)
        mine = targets_of(torch.randn(SEQUENCES // num_learners, STEPS) + iteration)
        everyones = targets_of(mine.value_target_bt.repeat(num_learners, 1))
        total = single_learner if num_learners == 1 else (lambda sum_: sum_ * num_learners)
        enter_value_targets(statistics, mine, OPTIONS, total=total)
        enter_value_targets(expected, everyones, OPTIONS, total=single_learner)
    chunks = ITERATIONS * OPTIONS.num_epochs * (SEQUENCES // 4) * (STEPS // 8)
    assert float(statistics.debiasing_term) == pytest.approx(1 - DECAY**chunks, rel=1e-3)
    for name, buffer in expected.named_buffers():
        torch.testing.assert_close(dict(statistics.named_buffers())[name], buffer, msg=name)
