"""Plays whole episodes, with a scripted agent or with the module of a checkpoint."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.columns import Columns

from rllib_minestudio.algorithms.checkpoint_record import check_digests
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.models.policies import policy_of_checkpoint
from rllib_minestudio.models.recurrent_rl_module import MODULE_OPTIONS, RecurrentRLModule
from rllib_minestudio.models.vpt.checkpoint_files import find_checkpoint
from rllib_minestudio.models.vpt.weight_loading import (
    config_from_checkpoint,
    load_weights,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import VPTRLModule, spaces_of
from rllib_minestudio.observations import flattened, nested
from rllib_minestudio.recordings.video import VideoWriter

MODULE_PATH = Path("learner_group", "learner", "rl_module", "default_policy")
"""Where an Algorithm checkpoint keeps its policy's module."""


class Policy(Protocol):
    """Chooses actions for one environment."""

    def reset(self) -> None:
        """Forget the episode before."""

    def act(self, observation: Any) -> Any:
        """Return the action for an observation."""


class Agent(Protocol):
    """A scripted agent of `rllib_minestudio.env.agents`: it looks at the environment itself."""

    def reset(self) -> None:
        """Forget the episode before."""

    def act(self, env: gym.Env) -> Any:
        """Return the next action for `env`."""


class ScriptedPolicy:
    """Lets a scripted agent play one environment."""

    def __init__(self, agent: Agent, env: gym.Env) -> None:
        """Bind `agent` to the environment that it plays in."""
        self._agent = agent
        self._env = env

    def reset(self) -> None:
        """Tell the agent that an episode begins."""
        self._agent.reset()

    def act(self, observation: Any) -> Any:
        """Return the agent's action."""
        return self._agent.act(self._env)


class ModulePolicy:
    """Acts with a recurrent RLModule, carrying its state from step to step."""

    def __init__(self, module: RecurrentRLModule, deterministic: bool = False) -> None:
        """Wrap a module.

        Args:
            module: The policy.
            deterministic: Take the most likely action instead of sampling. Sampling is what
                the agent did in training, and what its returns were measured with.
        """
        self._seen = list(module.observation_parts)
        self._shapes = {name: module.action_space[name].shape for name in module.action_space}
        self._forward = module.forward_inference if deterministic else module.forward_exploration
        self._initial = {
            name: torch.as_tensor(value)[None] for name, value in module.get_initial_state().items()
        }
        self.reset()

    def reset(self) -> None:
        """Start the next episode with an empty memory."""
        self._state = self._initial
        self._first = True

    def act(self, observation: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the action for one environment's observation; what the module lacks is unused."""
        flat = flattened(observation)
        obs = {name: torch.from_numpy(np.array(flat[name]))[None, None] for name in self._seen}
        batch = {
            Columns.OBS: nested(obs),  # [1, 1, ...] each
            Columns.STATE_IN: self._state,
            "first": torch.tensor([[self._first]]),
        }
        with torch.inference_mode():
            output = self._forward(batch)
        self._state, self._first = output[Columns.STATE_OUT], False
        return {
            name: value.cpu().numpy().reshape(self._shapes[name])  # [1, 1, 1] -> the space's
            for name, value in output[Columns.ACTIONS].items()
        }


def check_is_of_algorithm(checkpoint: str | Path) -> None:
    """Refuse a folder that no algorithm wrote.

    Raises:
        CheckpointMismatchError: It is one.
    """
    if not (Path(checkpoint) / MODULE_PATH).is_dir():
        raise CheckpointMismatchError(
            f"{str(checkpoint)!r} is not a checkpoint of an algorithm: it has no folder "
            f"{str(MODULE_PATH)!r}."
        )


def load_module(checkpoint: str | Path, env: gym.Env | None = None) -> RecurrentRLModule:
    """Load the policy's module from an Algorithm checkpoint, without running anything in it.

    The class of a policy that is not VPT is imported by its name.

    Args:
        checkpoint: Folder that `Algorithm.save_to_path` or a Tune run wrote.
        env: What it plays in; only policies that are not VPT need it, for its spaces.

    Raises:
        CheckpointMismatchError: The folder holds no such module, or one that does not load.
        CheckpointError: It is damaged.
    """
    check_is_of_algorithm(checkpoint)
    check_digests(checkpoint)
    other = find_checkpoint(str(checkpoint)).other_policy
    if other is not None:
        name, options = other
        if env is None:
            raise CheckpointMismatchError(
                f"{str(checkpoint)!r} holds a policy of the class {name}, which needs to know the "
                "environment that it plays in."
            )
        spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
        return _load_other(checkpoint, name, options, spaces)
    config = config_from_checkpoint(str(checkpoint))
    for problem in weights_problems(config, str(checkpoint)):
        raise CheckpointMismatchError(problem)
    module = VPTRLModule(model_config=asdict(config), **spaces_of(config))
    load_weights(module.network, str(checkpoint))
    return module


def _load_other(
    checkpoint: str | Path, name: str, options: Mapping[str, Any], spaces: Mapping[str, gym.Space]
) -> RecurrentRLModule:
    """Load a policy of another class than VPT.

    Raises:
        CheckpointMismatchError: It is none, or has other weights than it says.
    """
    kind = policy_of_checkpoint(checkpoint, name)
    # What training starts from and what it freezes does not matter to a policy that only plays.
    own = {key: value for key, value in options.items() if key not in MODULE_OPTIONS}
    try:
        blank = kind.blank(own, spaces)
        # Before it is built: options can claim any size.
        for problem in kind.weights_problems(blank.network, checkpoint) if blank else ():
            raise CheckpointMismatchError(problem)
        module = kind(model_config=own, **spaces)
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"{str(checkpoint)!r} cannot be loaded: {error}") from error
    module.load_weights(str(checkpoint))
    return module


def play_episodes(
    env: gym.Env,
    policy: Policy,
    episodes: int,
    seed: int | None = None,
    video: VideoWriter | None = None,
    on_episode: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Play episodes from start to end, one after the other.

    Args:
        env: The environment; it is not closed.
        policy: Chooses the actions.
        episodes: How many to play.
        seed: Seed of the first reset; None continues the environment's own sequence.
        video: Receives a rendered frame of every step, if given.
        on_episode: Called with (episodes finished, return of the last one).

    Returns:
        The undiscounted return of each episode.
    """
    returns: list[float] = []
    while len(returns) < episodes:
        observation, _ = env.reset(seed=seed if not returns else None)
        policy.reset()
        total, done = 0.0, False
        while not done:
            if video is not None:
                video.add(np.asarray(env.render()))
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
            total += float(reward)
            done = terminated or truncated
        returns.append(total)
        if on_episode is not None:
            on_episode(len(returns), total)
    return returns
