"""Thin blocks near the eye: flat pictures that stand in their cells, drawn over the terrain.

Rays of the terrain pass through plants. So each plant within `FARTHEST` of the eye is drawn by
itself: its planes are projected to rectangles on the screen, and within these the rays are
intersected with the plane. Along a row of pixels the reciprocal of the depth, and everything that
is to be divided by it, are linear. The depth buffer decides what is hidden, texels with holes let
pass what is behind.

As in Minecraft Java 1.16, a plant has two planes that cross along the diagonals of the cell's
middle 14.4 pixels, a crop four that stand like the strokes of a #, a pixel lower than their cell.
Both sides of a plane show the picture as it is, not mirrored; it has the light of its cell, and no
shade by direction.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, int64, uint8, uint32, uint64

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
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.light import mip_level
from rllib_minestudio.env.voxel.render.texels import (
    FACE_SOUTH,
    TEXTURE_SIZE,
    TEXTURE_WORDS,
    TRANSPARENT,
    Texture,
    sprite_texture,
)
from rllib_minestudio.env.voxel.render.textures import Textures, textures_of
from rllib_minestudio.env.voxel.render.window import Rgba
from rllib_minestudio.env.voxel.world.block_states import (
    FAMILY_OF,
    kind_of,
    properties_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCKS
from rllib_minestudio.env.voxel.world.box_field import block_index, column_index
from rllib_minestudio.env.voxel.world.plants import PLANTS, ROWS, THIN_KINDS, shift_of
from rllib_minestudio.env.voxel.world.thin_blocks import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    lowest_bit,
)
from rllib_minestudio.env.voxel.world.world import World

FARTHEST = 32
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
_AROUND = 0.9
"""No part of a plant is farther than this from the middle of its cell, shift included."""
_HOLE = np.uint32(TRANSPARENT)

# --------------------------------------------------------------------------------------- pictures


class Sprites(NamedTuple):
    """The pictures of thin blocks.

    Attributes:
        textures: uint32, flat, `TEXTURE_WORDS` for each picture.
        starts: Where the picture of a block starts, int32 (2**16,); 0 for what is not thin.
    """

    textures: Texture
    starts: Ints


_ROWS = np.array([kind in PLANTS and PLANTS[kind].planes == ROWS for kind in range(len(BLOCKS))])
_SHIFT = np.array(
    [PLANTS[kind].shift if kind in PLANTS else 0 for kind in range(len(BLOCKS))], np.int64
)


def build_sprites(textures: Textures) -> Sprites:
    """Build the pictures of all thin blocks in all their states, with mip levels."""
    starts = np.zeros(1 << 16, np.int32)
    words: dict[bytes, int] = {}
    built: list[Texture] = []
    for kind in sorted(THIN_KINDS):
        for block in states_of(kind):
            picture = _picture(textures, block)
            key = picture.tobytes()
            if key not in words:
                words[key] = len(built) * TEXTURE_WORDS
                built.append(sprite_texture(picture))
            starts[block] = words[key]
    return Sprites(np.concatenate(built), starts)


def _picture(textures: Textures, block: int) -> Rgba:
    """A thin block's picture; a young stem is sunk into the ground."""
    kind, properties = kind_of(block), properties_of(block)
    picture = textures.block_faces(BLOCKS[kind].name, properties)[FACE_SOUTH]
    if FAMILY_OF[kind].name != "stem":
        return picture
    shown = (int(properties["age"]) + 1) * TEXTURE_SIZE // 8
    grown = np.zeros_like(picture)
    grown[TEXTURE_SIZE - shown :] = picture[:shown]
    return grown


@lru_cache(maxsize=4)
def _sprites(pack: str | None) -> Sprites:
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
            world.thin,
            world.light,
            camera.column_x,
            camera.column_z,
            FARTHEST,
            *self._fixed,
        )


# ----------------------------------------------------------------------------------------- drawing

# Light RGB, fog RGB, share of fog.
Tint = tuple[float, float, float, float, float, float, float]


