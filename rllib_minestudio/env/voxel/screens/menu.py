"""Menus: the slots of a screen, the carried stack, and the effect of each kind of click.

The kinds of click and their effects are those of Minecraft's containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.items import (
    CHEST_SLOT,
    EMPTY,
    FEET_SLOT,
    HEAD_SLOT,
    HOTBAR_SLOTS,
    ITEMS,
    LEGS_SLOT,
    MAIN_SLOTS,
    OFFHAND_SLOT,
    ItemStack,
)
from rllib_minestudio.env.voxel.screens.crafting import BURN_TICKS, INPUT, SMELTING, Furnace
from rllib_minestudio.env.voxel.screens.enchanting import (
    ITEM_SLOT,
    LAPIS,
    LAPIS_SLOT,
    OFFERS,
    EnchantingTable,
)
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
    LapisSlot,
    MenuOwner,
    OneItemSlot,
    ResultSlot,
    Slot,
    SmeltedSlot,
    WornSlot,
)


class Route(NamedTuple):
    """A range of slots that a click with the sneak key moves a stack to.

    Attributes:
        start: First slot.
        stop: Slot after the last.
        backwards: Whether the slots are filled from the last to the first.
    """

    start: int
    stop: int
    backwards: bool = False


class Menu:
    """The slots of a screen. Subclasses add the slots, and the routes of moved stacks.

    Attributes:
        slots: All slots, in Minecraft's order.
        carried: The stack that the cursor carries.
    """

    def __init__(self, owner: MenuOwner) -> None:
        self.slots: list[Slot] = []
        self.carried = NOTHING
        self._owner = owner

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """Return routes for `stack` in slot `index`, each tried if nothing fits the one before."""
        raise NotImplementedError

    def loose(self) -> Sequence[Slot]:
        """Return the slots whose contents do not stay when the screen closes."""
        return ()

    def press_button(self, x: float, y: float) -> bool:
        """Press a mouse button over the panel, before anything else happens.

        Args:
            x: Pixels from the panel's left edge.
            y: Pixels from its upper edge.

        Returns:
            Whether there was a button of the menu, which did something.
        """
        return False

    def remove(self, item: int | None, at_most: int | None) -> int:
        """Remove items from the loose slots and the carried stack, as `/clear` does.

        Args:
            item: Id of the only item to remove; None for all.
            at_most: Most items to remove; None for no limit.

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
        """Click on a slot: take, put, add to or exchange its stack.

        Args:
            index: The slot.
            half: Whether the right button was used, which takes half and puts one.
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
        """Put up to `quantity` carried items into a slot that is empty or holds the same item."""
        carried, there = self.carried, slot.stack.quantity
        moved = min(quantity, max(slot.limit(carried) - there, 0))
        slot.put(carried._replace(quantity=there + moved))
        self.carried = _without(carried, moved)

    def throw(self, one: bool) -> None:
        """Click outside the panel: throw the carried stack, or one item of it."""
        if self.carried.item == EMPTY:
            return
        thrown = self.carried._replace(quantity=1) if one else self.carried
        self.carried = _without(self.carried, thrown.quantity)
        self._owner.throw(thrown, counted=True)

    def quick_move(self, index: int) -> None:
        """Click with the sneak key: move a stack across; a result, as often as it fits."""
        moved = self._move(index)
        while moved != EMPTY and self.slots[index].stack.item == moved:
            moved = self._move(index)

    def _move(self, index: int) -> int:
        """Move a slot's stack once; return its item, or `EMPTY` if nothing moved."""
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
        """Add a stack to equal ones, then to the first empty slot; return the rest."""
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
        """Press a hotbar key: exchange a slot's stack with that of hotbar slot `hotbar`."""
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
        """Double click: gather stacks equal to the carried one, full stacks last."""
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
        """Whether a drag over `chosen` slots can also include slot `index`."""
        slot, carried = self.slots[index], self.carried
        here = slot.stack
        fits = here.item == EMPTY or (
            is_same(here, carried) and here.quantity <= ITEMS[here.item].max_stack
        )
        enough = carried.item != EMPTY and carried.quantity > chosen
        return enough and fits and slot.accepts(carried)

    def spread(self, chosen: Sequence[int], one_each: bool) -> None:
        """End a drag: put equal shares, or one item each, into the chosen slots."""
        if self.carried.item == EMPTY:
            return
        share = 1 if one_each else self.carried.quantity // len(chosen)
        for index in chosen:
            if self.can_spread(index, 0) and self.carried.quantity >= share:
                self._put(self.slots[index], share)

    def close(self, alive: bool) -> None:
        """Throw the carried stack; move loose stacks to the player, or throw them, too.

        Args:
            alive: Whether the player is alive, and so can take loose stacks back.
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
    left = stack.quantity - quantity
    return stack._replace(quantity=left) if left > 0 else NOTHING


# -------------------------------------------------------------------- the menus of the four screens
# Their slots, and the routes of stacks moved with the sneak key.

_ARMOUR = {"head": HEAD_SLOT, "chest": CHEST_SLOT, "legs": LEGS_SLOT, "feet": FEET_SLOT}
"""Slot of the inventory by where an armour piece is worn, in the order of the screen."""


def _players(owner: MenuOwner) -> list[Slot]:
    """Return the player's slots as in every screen: three rows, then the hotbar."""
    slots = (*range(HOTBAR_SLOTS, MAIN_SLOTS), *range(HOTBAR_SLOTS))
    return [Slot(owner.inventory, slot) for slot in slots]


