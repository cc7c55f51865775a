"""What shows that a block is mined, or aimed at: cracks, outline and dust.

They are drawn over a picture of the world, on the pixels whose depth shows that they are not
hidden. As in Minecraft Java 1.16, the picture of cracks is multiplied with what is behind it, so
that middle grey changes nothing; and the outline is a black line, 2.5 pixels of the game's window
wide, that lets 0.6 of what is behind it pass.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.particles import PARTICLE_DTYPE, Particles
from rllib_minestudio.env.voxel.entities.records import Mobs
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.player.raycast import BLOCK, TARGET_DTYPE, find_target_in_frame
from rllib_minestudio.env.voxel.render.block_atlas import FACE_BITS, BlockAtlas, laid_along_axes
from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
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
    FACE_BOTTOM,
    FACE_SHADE,
    FACE_SOUTH,
    FACES,
    MIP_OFFSET,
    TEXTURE_SIZE,
    Textures,
    textures_of,
)
from rllib_minestudio.env.voxel.render.window import WINDOW_HEIGHT, Sampling
from rllib_minestudio.env.voxel.world.block_shapes import (
    EDGE_FACES,
    EDGE_FIRST,
    EDGES,
    MODEL_BOXES,
    MODEL_FIRST,
    shape_at,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, GRASS_BLOCK, kind_of
from rllib_minestudio.env.voxel.world.light_field import light_at
from rllib_minestudio.env.voxel.world.world import World

# ------------------------------------------------------------------------------- the dust of blocks
# The dust of blocks: small squares that face the camera, in the colours of the block's picture.

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


# -------------------------- what shows that a block is mined, or aimed at: cracks, outline and dust

STAGES = 10
"""Pictures of cracks. The last is not shown to the player who mines."""
FAINTEST = 25
"""Texels with no more alpha than this are not drawn: a tenth."""
CRACK_TEXELS = MIP_OFFSET[-1] + 1
TOUCH = np.float32(5e-4)
"""A point within this of the surface of a block is on it, in blocks: rays end 2e-4 off."""
ALMOST_ONE = np.float32(0.9999)

LINE_WIDTH, LINE_ALPHA = 2.5, 0.4
LINE_NEARER = np.float32(255 / 256)
"""Factor on the depth of the outline, so that the faces that it bounds do not hide it."""
NEAR = np.float32(0.05)
MOST_ROWS = 3
"""Rows of samples in a pixel that stands for several of the window's."""
NO_PARTICLES = np.zeros(1, PARTICLE_DTYPE)

Doubles = NDArray[np.float64]


