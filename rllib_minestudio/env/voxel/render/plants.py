"""Thin blocks around the eye: flat pictures that stand in their cells, drawn over the terrain.

Rays of the terrain pass through plants. So each plant within `FARTHEST` of the eye is drawn by
itself, where the depth buffer shows that nothing is before it; texels with holes let pass what is
behind.

As in Minecraft Java 1.16, a plant has two planes that cross along the diagonals of the cell's
middle 14.4 pixels, a crop four that stand like the strokes of a #, a pixel lower than their cell.
Both sides of a plane show the picture as it is, not mirrored; it has the light of its cell, and no
shade by direction. A plane is projected to a rectangle on the screen, and the rays within are
intersected with it: along a row of pixels, the reciprocal of the depth is linear, and so is
everything that is to be divided by it.

From where a texel is smaller than a pixel, it takes a close look to tell a cross from a picture
that faces the viewer. So plants at that distance are drawn as one such picture each, as wide as
the cross, all at the depth of its middle.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.render.block_atlas import in_all_tints
from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_RGB,
    FOG_SCALE,
    FOG_START,
    FORWARD,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    VIEW,
    Bytes,
    Camera,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
    scratch_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.light import mip_level
from rllib_minestudio.env.voxel.render.textures import (
    FACE_SOUTH,
    TEXTURE_SHIFT,
    TEXTURE_SIZE,
    TEXTURE_WORDS,
    TRANSPARENT,
    Texture,
    Textures,
    sprite_texture,
    textures_of,
)
from rllib_minestudio.env.voxel.render.window import Rgba
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCKS,
    FAMILY_OF,
    PLANTS,
    ROWS,
    THIN_KINDS,
    kind_of,
    properties_of,
    shift_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.box_field import WINDOW, block_index, column_index
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_between,
    lowest_bit,
)
from rllib_minestudio.env.voxel.world.world import World

FARTHEST = 16
"""Blocks from the eye beyond which plants are not drawn."""

CROSS_FROM, CROSS_SPAN = 0.8 / 16, 14.4 / 16
"""Along both axes, where the planes of a cross begin in their cell, and how far they go."""
ROW_PLACES = (4 / 16, 12 / 16)
"""Where the planes of a crop stand in their cell."""
ROW_SINK = 1 / 16
"""How much lower than their cell crops stand: farmland is as much lower than a block."""

NEAR = np.float32(0.05)
_FLAT = np.float32(1e-3)
"""Planes are not drawn if the eye is closer than this to them: only their edge would be seen."""
_FAR = np.float32(1e9)
_HALF, _ONE, _ZERO = np.float32(0.5), np.float32(1), np.float32(0)
_SLOWEST = np.float32(1e-6)
_LAST = np.float32(0.99999)
MOST_CELLS = 4096
"""Most thin blocks in a frame, the nearest ones; a meadow has some hundreds."""
_AROUND = np.float32(1.25)
"""No part of a plant is farther than this from the middle of its cell, shift included."""
_HOLE = np.uint32(TRANSPARENT)
_NO_TEXEL, _TEXEL_MASK = _HOLE, np.uint32(TEXTURE_SIZE**2 - 1)
"""What stands for no texel, and the bits of a texel's place in its mip level."""

# --------------------------------------------------------------------------------------- pictures


Flags = NDArray[np.bool_]


class PlantSprites(NamedTuple):
    """The pictures of thin blocks.

    Attributes:
        textures: uint32, flat, `TEXTURE_WORDS` for each picture.
        starts: Where the picture of a block starts, int32 (2**16,); 0 for what is not thin.
        tinted: Whether it is the first of some, one for each tint of a column, bool (2**16,).
    """

    textures: Texture
    starts: Ints
    tinted: Flags


_ROWS = np.array([kind in PLANTS and PLANTS[kind].planes == ROWS for kind in range(len(BLOCKS))])
_SHIFT = np.array(
    [PLANTS[kind].shift if kind in PLANTS else 0 for kind in range(len(BLOCKS))], np.int64
)


