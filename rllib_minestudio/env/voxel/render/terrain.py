"""Ray casting of the block world into colour and depth, one tile of 8 x 8 rays after the other."""

from __future__ import annotations

from numba import float32, uint8

from rllib_minestudio.env.voxel.render.camera import (
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.leaps import (
    MOST_LEAPS,
    enter_cells,
    field_around_eye,
    go_on,
    leap,
    leap_from_eye,
    start_rays,
)
from rllib_minestudio.env.voxel.render.occlusion import REACH, occlude, open_all
from rllib_minestudio.env.voxel.render.ray_tiles import BLUE, DEPTH, GREEN, RAY_X, RAY_Y, RED, TILE
from rllib_minestudio.env.voxel.render.shading import (
    are_covered,
    choose_texels,
    find_fronts,
    hits_any,
    light_by_cells,
    light_fully,
    locate_hits,
    shade_hits,
    show_sky,
)


@render_kernel
def _aim_across(across: Floats, s: Floats) -> None:
    """Note how far to the right the rays of a tile pass, given that of each of its columns."""
    for row in range(TILE):
        for column in range(TILE):
            s[RAY_X + row * TILE + column] = across[column]


@render_kernel
def _aim_up(upward: Floats, s: Floats) -> None:
    """Note how far up the rays of a tile pass, given that of each of its rows."""
    for row in range(TILE):
        for column in range(TILE):
            s[RAY_Y + row * TILE + column] = upward[row]


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
    """Copy a tile into the frame, cutting off what lies beyond its right and lower edge."""
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
    top: Bytes,
    light: Bytes,
    ceiling: int,
    atlas: Words,
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
        blocks: uint16 (2**23,), the world's block ids.
        box: uint16 (2**23,), the world's box field.
        top: uint8 (65536,), highest block of each column.
        light: uint8 (2**23,), level of the sky's light.
        ceiling: No block is at or above this height.
        atlas: uint32, see `block_textures.build_block_atlas`.
        camera: float32 (CAMERA_SIZE,).
        across: See `pixel_rays.PixelRays`.
        upward: Likewise.
        column_x: Block column of the eye, modulo 256.
        column_z: Block column of the eye, modulo 256.
        width: Pixels drawn per row.
        height: Rows drawn.
        frame: uint8 (height * width * 3,), overwritten.
        depth: float32 (height * width,), overwritten with planar depth, `SKY_DEPTH` for sky.
        s: Float scratch of `ray_tiles.new_scratch`.
        n: Integer scratch of `ray_tiles.new_scratch`.
    """
    roof = float32(ceiling)
    around_eye = field_around_eye(box, camera, roof, column_x, column_z)
    is_even = False  # whether the scratch memory holds full light for all rays already
    for tile_y in range(0, height, TILE):
        _aim_up(upward[tile_y : tile_y + TILE], s)
        for tile_x in range(0, width, TILE):
            _aim_across(across[tile_x : tile_x + TILE], s)
            start_rays(camera, roof, s)
            if around_eye:
                leap_from_eye(camera, around_eye, s)
            enter_cells(box, column_x, column_z, s, n)
            for _ in range(MOST_LEAPS):
                if not go_on(roof, s, n) or not leap(camera, roof, s, n):
                    break
                enter_cells(box, column_x, column_z, s, n)
            if not hits_any(s, n):
                show_sky(camera, s, n)
            else:
                locate_hits(camera, s, n)
                find_fronts(camera, box, s, n)
                choose_texels(camera, blocks, s, n)
                # Decided here, as a kernel that returns early counts references to its arrays.
                if open_all(s) < REACH:
                    occlude(box, s, n)
                if are_covered(top, n):
                    light_by_cells(camera, light, s, n)
                    is_even = False
                elif not is_even:
                    light_fully(camera, s)
                    is_even = True
                shade_hits(camera, atlas, s, n)
            _store(tile_x, tile_y, width, height, s, n, frame, depth)
