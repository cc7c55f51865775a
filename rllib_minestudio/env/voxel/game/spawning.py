"""Spawning, teleporting, dying and reviving of the player."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.entities.mobs import THROW_DELAY
from rllib_minestudio.env.voxel.game import screen_handling, sleeping
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.inventory import SLOTS
from rllib_minestudio.env.voxel.world import climate
from rllib_minestudio.env.voxel.world.blocks import GRASS_BLOCK, SAND

_SPAWN_RINGS = 24
"""How far from the requested column to search for a place to stand, in columns."""
_SCATTER_SPEED = 0.3


def surface_place(state: GameState, x: int, z: int) -> tuple[float, float, float]:
    """Load the land around column (x, z), and return a place nearby on top of natural ground.

    It is not on the floor of a ravine.
    """
    world = state.world
    world.load_around(x, z)
    for ring in range(_SPAWN_RINGS):
        for dx in range(-ring, ring + 1):
            for dz in range(-ring, ring + 1):
                if max(abs(dx), abs(dz)) != ring:
                    continue
                y = world.surface(x + dx, z + dz)
                if y <= climate.ground_height(x + dx, z + dz, world.seed):
                    continue  # the ground is carved away
                if world.kind_at(x + dx, y - 1, z + dz) in (GRASS_BLOCK, SAND):
                    return x + dx + 0.5, float(y), z + dz + 0.5
    return x + 0.5, float(world.surface(x, z)), z + 0.5


def find_biome(state: GameState, biome: int, x: int, z: int) -> tuple[int, int] | None:
    """Return the nearest column to (x, z) well inside a biome (index in `BIOMES`), or None."""
    found = np.zeros(2, np.int64)
    if not climate.find_biome(biome, x, z, state.world.seed, found):
        return None
    return int(found[0]), int(found[1])


def teleport(state: GameState, x: float, y: float, z: float) -> None:
    """Put the player's feet at (x, y, z), at rest and awake, and load the land around it."""
    state.bed = None
    state.world.load_around(x, z)
    player = state.player
    player.position[:] = (x, y, z)
    player.velocity[:] = 0.0
    player.records["moved"] = 0.0
    player.records["fall_distance"] = 0.0
    player.records["on_ground"] = 0


def drop_everything(state: GameState) -> None:
    """Scatter the inventory around the player, unless the rule keepInventory is true."""
    if state.rules["keepInventory"] == "true":
        return
    inventory = state.player.inventory
    x, y, z = state.player.position.tolist()
    for slot in range(SLOTS):
        item, quantity, data = inventory[slot]
        if not quantity:
            continue
        angle = state.random() * 2.0 * np.pi
        speed = state.random() * _SCATTER_SPEED
        velocity = (-np.sin(angle) * speed, 0.2, np.cos(angle) * speed)
        place = (x, y + state.player.eye_height - 0.3, z)
        state.drop_item(item, quantity, place, velocity, THROW_DELAY, data)
    inventory.clear()


def die(state: GameState) -> None:
    """Apply a death of the player: count it, close the screen, drop the inventory.

    A sleeper lies where it died.
    """
    state.bed = None
    state.statistics.add("custom", "deaths")
    screen_handling.close(state, alive=False)
    if state.rules["keepInventory"] != "true":
        state.player.experience = 0
    drop_everything(state)


def kill_player(state: GameState) -> None:
    """Kill the player by command: it is revived at once, beside its bed, or else where it is.

    As in Minecraft, the first hotbar slot is then selected, unless keepInventory is true.
    """
    die(state)
    if state.rules["keepInventory"] != "true":
        state.player.selected = 0
    state.player.revive()
    state.player_dead = False
    if state.spawn_point is not None:
        state.world.load_around(state.spawn_point[0], state.spawn_point[2])
        place = sleeping.standing_place(state, state.spawn_point)
        if place is not None:
            teleport(state, *place)