def build_sprites(textures: Textures) -> PlantSprites:
    """Build the pictures of all thin blocks in all their states, with mip levels."""
    starts, tinted = np.zeros(1 << 16, np.int32), np.zeros(1 << 16, np.bool_)
    words: dict[tuple[bytes, ...], int] = {}
    built: list[Texture] = []
    for kind in sorted(THIN_KINDS):
        for block in states_of(kind):
            pictures = _pictures(textures, block)
            key = tuple(picture.tobytes() for picture in pictures)
            if key not in words:
                words[key] = len(built) * TEXTURE_WORDS
                built.extend(sprite_texture(picture, keeps_cover=True) for picture in pictures)
            starts[block], tinted[block] = words[key], len(pictures) > 1
    return PlantSprites(np.concatenate(built), starts, tinted)


def _pictures(textures: Textures, block: int) -> list[Rgba]:
    """A thin block's picture in all tints of a column; a young stem is sunk into the ground."""
    kind, properties = kind_of(block), properties_of(block)
    versions = in_all_tints(textures, BLOCKS[kind].name, properties)
    pictures = [faces[FACE_SOUTH] for faces in versions]
    if FAMILY_OF[kind].name != "stem":
        return pictures
    shown = (int(properties["age"]) + 1) * TEXTURE_SIZE // 8
    grown = np.zeros_like(pictures[0])
    grown[TEXTURE_SIZE - shown :] = pictures[0][:shown]
    return [grown]


@lru_cache(maxsize=4)
def _sprites(pack: str | None) -> PlantSprites:
    return build_sprites(textures_of(pack))


class Plants:
    """The thin blocks that a renderer draws."""

    def __init__(self, camera: Camera, rays: PixelRays, pack: str | None) -> None:
        """Prepare.

        Args:
            camera: The camera of all frames.
            rays: Rays of the drawn pixels in each frame.
            pack: Path of a resource pack with pictures of blocks; None for ours.
        """
        self._camera = camera
        # Gathered once, as Python would take a microsecond to do so.
        self._fixed: tuple[Any, ...] = (*_sprites(pack), camera.vector, *rays)

    def draw(self, world: World, image: Bytes, depth: Floats) -> None:
        """Draw the thin blocks of a world.

        Args:
            world: The blocks.
            image: uint8 (h * w * 3,), a picture of the terrain, drawn into.
            depth: float32 (h * w,), its planar depth, updated.
        """
        camera = self._camera
        draw_plants(
            image,
            depth,
            world.blocks,
            world.tints,
            world.thin,
            world.light,
            camera.column_x,
            camera.column_z,
            FARTHEST,
            *self._fixed,
        )


# -------------------------------------------------------------------------- finding what is in view
# Kernels that are called for each frame go over lists, as each call counts references to all
# arrays. What they call takes numbers, or is inlined.

inlined = kernel(fastmath=True, inline="always")


@inlined
def _axes(camera: Floats) -> tuple[float, float, float, float, float, float, float, float, float]:
    """The camera's three axes, read once: LLVM cannot know that drawing does not change them."""
    f, r, u = FORWARD, RIGHT, UP
    return (
        *(camera[f], camera[f + 1], camera[f + 2], camera[r], camera[r + 1], camera[r + 2]),
        *(camera[u], camera[u + 1], camera[u + 2]),
    )


