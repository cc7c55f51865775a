"""Ray casting of the block world into colour and depth, in tiles of 8 x 8 rays."""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FORWARD,
    LEVELS,
    RIGHT,
    UP,
    VIEW,
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.corner_light import (
    BESIDE,
    FULLY,
    MIXED,
    SHADED,
    WHITE,
    add_levels,
    count_cubes,
    find_neighbours,
    is_bright,
    key_faces,
    light_evenly,
    list_faces,
    lowest_white,
    open_all,
    spread_both_lights,
    spread_light,
    spread_openness,
)
from rllib_minestudio.env.voxel.render.light import (
    choose_texels,
    count_hits,
    find_fronts,
    locate_hits,
    shade_hits,
    uncover,
)
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BLOCK_INDEX,
    BLUE,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    DEPTH,
    DIR_X,
    DIR_Y,
    DIR_Z,
    FIELD,
    GREEN,
    HALF,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    NUDGE,
    ONE,
    ORG_X,
    ORG_Y,
    ORG_Z,
    RAY_X,
    RAY_Y,
    RED,
    SMALLEST_SLOPE,
    T_MAX,
    T_NOW,
    TILE,
    ZERO,
)
from rllib_minestudio.env.voxel.render.see_through import (
    forget_shapes,
    is_tinted,
    meet_blocks,
    show_faces,
    tint_all,
)
from rllib_minestudio.env.voxel.render.sky import show_sky
from rllib_minestudio.env.voxel.render.waiting_rays import (
    begin_pixels,
    put_aside,
    resume,
    store_waiting,
    take,
)
from rllib_minestudio.env.voxel.world.box_field import narrow_block_index


@render_kernel
def _aim(across: Floats, upward: Floats, tile_x: int, tile_y: int, s: Floats) -> None:
    """Write how far to the right and how far up each ray of a tile passes."""
    for row in range(TILE):
        for column in range(TILE):
            s[RAY_X + row * TILE + column] = across[uint32(tile_x + column)]
            s[RAY_Y + row * TILE + column] = upward[uint32(tile_y + row)]


@render_kernel
def _store(
    tile_x: int,
    tile_y: int,
    width: int,
    height: int,
    s: Floats,
    n: Ints,
    frame: Bytes,
    depth: Floats,
) -> None:
    """Copy a tile into the frame, clipped at the frame's right and lower edges."""
    columns = min(TILE, width - tile_x)
    for row in range(min(TILE, height - tile_y)):
        start = (tile_y + row) * width + tile_x
        pixels = frame[start * 3 : (start + columns) * 3]
        depths = depth[start : start + columns]
        for column in range(columns):
            i = row * TILE + column
            pixels[3 * column] = uint8(n[RED + i])
            pixels[3 * column + 1] = uint8(n[GREEN + i])
            pixels[3 * column + 2] = uint8(n[BLUE + i])
            depths[column] = s[DEPTH + i]


