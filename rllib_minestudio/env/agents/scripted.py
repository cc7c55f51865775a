"""The interface of scripted agents, and how to make one by its name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from rllib_minestudio.env.agents.hunter import BODIES, PRACTISED, HumanlikeHunter, ScriptedHunter
from rllib_minestudio.env.agents.toolmaker import DEFAULT_GOAL, Toolmaker
from rllib_minestudio.foundation.names import (
    HUNTER,
    PERFECT_HUNTER,
    PRACTISED_TOOLMAKER,
    RANDOM,
    TOOLMAKER,
)


class Agent(Protocol):
    """A scripted agent, which reads the state of the environment itself."""

    def reset(self) -> None:
        """Forget the previous episode."""

    def act(self, env: gym.Env) -> Any:
        """Return the next action for `env`."""


class Successor(Agent, Protocol):
    """An agent that can also take over in the middle of an episode."""

    def take_over(self) -> None:
        """Forget the previous episode, and go on in the middle of one that another agent began."""


_MAKERS: dict[str, Callable[[Sequence[str], str, int], Successor]] = {
    HUNTER: lambda prey, goal, seed: HumanlikeHunter(prey, seed=seed),
    PERFECT_HUNTER: lambda prey, goal, seed: ScriptedHunter(prey),
    TOOLMAKER: lambda prey, goal, seed: Toolmaker(goal, seed),
    PRACTISED_TOOLMAKER: lambda prey, goal, seed: Toolmaker(goal, seed, PRACTISED),
    RANDOM: lambda prey, goal, seed: RandomAgent(seed),
}


def make_agent(
    name: str, prey: Sequence[str] = tuple(BODIES), seed: int = 0, goal: str = DEFAULT_GOAL
) -> Successor:
    """Make a scripted agent.

    Args:
        name: One of `names.AGENTS`.
        prey: What a hunter hunts in episodes whose task names no prey: names among `BODIES`.
        seed: The seed of all its randomness.
        goal: What a toolmaker makes in episodes whose task does not say: one of the crafts in its
            `knowledge.json`.
    """
    return _MAKERS[name](prey, goal, seed)


# -------------------------------------------- the random policy, against which learning is measured


class RandomAgent:
    """Draws every action uniformly from the action space."""

    def __init__(self, seed: int | None = None) -> None:
        """Seed the agent; without a seed its actions differ from run to run."""
        self._seed = seed
        self._space: gym.Space[Any] | None = None

    def reset(self) -> None:
        """Do nothing: the agent has no memory."""

    def take_over(self) -> None:
        """Do nothing: the agent has no memory."""

    def act(self, env: gym.Env[Any, Any]) -> Any:
        """Return the next action for `env`."""
        if self._space is None:
            # A copy: seeding the environment's own space would disturb others who sample it.
            self._space = copy.deepcopy(env.action_space)
            self._space.seed(self._seed)
        return self._space.sample()
