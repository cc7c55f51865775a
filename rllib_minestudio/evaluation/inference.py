"""Playing without Ray: a trained policy in the user's own loop (docs/agents.md), whole episodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.environments import (
    looks_of_built,
    looks_of_env,
    tell_other_looks,
)
from rllib_minestudio.checkpoints import Checkpoint, Source
from rllib_minestudio.env.adapter import SpaceAdapter
from rllib_minestudio.env.agents.scripted import Agent
from rllib_minestudio.errors import InvalidBatchError
from rllib_minestudio.evaluation.episode import LONGEST_EPISODE
from rllib_minestudio.evaluation.policy_loading import OWN_ENVIRONMENTS, load_module, played_adapter
from rllib_minestudio.foundation.names import ENGINE_ERROR
from rllib_minestudio.foundation.observations import IMAGE, ObservationPart, flattened, nested
from rllib_minestudio.models.acting import RolloutSession
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import RecurrentRLModule

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.env_runner import ReferencePolicy


class Policy:
    """A trained policy that acts step by step and keeps its memory, in one or several environments.

    Observations and actions are those of the environment itself, whatever its spaces are.

    Attributes:
        module: The RLModule.
        value: The value estimate at the last observation: the expected discounted return from there
            on, in the task's units; float32, () or (N,). None before the first observation.
        distribution: The distribution of the module's actions at the last observation, with a
            leading axis of environments; the next step may overwrite it. None before the first.
        kl: KL(policy || `reference`) at the last observation in nats, float32 (N,); None without a
            reference.

    Example:
        >>> policy = Policy.load("package:hunter_nano")
        >>> observation, _ = env.reset()
        >>> policy.reset()
        >>> observation, *_ = env.step(policy.act(observation))
    """

    def __init__(
        self,
        module: RecurrentRLModule,
        *,
        deterministic: bool = False,
        seed: int | None = None,
        adapter: SpaceAdapter | None = None,
        reference: ReferencePolicy | None = None,
    ) -> None:
        """Wrap a module.

        Args:
            module: The policy's RLModule.
            deterministic: Take the most probable action instead of sampling. Policies sample in
                training, and their reported returns were measured that way; some do badly without
                sampling.
            seed: Seed of the sampled actions; None draws one.
            adapter: Of the environment; None if its spaces are the module's.
            reference: A frozen policy to measure the divergence from, for as many environments as
                are played in; its memory is cleared before each episode.
        """
        self.module = module
        self._adapter = adapter or SpaceAdapter.unchanged(**_spaces_of(module))
        self._deterministic = deterministic
        self._random = np.random.default_rng(seed)
        self._parts = module.observation_parts
        self._shapes = {name: module.action_space[name].shape for name in module.action_space}
        self._session: RolloutSession | None = None
        self._session_envs = 0
        self._begins: NDArray[np.bool_] | None = None
        self._reference = reference
        self.value: NDArray[np.float32] | None = None
        self.distribution: ActionDistribution | None = None
        self.kl: NDArray[np.float32] | None = None

    @classmethod
    def load(
        cls,
        source: Source | Checkpoint,
        env: gym.Env | gym.vector.VectorEnv | None = None,
        *,
        deterministic: bool = False,
        seed: int | None = None,
        device: str | torch.device = "cpu",
        trust: bool = False,
    ) -> Policy:
        """Load a policy of any class, without running code from the checkpoint or starting Ray.

        Args:
            source: A checkpoint, or the folder of a trial, a run or an experiment; `latest` or
                `best` after such a folder; `package:hunter_nano`; a folder with `config.json` and
                `model.safetensors` (MineStudio's on Hugging Face) or its id; the output of `rllib
                model export`; any other form listed in docs/vpt.md, including OpenAI's two files;
                or what `checkpoints.open` returned for one of these.
            env: The environment to act in. A VPT policy is only checked against it; another policy
                needs its spaces if the checkpoint does not record them.
            deterministic: Take the most probable action instead of sampling (see `__init__`).
            seed: Seed of the sampled actions; None draws one.
            device: Device of the network.
            trust: Whether to import a class that the checkpoint names if somebody else wrote it.

        Raises:
            CheckpointMismatchError: There is no such policy, or it cannot be loaded.
            CheckpointError: The checkpoint is damaged.
            InvalidOptionsError: The policy does not fit the environment.
            UntrustedError: Somebody else wrote the checkpoint, and it names a class.
        """
        checkpoint = checkpoints.open(source, verified=True, trust=trust)
        now = _played_looks(checkpoint) if env is None else looks_of_built(env)
        tell_other_looks(checkpoint.name, checkpoint.looks, now)
        module = load_module(checkpoint, env, trust=trust).to(device)
        adapter = None
        if env is not None:
            adapter = SpaceAdapter.of(env)
        elif checkpoint.other_policy is not None:
            adapter = played_adapter(checkpoint)
        return cls(module, deterministic=deterministic, seed=seed, adapter=adapter)

    def reset(self, begins: ArrayLike | None = None, *, seed: int | None = None) -> None:
        """Clear the memory: the next observation begins an episode.

        Args:
            begins: (N,) bool, the environments in which an episode begins; None means all. `begins`
                refers to the observation that a reset returned, so make vector environments with
                `autoreset_mode=AutoresetMode.SAME_STEP`.
            seed: New seed of the sampled actions; None continues the present random sequence.

        Raises:
            InvalidBatchError: `begins` does not match the environments that the policy acts in.
        """
        if seed is not None:
            self._random = np.random.default_rng(seed)
        if begins is None:
            self._begins = None
        elif self._begins is not None:
            given = np.asarray(begins)
            if given.dtype != np.bool_ or given.shape != self._begins.shape:
                raise InvalidBatchError(
                    f"begins is {given.dtype} {given.shape}: it must be bool "
                    f"{self._begins.shape}, one per environment."
                )
            self._begins |= given

    def act(self, observation: Any, *, deterministic: bool | None = None) -> Any:
        """Return the action for an observation, or the actions for a batch of N observations.

        Args:
            observation: As the environment returns it; parts that the policy does not read are
                ignored. All parts may have a leading axis of N environments.
            deterministic: Take the most probable action; None keeps the policy's setting.

        Returns:
            The environment's action: int64 of shape () for `Discrete`, an array for
            `MultiDiscrete`, or a dict of these; for a batch, each with a leading axis of N.

        Raises:
            InvalidBatchError: A part is missing or has the wrong shape or dtype, or the number of
                environments has changed since the previous step.
        """
        batch, is_batch = _batch_of(self._adapter.observation(observation), self._parts)
        num_envs = len(next(iter(batch.values())))
        begins = self._begins_of(num_envs)
        uniform_bh = None
        greedy = self._deterministic if deterministic is None else deterministic
        if not greedy:
            uniform_bh = self._on_device(self._random.random((num_envs, len(self._shapes))))
        obs = nested({name: self._on_device(part) for name, part in batch.items()})
        first = self._on_device(begins)
        decision = self._session_of(num_envs).act(
            obs, first, explore=not greedy, uniform_bh=uniform_bh
        )
        self.distribution = decision.distribution
        if self._reference is not None:
            kl_b = self._reference.divergence(obs, first, decision.distribution)
            self.kl = kl_b.float().cpu().numpy()
        self._begins = np.zeros(num_envs, np.bool_)
        leading = (num_envs,) if is_batch else ()
        self.value = decision.value_b.float().cpu().numpy().reshape(leading)
        tokens = {
            name: tokens.cpu().numpy().reshape(leading + self._shapes[name])  # [N] -> the space's
            for name, tokens in decision.actions.items()
        }
        return self._adapter.action(tokens)

    def _begins_of(self, num_envs: int) -> NDArray[np.bool_]:
        """Return in which environments the observation begins an episode.

        Raises:
            InvalidBatchError: The number of environments has changed since the previous step.
        """
        if self._begins is None:
            return np.ones(num_envs, np.bool_)
        if len(self._begins) != num_envs:
            raise InvalidBatchError(
                f"The observation is of {num_envs} environment(s), but the previous one was of "
                f"{len(self._begins)}: call reset() first, which clears the memory."
            )
        return self._begins

    def _session_of(self, num_envs: int) -> RolloutSession:
        """Return the session for this many environments, built once."""
        if self._session is None or self._session_envs != num_envs:
            self._session = self.module.make_rollout_session(num_envs)
            self._session_envs = num_envs
        return self._session

    def _on_device(self, array: NDArray) -> torch.Tensor:
        # Arrays in shared memory may be read-only, of which torch warns.
        return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(self.module.device)


def _played_looks(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """Return the present looks of the environment that a policy was trained in."""
    facts = checkpoint.playing
    if facts is None or facts["env"] not in OWN_ENVIRONMENTS:
        return None
    env_config = facts["env_config"]
    is_data = checkpoint.trusted or env_config.get("resource_pack") is None
    return looks_of_env(facts["env"], env_config) if is_data else None


def _spaces_of(module: RecurrentRLModule) -> dict[str, gym.Space]:
    return {"observation_space": module.observation_space, "action_space": module.action_space}


def _batch_of(
    observation: Mapping[str, Any], parts: Mapping[str, ObservationPart]
) -> tuple[dict[str, NDArray], bool]:
    """Return the parts that a policy reads, (N, ...) each, and whether the axis N was given.

    Raises:
        InvalidBatchError: A part does not match the policy's observation space.
    """
    if not isinstance(observation, Mapping):
        raise InvalidBatchError(
            f"The observation is a {type(observation).__name__}: it must be a mapping with "
            f"{', '.join(map(repr, parts))}."
        )
    flat = flattened(observation)
    arrays: dict[str, NDArray] = {}
    for name, part in parts.items():
        if name not in flat:
            raise InvalidBatchError(
                f"The observation has no {name!r}, which the policy reads; it has "
                f"{', '.join(map(repr, flat)) or 'nothing'}."
            )
        arrays[name] = np.asarray(flat[name])
        _check(name, arrays[name], part)
    leading = {arrays[name].shape[: arrays[name].ndim - len(p.shape)] for name, p in parts.items()}
    if len(leading) > 1:
        shapes = ", ".join(f"{name!r} {array.shape}" for name, array in arrays.items())
        raise InvalidBatchError(
            f"The observation's parts differ in their number of environments: {shapes}."
        )
    if () not in leading:
        return arrays, True
    return {name: array[None] for name, array in arrays.items()}, False


def _check(name: str, array: NDArray, part: ObservationPart) -> None:
    axes = array.ndim - len(part.shape)
    if axes in (0, 1) and array.shape[axes:] == part.shape and array.dtype == part.dtype:
        return
    hint = ""
    if name == IMAGE:
        height, width, _ = part.shape
        hint = f" The environment's obs_size must be [{width}, {height}] (width, height)."
    batch = ", ".join(["N", *map(str, part.shape)])
    raise InvalidBatchError(
        f"The observation's {name!r} is {array.dtype} {array.shape}: the policy reads "
        f"{part.dtype} {part.shape}, or ({batch}) of N environments.{hint}"
    )


# ----------- a loop that plays whole episodes in one environment, with a scripted agent or a policy

_STEPS_BETWEEN_MESSAGES = 20


class ActionChooser(Protocol):
    """Something that chooses the actions in one environment."""

    def reset(self) -> None:
        """Forget the previous episode."""

    def act(self, observation: Any) -> Any:
        """Return the action for `observation`."""


class ScriptedPolicy:
    """A scripted agent as an `ActionChooser`."""

    def __init__(self, agent: Agent, env: gym.Env) -> None:
        self._agent = agent
        self._env = env

    def reset(self) -> None:
        """Tell the agent that an episode begins."""
        self._agent.reset()

    def act(self, observation: Any) -> Any:
        """Return the agent's action."""
        return self._agent.act(self._env)


def play_episodes(
    env: gym.Env,
    policy: ActionChooser,
    episodes: int,
    seed: int | None = None,
    on_action: Callable[[Any, float], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_cut_short: Callable[[str], None] | None = None,
    *,
    max_steps: int = LONGEST_EPISODE,
    max_seconds: float | None = None,
) -> list[float]:
    """Play episodes from start to end, one after the other.

    Args:
        env: The environment; it is not closed.
        policy: Chooses the actions.
        episodes: How many to play.
        seed: Seed of the first reset; None continues the environment's own sequence.
        on_action: Called with (action, return so far) before each step, while the environment still
            shows the observation that the action was chosen for.
        on_step: Called with (episodes finished, steps of the present one) after each step.
        on_cut_short: Called with the error that cut an episode short, which then does not count;
            None: it counts.
        max_steps: Steps after which an episode is truncated.
        max_seconds: Seconds after which no further step is played; an episode that has not ended
            by then does not count.

    Returns:
        The undiscounted return of each episode, of fewer than `episodes` if the time was up.
    """
    returns: list[float] = []
    info: dict[str, Any] = {}
    start = time.monotonic()
    while len(returns) < episodes:
        observation, _ = env.reset(seed=seed if not returns else None)
        policy.reset()
        total, steps, done = 0.0, 0, False
        while not done:
            if max_seconds is not None and time.monotonic() - start >= max_seconds:
                return returns
            action = policy.act(observation)
            if on_action is not None:
                on_action(action, total)
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            steps += 1
            done = terminated or truncated or steps >= max_steps
            if on_step is not None:
                on_step(len(returns), steps)
        if on_cut_short is not None and ENGINE_ERROR in info:
            on_cut_short(str(info[ENGINE_ERROR]))
        else:
            returns.append(total)
    return returns


def step_messages(show: Callable[[str], None], episodes: int) -> Callable[[int, int], None]:
    """Return an `on_step` that shows every few steps how far the playing of `episodes` is."""

    def tell(done: int, steps: int) -> None:
        if steps % _STEPS_BETWEEN_MESSAGES == 0:
            show(f"episode {done + 1} of {episodes}, step {steps:,}")

    return tell
