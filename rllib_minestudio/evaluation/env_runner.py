"""The env runner of evaluations, which plays whole episodes that depend only on their index."""

from __future__ import annotations

import copy
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.rllib.core import COMPONENT_RL_MODULE
from torch import Tensor

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.env_pool import Episode, PoolStep
from rllib_minestudio.algorithms.env_pool.base import DEFAULT_TASK
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner, refuse_arguments
from rllib_minestudio.algorithms.environments import looks_of_env, tell_other_looks
from rllib_minestudio.algorithms.learner.learner import COMPONENT_PRIOR
from rllib_minestudio.algorithms.options import INITIAL_PRIOR
from rllib_minestudio.algorithms.prior import is_nowhere_else
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.lookup import is_hub_id, is_shipped
from rllib_minestudio.checkpoints.trust import refuse_untrusted
from rllib_minestudio.env.recorder import RECORDING, RECORDING_ERROR
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_env import EVALUATION, make_evaluation_env
from rllib_minestudio.evaluation.evaluation_options import PRIOR
from rllib_minestudio.evaluation.request import (
    EpisodeSpec,
    Played,
    PlaySettings,
    StepCount,
    action_numbers,
    only_episodes,
)
from rllib_minestudio.foundation.observations import nested
from rllib_minestudio.foundation.options import shown
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.strict_loading import refuse_damaged

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


# -------------------- the frozen policy to which recordings show the KL divergence (option `kl_to`)

LEARNER_STATE = Path("learner_group", "learner", "state.pkl")
"""File of a checkpoint that holds a prior which is in no other file."""


def open_prior(config: AlgorithmConfig, kl_to: str) -> Checkpoint | None:
    """Open the checkpoint with the weights that `kl_to` names.

    Args:
        config: A `MineStudioPPOConfig`.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The checkpoint; None if only the run's own checkpoints hold the prior.

    Raises:
        InvalidOptionsError: There is no such policy, or its size differs from ours.
    """
    if kl_to == PRIOR:
        if config.prior is None:
            raise InvalidOptionsError(
                f"evaluation: kl_to is {PRIOR!r}, but the policy was trained without one. Name "
                "weights to compare with, or leave kl_to out."
            )
        if is_nowhere_else(config):
            return None
        initial = config.prior == INITIAL_PRIOR
        kl_to = str(config.model_config["weights"] if initial else config.prior)
    try:
        checkpoint = checkpoints.open(kl_to)
    except CheckpointMismatchError as error:
        raise InvalidOptionsError([f"evaluation: kl_to: {error}"]) from error
    now = looks_of_env(config.env, config.env_config)
    tell_other_looks(checkpoint.name, checkpoint.looks, now)
    blank = _blank(config)
    problems = [] if blank is None else blank.weights_problems(blank.network, checkpoint)
    if problems:
        raise InvalidOptionsError([f"evaluation: kl_to: {problem}" for problem in problems])
    return checkpoint


def load_prior(
    config: AlgorithmConfig, checkpoint: Checkpoint | None, kl_to: str | None
) -> dict[str, Any] | None:
    """Load the frozen policy that `kl_to` names.

    Args:
        config: Training config of the evaluated policy.
        checkpoint: The evaluated policy's, or None.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The frozen policy's state, parameter name -> array; None if `kl_to` is None.

    Raises:
        InvalidOptionsError: There is no such policy.
        CheckpointMismatchError: Its weights cannot be read.
        UntrustedError: The evaluated policy is from elsewhere, and its prior is a path or a pickle.
    """
    if kl_to is None:
        return None
    if kl_to == PRIOR and checkpoint is not None and not checkpoint.trusted:
        refuse_untrusted(checkpoint.name, _prior_requests(config))
    prior = open_prior(config, kl_to)
    if prior is None:
        return _kept(checkpoint)
    tensors = config.policy_class.read_weights(prior)
    refuse_damaged(tensors, f"weights {prior.name!r}")
    # NumPy has no bfloat16.
    return {
        name: (t.float() if t.dtype == torch.bfloat16 else t).numpy() for name, t in tensors.items()
    }


def _prior_requests(config: AlgorithmConfig) -> list[str]:
    """Return what the prior that a config names asks for beyond data, in words."""
    if config.prior is not None and is_nowhere_else(config):
        return [f"{LEARNER_STATE} (a pickle, which can run any program)"]
    initial = config.prior == INITIAL_PRIOR
    source = config.model_config.get("weights") if initial else config.prior
    is_name = source is None or is_shipped(source) or is_hub_id(str(source))
    return [] if is_name else [f"prior {shown(source)} (a path)"]


def _kept(checkpoint: Checkpoint | None) -> dict[str, Any]:
    if checkpoint is None:
        raise InvalidOptionsError(
            f"evaluation: kl_to is {PRIOR!r}, but only the checkpoints of this run hold its prior, "
            "which was drawn at random or follows the policy. Evaluate one of them, or name "
            "weights."
        )
    try:
        return pickle.loads((checkpoint.path / LEARNER_STATE).read_bytes())[COMPONENT_PRIOR]
    except (OSError, EOFError, pickle.UnpicklingError, KeyError) as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} does not hold its prior: {LEARNER_STATE}: {error}."
        ) from error