def _span(kind: str, first: str, last: str | None = None, backwards: bool = False) -> Route:
    """Return the route from group `first` to group `last` of a screen's slots."""
    layout = LAYOUTS[kind]
    return Route(layout.group(first).start, layout.group(last or first).stop, backwards)


def _across(kind: str, index: int) -> Route:
    """Return the route from the three rows to the hotbar, or back."""
    in_rows = index in LAYOUTS[kind].group("main")
    return _span(kind, "hotbar" if in_rows else "main")


class _GridMenu(Menu):
    """A menu with a crafting grid, whose contents do not stay when the screen closes."""

    def __init__(self, owner: MenuOwner, grid: Grid) -> None:
        super().__init__(owner)
        self._grid_size = len(grid)
        self.slots = [ResultSlot(grid), *(Slot(grid, cell) for cell in range(len(grid)))]

    def loose(self) -> Sequence[Slot]:
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
        """Move armour and shields to where they are worn, everything else across."""
        group = LAYOUTS[self.KIND].slots[index].group
        everywhere = _span(self.KIND, "main", "hotbar", backwards=group == "result")
        if group in ("result", "craft", "armour"):
            return (everywhere,)
        if (worn := self._place_to_wear(stack)) is not None:
            return (Route(worn, worn + 1),)
        return (everywhere if group == "offhand" else _across(self.KIND, index),)

    def _place_to_wear(self, stack: ItemStack) -> int | None:
        """Return the slot that a stack is worn in, if it is empty, or None."""
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
        """Move from the grid to the player, and from the player to the grid or, if full, across."""
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
        """Move what can be smelted to the input, fuel to the fuel slot, everything else across."""
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
        """Move from the chest to the player, last slots first, and from the player to the chest."""
        if index in LAYOUTS[self.KIND].group("chest"):
            return (_span(self.KIND, "main", "hotbar", backwards=True),)
        return (_span(self.KIND, "chest"),)


BUTTON_LEFT, BUTTON_TOP, BUTTON_WIDTH, BUTTON_HEIGHT = 60, 14, 108, 19
"""The first of an enchanting table's three offers, which are below one another, on its panel."""


def offer_at(x: float, y: float) -> int | None:
    """Return which of an enchanting table's offers a point of its panel is on; None for none."""
    offer = int((y - BUTTON_TOP) // BUTTON_HEIGHT)
    across = 0.0 <= x - BUTTON_LEFT < BUTTON_WIDTH
    return offer if across and 0 <= offer < OFFERS else None


class EnchantingMenu(Menu):
    """An enchanting table: the item, lapis lazuli, and three offers to click on."""

    KIND = "enchanting_table"

    def __init__(self, owner: MenuOwner, table: EnchantingTable) -> None:
        super().__init__(owner)
        self._table = table
        self.slots = [OneItemSlot(table, ITEM_SLOT), LapisSlot(table, LAPIS_SLOT), *_players(owner)]

    def loose(self) -> Sequence[Slot]:
        """Return the two slots of the table."""
        return self.slots[:2]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """Move from the table to the player, and from the player to the slot for the item."""
        if LAYOUTS[self.KIND].slots[index].group in ("item", "lapis"):
            return (_span(self.KIND, "main", "hotbar", backwards=True),)
        return (_span(self.KIND, "lapis" if stack.item == LAPIS else "item"),)

    def press_button(self, x: float, y: float) -> bool:
        """Take the offer under the cursor, if the player can."""
        offer, owner = offer_at(x, y), self._owner
        if offer is None or not self._table.can_take(offer, owner.enchanting_seed, owner.level):
            return False
        self._table.take(offer, owner.enchanting_seed)
        owner.pay_for_enchantment(offer + 1)
        return True

    def shown_offers(self) -> tuple[ShownOffer, ...]:
        """Return what the screen shows of the offers."""
        seed, level = self._owner.enchanting_seed, self._owner.level
        return tuple(
            ShownOffer(*offer, self._table.can_take(slot, seed, level))
            for slot, offer in enumerate(self._table.offers(seed))
        )


# ---------------------------------------------------------------- what is visible of an open screen


class ShownOffer(NamedTuple):
    """What is visible of an enchanting table's offer: an `Offer`, and whether it can be taken."""

    level: int
    clue: str
    clue_level: int
    can_be_taken: bool


class ScreenView(NamedTuple):
    """The visible state of an open screen: all that is needed to draw it.

    Attributes:
        kind: "inventory", "crafting_table", "furnace", "chest" or "enchanting_table".
        stacks: One per slot, in the order of `geometry.LAYOUTS[kind].slots`.
        cursor: Pixel (x, y) of the window under the cursor's tip; at the right or lower edge, it is
            one beyond the last pixel.
        carried: The stack that the cursor carries; its item is 0 if there is none.
        burn: For a furnace, the share of the fuel's burning time that is left, 0 to 1.
        progress: For a furnace, the share of the smelting that is done, 0 to 1.
        offers: For an enchanting table, its three offers.
    """

    kind: str
    stacks: tuple[ItemStack, ...]
    cursor: tuple[int, int]
    carried: ItemStack
    burn: float = 0.0
    progress: float = 0.0
    offers: tuple[ShownOffer, ...] = ()
