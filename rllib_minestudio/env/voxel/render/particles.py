"""The dust of blocks: small squares that face the camera, in the colours of the block's picture."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.block_atlas import FACE_BITS
from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    LIGHT,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    Bytes,
    Floats,
    Ints,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.texels import (
    FACE_BOTTOM,
    FACE_SHADE,
    FACE_SOUTH,
    TEXTURE_SIZE,
)
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, GRASS_BLOCK
from rllib_minestudio.env.voxel.world.light_field import light_at

DIMMING = 0.6
"""Factor on the colours of the block's picture."""
SHOWN = 4
"""Texels per side of the part of the picture that a particle shows."""
NEAREST, FARTHEST = 0.05, 32.0
"""Particles closer to the eye than this, or farther away, are not drawn; in blocks."""

# Dust has the picture of a block's side. Grass is the exception: its dust is earth.
DUST_FACE = np.full(len(BLOCKS), FACE_SOUTH, np.int64)
DUST_FACE[GRASS_BLOCK] = FACE_BOTTOM
# The pictures in the atlas have their face's shade, which dust has not.
DUST_SHADE = (DIMMING / np.array(FACE_SHADE)[DUST_FACE]).astype(np.float32)


@render_kernel
def _draw_square(
    ahead: float, side: float, rise: float, half: float, texel: int, row: float, column: float,
    light: tuple[float, float, float], atlas: Words, camera: Floats, rays: PixelRays,
    image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw one particle.

    Args:
        ahead: How far ahead of the eye its middle is.
        side: How far to the right.
        rise: How far above.
        half: Half its side.
        texel: Where the block's picture starts in the atlas.
        row: First row of the picture that it shows.
        column: First column.
        light: Factors on red, green and blue.
        atlas: uint32, `BlockAtlas.textures`.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), updated.
    """
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    stride = columns[width]
    per = float32(1) / ahead
    x, y = side * per / camera[STEP_X], rise * per / camera[STEP_Y]
    reach_x, reach_y = half * per / camera[STEP_X], half * per / camera[STEP_Y]
    x, y = float32(width) / 2 + x, float32(height) / 2 - y
    left = columns[int64(min(max(x - reach_x, float32(0)), float32(width)))]
    right = columns[int64(min(max(x + reach_x + 1, float32(0)), float32(width)))]
    upper = rows[int64(min(max(y - reach_y, float32(0)), float32(height)))]
    lower = rows[int64(min(max(y + reach_y + 1, float32(0)), float32(height)))]
    scale = float32(SHOWN) / (2 * half)
    for py in range(upper, lower):
        down = (rise + half - rays.upward[py] * ahead) * scale
        if not 0 <= down < SHOWN:
            continue
        line = texel + int64(row + down) * TEXTURE_SIZE
        for px in range(left, right):
            along = (rays.across[px] * ahead - side + half) * scale
            p = uint32(py * stride + px)
            if not 0 <= along < SHOWN or ahead >= depth[p]:
                continue
            depth[p] = ahead
            rgb = atlas[uint32(line + int64(column + along))]
            at = p * uint32(3)
            image[at] = uint8(float32(rgb & uint32(255)) * light[0])
            image[at + uint32(1)] = uint8(float32((rgb >> uint32(8)) & uint32(255)) * light[1])
            image[at + uint32(2)] = uint8(float32((rgb >> uint32(16)) & uint32(255)) * light[2])


@render_kernel
def draw_particles(
    particles: NDArray[np.void], count: int, atlas: Words, faces: Ints, light_field: Bytes,
    camera: Floats, eye: NDArray[np.float64], rays: PixelRays, image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw particles.

    Args:
        particles: Records of `entities.particles.PARTICLE_DTYPE`.
        count: Number of records in use.
        atlas: uint32, `BlockAtlas.textures`.
        faces: int32 (2**19,), `BlockAtlas.faces`.
        light_field: uint8 (2**23,), both levels of each cell.
        camera: float32 (CAMERA_SIZE,).
        eye: float64 (3,), world position of the eye.
        rays: Rays of the drawn pixels.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, updated.
    """
    for i in range(count):
        particle = particles[i]
        place = particle.seen
        x = float32(place[0] - eye[0])
        y = float32(place[1] - eye[1])
        z = float32(place[2] - eye[2])
        ahead = x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2]
        if not NEAREST < ahead < FARTHEST:
            continue
        side = x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2]
        rise = x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2]
        cell_x, cell_y = int64(math.floor(place[0])), int64(math.floor(place[1]))
        byte = light_at(light_field, cell_x, cell_y, int64(math.floor(place[2])))
        block = int64(particle.block)
        kind = kind_of(block)
        first, shade = LIGHT + 3 * byte, DUST_SHADE[kind]
        light = (
            camera[first] * shade,
            camera[first + 1] * shade,
            camera[first + 2] * shade,
        )
        texture = int64(faces[(block << FACE_BITS) | DUST_FACE[kind]])
        _draw_square(
            ahead, side, rise, float32(particle.half), texture, float32(particle.row),
            float32(particle.column), light, atlas, camera, rays, image, depth,
        )  # fmt: skip
