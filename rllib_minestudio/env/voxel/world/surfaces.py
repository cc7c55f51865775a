"""What blocks do to those who touch them: walking, standing in, climbing, lava, fire.

Tables by kind, from the game's `Blocks` and the classes of its blocks. Names of Minecraft's own
methods are given where the order of what happens follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import numpy as np
from numba import float64, int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    KIND_MASK,
    LARGEST_KIND,
    STATE_SHIFT,
    column_of,
    holds,
    kind_of,
    properties_of,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.physics import GRAVITY

Blocks = NDArray[np.uint16]
_SLIPPERINESS = 0.6
_BELOW = 0.5000001
"""How far below the feet the block is whose surface one walks on (`getBlockPosBelowThatAffectsMy`
`Movement`), in blocks."""
_UNDER = 0.2
"""The same for the block that one lands on (`getOnPos`)."""
_INSIDE = 0.001
"""Blocks less than this far inside a body do not touch it (`checkInsideBlocks`)."""


def _by_kind(usual: float, others: Mapping[str, float]) -> NDArray[np.float64]:
    table = np.full(LARGEST_KIND + 1, usual)
    for name, value in others.items():
        table[BLOCK_ID[name]] = value
    return table


SLIPPERINESS = _by_kind(
    _SLIPPERINESS,
    {
        **dict.fromkeys(("ice", "packed_ice", "frosted_ice"), 0.98),
        **{"blue_ice": 0.989, "slime_block": 0.8},
    },
)
"""Share of the horizontal velocity kept on a surface, before the air's share."""
GRIP = np.where(SLIPPERINESS == _SLIPPERINESS, 1.0, (_SLIPPERINESS / SLIPPERINESS) ** 3)
"""Factor on the acceleration of those who walk (`getFrictionInfluencedSpeed`)."""
_SLOWED = _by_kind(1.0, {"soul_sand": 0.4, "honey_block": 0.4})
_JUMPED = _by_kind(1.0, {"honey_block": 0.5})
_BEDS = {name: 0.5 for name, kind in BLOCK_ID.items() if FAMILY_OF[kind].name == "bed"}
_FALLEN = _by_kind(1.0, {"slime_block": 0.0, "hay_block": 0.2, "honey_block": 0.2, **_BEDS})
_BOUNCED = _by_kind(0.0, {"slime_block": 1.0, **dict.fromkeys(_BEDS, 0.66)})
_SLIME = BLOCK_ID["slime_block"]
_HELD = np.ones((LARGEST_KIND + 1, 2))
_HELD[BLOCK_ID["cobweb"]] = 0.25, 0.05
_HELD[BLOCK_ID["sweet_berry_bush"]] = 0.8, 0.75
_CLIMBABLE = np.zeros(LARGEST_KIND + 1, np.bool_)
for _name in ("ladder", "vine", "scaffolding", "weeping_vines", "weeping_vines_plant"):
    _CLIMBABLE[BLOCK_ID[_name]] = True
for _name in ("twisting_vines", "twisting_vines_plant"):
    _CLIMBABLE[BLOCK_ID[_name]] = True
_LADDER, _SCAFFOLDING = BLOCK_ID["ladder"], BLOCK_ID["scaffolding"]
_IS_OPEN_TRAPDOOR = column_of(
    lambda block: (
        FAMILY_OF[block & KIND_MASK].name == "trapdoor" and properties_of(block)["open"] == "true"
    )
)
_UNDER_FEET = np.zeros(LARGEST_KIND + 1, np.bool_)
for _kind, _family in enumerate(FAMILY_OF):
    _UNDER_FEET[_kind] = _family.name in ("fence", "wall", "fence gate")


@kernel()
def _block(blocks: Blocks, x: float, y: float, z: float) -> int:
    """The block at a point; air above and below the world."""
    layer = int64(np.floor(y))
    if not 0 <= layer < HEIGHT:
        return AIR
    return int64(blocks[block_index(int64(np.floor(x)), layer, int64(np.floor(z)))])


@kernel()
def walked_on(blocks: Blocks, position: NDArray[np.float64]) -> int:
    """The kind of block whose surface counts for one with the feet at a position."""
    return _block(blocks, position[0], position[1] - _BELOW, position[2]) & KIND_MASK


@kernel()
def landed_on(blocks: Blocks, position: NDArray[np.float64]) -> int:
    """The kind of block that one who lands at a position lands on."""
    kind = _block(blocks, position[0], position[1] - _UNDER, position[2]) & KIND_MASK
    if kind == AIR:
        below = _block(blocks, position[0], position[1] - _UNDER - 1.0, position[2]) & KIND_MASK
        if _UNDER_FEET[below]:
            return below
    return kind


@kernel()
def _factor(blocks: Blocks, position: NDArray[np.float64], table: NDArray[np.float64]) -> float:
    """The factor of the block that the feet are in, or if it has none, of that walked on."""
    inside = table[_block(blocks, position[0], position[1], position[2]) & KIND_MASK]
    return inside if inside != 1.0 else table[walked_on(blocks, position)]


