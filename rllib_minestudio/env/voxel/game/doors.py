"""Doors, gates and trapdoors, and the levers and buttons that switch them, as in Minecraft 1.16.5.

A hand opens what is made of wood. A lever or a pressed button powers its own cell and the block
that it hangs on, and whatever of these three stands beside either of them opens; there is no other
redstone here. Nothing is stored but what is open and what is pressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import (
    DIRECTIONS,
    ahead_of,
    beside,
    opposite,
    other_half,
)
from rllib_minestudio.env.voxel.world.block_states import (
    FAMILY_OF,
    kind_of,
    properties_of,
    turned_to,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCKS

OPENING = ("door", "trapdoor", "fence gate")
"""Families of what opens."""
RELEASE = "release"
"""The kind of scheduled tick at which a button comes up again."""
_STONE_BUTTON, _WOODEN_BUTTON = 20, 30
"""Ticks for which a button stays pressed."""


def _family(block: int) -> str:
    return FAMILY_OF[kind_of(block)].name


def opened_by_hand() -> Iterator[int]:
    """Yield the kinds that a hand opens: all that open but for those of iron."""
    for kind, block in enumerate(BLOCKS):
        if FAMILY_OF[kind].name in OPENING and not block.name.startswith("iron"):
            yield kind


def switches() -> Iterator[int]:
    """Yield the kinds of levers and buttons."""
    return (kind for kind, family in enumerate(FAMILY_OF) if family.name == "lever")


def open_or_close(state: GameState, place: Place) -> None:
    """Open what is closed, and close what is open; a gate swings away from the player."""
    block = state.world.block_at(*place)
    properties = properties_of(block)
    opens = properties["open"] == "false"
    if opens and _family(block) == "fence gate":
        ahead = ahead_of(state.player.yaw)
        if properties["facing"] == opposite(ahead):
            block = turned_to(block, facing=ahead)
    state.world.set_blocks(_turned(state, place, block, opens))


def _turned(state: GameState, place: Place, block: int, opens: bool) -> dict[Place, int]:
    """What opens or closes, with the other half of a door, as blocks to put."""
    found = {place: turned_to(block, open="true" if opens else "false")}
    if rest := other_half(place, block):
        other, half = rest
        if state.world.block_at(*other) == half:
            found[other] = turned_to(half, open="true" if opens else "false")
    return found


# ------------------------------------------------------------------------------- levers and buttons


def press(state: GameState, place: Place) -> None:
    """Turn a lever, or press a button, and switch what it powers."""
    block = state.world.block_at(*place)
    kind, is_on = BLOCKS[kind_of(block)], properties_of(block)["powered"] == "true"
    if kind.name == "lever":
        _switch(state, place, not is_on)
    elif not is_on:
        _switch(state, place, True)
        ticks = _STONE_BUTTON if kind.name.endswith("stone_button") else _WOODEN_BUTTON
        state.block_ticks.schedule(RELEASE, place, ticks)


def release(state: GameState, places: Iterator[Place]) -> None:
    """Let pressed buttons come up again."""
    for place in places:
        block = state.world.block_at(*place)
        if _is_on(block) and BLOCKS[kind_of(block)].name != "lever":
            _switch(state, place, False)


def _is_on(block: int) -> bool:
    return _family(block) == "lever" and properties_of(block)["powered"] == "true"


def _switch(state: GameState, place: Place, is_on: bool) -> None:
    world = state.world
    block = turned_to(world.block_at(*place), powered="true" if is_on else "false")
    world.set_block(*place, block)
    changed: dict[Place, int] = {}
    for source in (place, _hung_on(place, block)):
        for near in (beside(source, direction) for direction in DIRECTIONS):
            its = world.block_at(*near)
            if _family(its) in OPENING and near not in changed:
                opens = _is_powered(state, near, its)
                if opens != (properties_of(its)["open"] == "true"):
                    changed |= _turned(state, near, its, opens)
    world.set_blocks(changed)


def _hung_on(place: Place, block: int) -> Place:
    """The cell of the block that a lever or button hangs on."""
    properties = properties_of(block)
    towards = {"floor": "down", "ceiling": "up"}.get(properties["face"])
    return beside(place, towards or opposite(properties["facing"]))


def _is_powered(state: GameState, place: Place, block: int) -> bool:
    """Whether a lever or button that is on powers one of the cells of a door, gate or trapdoor."""
    cells = [place]
    if rest := other_half(place, block):
        cells.append(rest[0])
    return any(_reaches(state, cell) for cell in cells)


def _reaches(state: GameState, cell: Place) -> bool:
    """Whether a switch that is on is beside a cell, or hangs on a block beside it."""
    for near in (beside(cell, direction) for direction in DIRECTIONS):
        if _is_on(state.world.block_at(*near)):
            return True
        for far in (beside(near, direction) for direction in DIRECTIONS):
            block = state.world.block_at(*far)
            if _is_on(block) and _hung_on(far, block) == near:
                return True
    return False
