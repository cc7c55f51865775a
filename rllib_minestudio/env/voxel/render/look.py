"""What a tile's rays see: they march, meet what is in special cells, and those that pass go on."""

from __future__ import annotations

from rllib_minestudio.env.voxel.render.camera import (
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    inlined_kernel,
)
from rllib_minestudio.env.voxel.render.light import choose_texels, count_hits, locate_hits
from rllib_minestudio.env.voxel.render.march import march
from rllib_minestudio.env.voxel.render.ray_tiles import LANES
from rllib_minestudio.env.voxel.render.see_through import (
    begin_faces,
    meet_blocks,
    show_faces,
    still_special,
)
from rllib_minestudio.env.voxel.render.sky import show_sky
from rllib_minestudio.env.voxel.render.waiting_rays import (
    begin_pixels,
    hold,
    pass_on,
    release,
    wait,
)

MANY = 24
"""So many rays of a tile that pass go on at once; fewer wait until there are others."""


@inlined_kernel
def look(
    tile_x: int, tile_y: int, waited: bool, waiting: int, width: int, height: int,
    blocks: Shorts, box: Shorts, tints: Bytes, only_tint: int, has_snow: bool, light: Bytes,
    atlas: Words, faces: Ints, camera: Floats, ceiling: float, column_x: int, column_z: int,
    s: Floats, n: Ints,
) -> tuple[int, int, bool]:  # fmt: skip
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
        How many rays wait now, how many have ended on a surface, whose texels are chosen, and
        whether any has met something in a special cell.
    """
    going, ended, has_met, sky_is_seen = LANES, 0, False, False
    while True:
        if going > 0:
            march(box, camera, ceiling, column_x, column_z, s, n)
            if has_met:
                release(s, n)
        hits = count_hits(s, n)
        if sky_is_seen or hits < ended + going:
            show_sky(camera, s, n)
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
    return waiting, hits, has_met
