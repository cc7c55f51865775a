"""The player's movement, as in Minecraft Java 1.16, and one whole tick of the player."""

from __future__ import annotations

import numpy as np
from numba import float64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.entities.mobs import FOOD_EATEN, emit
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.combat import (
    hold_attack,
    hurt_player,
    press_attack,
    release_attack,
    start_mining,
)
from rllib_minestudio.env.voxel.player.player import (
    ATTACK,
    BACK,
    FORWARD,
    JUMP,
    LEFT,
    MAX_FOOD,
    PER_JUMP,
    PER_SPRINT_JUMP,
    PER_SPRINTED_BLOCK,
    RIGHT,
    SNEAK,
    SNEAKING_EYES,
    SNEAKING_HEIGHT,
    SPRINT,
    SPRINT_FOOD,
    STANDING_EYES,
    STANDING_HEIGHT,
    USE,
    USE_DELAY,
    WIDTH,
    tick_hunger,
)
from rllib_minestudio.env.voxel.player.raycast import BLOCK, find_target
from rllib_minestudio.env.voxel.world import physics, surfaces
from rllib_minestudio.env.voxel.world.blocks import ACTS_WHEN_USED, kind_of
from rllib_minestudio.env.voxel.world.box_field import block_index
from rllib_minestudio.env.voxel.world.physics import FARTHEST, VOID, VOID_DAMAGE

# ------------ what moves a player's view besides its position: steps, speed, sneaking, and the hand
# As in Minecraft Java 1.16 (`GameRenderer`, `ItemInHandRenderer`, `Player.aiStep`). Frames are
# drawn at partial tick 0, as MineRL's are: they show the place of the eye, the bobbing, the field
# of view and the hand as they were a tick ago, in fields of the record with "seen" in their name,
# and the angles, the phase of the steps and the hurt as they are. The rules read none of this: a
# player mines and hits what is under the crosshair of the present eye.

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


# --------------- the player's movement, as in Minecraft Java 1.16, and one whole tick of the player

WALK_ACCELERATION = 0.1
SPRINT_FACTOR = 1.3
SNEAK_FACTOR = 0.3
EATING_FACTOR = 0.2
SPRINT_JUMP_BOOST = 0.2
DOUBLE_TAP_TICKS = 7
"""Pressing forward twice within this time starts sprinting."""

_HALF = WIDTH / 2
_EDGE_STEP = 0.05
_SPRINT_INPUT = 0.8
"""Least forward input that can start sprinting; it is lower while sneaking or eating."""
_TOUCH = 1e-5
"""A motion shortened by less than this has not hit a wall."""
_JUMP_PER_LEVEL = 0.1
_CLIMBING_SPEED = 0.15
"""Fastest along each axis on a ladder, except upwards."""
_CLIMBED = 0.2
"""Speed upwards of one who walks into a wall, or jumps, on a ladder."""


@kernel(inline="always")
def _pressed(keys: int, key: int) -> float:
    return float64(1.0) if keys & key else float64(0.0)


@kernel()
def _read_input(player: np.void, keys: int) -> tuple[float, float]:
    """Return the movement input (ahead, left), each -1 to 1.

    The sneaking pose slows it down, not the key, so sneaking takes effect one tick after the key.
    """
    scale = SNEAK_FACTOR if player.sneaking else 1.0
    if player.eating_ticks > 0:
        scale *= EATING_FACTOR
    ahead = _pressed(keys, FORWARD) - _pressed(keys, BACK)
    left = _pressed(keys, LEFT) - _pressed(keys, RIGHT)
    return ahead * scale, left * scale


@kernel()
def _update_sprinting(player: np.void, keys: int, ahead: float) -> None:
    """Start or end sprinting as `LocalPlayer.aiStep` does; sneaking and eating do not end it."""
    sneaked = player.keys & SNEAK
    if player.sprint_window > 0:
        player.sprint_window -= 1
    if sneaked or player.eating_ticks > 0:
        player.sprint_window = 0
    fed = player.food > SPRINT_FOOD
    fast_ahead = ahead >= _SPRINT_INPUT
    if fast_ahead and fed and not player.sprinting:
        if keys & SPRINT:
            player.sprinting = 1
        elif player.on_ground and not sneaked and not player.fast_ahead:
            if player.sprint_window > 0:
                player.sprinting = 1
            else:
                player.sprint_window = DOUBLE_TAP_TICKS
    if ahead <= 0.0 or not fed or player.hit_wall:
        player.sprinting = 0
    player.fast_ahead = 1 if fast_ahead else 0


