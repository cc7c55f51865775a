"""MineStudioPPO: the training loop, as an RLlib Algorithm.

One iteration: env runners play a fragment each per environment until the replay buffer holds
`fragments_per_iteration` of them that are fresh enough; the learner trains on those; the env
runners get the new weights with their version.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
    WEIGHTS_SEQ_NO,
)

from rllib_minestudio.algorithms.config import MineStudioPPOConfig
from rllib_minestudio.algorithms.episode_statistics import EpisodeStatistics
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.algorithms.replay_buffer import ReplayBuffer
from rllib_minestudio.algorithms.schedule import loss_coefficients
from rllib_minestudio.errors import EnvRunnersLostError

REPLAY_BUFFER_RESULTS = "replay_buffer"
EPISODE_STATISTICS = "episode_statistics"


class MineStudioPPO(Algorithm):
    """PPO with a KL term to a frozen prior, on fragments of recurrent experience."""

    config: MineStudioPPOConfig

    @classmethod
    def get_default_config(cls) -> MineStudioPPOConfig:
        """The defaults."""
        return MineStudioPPOConfig(algo_class=cls)

    def setup(self, config: MineStudioPPOConfig) -> None:
        """Build env runners and learner (RLlib), and the replay buffer."""
        super().setup(config)
        self.replay_buffer: ReplayBuffer[Fragment | ray.ObjectRef] = ReplayBuffer(
            **self.config.replay_buffer, seed=self.config.seed or 0
        )
        self.episode_statistics = EpisodeStatistics(self.config.metrics_num_episodes_for_smoothing)
        self.weights_version = 0
        self._publish_weights()

    def training_step(self) -> None:
        """One iteration; RLlib collects the metrics."""
        config, metrics = self.config, self.metrics
        with metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            while len(self.replay_buffer) < config.fragments_per_iteration:
                self._collect()
        samples = self.replay_buffer.sample(config.fragments_per_iteration)
        with metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            payloads = [sample.payload for sample in samples]
            results = self.learner_group.update(
                training_data=self._training_data(payloads),
                timesteps={
                    ITERATION: self.iteration,
                    NUM_ENV_STEPS_SAMPLED_LIFETIME: metrics.peek(
                        (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME), default=0
                    ),
                },
            )
            metrics.aggregate(results, key=LEARNER_RESULTS)
        coefficients = loss_coefficients(
            self.iteration,
            kl_coeff=config.kl_coeff,
            kl_decay=config.kl_decay,
            vf_warmup_iterations=config.vf_warmup_iterations,
        )
        if coefficients.publish:
            with metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
                self._publish_weights()
        self._log_replay_buffer([s.staleness for s in samples], [s.use for s in samples])
        for name, value in self.episode_statistics.metrics().items():
            metrics.log_value((ENV_RUNNER_RESULTS, name), value, window=1)

    # ---------------------------------------------------------------- data

    def _collect(self) -> None:
        """One fragment from every environment into the replay buffer."""
        group = self.env_runner_group
        if group.num_remote_env_runners() == 0:
            rollouts = [self.env_runner.sample()]
        else:
            rollouts = group.foreach_env_runner(
                "sample",
                local_env_runner=False,
                timeout_seconds=self.config.sample_timeout_s,
            )
            if not rollouts and not self.restore_env_runners(group):
                raise EnvRunnersLostError(
                    f"None of the {self.config.num_env_runners} env runners returned a fragment "
                    f"within sample_timeout_s={self.config.sample_timeout_s}: see their logs, or "
                    "raise the timeout if the environment is that slow."
                )
        for rollout in rollouts:
            self.metrics.aggregate([rollout.report.metrics], key=ENV_RUNNER_RESULTS)
            self.episode_statistics.add(rollout.report.episodes)
            for fragment in rollout.fragments:
                payload = ray.put(fragment) if self.learner_group.is_remote else fragment
                self.replay_buffer.add(payload, weights_version=fragment.weights_version_min)

    def _training_data(self, payloads: list[Any]) -> TrainingData:
        if self.learner_group.is_remote:
            return TrainingData(episodes_refs=payloads)
        return TrainingData(episodes=payloads)

    def _log_replay_buffer(self, staleness: list[int], uses: list[int]) -> None:
        measured: dict[str, float] = {
            **self.replay_buffer.metrics(),
            "staleness_mean": sum(staleness) / len(staleness),
            "staleness_max": max(staleness),
            "reuse_mean": sum(uses) / len(uses),
        }
        for name, value in measured.items():
            self.metrics.log_value((REPLAY_BUFFER_RESULTS, name), value, window=1)

    # ---------------------------------------------------------------- weights

    def _publish_weights(self) -> None:
        """Give the learner's weights, and their version, to all env runners and the buffer.

        The version is the number of updates behind the weights.
        """
        state = self.learner_group.get_state(
            components=f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}", inference_only=True
        )[COMPONENT_LEARNER]
        self.weights_version = state[WEIGHTS_SEQ_NO]
        self.replay_buffer.set_version(self.weights_version)
        published = {
            COMPONENT_RL_MODULE: state[COMPONENT_RL_MODULE],
            WEIGHTS_SEQ_NO: self.weights_version,
        }
        if self.env_runner_group.num_remote_env_runners() == 0:
            self.env_runner.set_state(published)
            return
        reference = ray.put(published)
        self.env_runner_group.foreach_env_runner(
            lambda runner: runner.set_state(ray.get(reference)), local_env_runner=False
        )

    # ---------------------------------------------------------------- checkpoints

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """RLlib's state, and the episodes that the means are over."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        state[EPISODE_STATISTICS] = self.episode_statistics.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().set_state(state)
        if EPISODE_STATISTICS in state:
            self.episode_statistics.set_state(state[EPISODE_STATISTICS])

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Restore; experience from before is of another policy and is forgotten."""
        super().restore_from_path(path, *args, **kwargs)
        self.replay_buffer.clear()
        self._publish_weights()
