"""Collision of boxes with blocks, and the constants of Minecraft's motion.

All lengths are in blocks, all times in ticks (1/20 s). Compiled without fastmath, so that twin
engines agree to the last bit.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.block_shapes import (
    BODY_BOXES,
    BODY_FIRST,
    rises,
    shape_at,
    stops_all,
    stops_nothing,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, narrow_block_index

GRAVITY = 0.08
"""Downward acceleration of the player and of mobs, blocks per tick squared."""
DRAG = 0.98
"""Factor on vertical speed in a tick, after gravity."""
AIR_FRICTION = 0.91
"""Factor on horizontal speed in a tick; on the ground, its slipperiness comes on top."""
INPUT_SCALE = 0.98
"""Factor on the movement input of every living thing."""
JUMP_SPEED = 0.42
JUMP_DELAY = 10
"""Ticks between two jumps while the key is held."""
AIR_ACCELERATION = 0.02
NEGLIGIBLE = 0.003
"""Components of velocity below this are set to zero, as Minecraft does."""
FASTEST = 64.0
"""Cap on each component of a velocity, and so on every loop over the blocks along a motion. Nothing
comes near it: the fastest, a jump with the highest jump boost, begins with 26 blocks per tick."""
SAFE_FALL = 3.0
"""Blocks that one can fall without damage."""
STEP_HEIGHT = 0.6
"""Height that players and mobs step up without a jump; sneaking players refuse a deeper drop."""
NO_STEP = 0.0
"""Step height of dropped items."""

VOID = -64.0
"""Below this y, Minecraft hurts living things and removes everything else."""
VOID_DAMAGE = 4.0
"""Health points of a hit by the void, due each tick; invulnerability prevents most of them."""
FARTHEST = 29_999_999.0
"""Farthest that a player can get from the origin along x and z."""

_EDGE = 1e-7


@kernel()
def random_bits(state: NDArray[np.uint64]) -> int:
    """Draw the next 64 bits of the engine's generator, xorshift64* (Vigna 2016)."""
    bits = state[0]
    bits ^= bits >> uint64(12)
    bits ^= bits << uint64(25)
    bits ^= bits >> uint64(27)
    state[0] = bits
    return bits * uint64(0x2545F4914F6CDD1D)


@kernel()
def random(state: NDArray[np.uint64]) -> float:
    """Draw a number in [0, 1) from the engine's generator."""
    return (random_bits(state) >> uint64(11)) * (1.0 / 9007199254740992.0)


@kernel(inline="always")
def _room_before_span(near: float, far: float, low: float, high: float, room: float) -> float:
    """How far [low, high] can go along its axis until it meets [near, far]; see `_room_before`."""
    if room > 0.0:
        return max(0.0, min(room, near - high)) if near - high >= -_EDGE else room
    return min(0.0, max(room, far - low)) if far - low <= _EDGE else room


@kernel()
def _room_before(
    blocks: NDArray[np.uint16],
    cell: tuple[int, int, int],
    axis: int,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    room: float,
) -> float:
    """How far a box can go along an axis until it meets the boxes of one cell.

    Args:
        blocks: The window's blocks.
        cell: The cell; above and below the world there is nothing.
        axis: 0 to 2.
        low: Lowest corner of the box that moves.
        high: Highest corner.
        room: The motion that is left by now; its sign is its direction.

    Returns:
        `room`, or what is left of it; 0 if the boxes touch.
    """
    shape = shape_at(blocks, cell[0], cell[1], cell[2])
    one, two = (axis + 1) % 3, (axis + 2) % 3
    for row in range(BODY_FIRST[shape], BODY_FIRST[shape + 1]):
        box = BODY_BOXES[row]
        if (
            cell[one] + box[one] >= high[one] - _EDGE
            or cell[one] + box[one + 3] <= low[one] + _EDGE
            or cell[two] + box[two] >= high[two] - _EDGE
            or cell[two] + box[two + 3] <= low[two] + _EDGE
        ):
            continue
        near, far = cell[axis] + box[axis], cell[axis] + box[axis + 3]
        room = _room_before_span(near, far, low[axis], high[axis], room)
    return room


