"""A hunter with a player's limits, whose play can be learned from the frames alone.

The scripted hunter knows every animal around it and turns at once. A network that imitates it sees
neither the animals behind nor the reason for a sudden turn, and a clone of faultless play never
sees a mistake corrected. This hunter sees what the frame shows, with a delay, turns smoothly and
with small errors, and rests now and then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.human_limits import HumanHand, HumanLimits
from rllib_minestudio.env.agents.hunter import BODIES, EYE_HEIGHT, ScriptedHunter
from rllib_minestudio.env.minestudio_env import MineStudioEnv

VIEW_DEGREES = (102.4, 70.0)
"""Width and height of the view: 70 degrees high at 16:9, whatever the size of the frame."""

_SEARCH_PITCH = 8.0  # degrees down, which shows the ground and what stands on it
_TURNING_TICKS = 60  # a full turn, and a little more
_WALKING_TICKS = 30  # then a walk, to search elsewhere


class HumanlikeHunter:
    """Hunts like `ScriptedHunter`, within `HumanLimits`.

    It hunts the prey of an episode's task, too. One seed, and one environment's episode, give the
    same play every time.
    """

    def __init__(
        self,
        prey: Sequence[str] = tuple(BODIES),
        seed: int | None = None,
        limits: HumanLimits | None = None,
    ) -> None:
        """Choose what to hunt and how well.

        Args:
            prey: Names of mobs among `hunter.BODIES`; of episodes whose task names none.
            seed: Of everything random; None draws one.
            limits: The imperfections.

        Raises:
            InvalidOptionsError: If a name is not among them; lists all problems.
        """
        self._hunter = ScriptedHunter(prey)
        self._limits = limits or HumanLimits()
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forget the previous episode."""
        self._hunter.reset()
        reaction = self._limits.draw_reaction(self._random)
        self._seen: deque[list[dict[str, Any]]] = deque(maxlen=reaction + 1)
        self._hand = HumanHand(self._limits, self._random)
        self._searching_ticks = 0
        self._search_side = 1.0

    def take_over(self) -> None:
        """Begin to look around in the middle of an episode that another began."""
        self.reset()

    def act(self, env: gym.Env[Any, Any]) -> dict[str, int]:
        """Return the next agent action for a `MineStudioEnv` or a wrapped one.

        Raises:
            InvalidOptionsError: If the episode's task has a prey that is not among `BODIES`.
        """
        base = env.unwrapped
        if not isinstance(base, MineStudioEnv):
            raise TypeError(f"HumanlikeHunter plays MineStudioEnv; got {type(base).__name__}.")
        self._hunter.note_task(base.sim.obs)
        mobs = base.backend.mobs_near(self._limits.sight)
        keys = self.keys(base.sim.info["player_pos"], mobs)
        buttons, camera = base.sim.mapper.from_env(keys)
        return {"buttons": buttons, "camera": camera}

    def keys(self, player: dict[str, float], mobs: list[dict[str, Any]]) -> EnvAction:
        """Return the keys to press, given the player's pose and the mobs around it."""
        self._seen.append(
            [mob for mob in mobs if mob["name"] in self._hunter.prey and _in_view(player, mob)]
        )
        # One's own turning is felt at once; what the animals do is seen late.
        action = self._hunter.keys(player, self._seen[0])
        found = bool(self._seen[0])
        wanted = np.asarray(action["camera"], np.float64) * self._limits.turn_gain
        if not found:
            wanted = self._search(action, player)
        self._searching_ticks = 0 if found else self._searching_ticks + 1
        if self._hand.rests():
            action, wanted = {}, np.zeros(2)
        action["camera"] = self._hand.turn(wanted)
        return action

    def _search(self, action: EnvAction, player: dict[str, float]) -> np.ndarray:
        """Look all around, then walk on; return the speed of turning that is wanted."""
        phase = self._searching_ticks % (_TURNING_TICKS + _WALKING_TICKS)
        if self._searching_ticks == 0:
            self._search_side = float(self._random.choice((-1.0, 1.0)))
        level = (_SEARCH_PITCH - player["pitch"]) * self._limits.turn_gain
        if phase < _TURNING_TICKS:
            return np.array([level, self._search_side * self._limits.search_speed])
        action["forward"] = 1
        return np.array([level, 0.0])


def _in_view(player: dict[str, float], mob: dict[str, Any]) -> bool:
    """Whether the middle of an animal is inside the frame; what stands in between is not asked."""
    dx, dz = mob["x"] - player["x"], mob["z"] - player["z"]
    dy = mob["y"] + BODIES[mob["name"]].height / 2 - (player["y"] + EYE_HEIGHT)
    yaw = math.degrees(math.atan2(-dx, dz)) - player["yaw"]
    pitch = math.degrees(math.atan2(-dy, math.hypot(dx, dz))) - player["pitch"]
    width_degrees, height_degrees = VIEW_DEGREES
    yaw = (yaw + 180.0) % 360.0 - 180.0
    return abs(yaw) < width_degrees / 2 and abs(pitch) < height_degrees / 2
