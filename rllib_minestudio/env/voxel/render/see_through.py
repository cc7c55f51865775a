"""Rays that go on behind the first block: through gaps and glass, past fences and stairs.

The march of a tile (see `terrain`) ends where the box field holds a block. Tiles in which a ray has
ended in a *special* cell (see `block_looks`) come here, and each of these rays is followed on its
own: to the nearest surface of the cell's block whose texel is not a hole; past it into the next
cell, or by the box field's leaps through air; until it ends on a surface or its view ends.

Only the outer sides of surfaces are seen, as Minecraft culls the others: a ray enters a cube or a
box, and leaves it unnoticed. Where boxes of a block touch or overlap, what is between them is not
seen either. So a ray counts as inside from where it enters the first of them, up to where it has
left all, and only how it gets inside is a surface.

Texels between opaque and hole *tint* what is behind them: their colour, in their own light and fog,
is added to the ray's by their opacity, and what follows counts by what is left.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.block_atlas import CLEAR_SHIFT, FACE_BITS, HOLE
from rllib_minestudio.env.voxel.render.block_looks import BOXES, CULLED, LEAVES, SPECIAL
from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_RGB,
    FOG_SCALE,
    FOG_START,
    MIP_DEPTH,
    VIEW,
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.light import ALMOST_ONE, is_hit, mip_level, step_out
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BLOCK,
    BLOCK_INDEX,
    BLUE,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    CLEAR,
    DIR_X,
    DIR_Y,
    DIR_Z,
    FACE,
    FIELD,
    GREEN,
    HALF,
    INSIDE,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    LIGHT_MAP,
    LOOK,
    ONE,
    ORG_X,
    ORG_Y,
    ORG_Z,
    RED,
    SEEN_FACE,
    T_MAX,
    T_NOW,
    TINT_B,
    TINT_G,
    TINT_R,
    TINTS,
    ZERO,
    to_end_of_box,
)
from rllib_minestudio.env.voxel.world.block_shapes import MODEL_BOXES, MODEL_FIRST, shape_at
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, narrow_block_index

FULL_LEAVES = 12.0
"""Distance in blocks from which leaves have no gaps."""
MOST_CELLS = 256
"""Cells and leaps after which a ray ends, see `terrain.MOST_LEAPS`."""
MOST_TINTS = 6
"""Texels that tint a ray; the next one ends it, as if it were opaque."""

NO_FACE = -1
_NEVER = 1e9
"""Ray parameter of a surface that the ray misses."""
_TOUCHING = 1e-4
"""Boxes that are less than this apart touch: in blocks, and in a ray's parameter."""
_AT_BORDER = 1e-3
"""Faces this near to their cell's border are on it."""

# Rows of boxes: that of a cube, then those of `block_shapes`.
_CUBE = 0
_BOXES = np.concatenate([np.array([[0, 0, 0, 1, 1, 1]], np.float32), MODEL_BOXES])
_FIRST = np.concatenate([np.zeros(1, np.int32), MODEL_FIRST + 1])


@render_kernel
def find_special(camera: Floats, blocks: Shorts, looks: Bytes, s: Floats, n: Ints) -> bool:
    """Find the block that each ray has ended in, and whether one of them is special."""
    near = float32(FULL_LEAVES) / camera[VIEW]
    special = int32(0)
    for i in range(LANES):
        n[BLOCK + i] = int32(blocks[uint32(n[BLOCK_INDEX + i])])
    for i in range(LANES):
        n[LOOK + i] = int32(looks[uint32(n[BLOCK + i])])
    for i in range(LANES):
        look = n[LOOK + i]
        is_full = ((look & int32(LEAVES)) != int32(0)) & (s[T_NOW + i] > near * s[T_MAX + i])
        look = look & int32(SPECIAL) if is_hit(i, s, n) & (not is_full) else int32(0)
        n[LOOK + i] = look
        special |= look
    return special != int32(0)


