"""The env runner of evaluations: whole episodes, each of which depends on its index alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from numpy.typing import NDArray
from ray.rllib.core import COMPONENT_RL_MODULE

from rllib_minestudio.algorithms.env_pool import Episode, PoolStep
from rllib_minestudio.algorithms.env_pool.episode import DEFAULT_TASK
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner, refuse_arguments
from rllib_minestudio.env.recorder import RECORDING, RECORDING_ERROR
from rllib_minestudio.evaluation.acting import Acting, begins
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_env import EVALUATION, make_evaluation_env
from rllib_minestudio.evaluation.reference_policy import ReferencePolicy
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.seeds import action_numbers

_INDICES_PER_RUNNER = 1_000_000
"""Episodes that `sample` of one env runner has indices for."""


class EvaluationEnvRunner(MineStudioEnvRunner):
    """Plays given episodes.

    The policy acts as soon as some environments are ready, without waiting for slow ones. It always
    computes for all environments, but only the memories of the ready ones advance, and every
    episode has random numbers of its own. So the course of an episode depends neither on the
    episodes beside it nor on their order. With the same number of environments per runner it is
    the same to the last bit; with another number, up to the rounding of matrix products.
    """

    _own_env_config: Mapping[str, Any] | None = None

    def make_env(self) -> None:
        """Build the environments, parked."""
        self._waiting: deque[EpisodeSpec] = deque()
        self._settings = PlaySettings()
        self._num_sampled = 0
        self._slots: list[_Slot] = []
        super().make_env()
        self._env_config: Mapping[str, Any] | None = self.config.env_config

    def _adopt(self, env_config: Mapping[str, Any] | None) -> None:
        """Build the environments anew if they are to have other options; the module stays.

        Args:
            env_config: The options; None takes those that the env runner was built with.
        """
        if self._own_env_config is None:
            self._own_env_config = self.config.env_config
        wanted = self._own_env_config if env_config is None else env_config
        if wanted != self._env_config:
            self._env_config = None  # known again once they are built
            config: Any = self.config.copy(copy_frozen=False)
            config.env_config = dict(wanted)  # `environment()` would merge them
            self.config = config
            self.make_env()

    def env_makers(self) -> list[Callable[[], gym.Env]]:
        """The training environments' constructors, wrapped."""
        return [partial(make_evaluation_env, make) for make in super().env_makers()]

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        settings: PlaySettings,
        weights: Any = None,
        prior: Any = None,
    ) -> Iterator[EvaluatedEpisode]:
        """Play episodes, and yield each as it ends.

        Args:
            specs: What to play; the order is no promise.
            settings: How.
            weights: The module's state, or a reference to it; None keeps what there is. It is
                given with every call because an actor that was restarted has none.
            prior: Likewise, of the frozen policy whose divergence from ours recordings show; None
                leaves it out.

        Raises:
            EnvPoolError: An environment failed more often than `env_pool` allows.
        """
        acting = self._begin(specs, settings, weights, prior)
        unresolved = len(specs)
        self.env.reset()
        while unresolved:
            step = self.env.recv(self._min_ready)
            for episode in self._note(step):
                unresolved -= 1
                yield episode
            if self._hooks.follows_episodes:
                playing = [row for row, slot in enumerate(self._slots) if slot.spec is not None]
                self._hooks.tell(step, playing)
            acting.see(step)
            self._wake_parked()
            ready = [row for row in step.rows.tolist() if self._slots[row].spec is not None]
            if ready:
                action = acting.act(ready, self._uniform(ready))
                self.env.send(np.array(ready, np.int64), action)

    def _begin(
        self, specs: Sequence[EpisodeSpec], settings: PlaySettings, weights: Any, prior: Any
    ) -> Acting:
        """Forget what was played before; the arguments are those of `play`."""
        self._adopt(settings.env_config)
        if weights is not None:
            self.set_state({COMPONENT_RL_MODULE: _writable(weights)})
        reference = None
        if prior is not None:
            reference = ReferencePolicy(self.module, _writable(prior), self.num_envs)
        self._settings = settings
        self._waiting = deque(specs)
        self._slots = [_Slot() for _ in range(self.num_envs)]
        return Acting(
            self.module,
            num_envs=self.num_envs,
            settings=settings,
            device=self._device,
            reference=reference,
        )

    def sample(  # type: ignore[override]
        self, *, num_episodes: int | None = None, explore: bool | None = None, **others: Any
    ) -> list[EvaluatedEpisode]:
        """Play whole episodes, for a user's `custom_evaluation_function`.

        Their returns and lengths are logged under RLlib's names, for `get_metrics`.

        Args:
            num_episodes: How many; None: as many as there are environments.
            explore: Whether actions are sampled; None: as the config says.
            others: Those of RLlib's own runner, such as `num_timesteps`, are refused.

        Returns:
            The episodes; those of each call and of each runner differ.
        """
        refuse_arguments(others)
        first = (self.worker_index or 0) * _INDICES_PER_RUNNER + self._num_sampled
        count = self.num_envs if num_episodes is None else num_episodes
        self._num_sampled += count
        explore = self.config.explore if explore is None else explore
        settings = PlaySettings(seed=self.config.seed or 0, deterministic=not explore)
        specs = [EpisodeSpec(first + i) for i in range(count)]
        episodes = sorted(self.play(specs, settings), key=lambda episode: episode.index)
        for episode in episodes:
            if episode.error is None:
                self._log_episode_metrics(
                    episode.length, episode.undiscounted_return, episode.seconds
                )
        self._increase_sampled_metrics(sum(e.length for e in episodes), count)
        self._hooks.sample_end(episodes)
        return episodes

    def episode_source(self, row: int) -> tuple[int | None, dict[str, Any] | None]:
        """Seed and options of an environment's next reset; without options it parks."""
        slot = self._slots[row]
        if not self._waiting:
            slot.handed_out.append(None)
            return None, None
        spec = self._waiting.popleft()
        slot.handed_out.append(spec)
        return self._settings.world_seed(spec), self._settings.reset_options(spec)

    # ---------------------------------------------------------------- episodes and environments

    def _note(self, step: PoolStep) -> Iterator[EvaluatedEpisode]:
        """Note which episodes ended, which began, and which could not be begun."""
        for ended in step.episodes:
            slot = self._slots[ended.env_index]
            if slot.spec is not None:
                yield from self._judge(slot.spec, ended, ended.env_error)
            slot.spec = None
        for row in step.rows[begins(step)].tolist():
            slot = self._slots[row]
            *failed, slot.spec = slot.handed_out
            slot.handed_out.clear()
            slot.is_parked = slot.spec is None
            if slot.spec is not None:
                slot.numbers = action_numbers(self._settings.seed, slot.spec.index)
            for spec in failed:
                if spec is not None:
                    yield from self._judge(spec, None, "the environment failed in its reset")

    def _judge(
        self, spec: EpisodeSpec, ended: Episode | None, error: str | None
    ) -> Iterator[EvaluatedEpisode]:
        """Yield the episode, or have it repeated if the environment failed."""
        if error is not None and spec.attempt < self._settings.max_attempts:
            self._waiting.append(spec.again())
        else:
            yield evaluated(spec, self._settings, ended, error)

    def _wake_parked(self) -> None:
        """Have parked environments ask again if there is something to repeat; see their `step`."""
        parked = [row for row, slot in enumerate(self._slots) if slot.is_parked]
        woken = parked[: len(self._waiting)]
        if woken:
            for row in woken:
                self._slots[row].is_parked = False
            idle = {name: np.zeros(len(woken), np.int64) for name in self._heads}
            self.env.send(np.array(woken, np.int64), idle)

    def _uniform(self, ready: Sequence[int]) -> NDArray[np.float64]:
        """Random numbers (num_envs, heads), each row's from its own episode."""
        uniform = np.zeros((self.num_envs, len(self._heads)))
        for row in ready:
            uniform[row] = self._slots[row].numbers.random(len(self._heads))
        return uniform

    @property
    def _heads(self) -> list[str]:
        """Names of the action's heads; each takes one random number per step."""
        return list(self.env.single_action_space)


