"""Information about the game beyond observations, for judges and scripted solutions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.entities.herds import first_herd
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.player.raycast import (
    BLOCK,
    TARGET_DTYPE,
    cast_grid,
)
from rllib_minestudio.env.voxel.render.camera import FORWARD, RIGHT, STEP_X, STEP_Y, UP, Camera
from rllib_minestudio.env.voxel.render.sky import sun_angle
from rllib_minestudio.env.voxel.world import light_field
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, BLOCKS, KIND_MASK, is_thin
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at
from rllib_minestudio.env.voxel.world.land import square

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.world.world import World

Corner = tuple[int, int, int]
"""A block's x, y and z."""

_HIGHEST = HEIGHT - 1
_BIOME_STEP = 8
"""Blocks between the columns that `nearest_biome` checks."""
_INSIDE = ((0, 0), (4, 0), (-4, 0), (0, 4), (0, -4))
"""Offsets of the columns that must share a column's biome for it to be well inside."""


class SurveyedBox:
    """A fixed box of the world whose blocks can be read repeatedly."""

    def __init__(self, world: World, low: Corner, high: Corner) -> None:
        """Compute once where the blocks of the box are stored; see `Survey.box`."""
        self._world = world
        self._corners = [(x, z) for x in (low[0], high[0]) for z in (low[2], high[2])]
        grid: Any = np.ogrid[low[0] : high[0] + 1, low[1] : high[1] + 1, low[2] : high[2] + 1]
        x, y, z = grid
        self._places = np.asarray(block_index(x, y.clip(0, _HIGHEST), z))
        layers = y.ravel()
        self._outside = np.flatnonzero((layers < 0) | (layers > _HIGHEST))

    def block_ids(self) -> NDArray[np.uint16] | None:
        """Return the current kinds of blocks.

        Returns:
            Kinds, uint16 [x, y, z], air above and below the world; None while part of the box
            is not loaded, during which nothing in that part can change.
        """
        if not all(self._world.is_loaded(x, z) for x, z in self._corners):
            return None
        found = self._world.blocks.take(self._places)
        found &= KIND_MASK
        if self._outside.size:
            found[:, self._outside] = AIR
        return found