@render_kernel
def see_through(
    blocks: Shorts, box: Shorts, looks: Bytes, light: Bytes, atlas: Words, faces: Ints,
    camera: Floats, ceiling: float, column_x: int, column_z: int, s: Floats, n: Ints,
) -> bool:  # fmt: skip
    """Follow the rays that have ended in special cells to where they end indeed.

    Afterwards they are hits like others, or have come to the end of their view. `SEEN_FACE` holds
    the face that they have hit, with the bit `INSIDE` if it is not on its cell's border; -1 for
    all other rays.

    Args:
        blocks: See `terrain.render_terrain`, as all others.
        box: The box field.
        looks: uint8 (65536,), `block_looks.LOOKS`.
        light: Levels of light.
        atlas: Textures of blocks.
        faces: Where they begin.
        camera: The camera vector.
        ceiling: No block is at or above this height.
        column_x: Block column of the eye.
        column_z: Block column of the eye.
        s: Float scratch.
        n: Integer scratch, as `find_special` leaves it.

    Returns:
        Whether a ray was tinted.
    """
    tints = int32(0)
    for i in range(LANES):
        s[CLEAR + i] = ONE
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = ZERO, ZERO, ZERO
        n[SEEN_FACE + i], n[TINTS + i] = int32(NO_FACE), int32(0)
    for i in range(LANES):
        if n[LOOK + i] != int32(0):
            _follow(
                i, blocks, box, looks, light, atlas, faces, camera, ceiling, column_x, column_z,
                s, n,
            )  # fmt: skip
            tints += n[TINTS + i]
    return tints > int32(0)


@render_kernel
def _follow(
    i: int, blocks: Shorts, box: Shorts, looks: Bytes, light: Bytes, atlas: Words, faces: Ints,
    camera: Floats, ceiling: float, column_x: int, column_z: int, s: Floats, n: Ints,
) -> None:  # fmt: skip
    """Follow one ray to where it ends."""
    shift_x, shift_z = int32(column_x - CENTRE), int32(column_z - CENTRE)
    t_full = s[T_MAX + i] * float32(FULL_LEAVES) / camera[VIEW]
    for _ in range(MOST_CELLS):
        if n[FIELD + i] != int32(0):
            goes_on = _leap(i, camera, s, n)
        else:
            block = int32(blocks[uint32(n[BLOCK_INDEX + i])])
            look = int32(looks[uint32(block)])
            is_full = ((look & int32(LEAVES)) != int32(0)) & (s[T_NOW + i] > t_full)
            n[BLOCK + i] = block
            if is_full or (look & int32(SPECIAL)) == int32(0):
                n[SEEN_FACE + i] = _entry_face(i, camera, s)
                return
            row = int32(_CUBE)
            if look & int32(BOXES):
                x, z = int32(s[CELL_X + i]) + shift_x, int32(s[CELL_Z + i]) + shift_z
                row = int32(_CUBE + 1 + shape_at(blocks, x, int32(s[CELL_Y + i]), z))
            if _ends_in_cell(i, look, row, blocks, light, atlas, faces, camera, s, n):
                return
            goes_on = _step(i, camera, s)
        x, y, z = int32(s[CELL_X + i]), int32(s[CELL_Y + i]), int32(s[CELL_Z + i])
        if not goes_on or y < int32(0) or float32(y) >= ceiling:
            break
        n[BLOCK_INDEX + i] = narrow_block_index(x + shift_x, y, z + shift_z)
        n[FIELD + i] = int32(box[uint32(n[BLOCK_INDEX + i])])
    s[T_NOW + i] = s[T_MAX + i]


# ----------------------------------------------------------------------- from one cell to the next


@render_kernel
def _to_cell(i: int, axis: int, camera: Floats, s: Floats) -> float:
    """Where a ray's cell begins along an axis, seen from the eye."""
    eye = camera[EYE_X + axis] + float32(0 if axis == 1 else CENTRE)
    return s[CELL_X + axis * LANES + i] - eye


@render_kernel
def _leap(i: int, camera: Floats, s: Floats, n: Ints) -> bool:
    """Move a ray to the end of its empty box; return whether it is short of the end of its view."""
    t = to_end_of_box(
        n[FIELD + i],
        _to_cell(i, 0, camera, s) + HALF,
        _to_cell(i, 1, camera, s) + HALF,
        _to_cell(i, 2, camera, s) + HALF,
        s[INV_X + i], s[INV_Y + i], s[INV_Z + i],
    )  # fmt: skip
    # A ray that leaves through the floor would stay in the lowest cell.
    goes_on = s[T_NOW + i] < t < s[T_MAX + i]
    s[T_NOW + i] = t
    s[CELL_X + i] = float32(int32(s[ORG_X + i] + s[DIR_X + i] * t))
    s[CELL_Y + i] = float32(int32(s[ORG_Y + i] + s[DIR_Y + i] * t))
    s[CELL_Z + i] = float32(int32(s[ORG_Z + i] + s[DIR_Z + i] * t))
    return goes_on


