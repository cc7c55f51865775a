"""What rays meet in special cells: gaps and glass, and the boxes of fences and stairs.

The march of a tile (see `terrain`) ends where the box field holds a block. If one of these blocks
is *special* (see `block_atlas`), the tile comes here, to find for each such ray the nearest surface
in its cell whose texel is not a hole. Where there is one, the ray ends there, and is a hit like
others, with a face of its own choice. A ray without one *passes*, and goes on from its next cell
(see `look`).

Only the outer sides of surfaces are seen, as Minecraft culls the others: a ray enters a box, and
leaves it unnoticed. Where boxes of a block touch or overlap, what is between them is not seen
either. So a ray counts as inside from where it enters the first of them up to where it has left
all, and only how it gets inside is a surface. Cubes are boxes that fill their cell.

Texels between opaque and hole *tint* what is behind them: their colour, in their own light and fog,
is added to the ray's by their opacity, and what follows counts by what is left.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.render.block_atlas import (
    BOXES,
    CLEAR_SHIFT,
    CULLED,
    FACE_BITS,
    HOLE,
    HOLES,
    LOOK_SHIFT,
    joined,
)
from rllib_minestudio.env.voxel.render.camera import (
    BEYOND,
    BLOCK,
    BLOCK_INDEX,
    BLUE,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    CLEAR,
    DEPTH,
    DIR_X,
    DIR_Y,
    DIR_Z,
    ENTERED,
    EYE_X,
    EYE_Y,
    EYE_Z,
    FACE,
    FIELD,
    FOG_RGB,
    FOG_SCALE,
    FOG_START,
    FROM_EYE_X,
    FROM_EYE_Y,
    FROM_EYE_Z,
    FRONT,
    GREEN,
    HALF,
    HELD_INDEX,
    HELD_T,
    HELD_X,
    HELD_Y,
    HELD_Z,
    INSIDE,
    INSIDE_UNTIL,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    LIGHT_MAP,
    LOOK,
    MET,
    MET_AT,
    MIP_DEPTH,
    MODEL,
    MODEL_CELL,
    MODEL_IN_CELL,
    MODEL_KNOWN,
    MODELS_KNOWN,
    ONE,
    PASSED,
    PIXEL,
    RAY_X,
    RAY_Y,
    RED,
    SEEN_FACE,
    SIDE,
    SURFACE,
    T_KEPT,
    T_MAX,
    T_NOW,
    TEXEL,
    TILE,
    TILE_BITS,
    TINT_B,
    TINT_G,
    TINT_R,
    TINTS,
    WAITING,
    WAITING_INTS,
    WAITS,
    ZERO,
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.corner_light import TOP_LAYER
from rllib_minestudio.env.voxel.render.light import ALMOST_ONE, mip_level, step_out, tint_faces
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, Box, shape_at
from rllib_minestudio.env.voxel.world.blocks import KIND_MASK

MOST_SURFACES = 12
"""Boxes that a ray enters in one cell, at most: as many as a shape may have in a row."""
MOST_TINTS = 6
"""Texels that tint a ray; the next one ends it, as if it were opaque."""
NO_FACE = -1

# What becomes of a ray that has ended in a special cell.
ENDS, SEEKS, PASSES = 0, 1, 2

_NEVER = np.float32(1e9)
"""Ray parameter of a surface that the ray misses."""
_TOUCHING = np.float32(1e-4)
"""Boxes that are less than this apart, in a ray's parameter, touch."""
_AT_BORDER = np.float32(1e-3)
"""Faces this near to their cell's border are on it."""

# The boxes of all shapes, first that of a cube, then those of `block_shapes`.
_SHAPES: list[list[Box]] = [[(0, 0, 0, 1, 1, 1)], *(joined(shape.model) for shape in SHAPES)]
_BOXES = np.array([box for boxes in _SHAPES for box in boxes], np.float32)
# A cell's *model*: its first box, and that after its last shifted by this; 0 if it has none.
_LAST_BITS = 16
_FIRST_BOX = np.int32((1 << _LAST_BITS) - 1)
_ENDS = np.cumsum([len(boxes) for boxes in _SHAPES], dtype=np.int32)
_MODELS = np.array(
    [
        (end << _LAST_BITS) + end - len(boxes) if boxes else 0
        for end, boxes in zip(_ENDS, _SHAPES, strict=True)
    ],
    np.int32,
)
_CUBE, _NO_MODEL = _MODELS[0], np.int32(0)
_LAST_MODEL = np.int32(2**31 - 1)
"""More than all models."""
_LAST_SLOT = np.int32(MODELS_KNOWN - 1)