def _columns_from_near_to_far() -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List the columns around one.

    Returns:
        x and z of each, by distance, int32 (n, 2); and how many of them may be within so many
        blocks of an eye in the middle one, int64 (FARTHEST + 1,).
    """
    span = np.arange(-FARTHEST, FARTHEST + 1)
    x, z = (axis.ravel() for axis in np.meshgrid(span, span, indexing="ij"))
    # From the eye, wherever in its column, to the column's nearest point.
    away = np.hypot(np.maximum(abs(x) - 1, 0), np.maximum(abs(z) - 1, 0))
    order = np.lexsort((z, x, np.hypot(x, z)))
    order = order[away[order] < FARTHEST]
    within = [
        int((away[order] < reach + 1).nonzero()[0].max()) + 1 for reach in range(FARTHEST + 1)
    ]
    return np.stack([x, z], 1)[order].astype(np.int32), np.array(within, np.int64)


_COLUMNS, _WITHIN = _columns_from_near_to_far()


@render_kernel
def _are_near(thin: Bits, height: float, reach: float, column_x: int, column_z: int) -> bool:
    """Whether there are thin blocks around the eye: a glance, as there are none in most caves.

    Args:
        thin: See `cell_bits`.
        height: The eye's height.
        reach: How far they may be from the eye.
        column_x: The eye's column.
        column_z: The eye's column.
    """
    low, high = int64(height - reach) - 1, int64(height + reach) + 2
    lower, upper = bits_between(low, high, 0), bits_between(low, high, 1)
    # Along z, columns lie side by side, up to the window's edge, where they go on at its beginning.
    first_z = column_index(0, column_z - FARTHEST)
    before_edge = min(2 * FARTHEST + 1, WINDOW - first_z)
    for x in range(column_x - FARTHEST, column_x + FARTHEST + 1):
        found = uint64(0)
        for columns, z in ((before_edge, first_z), (2 * FARTHEST + 1 - before_edge, 0)):
            first = uint32(COLUMN_WORDS * (column_index(x, 0) + z))
            for column in range(uint32(columns)):
                word = first + uint32(COLUMN_WORDS) * column
                found |= (thin[word] & lower) | (thin[word + uint32(1)] & upper)
        if found != uint64(0):
            return True
    return False


@render_kernel
def _find_cells(
    thin: Bits, camera: Floats, half_x: float, half_y: float, reach: float, column_x: int,
    column_z: int, cells: Ints,
) -> int:  # fmt: skip
    """Find the thin blocks in view, from near to far, so that most of what they hide costs little.

    Args:
        thin: See `cell_bits`.
        camera: float32 (CAMERA_SIZE,).
        half_x: Half the width of the view one block ahead.
        half_y: Half its height.
        reach: How far they may be from the eye.
        column_x: The eye's column.
        column_z: The eye's column.
        cells: int32 (MOST_CELLS + 1,), receives `column << 7 | y` of each, where `column` is a row
            of `_COLUMNS`.

    Returns:
        How many there are, at most `MOST_CELLS`.
    """
    # The middle of a sphere in view is at most so far outside the planes through the view's edges.
    margin_x = _AROUND * np.sqrt(_ONE + half_x * half_x)
    margin_y = _AROUND * np.sqrt(_ONE + half_y * half_y)
    f0, f1, f2, r0, r1, r2, u0, u1, u2 = _axes(camera)
    to_x, to_y, to_z = _HALF - camera[EYE_X], _HALF - camera[EYE_Y], _HALF - camera[EYE_Z]
    found = uint32(0)
    for column in range(_WITHIN[int64(reach)]):
        x, z = _COLUMNS[uint32(column), 0], _COLUMNS[uint32(column), 1]
        first = uint32(COLUMN_WORDS * column_index(column_x + x, column_z + z))
        for part in range(COLUMN_WORDS):
            word = thin[first + uint32(part)]
            while word != uint64(0):
                y = part * WORD_LAYERS + lowest_bit(word)
                word &= word - uint64(1)
                dx, dy, dz = float32(x) + to_x, float32(y) + to_y, float32(z) + to_z
                ahead = dx * f0 + dy * f1 + dz * f2
                side, rise = dx * r0 + dy * r1 + dz * r2, dx * u0 + dy * u1 + dz * u2
                off = max(
                    abs(side) - ahead * half_x - margin_x, abs(rise) - ahead * half_y - margin_y
                )
                off = max(off, max(-ahead - _AROUND, dx * dx + dy * dy + dz * dz - reach * reach))
                cells[found] = int32(column << 7 | y)
                found += uint32(1) if (off < _ZERO) & (found < uint32(MOST_CELLS)) else uint32(0)
    return int64(found)


# A plant: lowest corner of its cell, shifted, relative to the eye; how far ahead of the eye its
# middle is; where its picture's mip level starts, and texels per side of that; where in the camera
# vector its light is; share of fog; whether it stands in rows.
CORNER, AHEAD, TEXTURE, SIZE, SHINE, FOG, IN_ROWS = 0, 3, 4, 5, 6, 7, 8
PLANT_SIZE = 9
MOST_PLANES = 4
"""Planes of a plant."""
MOST_PLANTS = 256
"""Plants in a list, which is drawn when it is full."""

List = NDArray[np.float32]
"""float32 [MOST_PLANTS, PLANT_SIZE]; places of textures are exact below 2**24."""


@inlined
def _look_up(
    cell: int, column_x: int, column_z: int, blocks: Shorts, tints: Bytes, light: Bytes,
    starts: Ints, tinted: Flags, camera: Floats, plants: List, row: int,
) -> None:  # fmt: skip
    """Write a plant found by `_find_cells` into a row of a list."""
    x, z, y = _COLUMNS[uint32(cell >> 7), 0], _COLUMNS[uint32(cell >> 7), 1], cell & 127
    index = uint32(block_index(column_x + x, y, column_z + z))
    block = blocks[index]
    kind = kind_of(block)
    shift_x, shift_y, shift_z = shift_of(column_x + x, column_z + z, _SHIFT[kind])
    dx = float32(x) - camera[EYE_X] + float32(shift_x)
    dy = float32(y) - camera[EYE_Y] + float32(shift_y)
    dz = float32(z) - camera[EYE_Z] + float32(shift_z)
    plants[row, CORNER], plants[row, CORNER + 1], plants[row, CORNER + 2] = dx, dy, dz
    dx, dy, dz = dx + _HALF, dy + _HALF, dz + _HALF
    ahead = dx * camera[FORWARD] + dy * camera[FORWARD + 1] + dz * camera[FORWARD + 2]
    size, offset = mip_level(ahead, camera[MIP_DEPTH])
    fog = np.sqrt(dx * dx + dy * dy + dz * dz) / camera[VIEW] - camera[FOG_START]
    plants[row, AHEAD], plants[row, SIZE] = ahead, size
    texture = starts[block]
    if tinted[block]:
        tint = int32(tints[uint32(column_index(column_x + x, column_z + z))])
        texture += tint << int32(TEXTURE_SHIFT)
    plants[row, TEXTURE] = float32(texture + offset)
    plants[row, SHINE] = float32(LIGHT + 3 * int32(light[index]))
    plants[row, FOG] = min(max(fog * camera[FOG_SCALE], _ZERO), _ONE)
    plants[row, IN_ROWS] = _ONE if _ROWS[kind] else _ZERO


@scratch_kernel
def draw_plants(
    image: Bytes, depth: Floats, blocks: Shorts, tints: Bytes, thin: Bits, light: Bytes,
    column_x: int, column_z: int, farthest: int, textures: Words, starts: Ints, tinted: Flags,
    camera: Floats, across: Floats, upward: Floats, columns_before: Ints, rows_before: Ints,
) -> None:  # fmt: skip
    """Draw the thin blocks around the eye.

    Args:
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, updated.
        blocks: The window's blocks, uint16 [2**23].
        tints: Tints of columns, see `world.land`.
        thin: See `cell_bits`.
        light: Level of sky light, uint8 [2**23].
        column_x: Block column of the eye.
        column_z: Block column of the eye.
        farthest: Blocks from the eye beyond which nothing is drawn, at most `FARTHEST`.
        textures: See `PlantSprites`.
        starts: See `PlantSprites`.
        tinted: See `PlantSprites`.
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
    """
    reach = min(float32(farthest), camera[VIEW])
    if not _are_near(thin, camera[EYE_Y], reach, column_x, column_z):
        return
    rays = PixelRays(across, upward, columns_before, rows_before)
    half_x = camera[STEP_X] * float32(len(columns_before) - 1) * _HALF
    half_y = camera[STEP_Y] * float32(len(rows_before) - 1) * _HALF
    cells = np.empty(MOST_CELLS + 1, np.int32)
    near = np.empty((MOST_PLANTS + 1, PLANT_SIZE), np.float32)
    far = np.empty((MOST_PLANTS + 1, PLANT_SIZE), np.float32)
    lanes = np.empty((4, len(across)), np.uint32)
    found = _find_cells(thin, camera, half_x, half_y, reach, column_x, column_z, cells)
    near_count, far_count, mip_depth = 0, 0, camera[MIP_DEPTH]
    for number in range(found):
        _look_up(
            cells[number], column_x, column_z, blocks, tints, light, starts, tinted, camera, far,
            far_count,
        )  # fmt: skip
        if far[far_count, AHEAD] > mip_depth:
            far_count += 1
        else:
            near[near_count] = far[far_count]
            near_count += 1
        if near_count == MOST_PLANTS:
            _draw_near(near, near_count, textures, camera, rays, lanes, image, depth)
            near_count = 0
        if far_count == MOST_PLANTS:
            _draw_far(far, far_count, textures, camera, rays, lanes, image, depth)
            far_count = 0
    _draw_near(near, near_count, textures, camera, rays, lanes, image, depth)
    _draw_far(far, far_count, textures, camera, rays, lanes, image, depth)


# ----------------------------------------------------------------------------- pixels of both kinds

Slopes = tuple[float, float, float]
"""How something changes with the depth of a ray: straight ahead, for a step aside, for one up."""
Tint = tuple[float, float, float, float, float, float]
"""Factors on a texel's red, green and blue, and what fog adds to them."""


