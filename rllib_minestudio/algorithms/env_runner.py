"""The env runner: the end of playing that RLlib and the training loop call.

It builds the environments, takes over weights, and reports what its `FragmentCollector` played.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.metrics import SAMPLE_TIMER, WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms import activity
from rllib_minestudio.algorithms.env_pool import EnvPoolOptions, EpisodeSource
from rllib_minestudio.algorithms.envs import (
    env_makers,
    episodes_seed,
    make_pool,
    was_reconstructed,
)
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.fragment_collector import FragmentCollector
from rllib_minestudio.algorithms.options.ppo import PPOOptions
from rllib_minestudio.algorithms.prior_latents import (
    PriorLatents,
    PriorWeights,
    build_prior_latents,
)
from rllib_minestudio.algorithms.rollout_report import (
    SAMPLING,
    Rollout,
    RolloutReport,
    RolloutStart,
    RunnerProgress,
)
from rllib_minestudio.algorithms.runner_callbacks import RunnerCallbacks
from rllib_minestudio.episode_seeds import EpisodeCounts, derived_seed
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.arithmetic import set_arithmetic


class MineStudioEnvRunner(SingleAgentEnvRunner):
    """Collects as many fragments per call as it has environments.

    Attributes:
        episode_source: Chooses seed and options of every reset; None numbers the episodes of each
            environment (`episode_seeds.py`). For subclasses.
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
            if self._collector is not None:  # the episodes go on
                self._start = self._begun()._replace(progress=self._progress())
            self.env.close()
        if recreated:  # its fragments are not the continuation of those that were lost
            self._instance_id = f".{secrets.token_hex(4)}"
        if self.env is None:
            self._read = self.config.observations_read()  # by the module, which stays
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
        """Build the policy, and compute as its `precision` says."""
        super().make_module()
        if self.module.precision is not None:
            set_arithmetic(self.module.precision)

    def env_makers(self) -> list[Callable[[], gym.Env]]:
        """One constructor per environment; it is called in the environment's own process."""
        return env_makers(self.config, self.worker_index or 0, self.num_workers or 0)

    def sample(self, *, aligned: bool | None = None, **others: Any) -> Rollout:
        """Play until as many fragments are complete as there are environments.

        Episodes, and fragments that are not complete, run on from call to call.

        Args:
            aligned: Whether every environment completes one fragment, and waits for the others
                when it has: then no fragment is begun under one version of the weights and
                completed under another. Otherwise the fragments are of whichever environments
                were fastest. None: only if fragments may not be stale at all.
            others: RLlib's own, such as `num_episodes`, are refused.
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
        """Begin there with the next rollout, unless this env runner has begun there already."""
        if self._start is None or self._start.restores != start.restores:
            self._start = start
            self._rollouts = start.progress.rollouts
            self._collector = None

    def rollout(
        self, weights: Any, aligned: bool, start: RolloutStart
    ) -> tuple[RolloutReport | Fragment, ...]:
        """Pull the newest weights, then `sample`; for calls with a return value per fragment.

        Args:
            weights: A `WeightsSource`.
            aligned: As in `sample`.
            start: Where to begin.

        Returns:
            The report, and `num_envs` fragments.
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
        return report, *fragments

    def set_state(self, state: dict[str, Any]) -> None:
        """Load weights whatever their version: a run may be rolled back to older ones."""
        if COMPONENT_RL_MODULE in state:
            self._weights_seq_no = 0
        super().set_state(state)

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights; without any, fragments carry no latents of it."""
        if self._prior is None:
            module = copy.deepcopy(self.module)
            self._prior = build_prior_latents(self.config, module, self.num_envs, weights)
        else:
            self._prior.load(weights)

    # ---------------------------------------------------------------- inside

    def _begun(self) -> RolloutStart:
        """Where this env runner has begun, or is about to."""
        return self._start or RolloutStart(0, episodes_seed(self.config), RunnerProgress())

    def _progress(self) -> RunnerProgress:
        return RunnerProgress(self._rollouts, tuple(self.env.unplayed))

    def _make_collector(self, rng: np.random.Generator) -> FragmentCollector:
        """Begin episodes; recording begins where `decorrelation_steps` end."""
        config, worker, start = self.config, self.worker_index or 0, self._begun()
        activity.publish_as_actor()
        activity.detail("resetting environments")
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
        """Tell of what was played since the last report."""
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
    """Refuse what RLlib's own runner takes in `sample` and ours does not, if there is any.

    Raises:
        InvalidOptionsError: There is.
    """
    if others:
        raise InvalidOptionsError(
            f"sample({', '.join(others)}): a rollout has num_envs_per_env_runner fragments of "
            "rollout_fragment_length steps; algorithm.evaluate() plays whole episodes."
        )