@inlined_kernel
def meet_blocks(
    found: int, blocks: Shorts, tints: Bytes, only_tint: int, light: Bytes, atlas: Words,
    faces: Ints, camera: Floats, column_x: int, column_z: int, s: Floats, n: Ints,
) -> None:  # fmt: skip
    """Find what the rays meet that have ended in special cells.

    Afterwards `MET` says what becomes of each: `PASSES`, or `ENDS` for all others. `SEEN_FACE`
    gets the faces on which rays end, with the bit `INSIDE` if they are not on their cell's border.

    Args:
        found: What `light.choose_texels` has found.
        blocks: See `terrain.render_terrain`, as all others.
        tints: Tints of columns.
        only_tint: The tint of all columns, if they have one.
        light: Levels of light.
        atlas: Textures of blocks.
        faces: Where they begin.
        camera: The camera vector.
        column_x: Block column of the eye.
        column_z: Block column of the eye.
        s: Float scratch.
        n: Integer scratch, as `light.choose_texels` leaves it.
    """
    for i in range(LANES):
        is_special = n[LOOK + i] != int32(0)
        n[MET + i] = int32(SEEKS) if is_special else int32(ENDS)
        n[MODEL + i] = _CUBE if is_special else _NO_MODEL
        # The boxes that the eye is in count as entered at 0, where the ray has been inside before.
        s[ENTERED + i], s[INSIDE_UNTIL + i] = -ONE, ZERO
        n[TEXEL + i] = int32(0)  # whatever opaque texel it meets
    if found & int32(BOXES):
        _find_models(blocks, column_x, column_z, s, n)
    for _ in range(MOST_SURFACES):
        _find_next_boxes(camera, s, n)
        if not _find_surfaces(s, n):
            break
        if found & int32(CULLED):
            _cull(blocks, n)
        if found & int32(HOLES):
            _find_words(tints, only_tint, atlas, faces, camera, s, n)
        tinted, seeks = _end_or_go_on(s, n)
        if tinted:
            _tint(light, camera, s, n)
        if not seeks:
            break
    for i in range(LANES):
        n[MET + i] = int32(PASSES) if n[MET + i] == int32(SEEKS) else n[MET + i]


@inlined_kernel
def _find_models(blocks: Shorts, column_x: int, column_z: int, s: Floats, n: Ints) -> None:
    """Find the models of the cells that hold blocks made of boxes."""
    for i in range(LANES):
        n[FRONT + i] = _slot(n[BLOCK_INDEX + i])
    for i in range(LANES):
        slot = uint32(n[FRONT + i])
        n[SIDE + i] = n[MODEL_CELL + slot]
        n[MODEL_KNOWN + i] = n[MODEL_IN_CELL + slot]
    unknown = int32(0)
    for i in range(LANES):
        has_boxes = (n[LOOK + i] & int32(BOXES)) != int32(0)
        is_unknown = has_boxes & (n[SIDE + i] != n[BLOCK_INDEX + i])
        n[SIDE + i] = int32(1) if is_unknown else int32(0)
        unknown = either(unknown, is_unknown)
        known, model = n[MODEL_KNOWN + i], n[MODEL + i]
        n[MODEL + i] = known if has_boxes else model
    if unknown == int32(0):
        return
    shift_x, shift_z = column_x - CENTRE, column_z - CENTRE
    for i in range(LANES):
        if n[SIDE + i] != int32(0):
            slot, index = uint32(n[FRONT + i]), n[BLOCK_INDEX + i]
            if n[MODEL_CELL + slot] != index:
                x, z = int32(s[CELL_X + i]) + shift_x, int32(s[CELL_Z + i]) + shift_z
                shape = shape_at(blocks, x, int32(s[CELL_Y + i]), z)
                n[MODEL_CELL + slot] = index
                n[MODEL_IN_CELL + slot] = _MODELS[shape + 1]
            n[MODEL + i] = n[MODEL_IN_CELL + slot]


