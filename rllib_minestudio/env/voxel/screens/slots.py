"""The kinds of slots: what each accepts, how much, and the side effects of taking from it."""

from __future__ import annotations

from typing import Protocol

from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID, ITEMS, Inventory, ItemStack
from rllib_minestudio.env.voxel.screens.crafting import (
    BURN_TICKS,
    FUEL,
    OUTPUT,
    REMAINDERS,
    Furnace,
    craft,
    rows,
)
from rllib_minestudio.env.voxel.screens.enchanting import LAPIS
from rllib_minestudio.env.voxel.screens.geometry import Container, is_same

WORN_AT: dict[int, str] = {ITEM_ID[row["item"]]: row["place"] for row in rows("worn.csv")}
"""Where an item belongs, by item id: "head", "chest", "legs", "feet" or "offhand"."""

_BUCKET = ITEM_ID["bucket"]


class MenuOwner(Protocol):
    """The player that a menu belongs to.

    Attributes:
        inventory: What the player carries.
    """

    inventory: Inventory

    @property
    def level(self) -> int:
        """The level of its experience."""

    @property
    def enchanting_seed(self) -> int:
        """What the offers of enchanting tables follow from."""

    def pay_for_enchantment(self, levels: int) -> None:
        """Take levels of experience for an enchantment, and count it; the seed changes."""

    def throw(self, stack: ItemStack, counted: bool) -> None:
        """Throw a stack into the world; `counted` if the player meant to."""

    def count_crafted(self, item: int, quantity: int) -> None:
        """Count items that were crafted or smelted, when they are taken."""

    def earn(self, furnace: Furnace) -> None:
        """Collect the experience stored in a furnace."""


class Slot:
    """A slot of a menu, which shows one slot of a container.

    Attributes:
        container: The container.
        is_collected: Whether a double click elsewhere takes from it.
    """

    is_collected = True

    def __init__(self, container: Container | Inventory, index: int) -> None:
        self.container = container
        self.index = index

    @property
    def stack(self) -> ItemStack:
        """The stack in it."""
        return self.container[self.index]

    def put(self, stack: ItemStack) -> None:
        """Replace the stack in it."""
        self.container.set(self.index, *stack)

    def accepts(self, stack: ItemStack) -> bool:
        """Whether a stack may be put into it."""
        return True

    def limit(self, stack: ItemStack) -> int:
        """The largest quantity of a stack that may be put into it."""
        return ITEMS[stack.item].max_stack

    def take(self, quantity: int) -> ItemStack:
        """Take up to `quantity` out of it; the caller must then call `taken`."""
        stack = self.stack
        moved = min(quantity, stack.quantity)
        self.put(stack._replace(quantity=stack.quantity - moved))
        return stack._replace(quantity=moved)

    def note(self, quantity: int, by_swap: bool = False) -> None:
        """Record that `quantity` items leave it other than by `take`."""

    def taken(self, owner: MenuOwner, stack: ItemStack) -> None:
        """Apply the side effects of having taken `stack` out of it."""


class WornSlot(Slot):
    """A slot for one piece of armour."""

    def __init__(self, inventory: Inventory, index: int, place: str) -> None:
        super().__init__(inventory, index)
        self._place = place

    def accepts(self, stack: ItemStack) -> bool:
        """Whether the stack is worn here."""
        return WORN_AT.get(stack.item) == self._place

    def limit(self, stack: ItemStack) -> int:
        """One piece."""
        return 1


class OneItemSlot(Slot):
    """A slot for one item of any kind."""

    def limit(self, stack: ItemStack) -> int:
        """One item."""
        return 1


class LapisSlot(Slot):
    """An enchanting table's slot for lapis lazuli."""

    def accepts(self, stack: ItemStack) -> bool:
        """Whether it is lapis lazuli."""
        return stack.item == LAPIS


class FuelSlot(Slot):
    """A furnace's slot for fuel, and for a bucket that a wet sponge fills."""

    def __init__(self, furnace: Furnace) -> None:
        super().__init__(furnace, FUEL)

    def accepts(self, stack: ItemStack) -> bool:
        """Whether the stack burns or is a bucket."""
        return stack.item in BURN_TICKS or stack.item == _BUCKET

    def limit(self, stack: ItemStack) -> int:
        """One bucket, or a stack."""
        return 1 if stack.item == _BUCKET else super().limit(stack)


class _OutputSlot(Slot):
    """A slot that only yields items, which count as crafted."""

    def __init__(self, container: Container, index: int) -> None:
        super().__init__(container, index)
        self._leaving = 0

    def accepts(self, stack: ItemStack) -> bool:
        return False

    def take(self, quantity: int) -> ItemStack:
        self._leaving += min(quantity, self.stack.quantity)
        return super().take(quantity)

    def note(self, quantity: int, by_swap: bool = False) -> None:
        self._leaving += quantity

    def taken(self, owner: MenuOwner, stack: ItemStack) -> None:
        if self._leaving:
            owner.count_crafted(stack.item, self._leaving)
        self._leaving = 0


class SmeltedSlot(_OutputSlot):
    """A furnace's output; as in Minecraft, what a hotbar key takes out of it does not count."""

    def __init__(self, furnace: Furnace) -> None:
        super().__init__(furnace, OUTPUT)
        self._furnace = furnace

    def note(self, quantity: int, by_swap: bool = False) -> None:
        """Count what leaves it, unless by a hotbar key."""
        if not by_swap:
            super().note(quantity)

    def taken(self, owner: MenuOwner, stack: ItemStack) -> None:
        """Report smelted items to the owner, and hand out their experience."""
        super().taken(owner, stack)
        owner.earn(self._furnace)


class Grid(Container):
    """A crafting grid.

    Attributes:
        width: Number of columns.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width * width)
        self.width = width

    @property
    def result(self) -> ItemStack:
        """The result of crafting the items in the grid."""
        return craft(self.stacks, self.width)

    def use_up(self, owner: MenuOwner) -> None:
        """Take one item out of each cell; remainders, such as buckets, stay or go to the owner."""
        for cell, stack in enumerate(self.stacks):
            if stack.item == EMPTY:
                continue
            self.set(cell, stack.item, stack.quantity - 1, stack.data)
            if stack.item in REMAINDERS:
                self._leave(owner, cell, ItemStack(REMAINDERS[stack.item], 1, 0))

    def _leave(self, owner: MenuOwner, cell: int, remainder: ItemStack) -> None:
        here = self[cell]
        if here.item == EMPTY:
            self.set(cell, *remainder)
        elif is_same(here, remainder):
            self.set(cell, here.item, here.quantity + 1)
        elif owner.inventory.add(*remainder):
            owner.throw(remainder, counted=False)


class ResultSlot(_OutputSlot):
    """The result of a grid. It is always taken whole, which uses the ingredients up."""

    is_collected = False

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid, 0)
        self._grid = grid

    @property
    def stack(self) -> ItemStack:
        """The grid's result."""
        return self._grid.result

    def put(self, stack: ItemStack) -> None:
        """Do nothing: only the grid determines what lies here."""

    def take(self, quantity: int) -> ItemStack:
        """Take the whole result; as in Minecraft, only `quantity` of it counts as crafted."""
        self._leaving += min(quantity, self.stack.quantity)
        return self.stack

    def taken(self, owner: MenuOwner, stack: ItemStack) -> None:
        """Report crafted items to the owner, and use the ingredients up."""
        super().taken(owner, stack)
        self._grid.use_up(owner)
