"""Drawing of instances, box by box, over a frame of terrain.

Each box is drawn in its own frame of reference, so that turning, falling over and swinging legs are
all just a change of frame. The depth buffer decides what is hidden; the nearest instances come
first, so that most of what they hide costs little.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, int64

from rllib_minestudio.env.voxel.render.boxes import (
    BOX_SCRATCH,
    FRAME_SIZE,
    LANES,
    ONE,
    ZERO,
    Tint,
    draw_boxes,
)
from rllib_minestudio.env.voxel.render.camera import (
    FOG_SCALE,
    FOG_START,
    FORWARD,
    HORIZON,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    VIEW,
    Bytes,
    Floats,
    Ints,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.pixel_rays import PixelRays
from rllib_minestudio.env.voxel.render.placement import (
    AHEAD_X,
    AHEAD_Z,
    LIGHT_LEVEL,
    OFFSET,
    RED,
    ROLL_COS,
    ROLL_SIN,
    SWING_COS,
    SWING_SIN,
)

DISTANCES = 128
"""Steps of distance by which instances are sorted."""


@render_kernel
def _model_frame(camera: Floats, row: Floats, frame: Floats) -> None:
    """Express eye and axes in the model's frame: turned to where it looks, then rolled."""
    ahead_x, ahead_z, sin, cos = row[AHEAD_X], row[AHEAD_Z], row[ROLL_SIN], row[ROLL_COS]
    for vector in range(4):
        if vector == 0:
            x, y, z = -row[OFFSET], -row[OFFSET + 1], -row[OFFSET + 2]
        else:
            axis = FORWARD if vector == 1 else (RIGHT if vector == 2 else UP)
            x, y, z = camera[axis], camera[axis + 1], camera[axis + 2]
        across = x * ahead_z - z * ahead_x
        along = x * ahead_x + z * ahead_z
        frame[3 * vector] = across * cos + y * sin
        frame[3 * vector + 1] = y * cos - across * sin
        frame[3 * vector + 2] = along


@render_kernel
def _tint(camera: Floats, row: Floats) -> Tint:
    x, y, z = row[OFFSET], row[OFFSET + 1], row[OFFSET + 2]
    distance = np.sqrt(x * x + y * y + z * z) / camera[VIEW]
    fog = min(max((distance - camera[FOG_START]) * camera[FOG_SCALE], ZERO), ONE)
    light = LIGHT + 3 * int64(row[LIGHT_LEVEL])
    return (
        camera[light],
        camera[light + 1],
        camera[light + 2],
        camera[HORIZON],
        camera[HORIZON + 1],
        camera[HORIZON + 2],
        fog,
        row[RED],
    )


@render_kernel
def _from_near_to_far(instances: Floats, count: int, view: float, order: Ints) -> None:
    """Put the instances' numbers in order of distance, in steps; equals keep theirs."""
    ends = np.zeros(DISTANCES + 1, np.int64)
    steps = np.empty(count, np.int64)
    for i in range(count):
        x, y, z = instances[i, OFFSET], instances[i, OFFSET + 1], instances[i, OFFSET + 2]
        # Four times as fine at the eye as at the end of the view.
        share = np.sqrt(np.sqrt(x * x + y * y + z * z) / view)
        steps[i] = min(int64(share * float32(DISTANCES)), DISTANCES - 1)
        ends[steps[i] + 1] += 1
    for step in range(DISTANCES):
        ends[step + 1] += ends[step]
    for i in range(count):
        order[ends[steps[i]]] = int32(i)
        ends[steps[i]] += 1


@render_kernel
def render_instances(
    instances: Floats,
    models: Ints,
    count: int,
    boxes: Floats,
    textures: Ints,
    first_box: Ints,
    atlas: Words,
    camera: Floats,
    across: Floats,
    upward: Floats,
    columns_before: Ints,
    rows_before: Ints,
    image: Bytes,
    depth: Floats,
) -> None:
    """Draw instances over a frame of terrain.

    Args:
        instances: float32 (n, INSTANCE_SIZE), see `placement`.
        models: int32 (n,), the model of each.
        count: Instances in use.
        boxes: See `models.Models`.
        textures: See `models.Models`.
        first_box: See `models.Models`.
        atlas: See `models.Models`.
        camera: float32 (CAMERA_SIZE,).
        across: See `pixel_rays.PixelRays`, as for the next three.
        upward: Likewise.
        columns_before: Likewise.
        rows_before: Likewise.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, kept up to date.
    """
    rays = PixelRays(across, upward, columns_before, rows_before)
    step_x, step_y, mip = camera[STEP_X], camera[STEP_Y], camera[MIP_DEPTH]
    model_frame = np.empty(FRAME_SIZE, np.float32)
    lanes = np.empty(BOX_SCRATCH, np.float32)
    hits = np.empty(LANES, np.int32)
    order = np.empty(count, np.int32)
    _from_near_to_far(instances, count, camera[VIEW], order)
    for i in order:
        row = instances[i]
        _model_frame(camera, row, model_frame)
        draw_boxes(
            boxes, textures, first_box[models[i]], first_box[models[i] + 1], atlas, model_frame,
            (row[SWING_SIN], row[SWING_COS]), _tint(camera, row), step_x, step_y, mip,
            rays, image, depth, lanes, hits,
        )  # fmt: skip
