"""Drawing of boxes by intersecting each with the rays of the pixels that it may cover.

A box is projected to a rectangle on the screen. Within it, the rays of each tile of 8 x 8 pixels
are intersected with the box in one pass over flat scratch memory, without branches, which LLVM
vectorises. Texels are then looked up for the rays that hit. A tile that is filled by something
nearer is skipped.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import (
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
    Floats,
    Ints,
    Words,
    render_kernel,
    scratch_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.models import (
    AHEAD_X,
    AHEAD_Z,
    BOX_HIGH,
    BOX_LOW,
    BOX_PIVOT_Y,
    BOX_PIVOT_Z,
    BOX_SWING,
    LIGHT_BYTE,
    OFFSET,
    RED,
    ROLL_COS,
    ROLL_SIN,
    SWING_COS,
    SWING_SIN,
    place_falling,
    place_items,
    place_mobs,
    place_thrown,
)
from rllib_minestudio.env.voxel.render.textures import TRANSPARENT

# A frame of reference: the eye and the camera's three axes as seen from a model, 4 x (x, y, z).
EYE, AHEAD, SIDE, RISE = 0, 3, 6, 9
FRAME_SIZE = 12
NEAR = np.float32(0.05)
FAR = np.float32(1e9)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
SMALLEST_SLOPE = np.float32(1e-6)
SEE_THROUGH = np.uint32(TRANSPARENT)

Records = NDArray[np.void]

# Frames have at least this many rows and columns, see `renderer`.
TILE = 8
LANES = TILE * TILE
# Scratch layout: one row of LANES values per quantity.
(
    RAY_X, RAY_Y,  # where the ray passes on the plane one block ahead
    KNOWN,  # depth of what is already drawn there
    HIT,  # depth of the box, FAR where it is missed or hidden
    FACE,  # side of the box
    ACROSS, DOWN,  # texture coordinates
) = [LANES * row for row in range(7)]  # fmt: skip
BOX_SCRATCH = 7 * LANES

# Light RGB, fog RGB, share of fog, share of red.
Tint = tuple[float, float, float, float, float, float, float, float]


@render_kernel
def _corner(boxes: Floats, index: int, frame: Floats, corner: int) -> tuple[float, float, float]:
    """How far ahead of the eye, to its right and above it a corner (0 to 7) of a box is."""
    x = boxes[index, BOX_HIGH if corner & 1 else BOX_LOW] - frame[EYE]
    y = boxes[index, (BOX_HIGH if corner & 2 else BOX_LOW) + 1] - frame[EYE + 1]
    z = boxes[index, (BOX_HIGH if corner & 4 else BOX_LOW) + 2] - frame[EYE + 2]
    return (
        x * frame[AHEAD] + y * frame[AHEAD + 1] + z * frame[AHEAD + 2],
        x * frame[SIDE] + y * frame[SIDE + 1] + z * frame[SIDE + 2],
        x * frame[RISE] + y * frame[RISE + 1] + z * frame[RISE + 2],
    )


@render_kernel
def _cover(
    boxes: Floats, index: int, frame: Floats, step_x: float, step_y: float, rays: PixelRays
) -> tuple[int, int, int, int, float]:
    """Return the drawn pixels that a box may cover: left, right, upper, lower; ends excluded.

    The last value is the box's smallest depth.
    """
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    # Offsets to the right of the middle and above it, divided by the depth.
    left, right, lower, upper = FAR, -FAR, FAR, -FAR
    nearest = FAR
    for corner in range(8):
        depth, side, rise = _corner(boxes, index, frame, corner)
        nearest = min(nearest, depth)
        if depth >= NEAR:
            left, right = min(left, side / depth), max(right, side / depth)
            lower, upper = min(lower, rise / depth), max(upper, rise / depth)
            continue
        for axis in range(3):  # the edges from here to corners in view begin at the near plane
            ahead, beside, above = _corner(boxes, index, frame, corner ^ (1 << axis))
            if ahead >= NEAR:
                share = (NEAR - depth) / (ahead - depth)
                begin_x = (side + (beside - side) * share) / NEAR
                begin_y = (rise + (above - rise) * share) / NEAR
                left, right = min(left, begin_x), max(right, begin_x)
                lower, upper = min(lower, begin_y), max(upper, begin_y)
    centre_x, centre_y = float32(width) * HALF, float32(height) * HALF
    first_x, last_x = centre_x + left / step_x, centre_x + right / step_x + ONE
    first_y, last_y = centre_y - upper / step_y, centre_y - lower / step_y + ONE
    return (
        columns[int64(min(max(first_x, ZERO), float32(width)))],
        columns[int64(min(max(last_x, ZERO), float32(width)))],
        rows[int64(min(max(first_y, ZERO), float32(height)))],
        rows[int64(min(max(last_y, ZERO), float32(height)))],
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
def _aim_across(across: Floats, px: int, lanes: Floats) -> None:
    """Write how far to the right each ray of a tile passes, given that of each drawn column."""
    for column in range(TILE):
        ray = across[uint32(px + column)]
        for row in range(TILE):
            lanes[RAY_X + row * TILE + column] = ray


@render_kernel
def _aim_up(upward: Floats, py: int, rows: int, lanes: Floats) -> None:
    """Write how far up each ray of a tile passes, given that of each drawn row."""
    for row in range(rows):
        ray = upward[uint32(py + row)]
        for column in range(TILE):
            lanes[RAY_Y + row * TILE + column] = ray


@render_kernel
def _is_hidden(
    depth: Floats, px: int, py: int, rows: int, width: int, nearest: float, lanes: Floats
) -> bool:
    """Copy a tile's depths to `KNOWN`, and return whether all are nearer than the box."""
    for row in range(rows):
        first = uint32((py + row) * width + px)
        for column in range(TILE):
            lanes[uint32(KNOWN + row * TILE + column)] = depth[first + uint32(column)]
    beyond = int32(0)
    for lane in range(rows * TILE):
        beyond |= int32(1) if lanes[KNOWN + lane] >= nearest else int32(0)
    return beyond == int32(0)


