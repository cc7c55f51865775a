"""A stage to draw on: a floating stone floor with a tower, anywhere in the world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID, DroppedItems, Mobs
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.screens.menu import ScreenView
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.world.world import World

FLOOR = 96
NOON, MIDNIGHT = 6000, 18000
HALF_FLOOR = 24


class Stage:
    """World, player, mobs and items around a stone floor centred on the column (x, z)."""

    def __init__(self, x: int = 0, z: int = 0) -> None:
        self.x, self.z = x, z
        self.world = World()
        self.world.reset(1)
        self.world.load_around(x, z)
        self.fill((-HALF_FLOOR, HALF_FLOOR), (-1, 0), (-HALF_FLOOR, HALF_FLOOR), "stone")
        self.player, self.mobs, self.items = Player(), Mobs(), DroppedItems()
        self.stand()

    def fill(
        self, xs: tuple[int, int], ys: tuple[int, int], zs: tuple[int, int], block: str
    ) -> None:
        """Fill half-open ranges relative to the middle of the floor."""
        self.world.fill(
            (self.x + xs[0], self.x + xs[1]),
            (FLOOR + ys[0], FLOOR + ys[1]),
            (self.z + zs[0], self.z + zs[1]),
            BLOCK_ID[block],
        )

    def stand(self, yaw: float = 0.0, pitch: float = 0.0) -> None:
        """Put the player on the middle of the floor."""
        self.player.position[:] = self.x + 0.5, FLOOR, self.z + 0.5
        self.player.yaw, self.player.pitch = yaw, pitch

    def add_mob(self, kind: str, ahead: float, side: float = 0.0, **values: float) -> None:
        """Add a mob `ahead` blocks to the south of the player's place, showing its flank."""
        row = self.mobs.append()
        row["kind"] = MOB_KIND_ID[kind]
        row["position"] = self.x + 0.5 + side, FLOOR, self.z + 0.5 + ahead
        row["yaw"] = np.pi / 2
        for name, value in values.items():
            row[name] = value

    def add_item(self, item: str, ahead: float) -> None:
        """Add a dropped item `ahead` blocks to the south."""
        row = self.items.append()
        row["item"] = ITEM_ID[item]
        row["quantity"] = 1
        row["position"] = self.x + 0.5, FLOOR, self.z + 0.5 + ahead

    def hold(self, item: str) -> None:
        """Put an item into the first hotbar slot."""
        self.player.inventory.set(0, ITEM_ID[item], 1)

    def draw(
        self,
        renderer: Renderer,
        daytime: float = NOON,
        out: NDArray[np.uint8] | None = None,
        screen: ScreenView | None = None,
        ticks: int = 0,
    ) -> NDArray[np.uint8]:
        """Draw a frame."""
        return renderer.draw(
            self.world,
            self.player,
            self.mobs,
            self.items,
            self.player.inventory,
            daytime,
            out,
            screen=screen,
            ticks=ticks,
        )
