"""A menu: the slots of a screen, what the cursor carries, and what each kind of click does.

The kinds of click and their results are those of Minecraft's containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.inventory import (
    CHEST_SLOT,
    FEET_SLOT,
    HEAD_SLOT,
    HOTBAR_SLOTS,
    LEGS_SLOT,
    MAIN_SLOTS,
    OFFHAND_SLOT,
    ItemStack,
)
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import BURN_TICKS, INPUT, SMELTING, Furnace
from rllib_minestudio.env.voxel.screens.geometry import (
    LAYOUTS,
    NOTHING,
    Container,
    is_same,
    room_beside,
)
from rllib_minestudio.env.voxel.screens.slots import (
    WORN_AT,
    FuelSlot,
    Grid,
    MenuOwner,
    ResultSlot,
    Slot,
    SmeltedSlot,
    WornSlot,
)


class Route(NamedTuple):
    """Slots that a stack is moved to by a click with the sneak key.

    Attributes:
        start: First slot.
        stop: Slot after the last.
        backwards: Whether they are filled from the last one on.
    """

    start: int
    stop: int
    backwards: bool = False


class Menu:
    """The slots of a screen. Subclasses add them, and say where stacks are moved to.

    Attributes:
        slots: All slots, in Minecraft's order.
        carried: What the cursor carries.
    """

    def __init__(self, owner: MenuOwner) -> None:
        self.slots: list[Slot] = []
        self.carried = NOTHING
        self._owner = owner

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """Where `stack`, in slot `index`, is moved to; the next only if nothing fits in one."""
        raise NotImplementedError

    def loose(self) -> Sequence[Slot]:
        """Slots with what does not stay when the screen closes."""
        return ()

    def remove(self, item: int | None, at_most: int | None) -> int:
        """Remove items that lie loose or are carried, as the command /clear does.

        Args:
            item: Only this item id; None for all.
            at_most: Stop after this many; None for no limit.

        Returns:
            How many items were removed.
        """
        removed = 0

        def rest(stack: ItemStack) -> ItemStack:
            nonlocal removed
            wanted = stack.quantity if item in (None, stack.item) else 0
            if at_most is not None:
                wanted = min(wanted, at_most - removed)
            removed += wanted
            return _without(stack, wanted)

        for slot in self.loose():
            slot.put(rest(slot.stack))
        self.carried = rest(self.carried)
        return removed

    def pick_up(self, index: int, half: bool) -> None:
        """A click on a slot: takes, puts, adds or exchanges.

        Args:
            index: The slot.
            half: Whether the right button was used: takes half, and puts one.
        """
        slot, here, carried = self.slots[index], self.slots[index].stack, self.carried
        if here.item == EMPTY:
            if carried.item != EMPTY and slot.accepts(carried):
                self._put(slot, 1 if half else carried.quantity)
        elif carried.item == EMPTY:
            self.carried = slot.take((here.quantity + 1) // 2 if half else here.quantity)
            slot.taken(self._owner, self.carried)
        elif slot.accepts(carried):
            if is_same(here, carried):
                self._put(slot, 1 if half else carried.quantity)
            elif carried.quantity <= slot.limit(carried):
                slot.put(carried)
                self.carried = here
        elif is_same(here, carried) and here.quantity <= room_beside(carried):
            taken = slot.take(here.quantity)
            self.carried = carried._replace(quantity=carried.quantity + taken.quantity)
            slot.taken(self._owner, taken)

    def _put(self, slot: Slot, quantity: int) -> None:
        """Put up to `quantity` of what is carried into a slot that is empty or holds the same."""
        carried, there = self.carried, slot.stack.quantity
        moved = min(quantity, max(slot.limit(carried) - there, 0))
        slot.put(carried._replace(quantity=there + moved))
        self.carried = _without(carried, moved)

    def throw(self, one: bool) -> None:
        """A click beside the panel: throws what is carried, or one of it."""
        if self.carried.item == EMPTY:
            return
        thrown = self.carried._replace(quantity=1) if one else self.carried
        self.carried = _without(self.carried, thrown.quantity)
        self._owner.throw(thrown, counted=True)

    def quick_move(self, index: int) -> None:
        """A click with the sneak key: moves a stack across; a result, as often as it fits."""
        moved = self._move(index)
        while moved != EMPTY and self.slots[index].stack.item == moved:
            moved = self._move(index)

    def _move(self, index: int) -> int:
        """Move what lies in a slot once; returns its item, or `EMPTY` if nothing moved."""
        slot, stack = self.slots[index], self.slots[index].stack
        if stack.item == EMPTY:
            return EMPTY
        rest = stack
        for route in self.routes(index, stack):
            rest = self._distribute(stack, route)
            if rest != stack:
                break
        if rest == stack:
            return EMPTY
        slot.put(rest)
        slot.note(stack.quantity - rest.quantity)
        slot.taken(self._owner, stack)
        if rest.item != EMPTY and isinstance(slot, ResultSlot):
            self._owner.throw(rest, counted=False)
        return stack.item

    def _distribute(self, stack: ItemStack, route: Route) -> ItemStack:
        """Put a stack onto equal ones, then into the first empty slot; returns the rest."""
        slots = self.slots[route.start : route.stop]
        if route.backwards:
            slots.reverse()
        if ITEMS[stack.item].max_stack > 1:
            for slot in slots:
                here = slot.stack
                if stack.item != EMPTY and is_same(here, stack):
                    moved = min(stack.quantity, room_beside(here))
                    slot.put(here._replace(quantity=here.quantity + moved))
                    stack = _without(stack, moved)
        for slot in slots:
            if stack.item != EMPTY and slot.stack.item == EMPTY and slot.accepts(stack):
                moved = min(stack.quantity, slot.limit(stack))
                slot.put(stack._replace(quantity=moved))
                return _without(stack, moved)
        return stack

    def swap(self, index: int, hotbar: int) -> None:
        """A hotbar key: exchanges a slot's stack with that of hotbar slot `hotbar`."""
        slot, inventory = self.slots[index], self._owner.inventory
        here, mine = slot.stack, inventory[hotbar]
        if mine.item == EMPTY:
            if here.item == EMPTY:
                return
            inventory.set(hotbar, *here)
            slot.note(here.quantity, by_swap=True)
            slot.put(NOTHING)
            slot.taken(self._owner, here)
            return
        if not slot.accepts(mine):
            return
        moved = min(mine.quantity, slot.limit(mine))
        rest = _without(mine, moved)
        if here.item == EMPTY or rest.item == EMPTY:
            inventory.set(hotbar, *(here if rest.item == EMPTY else rest))
            slot.put(mine._replace(quantity=moved))
        else:
            inventory.set(hotbar, *rest)
            slot.put(mine._replace(quantity=moved))
            if left := inventory.add(*here):
                self._owner.throw(here._replace(quantity=left), counted=True)
        if here.item != EMPTY:
            slot.taken(self._owner, here)

    def collect(self, index: int) -> None:
        """A double click: gathers what equals the carried stack, full stacks last."""
        if self.carried.item == EMPTY or self.slots[index].stack.item != EMPTY:
            return
        for with_full in (False, True):
            for slot in self.slots:
                here, room = slot.stack, room_beside(self.carried)
                if not room or not slot.is_collected or not is_same(here, self.carried):
                    continue
                if with_full or room_beside(here):
                    taken = slot.take(min(room, here.quantity))
                    quantity = self.carried.quantity + taken.quantity
                    self.carried = self.carried._replace(quantity=quantity)
                    slot.taken(self._owner, taken)

    def can_spread(self, index: int, chosen: int) -> bool:
        """Whether a drag that has touched `chosen` slots also takes in slot `index`."""
        slot, carried = self.slots[index], self.carried
        here = slot.stack
        fits = here.item == EMPTY or (
            is_same(here, carried) and here.quantity <= ITEMS[here.item].max_stack
        )
        enough = carried.item != EMPTY and carried.quantity > chosen
        return enough and fits and slot.accepts(carried)

    def spread(self, chosen: Sequence[int], one_each: bool) -> None:
        """The end of a drag: puts equal shares, or one each, into the slots it has touched."""
        if self.carried.item == EMPTY:
            return
        share = 1 if one_each else self.carried.quantity // len(chosen)
        for index in chosen:
            if self.can_spread(index, 0) and self.carried.quantity >= share:
                self._put(self.slots[index], share)

    def close(self, alive: bool) -> None:
        """Throw what is carried; what lay in a grid goes to the player, or is thrown, too.

        Args:
            alive: Whether the player lives, and so can take it back.
        """
        if self.carried.item != EMPTY:
            self._owner.throw(self.carried, counted=False)
            self.carried = NOTHING
        for slot in self.loose():
            stack = slot.stack
            if stack.item == EMPTY:
                continue
            slot.put(NOTHING)
            left = self._owner.inventory.add(*stack) if alive else stack.quantity
            if left:
                self._owner.throw(stack._replace(quantity=left), counted=False)


