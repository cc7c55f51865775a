"""Mining by holding the attack key, as in Minecraft Java 1.16."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.mobs import BLOCK_BROKEN, emit
from rllib_minestudio.env.voxel.items.items import RIGHT_TOOL_TICKS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.combat import swing
from rllib_minestudio.env.voxel.player.player import PER_MINED_BLOCK
from rllib_minestudio.env.voxel.player.raycast import BLOCK
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import HARDNESS
from rllib_minestudio.env.voxel.world.box_field import block_index

_PAUSE_TICKS = 5
"""Ticks between two mined blocks, unless a block breaks at once."""
_DONE = 1.0
"""Progress at which a block breaks. The sum is float32, so n steps of 1/n may fall short of it."""
_FLYING_PENALTY = np.float32(5.0)
"""Divisor of the mining speed without ground under the feet."""


@kernel()
def _break(
    player: np.void,
    target: np.void,
    block: int,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    player.is_mining = 0
    player.mining_progress = 0.0
    if player.mining_ticks[block] == RIGHT_TOOL_TICKS:
        player.exhaustion += PER_MINED_BLOCK
    place = np.empty(3, np.float64)
    place[0] = target.x
    place[1] = target.y
    place[2] = target.z
    emit(events, event_count, BLOCK_BROKEN, block, 1.0, place)


@kernel()
def _rate(blocks: NDArray[np.uint16], player: np.void, target: np.void) -> tuple[int, float]:
    """Return the target block's kind, and the share of it that a tick mines (float32)."""
    block = int(kind_of(blocks[block_index(target.x, target.y, target.z)]))
    if HARDNESS[block] <= 0.0:  # unbreakable, or broken by a touch
        return block, np.float32(0.0 if HARDNESS[block] < 0.0 else 1.0)
    speed = player.mining_speed[block]
    if not player.on_ground:
        speed /= _FLYING_PENALTY
    return block, speed / HARDNESS[block] / player.mining_ticks[block]


@kernel()
def start_mining(
    blocks: NDArray[np.uint16],
    player: np.void,
    target: np.void,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Begin to mine the block under the crosshair; one that takes a single tick breaks at once."""
    block, rate = _rate(blocks, player, target)
    if rate >= 1.0:
        _break(player, target, block, events, event_count)
        return
    player.is_mining = 1
    player.mining_progress = 0.0
    player.mining_x = target.x
    player.mining_y = target.y
    player.mining_z = target.z


@kernel()
def hold_attack(
    blocks: NDArray[np.uint16],
    player: np.void,
    target: np.void,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Mine for one tick with the attack key down; the event's handler removes a broken block."""
    if player.miss_ticks > 0:
        return
    if target.kind != BLOCK:
        player.is_mining = 0
        player.mining_progress = 0.0
        return
    swing(player)
    player.hits_block = 1
    if player.mining_delay > 0:
        player.mining_delay -= 1
        return
    same = (
        player.is_mining
        and player.mining_x == target.x
        and player.mining_y == target.y
        and player.mining_z == target.z
    )
    if not same:
        start_mining(blocks, player, target, events, event_count)
        return
    block, rate = _rate(blocks, player, target)
    player.mining_progress += rate
    if player.mining_progress >= _DONE:
        player.mining_delay = _PAUSE_TICKS
        _break(player, target, block, events, event_count)


@kernel()
def release_attack(player: np.void) -> None:
    """Reset mining and the pause after a miss, in a tick with the attack key up."""
    player.miss_ticks = 0
    player.is_mining = 0
    player.mining_progress = 0.0
