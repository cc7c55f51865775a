"""Fire, as in Minecraft Java 1.16: it burns out, eats what burns, spreads, and harms.

A fire has an age, 0 to 15, and a scheduled tick each 30 to 39 ticks in which it grows older, eats
its neighbours and spreads (`FireBlock.tick`); `data/flammable.csv` has the odds of each kind of
block. Rain puts it out, netherrack keeps it for ever. Flint and steel also opens a portal in a
frame of obsidian (`PortalShape`); there is nowhere to go to behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from rllib_minestudio.env.voxel.data import DIFFICULTIES
from rllib_minestudio.env.voxel.entities.mobs import find_burning
from rllib_minestudio.env.voxel.entities.records import FIRE_RESISTANCE
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import (
    DIRECTIONS,
    beside,
    can_burn_at,
    is_supported,
)
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.player.player import STANDING_HEIGHT, WIDTH
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    block_of,
    kind_of,
    properties_of,
    turned_to,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT
from rllib_minestudio.env.voxel.world.surfaces import (
    FIRE,
    FLAMMABLE,
    SPREADS,
    ignition_odds,
    is_in_fire,
)

_logger = logging.getLogger(__name__)
FLINT_AND_STEEL, FIRE_CHARGE = ITEM_ID["flint_and_steel"], ITEM_ID["fire_charge"]
BURN = "burn"
"""The kind of scheduled tick of a fire."""
PORTAL, OBSIDIAN = BLOCK_ID["nether_portal"], BLOCK_ID["obsidian"]
_NETHERRACK = frozenset((BLOCK_ID["netherrack"], BLOCK_ID["magma_block"]))
"""On these fire never goes out."""
_LEAST_DELAY, _MORE_DELAY = 30, 9
OLDEST = 15
_OLD = 3
"""Age above which a fire goes out that has nothing to burn."""


def ignite(state: GameState, place: Place) -> bool:
    """Set a place on fire, or open a portal there; return whether anything happened."""
    world = state.world
    x, y, z = place
    if not (0 <= y < HEIGHT and world.is_loaded(x, z)) or world.kind_at(*place) != AIR:
        return False
    set_fire(state, place, 0)
    return world.kind_at(*place) != AIR


def set_fire(state: GameState, place: Place, age: int) -> None:
    """Put a fire of an age to a place."""
    state.world.set_block(*place, block_of(FIRE, {"age": str(age)}))
    settle(state, place)


def settle(state: GameState, place: Place) -> None:
    """Let a fire that has come to a place open a portal, burn there, or go out."""
    if open_portal(state, place):
        return
    if is_supported(state.world.block_at(*place), place, state.world.block_at):
        begin(state, place)
    else:
        state.world.set_block(*place, AIR)


def begin(state: GameState, place: Place) -> None:
    """Schedule the next tick of a fire."""
    delay = _LEAST_DELAY + state.random_between(0, _MORE_DELAY)
    state.block_ticks.schedule(BURN, place, delay)


def put_out(state: GameState, place: Place) -> None:
    """Remove the fire at a place, if there is one."""
    if state.world.kind_at(*place) == FIRE:
        state.world.set_block(*place, AIR)


def burn(state: GameState, places: Iterator[Place]) -> None:
    """Let the fires at some places burn: their scheduled tick."""
    for place in places:
        if state.world.kind_at(*place) == FIRE:
            _burn(state, place)


def _burn(state: GameState, place: Place) -> None:
    world = state.world
    if state.rules["doFireTick"] == "false":
        begin(state, place)
        return
    block = world.block_at(*place)
    age = int(properties_of(block)["age"])
    below = world.block_at(*beside(place, "down"))
    is_kept = kind_of(below) in _NETHERRACK
    if not is_supported(block, place, world.block_at):
        world.set_block(*place, AIR)
        return
    if not is_kept and state.raining and state.random() < 0.2 + 0.03 * age:
        world.set_block(*place, AIR)
        return
    older = min(age + state.random_between(0, 2) // 2, OLDEST)
    if older != age:
        world.set_block(*place, turned_to(block, age=str(older)))
    if not is_kept:
        has_food = can_burn_at(place, world.block_at)
        if not has_food and age > _OLD:
            world.set_block(*place, AIR)
            return
        lasts = kind_of(below) in FLAMMABLE or age < OLDEST or state.random_between(0, 3)
        if has_food and not lasts:
            world.set_block(*place, AIR)
            return
        if not has_food:
            begin(state, place)
            return
    begin(state, place)
    for side in DIRECTIONS:
        _eat(state, beside(place, side), 250 if side in ("up", "down") else 300, age)
    _spread(state, place, age)


def _eat(state: GameState, place: Place, chance: int, age: int) -> None:
    """Let a fire burn a neighbour away, which may be on fire then (`checkBurnOut`)."""
    world = state.world
    _, odds = FLAMMABLE.get(world.kind_at(*place), (0, 0))
    if not odds or state.random_between(0, chance - 1) >= odds:
        return
    if state.random_between(0, age + 9) < 5 and not state.raining:
        set_fire(state, place, min(age + state.random_between(0, 4) // 4, OLDEST))
    else:
        world.set_block(*place, AIR)


def _spread(state: GameState, place: Place, age: int) -> None:
    """Let a fire set empty places near it on fire: one column to each side, up to four up."""
    odds = np.zeros(SPREADS, np.int64)
    if not ignition_odds(state.world.blocks, *place, odds):
        return
    base = 40 + 7 * DIFFICULTIES.index(state.difficulty)
    for i, j, k in np.argwhere(odds).tolist():
        x, y, z = place[0] + i - 1, place[1] + j - 1, place[2] + k - 1
        if not state.world.is_loaded(x, z):
            continue
        share = (int(odds[i, j, k]) + base) // (age + 30)
        of = 100 + 100 * max(j - 2, 0)
        if state.random_between(0, of - 1) <= share and not state.raining:
            set_fire(state, (x, y, z), min(age + state.random_between(0, 4) // 4, OLDEST))


# -------------------------------------------------------------------------------- whom it harms

_HARM = 1.0
_LAVA_TICKS = 300
"""Ticks for which one burns who has been in lava."""
_BURNING_TICKS = 160
"""Ticks for which one burns who has been in fire for a second."""
_PERIOD = 20
"""Ticks between two points of damage of one who burns."""
PLAYERS_GRACE, MOBS_GRACE = 20, 1
"""Ticks in fire before one burns."""


def tick(state: GameState, in_lava: bool, mobs_burn: bool) -> None:
    """Harm the player and the animals that are in fire, or burn.

    Args:
        state: The game.
        in_lava: Whether the player is, which sets on fire.
        mobs_burn: Whether any mob burns.
    """
    fires = state.block_ticks.places(BURN)
    player, blocks = state.player, state.world.blocks
    if in_lava:
        player.fire_ticks = _LAVA_TICKS
    if not fires and player.fire_ticks <= 0 and not mobs_burn:
        return
    mobs = state.mobs.records[: state.mobs.count]
    touched = bool(fires) and is_in_fire(blocks, player.position, WIDTH / 2, STANDING_HEIGHT)
    player.fire_ticks = _burning(
        state, player.fire_ticks, PLAYERS_GRACE, touched, partial(_hurt_player, state)
    )
    touching = np.zeros(state.mobs.count, np.bool_)
    if fires:
        find_burning(blocks, state.mobs.records, touching)
    concerned = (touching | (mobs["fire_ticks"] > 0)) & (mobs["death_ticks"] == 0)
    for row in np.flatnonzero(concerned).tolist():
        harm = partial(_hurt_mob, state, row)
        ticks = int(mobs["fire_ticks"][row])
        mobs["fire_ticks"][row] = _burning(state, ticks, MOBS_GRACE, bool(touching[row]), harm)


def _hurt_player(state: GameState) -> None:
    if not state.player.records["fireproof"][0]:
        state.hurt_player(_HARM)


def _hurt_mob(state: GameState, row: int) -> None:
    if not state.mobs.records["effect_ticks"][row, FIRE_RESISTANCE]:
        state.hurt_mob(row, _HARM)


def _burning(
    state: GameState, ticks: int, grace: int, touched: bool, hurt: Callable[[], None]
) -> int:
    """Harm one who is in fire or burns.

    Returns:
        Ticks of burning that are left; below 0 the ticks in fire until one begins to burn.
    """
    if touched:
        hurt()
        return _BURNING_TICKS if ticks >= -1 else ticks + 1
    if ticks <= 0 or state.raining:
        return -grace
    if ticks % _PERIOD == 0:
        hurt()
    return ticks - 1


# ------------------------------------------------------------------------------------------ portals

_LEAST_WIDTH, _LEAST_HEIGHT, _MOST = 2, 3, 21
_EMPTY = frozenset((AIR, FIRE, PORTAL))


@cache
def log_missing_nether() -> None:
    """Log, once per process, that portals lead nowhere."""
    _logger.warning(
        "A player walks into a portal and stays in this world: the embedded engine has no Nether."
    )


def open_portal(state: GameState, place: Place) -> bool:
    """Fill the frame of obsidian around a place with a portal; return whether there is one."""
    for axis in ("x", "z"):
        cells = portal_cells(state, place, axis)
        if cells:
            state.world.set_blocks(dict.fromkeys(cells, block_of(PORTAL, {"axis": axis})))
            return True
    return False


def portal_cells(state: GameState, place: Place, axis: str) -> list[Place]:
    """Return the cells inside a frame along an axis that contains a place; none without one."""
    step = (1, 0) if axis == "x" else (0, 1)

    def kind(cell: Place) -> int:
        return state.world.kind_at(*cell)

    def along(cell: Place, by: int, up: int = 0) -> Place:
        return cell[0] + by * step[0], cell[1] + up, cell[2] + by * step[1]

    def gap(cell: Place, by: int) -> int:
        """Cells to the frame in a direction, above a frame all the way; -1 if there is none."""
        for count in range(_MOST + 1):
            there = along(cell, by * count)
            if kind(there) not in _EMPTY:
                return count if kind(there) == OBSIDIAN else -1
            if kind(along(there, 0, -1)) != OBSIDIAN:
                return -1
        return -1

    bottom = place
    while bottom[1] > max(place[1] - _MOST, 0) and kind(along(bottom, 0, -1)) in _EMPTY:
        bottom = along(bottom, 0, -1)
    left = gap(bottom, -1)
    if left < 1:
        return []
    corner = along(bottom, 1 - left)
    width = gap(corner, 1)
    if not _LEAST_WIDTH <= width <= _MOST:
        return []
    height = 0
    while height < _MOST + 1 and all(
        kind(along(corner, at, height)) in _EMPTY for at in range(width)
    ):
        if any(kind(along(corner, at, height)) != OBSIDIAN for at in (-1, width)):
            return []
        height += 1
    closed = all(kind(along(corner, at, height)) == OBSIDIAN for at in range(width))
    if not closed or not _LEAST_HEIGHT <= height <= _MOST:
        return []
    return [along(corner, at, up) for at in range(width) for up in range(height)]