@inlined
def _tint_of(plants: List, number: int, camera: Floats) -> Tint:
    shine, fog = uint32(plants[number, SHINE]), plants[number, FOG]
    clear = _ONE - fog
    return (
        camera[shine] * clear,
        camera[shine + uint32(1)] * clear,
        camera[shine + uint32(2)] * clear,
        camera[FOG_RGB] * fog + _HALF,
        camera[FOG_RGB + 1] * fog + _HALF,
        camera[FOG_RGB + 2] * fog + _HALF,
    )


@inlined
def _paint(image: Bytes, pixel: int, rgb: int, tint: Tint) -> None:
    """Write a pixel: a texel in its light and fog."""
    at = pixel * uint32(3)
    image[at] = uint8(float32(rgb & uint32(255)) * tint[0] + tint[3])
    image[at + uint32(1)] = uint8(float32((rgb >> uint32(8)) & uint32(255)) * tint[1] + tint[4])
    image[at + uint32(2)] = uint8(float32((rgb >> uint32(16)) & uint32(255)) * tint[2] + tint[5])


@render_kernel
def _to_line(place: float, step: float, size: float) -> float:
    """Where on a window's line of pixels a place on the plane one block ahead is, within it."""
    return min(max(size * _HALF + place / step, _ZERO), size)


