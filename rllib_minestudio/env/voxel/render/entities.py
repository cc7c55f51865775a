"""Drawing of instances: every box is intersected with the rays of the pixels it may cover.

A box is projected to a screen rectangle; inside it each pixel's ray is cut with the box in the
box's own frame, so that turning, falling over and swinging legs are all just a change of frame. The
depth buffer of the terrain decides what is hidden.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int64, uint8, uint32

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
from rllib_minestudio.env.voxel.render.models import (
    BOX_HIGH,
    BOX_LOW,
    BOX_PIVOT_Y,
    BOX_PIVOT_Z,
    BOX_SWING,
)
from rllib_minestudio.env.voxel.render.placement import (
    AHEAD_X,
    AHEAD_Z,
    BRIGHTNESS,
    OFFSET,
    RED,
    ROLL_COS,
    ROLL_SIN,
    SWING_COS,
    SWING_SIN,
)
from rllib_minestudio.env.voxel.render.texels import TRANSPARENT

# A frame of reference: the eye and the camera's three axes as seen from a model, 4 x (x, y, z).
EYE, AHEAD, SIDE, RISE = 0, 3, 6, 9
FRAME_SIZE = 12
NEAR = np.float32(0.05)
FAR = np.float32(1e9)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
SMALLEST_SLOPE = np.float32(1e-6)
SEE_THROUGH = np.uint32(TRANSPARENT)

# Light RGB, fog RGB, share of fog, share of red.
Tint = tuple[float, float, float, float, float, float, float, float]


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
def _swing_frame(model_frame: Floats, box: Floats, row: Floats, frame: Floats) -> None:
    """The frame of one box: a leg's is turned about the leg's upper end."""
    swing = box[BOX_SWING]
    sin, cos = row[SWING_SIN] * swing, row[SWING_COS]
    if swing == ZERO:
        for i in range(FRAME_SIZE):  # compiles much faster than copying a slice
            frame[i] = model_frame[i]
        return
    for vector in range(4):
        pivot_y = box[BOX_PIVOT_Y] if vector == 0 else ZERO
        pivot_z = box[BOX_PIVOT_Z] if vector == 0 else ZERO
        y = model_frame[3 * vector + 1] - pivot_y
        z = model_frame[3 * vector + 2] - pivot_z
        frame[3 * vector] = model_frame[3 * vector]
        frame[3 * vector + 1] = y * cos - z * sin + pivot_y
        frame[3 * vector + 2] = z * cos + y * sin + pivot_z


@render_kernel
def _cover(
    box: Floats, frame: Floats, step_x: float, step_y: float, width: int, height: int
) -> tuple[int, int, int, int, float]:
    """Screen rectangle (left, right, upper, lower; ends excluded) of a box and its least depth."""
    left, right, upper, lower = FAR, -FAR, FAR, -FAR
    nearest = FAR
    behind = 0
    centre_x, centre_y = float32(width) * HALF, float32(height) * HALF
    for corner in range(8):
        x = box[BOX_HIGH if corner & 1 else BOX_LOW] - frame[EYE]
        y = box[(BOX_HIGH if corner & 2 else BOX_LOW) + 1] - frame[EYE + 1]
        z = box[(BOX_HIGH if corner & 4 else BOX_LOW) + 2] - frame[EYE + 2]
        depth = x * frame[AHEAD] + y * frame[AHEAD + 1] + z * frame[AHEAD + 2]
        nearest = min(nearest, depth)
        if depth < NEAR:
            behind += 1
            continue
        side = x * frame[SIDE] + y * frame[SIDE + 1] + z * frame[SIDE + 2]
        rise = x * frame[RISE] + y * frame[RISE + 1] + z * frame[RISE + 2]
        sx = centre_x + side / (depth * step_x)
        sy = centre_y - rise / (depth * step_y)
        left, right = min(left, sx), max(right, sx)
        upper, lower = min(upper, sy), max(lower, sy)
    if behind == 8:
        return 0, 0, 0, 0, nearest
    if behind > 0:
        return 0, width, 0, height, nearest
    return (
        int64(min(max(left, ZERO), float32(width))),
        int64(min(max(right + ONE, ZERO), float32(width))),
        int64(min(max(upper, ZERO), float32(height))),
        int64(min(max(lower + ONE, ZERO), float32(height))),
        nearest,
    )


@render_kernel
def _texel_of(texture: int, t: float, mip: float, u: float, v: float) -> int:
    """Index of a texel for texture coordinates in 0..1 at depth t."""
    size, offset = 16, 0
    if t > mip * float32(8):
        size, offset = 2, 336
    elif t > mip * float32(4):
        size, offset = 4, 320
    elif t > mip * float32(1.5):
        size, offset = 8, 256
    column = min(max(int64(u * float32(size)), 0), size - 1)
    row = min(max(int64(v * float32(size)), 0), size - 1)
    return uint32(texture + offset + row * size + column)


@render_kernel
def _reciprocal(slope: float) -> float:
    return ONE / (SMALLEST_SLOPE if abs(slope) < SMALLEST_SLOPE else slope)


@render_kernel
def _paint(image: Bytes, pixel: int, rgb: int, tint: Tint) -> None:
    lr, lg, lb, fr, fg, fb, fog, red = tint
    r = float32(rgb & uint32(255)) * lr
    g = float32((rgb >> uint32(8)) & uint32(255)) * lg
    b = float32((rgb >> uint32(16)) & uint32(255)) * lb
    r += (float32(255) * lr - r) * red
    g -= g * red
    b -= b * red
    image[pixel] = uint8(r + (fr - r) * fog)
    image[pixel + uint32(1)] = uint8(g + (fg - g) * fog)
    image[pixel + uint32(2)] = uint8(b + (fb - b) * fog)


@render_kernel
def _draw_box(
    box: Floats,
    textures: Ints,
    atlas: Words,
    frame: Floats,
    tint: Tint,
    step_x: float,
    step_y: float,
    mip: float,
    width: int,
    height: int,
    image: Bytes,
    depth: Floats,
) -> None:
    """Draw one box."""
    left, right, upper, lower, nearest = _cover(box, frame, step_x, step_y, width, height)
    ox, oy, oz = frame[EYE], frame[EYE + 1], frame[EYE + 2]
    x0, y0, z0 = box[BOX_LOW] - ox, box[BOX_LOW + 1] - oy, box[BOX_LOW + 2] - oz
    x1, y1, z1 = box[BOX_HIGH] - ox, box[BOX_HIGH + 1] - oy, box[BOX_HIGH + 2] - oz
    per_x, per_y, per_z = ONE / (x1 - x0), ONE / (y1 - y0), ONE / (z1 - z0)
    mip = mip * (x1 - x0 + y1 - y0 + z1 - z0) / float32(3)
    s0, s1, s2 = frame[SIDE], frame[SIDE + 1], frame[SIDE + 2]
    for py in range(upper, lower):
        sy = (float32(height) * HALF - float32(py) - HALF) * step_y
        row_x = frame[AHEAD] + sy * frame[RISE]
        row_y = frame[AHEAD + 1] + sy * frame[RISE + 1]
        row_z = frame[AHEAD + 2] + sy * frame[RISE + 2]
        for px in range(left, right):
            p = uint32(py * width + px)
            if depth[p] < nearest:
                continue
            sx = (float32(px) + HALF - float32(width) * HALF) * step_x
            dx, dy, dz = row_x + sx * s0, row_y + sx * s1, row_z + sx * s2
            ix, iy, iz = _reciprocal(dx), _reciprocal(dy), _reciprocal(dz)
            enter_x, leave_x = min(x0 * ix, x1 * ix), max(x0 * ix, x1 * ix)
            enter_y, leave_y = min(y0 * iy, y1 * iy), max(y0 * iy, y1 * iy)
            enter_z, leave_z = min(z0 * iz, z1 * iz), max(z0 * iz, z1 * iz)
            t, t_end = max(enter_x, max(enter_y, enter_z)), min(leave_x, min(leave_y, leave_z))
            if t > t_end or t < NEAR or t >= depth[p]:
                continue
            face, u, v = 5 if dz > ZERO else 4, (dx * t - x0) * per_x, (y1 - dy * t) * per_y
            if t == enter_x:
                face, u = 1 if dx > ZERO else 0, (dz * t - z0) * per_z
            elif t == enter_y:
                face, v = 3 if dy > ZERO else 2, (dz * t - z0) * per_z
            rgb = atlas[_texel_of(textures[face], t, mip, u, v)]
            if rgb == SEE_THROUGH:
                continue
            depth[p] = t
            _paint(image, p * uint32(3), rgb, tint)


@render_kernel
def _tint(camera: Floats, row: Floats) -> Tint:
    x, y, z = row[OFFSET], row[OFFSET + 1], row[OFFSET + 2]
    distance = np.sqrt(x * x + y * y + z * z) / camera[VIEW]
    fog = min(max((distance - camera[FOG_START]) * camera[FOG_SCALE], ZERO), ONE)
    light = row[BRIGHTNESS]
    return (
        camera[LIGHT] * light,
        camera[LIGHT + 1] * light,
        camera[LIGHT + 2] * light,
        camera[HORIZON],
        camera[HORIZON + 1],
        camera[HORIZON + 2],
        fog,
        row[RED],
    )


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
    width: int,
    height: int,
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
        width: Pixels per row.
        height: Rows.
        image: uint8 (height * width * 3,), drawn into.
        depth: float32 (height * width,), planar depth, kept up to date.
    """
    step_x, step_y, mip = camera[STEP_X], camera[STEP_Y], camera[MIP_DEPTH]
    model_frame = np.empty(FRAME_SIZE, np.float32)
    frame = np.empty(FRAME_SIZE, np.float32)
    for i in range(count):
        row = instances[i]
        _model_frame(camera, row, model_frame)
        tint = _tint(camera, row)
        for index in range(first_box[models[i]], first_box[models[i] + 1]):
            box = boxes[index]
            _swing_frame(model_frame, box, row, frame)
            _draw_box(
                box, textures[index], atlas, frame, tint, step_x, step_y, mip,
                width, height, image, depth,
            )  # fmt: skip
