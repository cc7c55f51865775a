"""Spawning, teleporting, dying and reviving of the player; beds, nights and the spawn point."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.data import DAY_TICKS
from rllib_minestudio.env.voxel.entities.mobs import THROW_DELAY
from rllib_minestudio.env.voxel.game import screen_handling
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import beside, opposite
from rllib_minestudio.env.voxel.items.items import SLOTS
from rllib_minestudio.env.voxel.player.player import STANDING_EYES, STANDING_HEIGHT, WIDTH
from rllib_minestudio.env.voxel.world import climate, physics
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCKS,
    FAMILY_OF,
    GRASS_BLOCK,
    SAND,
    kind_of,
    properties_of,
)

# ------------ beds, as in Minecraft Java 1.16: a player who lies down at night sleeps until morning
# After `DEEP_SLEEP` ticks of sleep the sun rises and the sky clears. A sleeping player neither
# moves nor looks around. A hit, a teleport, or the loss of the bed ends the sleep. The bed that
# was used last is the spawn point.

DEEP_SLEEP = 100
"""Ticks of sleep after which the night is over."""
_NIGHT, _RAINY_NIGHT = (12542, 23459), (12010, 23991)
"""First and last tick of the day at which one can sleep, in clear weather and in rain."""
_FAR, _FAR_UP = 3.0, 2.0
"""Distance from a bed along each axis, in blocks, beyond which it is too far away."""
_LYING = 0.6875
"""Height of a sleeper above the bottom of the bed, in blocks."""
_EYES = 0.5
"""Height of a sleeper's camera above that."""
_YAW = {"south": 0.0, "west": 90.0, "north": 180.0, "east": 270.0}
_AROUND = (
    *((-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)),
    *((-2, 0), (2, 0), (0, -2), (0, 2)),
)
"""Columns beside the head of a bed, by which a sleeper gets up."""


def beds() -> tuple[int, ...]:
    """Return the kinds of beds."""
    return tuple(kind for kind in range(len(BLOCKS)) if FAMILY_OF[kind].name == "bed")


def lie_down(state: GameState, place: Place) -> bool:
    """Use a bed: it becomes the spawn point, and at night the player falls asleep.

    Args:
        state: The game.
        place: Either half.

    Returns:
        Whether the player sleeps.
    """
    head = _head(state, place)
    if head is None or not _is_near(state, head) or _is_blocked(state, head):
        return False
    state.spawn_point = head
    if not _is_night(state):
        return False
    player = state.player
    state.bed, state.sleep_ticks = head, 0
    player.position[:] = (head[0] + 0.5, head[1] + _LYING, head[2] + 0.5)
    player.velocity[:] = 0.0
    facing = properties_of(state.world.block_at(*head))["facing"]
    player.yaw, player.pitch = _YAW[opposite(facing)], 0.0
    state.statistics.add("custom", "sleep_in_bed")
    return True


def tick(state: GameState) -> None:
    """Let a sleeper lie still for a tick, and wake up when it is time to."""
    bed, player = state.bed, state.player
    if bed is None:
        return
    player.position[:] = (bed[0] + 0.5, bed[1] + _LYING, bed[2] + 0.5)
    player.velocity[:] = 0.0
    player.records["moved"] = 0.0
    player.records["eye_drop"] = player.records["eye_drop_seen"] = STANDING_EYES - _EYES
    state.sleep_ticks += 1
    if _head(state, bed) is None or player.hurt_ticks:
        wake_up(state)
    elif state.sleep_ticks >= DEEP_SLEEP:
        if state.rules["doDaylightCycle"] == "true":
            state.time += DAY_TICKS - state.time % DAY_TICKS
        state.raining = False
        wake_up(state)
    elif not _is_night(state):
        wake_up(state)


def wake_up(state: GameState) -> None:
    """End the sleep: the player stands beside the bed, or on it if there is no room."""
    bed, state.bed, state.sleep_ticks = state.bed, None, 0
    if bed is None:
        return
    above = bed[0] + 0.5, bed[1] + _LYING, bed[2] + 0.5
    state.player.position[:] = standing_place(state, bed) or above
    state.player.records["eye_drop"] = state.player.records["eye_drop_seen"] = 0.0


def standing_place(state: GameState, bed: Place) -> tuple[float, float, float] | None:
    """Return a place beside a bed where the player has room, on something.

    None if there is no such place, or no bed any more.
    """
    if _head(state, bed) is None:
        return None
    for dx, dz in _AROUND:
        for dy in (0, -1, 1):
            x, y, z = bed[0] + dx + 0.5, bed[1] + dy, bed[2] + dz + 0.5
            free = physics.is_free(state.world.blocks, x, float(y), z, WIDTH / 2, STANDING_HEIGHT)
            below = physics.is_free(state.world.blocks, x, float(y) - 0.5, z, WIDTH / 2, 0.5)
            if free and not below:
                return x, float(y), z
    return None


def _head(state: GameState, place: Place) -> Place | None:
    """Return the place of a bed's head; None if there is no whole bed."""
    block = state.world.block_at(*place)
    if FAMILY_OF[kind_of(block)].name != "bed":
        return None
    properties = properties_of(block)
    if properties["part"] == "head":
        return place
    head = beside(place, properties["facing"])
    return head if kind_of(state.world.block_at(*head)) == kind_of(block) else None


def _is_near(state: GameState, head: Place) -> bool:
    """Whether either half of a bed is within reach of the player's feet."""
    foot = beside(head, opposite(properties_of(state.world.block_at(*head))["facing"]))
    x, y, z = state.player.position.tolist()
    return any(
        abs(x - half[0] - 0.5) <= _FAR
        and abs(y - half[1]) <= _FAR_UP
        and abs(z - half[2] - 0.5) <= _FAR
        for half in (head, foot)
    )


def _is_blocked(state: GameState, head: Place) -> bool:
    """Whether an opaque block stands on either half of a bed."""
    foot = beside(head, opposite(properties_of(state.world.block_at(*head))["facing"]))
    return any(
        not physics.is_free(
            state.world.blocks, half[0] + 0.5, half[1] + 1.01, half[2] + 0.5, 0.1, 0.9
        )
        for half in (head, foot)
    )


def _is_night(state: GameState) -> bool:
    first, last = _RAINY_NIGHT if state.raining else _NIGHT
    return first <= state.daytime <= last


# ------------------------------------------ spawning, teleporting, dying and reviving of the player

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
        place = standing_place(state, state.spawn_point)
        if place is not None:
            teleport(state, *place)