@kernel()
def speed_factor(blocks: Blocks, position: NDArray[np.float64]) -> float:
    """Factor on the horizontal velocity after each motion (`getBlockSpeedFactor`)."""
    return float64(_factor(blocks, position, _SLOWED))


@kernel()
def jump_factor(blocks: Blocks, position: NDArray[np.float64]) -> float:
    """Factor on the speed of a jump (`getBlockJumpFactor`)."""
    return float64(_factor(blocks, position, _JUMPED))


@kernel()
def softness(kind: int, sneaks: bool) -> float:
    """Factor on the damage of a fall onto a kind of block; slime is hard for those who sneak."""
    return 1.0 if sneaks and kind == _SLIME else float64(_FALLEN[kind])


@kernel()
def rebound(kind: int) -> float:
    """Share of the speed with which one is thrown up again who lands on a kind of block."""
    return float64(_BOUNCED[kind])


@kernel()
def drag_of_steps(kind: int, speed: float) -> float:
    """Factor on the horizontal velocity of one on a kind of block, by the vertical speed.

    That of slime (`SlimeBlock.stepOn`).
    """
    return 0.4 + abs(speed) * 0.2 if kind == _SLIME and abs(speed) < 0.1 else 1.0


@kernel()
def find_hold(
    blocks: Blocks, position: NDArray[np.float64], half: float, height: float
) -> tuple[float, float]:
    """What cobwebs and bushes leave of a body's next motion, horizontally and vertically.

    Args:
        blocks: The window's blocks.
        position: The feet.
        half: Half the side of the body's footprint.
        height: Its height.

    Returns:
        The factors, 1 where nothing holds the body.
    """
    across, along = 1.0, 1.0
    inset = half - _INSIDE
    for i in range(int64(np.floor(position[0] - inset)), int64(np.floor(position[0] + inset)) + 1):
        for j in range(
            max(int64(np.floor(position[1] + _INSIDE)), 0),
            min(int64(np.floor(position[1] + height - _INSIDE)) + 1, HEIGHT),
        ):
            for k in range(
                int64(np.floor(position[2] - inset)), int64(np.floor(position[2] + inset)) + 1
            ):
                kind = blocks[block_index(i, j, k)] & KIND_MASK
                if _HELD[kind, 0] < 1.0:
                    across, along = _HELD[kind, 0], _HELD[kind, 1]
    return across, along


@kernel()
def can_climb(blocks: Blocks, position: NDArray[np.float64]) -> bool:
    """Whether one with the feet at a position is on a ladder or the like (`onClimbable`)."""
    block = _block(blocks, position[0], position[1], position[2])
    if _CLIMBABLE[block & KIND_MASK]:
        return True
    if not holds(_IS_OPEN_TRAPDOOR, block):
        return False
    below = _block(blocks, position[0], position[1] - 1.0, position[2])
    # Facing is the first property of both.
    same_facing = ((below ^ block) >> STATE_SHIFT) & 3 == 0
    return below & KIND_MASK == _LADDER and same_facing


@kernel()
def slides_down(blocks: Blocks, position: NDArray[np.float64]) -> bool:
    """Whether one who sneaks slides down what they climb all the same: scaffolding."""
    return _block(blocks, position[0], position[1], position[2]) & KIND_MASK == _SCAFFOLDING


# --------------- what lava does to those who are in it, as in Minecraft Java 1.16; here it is still
# Lava has no body: one sinks into it, slowly. All numbers are the game's, from memory.

DAMAGE = 4.0
"""Health points of a hit by lava, due each tick; invulnerability prevents most of them."""
SWIMMING_DEPTH = 0.4
"""Depth, in blocks, from which one swims in it instead of standing on its ground."""
RISE = 0.04
"""Speed upwards that the jump key adds in a tick to one who swims, in blocks per tick."""
LEAP = 0.3
"""Speed upwards of one who runs into its bank, with room above that."""
FALL_KEPT = 0.5
"""Share of the height fallen that is left after each tick in it."""

_SURFACE = 8.0 / 9.0
"""Height of lava in a block, unless there is lava above."""
_KEPT, _KEPT_SHALLOW = 0.5, 0.8
"""Share of the velocity that is left after a tick; and of that up or down in shallow lava."""
_SINKING = GRAVITY / 4.0


@kernel(allocates=False)
def depth_in_lava(
    blocks: NDArray[np.uint16], position: NDArray[np.float64], half: float, height: float
) -> float:
    """How far lava rises above the feet of a body that touches it, in blocks; 0 if none does.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        position: The feet.
        half: Half the side of the body's footprint.
        height: Its height.
    """
    depth, inset, feet = 0.0, half - _INSIDE, position[1] + _INSIDE
    low, high = int64(np.floor(feet)), int64(np.floor(position[1] + height - _INSIDE))
    for x in range(int64(np.floor(position[0] - inset)), int64(np.floor(position[0] + inset)) + 1):
        for z in range(
            int64(np.floor(position[2] - inset)), int64(np.floor(position[2] + inset)) + 1
        ):
            for y in range(max(low, 0), min(high, HEIGHT - 1) + 1):
                if kind_of(blocks[block_index(x, y, z)]) != b.LAVA:
                    continue
                is_below = y + 1 < HEIGHT and kind_of(blocks[block_index(x, y + 1, z)]) == b.LAVA
                depth = max(depth, y + (1.0 if is_below else _SURFACE) - feet)
    return depth