@inlined_kernel
def _slot(index: int) -> int:
    """Where a cell's model may be among those that are known."""
    return int32((index ^ (index >> int32(7)) ^ (index >> int32(15))) & _LAST_SLOT)


def forget_models(n: Ints) -> None:
    """Forget the models of all cells, as blocks have changed."""
    n[MODEL_CELL : MODEL_CELL + MODELS_KNOWN] = -1


@inlined_kernel
def _inside(depth: float) -> int:
    """The bit `INSIDE` of a face this far from its cell's border."""
    return int32(INSIDE) if depth > _AT_BORDER else int32(0)


@inlined_kernel
def _find_next_boxes(camera: Floats, s: Floats, n: Ints) -> None:
    """Find the box that each ray enters next.

    `MET_AT` and `BEYOND` get where it enters and leaves the box, `SIDE` by which face, with the bit
    `INSIDE`. Without such a box, `MET_AT` is beyond the end of the view.
    """
    eye_x, eye_z = camera[EYE_X] + float32(CENTRE), camera[EYE_Z] + float32(CENTRE)
    eye_y = camera[EYE_Y]
    for i in range(LANES):
        s[FROM_EYE_X + i] = s[CELL_X + i] - eye_x
        s[FROM_EYE_Y + i] = s[CELL_Y + i] - eye_y
        s[FROM_EYE_Z + i] = s[CELL_Z + i] - eye_z
        s[MET_AT + i], s[BEYOND + i] = _NEVER, ZERO
        n[SIDE + i] = int32(0)
    model = _next_model(_NO_MODEL, n)
    while model != _LAST_MODEL:
        for box in range(model & _FIRST_BOX, model >> _LAST_BITS):
            _meet_box(model, box, s, n)
        model = _next_model(model, n)


@inlined_kernel
def _next_model(model: int, n: Ints) -> int:
    """The tile's models by their numbers, of which there are few: the next one after `model`."""
    following = _LAST_MODEL
    for i in range(LANES):
        other = n[MODEL + i]
        following = min(following, other if other > model else _LAST_MODEL)
    return following


@inlined_kernel
def _meet_box(model: int, box: int, s: Floats, n: Ints) -> None:
    """Let a box of a model be the next of all rays in cells of that model that it is next for.

    Two boxes that a ray enters at once count as one, which it leaves with the second.
    """
    x0, y0, z0 = _BOXES[box, 0], _BOXES[box, 1], _BOXES[box, 2]
    x1, y1, z1 = _BOXES[box, 3], _BOXES[box, 4], _BOXES[box, 5]
    west, down, north = int32(1) + _inside(x0), int32(3) + _inside(y0), int32(5) + _inside(z0)
    east, up, south = _inside(ONE - x1), int32(2) + _inside(ONE - y1), int32(4) + _inside(ONE - z1)
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        x, y, z = s[FROM_EYE_X + i], s[FROM_EYE_Y + i], s[FROM_EYE_Z + i]
        met_before, beyond, side_before = s[MET_AT + i], s[BEYOND + i], n[SIDE + i]
        low_x, high_x = (x + x0) * ix, (x + x1) * ix
        low_y, high_y = (y + y0) * iy, (y + y1) * iy
        low_z, high_z = (z + z0) * iz, (z + z1) * iz
        enter_x, enter_y, enter_z = min(low_x, high_x), min(low_y, high_y), min(low_z, high_z)
        enter = max(enter_x, max(enter_y, enter_z))
        leave = min(max(low_x, high_x), min(max(low_y, high_y), max(low_z, high_z)))
        met = max(enter, ZERO)
        is_there = (n[MODEL + i] == model) & (met <= leave) & (met > s[ENTERED + i])
        is_next = is_there & (met < met_before)
        beyond = max(beyond, leave) if is_there & (met == met_before) else beyond
        s[BEYOND + i] = leave if is_next else beyond
        s[MET_AT + i] = met if is_next else met_before
        side = south if iz < ZERO else north
        side = (up if iy < ZERO else down) if enter == enter_y else side
        side = (east if ix < ZERO else west) if enter == enter_x else side
        n[SIDE + i] = side if is_next else side_before