@render_kernel
def _step(i: int, camera: Floats, s: Floats) -> bool:
    """Move a ray from its cell to the next; return whether it is short of the end of its view."""
    leave, across = float32(_NEVER), 0
    for axis in range(3):
        inverse = s[INV_X + axis * LANES + i]
        border = _to_cell(i, axis, camera, s) + (ONE if inverse > ZERO else ZERO)
        if border * inverse < leave:
            leave, across = border * inverse, axis
    forward = s[INV_X + across * LANES + i] > ZERO
    s[CELL_X + across * LANES + i] += ONE if forward else -ONE
    s[T_NOW + i] = max(s[T_NOW + i], leave)
    return s[T_NOW + i] < s[T_MAX + i]


@render_kernel
def _entry_face(i: int, camera: Floats, s: Floats) -> int:
    """The face by which a ray has entered its cell."""
    enter, face = -float32(_NEVER), int32(0)
    for axis in range(3):
        inverse = s[INV_X + axis * LANES + i]
        border = _to_cell(i, axis, camera, s) + (ZERO if inverse > ZERO else ONE)
        if border * inverse > enter:
            enter = border * inverse
            face = int32(2 * axis + (1 if inverse > ZERO else 0))
    return face


@render_kernel
def _front(i: int, face: int, s: Floats, n: Ints) -> int:
    """Index of the cell in front of a face; above and below the world, of the face's own cell."""
    is_top = face == int32(2) and s[CELL_Y + i] == float32(HEIGHT - 1)
    is_bottom = face == int32(3) and s[CELL_Y + i] == ZERO
    return n[BLOCK_INDEX + i] if is_top or is_bottom else step_out(n[BLOCK_INDEX + i], face)


# ---------------------------------------------------------------------- what a ray meets in a cell


@render_kernel
def _ends_in_cell(
    i: int, look: int, row: int, blocks: Shorts, light: Bytes, atlas: Words, faces: Ints,
    camera: Floats, s: Floats, n: Ints,
) -> bool:  # fmt: skip
    """Whether a ray ends on one of the surfaces in its cell; they may tint it.

    Args:
        i: The ray.
        look: That of the cell's block.
        row: The boxes of the cell's block, a row of `_FIRST`.
        blocks: See `see_through`, as all others.
        light: Levels of light.
        atlas: Textures of blocks.
        faces: Where they begin.
        camera: The camera vector.
        s: Float scratch; gets the place of the surface.
        n: Integer scratch; gets the surface's face.
    """
    # The boxes that the eye is in count as entered at 0, where the ray has been inside already.
    after, until = -ONE, ZERO
    first, last = _FIRST[row], _FIRST[row + 1]
    for _ in range(last - first):
        after, beyond, face = _next_box(i, first, last, after, camera, s)
        if after >= s[T_MAX + i]:
            break
        is_hidden = after <= until
        until = max(until, beyond + float32(_TOUCHING))
        if is_hidden or (look & int32(CULLED) and _is_beside_its_like(i, face, blocks, s, n)):
            continue
        word = _texel(i, after, face, atlas, faces, camera, s, n)
        clear = int32(word >> uint32(CLEAR_SHIFT))
        if clear == int32(0) or (clear < int32(HOLE) and n[TINTS + i] == int32(MOST_TINTS)):
            s[T_NOW + i], n[SEEN_FACE + i] = after, face
            return True
        if clear < int32(HOLE):
            level = int32(light[uint32(_front(i, face, s, n))])
            _tint(i, after, word, level, camera, s, n)
    return False


