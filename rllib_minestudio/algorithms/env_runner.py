"""The env runner, as called by RLlib and the training loop.

It builds the environments, loads weights, and reports what its `FragmentCollector` played.
"""

from __future__ import annotations

import copy
import secrets
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils import force_list
from ray.rllib.utils.metrics import SAMPLE_TIMER, WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.env_pool import (
    EnvPool,
    EnvPoolOptions,
    EpisodeSource,
    InlineEnvs,
    PoolStep,
    ProcessEnvs,
)
from rllib_minestudio.algorithms.env_pool.base import EnvConfig, Infos, StepInfos
from rllib_minestudio.algorithms.environments import env_makers, episodes_seed, is_harmless
from rllib_minestudio.algorithms.fragment import (
    SAMPLING,
    CompressedFragment,
    Fragment,
    Rollout,
    RolloutReport,
    RolloutStart,
    RunnerProgress,
    compress,
)
from rllib_minestudio.algorithms.fragment_collector import FragmentCollector
from rllib_minestudio.algorithms.options import AUTO, INLINE, PROCESS, PPOOptions
from rllib_minestudio.algorithms.prior import (
    PriorLatents,
    PriorWeights,
    build_prior_latents,
)
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts, derived_seed
from rllib_minestudio.models.acting import set_arithmetic