@inlined_kernel
def _find_surfaces(s: Floats, n: Ints) -> bool:
    """Mark in `SURFACE` the rays to which the box that they enter next shows a surface.

    Returns:
        Whether rays have entered a box, so that these and others may show a surface.
    """
    entered = int32(0)
    for i in range(LANES):
        met, seeks = s[MET_AT + i], n[MET + i] == int32(SEEKS)
        is_in_view = met < s[T_MAX + i]
        is_surface = seeks & is_in_view & (met > s[INSIDE_UNTIL + i])
        n[SURFACE + i] = int32(1) if is_surface else int32(0)
        n[MET + i] = int32(PASSES) if seeks & (not is_in_view) else n[MET + i]
        entered = either(entered, seeks & is_in_view)
        s[ENTERED + i] = met
        s[INSIDE_UNTIL + i] = max(s[INSIDE_UNTIL + i], s[BEYOND + i] + _TOUCHING)
    return entered != int32(0)


@render_kernel
def _cull(blocks: Shorts, n: Ints) -> None:
    """Leave out the surfaces between two blocks of one kind that hide them."""
    for i in range(LANES):
        n[FRONT + i] = step_out(n[BLOCK_INDEX + i], n[SIDE + i])
    for i in range(LANES):
        n[MODEL_KNOWN + i] = int32(blocks[uint32(n[FRONT + i])])
    for i in range(LANES):
        is_one_kind = ((n[MODEL_KNOWN + i] ^ n[BLOCK + i]) & int32(KIND_MASK)) == int32(0)
        is_hidden = ((n[LOOK + i] & int32(CULLED)) != int32(0)) & is_one_kind
        is_hidden &= (n[SIDE + i] < int32(INSIDE)) & (
            not _is_at_end(n[BLOCK_INDEX + i], n[SIDE + i])
        )
        surface = n[SURFACE + i]
        n[SURFACE + i] = int32(0) if is_hidden else surface


@inlined_kernel
def _is_at_end(index: int, side: int) -> bool:
    """Whether the world ends at a face, so that nothing is in front of it."""
    layer = index & TOP_LAYER
    return ((side == int32(2)) & (layer == TOP_LAYER)) | ((side == int32(3)) & (layer == int32(0)))


@inlined_kernel
def _find_words(
    tints: Bytes, only_tint: int, atlas: Words, faces: Ints, camera: Floats, s: Floats, n: Ints
) -> None:
    """Find the word of the texel that each ray meets: see `light.choose_texels`."""
    mip_depth = camera[MIP_DEPTH]
    eye_x, eye_z = camera[EYE_X] + float32(CENTRE), camera[EYE_Z] + float32(CENTRE)
    eye_y = camera[EYE_Y]
    for i in range(LANES):
        face = n[SIDE + i] & int32(INSIDE - 1)
        n[TEXEL + i] = faces[uint32((n[BLOCK + i] << int32(FACE_BITS)) | face)]
    tint_faces(tints, only_tint, n)
    for i in range(LANES):
        t, axis = s[MET_AT + i], (n[SIDE + i] & int32(INSIDE - 1)) >> int32(1)
        x = min(max(eye_x + s[DIR_X + i] * t - s[CELL_X + i], ZERO), ALMOST_ONE)
        y = min(max(eye_y + s[DIR_Y + i] * t - s[CELL_Y + i], ZERO), ALMOST_ONE)
        z = min(max(eye_z + s[DIR_Z + i] * t - s[CELL_Z + i], ZERO), ALMOST_ONE)
        u = z if axis == int32(0) else x
        v = z if axis == int32(1) else ALMOST_ONE - y
        size, offset = mip_level(t, mip_depth)
        row = float32(int32(v * size))
        texture = n[TEXEL + i] & int32((1 << LOOK_SHIFT) - 1)
        n[TEXEL + i] = texture + offset + int32(row * size) + int32(u * size)
    for i in range(LANES):
        n[TEXEL + i] = int32(atlas[uint32(n[TEXEL + i])])


