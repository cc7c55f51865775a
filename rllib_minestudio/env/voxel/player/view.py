"""What moves a player's view besides its position: steps, speed, sneaking, and the hand.

As in Minecraft Java 1.16 (`GameRenderer`, `ItemInHandRenderer`, `Player.aiStep`). Frames are drawn
at partial tick 0, as MineRL's are: they show the place of the eye, the bobbing, the field of view
and the hand as they were a tick ago, in fields of the record with "seen" in their name, and the
angles, the phase of the steps and the hurt as they are. The rules read none of this: a player
mines and hits what is under the crosshair of the present eye.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import SNEAKING_EYES, STANDING_EYES

STRIDES_PER_BLOCK = 0.6
MOST_BOB = 0.1
"""Largest value of `bob`, reached at a velocity of as many blocks per tick."""
BOB_CATCHES_UP = 0.4
"""Share of its gap that the bobbing closes in a tick."""
CAMERA_CATCHES_UP = 0.5
"""The same for the height of the camera, and for the field of view."""
LEAST_FOV, MOST_FOV = 0.1, 1.5
"""Bounds of the factor on the field of view."""
HAND_STEP = 0.4
"""Most by which the hand rises or sinks in a tick; its whole way is 1."""
HAND_DOWN = 0.9
"""The hand takes the new item when it is lower than this."""


@kernel()
def tick_view(player: np.void, pace: float) -> None:
    """Advance camera and hand by one tick; after the keys were handled, before the player moves.

    Args:
        player: A `PLAYER_DTYPE` record.
        pace: The player's speed, 1 for walking without effects.
    """
    player.fov_gain_seen = player.fov_gain
    gain = player.fov_gain + ((pace - 1.0) / 2.0 - player.fov_gain) * CAMERA_CATCHES_UP
    player.fov_gain = min(max(gain, LEAST_FOV - 1.0), MOST_FOV - 1.0)
    player.eye_drop_seen = player.eye_drop
    drop = STANDING_EYES - SNEAKING_EYES if player.sneaking else 0.0
    player.eye_drop += (drop - player.eye_drop) * CAMERA_CATCHES_UP
    _tick_hand(player)


@kernel()
def _tick_hand(player: np.void) -> None:
    """Lower the hand to change the item, and raise it as the attack recharges."""
    player.hand_drop_seen = player.hand_drop
    goal = 1.0
    if player.hand_item == player.held_item:
        charged = (player.recharge_ticks + 1.0) * player.attack_speed / TICKS_PER_SECOND
        goal = 1.0 - min(charged, 1.0) ** 3
    step = goal - player.hand_drop
    player.hand_drop += min(max(step, -HAND_STEP), HAND_STEP)
    if player.hand_drop > HAND_DOWN:
        player.hand_item = player.held_item


@kernel()
def tick_swing(player: np.void) -> None:
    """Advance the arm's swing by one tick."""
    player.swing_seen = player.swing
    if player.swing_ticks > 0:
        player.swing_ticks += 1
        if player.swing_ticks - 2 >= player.swing_length:
            player.swing_ticks = 0
    player.swing = max(player.swing_ticks - 2.0, 0.0) / player.swing_length


@kernel()
def follow_player(player: np.void, x: float, y: float, z: float, sneaks: bool) -> None:
    """Note a tick's motion: where the eye was, and how the view bobs.

    Args:
        player: A `PLAYER_DTYPE` record, after the motion.
        x: Where the feet were before it.
        y: Likewise.
        z: Likewise.
        sneaks: Whether the sneak key is held.
    """
    position, velocity = player.position, player.velocity
    player.moved[0], player.moved[1], player.moved[2] = (
        position[0] - x,
        position[1] - y,
        position[2] - z,
    )
    if not (sneaks and player.on_ground):
        player.stride += player.step_length * STRIDES_PER_BLOCK
    speed = 0.0
    if player.on_ground and player.health > 0.0:
        speed = min(np.sqrt(velocity[0] * velocity[0] + velocity[2] * velocity[2]), MOST_BOB)
    player.bob_seen = player.bob
    player.bob += (speed - player.bob) * BOB_CATCHES_UP