def _blank(config: AlgorithmConfig) -> RecurrentRLModule | None:
    return config.policy_class.blank(config.model_config, config.known_spaces())


class ReferencePolicy:
    """A frozen policy that sees the same observations as the evaluated one, with its own memory."""

    def __init__(self, module: RecurrentRLModule, state: Mapping[str, Any], num_envs: int) -> None:
        """Build the frozen policy.

        Args:
            module: The evaluated policy, for its sizes and device.
            state: The frozen policy's state, parameter name -> array.
            num_envs: Number of environments.
        """
        module = copy.deepcopy(module)
        module.set_state(state)
        self._session = module.make_rollout_session(num_envs)

    def divergence(
        self,
        obs: Mapping[str, Any],
        first_b: Tensor,
        distribution: ActionDistribution,
        moving_n: Tensor | None = None,
    ) -> Tensor:
        """Advance by a step and return KL(policy || reference) [B] in nats.

        Args:
            obs: Observations of all environments, nested, [B, ...] each.
            first_b: [B] whether they begin an episode.
            distribution: The evaluated policy's action distribution, [B].
            moving_n: As in `RolloutSession.act`.
        """
        own = self._session.act(obs, first_b, moving_n=moving_n, explore=False)
        return distribution.kl_divergence(own.distribution)


# -------- the env runner of evaluations, which plays whole episodes that depend only on their index

_INDICES_PER_RUNNER = 1_000_000
"""Size of the index range that `sample` of each env runner draws from."""


class EvaluationEnvRunner(MineStudioEnvRunner):
    """An env runner that plays the episodes it is given.

    The policy acts as soon as some environments are ready, without waiting for slow ones. It always
    computes for all environments, but only the memories of the ready ones advance, and every
    episode has its own random numbers. So the course of an episode depends neither on the episodes
    played in parallel nor on their order: bit for bit with the same number of environments per
    runner, and up to the rounding of matrix products with another.
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
        """Rebuild the environments if their options change; the module is kept.

        Args:
            env_config: The new options; None restores those that the env runner was built with.
        """
        if self._own_env_config is None:
            self._own_env_config = self.config.env_config
        wanted = self._own_env_config if env_config is None else env_config
        if wanted != self._env_config:
            self._env_config = None  # set again once they are built
            config: Any = self.config.copy(copy_frozen=False)
            config.env_config = dict(wanted)  # `environment()` would merge them
            self.config = config
            self.make_env()

    def env_makers(self) -> list[Callable[[], gym.Env]]:
        """Return the training environments' constructors, wrapped for evaluation."""
        return [partial(make_evaluation_env, make) for make in super().env_makers()]

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        settings: PlaySettings,
        weights: Any = None,
        prior: Any = None,
    ) -> Iterator[Played]:
        """Play episodes, and yield each as it ends.

        Args:
            specs: Episodes to play; they need not end in this order.
            settings: How to play them.
            weights: The module's state, or a reference to it; None keeps the present one. Every
                call passes it because a restarted actor has lost it.
            prior: Likewise for the frozen policy to which recordings show the KL divergence; None
                omits it.

        Raises:
            EnvPoolError: An environment failed more often than `env_pool` allows.
        """
        acting = self._begin(specs, settings, weights, prior)
        unresolved, count = len(specs), StepCount(settings)
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
            yield from count.add(len(ready))

    def _begin(
        self, specs: Sequence[EpisodeSpec], settings: PlaySettings, weights: Any, prior: Any
    ) -> Acting:
        """Discard what was played before; takes the arguments of `play`."""
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
            num_episodes: Number of episodes; None plays one per environment.
            explore: Whether actions are sampled; None follows the config.
            others: Arguments of RLlib's own runner, such as `num_timesteps`, which are refused.

        Returns:
            The episodes, which differ between calls and between runners.
        """
        refuse_arguments(others)
        first = (self.worker_index or 0) * _INDICES_PER_RUNNER + self._num_sampled
        count = self.num_envs if num_episodes is None else num_episodes
        self._num_sampled += count
        explore = self.config.explore if explore is None else explore
        settings = PlaySettings(seed=self.config.seed or 0, deterministic=not explore)
        specs = [EpisodeSpec(first + i) for i in range(count)]
        played = only_episodes(self.play(specs, settings))
        episodes = sorted(played, key=lambda episode: episode.index)
        for episode in episodes:
            if episode.error is None:
                self._log_episode_metrics(
                    episode.length, episode.undiscounted_return, episode.seconds
                )
        self._increase_sampled_metrics(sum(e.length for e in episodes), count)
        self._hooks.sample_end(episodes)
        return episodes

    def episode_source(self, row: int) -> tuple[int | None, dict[str, Any] | None]:
        """Return seed and options of an environment's next reset; without options it is parked."""
        slot = self._slots[row]
        if not self._waiting:
            slot.handed_out.append(None)
            return None, None
        spec = self._waiting.popleft()
        slot.handed_out.append(spec)
        return self._settings.world_seed(spec), self._settings.reset_options(spec)

    # ---------------------------------------------------------------- episodes and environments

    def _note(self, step: PoolStep) -> Iterator[EvaluatedEpisode]:
        """Process the episodes that ended, began, or failed to begin; yield the finished ones."""
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
        """Yield the episode, or queue it again if the environment failed."""
        if error is not None and spec.attempt < self._settings.max_attempts:
            self._waiting.append(spec.again())
        else:
            yield evaluated(spec, self._settings, ended, error)

    def _wake_parked(self) -> None:
        """Step parked environments so that they are reset, if episodes wait to be repeated."""
        parked = [row for row, slot in enumerate(self._slots) if slot.is_parked]
        woken = parked[: len(self._waiting)]
        if woken:
            for row in woken:
                self._slots[row].is_parked = False
            idle = {name: np.zeros(len(woken), np.int64) for name in self._heads}
            self.env.send(np.array(woken, np.int64), idle)

    def _uniform(self, ready: Sequence[int]) -> NDArray[np.float64]:
        """Return random numbers (num_envs, heads), each row from its own episode's generator."""
        uniform = np.zeros((self.num_envs, len(self._heads)))
        for row in ready:
            uniform[row] = self._slots[row].numbers.random(len(self._heads))
        return uniform

    @property
    def _heads(self) -> list[str]:
        """Names of the action heads; each takes one random number per step."""
        return list(self.env.single_action_space)