@inlined_kernel
def _end_or_go_on(s: Floats, n: Ints) -> tuple[bool, bool]:
    """End the rays on opaque texels.

    Returns:
        Whether texels tint some of the others, whose `SURFACE` stays marked; and whether some have
        more boxes to meet in their cell.
    """
    tinted, seeks = int32(0), int32(0)
    for i in range(LANES):
        clear = (n[TEXEL + i] >> int32(CLEAR_SHIFT)) & int32(HOLE)
        t, met_at, face, side = s[T_NOW + i], s[MET_AT + i], n[SEEN_FACE + i], n[SIDE + i]
        met, model = n[MET + i], n[MODEL + i]
        boxes = int32(model >> int32(_LAST_BITS)) - int32(model & _FIRST_BOX)
        is_seen = (n[SURFACE + i] != int32(0)) & (clear < int32(HOLE))
        tints = is_seen & (clear > int32(0)) & (n[TINTS + i] < int32(MOST_TINTS))
        ends = is_seen & (not tints)
        s[T_NOW + i] = met_at if ends else t
        n[SEEN_FACE + i] = side if ends else face
        n[SURFACE + i] = int32(1) if tints else int32(0)
        tinted = either(tinted, tints)
        has_more = (met == int32(SEEKS)) & (boxes > int32(1)) & (not ends)
        seeks = either(seeks, has_more)
        met = int32(PASSES) if (met != int32(ENDS)) & (not has_more) else met
        n[MET + i] = int32(ENDS) if ends else met
    return tinted != int32(0), seeks != int32(0)


@render_kernel
def _tint(light: Bytes, camera: Floats, s: Floats, n: Ints) -> None:
    """Let the texels that rays pass tint what is behind them."""
    for i in range(LANES):
        if n[SURFACE + i] == int32(0):
            continue
        index, side, word = n[BLOCK_INDEX + i], n[SIDE + i], n[TEXEL + i]
        front = index if _is_at_end(index, side) else step_out(index, side)
        lit = n[LIGHT_MAP + int32(light[uint32(front)])]
        fog = (s[MET_AT + i] / s[T_MAX + i] - camera[FOG_START]) * camera[FOG_SCALE]
        fog = min(max(fog, ZERO), ONE)
        clear = float32(uint32(word) >> uint32(CLEAR_SHIFT)) * float32(1 / HOLE)
        share = s[CLEAR + i] * (ONE - clear)
        for channel in range(3):
            bits = int32(8 * channel)
            colour = float32((word >> bits) & int32(255)) * float32(1 / 255)
            colour *= float32((lit >> bits) & int32(255))
            colour += (camera[FOG_RGB + channel] - colour) * fog
            s[TINT_R + channel * LANES + i] += share * colour
        s[CLEAR + i] -= share
        n[TINTS + i] += int32(1)


# ------------------------------------------------------------------------- what is made of it later


@inlined_kernel
def begin_faces(n: Ints) -> None:
    """Mark that no ray of a tile has ended in a special cell."""
    for i in range(LANES):
        n[SEEN_FACE + i] = int32(NO_FACE)


@inlined_kernel
def still_special(n: Ints) -> int:
    """Leave out the looks of cells in which rays have ended already; return the others' bits."""
    found = int32(0)
    for i in range(LANES):
        look = n[LOOK + i]
        look = look if n[SEEN_FACE + i] == int32(NO_FACE) else int32(0)
        n[LOOK + i] = look
        found = either(found, look)
    return found


@inlined_kernel
def show_faces(n: Ints) -> None:
    """Let rays that have ended on a surface show its face."""
    for i in range(LANES):
        face, seen = n[FACE + i], n[SEEN_FACE + i]
        n[FACE + i] = face if seen == int32(NO_FACE) else seen


@inlined_kernel
def is_tinted(n: Ints) -> bool:
    """Whether texels tint some of a tile's rays."""
    tints = int32(0)
    for i in range(LANES):
        tints = either(tints, n[TINTS + i])
    return tints != int32(0)


@inlined_kernel
def tint_all(s: Floats, n: Ints) -> None:
    """Tint a tile's colours."""
    for i in range(LANES):
        clear = s[CLEAR + i]
        n[RED + i] = int32(float32(n[RED + i]) * clear + s[TINT_R + i] + HALF)
        n[GREEN + i] = int32(float32(n[GREEN + i]) * clear + s[TINT_G + i] + HALF)
        n[BLUE + i] = int32(float32(n[BLUE + i]) * clear + s[TINT_B + i] + HALF)


