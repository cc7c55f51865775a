"""What a scripted agent is, and how to make one by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from rllib_minestudio.agent_names import (
    HUNTER,
    PERFECT_HUNTER,
    PRACTISED_TOOLMAKER,
    RANDOM,
    TOOLMAKER,
)
from rllib_minestudio.env.agents.human_limits import PRACTISED
from rllib_minestudio.env.agents.humanlike import HumanlikeHunter
from rllib_minestudio.env.agents.hunter import BODIES, ScriptedHunter
from rllib_minestudio.env.agents.random_agent import RandomAgent
from rllib_minestudio.env.agents.toolmaker import DEFAULT_GOAL, Toolmaker


class Agent(Protocol):
    """A scripted agent: it looks at the environment itself."""

    def reset(self) -> None:
        """Forget the episode before."""

    def act(self, env: gym.Env) -> Any:
        """Return the next action for `env`."""


class Successor(Agent, Protocol):
    """An agent that can also go on where another left off."""

    def take_over(self) -> None:
        """Forget the episode before; the next action is in the middle of one that another began."""


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
        name: One of `agent_names.AGENTS`.
        prey: What a hunter hunts in episodes whose task names none, names among `BODIES`.
        seed: Of everything random in it.
        goal: What a toolmaker makes in episodes whose task does not say, one of the crafts in its
            `knowledge.json`.
    """
    return _MAKERS[name](prey, goal, seed)
