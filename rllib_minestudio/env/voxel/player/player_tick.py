"""One tick of the player: look, attack and mine, then move, in Minecraft's client order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.combat import hurt_player, press_attack
from rllib_minestudio.env.voxel.player.controls import ATTACK, SNEAK, USE
from rllib_minestudio.env.voxel.player.eating import begin_meal, continue_meal
from rllib_minestudio.env.voxel.player.hunger import tick_hunger
from rllib_minestudio.env.voxel.player.locomotion import move_player
from rllib_minestudio.env.voxel.player.mining import hold_attack, release_attack, start_mining
from rllib_minestudio.env.voxel.player.player import SWING_TICKS
from rllib_minestudio.env.voxel.player.raycast import BLOCK, find_target
from rllib_minestudio.env.voxel.world.addressing import block_index
from rllib_minestudio.env.voxel.world.blocks import OPENS_SCREEN
from rllib_minestudio.env.voxel.world.physics import FARTHEST, VOID, VOID_DAMAGE


@kernel()
def _turn(player: np.void, pitch: float, yaw: float) -> None:
    player.pitch = min(max(player.pitch + pitch, -90.0), 90.0)
    turned = np.fmod(player.yaw + yaw, 360.0)  # exact, however far one turns
    player.yaw = turned - 360.0 * np.floor((turned + 180.0) / 360.0)


@kernel()
def _count_down(player: np.void) -> None:
    player.attack_ticks += 1
    if player.miss_ticks > 0:
        player.miss_ticks -= 1
    if player.hurt_ticks > 0:
        player.hurt_ticks -= 1
    if player.use_delay > 0:
        player.use_delay -= 1
    if player.swing_ticks > 0:
        player.swing_ticks += 1
        if player.swing_ticks > SWING_TICKS:
            player.swing_ticks = 0


@kernel()
def _opens_screen(blocks: NDArray[np.uint16], player: np.void, target: np.void) -> bool:
    """Whether the use key opens the screen of the block under the crosshair instead of eating."""
    if target.kind != BLOCK or player.keys & SNEAK:
        return False
    return bool(OPENS_SCREEN[blocks[block_index(target.x, target.y, target.z)]])


@kernel()
def tick_player(
    blocks: NDArray[np.uint16],
    players: NDArray[np.void],
    mobs: NDArray[np.void],
    mob_count: int,
    targets: NDArray[np.void],
    keys: int,
    pitch: float,
    yaw: float,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Advances the player by one tick.

    The crosshair is resolved after turning and before moving: the agent hits what it saw.

    Args:
        blocks: The window's block ids.
        players: `PLAYER_DTYPE` [1].
        mobs: `MOB_DTYPE` records.
        mob_count: How many of them are in use.
        targets: `TARGET_DTYPE` [1]; receives what the player looks at.
        keys: Bits of the held keys (controls.py).
        pitch: Turn of the head, degrees down.
        yaw: Turn of the head, degrees to the right.
        events: `EVENT_DTYPE` records; receives what happened.
        event_count: int64 [1]; how many of them are in use.
    """
    player = players[0]
    target = targets[0]
    _turn(player, pitch, yaw)
    find_target(blocks, player, mobs, mob_count, target)
    was_eating = player.eating_ticks > 0
    if not keys & USE:
        player.eating_ticks = 0
    if not was_eating:
        if keys & ATTACK and not player.keys & ATTACK:
            press_attack(player, mobs, mob_count, target, events, event_count)
            if target.kind == BLOCK:
                start_mining(blocks, player, target, events, event_count)
        if not _opens_screen(blocks, player, target):
            begin_meal(player, keys)
    if not keys & ATTACK:
        release_attack(player)
    elif player.eating_ticks == 0:
        hold_attack(blocks, player, target, events, event_count)
    _count_down(player)
    damage = move_player(blocks, player, keys)
    player.position[0] = min(max(player.position[0], -FARTHEST), FARTHEST)
    player.position[2] = min(max(player.position[2], -FARTHEST), FARTHEST)
    if damage > 0.0:
        hurt_player(player, damage, player.resistance, events, event_count)
    if player.position[1] < VOID:
        # The one damage that resistance does nothing about.
        hurt_player(player, VOID_DAMAGE, 0.0, events, event_count)
    continue_meal(player, events, event_count)
    tick_hunger(player)
    player.keys = keys
