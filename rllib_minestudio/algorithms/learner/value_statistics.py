"""The running statistics that value targets are normalised by, once per iteration."""

from __future__ import annotations

import math

import torch

from rllib_minestudio.algorithms.learner.distributed import AllReduce
from rllib_minestudio.algorithms.learner.losses import moments
from rllib_minestudio.algorithms.learner.targets import Targets
from rllib_minestudio.algorithms.options.ppo import PPOOptions
from rllib_minestudio.models.value_head import RunningStatistics


def enter_value_targets(
    statistics: RunningStatistics, targets: Targets, options: PPOOptions, *, total: AllReduce
) -> None:
    """Enter the value targets of an iteration, of all learners, before it is trained on.

    MineStudio (`scaled_mse_head.py`) enters chunk after chunk, so that a chunk's normalised targets
    depend on which chunks were trained on before it. Here all enter at once, and count as often as
    there are chunks, whichever learner trains on them.

    Args:
        statistics: Of the value head.
        targets: This learner's.
        options: How many chunks they are trained on in.
        total: Sums over the learners that share the iteration.
    """
    usable = targets.usable_bt
    count, mean, variance = moments(targets.value_target_bt, usable, total=total)
    if count:
        own_sequences, num_steps = usable.shape
        num_sequences = int(total(torch.tensor(own_sequences)))
        minibatches = math.ceil(num_sequences / options.fragments_per_minibatch)
        chunks = math.ceil(num_steps / options.context_length)
        statistics.update(
            mean, variance + mean.square(), times=options.num_epochs * minibatches * chunks
        )
