"""Inventory, Cursor, Voxels, PrevAction and MaskActions: callbacks that add to what is observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import KEYS, EnvAction, check_env_action
from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.voxel.contract import voxels_box
from rllib_minestudio.errors import InvalidActionError, did_you_mean
from rllib_minestudio.foundation.options import Problems, is_integer, is_list

INVENTORY = "inventory"
"""Key of the observation."""

MOST = 64
"""The largest count; more is reported as this many."""


class InventoryCallback(MinecraftCallback):
    """Adds the player's counts of some items to the observation, under `inventory`.

    It is a vector, (n,) float32, with one number per item in the given order: the count divided by
    64, at most 1. Items on the cursor or in the grid of an open screen are not counted, nor are
    worn ones. MineRL's tasks such as `ObtainDiamond` give agents the same information (Guss et al.
    2019, "MineRL"). In a small frame, the numbers in the slots cannot be read.
    """

    def __init__(self, items: Sequence[str]) -> None:
        """Check and keep the argument.

        Args:
            items: Names of items. Example: `[oak_log, oak_planks, stick]`.

        Raises:
            InvalidOptionsError: If it is not a list of different items of Minecraft 1.16.
        """
        problems = Problems()
        if isinstance(items, str) or not isinstance(items, Sequence) or not items:
            problems.add("items", items, "must be a list of items")
        else:
            for name in items:
                if not isinstance(name, str) or name not in STACK_SIZES:
                    hint = did_you_mean(str(name), STACK_SIZES)
                    problems.messages.append(f"items: Minecraft 1.16 has no item {name!r}.{hint}")
            if len(set(map(str, items))) < len(items):
                problems.add("items", list(items), "must name every item once")
        problems.raise_if_any()
        self.items = tuple(items)

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of the counts."""
        return {INVENTORY: gym.spaces.Box(0.0, 1.0, (len(self.items),), np.float32)}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Add the counts at the start of the episode."""
        return {**obs, INVENTORY: self._shares(info)}, info

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Add the counts after the step."""
        return {**obs, INVENTORY: self._shares(info)}, reward, terminated, truncated, info

    def _shares(self, info: Info) -> np.ndarray:
        counts = dict.fromkeys(self.items, 0)
        for stack in info["inventory"].values():
            if stack["type"] in counts:
                counts[stack["type"]] += stack["quantity"]
        return np.minimum(np.array(list(counts.values()), np.float32) / MOST, 1.0)

    def __repr__(self) -> str:
        return f"InventoryCallback({list(self.items)!r})"


# ------------------------------------------------------------------------------------------- Cursor
# The position of an open screen's cursor, as part of the observation.

CURSOR = "cursor"
"""Key of the observation."""

_DEGREES_TO_EDGE = np.array([180 * 360 / 2400, 320 * 360 / 2400])
"""Turn of the camera, (pitch, yaw), from the middle of the 640 x 360 window to its edges: MineRL's
cursor moves by 2400/360 pixels per degree."""


class CursorCallback(MinecraftCallback):
    """Adds the position of a screen's cursor to the observation, under `cursor`.

    It is (open, right, down), (3,) float32: 1 while a screen is open, and the offset from the
    middle of the window, whose edges are -1 and 1. All are zero while no screen is open.

    The position is what a player's hand knows, not what the game reports: every screen opens with
    the cursor in the middle, and from there the camera part of each action moves it. Callbacks that
    change actions, such as `MaskActions`, must be listed before this one.
    """

    def __init__(self) -> None:
        self._open = False
        self._place = np.zeros(2)
        self._turn = np.zeros(2)

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of the position."""
        low = np.array([0, -1, -1], np.float32)
        return {CURSOR: gym.spaces.Box(low, np.ones(3, np.float32))}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Begin with the cursor in the middle."""
        self._open = False
        return {**obs, CURSOR: self._followed(info)}, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Remember the mouse's movement."""
        self._turn = np.asarray(action.get("camera", (0.0, 0.0)), np.float64).reshape(2)
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Add the position."""
        return {**obs, CURSOR: self._followed(info)}, reward, terminated, truncated, info

    def _followed(self, info: Info) -> np.ndarray:
        """Return the position after the step that led to `info`."""
        was_open, self._open = self._open, bool(info["isGuiOpen"])
        if not self._open:
            return np.zeros(3, np.float32)
        if was_open:
            self._place = np.clip(self._place + self._turn / _DEGREES_TO_EDGE, -1, 1)
        else:
            self._place = np.zeros(2)
        down, right = self._place
        return np.array([1, right, down], np.float32)


# ------------------------------------------------------------------------------------------- Voxels
# The blocks around the player, for other callbacks.

VOXELS = "voxels"
"""Key of the request in an action, and of the answer in the info."""

DEFAULT_BOX = (-7, 7, -7, 7, -7, 7)
"""MineStudio's: x0, x1, y0, y1, z0, z1 relative to the player."""