@kernel()
def _clip_in_plane(
    blocks: NDArray[np.uint16],
    axis: int,
    at: int,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    room: float,
) -> float:
    """As `_room_before`, for all cells of a plane across the axis that the box may meet."""
    one, two = (axis + 1) % 3, (axis + 2) % 3
    # The bodies of fences and walls rise into the cell above their own.
    below_one, below_two = 1 if one == 1 else 0, 1 if two == 1 else 0
    first_one = int64(np.floor(low[one] + _EDGE)) - below_one
    first_two = int64(np.floor(low[two] + _EDGE)) - below_two
    for i in range(first_one, int64(np.floor(high[one] - _EDGE)) + 1):
        for j in range(first_two, int64(np.floor(high[two] - _EDGE)) + 1):
            x = at if axis == 0 else (j if axis == 1 else i)
            y = at if axis == 1 else (i if axis == 0 else j)
            z = at if axis == 2 else (j if axis == 0 else i)
            if uint32(y) >= uint32(HEIGHT):
                continue
            block = blocks[uint32(narrow_block_index(x, y, z))]
            is_below = (below_one and i == first_one) or (below_two and j == first_two)
            if stops_nothing(block) or (is_below and not rises(block)):
                continue
            if stops_all(block):
                room = _room_before_span(at, at + 1, low[axis], high[axis], room)
            else:
                room = _room_before(blocks, (x, y, z), axis, low, high, room)
    return room


@kernel()
def _clip_axis(
    blocks: NDArray[np.uint16],
    axis: int,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    distance: float,
) -> float:
    """How far a box from `low` to `high` can go along one axis, at most `distance` (signed)."""
    room = distance
    if distance > 0.0:
        last = int64(np.floor(high[axis] + distance))
        for at in range(int64(np.floor(high[axis] - _EDGE)), last + 1):
            if at - high[axis] > room:
                break
            room = _clip_in_plane(blocks, axis, at, low, high, room)
    elif distance < 0.0:
        rise = 0.5 if axis == 1 else 0.0
        last = int64(np.floor(low[axis] + distance - rise))
        for at in range(int64(np.floor(low[axis] + _EDGE)), last - 1, -1):
            if at + 1.0 + rise - low[axis] < room:
                break
            room = _clip_in_plane(blocks, axis, at, low, high, room)
    return room


@kernel()
def clip_motion(
    blocks: NDArray[np.uint16],
    x: float,
    y: float,
    z: float,
    half: float,
    height: float,
    dx: float,
    dy: float,
    dz: float,
) -> tuple[float, float, float]:
    """Shorten a motion where blocks are in the way.

    Vertical first, then the larger of the horizontal components, as in Minecraft 1.16.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        x: Position of the feet.
        y: Position of the feet.
        z: Position of the feet.
        half: Half the side of the square footprint.
        height: Height of the box.
        dx: Wanted motion.
        dy: Wanted motion.
        dz: Wanted motion.

    Returns:
        The possible motion (dx, dy, dz).
    """
    dy = _clip_axis(blocks, 1, (x - half, y, z - half), (x + half, y + height, z + half), dy)
    y += dy
    z_first = abs(dx) < abs(dz)
    if z_first:
        dz = _clip_axis(blocks, 2, (x - half, y, z - half), (x + half, y + height, z + half), dz)
        z += dz
    dx = _clip_axis(blocks, 0, (x - half, y, z - half), (x + half, y + height, z + half), dx)
    x += dx
    if not z_first:
        dz = _clip_axis(blocks, 2, (x - half, y, z - half), (x + half, y + height, z + half), dz)
    return dx, dy, dz


@kernel()
def _step_up(
    blocks: NDArray[np.uint16],
    x: float,
    y: float,
    z: float,
    half: float,
    height: float,
    step: float,
    dx: float,
    dy: float,
    dz: float,
) -> tuple[float, float, float]:
    """Return the motion of a box that first rises by at most `step`, then moves on, then sinks.

    As in `Entity.collide` of Minecraft 1.16, it tries to rise by the whole step and, if there is a
    ceiling over the way, by as much as fits below that; the attempt that leads farther counts. It
    sinks no lower than `dy` from the start.
    """
    over_x, rise, over_z = clip_motion(blocks, x, y, z, half, height, dx, step, dz)
    low_x, high_x = x - half + min(dx, 0.0), x + half + max(dx, 0.0)
    low_z, high_z = z - half + min(dz, 0.0), z + half + max(dz, 0.0)
    room = _clip_axis(blocks, 1, (low_x, y, low_z), (high_x, y + height, high_z), step)
    if room < step:
        under_x, _, under_z = clip_motion(blocks, x, y + room, z, half, height, dx, 0.0, dz)
        if under_x * under_x + under_z * under_z > over_x * over_x + over_z * over_z:
            over_x, rise, over_z = under_x, room, under_z
    fall = dy - rise
    _, sunk, _ = clip_motion(blocks, x + over_x, y + rise, z + over_z, half, height, 0.0, fall, 0.0)
    # Exactly dy where nothing is in the way: `move` tells a landing from the difference.
    return over_x, dy if sunk == fall else rise + sunk, over_z


