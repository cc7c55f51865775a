"""What the engine keeps to be fast, against a rebuild from what it is kept of.

The blocks of the loaded chunks follow from the seed and the edits; tops, layer radius, box field,
light and shade from the blocks; the numbers in the player's record from the item in hand and the
effects; the description of the inventory from its slots.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEMS, MAIN_SLOTS
from rllib_minestudio.env.voxel.player.player import apply_effects
from rllib_minestudio.env.voxel.world.blocks import (
    DOWN,
    UP,
    closes,
    covers,
    dims_sky,
    emission,
    is_opaque,
    is_thin,
    optics_of,
    stops_rays,
)
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, MAX_RADIUS, MAX_RUN, WINDOW
from rllib_minestudio.env.voxel.world.light_field import FULL, block_level, sky_level
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World
from tests.env.voxel.window import Window


def check_caches(engine: VoxelEngine) -> None:
    """Compares everything that the engine keeps with a rebuild.

    Raises:
        AssertionError: Naming what does not agree.
    """
    check_world(engine._game.state.world)
    check_player(engine)


def check_world(world: World) -> None:
    """Compares everything that a world keeps with a rebuild; raises as `check_caches`."""
    check_blocks(world)
    check_tops(world)
    check_thin(world)
    check_hollow(world)
    check_box_field(world)
    check_light(world)
    check_shade(world)


def check_blocks(world: World) -> None:
    """The blocks of all made chunks are those that the seed makes, but for those marked as edited.

    What the edits should be, only the test knows that made them.
    """
    land = world._land
    anew = Window()
    made = np.zeros(world.blocks.shape, bool).reshape(WINDOW, WINDOW, HEIGHT)
    for chunk in sorted(land.made, reverse=True):
        anew.make(*chunk, world.seed, world.has_plants)
        x, z = (place * CHUNK % WINDOW for place in chunk)
        made[x : x + CHUNK, z : z + CHUNK] = True
    edited = np.unpackbits(land.edits.bits, bitorder="little").astype(bool)
    assert not edited[~made.reshape(-1)].any(), "edits of no chunk"
    differ = (world.blocks != anew.blocks) & ~edited & made.reshape(-1)
    assert not differ.any(), "blocks"


def check_tops(world: World) -> None:
    """Tops and ceiling of the loaded chunks fit the blocks."""
    columns = _loaded_columns(world)
    blocks = covers(world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[columns])
    highest = HEIGHT - 1 - blocks[:, :, ::-1].argmax(2)
    tops = np.where(blocks.any(2), highest, 0)
    assert np.array_equal(world.top.reshape(WINDOW, WINDOW)[columns], tops), "top"
    assert tops.max() < world.ceiling, "ceiling"


def check_thin(world: World) -> None:
    """The bits of thin blocks of all made chunks fit the blocks."""
    thin = np.zeros((WINDOW, WINDOW, HEIGHT), bool)
    for chunk in world._land.made:
        x, z = (place * CHUNK % WINDOW for place in chunk)
        here = np.s_[x : x + CHUNK, z : z + CHUNK]
        thin[here] = is_thin(world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[here])
    bits = np.unpackbits(world.thin.view(np.uint8), bitorder="little")
    kept = bits.reshape(WINDOW, WINDOW, HEIGHT).astype(bool)
    assert np.array_equal(kept, thin), "thin"


def check_hollow(world: World) -> None:
    """Where the land is not marked as hollow, in all made chunks, it is plain."""
    hollow = np.unpackbits(world._land.hollow.view(np.uint8), bitorder="little")
    hollow = hollow.reshape(WINDOW, WINDOW, HEIGHT).astype(bool)
    optics = optics_of(world.blocks)
    plain = stops_rays(world.blocks) & is_opaque(optics) & (emission(optics) == 0)
    for chunk in world._land.made:
        x, z = (place * CHUNK % WINDOW for place in chunk)
        here = np.s_[x : x + CHUNK, z : z + CHUNK]
        assert (plain.reshape(hollow.shape)[here] | hollow[here]).all(), "hollow"


def check_box_field(world: World) -> None:
    """Layer radius and box field of the loaded columns follow from the blocks, in all layers."""
    wide = _loaded_columns(world, MAX_RADIUS)
    solid = stops_rays(world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[wide])
    columns = _loaded_columns(world)
    kept, boxes = (
        field.reshape(WINDOW, WINDOW, HEIGHT)[columns] for field in (world.layer_radius, world.box)
    )
    # Where there are only blocks, or none for as long as a run can be, there is nothing to compute.
    low = int(solid.all((0, 1)).argmin())
    high = min(HEIGHT - int(solid.any((0, 1))[::-1].argmax()) + MAX_RUN, HEIGHT)
    inner = np.s_[MAX_RADIUS:-MAX_RADIUS, MAX_RADIUS:-MAX_RADIUS]
    radius = layer_radius(solid[:, :, low:high])[inner]
    assert np.array_equal(kept[:, :, low:high], radius), "layer_radius"
    assert np.array_equal(boxes[:, :, low:high], box_field(radius)), "box"
    assert not kept[:, :, :low].any() and not boxes[:, :, :low].any(), "below"
    open_box = MAX_RADIUS | MAX_RUN << 5 | MAX_RUN << 10
    assert (kept[:, :, high:] == MAX_RADIUS).all() and (boxes[:, :, high:] == open_box).all(), "sky"


def check_light(world: World) -> None:
    """Both lights of the loaded columns follow from the blocks, in all layers."""
    wide = _loaded_columns(world, FULL)
    blocks = world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[wide]
    blocks = np.pad(blocks, ((0, 0), (0, 0), (0, 1)))  # the sky goes on above the world
    optics = optics_of(blocks)
    # Below, nothing lets light pass; above, all is open.
    low = int((~is_opaque(optics) | (emission(optics) > 0)).any((0, 1)).argmax())
    high = int(world.top.reshape(WINDOW, WINDOW)[wide].max()) + 2
    optics = optics[:, :, low:high]
    kept = world.light.reshape(WINDOW, WINDOW, HEIGHT)[_loaded_columns(world)]
    inner = np.s_[FULL:-FULL, FULL:-FULL, : HEIGHT - low]
    sky = flood(optics, np.where(open_to_sky(optics), FULL, 0))[inner]
    assert np.array_equal(sky_level(kept)[:, :, low:high], sky), "sky light"
    assert not kept[:, :, :low].any(), "light far down"
    assert (sky_level(kept)[:, :, high:] == FULL).all(), "sky light far up"
    # Nothing stops the light of blocks on its way up, until it ends.
    optics = np.pad(optics, ((0, 0), (0, 0), (0, min(FULL, max(HEIGHT - high, 0)))))
    glow = flood(optics, emission(optics))[inner]
    assert np.array_equal(block_level(kept)[:, :, low : low + glow.shape[2]], glow), "block light"
    assert not block_level(kept)[:, :, low + glow.shape[2] :].any(), "block light far up"


def open_to_sky(optics: np.ndarray) -> np.ndarray:
    """Where the sky's light falls straight down, from what blocks do to light, [x, z, y]."""
    is_open = ~dims_sky(optics) & ~closes(optics, UP)
    is_open[:, :, :-1] &= ~closes(optics, DOWN)[:, :, 1:]
    return np.logical_and.accumulate(is_open[:, :, ::-1], 2)[:, :, ::-1]