def _without(stack: ItemStack, quantity: int) -> ItemStack:
    """A stack with `quantity` fewer."""
    left = stack.quantity - quantity
    return stack._replace(quantity=left) if left > 0 else NOTHING


# -------------------------------------------------------------------- the menus of the four screens
# Their slots, and where the sneak key moves stacks.

_ARMOUR = {"head": HEAD_SLOT, "chest": CHEST_SLOT, "legs": LEGS_SLOT, "feet": FEET_SLOT}
"""Slot of the inventory by where a piece is worn, in the order of the screen."""


def _players(owner: MenuOwner) -> list[Slot]:
    """The player's slots as every screen shows them: three rows, then the hotbar."""
    slots = (*range(HOTBAR_SLOTS, MAIN_SLOTS), *range(HOTBAR_SLOTS))
    return [Slot(owner.inventory, slot) for slot in slots]


def _span(kind: str, first: str, last: str | None = None, backwards: bool = False) -> Route:
    """The slots from group `first` to group `last` of a screen."""
    layout = LAYOUTS[kind]
    return Route(layout.group(first).start, layout.group(last or first).stop, backwards)


def _across(kind: str, index: int) -> Route:
    """From the three rows to the hotbar, and back."""
    in_rows = index in LAYOUTS[kind].group("main")
    return _span(kind, "hotbar" if in_rows else "main")


