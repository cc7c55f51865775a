"""MineStudioPPO: its config, the checks of a config, and the training loop.

In each iteration, the learner trains as soon as the replay buffer holds `fragments_per_iteration`
fragments that are fresh enough. The env runners then get the new weights with their version.
Remote runners keep playing meanwhile, and whatever dies or hangs is replaced. See the folder
`training_loop`: `rollout_requests.py` for runners, `learners.py` for learners, `weights.py` for the
actor that distributes weights.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
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
)

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.algorithms.environments import ENV_NAME, episodes_seed
from rllib_minestudio.algorithms.fragment import RolloutReport
from rllib_minestudio.algorithms.learner import (
    ITERATION,
    PUBLISHED_VERSION,
    PUBLISHES,
    MineStudioPPOLearner,
)
from rllib_minestudio.algorithms.learner.objective import LossCoefficients, loss_coefficients
from rllib_minestudio.algorithms.options import PPOOptions, PPOTraining, is_schedule
from rllib_minestudio.algorithms.policy_config import (
    EvaluatedConfig,
    PolicyAlgorithmConfig,
    env_problems,
    model_problems,
    prepare_to_evaluate,
    range_problems,
    recorded_parts_problems,
)
from rllib_minestudio.algorithms.reporting import (
    EpisodeStatistics,
    LoopTimes,
    report_of_no_rollout,
    sample_metrics,
)
from rllib_minestudio.algorithms.rllib_settings import REFUSED
from rllib_minestudio.algorithms.saving import check_if_local, save_with_record
from rllib_minestudio.algorithms.training_loop.fragment_source import (
    Experience,
    LocalExperience,
    RemoteExperience,
)
from rllib_minestudio.algorithms.training_loop.learners import Learners
from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer, SampledFragment
from rllib_minestudio.algorithms.training_loop.rollout_requests import (
    RolloutRequests,
    RolloutStarts,
    trial_number,
)
from rllib_minestudio.demonstrations import contents, find_episodes, open_episode
from rllib_minestudio.errors import FragmentsLostError, InvalidOptionsError, RecordingError
from rllib_minestudio.foundation.options import broken_rule, takes
from rllib_minestudio.foundation.processes import share_cores


class MineStudioPPOConfig(PolicyAlgorithmConfig, EvaluatedConfig, PPOOptions):
    """Configuration of MineStudioPPO.

    Its options are RLlib's and the fields of `PPOOptions`, which `training` takes and
    docs/reference.md describes. Options that MineStudio also has default to its values (from its
    online quick start). `environment(env_config=...)` takes the options of `MineStudioEnv`,
    `training(model=...)` those of `VPTConfig`.

    Example:
        >>> config = (
        ...     MineStudioPPOConfig()
        ...     .environment(env_config={"obs_size": [64, 64]})
        ...     .training(model={"preset": "nano"}, lr=3e-4)
        ... )
        >>> algorithm = config.build_algo()
        >>> algorithm.train()
    """

    OPTIONS = PPOOptions

    def __init__(self, algo_class: type | None = None) -> None:
        if algo_class is None:
            algo_class = MineStudioPPO
        super().__init__(algo_class)
        PPOOptions.__init__(self)

        # RLlib's settings, with defaults for this algorithm.
        self.env = ENV_NAME
        self.env_runner_cls = MineStudioEnvRunner
        self.num_envs_per_env_runner = 8
        self.rollout_fragment_length = 256
        self.sample_timeout_s = 600.0
        self.env_runner_restore_timeout_s = 600.0
        self.max_requests_in_flight_per_env_runner = 2
        self.metrics_num_episodes_for_smoothing = 20
        # The value statistics are computed from all learners' sums (`Peers`), not averaged.
        self.torch_ddp_kwargs = {"broadcast_buffers": False}
        # `MineStudioPPO` publishes weights itself, with their version.
        self._dont_auto_sync_env_runner_states = True

    @takes(PPOTraining)
    def training(self, **options: Any) -> MineStudioPPOConfig:
        """Set training options; any that are not ours go to RLlib's own `training`."""
        self.set_options(options)
        return self

    def validate(self) -> None:
        """Check all options together.

        Raises:
            InvalidOptionsError: If any are wrong, with one sentence per problem.
        """
        self.refuse_settings(MineStudioPPOConfig(), REFUSED)
        super().validate()
        self.choose_policy()
        problems = problems_of(self)
        if problems:
            raise InvalidOptionsError(problems)
        self.suit_env_to_policy()
        self.install_evaluation()

    def get_default_learner_class(self) -> type:
        """Return the learner's class."""
        return MineStudioPPOLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {"zero_init_value_head": self.zero_init_value_head}

    @property
    def cpus_of_other_processes(self) -> float:
        """CPUs that remote env runners and learners request."""
        per_learner = 1 if self.num_cpus_per_learner == "auto" else self.num_cpus_per_learner
        return float(
            self.num_learners * per_learner + self.num_env_runners * self.num_cpus_per_env_runner
        )

    @property
    def buffer_capacity(self) -> int:
        """Maximum number of fragments in the replay buffer.

        By default, the fragments of the `max_staleness` + 1 iterations in which a fragment may be
        trained on, and those that the environments add meanwhile.
        """
        limits = self.buffer_limits
        if limits.max_fragments is not None:
            return limits.max_fragments
        num_envs = self.num_envs_per_env_runner * max(1, self.num_env_runners)
        usable = self.fragments_per_iteration * (limits.max_staleness + 1)
        return usable + num_envs * (self.fragments_per_sequence + 1)

    @property
    def env_steps_per_iteration(self) -> int:
        """Environment steps trained on per iteration, including reused ones."""
        return self.fragments_per_iteration * self.rollout_fragment_length


