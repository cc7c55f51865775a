"""Stacks that belong to a block or to a grid."""

from __future__ import annotations

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS

NOTHING = ItemStack(EMPTY, 0, 0)
"""What an empty slot holds."""


class Container:
    """A row of slots, read and written as those of an `Inventory` are."""

    def __init__(self, size: int) -> None:
        """Makes `size` empty slots."""
        self.stacks: list[ItemStack] = [NOTHING] * size

    def __len__(self) -> int:
        """How many slots there are."""
        return len(self.stacks)

    def __getitem__(self, slot: int) -> ItemStack:
        """The stack in `slot`."""
        return self.stacks[slot]

    def set(self, slot: int, item: int, quantity: int, damage: int = 0) -> None:
        """Puts a stack in `slot`, replacing what was there; a quantity of 0 empties the slot."""
        self.stacks[slot] = ItemStack(item, quantity, damage) if quantity > 0 else NOTHING


def is_same(one: ItemStack, other: ItemStack) -> bool:
    """Whether two stacks are of the same item, equally worn, and so could lie in one slot."""
    return one.item == other.item and one.damage == other.damage


def room_beside(stack: ItemStack) -> int:
    """How many more of its item a stack has room for."""
    return max(ITEMS[stack.item].max_stack - stack.quantity, 0)