@kernel()
def _jump(blocks: NDArray[np.uint16], player: np.void, keys: int, depth: float) -> None:
    """Jump off the ground, or rise in lava, which is `depth` blocks deep."""
    if player.jump_delay > 0:
        player.jump_delay -= 1
    if not keys & JUMP:
        player.jump_delay = 0
    elif depth > surfaces.SWIMMING_DEPTH or (depth > 0.0 and not player.on_ground):
        player.velocity[1] += surfaces.RISE
    elif player.on_ground and player.jump_delay == 0:
        player.jump_delay = physics.JUMP_DELAY
        player.jumps += 1
        speed = physics.JUMP_SPEED * surfaces.jump_factor(blocks, player.position)
        player.velocity[1] = speed + _JUMP_PER_LEVEL * player.jump_boost
        if player.sprinting:
            yaw = np.radians(player.yaw)
            player.velocity[0] -= np.sin(yaw) * SPRINT_JUMP_BOOST
            player.velocity[2] += np.cos(yaw) * SPRINT_JUMP_BOOST
            player.exhaustion += PER_SPRINT_JUMP
        else:
            player.exhaustion += PER_JUMP


@kernel()
def _accelerate(player: np.void, ahead: float, left: float, grip: float, is_in_lava: bool) -> None:
    """Add the input to the velocity; in the air, sprinting counts from the next tick on.

    `grip` is the factor of the ground, `surfaces.GRIP`.
    """
    ahead *= physics.INPUT_SCALE
    left *= physics.INPUT_SCALE
    length = np.sqrt(ahead * ahead + left * left)
    if length > 1.0:
        ahead /= length
        left /= length
    if is_in_lava:
        acceleration, sprints = physics.AIR_ACCELERATION, np.int32(0)
    elif player.on_ground:
        acceleration = WALK_ACCELERATION * player.speed_factor * grip
        sprints = player.sprinting
    else:
        acceleration = physics.AIR_ACCELERATION
        sprints = player.sprinted_before
    if sprints:
        acceleration *= SPRINT_FACTOR
    yaw = np.radians(player.yaw)
    sin = np.sin(yaw)
    cos = np.cos(yaw)
    player.velocity[0] += (left * cos - ahead * sin) * acceleration
    player.velocity[2] += (ahead * cos + left * sin) * acceleration


@kernel()
def _is_above_ground(blocks: NDArray[np.uint16], player: np.void, height: float) -> bool:
    """Whether there is ground less than a step below where the player left it (since 1.16.2)."""
    if player.on_ground:
        return True
    depth = physics.STEP_HEIGHT - player.fall_distance
    position = player.position
    return depth > 0.0 and not physics.is_free(
        blocks, position[0], position[1] - depth, position[2], _HALF, height
    )


@kernel(inline="always")
def _shorten(distance: float) -> float:
    if abs(distance) < _EDGE_STEP:
        return 0.0
    return distance - _EDGE_STEP if distance > 0.0 else distance + _EDGE_STEP


@kernel()
def _stay_on_edge(
    blocks: NDArray[np.uint16], player: np.void, height: float, dx: float, dz: float
) -> tuple[float, float]:
    """Shorten a sneaking player's motion by multiples of 0.05 until there is ground below it."""
    x = player.position[0]
    y = player.position[1] - physics.STEP_HEIGHT
    z = player.position[2]
    while dx != 0.0 and physics.is_free(blocks, x + dx, y, z, _HALF, height):
        dx = _shorten(dx)
    while dz != 0.0 and physics.is_free(blocks, x, y, z + dz, _HALF, height):
        dz = _shorten(dz)
    while dx != 0.0 and dz != 0.0 and physics.is_free(blocks, x + dx, y, z + dz, _HALF, height):
        dx = _shorten(dx)
        dz = _shorten(dz)
    return dx, dz


@kernel()
def _record_step(player: np.void, dx: float, dz: float) -> None:
    length = np.sqrt(dx * dx + dz * dz)
    player.step_length = length
    if not player.on_ground:
        return
    if player.sprinting:
        player.sprinted += length
        player.exhaustion += length * PER_SPRINTED_BLOCK
    elif player.sneaking:
        player.crept += length
    else:
        player.walked += length


@kernel()
def _update_pose(blocks: NDArray[np.uint16], player: np.void, keys: int) -> None:
    """Set the pose of the next tick: sneaking if the key is held or there is no room to stand."""
    position = player.position
    cramped = player.sneaking and not physics.is_free(
        blocks, position[0], position[1], position[2], _HALF, STANDING_HEIGHT
    )
    player.sneaking = 1 if keys & SNEAK or cramped else 0


