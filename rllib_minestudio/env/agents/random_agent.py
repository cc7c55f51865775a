"""The random policy, against which learning is measured."""

import copy
from typing import Any

import gymnasium as gym


class RandomAgent:
    """Draws every action uniformly from the action space."""

    def __init__(self, seed: int | None = None) -> None:
        """Seed the agent; without a seed its actions differ from run to run."""
        self._seed = seed
        self._space: gym.Space[Any] | None = None

    def reset(self) -> None:
        """Do nothing: the agent has no memory."""

    def take_over(self) -> None:
        """Do nothing: what came before does not matter."""

    def act(self, env: gym.Env[Any, Any]) -> Any:
        """Return the next action for `env`."""
        if self._space is None:
            # A copy: seeding the environment's own space would disturb others who sample it.
            self._space = copy.deepcopy(env.action_space)
            self._space.seed(self._seed)
        return self._space.sample()
