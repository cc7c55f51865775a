"""Voxels: the blocks around the player, for callbacks that look at them."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import MinecraftCallback, Sim
from rllib_minestudio.env.voxel.observed_boxes import voxels_box
from rllib_minestudio.option_checks import Problems, is_integer, is_list

VOXELS = "voxels"
"""Key of the request in an action, and of the answer in the info."""

DEFAULT_BOX = (-7, 7, -7, 7, -7, 7)
"""MineStudio's: x0, x1, y0, y1, z0, z1 relative to the player."""


class VoxelsCallback(MinecraftCallback):
    """Asks the game for the blocks in a box around the player.

    They are in the info of every step, under `voxels`: a list of `{"type": "obsidian", "x": 12,
    "y": 64, "z": -3}`, in world coordinates. Only callbacks see them: the environment passes on
    neither voxels nor frames in its infos. A reset tells none.
    """

    def __init__(self, voxels_ins: Sequence[int] = DEFAULT_BOX) -> None:
        """Check and keep the box.

        Args:
            voxels_ins: x0, x1, y0, y1, z0, z1 relative to the player's feet, in blocks, both ends
                included.

        Raises:
            InvalidOptionsError: If it is no such box, too large, or all zeros, which the game
                takes for no request.
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
        """Show the box."""
        return f"VoxelsCallback({self.voxels_ins!r})"