@render_kernel
def draw_plants(
    image: Bytes, depth: Floats, blocks: Shorts, thin: Bits, light: Bytes, column_x: int,
    column_z: int, farthest: int, textures: Words, starts: Ints, camera: Floats, across: Floats,
    upward: Floats, columns_before: Ints, rows_before: Ints,
) -> None:  # fmt: skip
    """Draw the thin blocks around the eye; one kernel, as each call costs 2 µs.

    Args:
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, updated.
        blocks: The window's blocks, uint16 [2**23].
        thin: See `thin_blocks`.
        light: Level of sky light, uint8 [2**23].
        column_x: Block column of the eye.
        column_z: Block column of the eye.
        farthest: Blocks from the eye beyond which nothing is drawn.
        textures: See `Sprites`.
        starts: See `Sprites`.
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
    """
    rays = PixelRays(across, upward, columns_before, rows_before)
    reach = min(float32(farthest), camera[VIEW])
    columns = int64(reach)
    plane = np.empty(5, np.float32)
    for x in range(column_x - columns, column_x + columns + 1):
        for z in range(column_z - columns, column_z + columns + 1):
            first = COLUMN_WORDS * column_index(x, z)
            for part in range(COLUMN_WORDS):
                word = thin[first + part]
                while word != uint64(0):
                    layer = lowest_bit(word)
                    word &= word - uint64(1)
                    y = part * WORD_LAYERS + layer
                    ahead, distance = _offset(camera, x - column_x, y, z - column_z)
                    if distance > reach or not _in_view(camera, x - column_x, y, z - column_z, rays):
                        continue
                    index = uint32(block_index(x, y, z))
                    block = blocks[index]
                    kind = kind_of(block)
                    tint = _tint(camera, int64(light[index]), distance)
                    shift_x, shift_y, shift_z = shift_of(x, z, _SHIFT[kind])
                    plane[0] = float32(x - column_x) - camera[EYE_X] + float32(shift_x)
                    plane[1] = float32(y) - camera[EYE_Y] + float32(shift_y)
                    plane[2] = float32(z - column_z) - camera[EYE_Z] + float32(shift_z)
                    size, offset = mip_level(ahead, camera[MIP_DEPTH])
                    texture = starts[block] + offset
                    _draw_planes(
                        plane, _ROWS[kind], textures, texture, size, tint, camera, rays, image,
                        depth,
                    )  # fmt: skip


@render_kernel
def _offset(camera: Floats, x: int, y: int, z: int) -> tuple[float, float]:
    """How far ahead of the eye the middle of a cell is, and how far away.

    `x` and `z` are counted from the eye's column, here and below.
    """
    dx = float32(x) + _HALF - camera[EYE_X]
    dy = float32(y) + _HALF - camera[EYE_Y]
    dz = float32(z) + _HALF - camera[EYE_Z]
    ahead = dx * camera[FORWARD] + dy * camera[FORWARD + 1] + dz * camera[FORWARD + 2]
    return ahead, np.sqrt(dx * dx + dy * dy + dz * dz)


@render_kernel
def _in_view(camera: Floats, x: int, y: int, z: int, rays: PixelRays) -> bool:
    """Whether some of a cell may be in the frame, by a sphere around it."""
    dx = float32(x) + _HALF - camera[EYE_X]
    dy = float32(y) + _HALF - camera[EYE_Y]
    dz = float32(z) + _HALF - camera[EYE_Z]
    around = float32(_AROUND)
    ahead = dx * camera[FORWARD] + dy * camera[FORWARD + 1] + dz * camera[FORWARD + 2] + around
    if ahead < NEAR:
        return False
    side = dx * camera[RIGHT] + dy * camera[RIGHT + 1] + dz * camera[RIGHT + 2]
    rise = dx * camera[UP] + dy * camera[UP + 1] + dz * camera[UP + 2]
    half_x = camera[STEP_X] * float32(len(rays.columns_before) - 1) * _HALF
    half_y = camera[STEP_Y] * float32(len(rays.rows_before) - 1) * _HALF
    # The nearest planes of the sphere and of the view's edge differ by this much at most.
    margin_x, margin_y = around * (_ONE + half_x), around * (_ONE + half_y)
    return abs(side) < ahead * half_x + margin_x and abs(rise) < ahead * half_y + margin_y


@render_kernel
def _tint(camera: Floats, level: int, distance: float) -> Tint:
    fog = (distance / camera[VIEW] - camera[FOG_START]) * camera[FOG_SCALE]
    at = LIGHT + 3 * level
    return (
        camera[at],
        camera[at + 1],
        camera[at + 2],
        camera[FOG_RGB],
        camera[FOG_RGB + 1],
        camera[FOG_RGB + 2],
        min(max(fog, _ZERO), _ONE),
    )