@kernel()
def is_free(
    blocks: NDArray[np.uint16], x: float, y: float, z: float, half: float, height: float
) -> bool:
    """Whether a box with its feet at (x, y, z) touches the body of no block."""
    low, high = (x - half, y, z - half), (x + half, y + height, z + half)
    first_y = int64(np.floor(y + _EDGE))
    for j in range(first_y - 1, int64(np.floor(y + height - _EDGE)) + 1):
        if uint32(j) >= uint32(HEIGHT):
            continue
        for i in range(int64(np.floor(low[0] + _EDGE)), int64(np.floor(high[0] - _EDGE)) + 1):
            for k in range(int64(np.floor(low[2] + _EDGE)), int64(np.floor(high[2] - _EDGE)) + 1):
                block = blocks[uint32(narrow_block_index(i, j, k))]
                if stops_nothing(block) or (j < first_y and not rises(block)):
                    continue
                if _meets(blocks, (i, j, k), low, high):
                    return False
    return True


@kernel()
def _meets(
    blocks: NDArray[np.uint16],
    cell: tuple[int, int, int],
    low: tuple[float, float, float],
    high: tuple[float, float, float],
) -> bool:
    """Whether a box overlaps the body of the block in a cell."""
    shape = shape_at(blocks, cell[0], cell[1], cell[2])
    for row in range(BODY_FIRST[shape], BODY_FIRST[shape + 1]):
        box, overlaps = BODY_BOXES[row], True
        for axis in range(3):
            overlaps &= cell[axis] + box[axis] < high[axis] - _EDGE
            overlaps &= cell[axis] + box[axis + 3] > low[axis] + _EDGE
        if overlaps:
            return True
    return False


@kernel()
def move(
    blocks: NDArray[np.uint16],
    body: np.void,
    half: float,
    height: float,
    step: float,
    dx: float,
    dz: float,
) -> tuple[float, float]:
    """Move a body by (dx, its vertical speed, dz) as far as blocks allow.

    A body on the ground, or just landing, that runs into something no higher than `step` steps onto
    it. Velocity becomes 0 on each axis where something was in the way; `on_ground` is updated.

    Args:
        blocks: The window's block ids.
        body: A record with `position`, `velocity` and `on_ground`.
        half: Half the side of its footprint.
        height: Its height.
        step: How high it steps, `STEP_HEIGHT` or `NO_STEP`.
        dx: Wanted horizontal motion; the velocity, unless something holds the body back.
        dz: Likewise.

    Returns:
        The possible horizontal motion (dx, dz).
    """
    position = body.position
    velocity = body.velocity
    x = position[0]
    y = position[1]
    z = position[2]
    dy = velocity[1]
    moved_x, moved_y, moved_z = clip_motion(blocks, x, y, z, half, height, dx, dy, dz)
    blocked = moved_x != dx or moved_z != dz
    if blocked and step > 0.0 and (body.on_ground or (dy < 0.0 and moved_y != dy)):
        up_x, up_y, up_z = _step_up(blocks, x, y, z, half, height, step, dx, dy, dz)
        if up_x * up_x + up_z * up_z > moved_x * moved_x + moved_z * moved_z:
            moved_x, moved_y, moved_z = up_x, up_y, up_z
    position[0] += moved_x
    position[1] += moved_y
    position[2] += moved_z
    if moved_x != dx:
        velocity[0] = 0.0
    if moved_z != dz:
        velocity[2] = 0.0
    body.on_ground = 1 if dy < 0.0 and moved_y != dy else 0
    if moved_y != dy:
        velocity[1] = 0.0
    return moved_x, moved_z


@kernel()
def settle(body: np.void) -> None:
    """Zero the components of a velocity that are too small to matter, and cap the others."""
    velocity = body.velocity
    for axis in range(3):
        if abs(velocity[axis]) < NEGLIGIBLE:
            velocity[axis] = 0.0
        velocity[axis] = min(max(velocity[axis], -FASTEST), FASTEST)


@kernel()
def apply_gravity_and_drag(body: np.void, slipperiness: float) -> None:
    """End a tick of motion of the player or a mob: gravity, then drag and friction.

    Args:
        body: A record with `velocity`.
        slipperiness: Of the ground that the tick began on, 1 in the air.
    """
    velocity = body.velocity
    velocity[1] = (velocity[1] - GRAVITY) * DRAG
    friction = slipperiness * AIR_FRICTION
    velocity[0] *= friction
    velocity[2] *= friction


@kernel()
def fall(body: np.void, moved_y: float, softness: float) -> float:
    """Count a tick's vertical motion as falling; return the damage of a landing, else 0.

    Args:
        body: A record with `on_ground` and `fall_distance`.
        moved_y: The motion.
        softness: Factor on the damage, of what the body may have landed on.
    """
    damage = 0.0
    if body.on_ground:
        damage = max(0.0, np.ceil((body.fall_distance - SAFE_FALL) * softness))
        body.fall_distance = 0.0
    elif moved_y < 0.0:
        body.fall_distance -= moved_y
    return damage