# ----- rays that have passed a special cell, and go on: at once, or when a whole tile of them waits
# Where many rays of a tile pass, they go on at once, while the others are held where they have
# ended. Where few do, most lanes would idle; so they are put aside, and their pixels are
# overwritten when they end. A tile of waiting rays goes through the same kernels as one of the
# frame; only where it begins and where its pixels are differs.
#
# The rays are a queue of at most two tiles: at most one tile waits before another tile adds its
# own.

MOST_CELLS = 64
"""Special cells that a ray passes, at most; then its view ends."""
GOES_BIT = 2
"""Bit of `MET` that is set where a ray goes on."""

_QUEUE = 2 * LANES
_FLOAT_ROWS, _INT_ROWS = 7, 3
# Places in the scratch where the queue holds each value of its rays.
_RAY_X, _RAY_Y, _T, _CLEAR, _TINT_R, _TINT_G, _TINT_B = (
    WAITING + _QUEUE * row for row in range(_FLOAT_ROWS)
)
_PIXEL, _PASSED, _TINTS = (WAITING_INTS + _QUEUE * row for row in range(_INT_ROWS))


@inlined_kernel
def begin_pixels(tile_x: int, tile_y: int, width: int, height: int, s: Floats, n: Ints) -> None:
    """Write where in the frame the rays of a tile are (-1 outside), and that nothing tints them."""
    for i in range(LANES):
        row = int32(tile_y) + int32(int32(i) >> int32(TILE_BITS))
        column = int32(tile_x) + int32(int32(i) & int32(TILE - 1))
        is_inside = (column < int32(width)) & (row < int32(height))
        place = int32(int32(row) * int32(width)) + int32(column)
        n[PIXEL + i] = int32(place) if is_inside else int32(-1)
        s[CLEAR + i] = ONE
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = ZERO, ZERO, ZERO
        n[TINTS + i], n[PASSED + i] = int32(0), int32(0)


@inlined_kernel
def pass_on(camera: Floats, ceiling: float, s: Floats, n: Ints) -> tuple[int, bool]:
    """Find in `T_KEPT` where rays that pass enter their next cell, and set `MET` if they go on.

    In the tile, all that pass are at the end of their view then, so that they cost no shading.

    Args:
        camera: The camera vector.
        ceiling: No block is at or above this height.
        s: Float scratch.
        n: Integer scratch.

    Returns:
        How many rays go on, and whether the view of some ends before their next cell.
    """
    eye_x, eye_z = camera[EYE_X] + float32(CENTRE), camera[EYE_Z] + float32(CENTRE)
    eye_y = camera[EYE_Y]
    going, some_ended = int32(0), int32(0)
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t, t_max, y = s[T_NOW + i], s[T_MAX + i], s[CELL_Y + i]
        leave_x = (s[CELL_X + i] - eye_x + (ONE if ix > ZERO else ZERO)) * ix
        leave_y = (y - eye_y + (ONE if iy > ZERO else ZERO)) * iy
        leave_z = (s[CELL_Z + i] - eye_z + (ONE if iz > ZERO else ZERO)) * iz
        leave = min(leave_x, min(leave_y, leave_z))
        is_vertical = (leave_y < leave_x) & (leave_y <= leave_z)
        y_next = y + (ONE if iy > ZERO else -ONE) if is_vertical else y
        t_next, passed = max(t, leave), n[PASSED + i] + int32(1)
        ends = (t_next >= t_max) | (y_next < ZERO) | (y_next >= ceiling)
        ends |= passed > int32(MOST_CELLS)
        passes = n[MET + i] == int32(PASSES)
        goes = passes & (not ends) & (n[PIXEL + i] >= int32(0))
        s[T_KEPT + i] = t_next
        s[T_NOW + i] = t_max if passes else t
        n[PASSED + i] = passed
        n[MET + i] = int32(1 << GOES_BIT) if goes else int32(0)
        going = int32(going + int32(goes))
        some_ended = either(some_ended, passes & ends)
    return going, some_ended != int32(0)


@inlined_kernel
def wait(count: int, going: int, s: Floats, n: Ints) -> int:
    """Let the tile's rays that go on wait, behind `count` others; return how many wait now."""
    begun = int32(0)
    for i in range(LANES):
        n[WAITS + uint32(begun)] = int32(i)
        begun = int32(begun + int32(n[MET + i] >> int32(GOES_BIT)))
    for place in range(going):
        _put(uint32(count + place), uint32(n[WAITS + uint32(place)]), s, n)
    return count + going