# ------------------------------------------------------------------------------- checks of a config


def problems_of(config: MineStudioPPOConfig) -> list[str]:
    """Return all problems of a config, one sentence each.

    An evaluation's copy of a config fills no buffer and trains nothing: only what it plays, and in
    what, is checked.
    """
    problems = [*range_problems(config), *env_problems(config.env, config.env_config)]
    if config.in_evaluation:
        return [*problems, *model_problems(config)]
    problems += [
        *_recordings_problems(config.behaviour_cloning.get("recordings")),
        *_contradictions(config),
        *model_problems(config, prior=config.prior, ema_decay=config.ema_decay),
    ]
    return problems or [*_size_problems(config), *_missing_parts(config)]


def _missing_parts(config: MineStudioPPOConfig) -> list[str]:
    folder = config.behaviour_cloning.get("recordings")
    if folder is None:
        return []
    problems = recorded_parts_problems(config, find_episodes(folder))
    return [f"behaviour_cloning.recordings is {folder!r}: {problem}" for problem in problems]


def _recordings_problems(folder: Any) -> list[str]:
    if not isinstance(folder, str):
        return []
    try:
        steps = sum(len(open_episode(path)) for path in find_episodes(folder))
    except RecordingError as error:
        return [f"behaviour_cloning.recordings is {folder!r}: {error}"]
    if steps == 0:
        return [
            f"behaviour_cloning.recordings: {contents(folder)}. Give the folder that `rllib "
            "record` wrote, or leave it out."
        ]
    return []


def _contradictions(config: MineStudioPPOConfig) -> list[str]:
    problems = []
    if config.prior is None and config.kl_coeff:
        problems.append(
            f"prior is null but kl_coeff is {config.kl_coeff}: set kl_coeff to 0, or prior to "
            "'initial' or a path to weights."
        )
    if config.lr_annealing_iterations is not None and not isinstance(config.lr, int | float):
        problems.append(
            f"lr_annealing_iterations is {config.lr_annealing_iterations!r}, but lr is the "
            f"schedule {config.lr!r}: give a number as lr, or leave the iterations out."
        )
    problems += _coefficient_contradictions(config)
    if config.prior is None and config.prior_update_interval:
        problems.append(
            f"prior_update_interval is {config.prior_update_interval} but prior is null: there is "
            "nothing to update; set prior to 'initial', or leave the interval out."
        )
    return problems


