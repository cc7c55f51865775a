"""The containers of a world: what lies in furnaces and chests, by the block's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY
from rllib_minestudio.env.voxel.screens.containers import Container
from rllib_minestudio.env.voxel.screens.smelting import Furnace
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, SCREENS
from rllib_minestudio.env.voxel.world.world import World

Place = tuple[int, int, int]

CHEST_SIZE = 27

_MAKERS: dict[str, Callable[[], Container]] = {
    "furnace": Furnace,
    "chest": lambda: Container(CHEST_SIZE),
}
"""How a block's container is made, by the block's name."""

SCREEN_BLOCKS: dict[int, str] = {BLOCK_ID[kind]: kind for kind in SCREENS}
"""Kind of screen that using a block opens, by block id."""


class BlockEntities:
    """The containers of all furnaces and chests that were ever opened.

    They stay when the land around them is left; a furnace goes on when it is loaded again.
    """

    def __init__(self) -> None:
        """Begins with none."""
        self._containers: dict[Place, tuple[int, Container]] = {}
        self._furnaces: dict[Place, Furnace] = {}
        self._changes = 0

    def clear(self) -> None:
        """Forgets all."""
        self._containers.clear()
        self._furnaces.clear()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._containers)

    def __iter__(self) -> Iterator[Container]:
        """All containers."""
        return (container for _, container in self._containers.values())

    def of_block(self, block: int) -> Iterator[tuple[Place, Container]]:
        """The places and containers of all blocks with this block id."""
        for place, (kind, container) in self._containers.items():
            if kind == block:
                yield place, container

    def at(self, place: Place, block: int) -> Container | None:
        """The container of the block at a place, made if it has none yet.

        Args:
            place: Where the block is.
            block: Its block id.

        Returns:
            The container; None if the block has none.
        """
        kind = SCREEN_BLOCKS.get(block)
        if kind not in _MAKERS:
            return None
        if place not in self._containers:
            container = _MAKERS[kind]()
            self._containers[place] = block, container
            if isinstance(container, Furnace):
                self._furnaces[place] = container
        return self._containers[place][1]

    def remove(self, place: Place) -> tuple[list[ItemStack], Furnace | None]:
        """Takes the container of a block that is about to go.

        Returns:
            What lay in it, and the furnace, if it was one.
        """
        _, container = self._containers.pop(place, (0, None))
        furnace = self._furnaces.pop(place, None)
        stacks = container.stacks if container else []
        return [stack for stack in stacks if stack.item != EMPTY], furnace

    def forget_replaced(self, world: World) -> None:
        """Forgets containers whose block was replaced by a command, with what lay in them."""
        if not self._containers or world.changes == self._changes:
            return
        self._changes = world.changes
        for place, (block, _) in list(self._containers.items()):
            if world.is_loaded(place[0], place[2]) and world.block_at(*place) != block:
                self.remove(place)

    def tick(self, world: World) -> None:
        """Advances the furnaces of the loaded land by one tick."""
        for place, furnace in self._furnaces.items():
            if not furnace.is_idle and world.is_loaded(place[0], place[2]):
                furnace.tick()