@inlined_kernel
def hold(s: Floats, n: Ints) -> None:
    """Let the tile's rays that go on enter their next cells, while all others step aside."""
    for i in range(LANES):
        s[HELD_X + i], s[HELD_Y + i], s[HELD_Z + i] = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        s[HELD_T + i], n[HELD_INDEX + i] = s[T_NOW + i], n[BLOCK_INDEX + i]
        next_cell, end = s[T_KEPT + i], s[T_MAX + i]
        s[T_NOW + i] = next_cell if n[MET + i] != int32(0) else end


@inlined_kernel
def release(s: Floats, n: Ints) -> None:
    """Put the others back where they have ended."""
    for i in range(LANES):
        goes = n[MET + i] != int32(0)
        x, y, z, t = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i], s[T_NOW + i]
        held_x, held_y, held_z = s[HELD_X + i], s[HELD_Y + i], s[HELD_Z + i]
        held_t, held_index = s[HELD_T + i], n[HELD_INDEX + i]
        field, index = n[FIELD + i], n[BLOCK_INDEX + i]
        s[CELL_X + i], s[CELL_Y + i] = x if goes else held_x, y if goes else held_y
        s[CELL_Z + i], s[T_NOW + i] = z if goes else held_z, t if goes else held_t
        n[BLOCK_INDEX + i] = index if goes else held_index
        n[FIELD + i] = field if goes else int32(0)


@render_kernel
def _put(place: int, i: int, s: Floats, n: Ints) -> None:
    """Put a ray at the end of the queue."""
    s[_RAY_X + place], s[_RAY_Y + place], s[_T + place] = s[RAY_X + i], s[RAY_Y + i], s[T_KEPT + i]
    s[_CLEAR + place], s[_TINT_R + place] = s[CLEAR + i], s[TINT_R + i]
    s[_TINT_G + place], s[_TINT_B + place] = s[TINT_G + i], s[TINT_B + i]
    n[_PIXEL + place], n[_PASSED + place] = n[PIXEL + i], n[PASSED + i]
    n[_TINTS + place] = n[TINTS + i]


@inlined_kernel
def take(count: int, s: Floats, n: Ints) -> int:
    """Fill a tile with the rays that have waited longest, and return how many it has.

    They are to be started like others, and then to `resume`. Places are known to the compiler, so
    all `LANES` are copied, and all beyond them moved up; what is beyond those taken is not used.
    """
    for i in range(LANES):
        s[RAY_X + i], s[RAY_Y + i] = s[_RAY_X + i], s[_RAY_Y + i]
        s[T_KEPT + i], s[CLEAR + i] = s[_T + i], s[_CLEAR + i]
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = (
            s[_TINT_R + i],
            s[_TINT_G + i],
            s[_TINT_B + i],
        )
        n[PIXEL + i], n[PASSED + i] = n[_PIXEL + i], n[_PASSED + i]
        n[TINTS + i] = n[_TINTS + i]
    for row in range(_FLOAT_ROWS):
        first = WAITING + _QUEUE * row
        for i in range(LANES):
            s[first + i] = s[first + LANES + i]
    for row in range(_INT_ROWS):
        first = WAITING_INTS + _QUEUE * row
        for i in range(LANES):
            n[first + i] = n[first + LANES + i]
    return min(count, LANES)


@inlined_kernel
def resume(taken: int, s: Floats) -> None:
    """Put a tile's rays where they have waited, and all others at the end of their view."""
    for i in range(LANES):
        s[T_NOW + i] = s[T_KEPT + i] if i < taken else s[T_MAX + i]


@inlined_kernel
def store_waiting(taken: int, s: Floats, n: Ints, frame: Bytes, depth: Floats) -> None:
    """Overwrite the pixels of a tile of rays that have waited."""
    for i in range(taken):
        pixel = uint32(n[PIXEL + i])
        frame[pixel * uint32(3)] = uint8(n[RED + i])
        frame[pixel * uint32(3) + uint32(1)] = uint8(n[GREEN + i])
        frame[pixel * uint32(3) + uint32(2)] = uint8(n[BLUE + i])
        depth[pixel] = s[DEPTH + i]
