"""A screen without a world around it, worked by a cursor that tests move from slot to slot."""

from __future__ import annotations

from collections import Counter

from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID, ITEMS, Inventory, ItemStack
from rllib_minestudio.env.voxel.screens.crafting import Furnace
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, NOTHING, Container
from rllib_minestudio.env.voxel.screens.screen import PIXELS_PER_DEGREE, Screen

LEFT, RIGHT = 0, 1
_CENTRE = 8
_SLOW = 5
"""Ticks between clicks that are not to become a double click."""
OUTSIDE = (5, 5)


def stack(text: str) -> ItemStack:
    """A stack from "ITEM", "ITEM QUANTITY" or "ITEM QUANTITY DAMAGE"; nothing from ""."""
    if not text:
        return NOTHING
    name, *numbers = text.split()
    quantity, damage = ([int(number) for number in numbers] + [1, 0][len(numbers) :])[:2]
    return ItemStack(ITEM_ID[name], quantity, damage)


def text(stack: ItemStack) -> str:
    """What `stack` makes a stack of."""
    if stack.item == EMPTY:
        return ""
    name = f"{ITEMS[stack.item].name} {stack.quantity}"
    return f"{name} {stack.data}" if stack.data else name


class Player:
    """An owner of menus that remembers what it threw, crafted and earned."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.thrown: list[ItemStack] = []
        self.dropped = 0
        self.crafted: Counter[str] = Counter()
        self.experience = 0

    def throw(self, stack: ItemStack, counted: bool) -> None:
        self.thrown.append(stack)
        self.dropped += counted

    def count_crafted(self, item: int, quantity: int) -> None:
        self.crafted[ITEMS[item].name] += quantity

    def earn(self, furnace: Furnace) -> None:
        self.experience += furnace.take_experience(lambda: 0.0)


class Table:
    """An open screen of one kind.

    Slots are named like "craft 3" or "hotbar 0", by group and number within it.
    """

    def __init__(self, kind: str, **contents: str) -> None:
        """Opens a screen; `contents` are texts by slot, as in craft_3="stick 2"."""
        self.player = Player()
        self.container: Container | None = None
        if kind == "furnace":
            self.container = Furnace()
        elif kind == "chest":
            self.container = Container(27)
        self.kind, self.layout = kind, LAYOUTS[kind]
        self.screen = Screen(kind, self.player, (0, 0, 0), self.container)
        for slot, what in contents.items():
            self.slot(slot.replace("_", " ")).put(stack(what))

    def index(self, name: str) -> int:
        group, number = name.split()
        return self.layout.group(group)[int(number)]

    def slot(self, name: str):
        return self.screen.menu.slots[self.index(name)]

    def contents(self) -> dict[str, str]:
        """Texts of all slots that hold something, by name, but for the result."""
        return {
            f"{place.group} {index - self.layout.group(place.group).start}": text(slot.stack)
            for index, (place, slot) in enumerate(
                zip(self.layout.slots, self.screen.menu.slots, strict=True)
            )
            if slot.stack.item != EMPTY and place.group != "result"
        }

    @property
    def carried(self) -> str:
        return text(self.screen.menu.carried)

    def wait(self, ticks: int = _SLOW) -> None:
        for _ in range(ticks):
            self.screen.use_buttons((False, False), (False, False), False)

    def go(self, where) -> None:
        """Moves the cursor to a slot, or to a pixel of the window."""
        if isinstance(where, str):
            place = self.layout.slots[self.index(where)]
            where = place.x + _CENTRE, place.y + _CENTRE
        cursor = self.screen.cursor
        self.screen.move_cursor(
            (where[1] - cursor.y) / PIXELS_PER_DEGREE, (where[0] - cursor.x) / PIXELS_PER_DEGREE
        )

    def press(self, button: int, sneak: bool = False) -> None:
        self.screen.use_buttons((button == LEFT, button == RIGHT), (False, False), sneak)

    def release(self, button: int, sneak: bool = False) -> None:
        self.screen.use_buttons((False, False), (button == LEFT, button == RIGHT), sneak)

    def click(self, where, button: int = LEFT, sneak: bool = False) -> None:
        self.wait()
        self.go(where)
        self.press(button, sneak)
        self.release(button, sneak)

    def right(self, where) -> None:
        self.click(where, RIGHT)

    def across(self, where) -> None:
        self.click(where, sneak=True)

    def twice(self, where) -> None:
        """A double click."""
        self.click(where)
        self.press(LEFT)
        self.release(LEFT)

    def drag(self, start, *slots, button: int = LEFT) -> None:
        """Presses over `start`, moves over the slots, and releases over the last of them."""
        self.wait()
        self.go(start)
        self.press(button)
        for slot in slots:
            self.go(slot)
        self.release(button)

    def key(self, where, number: int) -> None:
        """The key hotbar.NUMBER with the cursor over a slot."""
        self.go(where)
        self.screen.press_hotbar(number - 1)

    def carry(self, what: str) -> None:
        """Puts a stack onto the cursor."""
        self.screen.menu.carried = stack(what)