@kernel()
def _hold_on(blocks: NDArray[np.uint16], player: np.void, keys: int) -> None:
    """Slow a player on a ladder or a vine down (`handleOnClimbable`)."""
    if not surfaces.can_climb(blocks, player.position):
        return
    player.fall_distance = 0.0
    velocity = player.velocity
    for axis in (0, 2):
        velocity[axis] = min(max(velocity[axis], -_CLIMBING_SPEED), _CLIMBING_SPEED)
    velocity[1] = max(velocity[1], -_CLIMBING_SPEED)
    if velocity[1] < 0.0 and keys & SNEAK and not surfaces.slides_down(blocks, player.position):
        velocity[1] = 0.0


@kernel()
def _touch_ground(
    blocks: NDArray[np.uint16], player: np.void, keys: int, speed: float, moved_y: float
) -> float:
    """Land on the ground, with all that its kind does, and return the damage.

    Args:
        blocks: The window's block ids.
        player: A `PLAYER_DTYPE` record that has just moved.
        keys: Bits of the held keys.
        speed: The vertical speed with which it moved.
        moved_y: How far it moved.
    """
    ground = surfaces.landed_on(blocks, player.position)
    sneaks = keys & SNEAK != 0
    damage = physics.fall(player, moved_y, surfaces.softness(ground, sneaks))
    if player.on_ground and not sneaks:
        if surfaces.rebound(ground) > 0.0:
            player.velocity[1] = -speed * surfaces.rebound(ground)
        drag = surfaces.drag_of_steps(ground, player.velocity[1])
        player.velocity[0] *= drag
        player.velocity[2] *= drag
    return damage


@kernel()
def _get_caught(blocks: NDArray[np.uint16], player: np.void, height: float) -> None:
    """Let the blocks that the player is in or stands on hold the next motion back."""
    across, along = surfaces.find_hold(blocks, player.position, _HALF, height)
    player.hold[0], player.hold[1] = across, along
    if across < 1.0:
        player.fall_distance = 0.0
    slowed = surfaces.speed_factor(blocks, player.position)
    player.velocity[0] *= slowed
    player.velocity[2] *= slowed


@kernel()
def _leave_lava(
    blocks: NDArray[np.uint16], player: np.void, height: float, depth: float, moved_y: float
) -> None:
    """End a tick of motion in lava: slow down, and leap at its bank."""
    player.fall_distance *= surfaces.FALL_KEPT
    velocity, position = player.velocity, player.position
    surfaces.slow_down(velocity, depth)
    x, z = position[0] + velocity[0], position[2] + velocity[2]
    y = position[1] + velocity[1] + physics.STEP_HEIGHT - moved_y
    if player.hit_wall and physics.is_free(blocks, x, y, z, _HALF, height):
        velocity[1] = surfaces.LEAP


@kernel()
def move_player(blocks: NDArray[np.uint16], player: np.void, keys: int, depth: float) -> float:
    """Move the player for one tick, in the order of `LivingEntity.travel` and `Entity.move`.

    Args:
        blocks: The window's block ids.
        player: A `PLAYER_DTYPE` record.
        keys: Bits of the held keys (player.py).
        depth: How deep in lava the player is, in blocks.

    Returns:
        The damage of a landing, usually 0.
    """
    ahead, left = _read_input(player, keys)
    _update_sprinting(player, keys, ahead)
    physics.settle(player)
    _jump(blocks, player, keys, depth)
    was_on_ground = player.on_ground != 0
    ground = surfaces.walked_on(blocks, player.position)
    _accelerate(player, ahead, left, surfaces.GRIP[ground], depth > 0.0)
    _hold_on(blocks, player, keys)
    height = SNEAKING_HEIGHT if player.sneaking else STANDING_HEIGHT
    velocity = player.velocity
    is_held = player.hold[0] < 1.0
    dx, dz = velocity[0] * player.hold[0], velocity[2] * player.hold[0]
    velocity[1] *= player.hold[1]
    speed = velocity[1]
    if keys & SNEAK and _is_above_ground(blocks, player, height):
        dx, dz = _stay_on_edge(blocks, player, height, dx, dz)
    before = player.position[1]
    moved_x, moved_z = physics.move(blocks, player, _HALF, height, physics.STEP_HEIGHT, dx, dz)
    if is_held:
        velocity[:] = 0.0
    player.hit_wall = 1 if abs(moved_x - dx) >= _TOUCH or abs(moved_z - dz) >= _TOUCH else 0
    moved_y = player.position[1] - before
    damage = _touch_ground(blocks, player, keys, speed, moved_y)
    _get_caught(blocks, player, height)
    if (player.hit_wall or keys & JUMP) and surfaces.can_climb(blocks, player.position):
        velocity[1] = _CLIMBED
    _record_step(player, moved_x, moved_z)
    slipperiness = surfaces.SLIPPERINESS[ground] if was_on_ground else 1.0
    if depth > 0.0:
        _leave_lava(blocks, player, height, depth, moved_y)
    else:
        physics.apply_gravity_and_drag(player, slipperiness)
    player.sprinted_before = player.sprinting
    _update_pose(blocks, player, keys)
    return max(damage - player.jump_boost, 0.0)