def _coefficient_contradictions(config: MineStudioPPOConfig) -> list[str]:
    """Return what is said twice, and differently, about the weights of the loss's terms."""
    problems = []
    for coeff, decay in (("kl_coeff", "kl_decay"), ("entropy_coeff", "entropy_decay")):
        schedule, factor = getattr(config, coeff), getattr(config, decay)
        if is_schedule(schedule) and factor != getattr(PPOOptions, decay):
            problems.append(
                f"{decay} is {factor}, but {coeff} is the schedule {schedule}: leave {decay} out, "
                f"or give a number as {coeff}."
            )
    if (target := config.kl_target) is None:
        return problems
    told = f"kl_target is {target}, but "
    if config.prior is None:
        problems.append(
            f"{told}prior is null: set prior to 'initial' or a path to weights, or leave the "
            "target out."
        )
    elif is_schedule(config.kl_coeff):
        problems.append(
            f"{told}kl_coeff is the schedule {config.kl_coeff}: give the number at which the "
            "adaptive coefficient starts, or leave the target out."
        )
    elif not config.kl_coeff:
        problems.append(f"{told}kl_coeff is 0, of which every multiple is 0: give it a start.")
    elif config.kl_decay != PPOOptions.kl_decay:
        problems.append(
            f"{told}kl_decay is {config.kl_decay}: leave out one of them, as both change kl_coeff."
        )
    return problems


def _size_problems(config: MineStudioPPOConfig) -> list[str]:
    """Return problems between options that are each valid on their own."""
    problems = []
    num_envs, batch = config.num_envs_per_env_runner, config.env_pool["inference_batch_size"]
    if batch > num_envs:
        problems.append(
            broken_rule(
                "env_pool.inference_batch_size",
                batch,
                f"must be an integer from 1 to num_envs_per_env_runner={num_envs}",
            )
        )
    num_envs *= max(1, config.num_env_runners)
    collected = num_envs * config.fragments_per_sequence
    capacity = config.buffer_capacity
    if capacity < config.fragments_per_iteration + collected:
        problems.append(
            f"replay_buffer.max_fragments is {capacity}, too few for fragments_per_iteration="
            f"{config.fragments_per_iteration} while the environments add a chunk of fragments "
            f"each, {collected} in all: make it at least "
            f"{config.fragments_per_iteration + collected}."
        )
    return problems + _sharing_problems(config)


def _sharing_problems(config: MineStudioPPOConfig) -> list[str]:
    """Return problems with dividing an iteration into sequences, learners and minibatches."""
    learners, join = max(1, config.num_learners), config.fragments_per_sequence
    problems = []
    least = config.fragments_per_minibatch * join * learners
    if config.fragments_per_iteration % (learners * join):
        problems.append(
            broken_rule(
                "fragments_per_iteration",
                config.fragments_per_iteration,
                f"must be a multiple of num_learners={learners} times "
                f"replay_buffer.fragments_per_chunk={join}, so that all learners get equally "
                f"many, such as {_next(config.fragments_per_iteration, learners * join)}",
            )
        )
    if config.gradient_accumulation % learners:
        problems.append(
            broken_rule(
                "gradient_accumulation",
                config.gradient_accumulation,
                f"must be a multiple of num_learners={learners}, as it counts the minibatches of "
                "all learners in one optimizer step, such as "
                f"{_next(config.gradient_accumulation, learners)}",
            )
        )
    if least > config.fragments_per_iteration:
        problems.append(
            f"fragments_per_minibatch is {config.fragments_per_minibatch}, more than "
            f"fragments_per_iteration={config.fragments_per_iteration} holds: {learners} "
            f"learner(s) with that many sequences of {join} fragment(s) each need at least {least}."
        )
    return problems