class _GridMenu(Menu):
    """A menu with a crafting grid, whose contents do not stay."""

    def __init__(self, owner: MenuOwner, grid: Grid) -> None:
        super().__init__(owner)
        self._grid_size = len(grid)
        self.slots = [ResultSlot(grid), *(Slot(grid, cell) for cell in range(len(grid)))]

    def loose(self) -> Sequence[Slot]:
        """The grid's slots."""
        return self.slots[1 : 1 + self._grid_size]


class InventoryMenu(_GridMenu):
    """The player's inventory: a grid of 2 x 2, armour, and the off hand."""

    KIND = "inventory"

    def __init__(self, owner: MenuOwner) -> None:
        super().__init__(owner, Grid(2))
        inventory = owner.inventory
        self.slots += [WornSlot(inventory, slot, place) for place, slot in _ARMOUR.items()]
        self.slots += [*_players(owner), Slot(inventory, OFFHAND_SLOT)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """Armour and shields to where they are worn, everything else across."""
        group = LAYOUTS[self.KIND].slots[index].group
        everywhere = _span(self.KIND, "main", "hotbar", backwards=group == "result")
        if group in ("result", "craft", "armour"):
            return (everywhere,)
        if (worn := self._place_to_wear(stack)) is not None:
            return (Route(worn, worn + 1),)
        return (everywhere if group == "offhand" else _across(self.KIND, index),)

    def _place_to_wear(self, stack: ItemStack) -> int | None:
        """The empty slot that a stack is worn in; None if there is none."""
        place, layout = WORN_AT.get(stack.item), LAYOUTS[self.KIND]
        if place is None:
            return None
        if place in _ARMOUR:
            index = layout.group("armour")[list(_ARMOUR).index(place)]
        else:
            index = layout.group(place).start
        return index if self.slots[index].stack.item == EMPTY else None


class CraftingMenu(_GridMenu):
    """A crafting table: a grid of 3 x 3."""

    KIND = "crafting_table"

    def __init__(self, owner: MenuOwner) -> None:
        super().__init__(owner, Grid(3))
        self.slots += _players(owner)

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """From the grid to the player; from the player to the grid, and across if it is full."""
        group = LAYOUTS[self.KIND].slots[index].group
        if group in ("result", "craft"):
            return (_span(self.KIND, "main", "hotbar", backwards=group == "result"),)
        return _span(self.KIND, "craft"), _across(self.KIND, index)


class FurnaceMenu(Menu):
    """A furnace: input, fuel and output."""

    KIND = "furnace"

    def __init__(self, owner: MenuOwner, furnace: Furnace) -> None:
        super().__init__(owner)
        furnace_slots = [Slot(furnace, INPUT), FuelSlot(furnace), SmeltedSlot(furnace)]
        self.slots = [*furnace_slots, *_players(owner)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """What can be smelted to the input, fuel to the fuel, everything else across."""
        group = LAYOUTS[self.KIND].slots[index].group
        if group in ("input", "fuel", "output"):
            return (_span(self.KIND, "main", "hotbar", backwards=group == "output"),)
        if stack.item in SMELTING:
            return (_span(self.KIND, "input"),)
        if stack.item in BURN_TICKS:
            return (_span(self.KIND, "fuel"),)
        return (_across(self.KIND, index),)


class ChestMenu(Menu):
    """A chest: three rows."""

    KIND = "chest"

    def __init__(self, owner: MenuOwner, chest: Container) -> None:
        super().__init__(owner)
        self.slots = [*(Slot(chest, slot) for slot in range(len(chest))), *_players(owner)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """From the chest to the player's last slots first, and from the player to the chest."""
        if index in LAYOUTS[self.KIND].group("chest"):
            return (_span(self.KIND, "main", "hotbar", backwards=True),)
        return (_span(self.KIND, "chest"),)


# ------------------------------------------------------------------- what is seen of an open screen
# All that drawing one takes.


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