# --------------------------------------------------------------------------- one tick of the player
# Look, attack and mine, then move, in the order of Minecraft's client.


@kernel()
def _turn(player: np.void, pitch: float, yaw: float) -> None:
    player.pitch = min(max(player.pitch + pitch, -90.0), 90.0)
    turned = np.fmod(player.yaw + yaw, 360.0)  # exact for any angle
    player.yaw = turned - 360.0 * np.floor((turned + 180.0) / 360.0)


@kernel()
def _count_down(player: np.void) -> None:
    player.attack_ticks += 1
    player.recharge_ticks += 1
    if player.miss_ticks > 0:
        player.miss_ticks -= 1
    if player.hurt_ticks > 0:
        player.hurt_ticks -= 1
    if player.use_delay > 0:
        player.use_delay -= 1
    tick_swing(player)


@kernel()
def _uses_block(blocks: NDArray[np.uint16], player: np.void, target: np.void) -> bool:
    """Whether the use key acts on the block under the crosshair instead of eating."""
    if target.kind != BLOCK or player.keys & SNEAK:
        return False
    return bool(ACTS_WHEN_USED[kind_of(blocks[block_index(target.x, target.y, target.z)])])


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
    """Advance the player by one tick.

    The target is determined after turning and before moving, so the agent hits what it saw.

    Args:
        blocks: The window's block ids.
        players: `PLAYER_DTYPE` [1].
        mobs: `MOB_DTYPE` records.
        mob_count: How many mob records are in use.
        targets: `TARGET_DTYPE` [1]; receives what the player looks at.
        keys: Bits of the held keys (player.py).
        pitch: Turn of the head, degrees down.
        yaw: Turn of the head, degrees to the right.
        events: `EVENT_DTYPE` records; receives what happened.
        event_count: int64 [1]; how many event records are in use.
    """
    player = players[0]
    target = targets[0]
    _turn(player, pitch, yaw)
    find_target(blocks, player, mobs, mob_count, target)
    was_eating = player.eating_ticks > 0
    player.hits_block = 0
    if not keys & USE:
        player.eating_ticks = 0
    if not was_eating:
        if keys & ATTACK and not player.keys & ATTACK:
            press_attack(player, mobs, mob_count, target, events, event_count)
            if target.kind == BLOCK:
                start_mining(blocks, player, target, events, event_count)
        if not _uses_block(blocks, player, target):
            begin_meal(player, keys)
    if not keys & ATTACK:
        release_attack(player)
    elif player.eating_ticks == 0:
        hold_attack(blocks, player, target, events, event_count)
    tick_view(player, player.speed_factor * (SPRINT_FACTOR if player.sprinting else 1.0))
    _count_down(player)
    x, y, z = player.position[0], player.position[1], player.position[2]
    height = SNEAKING_HEIGHT if player.sneaking else STANDING_HEIGHT
    depth = surfaces.depth_in_lava(blocks, player.position, _HALF, height)
    if depth > 0.0 and not player.fireproof:
        hurt_player(player, surfaces.DAMAGE, player.resistance, events, event_count)
    damage = move_player(blocks, player, keys, depth)
    player.position[0] = min(max(player.position[0], -FARTHEST), FARTHEST)
    player.position[2] = min(max(player.position[2], -FARTHEST), FARTHEST)
    follow_player(player, x, y, z, keys & SNEAK != 0)
    if damage > 0.0:
        hurt_player(player, damage, player.resistance, events, event_count)
    if player.position[1] < VOID:
        # Resistance has no effect on this damage alone.
        hurt_player(player, VOID_DAMAGE, 0.0, events, event_count)
    continue_meal(player, events, event_count)
    tick_hunger(player)
    player.keys = keys


# ----------------------------------------- eating by holding the use key, as in Minecraft Java 1.16


@kernel()
def begin_meal(player: np.void, keys: int) -> None:
    """Begin to eat the item in hand, if it is food that can be eaten now and nothing is mined."""
    pressed = not player.keys & USE or player.use_delay == 0
    if player.meal_ticks == 0 or not keys & USE or not pressed or player.is_mining:
        return
    player.use_delay = USE_DELAY
    if player.food < MAX_FOOD or player.eats_when_full:
        player.eating_ticks = player.meal_ticks


@kernel()
def continue_meal(
    player: np.void, events: NDArray[np.void], event_count: NDArray[np.int64]
) -> None:
    """Advance a meal by one tick; the handler of the final event consumes the food."""
    if player.eating_ticks > 0:
        player.eating_ticks -= 1
        if player.eating_ticks == 0:
            emit(events, event_count, FOOD_EATEN, 0, 1.0, player.position)