class MineStudioEnvRunner(SingleAgentEnvRunner):
    """An env runner that returns `num_envs` fragments per call.

    Attributes:
        episode_source: For subclasses: chooses the seed and options of every reset. None numbers
            the episodes of each environment (`episode_seeds.py`).
    """

    config: PPOOptions
    env: Any = None
    episode_source: EpisodeSource | None = None

    _collector: FragmentCollector | None = None
    _start: RolloutStart | None = None
    _rollouts = 0
    _instance_id = ""
    _weights_number = 0
    _weights_reachable = True
    _prior_number = 0
    _prior: PriorLatents | None = None

    def make_env(self) -> None:
        """Build the environments."""
        recreated = self.env is not None or was_reconstructed()
        if self.env is not None:
            if self._collector is not None:  # continue where the episodes were
                self._start = self._begun()._replace(progress=self._progress())
            self.env.close()
        if recreated:  # new fragments do not continue those that were lost
            self._instance_id = f".{secrets.token_hex(4)}"
        if self.env is None:
            self._read = self.config.observations_read()  # the module never changes
        options = EnvPoolOptions(**self.config.env_pool)
        self._hooks = RunnerCallbacks(self)
        self.env = make_pool(
            self.config.env,
            self.config.env_config,
            self.env_makers(),
            options=options,
            gamma=self.config.gamma,
            episode_source=self.episode_source,
            infos=self._hooks.infos,
            read=self._read,
        )
        self.num_envs, self._min_ready = self.env.num_envs, options.inference_batch_size
        self._collector = None
        self._hooks.environment_created()

    def make_module(self) -> None:
        """Build the policy, and set torch's arithmetic to its `precision`."""
        super().make_module()
        if self.module.precision is not None:
            set_arithmetic(self.module.precision)

    def env_makers(self) -> list[Callable[[], gym.Env]]:
        """Return one constructor per environment, to be called in the environment's process."""
        return env_makers(self.config, self.worker_index or 0, self.num_workers or 0)

    def sample(self, *, aligned: bool | None = None, **others: Any) -> Rollout:
        """Play until `num_envs` fragments are complete.

        Episodes and incomplete fragments continue in the next call.

        Args:
            aligned: Whether every environment completes exactly one fragment and then waits for the
                others, so that no fragment spans two versions of the weights. Otherwise the
                fragments come from whichever environments are fastest. None: True only if
                `max_staleness` is 0.
            others: RLlib's own arguments, such as `num_episodes`, which are refused.
        """
        refuse_arguments(others)
        if aligned is None:
            aligned = self.config.max_staleness == 0
        rng = np.random.default_rng((self._begun().seed, self.worker_index or 0, self._rollouts))
        if self._collector is None:
            self._collector = self._make_collector(rng)
        collector = self._collector
        collector.weights_version, collector.prior = self._weights_seq_no, self._prior
        with self.metrics.log_time(SAMPLE_TIMER), collector.times.measure(SAMPLING):
            fragments = collector.collect(aligned=aligned, rng=rng)
        self._rollouts += 1
        self._hooks.sample_end(fragments)
        return Rollout(self._report(collector, fragments), fragments)

    def begin_from(self, start: RolloutStart) -> None:
        """Begin at `start` with the next rollout, unless this env runner has already done so."""
        if self._start is None or self._start.restores != start.restores:
            self._start = start
            self._rollouts = start.progress.rollouts
            self._collector = None

    def rollout(
        self, weights: Any, aligned: bool, start: RolloutStart
    ) -> tuple[RolloutReport | Fragment | CompressedFragment, ...]:
        """Pull the newest weights, then `sample`.

        Args:
            weights: A `WeightsSource`.
            aligned: As in `sample`.
            start: Where to begin.

        Returns:
            The report, followed by `num_envs` fragments, compressed if `compress_observations`
            says so: a remote call has one result for each.
        """
        self.begin_from(start)
        publication = weights.pull(self._weights_number)
        if publication is not None:
            self.set_state(publication.state)
            self._weights_number = publication.number
        prior = weights.pull_prior(self._prior_number)
        if prior is not None:
            self.set_prior(prior.weights)
            self._prior_number = prior.number
        self._weights_reachable = weights.reachable
        report, fragments = self.sample(aligned=aligned)
        if self.config.compress_observations:
            return report, *map(compress, fragments)
        return report, *fragments

    def set_state(self, state: dict[str, Any]) -> None:
        """Load weights of any version: a run may be rolled back to older ones."""
        if COMPONENT_RL_MODULE in state:
            self._weights_seq_no = 0
        super().set_state(state)

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights; until then, fragments have no prior latents."""
        if self._prior is None:
            module = copy.deepcopy(self.module)
            self._prior = build_prior_latents(self.config, module, self.num_envs, weights)
        else:
            self._prior.load(weights)

    # ---------------------------------------------------------------- inside

    def _begun(self) -> RolloutStart:
        """Return where this env runner began, or is about to."""
        return self._start or RolloutStart(0, episodes_seed(self.config), RunnerProgress())

    def _progress(self) -> RunnerProgress:
        return RunnerProgress(self._rollouts, tuple(self.env.unplayed))

    def _make_collector(self, rng: np.random.Generator) -> FragmentCollector:
        """Begin the episodes, and play the decorrelation steps, which are not recorded."""
        config, worker, start = self.config, self.worker_index or 0, self._begun()
        reporting.publish_as_actor()
        reporting.detail("resetting environments")
        collector = FragmentCollector(
            self.env,
            self.module.make_rollout_session(self.num_envs),
            counts=EpisodeCounts(derived_seed(start.seed, worker), start.progress.unplayed),
            parts=self.module.observation_parts,
            env_ids=[f"{worker}-{i}{self._instance_id}" for i in range(self.num_envs)],
            fragment_length=config.rollout_fragment_length,
            min_ready=self._min_ready,
            explore=config.explore,
            device=self._device,
            on_step=self._hooks.tell if self._hooks.follows_episodes else None,
        )
        if config.decorrelation_steps:
            collector.decorrelate(config.decorrelation_steps, rng)
        return collector

    def _report(self, collector: FragmentCollector, fragments: list[Fragment]) -> RolloutReport:
        """Report what was played since the last report."""
        episodes, collector.episodes = collector.episodes, []
        restarts = dict(self.env.restarts)
        self.env.restarts.clear()
        self.metrics.log_value(WEIGHTS_SEQ_NO, self._weights_seq_no, window=1)
        self._increase_sampled_metrics(sum(map(len, fragments)), len(episodes))
        return RolloutReport(
            fragments=[fragment.metadata for fragment in fragments],
            episodes=episodes,
            env_restarts=restarts,
            metrics=self.get_metrics(),
            seconds=collector.times.take(),
            weights_number=self._weights_number,
            weights_reachable=self._weights_reachable,
            instance_id=self._instance_id,
            worker_index=self.worker_index or 0,
            restores=self._begun().restores,
            progress=self._progress(),
        )


def refuse_arguments(others: Mapping[str, Any]) -> None:
    """Refuse arguments that RLlib's own `sample` takes and ours does not.

    Raises:
        InvalidOptionsError: If there are any.
    """
    if others:
        raise InvalidOptionsError(
            f"sample({', '.join(others)}): a rollout has num_envs_per_env_runner fragments of "
            "rollout_fragment_length steps; algorithm.evaluate() plays whole episodes."
        )


def make_pool(
    env: Any,
    env_config: Mapping[str, Any],
    make_envs: Sequence[Callable[[], gym.Env]],
    *,
    options: EnvPoolOptions,
    **arguments: Any,
) -> EnvPool:
    """Build the kind of pool that the options specify.

    Args:
        env: The environment specifier.
        env_config: The environment's options.
        make_envs: One constructor per environment.
        options: With mode `auto`, environments run inline if they neither hang nor crash, and their
            steps take less time than messages to another process.
        arguments: Further arguments of the pool.
    """
    mode = options.mode
    if mode == AUTO:
        mode = INLINE if is_harmless(env, env_config) else PROCESS
    pool = InlineEnvs if mode == INLINE else ProcessEnvs
    return pool(make_envs, options=options, **arguments)


def was_reconstructed() -> bool:
    """Whether Ray restarted this actor after it was lost."""
    if not ray.is_initialized():
        return False
    context = ray.get_runtime_context()
    return context.get_actor_id() is not None and context.was_current_actor_reconstructed


# --------------------------------------------------------------- RLlib's callbacks of an env runner
# They are called for episodes, at the end of a rollout, and when environments were built, with
# RLlib's arguments. Our runner keeps no `SingleAgentEpisode`, which would hold every frame:
# `CallbackEpisode` offers the part of it that callbacks read. Without episode callbacks, episodes
# are not tracked, and no infos are requested from the environments.

ON_START, ON_STEP, ON_END = "on_episode_start", "on_episode_step", "on_episode_end"


class CallbackEpisode:
    """A running episode as callbacks see it, with the names of RLlib's `SingleAgentEpisode`.

    Args:
        info: The reset's info, plain and small (`plain_info`).

    Attributes:
        id_: Unique among all episodes.
        t: Steps so far, as `len(episode)`.
        is_terminated: Whether the last step terminated the episode.
        is_truncated: Whether it was truncated, by a time limit or a failure.
        env_error: Why the environment failed, in one line, if that truncated it; else None.
        custom_data: A dict for the callbacks' own data, kept until the episode ends.
    """

    def __init__(self, info: dict[str, Any]) -> None:
        self.id_ = uuid.uuid4().hex
        self.t = 0
        self.is_terminated = False
        self.is_truncated = False
        self.env_error: str | None = None
        self.custom_data: dict[str, Any] = {}
        self._info = info
        self._reward = 0.0
        self._return = 0.0
        self._started = time.perf_counter()

    def __len__(self) -> int:
        return self.t

    def __bool__(self) -> bool:
        return True  # even before the first step

    @property
    def is_done(self) -> bool:
        """Whether the episode has ended."""
        return self.is_terminated or self.is_truncated

    def get_return(self) -> float:
        """Return the sum of the rewards so far."""
        return self._return

    def get_rewards(self, indices: int) -> float:
        """Return the last step's reward; `indices` must be -1."""
        return _last("get_rewards", indices, self._reward)

    def get_infos(self, indices: int) -> dict[str, Any]:
        """Return the info of the last step, or else of the reset; `indices` must be -1."""
        return _last("get_infos", indices, self._info)

    def get_duration_s(self) -> float:
        """Return the seconds since the episode began."""
        return time.perf_counter() - self._started

    def __getattr__(self, name: str) -> Any:
        """Raise an `AttributeError` that lists what there is."""
        raise AttributeError(
            f"episode.{name} is not kept: an env runner holds no frames and actions of whole "
            "episodes. There are id_, t, len(episode), get_return(), get_rewards(-1), "
            "get_infos(-1), get_duration_s(), is_done, is_terminated, is_truncated, env_error and "
            "custom_data; `samples` of on_sample_end holds the frames."
        )

    def add_step(self, reward: float, terminated: bool, truncated: bool, told: StepInfos) -> None:
        """Add one step."""
        self.t += 1
        self._reward = reward
        self._return += reward
        self.is_terminated = terminated
        self.is_truncated = truncated
        self.env_error = told.env_error
        if told.last is not None:
            self._info = told.last