class Survey:
    """Read access to the current state of a game."""

    def __init__(self, state: GameState) -> None:
        self._state = state

    @property
    def changes(self) -> int:
        """A number that grows with every change of a block; if it is the same, none has changed."""
        return self._state.world.changes

    def box(self, low: Corner, high: Corner) -> SurveyedBox:
        """Return a box whose blocks are read repeatedly.

        Args:
            low: The corner with the lowest coordinates.
            high: The corner with the highest coordinates; both are part of the box.
        """
        return SurveyedBox(self._state.world, low, high)

    def body_blocks(self) -> tuple[int, int]:
        """Return the kinds of the blocks that the player's feet and eyes are in."""
        player, world = self._state.player, self._state.world
        x, y, z = player.position.tolist()
        column = int(x // 1), int(z // 1)
        feet, eyes = (
            world.kind_at(column[0], int(level // 1), column[1])
            for level in (y, y + player.eye_height)
        )
        return feet, eyes

    def chest_items(self, centre: Corner, reach: int) -> Mapping[str, int]:
        """Count the items in the chests around a position.

        Args:
            centre: The position.
            reach: Largest distance of a chest along each axis, in blocks.

        Returns:
            Quantities by item name.
        """
        found: Counter[str] = Counter()
        for place, container in self._state.block_entities.of_block(BLOCK_ID["chest"]):
            if all(abs(a - b) <= reach for a, b in zip(place, centre, strict=True)):
                for stack in container.stacks:
                    if stack.quantity:
                        found[ITEMS[stack.item].name] += stack.quantity
        return found

    def mobs_near(self, centre: Corner, reach: int) -> list[str]:
        """Return the names of the living mobs around a position.

        Args:
            centre: The position.
            reach: Largest distance along each axis, in blocks.
        """
        mobs = self._state.mobs.records[: self._state.mobs.count]
        near = np.abs(mobs["position"] - np.array(centre)).max(axis=1, initial=0.0) <= reach
        alive = mobs[near & (mobs["death_ticks"] == 0)]
        return [MOB_KINDS[kind].name for kind in alive["kind"].tolist()]

    def block_name(self, x: int, y: int, z: int, plants: bool = True) -> str:
        """Return the name of a block; "air" above or below the world and in land not loaded.

        Args:
            x: The block's place.
            y: Likewise.
            z: Likewise.
            plants: Whether thin plants, which bodies pass, have a name; they are "air", else.
        """
        kind = self._state.world.kind_at(x, y, z)
        return BLOCKS[kind if plants or not is_thin(kind) else AIR].name

    def places_of(self, names: Collection[str], radius: int) -> list[Corner]:
        """Return the positions of blocks by name in a cube around the player, in a fixed order.

        The list is empty if part of the cube is not loaded.

        Args:
            names: Names of blocks; unknown ones match nothing.
            radius: Blocks from the cube's centre to its sides.
        """
        wanted = [BLOCK_ID[name] for name in names if name in BLOCK_ID]
        x, y, z = self._feet()
        low = x - radius, y - radius, z - radius
        blocks = self.box(low, (x + radius, y + radius, z + radius)).block_ids()
        if blocks is None:
            return []
        found = np.argwhere(np.isin(blocks, wanted)) + np.array(low)
        return [(i, j, k) for i, j, k in found.tolist()]

    def items_near(self, radius: float) -> list[dict[str, Any]]:
        """Return the dropped items within `radius` blocks of the player.

        Returns:
            Dictionaries with name and x, y, z (bottom centre).
        """
        items, feet = self._state.items, self._state.player.position.tolist()
        columns = items.item.tolist(), items.quantity.tolist(), items.position.tolist()
        return [
            {"name": ITEMS[item].name, "x": place[0], "y": place[1], "z": place[2]}
            for item, quantity, place in zip(*columns, strict=True)
            if quantity and math.dist(place, feet) <= radius
        ]

    def nearest_biome(self, name: str, radius: int) -> tuple[int, int] | None:
        """Return the nearest column (x, z) well inside a biome, loaded or not, or None.

        Args:
            name: One of `BIOMES`.
            radius: Blocks from the player along each axis; every 8th column is checked.
        """
        x, _, z = self._feet()
        wanted, seed = BIOMES.index(name), self._state.world.seed
        steps = range(-radius, radius + 1, _BIOME_STEP)
        found = [
            (x + i, z + k)
            for i in steps
            for k in steps
            if all(biome_at(x + i + di, z + k + dk, seed) == wanted for di, dk in _INSIDE)
        ]
        return min(found, key=lambda column: math.dist(column, (x, z)), default=None)

    def nearest_herd(self, mobs: Collection[str], radius: int) -> tuple[int, int] | None:
        """Return the middle (x, z) of the nearest chunk, not loaded, with a herd; None for none.

        Args:
            mobs: Kinds of animals.
            radius: Chunks from the player's along each axis.
        """
        x, _, z = self._feet()
        world = self._state.world
        middles = [
            (chunk[0] * CHUNK + CHUNK // 2, chunk[1] * CHUNK + CHUNK // 2)
            for chunk in square((x // CHUNK, z // CHUNK), radius)
            if not world.is_loaded(chunk[0] * CHUNK, chunk[1] * CHUNK)
            and first_herd(chunk, world.seed) in mobs
        ]
        return min(middles, key=lambda column: math.dist(column, (x, z)), default=None)

    def _feet(self) -> Corner:
        x, y, z = (math.floor(v) for v in self._state.player.position.tolist())
        return x, y, z


# ------------------------------------------------------------------------- visible blocks and items
# The first block or mob along each of a grid of rays.
#
# The rays are those of the pixels of a frame that a player at rest sees, so their hits contain no
# more than the frame shows (apart from the blocks' names, which a player has to recognise by their
# textures). They go through plants, as bodies do. The frame of a moving player shows the view of a
# tick earlier, swaying.

_MIDDLE_OF_ITEM = 0.25
"""Height of the middle of a dropped item's picture above its position, in blocks."""


class VisibleBlocks(NamedTuple):
    """The hits of a grid of rays, with R rows from the top and C columns from the left.

    Attributes:
        eye: Where the rays begin, float64 [3].
        direction: Unit vectors, float64 [R, C, 3].
        distance: Length of each ray, to its hit or to its reach, in blocks, float64 [R, C].
        names: Names of the visible kinds of blocks, after "air", which stands for no block.
        kind: Index in `names` of the block that is hit, int64 [R, C]; 0 where a ray hits a mob or
            nothing.
        cell: Position of the block that is hit, int64 [R, C, 3].
        face: Outward normal of the face that is hit, int64 [R, C, 3].
    """

    eye: NDArray[np.float64]
    direction: NDArray[np.float64]
    distance: NDArray[np.float64]
    names: tuple[str, ...]
    kind: NDArray[np.int64]
    cell: NDArray[np.int64]
    face: NDArray[np.int64]


def _cast(
    state: GameState, eye: NDArray[np.float64], directions: NDArray[np.float64], reach: float
) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """Cast rays along unit vectors [n, 3]; return their `TARGET_DTYPE` [n] and distances [n]."""
    targets = np.zeros(len(directions), TARGET_DTYPE)
    distances = np.empty(len(directions))
    mobs = state.mobs
    cast_grid(
        state.world.blocks, mobs.records, mobs.count, eye, directions, reach, targets, distances
    )
    return targets, distances


def _eye(state: GameState) -> NDArray[np.float64]:
    eye = state.player.position.astype(np.float64)
    eye[1] += state.player.eye_height
    return eye


def _axes(state: GameState, camera: Camera) -> NDArray[np.float64]:
    """Return the forward, right and up vectors of the player's view, float64 [3, 3]."""
    x, y, z = _eye(state).tolist()
    camera.place(x, y, z, state.player.yaw, state.player.pitch)
    return np.stack(
        [camera.vector[first : first + 3].astype(np.float64) for first in (FORWARD, RIGHT, UP)]
    )


def visible_blocks(state: GameState, camera: Camera) -> VisibleBlocks:
    """Cast a ray through each pixel of a camera, as far as its view distance."""
    forward, right, up = _axes(state, camera)
    columns, rows = camera.width, camera.height
    across = (np.arange(columns) + 0.5 - columns / 2) * float(camera.vector[STEP_X])
    upward = (rows / 2 - 0.5 - np.arange(rows)) * float(camera.vector[STEP_Y])
    direction = forward + across[None, :, None] * right + upward[:, None, None] * up  # [R, C, 3]
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    eye = _eye(state)
    targets, distance = _cast(state, eye, direction.reshape(-1, 3), camera.view_distance)
    cell = np.stack([targets["x"], targets["y"], targets["z"]], axis=1)
    hit = targets["kind"] == BLOCK
    cell[~hit] = 0
    names, kind = _name_blocks(state, cell, hit)
    return VisibleBlocks(
        eye,
        direction,
        distance.reshape(rows, columns),
        names,
        kind.reshape(rows, columns),
        cell.reshape(rows, columns, 3),
        np.where(hit[:, None], targets["face"], 0).reshape(rows, columns, 3),
    )


def _name_blocks(
    state: GameState, cell: NDArray[np.int64], hit: NDArray[np.bool_]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return names of the blocks at `cell` [n, 3] where `hit` [n], and an index into them [n]."""
    kinds = state.world.blocks[block_index(*cell[hit].T)] & KIND_MASK
    ids, which = np.unique(kinds, return_inverse=True)
    kind = np.zeros(len(cell), np.int64)
    kind[hit] = which.ravel() + 1
    return ("air", *(BLOCKS[block].name for block in ids.tolist())), kind


def visible_items(state: GameState, camera: Camera) -> list[dict[str, Any]]:
    """Return the dropped items whose middle is in the frame and not hidden by blocks or mobs.

    Returns:
        Dictionaries with name and x, y, z (bottom centre), the nearest first.
    """
    items = state.items
    places = items.records["position"][: items.count].astype(np.float64)
    eye = _eye(state)
    offset = places - eye
    offset[:, 1] += _MIDDLE_OF_ITEM
    ahead, across, upward = _axes(state, camera) @ offset.T  # [n] each
    distance = np.linalg.norm(offset, axis=1)
    half_width = camera.width / 2 * float(camera.vector[STEP_X])
    half_height = camera.height / 2 * float(camera.vector[STEP_Y])
    framed = (
        (ahead > 0.0)
        & (np.abs(across) <= ahead * half_width)
        & (np.abs(upward) <= ahead * half_height)
        & (distance <= camera.view_distance)
        & (items.records["quantity"][: items.count] > 0)
    )
    rows = np.flatnonzero(framed)
    directions = offset[rows] / distance[rows, None]
    _, open_to = _cast(state, eye, directions, camera.view_distance)
    seen = rows[open_to >= distance[rows]]
    seen = seen[np.argsort(distance[seen], kind="stable")]
    kinds = items.records["item"][seen].tolist()
    return [
        {"name": ITEMS[kind].name, "x": x, "y": y, "z": z}
        for kind, (x, y, z) in zip(kinds, places[seen].tolist(), strict=True)
    ]


# ------------------------------------------------------------------------ the player's surroundings
# Biome, light and sky, as in MineStudio's `location_stats`.

SEA_LEVEL = 63
_DARKEST_NIGHT = 11
"""Levels by which a moonless night dims the sky's light; rain takes up to 5/16 of the daylight."""
_RAIN_DIMS = 5 / 16


class Climate(NamedTuple):
    """Minecraft 1.16's constants of a biome.

    Attributes:
        number: Id in the game's registry.
        temperature: Above 1.5 it never rains, below 0.15 it snows.
        rainfall: 0 to 1.
    """

    number: int
    temperature: float
    rainfall: float


CLIMATES: dict[str, Climate] = {
    row["biome"]: Climate(int(row["number"]), float(row["temperature"]), float(row["downfall"]))
    for row in read_csv("biomes.csv")
}
"""Climate by biome (minecraft.wiki, "Biome/Before 1.18"), for each of `BIOMES`."""


def location_stats(state: GameState) -> dict[str, Any]:
    """Return `location_stats` under MineStudio's names.

    `light_level` (0 to 15) is the light at the player's feet at this time of day, of the sky or of
    blocks, whichever is more; `sky_light_level` (0 to 1) is the share of the sky's light that
    reaches them at any time, and `sun_brightness` (0 to 1) the daylight at this time of day and in
    this weather.
    """
    player, world = state.player, state.world
    x, y, z = player.position.tolist()
    column, level, row = math.floor(x), math.floor(y), math.floor(z)
    climate = CLIMATES[BIOMES[biome_at(column, row, world.seed)]]
    light = light_field.light_at(world.light, column, level, row)
    from_sky, from_blocks = light_field.sky_level(light), light_field.block_level(light)
    sun = sun_brightness(state.daytime, state.raining)
    return {
        "xpos": x,
        "ypos": y,
        "zpos": z,
        "yaw": player.yaw,
        "pitch": player.pitch,
        "sea_level": SEA_LEVEL,
        "is_raining": state.raining,
        "biome_id": climate.number,
        "biome_temperature": climate.temperature,
        "biome_rainfall": climate.rainfall,
        "can_see_sky": from_sky == light_field.FULL,
        "sky_light_level": from_sky / light_field.FULL,
        "light_level": max(from_sky - int((1.0 - sun) * _DARKEST_NIGHT), from_blocks),
        "sun_brightness": sun,
    }


def sun_brightness(daytime: float, raining: bool) -> float:
    """Return the daylight, 0 at night to 1 by day (minecraft.wiki, "Light", internal sky light).

    Args:
        daytime: Ticks since sunrise.
        raining: Whether it rains.
    """
    day = min(max(2.0 * math.cos(sun_angle(daytime)) + 0.5, 0.0), 1.0)
    return day * (1.0 - _RAIN_DIMS) if raining else day
