"""Ray casting of the block world into colour and depth, in tiles of 8 x 8 rays."""

from __future__ import annotations

from numba import float32, uint8, uint32

from rllib_minestudio.env.voxel.render.camera import (
    BLUE,
    DEPTH,
    GREEN,
    LANES,
    LEVELS,
    RAY_X,
    RAY_Y,
    RED,
    TILE,
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    inlined_kernel,
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
from rllib_minestudio.env.voxel.render.march import (
    field_around_eye,
    leap_from_eye,
    march,
    start_rays,
)
from rllib_minestudio.env.voxel.render.see_through import (
    begin_faces,
    begin_pixels,
    hold,
    is_tinted,
    meet_blocks,
    pass_on,
    release,
    resume,
    show_faces,
    still_special,
    store_waiting,
    take,
    tint_all,
    wait,
)
from rllib_minestudio.env.voxel.render.sky import show_sky

# ----- what a tile's rays see: they march, meet what is in special cells, and those that pass go on

MANY = 24
"""So many rays of a tile that pass go on at once; fewer wait until there are others."""


@inlined_kernel
def look(
    tile_x: int, tile_y: int, waited: bool, waiting: int, width: int, height: int,
    blocks: Shorts, box: Shorts, tints: Bytes, only_tint: int, has_snow: bool, light: Bytes,
    atlas: Words, faces: Ints, camera: Floats, ceiling: float, column_x: int, column_z: int,
    s: Floats, n: Ints,
) -> tuple[int, int, bool, bool]:  # fmt: skip
    """Let a tile's rays go on from where they are until they end or wait.

    Args:
        tile_x: Where in the frame the tile begins.
        tile_y: The same, downwards.
        waited: Whether it is a tile of rays that have waited, whose pixels are known.
        waiting: Rays that wait already, at most `LANES`.
        width: See `terrain.render_terrain`, as all others.
        height: Drawn rows.
        blocks: The world's blocks.
        box: The box field.
        tints: Tints of columns.
        only_tint: The tint of all columns, if they have one.
        has_snow: Whether there may be single layers of snow.
        light: Levels of light.
        atlas: Textures of blocks.
        faces: Where they begin.
        camera: The camera vector.
        ceiling: No block is at or above this height.
        column_x: Block column of the eye.
        column_z: Block column of the eye.
        s: Float scratch.
        n: Integer scratch.

    Returns:
        How many rays wait now, how many have ended on a surface, whose texels are chosen, whether
        any has met something in a special cell, and whether any shows sky.
    """
    going, ended, has_met, sky_is_seen, shows_sky = LANES, 0, False, False, False
    while True:
        if going > 0:
            march(box, camera, ceiling, column_x, column_z, s, n)
            if has_met:
                release(s, n)
        hits = count_hits(s, n)
        if sky_is_seen or hits < ended + going:
            show_sky(camera, s, n)
            shows_sky = True
        if hits == 0:
            break
        locate_hits(camera, s, n)
        if has_met:
            show_faces(n)
        special = choose_texels(camera, blocks, tints, only_tint, has_snow, faces, s, n)
        if has_met:
            special = still_special(n)
        if not special:
            break
        if not has_met:
            begin_faces(n)
            if not waited:
                begin_pixels(tile_x, tile_y, width, height, s, n)
        has_met = True
        meet_blocks(
            special, blocks, tints, only_tint, light, atlas, faces, camera, column_x, column_z, s, n
        )
        going, sky_is_seen = pass_on(camera, ceiling, s, n)
        if going >= MANY:
            ended = count_hits(s, n)
            hold(s, n)
        else:
            waiting = wait(waiting, going, s, n)
            going, ended = 0, 0
    return waiting, hits, has_met, shows_sky


# --------------------- ray casting of the block world into colour and depth, in tiles of 8 x 8 rays


@inlined_kernel
def _aim(across: Floats, upward: Floats, tile_x: int, tile_y: int, s: Floats) -> None:
    """Write how far to the right and how far up each ray of a tile passes."""
    for row in range(TILE):
        for column in range(TILE):
            s[RAY_X + row * TILE + column] = across[uint32(tile_x + column)]
            s[RAY_Y + row * TILE + column] = upward[uint32(tile_y + row)]


@inlined_kernel
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
    only_tint: int,
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
) -> bool:
    """Draw blocks and sky.

    Args:
        blocks: uint16 (2**23,), the world's blocks.
        box: uint16 (2**23,), the world's box field.
        tints: uint8 (65536,), see `world.land`.
        only_tint: See `World.only_tint`.
        has_snow: Whether there may be single layers of snow.
        shade: uint8 (65536,), see `world.lighting`.
        light: uint8 (2**23,), both levels of each cell, see `light_field`.
        ceiling: No block is at or above this height.
        atlas: uint32, `BlockAtlas.textures`.
        faces: int32 (2**19,), `BlockAtlas.faces` with looks, see `block_atlas.with_looks`.
        looks: uint8 (65536,), `block_atlas.LOOKS`.
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        column_x: Block column of the eye, modulo 256.
        column_z: Block column of the eye, modulo 256.
        width: Drawn pixels per row.
        height: Drawn rows.
        frame: uint8 (height * width * 3,), overwritten.
        depth: float32 (height * width,), overwritten with planar depth, `SKY_DEPTH` for sky.
        s: Float scratch of `camera.new_scratch`.
        n: Integer scratch of `camera.new_scratch`, with the hour's light map.

    Returns:
        Whether any pixel may show sky; false underground, where nothing of the sky need be drawn.
    """
    roof = float32(ceiling)
    around_eye = field_around_eye(box, camera, roof, column_x, column_z)
    white_sky, white_glow = lowest_white(1, n), lowest_white(LEVELS, n)
    under_sky = WHITE if white_sky < LEVELS - 1 else FULLY
    # What the scratch already holds for all rays.
    is_open, level_before, shows_sky = False, MIXED, False
    per_row = (width + TILE - 1) // TILE
    tile, tiles, waiting = 0, per_row * ((height + TILE - 1) // TILE), 0
    while tile < tiles or waiting > 0:
        taken = 0
        tile_x, tile_y = tile % per_row * TILE, tile // per_row * TILE
        if waiting >= LANES or tile == tiles:
            taken = take(waiting, s, n)
            waiting -= taken
        else:
            tile += 1
            _aim(across, upward, tile_x, tile_y, s)
        start_rays(camera, roof, s)
        if taken:
            resume(taken, s)
        elif around_eye:
            leap_from_eye(camera, around_eye, s)
        waiting, hits, has_met, in_sky = look(
            tile_x, tile_y, taken > 0, waiting, width, height, blocks, box, tints, only_tint,
            has_snow, light, atlas, faces, camera, roof, column_x, column_z, s, n,
        )  # fmt: skip
        shows_sky = shows_sky or in_sky
        if hits > 0:
            if find_fronts(box, s, n):
                uncover(camera, blocks, box, tints, only_tint, has_snow, faces, looks, s, n)
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
        if (taken or has_met) and is_tinted(n):
            tint_all(s, n)
        if taken:
            store_waiting(taken, s, n, frame, depth)
        else:
            _store(tile_x, tile_y, width, height, s, n, frame, depth)
    return shows_sky
