"""A learner and an env runner, both real, in one process and without Ray.

Whoever uses it decides which fragments are trained on when: in which order, how often, how stale.
That is what a replay buffer, remote env runners and lost machines decide in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner import ITERATION, PUBLISHED_VERSION, MineStudioPPOLearner
from rllib_minestudio.algorithms.learner.training_pass import IterationMetrics
from tests.algorithms.toy_envs import tiny_model


def config_of(
    env: Any,
    env_config: dict[str, Any] | None = None,
    *,
    num_envs: int = 4,
    fragment_length: int = 16,
    **training: Any,
) -> MineStudioPPOConfig:
    """A config that learns a toy environment; `training` overrides what suits most problems."""
    options: dict[str, Any] = {
        "model": tiny_model(),
        "lr": 2e-3,
        "gamma": 0.9,
        "weight_decay": 0.0,
        "fragments_per_iteration": num_envs,
        "fragments_per_minibatch": num_envs,
        "gradient_accumulation": 1,
        "context_length": 8,
        "replay_buffer": {"max_fragments": 1000, "max_staleness": 1000, "max_reuse": 1000},
        "env_pool": {"mode": "inline"},
    }
    config = (
        MineStudioPPOConfig()
        .environment(env, env_config=env_config or {})
        .env_runners(num_envs_per_env_runner=num_envs, rollout_fragment_length=fragment_length)
        .training(**{**options, **training})
        .debugging(seed=0)
    )
    config.validate()
    return config


class Harness:
    """Plays and learns at its user's command.

    Args:
        config: Of the algorithm under test; a subclass of MineStudioPPO's will do.
        worker_index: Of the env runner; RLlib leaves the processor to number 0, and other devices
            to those after it.

    Attributes:
        learner: The real one.
        runner: The real one; it acts with the weights of the last `publish`.
        version: Of those weights.
    """

    def __init__(self, config: MineStudioPPOConfig, worker_index: int = 0) -> None:
        torch.manual_seed(0)
        self.config = config
        self.runner = MineStudioEnvRunner(
            config=config, worker_index=worker_index, num_workers=worker_index
        )
        module = self.runner.module
        spaces = {DEFAULT_MODULE_ID: (module.observation_space, module.action_space)}
        self.learner: MineStudioPPOLearner = config.build_learner(spaces=spaces)
        self.learner.build()
        self.version = self.iteration = 0
        self.publish_prior()
        self.publish()

    @property
    def network(self) -> Any:
        """The policy in training."""
        return self.learner.policy.network

    def publish(self) -> None:
        """Give the learner's weights to the env runner."""
        self.version, state = self.learner.publication()
        self.runner.set_state(state)

    def publish_prior(self) -> None:
        """Give the learner's prior to the env runner."""
        prior = self.learner.prior_weights()
        if prior is not None:
            self.runner.set_prior(prior)

    def play(self, rollouts: int = 1) -> list[Fragment]:
        """One fragment of every environment per rollout, by environment and then by time."""
        fragments = [f for _ in range(rollouts) for f in self.runner.sample().fragments]
        return sorted(fragments, key=lambda fragment: fragment.key)

    def update(self, fragments: Sequence[Fragment]) -> dict[str, float]:
        """Train one iteration on these fragments, in this order; returns the learner's metrics."""
        timesteps = {
            ITERATION: self.iteration,
            PUBLISHED_VERSION: self.version,
            NUM_ENV_STEPS_SAMPLED_LIFETIME: 0,
        }
        data = TrainingData(episodes=list(fragments))
        metrics = self.learner.update(training_data=data, timesteps=timesteps)
        self.iteration += 1
        return {name: _number(value) for name, value in metrics[DEFAULT_MODULE_ID].items()}

    def targets(self, fragments: Sequence[Fragment]) -> Any:
        """What the learner would train these fragments towards; it stays as it is."""
        statistics = self.network.value_head.normalizer
        before = {name: tensor.clone() for name, tensor in statistics.state_dict().items()}
        self.learner._collected = IterationMetrics(self.learner._peers)
        loaded = self.learner._loader.load(TrainingData(episodes=list(fragments)))
        targets = self.learner._prepare(loaded).targets
        statistics.load_state_dict(before)
        return targets

    def weights(self) -> dict[str, np.ndarray]:
        """A copy of the policy's weights and value statistics."""
        return {name: t.detach().numpy().copy() for name, t in self.network.state_dict().items()}

    def set_constant_value(self, value: float) -> None:
        """Make the value function say the same of everything, in units of return."""
        head = self.network.value_head
        with torch.no_grad():
            for parameter in head.linear.parameters():
                parameter.zero_()
            head.normalizer.running_mean.fill_(value)
            head.normalizer.running_mean_sq.fill_(value**2)
            head.normalizer.debiasing_term.fill_(1.0)

    def close(self) -> None:
        """End threads and environments."""
        self.runner.stop()
        self.learner.shutdown()


def _number(value: Any) -> Any:
    return value.peek() if hasattr(value, "peek") else value