def crack_factors(textures: Textures) -> Floats:
    """Build what the pictures of cracks multiply colours by, with mip levels.

    Returns:
        float32 (STAGES, FACES, CRACK_TEXELS, 3), laid out as the textures of blocks.
    """
    factors = np.ones((STAGES, FACES, CRACK_TEXELS, 3), np.float32)
    for stage in range(STAGES):
        picture = textures.picture(f"block/destroy_stage_{stage}")[:TEXTURE_SIZE, :TEXTURE_SIZE]
        for face, laid in enumerate(laid_along_axes([picture] * FACES)):
            covered = laid[..., 3:] > FAINTEST
            level = np.where(covered, laid[..., :3] * (2 / 255), 1.0)
            for offset in MIP_OFFSET:
                size = len(level)
                factors[stage, face, offset : offset + size * size] = level.reshape(-1, 3)
                if size > 1:
                    level = level.reshape(size // 2, 2, size // 2, 2, 3).mean((1, 3))
    return factors


@lru_cache(maxsize=4)
def _cracks(pack: str | None) -> Floats:
    return crack_factors(textures_of(pack))


class MiningMarks:
    """Cracks, outline and dust for one sampling."""

    def __init__(
        self,
        sampling: Sampling,
        camera: Camera,
        eye: Doubles,
        rays: PixelRays,
        atlas: BlockAtlas,
        pack: str | None,
    ) -> None:
        """Prepare.

        Args:
            sampling: Which pixels are drawn.
            camera: The camera of all frames.
            eye: float64 (3,), position of the eye in the world in each frame.
            rays: Rays of the drawn pixels in each frame.
            atlas: Textures of blocks.
            pack: Path of a resource pack with pictures of cracks; None for ours.
        """
        width, height = sampling.drawn
        # A pixel that stands for several of the window's is as dark as the line's share of it.
        window = sampling.display_columns.shape[1], WINDOW_HEIGHT
        per_pixel = max(whole / drawn for whole, drawn in zip(window, sampling.window, strict=True))
        samples = min(max(round(per_pixel), 1), MOST_ROWS)
        share, touched = np.zeros(width * height, np.float32), np.zeros(width * height, np.int32)
        target = np.zeros(1, TARGET_DTYPE)
        # Gathered once, as Python would take a microsecond to do so.
        self._fixed: tuple[Any, ...] = (
            *(target, _cracks(pack), atlas.textures, atlas.faces, camera.vector, eye, *rays),
            *(samples, share, touched),
        )

    def draw(
        self,
        world: World,
        player: Player,
        mobs: Mobs,
        particles: Particles | None,
        image: Bytes,
        depth: Floats,
    ) -> None:
        """Draw what a player sees.

        Args:
            world: The blocks.
            player: The player who mines and aims.
            mobs: All mobs; one before a block hides it from the crosshair.
            particles: The dust; None for none.
            image: uint8 (h * w * 3,), drawn into.
            depth: float32 (h * w,), planar depth of the picture; updated where there is dust.
        """
        _draw_marks(
            image,
            depth,
            world.blocks,
            world.light,
            player.records,
            mobs.records,
            mobs.count,
            NO_PARTICLES if particles is None else particles.records,
            0 if particles is None else particles.count,
            *self._fixed,
        )


@scratch_kernel
def _draw_marks(
    image: Bytes, depth: Floats, blocks: Shorts, light: Bytes, players: NDArray[np.void],
    mobs: NDArray[np.void], mob_count: int, particles: NDArray[np.void], particle_count: int,
    targets: NDArray[np.void], cracks: Floats, atlas: Words, faces: Ints, camera: Floats,
    eye: Doubles, across: Floats, upward: Floats, columns_before: Ints, rows_before: Ints,
    samples: int, share: Floats, touched: Ints,
) -> None:  # fmt: skip
    """Draw cracks, outline and dust; see `MiningMarks`. One kernel, as each call costs 2 µs."""
    player, target = players[0], targets[0]
    rays = PixelRays(across, upward, columns_before, rows_before)
    corner = np.empty(3, np.float32)
    stage = int64(player.mining_progress * np.float32(STAGES)) - 1
    if player.is_mining and stage >= 0:
        x, y, z = player.mining_x, player.mining_y, player.mining_z
        corner[0], corner[1], corner[2] = x - eye[0], y - eye[1], z - eye[2]
        shape, factors = shape_at(blocks, x, y, z), cracks[min(stage, STAGES - 1)]
        for row in range(MODEL_FIRST[shape], MODEL_FIRST[shape + 1]):
            draw_cracks(corner, MODEL_BOXES[row], factors, camera, rays, image, depth)
    find_target_in_frame(blocks, player, mobs, mob_count, target)
    if target.kind == BLOCK:
        corner[0] = target.x - eye[0]
        corner[1] = target.y - eye[1]
        corner[2] = target.z - eye[2]
        shape = shape_at(blocks, target.x, target.y, target.z)
        draw_outline(shape, corner, camera, rays, samples, share, touched, image, depth)
    if particle_count:
        draw_particles(
            particles, particle_count, atlas, faces, light, camera, eye, rays, image, depth
        )


# ----------------------------------------------------------------------------------- corners, edges


@render_kernel
def _project_corners(corner: Floats, box: Floats, camera: Floats, view: Floats) -> None:
    """Write where the corners of a box are: ahead, to the right and above, `view` (8, 3).

    Bits 0, 1 and 2 of a corner's number tell whether it is the higher one along x, y and z.
    `corner` is the lowest one of the box's cell relative to the eye.
    """
    for number in range(8):
        x = corner[0] + box[3 * (number & 1)]
        y = corner[1] + box[1 + 3 * ((number >> 1) & 1)]
        z = corner[2] + box[2 + 3 * (number >> 2)]
        for row, axis in enumerate((FORWARD, RIGHT, UP)):
            view[number, row] = x * camera[axis] + y * camera[axis + 1] + z * camera[axis + 2]


@render_kernel
def _clipped(view: Floats, one: int, other: int, ends: Floats) -> bool:
    """Write the part of the edge between two corners that is ahead of the eye, `ends` (2, 3).

    Return whether there is such a part.
    """
    first, second = view[one, 0], view[other, 0]
    if max(first, second) < NEAR:
        return False
    for end in range(2):
        here, there = (one, other) if end == 0 else (other, one)
        share = float32(0)
        if view[here, 0] < NEAR:
            share = (NEAR - view[here, 0]) / (view[there, 0] - view[here, 0])
        for row in range(3):
            ends[end, row] = view[here, row] + (view[there, row] - view[here, row]) * share
    return True


@render_kernel
def _edge(number: int) -> tuple[int, int]:
    """The two corners at the ends of an edge of a box; there are twelve."""
    axis, around = number >> 2, number & 3
    first, second = (axis + 1) % 3, (axis + 2) % 3
    low = ((around & 1) << first) | ((around >> 1) << second)
    return low, low | (1 << axis)


# --------------------------------------------------------------------------------------- the cracks


@scratch_kernel
def _cover(view: Floats, camera: Floats, rays: PixelRays) -> tuple[int, int, int, int]:
    """The drawn pixels that a block may cover: left, right, upper, lower; ends excluded."""
    columns, rows = rays.columns_before, rays.rows_before
    width, height = float32(len(columns) - 1), float32(len(rows) - 1)
    left, right, upper, lower = width, float32(0), height, float32(0)
    ends = np.empty((2, 3), np.float32)
    for number in range(12):
        one, other = _edge(number)
        if not _clipped(view, one, other, ends):
            continue
        for end in range(2):
            per = float32(1) / ends[end, 0]
            x = width / 2 + ends[end, 1] * per / camera[STEP_X]
            y = height / 2 - ends[end, 2] * per / camera[STEP_Y]
            left, right = min(left, x), max(right, x)
            upper, lower = min(upper, y), max(lower, y)
    return (
        columns[int64(min(max(left, float32(0)), width))],
        columns[int64(min(max(right + 1, float32(0)), width))],
        rows[int64(min(max(upper, float32(0)), height))],
        rows[int64(min(max(lower + 1, float32(0)), height))],
    )


@render_kernel
def _side_in_view(corner: float, box: Floats, axis: int) -> tuple[float, int]:
    """Of a box's two sides across an axis, the one that the eye sees: its place, and its face.

    `corner` is the lower end of the box's cell relative to the eye. The place is far off if the eye
    is between the sides, and sees neither.
    """
    if corner + box[axis + 3] < 0:
        return box[axis + 3], int32(2 * axis)
    if corner + box[axis] > 0:
        return box[axis], int32(2 * axis + 1)
    return float32(9), int32(2 * axis)


@scratch_kernel
def draw_cracks(
    corner: Floats, box: Floats, factors: Floats, camera: Floats, rays: PixelRays, image: Bytes,
    depth: Floats,
) -> None:  # fmt: skip
    """Draw one stage of cracks on a box of a block's model.

    Args:
        corner: float32 (3,), the lowest corner of the block's cell relative to the eye.
        box: float32 (6,), see `block_shapes.MODEL_BOXES`.
        factors: float32 (FACES, CRACK_TEXELS, 3), see `crack_factors`.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth of the picture.
    """
    view = np.empty((8, 3), np.float32)
    _project_corners(corner, box, camera, view)
    left, right, upper, lower = _cover(view, camera, rays)
    stride, mip_depth = rays.columns_before[-1], camera[MIP_DEPTH]
    ox, oy, oz = corner[0], corner[1], corner[2]
    f0, f1, f2 = camera[FORWARD], camera[FORWARD + 1], camera[FORWARD + 2]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    u0, u1, u2 = camera[UP], camera[UP + 1], camera[UP + 2]
    side_x, face_x = _side_in_view(ox, box, 0)
    side_y, face_y = _side_in_view(oy, box, 1)
    side_z, face_z = _side_in_view(oz, box, 2)
    for py in range(upper, lower):
        sy = rays.upward[py]
        d0, d1, d2 = f0 + sy * u0, f1 + sy * u1, f2 + sy * u2
        for px in range(left, right):
            p = uint32(py * stride + px)
            t, sx = depth[p], rays.across[px]
            # Where the ray ends, in the block's cell.
            x, y, z = (d0 + sx * r0) * t - ox, (d1 + sx * r1) * t - oy, (d2 + sx * r2) * t - oz
            outside = max(max(box[0] - x, x - box[3]), max(box[1] - y, y - box[4]))
            if max(outside, max(box[2] - z, z - box[5])) > TOUCH:
                continue
            off_x, off_y, off_z = abs(x - side_x), abs(y - side_y), abs(z - side_z)
            u, v, face = x, ALMOST_ONE - y, face_z
            if off_x < min(off_y, off_z):
                u, face = z, face_x
            elif off_y < off_z:
                v, face = z, face_y
            size, offset = mip_level(t, mip_depth)
            column = int64(min(max(u, float32(0)), ALMOST_ONE) * size)
            row = int64(min(max(v, float32(0)), ALMOST_ONE) * size)
            texel = int64(offset) + row * int64(size) + column
            at = p * uint32(3)
            for channel in range(3):
                factor = factors[face, texel, channel]
                if factor != float32(1):
                    mixed = float32(image[at + uint32(channel)]) * factor + float32(0.5)
                    image[at + uint32(channel)] = uint8(min(mixed, float32(255)))


# -------------------------------------------------------------------------------------- the outline
# Lines are measured in pixels of the game's window. Each row of samples meets an edge's line in one
# interval, found where the row cuts the strip along the line and the strip across it:
#
#        \ end  \ . . . . . . .  row of samples
#         \      \     . /
#          \      \   . /
#           \ start\ . /

ALPHA, HALF_WIDTH = np.float32(LINE_ALPHA), np.float32(LINE_WIDTH / 2)


@render_kernel
def _interval(slope: float, start: float, low: float, high: float) -> tuple[float, float]:
    """The x from and to which `slope * x + start` is within [low, high]."""
    if abs(slope) < float32(1e-6):
        inside = low <= start <= high
        return (float32(-1e9), float32(1e9)) if inside else (float32(1), float32(0))
    one, other = (low - start) / slope, (high - start) / slope
    return min(one, other), max(one, other)


@render_kernel
def _is_seen(edge: int, corner: Floats) -> bool:
    """Whether one of the faces that an edge bounds is turned to the eye."""
    for face in range(FACES):
        if (EDGE_FACES[edge] >> face) & 1:
            axis = face >> 1
            at = corner[axis] + EDGES[edge, axis]
            if at > 0 if face & 1 else at < 0:
                return True
    return False


@scratch_kernel
def _ends_ahead(corner: Floats, edge: Floats, camera: Floats, ends: Floats) -> bool:
    """Write the part of an edge that is ahead of the eye, `ends` (2, 3), as `_clipped` does."""
    view = np.empty((2, 3), np.float32)
    for end in range(2):
        x = corner[0] + edge[3 * end]
        y = corner[1] + edge[3 * end + 1]
        z = corner[2] + edge[3 * end + 2]
        for row, axis in enumerate((FORWARD, RIGHT, UP)):
            view[end, row] = x * camera[axis] + y * camera[axis + 1] + z * camera[axis + 2]
    return _clipped(view, 0, 1, ends)


@render_kernel
def _cover_line(
    ends: Floats, unit: float, camera: Floats, rays: PixelRays, samples: int, share: Floats,
    touched: Ints, count: int, depth: Floats,
) -> int:  # fmt: skip
    """Add an edge's line to the pixels that it covers, unless they are hidden.

    Args:
        ends: float32 (2, 3), see `_clipped`.
        unit: A pixel of the game's window, one block ahead.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        samples: Rows of samples in a pixel. If it is 1, the line covers all of a pixel or nothing.
        share: float32 (h * w,), how much of each pixel lines cover.
        touched: int32 (h * w,), the pixels of which any is covered.
        count: How many those are.
        depth: float32 (h * w,), planar depth of the picture.

    Returns:
        How many pixels are covered now.
    """
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    stride, step_x, step_y = columns[width], camera[STEP_X], camera[STEP_Y]
    near, far = float32(1) / ends[0, 0], float32(1) / ends[1, 0]
    ax, ay = ends[0, 1] * near / unit, ends[0, 2] * near / unit
    bx, by = ends[1, 1] * far / unit, ends[1, 2] * far / unit
    dx, dy = bx - ax, by - ay
    length = np.sqrt(dx * dx + dy * dy)
    if length < float32(1e-3):
        return count
    dx, dy = dx / length, dy / length
    highest, lowest = (max(ay, by) + HALF_WIDTH) * unit, (min(ay, by) - HALF_WIDTH) * unit
    top = float32(height) / 2 - highest / step_y
    bottom = float32(height) / 2 - lowest / step_y + 1
    first = rows[int64(min(max(top, float32(0)), float32(height)))]
    last = rows[int64(min(max(bottom, float32(0)), float32(height)))]
    per_unit, half_pixel = unit / step_x, step_x / unit / 2
    middle = float32(width) / 2
    for py in range(first, last):
        for sample in range(samples):
            down = (float32(sample) + float32(0.5)) / float32(samples) - float32(0.5)
            y = (rays.upward[py] - down * step_y) / unit - ay
            low, high = _interval(-dy, dx * y, -HALF_WIDTH, HALF_WIDTH)
            begin, end = _interval(dx, dy * y, float32(0), length)
            low, high = max(low, begin) + ax, min(high, end) + ax
            if low > high:
                continue
            left, right = middle + low * per_unit, middle + high * per_unit + 1
            first_x = columns[int64(min(max(left, float32(0)), float32(width)))]
            last_x = columns[int64(min(max(right, float32(0)), float32(width)))]
            for px in range(first_x, last_x):
                x, p = rays.across[px] / unit, uint32(py * stride + px)
                if samples == 1:
                    covered = float32(1) if low <= x <= high else float32(0)
                else:
                    covered = min(high, x + half_pixel) - max(low, x - half_pixel)
                    covered = covered / (2 * half_pixel * float32(samples))
                along = min(max(((x - ax) * dx + y * dy) / length, float32(0)), float32(1))
                is_hidden = depth[p] * (near + (far - near) * along) < LINE_NEARER
                if covered <= float32(0) or is_hidden:
                    continue
                if share[p] == float32(0):
                    touched[count] = int32(p)
                    count += 1
                share[p] = min(share[p] + covered, float32(1))
    return count


@scratch_kernel
def draw_outline(
    shape: int, corner: Floats, camera: Floats, rays: PixelRays, samples: int, share: Floats,
    touched: Ints, image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw the outline of a block.

    Args:
        shape: Of the block, see `block_shapes.shape_at`.
        corner: float32 (3,), the lowest corner of the block's cell relative to the eye.
        camera: float32 (CAMERA_SIZE,).
        rays: Rays of the drawn pixels.
        samples: See `_cover_line`.
        share: float32 (h * w,), working memory, all 0.
        touched: int32 (h * w,), working memory.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth of the picture.
    """
    ends = np.empty((2, 3), np.float32)
    unit = camera[STEP_Y] * float32(len(rays.rows_before) - 1) / float32(WINDOW_HEIGHT)
    count = 0
    for edge in range(EDGE_FIRST[shape], EDGE_FIRST[shape + 1]):
        if _is_seen(edge, corner) and _ends_ahead(corner, EDGES[edge], camera, ends):
            count = _cover_line(ends, unit, camera, rays, samples, share, touched, count, depth)
    for number in range(count):
        p = uint32(touched[number])
        passes = float32(1) - ALPHA * share[p]
        share[p] = float32(0)
        for channel in range(3):
            at = p * uint32(3) + uint32(channel)
            image[at] = uint8(float32(image[at]) * passes + float32(0.5))