class RunnerCallbacks:
    """Calls the callbacks of an env runner.

    Args:
        runner: The env runner. Its config has the callback functions, its `_callbacks` the objects.

    Attributes:
        infos: Which infos the pool of environments has to return.
        follows_episodes: Whether there are episode callbacks.
    """

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._running: dict[int, CallbackEpisode] = {}
        wanted = wanted_callbacks(runner.config)
        self.follows_episodes = bool(wanted)
        self.infos = Infos.NONE
        if self.follows_episodes:
            self.infos = Infos.STEPS if ON_STEP in wanted else Infos.EPISODES
        calls: dict[str, Callable[..., None]] = {name: partial(self._call, name) for name in wanted}
        self._on_start = calls.get(ON_START, _nothing)
        self._on_step = calls.get(ON_STEP, _nothing)
        self._on_end = calls.get(ON_END, _nothing)

    def environment_created(self) -> None:
        """Call `on_environment_created` with the pool of all environments."""
        runner = self._runner
        context = EnvConfig(
            runner.config.env_config,
            worker_index=runner.worker_index or 0,
            vector_index=0,
            num_workers=runner.num_workers or 0,
        )
        self._call("on_environment_created", env=runner.env, env_context=context)

    def sample_end(self, samples: list[Any]) -> None:
        """Call `on_sample_end` with the fragments of a rollout."""
        self._call("on_sample_end", samples=samples)

    def tell(self, step: PoolStep, playing: Container[int] | None = None) -> None:
        """Call the episode callbacks for the environments' answers.

        Args:
            step: From a pool that returns `infos`.
            playing: Environments whose new episodes are followed; None: all.
        """
        for k, row in enumerate(step.rows.tolist()):
            told = step.infos[row]
            episode = self._running.get(row)
            if step.answered[k] and episode is not None:
                episode.add_step(
                    float(step.reward[k]), bool(step.terminated[k]), bool(step.truncated[k]), told
                )
                self._on_step(episode, row)
                if episode.is_done:
                    self._on_end(episode, row, prev_episode_chunks=[])
                    del self._running[row]
            if told.first is not None:
                self._running.pop(row, None)
                if playing is None or row in playing:
                    self._running[row] = CallbackEpisode(told.first)
                    self._on_start(self._running[row], row)

    def _call(
        self, name: str, episode: CallbackEpisode | None = None, row: int = 0, **arguments: Any
    ) -> None:
        runner = self._runner
        if episode is not None:
            arguments.update(
                episode=episode, env=runner.env, rl_module=runner.module, env_index=row
            )
        make_callback(
            name,
            callbacks_objects=runner._callbacks,
            callbacks_functions=getattr(runner.config, f"callbacks_{name}"),
            kwargs={"env_runner": runner, "metrics_logger": runner.metrics, **arguments},
        )


def wanted_callbacks(config: AlgorithmConfig) -> set[str]:
    """Return the names of the episode callbacks that a config implements."""
    return {
        name
        for name in (ON_START, ON_STEP, ON_END)
        if getattr(config, f"callbacks_{name}")
        or any(
            getattr(callbacks, name) is not getattr(RLlibCallback, name)
            for callbacks in force_list(config.callbacks_class)
        )
    }


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, in place of a missing callback."""


def _last(method: str, indices: int, value: Any) -> Any:
    if indices != -1:
        raise IndexError(
            f"episode.{method}({indices!r}): only the last step is kept, which is -1; keep what "
            "you need of the others in episode.custom_data."
        )
    return value
