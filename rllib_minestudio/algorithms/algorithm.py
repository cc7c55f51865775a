"""MineStudioPPO: the training loop, as an RLlib Algorithm.

One iteration: as soon as the replay buffer holds `fragments_per_iteration` fragments that are
fresh enough, the learner trains on them; the env runners get the new weights with their version.
Runners in other processes play on meanwhile, and whatever dies or hangs is replaced: in the folder
`training_loop`, runners by `rollout_requests.py`, learners by `learners.py`, the actor that hands
out weights by `weights.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.env.env_runner_group import EnvRunnerGroup
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

from rllib_minestudio.algorithms import activity
from rllib_minestudio.algorithms.checkpoint_record import check_if_local, save_with_record
from rllib_minestudio.algorithms.config import MineStudioPPOConfig
from rllib_minestudio.algorithms.envs import episodes_seed
from rllib_minestudio.algorithms.episode_statistics import EpisodeStatistics
from rllib_minestudio.algorithms.learner import (
    ITERATION,
    PUBLISHED_VERSION,
)
from rllib_minestudio.algorithms.learner.schedule import LossCoefficients, loss_coefficients
from rllib_minestudio.algorithms.policy_access import PolicyAccess
from rllib_minestudio.algorithms.rollout_report import RolloutReport
from rllib_minestudio.algorithms.training_loop.experience import Experience, LocalExperience
from rllib_minestudio.algorithms.training_loop.learners import Learners
from rllib_minestudio.algorithms.training_loop.loop_metrics import (
    LoopTimes,
    report_of_no_rollout,
    sample_metrics,
)
from rllib_minestudio.algorithms.training_loop.remote_experience import RemoteExperience
from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer, Sample
from rllib_minestudio.algorithms.training_loop.rollout_requests import RolloutRequests
from rllib_minestudio.algorithms.training_loop.rollout_starts import RolloutStarts, trial_number
from rllib_minestudio.errors import FragmentsLostError
from rllib_minestudio.processor_threads import share_cores

EPISODE_STATISTICS = "episode_statistics"
ROLLOUT_PROGRESS = "rollout_progress"
UNREADABLE_FRAGMENTS = (LEARNER_RESULTS, DEFAULT_MODULE_ID, "dropped_unreadable")


class MineStudioPPO(PolicyAccess):
    """PPO with a KL term to a frozen prior, on fragments of recurrent experience."""

    # Checkpoints that Ray's actors wrote name every method of this class, those with an underscore
    # included, and load only where all of them are: none may be renamed.

    config: MineStudioPPOConfig
    learner_group: LearnerGroup
    _restored_progress: dict[str, Any] | None = None

    @classmethod
    def get_default_config(cls) -> MineStudioPPOConfig:
        """The defaults."""
        return MineStudioPPOConfig(algo_class=cls)

    def setup(self, config: MineStudioPPOConfig) -> None:
        """Build env runners and learner (RLlib), and what stands between them."""
        share_cores(config.cpus_of_other_processes)
        activity.publish_as_trial(self._storage)
        activity.stage("starting env runners and learners")
        super().setup(config)
        self.episode_statistics = EpisodeStatistics(self.config.metrics_num_episodes_for_smoothing)
        self.loop_times = LoopTimes(max(1, self.config.num_env_runners))
        self.learners = Learners(
            self.learner_group,
            state_interval=self.config.learner_state_interval,
            timeout_s=self.config.learner_timeout_s,
            max_restarts_per_hour=self.config.max_restarts_per_hour,
        )
        self.experience = self._make_experience()
        self.weights_version = 0
        self._next_samples: list[Sample[Any]] = []
        self._publish_prior()
        self._publish_weights()

    @property
    def replay_buffer(self) -> ReplayBuffer[Any]:
        """What was played and may still be trained on."""
        return self.experience.replay_buffer

    # ---------------------------------------------------------------- the iteration

    def training_step(self) -> None:
        """One iteration; RLlib collects the metrics."""
        metrics = self.metrics
        samples: list[Sample[Any]] = []
        while not samples:
            with metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
                samples = self._next_samples or self.experience.sample(
                    self.config.fragments_per_iteration, self.iteration
                )
                self._next_samples = []
            with metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)), self.loop_times.learning():
                samples = self._train_on(samples)
        with metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            interval = self.config.prior_update_interval
            if interval and (self.iteration + 1) % interval == 0:
                self._publish_prior()
            if self._coefficients().publish:
                self._publish_weights()
        self._log(samples)

    def _train_on(self, samples: list[Sample[Any]]) -> list[Sample[Any]]:
        """Update the learner; returns the samples, or none if there was no training on them."""
        self._look_ahead()
        activity.stage("learning", actors=self.learner_group._workers or ())
        timesteps = {
            ITERATION: self.iteration,
            PUBLISHED_VERSION: self.weights_version,
            NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(
                (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME), default=0
            ),
        }
        payloads = [sample.payload for sample in samples]
        try:
            results = self.learners.update(payloads, timesteps, self.experience.meanwhile)
        except FragmentsLostError:
            self.experience.discard_unreadable(samples)
            return []
        finally:
            self.learner_group = self.learners.group
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        if self.metrics.peek(UNREADABLE_FRAGMENTS, default=0):
            self.experience.discard_unreadable(samples)
        return samples

    def _look_ahead(self) -> None:
        """Let the learner fetch the next batch while it trains on this one, if there is one."""
        if self._next_samples:
            return
        count = self.config.fragments_per_iteration
        lead = int(self._coefficients().publish)
        self._next_samples = self.experience.sample_ahead(count, self.iteration + 1, lead)
        if self._next_samples:
            self.learners.prefetch([sample.payload for sample in self._next_samples])

    def _coefficients(self) -> LossCoefficients:
        return loss_coefficients(self.iteration, self.config)

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        """Training's own runners are brought back by `RolloutRequests`; this tells which were."""
        if env_runner_group is not self.env_runner_group:
            return super().restore_env_runners(env_runner_group)
        return self.experience.take_restored()

    # ---------------------------------------------------------------- beginning and end

    def _make_experience(self) -> Experience:
        config, group = self.config, self.env_runner_group
        seed = config.seed or 0
        starts = RolloutStarts(episodes_seed(config), trial_number(self.trial_id))
        if group.num_remote_env_runners() == 0:
            return LocalExperience(
                self.env_runner,
                config.buffer_limits,
                self._note_report,
                capacity=config.buffer_capacity,
                starts=starts,
                has_local_learner=self.learner_group.is_local,
                seed=seed,
            )
        requests = RolloutRequests(
            group._worker_manager.actors(),
            num_envs=config.num_envs_per_env_runner,
            max_in_flight=config.max_requests_in_flight_per_env_runner,
            timeout_s=config.sample_timeout_s,
            restore_timeout_s=config.env_runner_restore_timeout_s,
            max_restarts_per_hour=config.max_restarts_per_hour,
        )
        return RemoteExperience(
            requests,
            config.buffer_limits,
            self._note_report,
            capacity=config.buffer_capacity,
            starts=starts,
            fragments_per_iteration=config.fragments_per_iteration,
            max_restarts_per_hour=config.max_restarts_per_hour,
            seed=seed,
        )

    def cleanup(self) -> None:
        """End everything, also what hangs: RLlib would wait for it."""
        if hasattr(self, "experience"):
            self.experience.stop()
            self.env_runner_group._worker_manager.clear()
            self.learners.stop()
        super().cleanup()

    # ---------------------------------------------------------------- metrics

    def _note_report(self, report: RolloutReport) -> None:
        self.metrics.aggregate([report.metrics], key=ENV_RUNNER_RESULTS)
        self.episode_statistics.add(report.episodes)
        self.loop_times.note_rollout(report)

    def _log(self, samples: list[Sample[Any]]) -> None:
        self.metrics.aggregate([report_of_no_rollout()], key=ENV_RUNNER_RESULTS)
        measured: dict[tuple[str, ...], float] = {
            **self.experience.metrics(),
            **self.learners.metrics(),
            **sample_metrics(samples, self.config.buffer_limits),
            **self.loop_times.take(),
        }
        for name, value in self.episode_statistics.metrics().items():
            key = (ENV_RUNNER_RESULTS, *name)
            measured[key] = value
        for name, value in measured.items():
            self.metrics.log_value(name, value, window=1)

    # ---------------------------------------------------------------- weights

    def _publish_weights(self) -> None:
        """Give the learner's weights, and their version, to all env runners and the buffer.

        The version counts publications: while the value function warms up and nothing is
        published, the behaviour policy does not age.
        """
        state = self.learners.weights()
        self.learner_group = self.learners.group
        self.weights_version = state[WEIGHTS_SEQ_NO]
        self.experience.publish(self.weights_version, state[COMPONENT_RL_MODULE])

    def _publish_prior(self) -> None:
        """Give the prior's weights to all env runners, together with the next publication."""
        weights = self.learners.prior_weights()
        self.learner_group = self.learners.group
        if weights is not None:
            self.experience.set_prior(weights)

    # ---------------------------------------------------------------- checkpoints

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """RLlib's state, the episodes that the means are over, and how far runners have come."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        state[EPISODE_STATISTICS] = self.episode_statistics.get_state()
        state[ROLLOUT_PROGRESS] = self.experience.starts.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().set_state(state)
        if EPISODE_STATISTICS in state:
            self.episode_statistics.set_state(state[EPISODE_STATISTICS])
        self._restored_progress = state.get(ROLLOUT_PROGRESS)

    def save_to_path(self, path: Any = None, **kwargs: Any) -> str:
        """Save RLlib's checkpoint with its record (`record.yaml`), whole or not at all.

        A learner that was lost meanwhile is rebuilt first.

        Args:
            path: A new folder, or a checkpoint to replace; None makes a temporary folder.
            kwargs: RLlib's `state`, `filesystem` (then `path` lies there, saved in RLlib's own
                way) and `use_msgpack`.
        """
        activity.stage("saving a checkpoint")
        self.learners.make_sure()
        self.learner_group = self.learners.group
        return save_with_record(self, path, **kwargs)

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Restore; experience from before is of another policy and is forgotten.

        Env runners begin the episodes that would have come next. docs/checkpoints.md says what else
        goes on exactly where it was, and what does not.
        """
        check_if_local(path, kwargs.get("filesystem"))
        super().restore_from_path(path, *args, **kwargs)
        self.learners.remember()
        self.experience.go_on_from(self._restored_progress)
        self._next_samples = []
        self._publish_prior()
        self._publish_weights()