class VoxelsCallback(MinecraftCallback):
    """Requests the blocks in a box around the player.

    They are in the info of every step, under `voxels`: a list of `{"type": "obsidian", "x": 12,
    "y": 64, "z": -3}`, in world coordinates. Only callbacks see them: the environment's infos
    contain neither voxels nor frames. A reset reports none.
    """

    def __init__(self, voxels_ins: Sequence[int] = DEFAULT_BOX) -> None:
        """Check and keep the box.

        Args:
            voxels_ins: x0, x1, y0, y1, z0, z1 relative to the player's feet, in blocks, both ends
                included.

        Raises:
            InvalidOptionsError: If it is not such a box, is too large, or is all zeros, which the
                game takes for no request.
        """
        problems = Problems()
        if not is_list(voxels_ins) or not all(map(is_integer, voxels_ins)):
            problems.add("voxels_ins", voxels_ins, "must be six integers, x0, x1, y0, y1, z0, z1")
        else:
            try:
                if voxels_box(voxels_ins) is None:
                    rule = "must not be all zeros, with which the game tells no blocks"
                    problems.add("voxels_ins", voxels_ins, rule)
            except ValueError as error:
                problems.messages.append(f"voxels_ins: {error}.")
        problems.raise_if_any()
        self.voxels_ins = list(voxels_ins)

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Return the action with the request."""
        return {**action, VOXELS: list(self.voxels_ins)}

    def __repr__(self) -> str:
        return f"VoxelsCallback({self.voxels_ins!r})"


# ---------------------------------------------------- PrevAction: the last action as an observation

ENV_PREV_ACTION = "env_prev_action"
"""Key of the observation."""

_CAMERA = "camera"
_MAX_DEGREES = 180.0
"""Largest turn in MineStudio's action space, either way."""


class PrevActionCallback(MinecraftCallback):
    """Adds the previous action, which led to the observation, under `env_prev_action`.

    It is a mapping with a number for each key, 0 or 1, () int64, and an array for `camera`, (pitch,
    yaw) in degrees, (2,) float64; all are zero after a reset. Every step has all keys, whereas
    MineStudio's callback has only those of the action. It holds the agent's action as changed by
    the callbacks listed before this one, so list `MaskActions` first.

    Degrees beyond 180, which the game accepts from `MaskActions` and from callers who send keys,
    are reported as 180.
    """

    def __init__(self) -> None:
        self.prev_action: EnvAction = {}

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of an action."""
        keys: dict[str, gym.Space] = {key: gym.spaces.Discrete(2) for key in KEYS}
        camera = gym.spaces.Box(-_MAX_DEGREES, _MAX_DEGREES, (2,), np.float64)
        return {ENV_PREV_ACTION: gym.spaces.Dict({**keys, _CAMERA: camera})}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Add an action that does nothing."""
        self.prev_action = {}
        return {**obs, ENV_PREV_ACTION: _told({})}, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Remember the action."""
        self.prev_action = action
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Add the action."""
        obs = {**obs, ENV_PREV_ACTION: _told(self.prev_action)}
        return obs, reward, terminated, truncated, info


def _told(action: EnvAction) -> dict[str, Any]:
    """Return every key of an action, pressed or not, and its camera, as NumPy types."""
    # Callbacks may have inserted arrays of one element.
    told: dict[str, Any] = {key: np.int64(np.asarray(action.get(key, 0)).item()) for key in KEYS}
    camera = np.asarray(action.get(_CAMERA, (0.0, 0.0)), np.float64).reshape(2)
    told[_CAMERA] = np.clip(camera, -_MAX_DEGREES, _MAX_DEGREES)
    return told


# -------------------------------------------------------------------------------------- MaskActions
# Keys held at fixed values, whatever the agent does.


class MaskActionsCallback(MinecraftCallback):
    """Overrides parts of every environment action, such as `inventory=0`."""

    def __init__(self, **action_settings: Any) -> None:
        """Check and keep the overrides.

        Args:
            **action_settings: Key name -> 0 or 1; `camera` -> (pitch, yaw) in degrees.

        Raises:
            InvalidOptionsError: If a key is unknown or a value impossible; lists all problems.
        """
        problems = Problems()
        for key, value in action_settings.items():
            if key not in KEYS and key != "camera":
                problems.unknown("key", key, (*KEYS, "camera"))
                continue
            try:
                check_env_action({key: value})
            except InvalidActionError as error:
                problems.messages.append(str(error))
        problems.raise_if_any()
        self.action_settings = action_settings

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Return the action with the overrides in place."""
        return {**action, **self.action_settings}

    def __repr__(self) -> str:
        return f"MaskActionsCallback(**{self.action_settings!r})"