@render_kernel
def _next_box(
    i: int, first: int, last: int, after: float, camera: Floats, s: Floats
) -> tuple[float, float, int]:
    """Find the next box that a ray enters in its cell.

    Args:
        i: The ray.
        first: First of the cell's boxes in `_BOXES`.
        last: The one after the last.
        after: Boxes that it has entered until then are past.
        camera: The camera vector.
        s: Float scratch.

    Returns:
        Where it enters and leaves the box, and by which face it enters, with the bit `INSIDE` if
        that face is not on the cell's border; `_NEVER` first if there is no such box.
    """
    nearest, beyond, face = float32(_NEVER), ZERO, int32(0)
    x, y, z = _to_cell(i, 0, camera, s), _to_cell(i, 1, camera, s), _to_cell(i, 2, camera, s)
    ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
    # Places of the faces that look at the eye, and of those behind, in a row of `_BOXES`.
    near_x, near_y, near_z = 0 if ix > ZERO else 3, 1 if iy > ZERO else 4, 2 if iz > ZERO else 5
    for box in range(first, last):
        enter_x, leave_x = (x + _BOXES[box, near_x]) * ix, (x + _BOXES[box, 3 - near_x]) * ix
        enter_y, leave_y = (y + _BOXES[box, near_y]) * iy, (y + _BOXES[box, 5 - near_y]) * iy
        enter_z, leave_z = (z + _BOXES[box, near_z]) * iz, (z + _BOXES[box, 7 - near_z]) * iz
        enter = max(enter_x, max(enter_y, enter_z))
        leave = min(leave_x, min(leave_y, leave_z))
        if enter > leave or leave < ZERO or max(enter, ZERO) <= after:
            continue
        if max(enter, ZERO) == nearest:
            beyond = max(beyond, leave)
        elif enter < nearest:
            nearest, beyond = max(enter, ZERO), leave
            side = near_x if enter == enter_x else near_y if enter == enter_y else near_z
            axis = side - 3 if side > 2 else side
            is_low = side < 3
            at = _BOXES[box, side]
            face = int32(2 * axis + (1 if is_low else 0))
            is_border = at <= float32(_AT_BORDER) if is_low else at >= ONE - float32(_AT_BORDER)
            face |= int32(0) if is_border else int32(INSIDE)
    return nearest, beyond, face


@render_kernel
def _is_beside_its_like(i: int, face: int, blocks: Shorts, s: Floats, n: Ints) -> bool:
    """Whether the cell in front of a face has a block of the same kind."""
    front = _front(i, face, s, n)
    other = int32(blocks[uint32(front)])
    return front != n[BLOCK_INDEX + i] and kind_of(other) == kind_of(n[BLOCK + i])


@render_kernel
def _texel(
    i: int, t: float, face: int, atlas: Words, faces: Ints, camera: Floats, s: Floats, n: Ints
) -> int:
    """The word of the texel that a ray meets on a face of its cell's block: see `choose_texels`."""
    face &= int32(INSIDE - 1)
    axis = face >> int32(1)
    along_u, along_v = int32(2 if axis == 0 else 0), int32(2 if axis == 1 else 1)
    u = s[DIR_X + along_u * LANES + i] * t - _to_cell(i, along_u, camera, s)
    v = s[DIR_X + along_v * LANES + i] * t - _to_cell(i, along_v, camera, s)
    u, v = min(max(u, ZERO), ALMOST_ONE), min(max(v, ZERO), ALMOST_ONE)
    size, offset = mip_level(t, camera[MIP_DEPTH])
    row = float32(int32((v if axis == 1 else ALMOST_ONE - v) * size))
    start = faces[uint32((n[BLOCK + i] << int32(FACE_BITS)) | face)]
    return atlas[uint32(start + offset + int32(row * size) + int32(u * size))]


@render_kernel
def _tint(i: int, t: float, word: int, level: int, camera: Floats, s: Floats, n: Ints) -> None:
    """Let a texel at `t`, in this level of light, tint what is behind it."""
    lit = n[LIGHT_MAP + level]
    fog = (t / s[T_MAX + i] - camera[FOG_START]) * camera[FOG_SCALE]
    fog = min(max(fog, ZERO), ONE)
    opacity = ONE - float32(int32(word >> uint32(CLEAR_SHIFT))) * float32(1 / 255)
    share = s[CLEAR + i] * opacity
    for channel in range(3):
        bits = uint32(8 * channel)
        colour = float32(int32(word >> bits) & int32(255))
        colour *= float32((lit >> int32(bits)) & int32(255)) * float32(1 / 255)
        s[TINT_R + channel * LANES + i] += share * (
            colour + (camera[FOG_RGB + channel] - colour) * fog
        )
    s[CLEAR + i] -= share
    n[TINTS + i] += int32(1)


# ------------------------------------------------------------------------ what others make of it


@render_kernel
def show_faces(n: Ints) -> None:
    """Let the rays that were followed show the faces that they have hit."""
    for i in range(LANES):
        n[FACE + i] = n[FACE + i] if n[SEEN_FACE + i] == int32(NO_FACE) else n[SEEN_FACE + i]


@render_kernel
def tint_all(s: Floats, n: Ints) -> None:
    """Tint a tile's colours."""
    for i in range(LANES):
        clear = s[CLEAR + i]
        n[RED + i] = int32(float32(n[RED + i]) * clear + s[TINT_R + i] + HALF)
        n[GREEN + i] = int32(float32(n[GREEN + i]) * clear + s[TINT_G + i] + HALF)
        n[BLUE + i] = int32(float32(n[BLUE + i]) * clear + s[TINT_B + i] + HALF)