@render_kernel
def _cut(
    boxes: Floats,
    index: int,
    frame: Floats,
    per_x: float,
    per_y: float,
    per_z: float,
    rows: int,
    lanes: Floats,
) -> bool:
    """Intersect the rays of a tile with a box: fill `HIT`, `FACE`, `ACROSS` and `DOWN`.

    Args:
        boxes: See `models.Models`.
        index: Index of the box.
        frame: Eye and axes as seen from the box.
        per_x: Reciprocal of the box's length along x.
        per_y: The same along y.
        per_z: The same along z.
        rows: Rows of the tile.
        lanes: Scratch memory, with the tile's rays and depths.

    Returns:
        Whether any ray hits.
    """
    x0, x1 = boxes[index, BOX_LOW] - frame[EYE], boxes[index, BOX_HIGH] - frame[EYE]
    y0, y1 = boxes[index, BOX_LOW + 1] - frame[EYE + 1], boxes[index, BOX_HIGH + 1] - frame[EYE + 1]
    z0, z1 = boxes[index, BOX_LOW + 2] - frame[EYE + 2], boxes[index, BOX_HIGH + 2] - frame[EYE + 2]
    a0, a1, a2 = frame[AHEAD], frame[AHEAD + 1], frame[AHEAD + 2]
    s0, s1, s2 = frame[SIDE], frame[SIDE + 1], frame[SIDE + 2]
    r0, r1, r2 = frame[RISE], frame[RISE + 1], frame[RISE + 2]
    hits = int32(0)
    for lane in range(rows * TILE):
        sx, sy = lanes[RAY_X + lane], lanes[RAY_Y + lane]
        dx = a0 + sy * r0 + sx * s0
        dy = a1 + sy * r1 + sx * s1
        dz = a2 + sy * r2 + sx * s2
        ix, iy, iz = _reciprocal(dx), _reciprocal(dy), _reciprocal(dz)
        enter_x, leave_x = min(x0 * ix, x1 * ix), max(x0 * ix, x1 * ix)
        enter_y, leave_y = min(y0 * iy, y1 * iy), max(y0 * iy, y1 * iy)
        enter_z, leave_z = min(z0 * iz, z1 * iz), max(z0 * iz, z1 * iz)
        t = max(enter_x, max(enter_y, enter_z))
        t_end = min(leave_x, min(leave_y, leave_z))
        # One comparison, as LLVM does not vectorise three with a reduction over their results.
        hit = max(max(t - t_end, NEAR - t), t - lanes[KNOWN + lane]) < ZERO
        lanes[HIT + lane] = t if hit else FAR
        hits |= int32(1) if hit else int32(0)
        through_x, through_y = t == enter_x, t == enter_y
        u, v, w = (dx * t - x0) * per_x, (y1 - dy * t) * per_y, (dz * t - z0) * per_z
        face_x = ONE if dx > ZERO else ZERO
        face_y = float32(3) if dy > ZERO else float32(2)
        face_z = float32(5) if dz > ZERO else float32(4)
        face = face_y if through_y else face_z
        down = w if through_y else v
        lanes[FACE + lane] = face_x if through_x else face
        lanes[ACROSS + lane] = w if through_x else u
        lanes[DOWN + lane] = v if through_x else down
    return hits != int32(0)