@inlined
def _pixels(
    left: float, right: float, lower: float, upper: float, step_x: float, step_y: float,
    rays: PixelRays,
) -> tuple[int, int, int, int]:  # fmt: skip
    """The drawn pixels that a rectangle on the plane one block ahead may cover.

    Returns:
        Left, right, upper and lower; ends excluded.
    """
    columns, rows = rays.columns_before, rays.rows_before
    width, height = float32(len(columns) - 1), float32(len(rows) - 1)
    return (
        columns[uint32(_to_line(left, step_x, width))],
        columns[uint32(min(_to_line(right, step_x, width) + _ONE, width))],
        rows[uint32(_to_line(-upper, step_y, height))],
        rows[uint32(min(_to_line(-lower, step_y, height) + _ONE, height))],
    )


# ------------------------------------------------------------------------ plants near by, as planes


@render_kernel
def _draw_near(
    plants: List, count: int, textures: Words, camera: Floats, rays: PixelRays,
    lanes: NDArray[np.uint32], image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw the planes of plants near by.

    Args:
        plants: The list of them.
        count: How many are in it.
        textures: See `PlantSprites`.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        lanes: uint32 (4, at least w), working memory.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), updated.
    """
    f0, f1, f2, r0, r1, r2, u0, u1, u2 = _axes(camera)
    step_x, step_y = camera[STEP_X], camera[STEP_Y]
    for plane in range(count * MOST_PLANES):
        number, in_rows = plane // MOST_PLANES, plants[plane // MOST_PLANES, IN_ROWS] != _ZERO
        if plane % MOST_PLANES > 1 and not in_rows:
            continue
        x, y, z, along_x, along_z = _plane_of(
            plants[number, 0], plants[number, 1], plants[number, 2], plane % MOST_PLANES, in_rows
        )
        away = along_x * z - along_z * x
        if abs(away) < _FLAT:
            continue
        west, east, low, high = _bounds(
            x, y, z, along_x, along_z, f0, f1, f2, r0, r1, r2, u0, u1, u2
        )
        pixels = _pixels(west, east, low, high, step_x, step_y, rays)
        # Per depth: how fast rays approach the plane, straight ahead and for a step aside and up.
        near = (
            (along_x * f2 - along_z * f0) / away,
            (along_x * r2 - along_z * r0) / away,
            (along_x * u2 - along_z * u0) / away,
        )
        # How fast they go along it. Seen from behind, the picture begins at the other end.
        scale = (-_ONE if away > _ZERO else _ONE) / (along_x * along_x + along_z * along_z)
        along = (
            (along_x * f0 + along_z * f2) * scale,
            (along_x * r0 + along_z * r2) * scale,
            (along_x * u0 + along_z * u2) * scale,
        )
        begin = (along_x * x + along_z * z) * scale - (_ONE if away > _ZERO else _ZERO)
        _draw_plane(
            near, along, (f1, r1, u1), begin, y + _ONE, pixels, plants[number, SIZE],
            uint32(plants[number, TEXTURE]), _tint_of(plants, number, camera), textures, rays,
            lanes, image, depth,
        )  # fmt: skip


@inlined
def _draw_plane(
    near: Slopes, along: Slopes, rise: Slopes, begin: float, top: float,
    within: tuple[int, int, int, int], size: float, texture: int, tint: Tint, textures: Words,
    rays: PixelRays, lanes: NDArray[np.uint32], image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw a plane.

    Args:
        near: How fast rays approach it, as a share of the way per depth.
        along: How fast they go along it, in its lengths per depth.
        rise: How fast they rise.
        begin: Where its picture begins along it.
        top: How far above the eye its upper edge is.
        within: Left, right, upper and lower end of the pixels that it may cover.
        size: Texels per side of its picture's mip level.
        texture: Where that level starts.
        tint: See `Tint`.
        textures: See `PlantSprites`.
        rays: Rays of the drawn pixels.
        lanes: uint32 (4, at least w), working memory.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), updated.
    """
    left, right, upper, lower = within
    depths, texels, words, pixels = lanes[0].view(np.float32), lanes[1], lanes[2], lanes[3]
    width = uint32(max(right - left, 0))
    for py in range(upper, lower):
        sy, first = rays.upward[uint32(py)], uint32(py * rays.columns_before[-1] + left)
        near_here, along_here = near[0] + sy * near[2], along[0] + sy * along[2]
        rise_here = rise[0] + sy * rise[2]
        for i in range(width):
            sx = rays.across[uint32(left) + i]
            t = _ONE / max(near_here + sx * near[1], _SLOWEST)
            column = (along_here + sx * along[1]) * t - begin
            row = top - (rise_here + sx * rise[1]) * t
            off = max(max(-column, column - _LAST), max(-row, row - _LAST))
            off = max(off, max(t - depth[first + i], NEAR - t))
            texel = int32(row * size) * int32(size) + int32(column * size)
            depths[i] = t
            texels[i] = uint32(texel) if off < _ZERO else _NO_TEXEL
        # Collected without a branch, as no processor could predict where the holes are.
        seen = uint32(0)
        for i in range(width):
            rgb = textures[texture + (texels[i] & _TEXEL_MASK)]
            words[seen], pixels[seen] = rgb, i
            seen += uint32(1) if (texels[i] | rgb) & _HOLE == uint32(0) else uint32(0)
        for i in range(seen):
            depth[first + pixels[i]] = depths[pixels[i]]
            _paint(image, first + pixels[i], words[i], tint)


