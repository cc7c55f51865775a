"""A menu: the slots of a screen, what the cursor carries, and what each kind of click does.

The kinds of click and their results are those of Minecraft's containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS
from rllib_minestudio.env.voxel.screens.containers import NOTHING, is_same, room_beside
from rllib_minestudio.env.voxel.screens.slots import MenuOwner, ResultSlot, Slot


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
        """Makes a menu without slots, for `owner` to use."""
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
        """Removes items that lie loose or are carried, as the command /clear does.

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
        """Puts up to `quantity` of what is carried into a slot that is empty or holds the same."""
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
        """Moves what lies in a slot once; returns its item, or `EMPTY` if nothing moved."""
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
        """Puts a stack onto equal ones, then into the first empty slot; returns the rest."""
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
        """Throws what is carried; what lay in a grid goes to the player, or is thrown, too.

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