@dataclass
class _Slot:
    """The state of one environment.

    Attributes:
        spec: The episode it plays; None while it plays none.
        handed_out: Episodes handed out for its next reset; more than one if a reset failed.
        numbers: Random generator of the current episode's actions.
        is_parked: Whether it has no episode and waits for a step.
    """

    spec: EpisodeSpec | None = None
    handed_out: list[EpisodeSpec | None] = field(default_factory=list)
    numbers: np.random.Generator = field(default_factory=np.random.default_rng)
    is_parked: bool = False


def _writable(state: Any) -> dict[str, NDArray]:
    """Return a writable copy of a state or of a reference's value; Ray's arrays are read-only."""
    found = ray.get(state) if isinstance(state, ray.ObjectRef) else state
    return {name: np.array(value) for name, value in found.items()}


def evaluated(
    spec: EpisodeSpec, settings: PlaySettings, ended: Episode | None, error: str | None
) -> EvaluatedEpisode:
    """Build the record of an episode.

    Args:
        spec: The episode.
        settings: How it was played.
        ended: The pool's report; None if the episode never began.
        error: Why it failed for good, or None.
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


# ------------------------------------------ actions, and the numbers that recordings show with them


class Acting:
    """Chooses actions for the environments that are ready.

    It computes for all environments but leaves the memories of the others unchanged, so the actions
    in an environment do not depend on which others are ready.

    Args:
        module: The policy's RLModule.
        num_envs: Number of environments.
        settings: How episodes are played.
        device: The module's device.
        reference: The policy to which recordings show the KL divergence, or None.
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        *,
        num_envs: int,
        settings: PlaySettings,
        device: torch.device,
        reference: ReferencePolicy | None,
    ) -> None:
        self._session = module.make_rollout_session(num_envs)
        self._settings = settings
        self._device = device
        self._reference = reference
        self._obs = {name: part.zeros(num_envs) for name, part in module.observation_parts.items()}
        self._first = np.ones(num_envs, np.bool_)

    def see(self, step: PoolStep) -> None:
        """Store the observations of the environments in `step`."""
        for name, part in self._obs.items():
            part[step.rows] = step.obs[name]
        self._first[step.rows] = begins(step)

    def act(self, ready: Sequence[int], uniform: NDArray[np.float64]) -> dict[str, NDArray]:
        """Choose actions.

        Args:
            ready: The k environments to act in.
            uniform: (num_envs, heads) random numbers to draw the actions with.

        Returns:
            (k,) arrays: the tokens by head, and `value` and `kl` where recordings show them.
        """
        obs = nested({name: self._on_device(part) for name, part in self._obs.items()})
        first = self._on_device(self._first)
        moving = self._moving(ready)
        decision = self._session.act(
            obs,
            first,
            moving_n=moving,
            explore=not self._settings.deterministic,
            uniform_bh=self._on_device(uniform),
        )
        action = {name: t[ready].cpu().numpy() for name, t in decision.actions.items()}
        if self._settings.recorder is not None:
            action["value"] = decision.value_b[ready].cpu().numpy()
        if self._reference is not None:
            kl_b = self._reference.divergence(obs, first, decision.distribution, moving)
            action["kl"] = kl_b[ready].cpu().numpy()
        self._first[ready] = False
        return action

    def _moving(self, ready: Sequence[int]) -> Tensor | None:
        """Return (num_envs,) whose memories advance; None means all, which is faster."""
        if len(ready) == len(self._first):
            return None
        moving = np.zeros_like(self._first)
        moving[ready] = True
        return self._on_device(moving)

    def _on_device(self, array: NDArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


def begins(step: PoolStep) -> NDArray[np.bool_]:
    """Return (k,) whether an environment's observation is the first of an episode."""
    return step.terminated | step.truncated | ~step.answered
