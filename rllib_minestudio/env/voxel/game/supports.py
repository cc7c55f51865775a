"""What becomes of blocks that a change has left without what they need, after Minecraft Java 1.16.

Sand and gravel without ground fall. What has lost its support, or its other half, breaks and drops:
torches, signs, rails, doors, plants. Whatever made the change counts alike: players, commands,
blocks that fall, and blocks that broke a tick ago, so that a column of cactus breaks from the
bottom up, one block a tick.

The world lists the places that a change may concern; `notice` schedules a look at each of them. So
the work of a tick has a limit, and the order of all places is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rllib_minestudio.env.voxel.game import falling
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.loot import drop_loot
from rllib_minestudio.env.voxel.game.placement import lacks_half, other_half, stands
from rllib_minestudio.env.voxel.world.block_states import kind_of, needs_others
from rllib_minestudio.env.voxel.world.blocks import AIR, FALLS

SUPPORT = "support"
"""The kind of scheduled tick."""
_DELAY = 1
MOST_LOOKS = 1024
"""Most places that are looked at in a tick, as each takes ten microseconds or more."""


def notice(state: GameState) -> None:
    """Schedule what becomes of the places that changes since the last tick's call may concern."""
    world, block_ticks = state.world, state.block_ticks
    for place in world.unsupported:
        block = world.block_at(*place)
        is_known = world.is_loaded(place[0], place[2])  # unless the player has been taken away
        if FALLS[kind_of(block)] or not is_known:
            block_ticks.schedule(falling.FALL, place, falling.DELAY)
        if needs_others(block) or not is_known:
            block_ticks.schedule(SUPPORT, place, _DELAY)
    world.unsupported.clear()


def break_unsupported(state: GameState, places: Iterator[Place]) -> None:
    """Break the blocks that still lack what they need; they drop what they yield to no tool.

    As in the game, a block drops nothing if only its other half is missing: what removed that half
    has dropped the whole.
    """
    world = state.world
    gone: dict[Place, int] = {}
    for place in islice(places, MOST_LOOKS):
        block = world.block_at(*place)
        if place in gone or not needs_others(block) or stands(block, place, world.block_next_to):
            continue
        gone[place] = AIR
        state.particles.burst(block, *place)
        if lacks_half(block, place, world.block_next_to):
            continue
        if (rest := other_half(place, block)) and world.is_loaded(rest[0][0], rest[0][2]):
            gone[rest[0]] = AIR
        drop_loot(state, block, None, place)
    world.set_blocks(gone)
