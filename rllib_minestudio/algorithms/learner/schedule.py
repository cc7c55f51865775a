"""What changes from iteration to iteration, as pure functions of the iteration.

Nothing here has state, so nothing needs saving: a restored run is at the same point because it
is at the same iteration.
"""

from __future__ import annotations

from typing import NamedTuple

from rllib_minestudio.algorithms.options.ppo import PPOOptions


def annealed(lr: float, iteration: int, iterations: int) -> float:
    """The learning rate of an iteration, linear from `lr` in the first to 0 after the last.

    MineStudio's `anneal_lr_linearly` (its `online/trainer/ppotrainer.py`).

    Args:
        lr: Of iteration 0.
        iteration: Training iterations finished so far.
        iterations: After how many it is 0, and stays so.
    """
    return lr * max(0.0, 1.0 - iteration / iterations)


class LossCoefficients(NamedTuple):
    """Weights of the loss terms in one iteration.

    Attributes:
        policy: 0 while the value function warms up, then 1. Multiplied in rather than left out,
            so that every parameter stays in the graph (distributed training needs that).
        kl: Of KL(pi || prior).
        entropy: Of the entropy bonus; 0 as well while the value function warms up, when nothing
            but the KL term may move the policy.
        publish: Whether the rollout policy gets the weights after this iteration.
    """

    policy: float
    kl: float
    entropy: float
    publish: bool


def loss_coefficients(iteration: int, options: PPOOptions) -> LossCoefficients:
    """The coefficients of an iteration, counted from 0.

    MineStudio's `online/trainer/ppotrainer.py`: `coef_rho * coef_rho_decay^iteration`; while the
    value function warms up the policy is held at the prior with a KL weight of 1. The entropy
    bonus, which MineStudio keeps as it is, may fall in the same way.
    """
    if iteration < options.vf_warmup_iterations:
        return LossCoefficients(policy=0.0, kl=1.0, entropy=0.0, publish=False)
    return LossCoefficients(
        policy=1.0,
        kl=options.kl_coeff * options.kl_decay**iteration,
        entropy=options.entropy_coeff * options.entropy_decay**iteration,
        publish=True,
    )