def flood(optics: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Levels of light, uint8 [x, z, y], from what blocks do to it and where it comes from."""
    light = sources.astype(np.uint8)
    if not light.any():
        return light
    ways = []
    for side in range(6):
        source, target = [np.s_[:]] * 3, [np.s_[:]] * 3
        axis = (0, 2, 1)[side >> 1]
        ahead, behind = np.s_[1:], np.s_[:-1]
        source[axis], target[axis] = (ahead, behind) if side & 1 else (behind, ahead)
        there = optics[tuple(target)]
        stops = closes(optics[tuple(source)], side) | is_opaque(there) | closes(there, side ^ 1)
        ways.append((tuple(source), tuple(target), np.where(stops, FULL, 1).astype(np.uint8)))
    for _ in range(FULL - 1):
        before = light.copy()
        for source, target, loss in ways:
            found = before[source] - np.minimum(before[source], loss)
            np.maximum(light[target], found, out=light[target])
        if np.array_equal(light, before):
            break
    return light


def check_shade(world: World) -> None:
    """The shade of the loaded columns follows from the blocks of each and of those around it."""
    wide = _loaded_columns(world, 1)
    optics = optics_of(world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[wide])
    light = world.light.reshape(WINDOW, WINDOW, HEIGHT)[wide]
    layers = _layer_above(~is_opaque(optics) & ~open_to_sky(optics))
    glow = -(_layer_above(block_level(light) > 0) // -8) * 8
    highest = np.maximum(layers, glow)
    around = np.lib.stride_tricks.sliding_window_view(highest, (3, 3)).max((2, 3))
    kept = world.shade.reshape(WINDOW, WINDOW)[_loaded_columns(world)]
    assert np.array_equal(kept, around), "shade"


def _layer_above(marked: np.ndarray) -> np.ndarray:
    """The layer above the highest marked cell of each column, 0 for none; bool [x, z, y]."""
    return np.where(marked.any(2), HEIGHT - marked[:, :, ::-1].argmax(2), 0)


def _loaded_columns(world: World, margin: int = 0) -> tuple[np.ndarray, ...]:
    """Index of the loaded columns, and of a margin around them, into [x, z]."""
    assert world._centre is not None
    span = np.arange(-LOAD_RADIUS * CHUNK - margin, (LOAD_RADIUS + 1) * CHUNK + margin)
    return np.ix_(*((centre * CHUNK + span) % WINDOW for centre in world._centre))


def layer_radius(solid: np.ndarray) -> np.ndarray:
    """Chebyshev distance to the next block of the layer, bool [x, z, y] -> uint8."""
    radius = np.full(solid.shape, MAX_RADIUS, np.uint8)
    near = solid.copy()
    radius[near] = 0
    for distance in range(1, MAX_RADIUS):
        wide = near.copy()
        wide[1:] |= near[:-1]
        wide[:-1] |= near[1:]
        near = wide.copy()
        near[:, 1:] |= wide[:, :-1]
        near[:, :-1] |= wide[:, 1:]
        np.minimum(radius, np.where(near, np.uint8(distance), np.uint8(MAX_RADIUS)), out=radius)
        radius[solid] = 0
    return radius


def box_field(radius: np.ndarray) -> np.ndarray:
    """The box field of all layers from the layer radius, uint8 [x, z, y] -> uint16."""
    up, down = np.zeros_like(radius), np.zeros_like(radius)
    open_up, open_down = np.ones(radius.shape, bool), np.ones(radius.shape, bool)
    for step in range(1, MAX_RUN + 1):
        # Above the world all is open, below it all is solid.
        open_up[:, :, :-step] &= radius[:, :, step:] >= radius[:, :, :-step]
        open_down[:, :, step:] &= radius[:, :, :-step] >= radius[:, :, step:]
        open_down[:, :, :step] = False
        up += open_up
        down += open_down
    field = radius.astype(np.uint16) | up.astype(np.uint16) << 5 | down.astype(np.uint16) << 10
    return np.where(radius == 0, np.uint16(0), field)


def check_player(engine: VoxelEngine) -> None:
    """What the kernels read of the item in hand and of the effects is up to date.

    The engine writes both at the beginning of a tick, and so does this.
    """
    player = engine.player
    player.update_equipment()
    kept = player.records.copy()
    apply_effects(player)
    stale = [name for name in kept.dtype.names if np.any(kept[name] != player.records[name])]
    assert not stale, f"the player's {', '.join(stale)}"
    inventory = player.inventory
    slots = zip(inventory.item.tolist(), inventory.quantity.tolist(), strict=True)
    described = {
        slot: {"type": ITEMS[item].name if item else "none", "quantity": quantity}
        for slot, (item, quantity) in enumerate(list(slots)[:MAIN_SLOTS])
    }
    assert inventory.describe() == described, "inventory"