@render_kernel
def render_terrain(
    blocks: Shorts,
    box: Shorts,
    tints: Bytes,
    has_snow: bool,
    shade: Bytes,
    light: Bytes,
    ceiling: int,
    atlas: Words,
    faces: Ints,
    looks: Bytes,
    camera: Floats,
    across: Floats,
    upward: Floats,
    column_x: int,
    column_z: int,
    width: int,
    height: int,
    frame: Bytes,
    depth: Floats,
    s: Floats,
    n: Ints,
) -> None:
    """Draw blocks and sky.

    Args:
        blocks: uint16 (2**23,), the world's blocks.
        box: uint16 (2**23,), the world's box field.
        tints: uint8 (65536,), see `world.land`.
        has_snow: Whether there may be single layers of snow.
        shade: uint8 (65536,), see `world.lighting`.
        light: uint8 (2**23,), both levels of each cell, see `light_field`.
        ceiling: No block is at or above this height.
        atlas: uint32, `BlockAtlas.textures`.
        faces: int32 (2**19,), `BlockAtlas.faces` with looks, see `block_looks.with_looks`.
        looks: uint8 (65536,), `block_looks.LOOKS`.
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        column_x: Block column of the eye, modulo 256.
        column_z: Block column of the eye, modulo 256.
        width: Drawn pixels per row.
        height: Drawn rows.
        frame: uint8 (height * width * 3,), overwritten.
        depth: float32 (height * width,), overwritten with planar depth, `SKY_DEPTH` for sky.
        s: Float scratch of `ray_tiles.new_scratch`.
        n: Integer scratch of `ray_tiles.new_scratch`, with the hour's light map.
    """
    roof = float32(ceiling)
    around_eye = field_around_eye(box, camera, roof, column_x, column_z)
    white_sky, white_glow = lowest_white(1, n), lowest_white(LEVELS, n)
    forget_shapes(n)
    under_sky = WHITE if white_sky < LEVELS - 1 else FULLY
    # What the scratch already holds for all rays.
    is_open, level_before = False, MIXED
    per_row = (width + TILE - 1) // TILE
    tile, tiles, waiting = 0, per_row * ((height + TILE - 1) // TILE), 0
    while tile < tiles or waiting > 0:
        taken = 0
        tile_x, tile_y = tile % per_row * TILE, tile // per_row * TILE
        if waiting >= LANES or tile == tiles:
            taken = take(waiting, s, n)
            waiting -= taken
            start_rays(camera, roof, s)
            resume(taken, s)
        else:
            tile += 1
            _aim(across, upward, tile_x, tile_y, s)
            start_rays(camera, roof, s)
            if around_eye:
                leap_from_eye(camera, around_eye, s)
        enter_cells(box, column_x, column_z, s, n)
        for _ in range(MOST_LEAPS):
            if not go_on(roof, s, n) or not leap(camera, roof, s, n):
                break
            enter_cells(box, column_x, column_z, s, n)
        hits, special = count_hits(s, n), int32(0)
        if hits < LANES:
            show_sky(camera, s, n)
        if hits > 0:
            locate_hits(camera, s, n)
            special = choose_texels(camera, blocks, tints, has_snow, faces, s, n)
        if special:
            if taken == 0:
                begin_pixels(tile_x, tile_y, width, height, s, n)
            looked_up = blocks, tints, light, atlas, faces
            meet_blocks(special, *looked_up, camera, column_x, column_z, s, n)
            waiting, ended = put_aside(waiting, camera, roof, s, n)
            if ended:
                show_sky(camera, s, n)
            hits = count_hits(s, n)
            if hits > 0:
                locate_hits(camera, s, n)
                show_faces(n)
                choose_texels(camera, blocks, tints, has_snow, faces, s, n)
        if hits > 0:
            if find_fronts(box, s, n):
                uncover(camera, blocks, box, looks, s, n)
                choose_texels(camera, blocks, tints, has_snow, faces, s, n)
            found, level, glows = key_faces(shade, s, n), under_sky, False
            if found & SHADED and is_bright(white_sky, white_glow, light, n):
                found, level = found & BESIDE, WHITE
            if found:
                listed = list_faces(n)
                find_neighbours(listed, n)
                count_cubes(listed, blocks, looks, n)
                if found & SHADED:
                    level, glows = add_levels(listed, light, n)
                spread_openness(s, n)
            elif not is_open:
                open_all(s)
            if glows:
                spread_both_lights(level, s, n)
                level = MIXED
            elif level == MIXED:
                spread_light(0, 1, s, n)
            elif level != level_before:
                light_evenly(level, s, n)
            is_open, level_before = found == 0, level
            shade_hits(camera, atlas, s, n)
        if (taken or special) and is_tinted(n):
            tint_all(s, n)
        if taken:
            store_waiting(taken, s, n, frame, depth)
        else:
            _store(tile_x, tile_y, width, height, s, n, frame, depth)


# ----------------------------------------- Rays walk the block world from one empty box to the next
# For an air cell, the *box field* (see `box_field`) holds how far its layer is empty sideways, and
# for how many layers above and below, so one leap crosses a whole empty box. A tile of 8 x 8 rays
# advances in lockstep inside one flat scratch array. Index arithmetic, gathers and float arithmetic
# are separate loops, which lets LLVM vectorise them. Three habits matter (each cost a factor of two
# or more when it was missing): indices are cast to uint32 before use, gathers stay out of the
# arithmetic loops, and the origin is nudged along the ray by `NUDGE` rather than t by an epsilon,
# which could stall.
#
# Coordinates inside the kernels: the eye's column is at x = z = 128, so the 256 x 256 window around
# it is positive and truncation is floor. There are no blocks above `ceiling` and below 0, and the
# box field is undefined there: rays from outside begin where they enter, or end at once, and no ray
# turns back. A ray that leaves through the floor stays in the lowest cell, which is air, and shows
# the sky.

MOST_LEAPS = 256
"""Leaps after which a ray ends. Each crosses a border between cells at least, and a ray as long as
the longest view, 80 blocks, crosses fewer than 80 * sqrt(3) + 3."""


@render_kernel
def _away_from_zero(value: float) -> float:
    return SMALLEST_SLOPE if abs(value) < SMALLEST_SLOPE else value


@render_kernel
def start_rays(camera: Floats, ceiling: float, s: Floats) -> None:
    """Write a tile's directions and origins; rays from outside begin at the ceiling or at y = 0."""
    x = camera[EYE_X] + float32(CENTRE)
    y = camera[EYE_Y]
    z = camera[EYE_Z] + float32(CENTRE)
    view = camera[VIEW]
    f0, f1, f2 = camera[FORWARD], camera[FORWARD + 1], camera[FORWARD + 2]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    u0, u1, u2 = camera[UP], camera[UP + 1], camera[UP + 2]
    outside = (y > ceiling) | (y < ZERO)
    border = ceiling if y > ceiling else ZERO
    for i in range(LANES):
        sx, sy = s[RAY_X + i], s[RAY_Y + i]
        dx = _away_from_zero(f0 + sx * r0 + sy * u0)
        dy = _away_from_zero(f1 + sx * r1 + sy * u1)
        dz = _away_from_zero(f2 + sx * r2 + sy * u2)
        s[DIR_X + i] = dx
        s[DIR_Y + i] = dy
        s[DIR_Z + i] = dz
        s[INV_X + i] = ONE / dx
        inverse_y = ONE / dy
        s[INV_Y + i] = inverse_y
        s[INV_Z + i] = ONE / dz
        t_max = view / np.sqrt(dx * dx + dy * dy + dz * dz)
        t = (border - y) * inverse_y if outside else ZERO
        t = t_max if t < ZERO else t
        s[T_NOW + i] = min(t, t_max)
        s[T_MAX + i] = t_max
        s[ORG_X + i] = x + (NUDGE if dx > ZERO else -NUDGE)
        s[ORG_Y + i] = y + (NUDGE if dy > ZERO else -NUDGE)
        s[ORG_Z + i] = z + (NUDGE if dz > ZERO else -NUDGE)


@render_kernel
def enter_cells(box: Shorts, column_x: int, column_z: int, s: Floats, n: Ints) -> None:
    """Find each ray's cell and its entry in the box field."""
    shift_x = int32(column_x - CENTRE)
    shift_z = int32(column_z - CENTRE)
    for i in range(LANES):
        t = s[T_NOW + i]
        x = int32(s[ORG_X + i] + s[DIR_X + i] * t)
        y = int32(s[ORG_Y + i] + s[DIR_Y + i] * t)
        z = int32(s[ORG_Z + i] + s[DIR_Z + i] * t)
        s[CELL_X + i] = float32(x)
        s[CELL_Y + i] = float32(y)
        s[CELL_Z + i] = float32(z)
        n[BLOCK_INDEX + i] = narrow_block_index(x + shift_x, y, z + shift_z)
    for i in range(LANES):
        n[FIELD + i] = int32(box[uint32(n[BLOCK_INDEX + i])])


@render_kernel
def _to_end_of_box(
    field: int, x: float, y: float, z: float, ix: float, iy: float, iz: float
) -> float:
    """Return the parameter at which a ray from the eye leaves a cell's empty box.

    `field` is the cell's entry in the box field, (x, y, z) leads from the eye to the middle of the
    cell, and (ix, iy, iz) are the reciprocals of the ray's direction.
    """
    radius = float32(field & int32(31)) - HALF
    up = float32((field >> int32(5)) & int32(31))
    down = float32((field >> int32(10)) & int32(31))
    layers = (up if iy > ZERO else down) + HALF
    tx = x * ix + abs(ix) * radius
    ty = y * iy + abs(iy) * layers
    tz = z * iz + abs(iz) * radius
    return min(tx, min(ty, tz))


@render_kernel
def leap(camera: Floats, ceiling: float, s: Floats, n: Ints) -> bool:
    """Move each ray to the end of its empty box, and return whether any moved."""
    to_x = HALF - (camera[EYE_X] + float32(CENTRE))
    to_y = HALF - camera[EYE_Y]
    to_z = HALF - (camera[EYE_Z] + float32(CENTRE))
    highest = ceiling - HALF
    moved = int32(0)
    for i in range(LANES):
        field = n[FIELD + i]
        t, t_max = s[T_NOW + i], s[T_MAX + i]
        x, y, z = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t_next = min(_to_end_of_box(field, x + to_x, y + to_y, z + to_z, ix, iy, iz), t_max)
        t_next = t if field == int32(0) else t_next
        # The field is undefined above the highest block, and 0 there would mean solid.
        t_next = max(t, t_max if y > highest else t_next)
        s[T_NOW + i] = t_next
        moved |= int32(1) if t_next > t else int32(0)
    return moved != int32(0)


@render_kernel
def go_on(ceiling: float, s: Floats, n: Ints) -> bool:
    """Whether any ray is still in the air and short of the end of the view."""
    highest = ceiling - HALF
    going = int32(0)
    for i in range(LANES):
        in_air = (n[FIELD + i] != int32(0)) | (s[CELL_Y + i] > highest)
        going |= int32(1) if in_air & (s[T_NOW + i] < s[T_MAX + i]) else int32(0)
    return going != int32(0)


@render_kernel
def field_around_eye(
    box: Shorts, camera: Floats, ceiling: float, column_x: int, column_z: int
) -> int:
    """The box field's entry for the cell in which all rays begin; 0 if there is no such cell."""
    y = camera[EYE_Y]
    if not ZERO < y < ceiling:
        return int32(0)
    for fraction in (camera[EYE_X], y - np.floor(y), camera[EYE_Z]):
        if not float32(2) * NUDGE < fraction < ONE - float32(2) * NUDGE:
            return int32(0)
    return int32(box[uint32(narrow_block_index(int32(column_x), int32(y), int32(column_z)))])


@render_kernel
def leap_from_eye(camera: Floats, field: int, s: Floats) -> None:
    """Move all rays, which begin in one cell, to the end of that cell's empty box."""
    x, y, z = HALF - camera[EYE_X], HALF - camera[EYE_Y] % ONE, HALF - camera[EYE_Z]
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t_next = min(_to_end_of_box(field, x, y, z, ix, iy, iz), s[T_MAX + i])
        s[T_NOW + i] = max(t_next, ZERO)
