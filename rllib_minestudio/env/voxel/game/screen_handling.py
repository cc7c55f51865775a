"""Opening, operating and closing screens in a game, contents of blocks, and the player's view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEMS, Inventory, ItemStack
from rllib_minestudio.env.voxel.player.player import (
    ATTACK,
    NO_SLOT,
    SNEAK,
    USE,
    without_levels,
)
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.screens.crafting import SCREEN_BLOCKS, Furnace, Place
from rllib_minestudio.env.voxel.screens.enchanting import EnchantingTable
from rllib_minestudio.env.voxel.screens.geometry import Container
from rllib_minestudio.env.voxel.screens.menu import EnchantingMenu
from rllib_minestudio.env.voxel.screens.screen import Screen
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, BLOCKS, Shape
from rllib_minestudio.errors import SnapshotError

REACH = 8.0
"""Distance in blocks from the player's feet to a block's centre beyond which its screen closes."""
_SPILL_LEAST, _SPILL_MOST = 10, 30
"""Sizes of the stacks into which a broken container's stacks are split."""
_SPILL_SPEED, _SPILL_LIFT = 0.05, 0.2
_ITEM_WIDTH = 0.25

_LIGHT_ENOUGH = ("glass", "leaves")
"""Materials of cubes that do not keep a chest below them shut."""
_COUNTERS = {
    "crafting_table": "interact_with_crafting_table",
    "furnace": "interact_with_furnace",
    "chest": "open_chest",
}
_SHELVES = tuple(
    (x, up, z)
    for x in range(-2, 3)
    for z in range(-2, 3)
    for up in (0, 1)
    if max(abs(x), abs(z)) == 2
)
"""Where bookshelves help an enchanting table, from the table."""
_BOOKSHELF = BLOCK_ID["bookshelf"]
"""Minecraft's statistic for using a block, by the kind of screen."""


class _PlayerOwner:
    """The player of a game as the owner of a menu."""

    def __init__(self, state: GameState) -> None:
        self._state = state
        self.inventory: Inventory = state.player.inventory

    def throw(self, stack: ItemStack, counted: bool) -> None:
        """Throw a stack forward, and count it if the player meant to."""
        self._state.throw_item(stack)
        if counted:
            self._state.statistics.add("custom", "drop")

    def count_crafted(self, item: int, quantity: int) -> None:
        self._state.statistics.add("craft_item", ITEMS[item].name, quantity)

    @property
    def level(self) -> int:
        return self._state.player.level

    @property
    def enchanting_seed(self) -> int:
        return self._state.player.enchanting_seed

    def pay_for_enchantment(self, levels: int) -> None:
        player = self._state.player
        player.experience = without_levels(player.experience, levels)
        player.enchanting_seed = self._state.random_between(0, 2**31 - 1)
        self._state.statistics.add("custom", "enchant_item")

    def earn(self, furnace: Furnace) -> None:
        self._state.player.experience += furnace.take_experience(self._state.random)


def prepare_inventory(state: GameState) -> None:
    """Create the inventory's next screen in advance, so that opening it takes no extra time."""
    state.next_screen = Screen("inventory", _PlayerOwner(state))


def open_inventory(state: GameState) -> None:
    """Open the prepared inventory screen."""
    state.screen, state.next_screen = state.next_screen, None


def open_block(state: GameState, place: Place) -> None:
    """Open the screen of the block at `place`, one of `SCREEN_BLOCKS`, unless its lid is shut."""
    block = state.world.kind_at(*place)
    kind = SCREEN_BLOCKS[block]
    if kind == "chest" and not _can_lift_lid(state, place):
        return
    state.screen = Screen(kind, _PlayerOwner(state), place, _container(state, kind, place))
    if kind in _COUNTERS:
        state.statistics.add("custom", _COUNTERS[kind])


def _container(state: GameState, kind: str, place: Place) -> Container | None:
    """Return what the screen of the block at a place shows in addition to the player's slots."""
    if kind == EnchantingMenu.KIND:
        return EnchantingTable(_count_shelves(state, place))
    return state.block_entities.at(place, state.world.kind_at(*place))


def _count_shelves(state: GameState, place: Place) -> int:
    """Count the bookshelves two blocks from a table with nothing in between."""
    x, y, z = place

    def kind_at(dx: int, up: int, dz: int) -> int:
        return state.world.kind_at(x + dx, y + up, z + dz)

    def is_open(dx: int, dz: int) -> bool:
        return all(kind_at(dx, up, dz) == AIR for up in (0, 1))

    return sum(
        kind_at(dx, up, dz) == _BOOKSHELF and is_open(max(min(dx, 1), -1), max(min(dz, 1), -1))
        for dx, up, dz in _SHELVES
    )


