"""Questions about the world that no observation answers: for judges and scripted solutions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.world.addressing import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, BLOCKS
from rllib_minestudio.env.voxel.world.worldgen import BIOMES, biome_at

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.game_state import GameState
    from rllib_minestudio.env.voxel.world.world import World

Corner = tuple[int, int, int]
"""A block's x, y and z."""

_HIGHEST = HEIGHT - 1
_BIOME_STEP = 8
"""Blocks between the places where a biome is looked for."""
_INSIDE = ((0, 0), (4, 0), (-4, 0), (0, 4), (0, -4))
"""Columns, from one, that have the same biome if it is well inside."""


class SurveyedBox:
    """The blocks of a box as they are whenever one asks."""

    def __init__(self, world: World, low: Corner, high: Corner) -> None:
        """Work out once where the blocks of the box are kept; see `Survey.box`."""
        self._world = world
        self._corners = [(x, z) for x in (low[0], high[0]) for z in (low[2], high[2])]
        grid: Any = np.ogrid[low[0] : high[0] + 1, low[1] : high[1] + 1, low[2] : high[2] + 1]
        x, y, z = grid
        self._places = np.asarray(block_index(x, y.clip(0, _HIGHEST), z))
        layers = y.ravel()
        self._outside = np.flatnonzero((layers < 0) | (layers > _HIGHEST))

    def block_ids(self) -> NDArray[np.uint16] | None:
        """The blocks now.

        Returns:
            Block ids, uint16 [x, y, z], of what is outside of the world's height that of air; None
            while a part of the box is not loaded, in which nothing can change then.
        """
        if not all(self._world.is_loaded(x, z) for x, z in self._corners):
            return None
        found = self._world.blocks.take(self._places)
        if self._outside.size:
            found[:, self._outside] = AIR
        return found


class Survey:
    """Answers questions about a game as it is now."""

    def __init__(self, state: GameState) -> None:
        """Keep the game's state, which is only read."""
        self._state = state

    @property
    def changes(self) -> int:
        """Grows whenever a block changes, so that others can tell that none has."""
        return self._state.world.changes

    def box(self, low: Corner, high: Corner) -> SurveyedBox:
        """A box whose blocks are asked for again and again.

        Args:
            low: The corner with the lowest coordinates.
            high: The corner with the highest; both are in the box.
        """
        return SurveyedBox(self._state.world, low, high)

    def body_blocks(self) -> tuple[int, int]:
        """Ids of the blocks that the player's feet and eyes are in."""
        player, world = self._state.player, self._state.world
        x, y, z = player.position.tolist()
        column = int(x // 1), int(z // 1)
        feet, eyes = (
            world.block_at(column[0], int(level // 1), column[1])
            for level in (y, y + player.eye_height)
        )
        return feet, eyes

    def chest_items(self, centre: Corner, reach: int) -> Mapping[str, int]:
        """What lies in the chests around a place.

        Args:
            centre: The place.
            reach: How far chests may be from it along each axis, in blocks.

        Returns:
            Quantities by the item's name.
        """
        found: Counter[str] = Counter()
        for place, container in self._state.block_entities.of_block(BLOCK_ID["chest"]):
            if all(abs(a - b) <= reach for a, b in zip(place, centre, strict=True)):
                for stack in container.stacks:
                    if stack.quantity:
                        found[ITEMS[stack.item].name] += stack.quantity
        return found

    def block_name(self, x: int, y: int, z: int) -> str:
        """Name of the block at a place; "air" outside of the world's height and of loaded land."""
        return BLOCKS[self._state.world.block_at(x, y, z)].name

    def places_of(self, names: Collection[str], radius: int) -> list[Corner]:
        """The places of loaded blocks of these names in a cube around the player, in a fixed order.

        Args:
            names: Names of blocks; one that there is not is nowhere.
            radius: Half the cube's side in blocks.
        """
        wanted = [BLOCK_ID[name] for name in names if name in BLOCK_ID]
        x, y, z = self._feet()
        low = x - radius, y - radius, z - radius
        blocks = self.box(low, (x + radius, y + radius, z + radius)).block_ids()
        if blocks is None:
            return []
        found = np.argwhere(np.isin(blocks, wanted)) + np.array(low)
        return [(i, j, k) for i, j, k in found.tolist()]

    def items_near(self, radius: float) -> list[dict[str, Any]]:
        """The dropped items within `radius` blocks of the player.

        Returns:
            Dictionaries with name and x, y, z (bottom centre).
        """
        items, feet = self._state.items, self._state.player.position.tolist()
        columns = items.item.tolist(), items.quantity.tolist(), items.position.tolist()
        return [
            {"name": ITEMS[item].name, "x": place[0], "y": place[1], "z": place[2]}
            for item, quantity, place in zip(*columns, strict=True)
            if quantity and math.dist(place, feet) <= radius
        ]

    def nearest_biome(self, name: str, radius: int) -> tuple[int, int] | None:
        """The nearest column (x, z) well inside a biome, loaded or not, around the player.

        Args:
            name: One of `BIOMES`.
            radius: Blocks along each axis; columns are looked at 8 blocks apart.
        """
        x, _, z = self._feet()
        wanted, seed = BIOMES.index(name), self._state.world.seed
        steps = range(-radius, radius + 1, _BIOME_STEP)
        found = [
            (x + i, z + k)
            for i in steps
            for k in steps
            if all(biome_at(x + i + di, z + k + dk, seed) == wanted for di, dk in _INSIDE)
        ]
        return min(found, key=lambda column: math.dist(column, (x, z)), default=None)

    def _feet(self) -> Corner:
        """The block that the player's feet are in."""
        x, y, z = (math.floor(v) for v in self._state.player.position.tolist())
        return x, y, z
