"""What a tile's rays see that have ended in special cells: there, or beyond them."""

from __future__ import annotations

from numba import int32

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
from rllib_minestudio.env.voxel.render.see_through import (
    begin_faces,
    meet_blocks,
    show_faces,
    still_special,
)
from rllib_minestudio.env.voxel.render.sky import show_sky
from rllib_minestudio.env.voxel.render.waiting_rays import hold, pass_on, release, wait

MANY = 24
"""So many rays of a tile that pass go on at once; fewer wait until there are others."""


@inlined_kernel
def look_through(
    special: int, waiting: int, blocks: Shorts, box: Shorts, light: Bytes, atlas: Words,
    faces: Ints, camera: Floats, ceiling: float, column_x: int, column_z: int, s: Floats, n: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Let a tile's rays meet what is in special cells, and those that pass go on or wait.

    Args:
        special: What `light.choose_texels` has found.
        waiting: Rays that wait already, at most `LANES`.
        blocks: See `terrain.render_terrain`, as all others.
        box: The box field.
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
        How many rays wait now, and how many have ended on a surface, whose texels are chosen.
    """
    begin_faces(n)
    hits = 0
    while special:
        meet_blocks(special, blocks, light, atlas, faces, camera, column_x, column_z, s, n)
        going, sky_is_seen = pass_on(camera, ceiling, s, n)
        goes_on = going >= MANY
        if goes_on:
            ended = count_hits(s, n)
            hold(s, n)
            march(box, camera, ceiling, column_x, column_z, s, n)
            release(s, n)
            hits = count_hits(s, n)
            sky_is_seen = sky_is_seen or hits < ended + going
        else:
            waiting = wait(waiting, going, s, n)
            hits = count_hits(s, n)
        if sky_is_seen:
            show_sky(camera, s, n)
        special = int32(0)
        if hits > 0:
            locate_hits(camera, s, n)
            show_faces(n)
            choose_texels(camera, blocks, faces, s, n)
            if goes_on:
                special = still_special(n)
    return waiting, hits
