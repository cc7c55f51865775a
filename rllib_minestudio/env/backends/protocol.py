"""The interface of backends: the game as the simulator and its callbacks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from rllib_minestudio.env.actions import KEYS, EnvAction
from rllib_minestudio.env.voxel.game.statistics import STATISTICS

RawObs = dict[str, Any]
"""A raw observation: `pov`, the frame, uint8 (H, W, 3), and the entries of `OBSERVED`."""
RawStep = tuple[RawObs, float, bool, dict[str, Any]]
"""Observation, reward (0 unless the mission pays), done (the player has died), info."""

OBSERVED = frozenset({"inventory", "equipped_items", "player_pos", "is_gui_open", *STATISTICS})
"""Keys of the raw observation besides the frame, as in MineStudio; everything else is in the raw
info. `MinecraftSim` merges both into one info, but callbacks that step the game themselves look
here."""


NO_SNAPSHOTS = "engine: minecraft has no snapshots, only engine: voxel."


class KeySpace:
    """A backend's action space, for callbacks that need an empty action."""

    def no_op(self) -> EnvAction:
        """Return a fresh action that does nothing."""
        action: EnvAction = dict.fromkeys(KEYS, 0)
        action["camera"] = np.zeros(2)
        return action


class Backend(Protocol):
    """What callbacks may use as `sim.env`, as in MineStudio, and what the simulator needs."""

    action_space: KeySpace

    def begin_episode(self) -> bool:
        """Note that an episode is about to begin; return whether it needs a hard reset."""

    def reset(self) -> RawObs:
        """Start a new world from the seed; statistics start at zero."""

    def snapshot(self) -> bytes:
        """Return the whole game as bytes.

        Raises:
            InvalidOptionsError: If this engine has no snapshots.
        """

    def restore(self, snapshot: bytes) -> None:
        """Go on with a saved game.

        Raises:
            InvalidOptionsError: If this engine has no snapshots.
            SnapshotError: If it is damaged, or of another version; the game is then unchanged.
        """

    def step(self, action: Mapping[str, Any]) -> RawStep:
        """Play one game tick (1/20 s) with the given keys; a missing key is not pressed.

        Besides keys and `camera`, an action may hold `chat`, a command to execute before the tick,
        and `voxels` and `mobs`: x0, x1, y0, y1, z0, z1 of a box around the player, both ends
        included, whose blocks or mobs the info is to list.
        """

    def execute_cmd(self, command: str) -> RawStep:
        """Send a chat command; takes one game tick without any key pressed."""

    def noop_action(self) -> EnvAction:
        """Return an action that does nothing."""

    def seed(self, seed: int) -> None:
        """Set the seed of the worlds of future hard resets."""

    def image(self, raw_obs: Mapping[str, Any]) -> np.ndarray:
        """Return the frame of a raw observation at the size of observations."""

    def render(self, size: tuple[int, int]) -> np.ndarray:
        """Return the current view, uint8 (height, width, 3); `size` is (width, height)."""

    def mobs_near(self, radius: float) -> list[dict[str, Any]]:
        """Return name, x, y, z, yaw, health and distance of each mob within `radius` blocks."""

    def item_names(self) -> list[str]:
        """Return the names of all of this game's items, in a fixed order."""

    def close(self) -> None:
        """End the game; may be called twice."""
