"""The T-maze: the smallest task that cannot be solved without a memory (Bakker 2002).

A sign at the start of a corridor shows which way to turn at its end, where it is no longer seen::

                         left
    sign                  |
     S . . . . . . . . . .J
                          |
                        right
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import SUCCESS
from rllib_minestudio.foundation.options import broken_rule, is_integer

FORWARD, LEFT, RIGHT = range(3)
"""The actions."""

LONGEST_CORRIDOR = 10_000
PATIENCE = 3
"""An episode is truncated after this many times the steps that it needs."""


class TMaze(gym.Env[NDArray[np.float32], int]):
    """A corridor with a sign at its start and a junction at its end.

    Observations are three numbers: the sign (1: left, -1: right), which is 0 except in the first
    observation; whether the agent is in the corridor; whether it is at the junction. Forward moves
    on by one in the corridor, and nothing moves at the junction; a turn ends the episode at the
    junction, and does nothing in the corridor.

    The return is 1 for the turn that the sign showed, and 0 for the other or for none in time. So
    the best return is 1, and no policy without a memory can expect more than 0.5.

    Config:
        length: Steps from the sign to the junction (default 20).
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Build the maze.

        Raises:
            InvalidOptionsError: The length is not an integer from 1 to 10,000.
        """
        length = (config or {}).get("length", 20)
        if not is_integer(length) or not 1 <= length <= LONGEST_CORRIDOR:
            rule = f"must be an integer from 1 to {LONGEST_CORRIDOR}"
            raise InvalidOptionsError(broken_rule("length", length, rule))
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self._length = length

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Put the agent before a new sign."""
        super().reset(seed=seed)
        self._sign = int(self.np_random.choice((1, -1)))
        self._place = self._steps = 0
        return self._observe(sign=self._sign), {}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move forward, or turn."""
        self._steps += 1
        is_at_junction = self._place == self._length
        if action == FORWARD:
            self._place = min(self._place + 1, self._length)
        elif is_at_junction:
            is_right = self._sign == (1 if action == LEFT else -1)
            return self._observe(), float(is_right), True, False, {SUCCESS: is_right}
        is_late = self._steps >= PATIENCE * (self._length + 1)
        return self._observe(), 0.0, False, is_late, {SUCCESS: False} if is_late else {}

    def _observe(self, sign: int = 0) -> NDArray[np.float32]:
        is_at_junction = self._place == self._length
        return np.array([sign, not is_at_junction, is_at_junction], np.float32)