@render_kernel
def _draw_planes(
    plane: Floats, rows: bool, textures: Words, texture: int, size: float, tint: Tint,
    camera: Floats, rays: PixelRays, image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw the planes of a thin block whose cell, shifted, begins at `plane[:3]` from the eye."""
    x, z = plane[0], plane[2]
    if rows:
        plane[1] -= float32(ROW_SINK)
        for place in ROW_PLACES:
            plane[0], plane[2], plane[3], plane[4] = x + float32(place), z, _ZERO, _ONE
            _draw_plane(plane, textures, texture, size, tint, camera, rays, image, depth)
            plane[0], plane[2], plane[3], plane[4] = x, z + float32(place), _ONE, _ZERO
            _draw_plane(plane, textures, texture, size, tint, camera, rays, image, depth)
        return
    low, span = float32(CROSS_FROM), float32(CROSS_SPAN)
    plane[0], plane[2], plane[3], plane[4] = x + low, z + low, span, span
    _draw_plane(plane, textures, texture, size, tint, camera, rays, image, depth)
    plane[2], plane[4] = z + low + span, -span
    _draw_plane(plane, textures, texture, size, tint, camera, rays, image, depth)


@render_kernel
def _draw_plane(
    plane: Floats, textures: Words, texture: int, size: float, tint: Tint, camera: Floats,
    rays: PixelRays, image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw a picture on an upright plane, one block high.

    Args:
        plane: float32 (5,), its lower corner relative to the eye, and how far it goes from there
            along x and z.
        textures: See `Sprites`.
        texture: Where the picture's mip level starts.
        size: Texels per side of that level.
        tint: See `Tint`.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), updated.
    """
    along_x, along_z = plane[3], plane[4]
    away = along_x * plane[2] - along_z * plane[0]
    if abs(away) < _FLAT:
        return
    left, right, upper, lower = _cover(plane, camera, rays)
    f, r, u = FORWARD, RIGHT, UP
    per = _ONE / away
    # Per depth: how fast rays approach the plane, straight ahead and for a step aside and up.
    near_f = (along_x * camera[f + 2] - along_z * camera[f]) * per
    near_r = (along_x * camera[r + 2] - along_z * camera[r]) * per
    near_u = (along_x * camera[u + 2] - along_z * camera[u]) * per
    # How fast they go along it. Seen from behind, the picture begins at the other end.
    turn = -_ONE if away > _ZERO else _ONE
    scale = turn / (along_x * along_x + along_z * along_z)
    along_f = (along_x * camera[f] + along_z * camera[f + 2]) * scale
    along_r = (along_x * camera[r] + along_z * camera[r + 2]) * scale
    along_u = (along_x * camera[u] + along_z * camera[u + 2]) * scale
    begin = (along_x * plane[0] + along_z * plane[2]) * scale - (_ONE if turn < _ZERO else _ZERO)
    bottom = plane[1]
    rise_f, rise_r, rise_u = camera[f + 1], camera[r + 1], camera[u + 1]
    lr, lg, lb, fr, fg, fb, fog = tint
    stride = rays.columns_before[-1]
    for py in range(upper, lower):
        sy = rays.upward[uint32(py)]
        near, along, rise = near_f + sy * near_u, along_f + sy * along_u, rise_f + sy * rise_u
        for px in range(left, right):
            sx = rays.across[uint32(px)]
            t = _ONE / max(near + sx * near_r, float32(1e-6))
            column = (along + sx * along_r) * t - begin
            row = _ONE - ((rise + sx * rise_r) * t - bottom)
            p = uint32(py * stride + px)
            if min(column, row) < _ZERO or max(column, row) >= _ONE or not NEAR < t < depth[p]:
                continue
            rgb = textures[uint32(texture + int64(row * size) * int64(size) + int64(column * size))]
            if rgb & _HOLE:
                continue
            depth[p] = t
            red = float32(rgb & uint32(255)) * lr
            green = float32((rgb >> uint32(8)) & uint32(255)) * lg
            blue = float32((rgb >> uint32(16)) & uint32(255)) * lb
            at = p * uint32(3)
            image[at] = uint8(red + (fr - red) * fog + _HALF)
            image[at + uint32(1)] = uint8(green + (fg - green) * fog + _HALF)
            image[at + uint32(2)] = uint8(blue + (fb - blue) * fog + _HALF)


@render_kernel
def _corner(plane: Floats, camera: Floats, number: int) -> tuple[float, float, float]:
    """How far ahead of the eye, to its right and above it a corner (0 to 3) of a plane is."""
    x, y, z = plane[0], plane[1], plane[2]
    if number & 1:
        x, z = x + plane[3], z + plane[4]
    if number & 2:
        y += _ONE
    return (
        x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2],
        x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2],
        x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2],
    )


@render_kernel
def _cover(plane: Floats, camera: Floats, rays: PixelRays) -> tuple[int, int, int, int]:
    """The drawn pixels that a plane may cover: left, right, upper, lower; ends excluded."""
    width, height = float32(len(rays.columns_before) - 1), float32(len(rays.rows_before) - 1)
    left, right, lower, upper = _FAR, -_FAR, _FAR, -_FAR
    for number in range(4):
        ahead, side, rise = _corner(plane, camera, number)
        if ahead >= NEAR:
            per = _ONE / ahead
            left, right = min(left, side * per), max(right, side * per)
            lower, upper = min(lower, rise * per), max(upper, rise * per)
            continue
        for axis in range(2):  # the edges from here to corners in view begin at the near plane
            there, beside, above = _corner(plane, camera, number ^ (1 << axis))
            if there >= NEAR:
                share = (NEAR - ahead) / (there - ahead)
                begin_x = (side + (beside - side) * share) / NEAR
                begin_y = (rise + (above - rise) * share) / NEAR
                left, right = min(left, begin_x), max(right, begin_x)
                lower, upper = min(lower, begin_y), max(upper, begin_y)
    first_x = width * _HALF + left / camera[STEP_X]
    last_x = width * _HALF + right / camera[STEP_X] + _ONE
    first_y = height * _HALF - upper / camera[STEP_Y]
    last_y = height * _HALF - lower / camera[STEP_Y] + _ONE
    return (
        rays.columns_before[int64(min(max(first_x, _ZERO), width))],
        rays.columns_before[int64(min(max(last_x, _ZERO), width))],
        rays.rows_before[int64(min(max(first_y, _ZERO), height))],
        rays.rows_before[int64(min(max(last_y, _ZERO), height))],
    )
