"""Random actions that bring environments out of step with each other before anything counts."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np


class RandomSteps:
    """Draws the random actions of one environment, the same in every kind of pool.

    Args:
        space: The action space; a copy is drawn from.
        seed: Of the pool.
        env_index: Which environment it is for.
    """

    def __init__(self, space: gym.Space, seed: int, env_index: int) -> None:
        """Start with no steps to play."""
        self.left = 0
        self._space = copy.deepcopy(space)
        self._space.seed(derived_seed(seed, env_index))

    def draw(self) -> Mapping[str, Any]:
        """The next action; one step less is left."""
        self.left -= 1
        return self._space.sample()


def derived_seed(*entropy: int) -> int:
    """A seed of 31 bits that belongs to these numbers."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