@render_kernel
def _plane_of(
    x: float, y: float, z: float, number: int, in_rows: bool
) -> tuple[float, float, float, float, float]:
    """A plane of the plant whose lowest corner is at (x, y, z).

    Returns:
        The lower corner where it begins, and how far it goes from there along x and z.
    """
    if in_rows:
        place = float32(ROW_PLACES[0] if number < 2 else ROW_PLACES[1])
        if number & 1:
            return x, y - float32(ROW_SINK), z + place, _ONE, _ZERO
        return x + place, y - float32(ROW_SINK), z, _ZERO, _ONE
    low, span = float32(CROSS_FROM), float32(CROSS_SPAN)
    if number == 0:
        return x + low, y, z + low, span, span
    return x + low, y, z + low + span, span, -span


@render_kernel
def _bounds(
    x: float, y: float, z: float, along_x: float, along_z: float, f0: float, f1: float, f2: float,
    r0: float, r1: float, r2: float, u0: float, u1: float, u2: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """What a plane covers on the plane one block ahead of the eye: left, right, lower, upper."""
    left, right, lower, upper = _FAR, -_FAR, _FAR, -_FAR
    for corner in range(4):
        end, top = float32(corner & 1), float32(corner >> 1)
        cx, cy, cz = x + end * along_x, y + top, z + end * along_z
        ahead = cx * f0 + cy * f1 + cz * f2
        side, rise = cx * r0 + cy * r1 + cz * r2, cx * u0 + cy * u1 + cz * u2
        if ahead >= NEAR:
            per = _ONE / ahead
            left, right = min(left, side * per), max(right, side * per)
            lower, upper = min(lower, rise * per), max(upper, rise * per)
            continue
        for axis in range(2):  # the edges from here to corners in view begin at the near plane
            dx = (_ONE - end - end) * along_x if axis == 0 else _ZERO
            dy = _ZERO if axis == 0 else _ONE - top - top
            dz = (_ONE - end - end) * along_z if axis == 0 else _ZERO
            farther = dx * f0 + dy * f1 + dz * f2
            if ahead + farther >= NEAR:
                share = (NEAR - ahead) / farther
                begin_x = (side + (dx * r0 + dy * r1 + dz * r2) * share) / NEAR
                begin_y = (rise + (dx * u0 + dy * u1 + dz * u2) * share) / NEAR
                left, right = min(left, begin_x), max(right, begin_x)
                lower, upper = min(lower, begin_y), max(upper, begin_y)
    return left, right, lower, upper


# --------------------------------------------------------------------- plants far away, as pictures


@render_kernel
def _draw_far(
    plants: List, count: int, textures: Words, camera: Floats, rays: PixelRays,
    lanes: NDArray[np.uint32], image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw plants far away, each as one picture parallel to the screen; arguments as above."""
    across, upward, stride = rays.across, rays.upward, rays.columns_before[-1]
    texels, words, pixels = lanes[1], lanes[2], lanes[3]
    _, _, _, r0, r1, r2, u0, u1, u2 = _axes(camera)
    step_x, step_y = camera[STEP_X], camera[STEP_Y]
    # Across, the wider of the two planes of a cross; upright, as long as it looks from above.
    half_width = float32(CROSS_SPAN) * _HALF * max(abs(r0 + r2), abs(r0 - r2))
    half_height = max(abs(u1) * _HALF, _FLAT)
    for number in range(count):
        x, y, z = plants[number, 0] + _HALF, plants[number, 1] + _HALF, plants[number, 2] + _HALF
        ahead, size = plants[number, AHEAD], plants[number, SIZE]
        per = _ONE / ahead
        side, rise = (x * r0 + y * r1 + z * r2) * per, (x * u0 + y * u1 + z * u2) * per
        left, right = side - half_width * per, side + half_width * per
        lower, upper = rise - half_height * per, rise + half_height * per
        first_x, last_x, first_y, last_y = _pixels(left, right, lower, upper, step_x, step_y, rays)
        per_x = size * ahead / (half_width + half_width)
        per_y = size * ahead / (half_height + half_height)
        texture, tint = uint32(plants[number, TEXTURE]), _tint_of(plants, number, camera)
        width = uint32(max(last_x - first_x, 0))
        for i in range(width):
            column = (across[uint32(first_x) + i] - left) * per_x
            inside = (column >= _ZERO) & (column < size)
            texels[i] = uint32(column) if inside else _NO_TEXEL
        for py in range(first_y, last_y):
            row = (upper - upward[uint32(py)]) * per_y
            if row < _ZERO or row >= size:
                continue
            line, first = texture + uint32(row) * uint32(size), uint32(py * stride + first_x)
            seen = uint32(0)
            for i in range(width):
                rgb = textures[line + (texels[i] & _TEXEL_MASK)]
                words[seen], pixels[seen] = rgb, first + i
                is_seen = ((texels[i] | rgb) & _HOLE == uint32(0)) & (depth[first + i] > ahead)
                seen += uint32(1) if is_seen else uint32(0)
            for i in range(seen):
                depth[pixels[i]] = ahead
                _paint(image, pixels[i], words[i], tint)
