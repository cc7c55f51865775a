"""What is seen of an open screen: all that drawing one takes."""

from __future__ import annotations

from typing import NamedTuple

from rllib_minestudio.env.voxel.items.inventory import ItemStack


class ScreenView(NamedTuple):
    """An open screen at one moment.

    Attributes:
        kind: "inventory", "crafting_table", "furnace" or "chest".
        stacks: One per slot, in the order of `geometry.LAYOUTS[kind].slots`.
        cursor: Pixel (x, y) of the window that the cursor's tip is on; a cursor pushed to the
            right or lower edge is one beyond the last pixel.
        carried: What the cursor carries; item 0 if nothing.
        burn: In a furnace, the share of the fuel's burning time that is left, 0 to 1.
        progress: In a furnace, the share of the smelting that is done, 0 to 1.
    """

    kind: str
    stacks: tuple[ItemStack, ...]
    cursor: tuple[int, int]
    carried: ItemStack
    burn: float = 0.0
    progress: float = 0.0