@dataclass
class _Slot:
    """The episode of one environment.

    Attributes:
        spec: What it plays; None while it plays nothing.
        handed_out: What it was given to begin since; more than one if a reset failed.
        numbers: What the present episode's actions are drawn with.
        is_parked: Whether it waits for a step without having an episode.
    """

    spec: EpisodeSpec | None = None
    handed_out: list[EpisodeSpec | None] = field(default_factory=list)
    numbers: np.random.Generator = field(default_factory=np.random.default_rng)
    is_parked: bool = False


def _writable(state: Any) -> dict[str, NDArray]:
    """Copy a state, or what is behind a reference to one: Ray's is read-only, as torch is not."""
    found = ray.get(state) if isinstance(state, ray.ObjectRef) else state
    return {name: np.array(value) for name, value in found.items()}


def evaluated(
    spec: EpisodeSpec, settings: PlaySettings, ended: Episode | None, error: str | None
) -> EvaluatedEpisode:
    """Put together what is known of an episode.

    Args:
        spec: Which one it was.
        settings: How it was played.
        ended: What the pool reports of it; None if it was never begun.
        error: Why it failed for good, if it did.
    """
    identity: dict[str, Any] = {
        "index": spec.index,
        "seed": settings.world_seed(spec),
        "attempts": spec.attempt,
        "error": error,
    }
    if ended is None:
        return EvaluatedEpisode(**identity, task=DEFAULT_TASK, length=0, undiscounted_return=0.0)
    info = dict(ended.info)
    report = info.pop(EVALUATION, {})
    return EvaluatedEpisode(
        **identity,
        **report,
        task=ended.task,
        length=ended.length,
        undiscounted_return=ended.undiscounted_return,
        success=ended.success,
        seconds=ended.seconds,
        recording=info.pop(RECORDING, None),
        recording_error=info.pop(RECORDING_ERROR, None),
        info=info,
    )