def open_again(state: GameState, kind: str, place: Place | None) -> Screen:
    """Open a screen that was open when the game was saved; nothing counts it.

    Raises:
        SnapshotError: There is no such block at the place.
    """
    of_place = "inventory" if place is None else SCREEN_BLOCKS.get(state.world.kind_at(*place))
    if kind != of_place:
        raise SnapshotError(f"The snapshot is wrong: no block at {place} has the screen {kind!r}.")
    container = None if place is None else _container(state, kind, place)
    state.screen = Screen(kind, _PlayerOwner(state), place, container)
    return state.screen


def _can_lift_lid(state: GameState, place: Place) -> bool:
    """Whether no opaque cube lies on a chest."""
    x, y, z = place
    above = BLOCKS[state.world.kind_at(x, y + 1, z)]
    return above.shape is not Shape.CUBE or above.material in _LIGHT_ENOUGH


def play_screen(
    screen: Screen, keys: int, before: int, slot: int, pitch: float, yaw: float
) -> None:
    """Pass a tick's input to the open screen: hotbar key, mouse movement, then mouse buttons.

    Args:
        screen: The screen.
        keys: Bits of the keys that are held.
        before: Bits of the keys that were held in the last tick.
        slot: The hotbar slot whose key was pressed, or `NO_SLOT`.
        pitch: Turn of the camera, in degrees.
        yaw: Turn of the camera, in degrees.
    """
    if slot != NO_SLOT:
        screen.press_hotbar(slot)
    screen.move_cursor(pitch, yaw)
    pressed, released = keys & ~before, before & ~keys
    screen.use_buttons(
        (bool(pressed & ATTACK), bool(pressed & USE)),
        (bool(released & ATTACK), bool(released & USE)),
        bool(keys & SNEAK),
    )


def close(state: GameState, alive: bool = True) -> None:
    """Close the open screen, if there is one.

    Keys that are down at that moment act again only after a release: MineRL's Minecraft then reads
    the real keyboard, where nothing is pressed.

    Args:
        state: The game.
        alive: Whether the player is alive, and so takes back what lies in a crafting grid.
    """
    if state.screen is None:
        return
    screen, state.screen = state.screen, None
    screen.menu.close(alive)
    prepare_inventory(state)
    state.dead_keys = state.held_keys


def close_if_out_of_reach(state: GameState, screen: Screen) -> None:
    """Close the screen of a block that is gone, or too far from the player."""
    place = screen.place
    if place is None:
        return
    offset = state.player.position - (np.asarray(place) + 0.5)
    kind = SCREEN_BLOCKS.get(state.world.kind_at(*place))
    if kind != screen.kind or offset @ offset > REACH * REACH:
        close(state)


def settle(state: GameState) -> None:
    """Update containers and the open screen after a command may have changed blocks."""
    state.block_entities.forget_replaced(state.world)
    if state.screen is not None:
        close_if_out_of_reach(state, state.screen)


def spill(state: GameState, place: Place) -> None:
    """Scatter the contents of the block at `place`, which is about to break."""
    stacks, furnace = state.block_entities.remove(place)
    if furnace is not None:
        state.player.experience += furnace.take_experience(state.random)
    for stack in stacks:
        within = 1.0 - _ITEM_WIDTH
        x, y, z = (edge + state.random() * within for edge in place)
        at = x + _ITEM_WIDTH / 2, y, z + _ITEM_WIDTH / 2
        left = stack.quantity
        while left > 0:
            quantity = min(state.random_between(_SPILL_LEAST, _SPILL_MOST), left)
            left -= quantity
            east, up, south = (state.random_normal() * _SPILL_SPEED for _ in range(3))
            velocity = (east, up + _SPILL_LIFT, south)
            state.drop_item(stack.item, quantity, at, velocity, 0, stack.data)


# -------------------------------------------------------------------------------- the player's view


def draw_view(
    state: GameState, renderer: Renderer, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Draw the player's view.

    Args:
        state: The game.
        renderer: A renderer with the frame's size.
        out: uint8 [height, width, 3] to draw into; None for a new array.

    Returns:
        The frame, uint8 [height, width, 3].
    """
    return renderer.draw(
        state.world,
        state.player,
        state.mobs,
        state.items,
        state.player.inventory,
        state.time,
        out,
        state.falling,
        None if state.screen is None else state.screen.view(),
        state.name_ticks,
        state.particles,
        state.game_time,
        state.thrown,
        state.sleep_ticks,
    )
