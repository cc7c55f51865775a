"""Melee and mining as in Minecraft Java 1.16: the attack key, and the damage of a hit.

An attack happens on the *press* of the key. A held key does not hit again; it mines.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.entities.goals import body_height, half_width
from rllib_minestudio.env.voxel.entities.mobs import (
    BLOCK_BROKEN,
    MOB_HURT,
    MOB_SWEPT,
    PLAYER_HURT,
    emit,
    emit_death,
    hurt_mob,
    knock_back,
    shielded,
)
from rllib_minestudio.env.voxel.entities.records import HURT_TICKS
from rllib_minestudio.env.voxel.items.items import RIGHT_TOOL_TICKS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import PER_ATTACK, PER_MINED_BLOCK
from rllib_minestudio.env.voxel.player.raycast import BLOCK, MOB, MOB_REACH
from rllib_minestudio.env.voxel.world.blocks import HARDNESS, kind_of
from rllib_minestudio.env.voxel.world.box_field import block_index

MISS_TICKS = 10
"""Ticks after a press into the air for which the held key does nothing."""
KNOCKBACK = 0.4
SPRINT_KNOCKBACK = 0.5
CRITICAL = 1.5
SWEEP_DAMAGE = 1.0
FULL_CHARGE = 0.9
"""Charge above which a hit can be critical, sweep, or knock back further."""

_WALKING_PACE = 0.1 / 0.6
"""A sweep requires a step of fewer blocks than this; a walking step is longer."""


@kernel()
def charge(ticks: int, attacks_per_second: float) -> float:
    """Return the share of a full attack, 0 to 1, `ticks` after the last one."""
    return min((ticks + 0.5) * attacks_per_second / TICKS_PER_SECOND, 1.0)


@kernel()
def charged_damage(base: float, share: float) -> float:
    """Return the damage of a weapon of `base` damage at a charge of `share`."""
    return base * (0.2 + 0.8 * share * share)


@kernel()
def swing(player: np.void) -> None:
    """Reset the attack's charge, and start the arm's swing unless one is in its first half."""
    player.attack_ticks = 0
    if player.swing_ticks == 0 or player.swing_ticks - 2 >= player.swing_length // 2:
        player.swing_ticks = 1


@kernel()
def strike(
    mobs: NDArray[np.void],
    row: int,
    amount: float,
    dx: float,
    dz: float,
    event: int,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> bool:
    """Hit one mob as the player, with the base knockback; return whether it had an effect.

    The hit is reported as `event`, `MOB_HURT` or `MOB_SWEPT`.
    """
    mob = mobs[row]
    dealt, fresh = hurt_mob(mobs, row, amount)
    if dealt <= 0.0:
        return False
    if fresh:
        knock_back(mob, KNOCKBACK, dx, dz)
    emit(events, event_count, event, mob.kind, dealt, mob.position)
    if mob.health <= 0.0:
        mob.death_ticks = 1
        emit_death(events, event_count, mob, True)
    return True


@kernel()
def attack(
    player: np.void,
    mobs: NDArray[np.void],
    count: int,
    row: int,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Hit the mob in `row` as the player."""
    share = charge(player.attack_ticks, player.attack_speed)
    amount = charged_damage(player.attack_damage, share)
    strong = share > FULL_CHARGE
    sprint_hit = strong and player.sprinting
    critical = (
        strong and not player.sprinting and not player.on_ground and player.fall_distance > 0.0
    )
    if critical:
        amount *= CRITICAL
    amount += player.sharpness * share
    mob = mobs[row]
    dx = player.position[0] - mob.position[0]
    dz = player.position[2] - mob.position[2]
    if not strike(mobs, row, amount, dx, dz, MOB_HURT, events, event_count):
        return
    player.exhaustion += PER_ATTACK
    mob.fire_ticks = max(mob.fire_ticks, player.fire_aspect)
    yaw = np.radians(player.yaw)
    knocks = player.knockback + (1.0 if sprint_hit else 0.0)
    if knocks > 0.0:
        knock_back(mob, SPRINT_KNOCKBACK * knocks, np.sin(yaw), -np.cos(yaw))
        player.velocity[0] *= 0.6
        player.velocity[2] *= 0.6
        player.sprinting = 0
    if sprint_hit:
        return
    standing = player.on_ground and player.step_length < _WALKING_PACE
    if strong and not critical and standing and player.holds_sword:
        _sweep(player, mobs, count, row, events, event_count)


@kernel()
def _sweep(
    player: np.void,
    mobs: NDArray[np.void],
    count: int,
    row: int,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Sweep with a sword: hit mobs within one block of the one in `row` lightly, too."""
    struck = mobs[row]
    yaw = np.radians(player.yaw)
    for other in range(count):
        mob = mobs[other]
        apart = half_width(struck) + half_width(mob) + 1.0
        above = mob.position[1] - struck.position[1]
        near = (
            other != row
            and abs(mob.position[0] - struck.position[0]) < apart
            and abs(mob.position[2] - struck.position[2]) < apart
            and -body_height(mob) - 0.25 < above < body_height(struck) + 0.25
        )
        dx = player.position[0] - mob.position[0]
        dy = player.position[1] - mob.position[1]
        dz = player.position[2] - mob.position[2]
        if near and dx * dx + dy * dy + dz * dz < MOB_REACH * MOB_REACH:
            # The sweep knocks back even if the hit has no effect; the hit does so again.
            knock_back(mob, KNOCKBACK, np.sin(yaw), -np.cos(yaw))
            strike(mobs, other, SWEEP_DAMAGE, dx, dz, MOB_SWEPT, events, event_count)


@kernel()
def press_attack(
    player: np.void,
    mobs: NDArray[np.void],
    count: int,
    target: np.void,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Handle a press of the attack key: attack the target, or miss."""
    if player.miss_ticks > 0:
        return
    if target.kind == MOB:
        attack(player, mobs, count, int64(target.mob), events, event_count)
    elif target.kind != BLOCK:
        player.miss_ticks = MISS_TICKS
    if target.kind != BLOCK:
        player.recharge_ticks = 0  # mining shows no recharging, although it resets the charge
    swing(player)


@kernel()
def hurt_player(
    player: np.void,
    amount: float,
    resistance: float,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Take health from the player, reduced by invulnerability and by the share `resistance`."""
    dealt = shielded(player, amount)
    if dealt <= 0.0 or player.health <= 0.0:
        return
    player.last_damage = amount
    if player.hurt_ticks == 0:
        player.hurt_ticks = HURT_TICKS
    dealt = min(dealt * (1.0 - resistance), player.health)
    if dealt > 0.0:
        player.health -= dealt
        emit(events, event_count, PLAYER_HURT, 0, dealt, player.position)


# -------------------------------------- mining by holding the attack key, as in Minecraft Java 1.16

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