@kernel(allocates=False)
def is_in_lava(blocks: NDArray[np.uint16], position: NDArray[np.float64]) -> bool:
    """Whether the feet are in a block of lava."""
    y = int64(np.floor(position[1]))
    if not 0 <= y < HEIGHT:
        return False
    x, z = int64(np.floor(position[0])), int64(np.floor(position[2]))
    return kind_of(blocks[block_index(x, y, z)]) == b.LAVA


@kernel(allocates=False)
def slow_down(velocity: NDArray[np.float64], depth: float) -> None:
    """End a tick of motion in lava: drag instead of the air's, and slow sinking."""
    velocity[0] *= _KEPT
    velocity[2] *= _KEPT
    if depth > SWIMMING_DEPTH:
        velocity[1] = velocity[1] * _KEPT - _SINKING
    else:
        velocity[1] = velocity[1] * _KEPT_SHALLOW - _SINKING - GRAVITY / 16.0


# ------------- what burns, and where fire is or may spread, as in Minecraft Java 1.16 (`FireBlock`)
# A row of `data/flammable.csv` has two odds of some kinds of blocks: that fire beside one spreads,
# and that the block burns away.

FIRE = BLOCK_ID["fire"]
SPREADS = (3, 6, 3)
"""Cells to which a fire may spread: one column to each side, from one below to four up."""
_INSET = 0.001
"""Fire less than this far inside a body does not touch it."""


def _read() -> dict[int, tuple[int, int]]:
    found = {}
    for row in read_csv("flammable.csv"):
        patterns = row["kinds"].split()
        for kind, block in enumerate(BLOCKS):
            if any(fnmatchcase(block.name, pattern) for pattern in patterns):
                found[kind] = int(row["ignites"]), int(row["burns"])
    return found


FLAMMABLE = _read()
"""What burns: kind -> (odds that it is set on fire, odds that it burns away)."""

_IGNITES = np.zeros(LARGEST_KIND + 1, np.int64)
_IGNITES[list(FLAMMABLE)] = [ignites for ignites, _ in FLAMMABLE.values()]


@kernel(allocates=False)
def _kind_at(blocks: NDArray[np.uint16], x: int, y: int, z: int) -> int:
    if y < 0 or y >= HEIGHT:
        return AIR
    return kind_of(blocks[block_index(x, y, z)])


@kernel(allocates=False)
def _odds_at(blocks: NDArray[np.uint16], x: int, y: int, z: int) -> int:
    """How easily a cell is set on fire: by the neighbour that burns best; 0 if it is not empty."""
    if y < 0 or y >= HEIGHT or _kind_at(blocks, x, y, z) != AIR:
        return 0
    odds = _IGNITES[_kind_at(blocks, x - 1, y, z)]
    odds = max(odds, _IGNITES[_kind_at(blocks, x + 1, y, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y - 1, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y + 1, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y, z - 1)])
    return max(odds, _IGNITES[_kind_at(blocks, x, y, z + 1)])


@kernel(allocates=False)
def ignition_odds(
    blocks: NDArray[np.uint16], x: int, y: int, z: int, odds: NDArray[np.int64]
) -> bool:
    """Write how easily each cell around a fire at (x, y, z) is set on fire.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        x: Column of the fire.
        y: Its layer.
        z: Its row.
        odds: int64 `SPREADS`, by dx + 1, dy + 1, dz + 1, overwritten; 0 for the fire itself.

    Returns:
        Whether any of them is not 0.
    """
    found = False
    for i in range(3):
        for j in range(6):
            for k in range(3):
                odds[i, j, k] = _odds_at(blocks, x + i - 1, y + j - 1, z + k - 1)
                found = found or odds[i, j, k] > 0
    return found


@kernel(allocates=False)
def is_in_fire(
    blocks: NDArray[np.uint16], position: NDArray[np.float64], half: float, height: float
) -> bool:
    """Whether a body touches fire.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        position: The feet.
        half: Half the side of the body's footprint.
        height: Its height.
    """
    inset = half - _INSET
    low, high = (
        int64(np.floor(position[1] + _INSET)),
        int64(np.floor(position[1] + height - _INSET)),
    )
    for x in range(int64(np.floor(position[0] - inset)), int64(np.floor(position[0] + inset)) + 1):
        for z in range(
            int64(np.floor(position[2] - inset)), int64(np.floor(position[2] + inset)) + 1
        ):
            for y in range(low, high + 1):
                if _kind_at(blocks, x, y, z) == FIRE:
                    return True
    return False