@render_kernel
def _swing(
    model_frame: Floats, boxes: Floats, index: int, swing: tuple[float, float], frame: Floats
) -> None:
    """Write the frame of reference of one box; a leg's is turned about the leg's upper end."""
    swings = boxes[index, BOX_SWING]
    sin, cos = swing[0] * swings, swing[1] if swings != ZERO else ONE
    for vector in range(4):
        pivot_y = boxes[index, BOX_PIVOT_Y] if vector == 0 else ZERO
        pivot_z = boxes[index, BOX_PIVOT_Z] if vector == 0 else ZERO
        y = model_frame[3 * vector + 1] - pivot_y
        z = model_frame[3 * vector + 2] - pivot_z
        frame[3 * vector] = model_frame[3 * vector]
        frame[3 * vector + 1] = y * cos - z * sin + pivot_y
        frame[3 * vector + 2] = z * cos + y * sin + pivot_z


@scratch_kernel
def draw_boxes(
    boxes: Floats,
    textures: Ints,
    first: int,
    last: int,
    atlas: Words,
    model_frame: Floats,
    swing: tuple[float, float],
    tint: Tint,
    step_x: float,
    step_y: float,
    mip: float,
    rays: PixelRays,
    image: Bytes,
    depth: Floats,
    lanes: Floats,
    order: Ints,
) -> None:
    """Draw the boxes of a model in one loop, as each call counts references to all arrays.

    Args:
        boxes: See `models.Models`.
        textures: See `models.Models`.
        first: The model's first box.
        last: The box after its last.
        atlas: See `models.Models`.
        model_frame: float32 (FRAME_SIZE,), eye and axes as seen from the model.
        swing: Sine and cosine of the angle by which legs swing.
        tint: See `Tint`.
        step_x: Width of a window's pixel one block ahead.
        step_y: Its height.
        mip: Depth at which a texel of a full block is one pixel wide.
        rays: Rays of the drawn pixels.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, updated.
        lanes: float32 (BOX_SCRATCH,), working memory.
        order: int32 (LANES,), working memory.
    """
    frame, width = np.empty(FRAME_SIZE, np.float32), rays.columns_before[-1]
    for index in range(first, last):
        _swing(model_frame, boxes, index, swing, frame)
        left, right, upper, lower, nearest = _cover(boxes, index, frame, step_x, step_y, rays)
        long_x = boxes[index, BOX_HIGH] - boxes[index, BOX_LOW]
        long_y = boxes[index, BOX_HIGH + 1] - boxes[index, BOX_LOW + 1]
        long_z = boxes[index, BOX_HIGH + 2] - boxes[index, BOX_LOW + 2]
        per_x, per_y, per_z = ONE / long_x, ONE / long_y, ONE / long_z
        texel = mip * (long_x + long_y + long_z) / float32(3)
        for py in range(upper, lower, TILE):
            rows = min(lower - py, TILE)
            _aim_up(rays.upward, py, rows, lanes)
            for column in range(left, right, TILE):
                # The last tiles end with the frame; where they overlap others, a box hides itself.
                px = min(column, width - TILE)
                if _is_hidden(depth, px, py, rows, width, nearest, lanes):
                    continue
                _aim_across(rays.across, px, lanes)
                if not _cut(boxes, index, frame, per_x, per_y, per_z, rows, lanes):
                    continue
                # Collected without a branch, as no processor could predict which lanes hit.
                count = 0
                for lane in range(rows * TILE):
                    order[uint32(count)] = int32(lane)
                    count += int64(lanes[HIT + lane] < FAR)
                for number in range(count):
                    lane = int64(order[uint32(number)])
                    t = lanes[HIT + lane]
                    texture = textures[index, int64(lanes[FACE + lane])]
                    at = _texel_of(texture, t, texel, lanes[ACROSS + lane], lanes[DOWN + lane])
                    if atlas[at] >= SEE_THROUGH:
                        continue
                    p = uint32((py + lane // TILE) * width + px + lane % TILE)
                    depth[p] = t
                    _paint(image, p * uint32(3), atlas[at], tint)


# ---------------------------------------- drawing of instances, box by box, over a frame of terrain
# Each box is drawn in its own frame of reference, so that turning, falling over and swinging legs
# are all just changes of frame. The depth buffer decides what is hidden; the nearest instances are
# drawn first, so that most of what they hide costs little.

DISTANCES = 128
"""Number of distance steps by which instances are sorted."""


@render_kernel
def _model_frame(camera: Floats, row: Floats, frame: Floats) -> None:
    """Write eye and axes in the model's frame: turned to where it looks, then rolled."""
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
    light = LIGHT + 3 * int64(row[LIGHT_BYTE])
    return (
        camera[light],
        camera[light + 1],
        camera[light + 2],
        camera[FOG_RGB],
        camera[FOG_RGB + 1],
        camera[FOG_RGB + 2],
        fog,
        row[RED],
    )


@scratch_kernel
def _from_near_to_far(instances: Floats, count: int, view: float, order: Ints) -> None:
    """Sort the instances' indices by distance step; within a step they keep their order."""
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


@scratch_kernel
def render_entities(
    mobs: Records, mob_count: int, items: Records, item_count: int, thrown: Records,
    thrown_count: int, falling: Records, falling_count: int, mob_models: Ints, item_models: Ints,
    block_models: Ints, boxes: Floats, textures: Ints, first_box: Ints, atlas: Words, light: Bytes,
    eye: NDArray[np.float64], half_width: float, half_height: float, instances: Floats,
    models: Ints, camera: Floats, across: Floats, upward: Floats, columns_before: Ints,
    rows_before: Ints, image: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw mobs, dropped and thrown items and falling blocks over a frame of terrain.

    One kernel, as each call costs a microsecond or two.

    Args:
        mobs: Records of `entities.records.MOB_DTYPE`.
        mob_count: Number of records in use.
        items: Records of `ITEM_DTYPE`.
        item_count: Number of records in use.
        thrown: Records of `THROWN_DTYPE`.
        thrown_count: Number of records in use.
        falling: Records of `FALLING_DTYPE`.
        falling_count: Number of records in use.
        mob_models: See `models.Models.mob`.
        item_models: See `models.Models.item`.
        block_models: See `models.Models.block`.
        boxes: See `models.Models`.
        textures: See `models.Models`.
        first_box: See `models.Models`.
        atlas: See `models.Models`.
        light: uint8 (2**23,), see `light_field`.
        eye: float64 (3,), world position of the eye.
        half_width: Half the view's width one block ahead.
        half_height: Half its height.
        instances: float32 (n, INSTANCE_SIZE), working memory, see `models`.
        models: int32 (n,), working memory.
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
        image: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth, updated.
    """
    count = place_mobs(
        mobs, mob_count, mob_models, light, camera, eye, half_width, half_height, instances,
        models, 0,
    )  # fmt: skip
    count = place_items(
        items, item_count, item_models, light, camera, eye, half_width, half_height, instances,
        models, count,
    )  # fmt: skip
    count = place_thrown(
        thrown, thrown_count, item_models, light, camera, eye, half_width, half_height, instances,
        models, count,
    )  # fmt: skip
    count = place_falling(
        falling, falling_count, block_models, light, camera, eye, half_width, half_height,
        instances, models, count,
    )  # fmt: skip
    if count == 0:
        return
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