def _next(number: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least `number`."""
    return -(-number // step) * step


# ---------------------------------------------------------- access to the policy between iterations


class PolicyAccess(Algorithm):
    """Access to the policy with the weights published last.

    With remote runners, RLlib's own methods return the weights that the run began with.

    Attributes:
        experience: Holds what was published; a subclass creates it in `setup`.
    """

    experience: Experience

    def __repr__(self) -> str:
        # Ray shows this with the error if the config was refused, which leaves no config.
        return super().__repr__() if self.config is not None else type(self).__name__

    @property
    def env_runner(self) -> Any:
        """The env runner in this process, with the weights published last; None if there is none.

        With remote runners, the weights are loaded on access.
        """
        runner = super().env_runner
        if runner is not None and hasattr(self, "experience"):
            self.experience.bring_up_to_date(runner)
        return runner

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> Any:
        """Return the module that env runners act with, with the weights published last.

        During value warmup nothing is published, so the learner is ahead of this module. Returns
        None for any id but `default_policy`.
        """
        if module_id != DEFAULT_MODULE_ID:
            return None
        if (runner := self.env_runner) is not None:
            return runner.module
        module = self.config.get_rl_module_spec(spaces=self.spaces, inference_only=True).build()
        module.set_state(self.experience.published())
        return module

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Play `evaluation_duration` episodes with the learner's weights; works at any time.

        Without `evaluation_interval`, the first call builds the env runners and keeps them.

        Returns:
            RLlib's result; `env_runners` holds the metrics of
            `evaluation.during_training.reported`.
        """
        reporting.stage("evaluating")
        prepare_to_evaluate(self)
        return super().evaluate(parallel_train_future)


# ------------------------------------------------------------------------------------ the algorithm

EPISODE_STATISTICS = "episode_statistics"
ROLLOUT_PROGRESS = "rollout_progress"
UNREADABLE_FRAGMENTS = (LEARNER_RESULTS, DEFAULT_MODULE_ID, "dropped_unreadable")


class MineStudioPPO(PolicyAccess):
    """PPO with a KL term to a frozen prior, on fragments of recurrent experience."""

    # Checkpoints written by Ray's actors name every method of this class, private ones included,
    # and load only if all of them exist: renaming one changes the checkpoint format.

    config: MineStudioPPOConfig
    learner_group: LearnerGroup
    _restored_progress: dict[str, Any] | None = None

    @classmethod
    def get_default_config(cls) -> MineStudioPPOConfig:
        """Return the default config."""
        return MineStudioPPOConfig(algo_class=cls)

    def setup(self, config: MineStudioPPOConfig) -> None:
        """Build the env runners and learners (RLlib), and what connects them."""
        share_cores(config.cpus_of_other_processes)
        reporting.publish_as_trial(self._storage)
        reporting.stage("starting env runners and learners")
        super().setup(config)
        self.episode_statistics = EpisodeStatistics(self.config.metrics_num_episodes_for_smoothing)
        self.loop_times = LoopTimes(max(1, self.config.num_env_runners))
        self.learners = Learners(
            self.learner_group,
            state_interval=self.config.learner_state_interval,
            state_interval_s=self.config.learner_state_interval_s,
            timeout_s=self.config.learner_timeout_s,
            max_restarts_per_hour=self.config.max_restarts_per_hour,
        )
        self.experience = self._make_experience()
        self.weights_version = 0
        self._next_samples: list[SampledFragment[Any]] = []
        self._publish_prior()
        self._publish_weights()

    @property
    def replay_buffer(self) -> ReplayBuffer[Any]:
        """The fragments that may still be trained on."""
        return self.experience.replay_buffer

    # ---------------------------------------------------------------- the iteration

    def training_step(self) -> None:
        """Run one iteration; RLlib collects the metrics."""
        metrics = self.metrics
        samples: list[SampledFragment[Any]] = []
        while not samples:
            with metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
                samples = self._next_samples or self.experience.sample(
                    self.config.fragments_per_iteration, self.iteration
                )
                self._next_samples = []
            publishes = self._is_to_publish()
            with metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)), self.loop_times.learning():
                samples = self._train_on(samples, publishes)
        with metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            interval = self.config.prior_update_interval
            if interval and (self.iteration + 1) % interval == 0:
                self._publish_prior()
            if publishes:
                self._publish_weights()
        self._log(samples)

    def _is_to_publish(self) -> bool:
        """Whether the weights after the next update are published: none are in value warmup."""
        seconds = time.monotonic() - self._published_at
        return (
            self._coefficients().publish
            and self._unpublished_updates + 1 >= self.config.publication_interval
            and seconds >= self.config.publication_interval_s
        )

    def _train_on(
        self, samples: list[SampledFragment[Any]], publishes: bool
    ) -> list[SampledFragment[Any]]:
        """Update the learner; return the samples, or none if they could not be trained on."""
        self._look_ahead(publishes)
        reporting.stage("learning", actors=self.learner_group._workers or ())
        timesteps = {
            ITERATION: self.iteration,
            PUBLISHED_VERSION: self.weights_version,
            PUBLISHES: publishes,
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
        self._unpublished_updates += 1
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        if self.metrics.peek(UNREADABLE_FRAGMENTS, default=0):
            self.experience.discard_unreadable(samples)
        return samples

    def _look_ahead(self, publishes: bool) -> None:
        """Let the learner fetch the next batch, if there is one, while it trains on this one."""
        if self._next_samples:
            return
        count = self.config.fragments_per_iteration
        lead = int(publishes)
        self._next_samples = self.experience.sample_ahead(count, self.iteration + 1, lead)
        if self._next_samples:
            self.learners.prefetch([sample.payload for sample in self._next_samples])

    def _coefficients(self) -> LossCoefficients:
        return loss_coefficients(self.iteration, self.config)

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        """Return the indices of restored env runners; `RolloutRequests` restores training's own."""
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
                compress_observations=config.compress_observations,
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
        """Stop everything, including hung processes, for which RLlib would wait."""
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

    def _log(self, samples: list[SampledFragment[Any]]) -> None:
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
        """Publish the learner's weights to all env runners, and their version to the buffer too.

        The version counts publications: during value warmup nothing is published, so staleness
        does not increase.
        """
        self.weights_version, state = self.learners.publication()
        self.learner_group = self.learners.group
        self.experience.publish(self.weights_version, state)
        self._unpublished_updates, self._published_at = 0, time.monotonic()

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
        """Return RLlib's state, the episodes behind the means, and the runners' progress."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        state[EPISODE_STATISTICS] = self.episode_statistics.get_state()
        state[ROLLOUT_PROGRESS] = self.experience.starts.get_state()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state from `get_state`."""
        super().set_state(state)
        if EPISODE_STATISTICS in state:
            self.episode_statistics.set_state(state[EPISODE_STATISTICS])
        self._restored_progress = state.get(ROLLOUT_PROGRESS)

    def save_to_path(self, path: Any = None, **kwargs: Any) -> str:
        """Save RLlib's checkpoint with its record (`record.yaml`), completely or not at all.

        A learner that was lost is rebuilt first.

        Args:
            path: A new folder, or a checkpoint to replace; None creates a temporary folder.
            kwargs: RLlib's `state`, `filesystem` (on which `path` is then saved in RLlib's own way)
                and `use_msgpack`.
        """
        reporting.stage("saving a checkpoint")
        self.learners.make_sure()
        self.learner_group = self.learners.group
        return save_with_record(self, path, **kwargs)

    def restore_from_path(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Restore a checkpoint, and discard the experience collected so far.

        Env runners continue with the episodes that would have come next. docs/checkpoints.md lists
        what else resumes exactly, and what does not.
        """
        check_if_local(path, self.config, kwargs.get("filesystem"))
        super().restore_from_path(path, *args, **kwargs)
        self.learners.remember()
        self.experience.go_on_from(self._restored_progress)
        self._next_samples = []
        self._publish_prior()
        self._publish_weights()
