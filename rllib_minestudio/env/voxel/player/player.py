"""The player's state, shared by kernels and Python as one record; keys, hunger, effects."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.items import (
    FIST_DAMAGE,
    FIST_SPEED,
    FOOD,
    ITEM_ID,
    ITEMS,
    OFFHAND_SLOT,
    Inventory,
    level_of,
    mining_speeds,
    mining_ticks,
    with_wear,
)
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, SWORD
from rllib_minestudio.errors import InvalidActionError

MAX_HEALTH = 20.0
MAX_FOOD = 20
START_SATURATION = 5.0

WIDTH = 0.6
"""Side of the square footprint of the collision box, in blocks."""
STANDING_HEIGHT, SNEAKING_HEIGHT = 1.8, 1.5
STANDING_EYES, SNEAKING_EYES = 1.62, 1.27
"""Height of the eyes above the feet, in blocks."""
USE_DELAY = 4
"""Ticks between two uses while the key is held."""
BOW_TICKS = 72_000
"""Ticks for which a bow can be drawn; a kind of meal that is always left."""
_BOW = ITEM_ID["bow"]
_ASPECT_TICKS = 80
"""Ticks for which a mob burns that is hit, for each level of fire aspect."""
SWING_TICKS = 6
"""Length of the arm's swing, without effects."""

PLAYER_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),  # feet, in blocks
        ("velocity", np.float64, 3),  # blocks per tick
        ("yaw", np.float64),  # degrees; 0 looks to +z (south), growing clockwise
        ("pitch", np.float64),  # degrees; positive looks down
        ("health", np.float64),
        ("saturation", np.float64),
        ("exhaustion", np.float64),
        ("fall_distance", np.float64),
        ("last_damage", np.float64),  # of the hit that started the current invulnerability
        ("mining_progress", np.float32),  # 0 to 1; summed in float32 as in Minecraft
        ("walked", np.float64),  # blocks, by gait, for the statistics
        ("sprinted", np.float64),
        ("crept", np.float64),
        ("step_length", np.float64),  # horizontal blocks moved in the last tick
        # From the item in hand and the effects; written by Python when either changes.
        ("attack_damage", np.float64),
        ("sharpness", np.float64),  # damage that an enchantment adds to a full attack
        ("knockback", np.float64),  # level of the enchantment
        ("fire_aspect", np.int32),  # ticks for which an attack sets on fire
        ("attack_speed", np.float64),
        ("speed_factor", np.float64),
        ("jump_boost", np.float64),  # levels of the effect
        ("resistance", np.float64),  # share of damage that is prevented
        ("fireproof", np.int32),  # whether an effect prevents the damage of lava
        ("invisible", np.int32),  # whether an effect hides the player from animals
        ("holds_sword", np.int32),
        ("food", np.int32),
        ("food_ticks", np.int32),
        ("on_ground", np.int32),
        ("sneaking", np.int32),
        ("sprinting", np.int32),
        ("sprinted_before", np.int32),  # at the end of the last tick; counts in the air
        ("fast_ahead", np.int32),  # input ahead in the last tick was enough to start sprinting
        ("hit_wall", np.int32),  # hit a wall in the last tick
        ("jumps", np.int32),
        ("jump_delay", np.int32),  # ticks before a held key jumps again
        ("sprint_window", np.int32),  # ticks left for a second press of forward
        ("keys", np.int32),  # bits of the keys held in the last tick, to detect presses
        ("use_delay", np.int32),
        ("eating_ticks", np.int32),  # ticks left of a meal, 0 for none
        ("meal_ticks", np.int32),  # length of a meal of the item in hand, 0 if it is not food
        ("eats_when_full", np.int32),  # whether that item can be eaten with a full food level
        ("attack_ticks", np.int32),  # since the arm last swung
        ("miss_ticks", np.int32),  # after a miss: ticks before the held key acts again
        ("swing_ticks", np.int32),  # 0 at rest, else two more than the ticks into the arm's swing
        ("hurt_ticks", np.int32),  # counts down from 10
        ("mining_delay", np.int32),  # ticks left of the pause after a block broke
        ("mining_x", np.int64),
        ("mining_y", np.int64),
        ("mining_z", np.int64),
        ("is_mining", np.int32),
        # What only the eye sees, see locomotion; a name with "seen" is what the next frame shows.
        ("hits_block", np.int32),  # the arm hit the block under the crosshair in the last tick
        ("recharge_ticks", np.int32),  # since the last attack or miss, for the bar that shows it
        ("held_item", np.int32),  # item in the main hand; written by Python, as "swing_length"
        ("hand_item", np.int32),  # item that the hand still shows while it is lowered
        ("swing_length", np.int32),  # ticks that a swing takes
        ("moved", np.float64, 3),  # change of the position in the last tick
        ("stride", np.float64),  # phase of the steps: 1 from one foot to the other
        ("bob", np.float64),  # how much the view bobs, 0 to 0.1
        ("bob_seen", np.float64),
        ("eye_drop", np.float64),  # height of the standing player's eyes above the camera, blocks
        ("eye_drop_seen", np.float64),
        ("fov_gain", np.float64),  # share by which the field of view is wider than usual
        ("fov_gain_seen", np.float64),
        ("swing", np.float64),  # progress of the arm's swing, 0 to 1
        ("swing_seen", np.float64),
        ("hand_drop", np.float64),  # how far the hand is lowered, 0 to 1
        ("hand_drop_seen", np.float64),
        ("hold", np.float64, 2),  # what a cobweb leaves of the next motion: across, up and down
        # Like "attack_damage"; last, to keep the other fields close together in memory.
        ("mining_speed", np.float32, len(BLOCKS)),  # on the ground, by kind of block
        ("mining_ticks", np.float32, len(BLOCKS)),  # per point of hardness at speed 1
    ],
    align=True,
)
"""The player's state. Velocities in blocks per tick, angles in degrees."""

_KEPT_BY_REVIVAL = ("position", "walked", "sprinted", "crept", "jumps", "keys")


class Player:
    """The player, its inventory and its effects.

    Attributes:
        records: `PLAYER_DTYPE` [1]; what the kernels work on.
        inventory: What the player carries.
        effects: Status effects by name: (amplifier, ticks left).
        hidden_effects: Names of effects that were last given without an icon at the edge of the
            screen.
        selected: Hotbar slot in the main hand, 0 to 8.
        experience: Points of experience; enchanting spends them.
        fire_ticks: Ticks of burning that are left; below 0, ticks in fire until one burns.
        enchanting_seed: What the offers of enchanting tables follow from.
        damage_bonus: Damage that effects add to an attack.
        attack_haste: Factor of effects on the attacks per second.
        mining_haste: Level of the effects that speed mining up.
        mining_fatigue: Level of the effect that slows mining down.
        equipped: The item whose properties the record has; None if it has none yet.
        equipped_data: The enchantments of that item.
    """

    def __init__(self) -> None:
        """Create a player at the origin, in full health, with an empty inventory."""
        self.records = np.zeros(1, PLAYER_DTYPE)
        self.inventory = Inventory()
        self.effects: dict[str, tuple[int, int]] = {}
        self.hidden_effects: set[str] = set()
        self.selected = 0
        self.experience = 0
        self.enchanting_seed = 0
        self.fire_ticks = 0
        self._forget_effects()
        self.equipped: int | None = None
        self.equipped_data = 0
        self.revive()

    def revive(self) -> None:
        """Restore full health and food, remove effects, and stop; look south at the horizon.

        The position and the distances walked stay. As in Minecraft, the direction of view does not.
        """
        state = self.records[0]
        kept = {name: state[name].copy() for name in _KEPT_BY_REVIVAL}
        self.records[0] = np.zeros((), PLAYER_DTYPE)
        for name, value in kept.items():
            state[name] = value
        state["health"] = MAX_HEALTH
        state["food"] = MAX_FOOD
        state["saturation"] = START_SATURATION
        state["attack_ticks"] = state["recharge_ticks"] = 100  # fully charged
        state["speed_factor"] = 1.0
        state["hold"] = 1.0
        self.effects.clear()
        self.fire_ticks = 0
        self._forget_effects()
        self.equipped = None
        self.update_equipment()

    def _forget_effects(self) -> None:
        self.damage_bonus = 0.0
        self.attack_haste = 1.0
        self.mining_haste = self.mining_fatigue = 0

    def update_equipment(self, force: bool = False) -> None:
        """Write the properties of the item in hand into the record, if the item changed.

        As in Minecraft, another item in hand resets the attack cooldown, and ends mining and a
        meal. Another slot with the same item, or another empty slot, does not.

        Args:
            force: Write them even if the item is the same.
        """
        item_id, data = self.held_item, self.held_data
        if self.equipped == item_id and self.equipped_data == data and not force:
            return
        state = self.records[0]
        item = ITEMS.get(item_id)
        damage = item.attack_damage if item else FIST_DAMAGE
        state["attack_damage"] = max(damage + self.damage_bonus, 0.0)
        speed = item.attack_speed if item else FIST_SPEED
        state["attack_speed"] = max(speed * self.attack_haste, 0.0)
        sharpness = self.held_level("sharpness")
        state["sharpness"] = 0.5 * sharpness + 0.5 if sharpness else 0.0
        state["knockback"] = self.held_level("knockback")
        state["fire_aspect"] = _ASPECT_TICKS * self.held_level("fire_aspect")
        state["holds_sword"] = item is not None and item.tool == SWORD
        state["mining_speed"] = mining_speeds(
            item, self.mining_haste, self.mining_fatigue, self.held_level("efficiency")
        )
        state["mining_ticks"] = mining_ticks(item)
        food = FOOD.get(item_id)
        state["meal_ticks"] = food.ticks if food else 0  # of a bow, see `projectiles.ready_bow`
        state["eats_when_full"] = item_id == _BOW or (food is not None and food.when_full)
        state["swing_length"] = swing_length(self.mining_haste, self.mining_fatigue)
        state["held_item"] = item_id
        if self.equipped is None:
            state["hand_item"] = item_id
        elif self.equipped != item_id:
            state["attack_ticks"] = state["is_mining"] = state["eating_ticks"] = 0
            state["recharge_ticks"] = -1  # this tick does not count
        self.equipped, self.equipped_data = item_id, data

    @property
    def position(self) -> NDArray[np.float64]:
        """Position of the feet, float64 [3] (x, y, z); a writable view of the record."""
        return self.records["position"][0]

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Blocks per tick, float64 [3]; a writable view of the record."""
        return self.records["velocity"][0]

    @property
    def yaw(self) -> float:
        """Degrees; 0 looks to +z (south), growing clockwise seen from above."""
        return float(self.records["yaw"][0])

    @yaw.setter
    def yaw(self, degrees: float) -> None:
        self.records["yaw"][0] = (degrees + 180.0) % 360.0 - 180.0

    @property
    def pitch(self) -> float:
        """Degrees, -90 (straight up) to 90 (straight down)."""
        return float(self.records["pitch"][0])

    @pitch.setter
    def pitch(self, degrees: float) -> None:
        self.records["pitch"][0] = min(max(degrees, -90.0), 90.0)

    @property
    def health(self) -> float:
        """Health points, 0 to 20."""
        return float(self.records["health"][0])

    @health.setter
    def health(self, points: float) -> None:
        self.records["health"][0] = min(max(points, 0.0), MAX_HEALTH)

    @property
    def food(self) -> int:
        """Food level, 0 to 20."""
        return int(self.records["food"][0])

    @property
    def level(self) -> int:
        """Level of the experience."""
        return progress_at(self.experience)[0]

    @property
    def held_item(self) -> int:
        """Item id in the main hand, 0 for none."""
        return int(self.inventory.item[self.selected])

    @property
    def held_data(self) -> int:
        """The data of the item in the main hand, without its wear."""
        return with_wear(int(self.inventory.data[self.selected]), 0)

    def held_level(self, enchantment: str) -> int:
        """Return the level of an enchantment of the item in the main hand, 0 for none."""
        data = self.held_data
        return level_of(self.held_item, data, enchantment) if data else 0

    @property
    def has_empty_hands(self) -> bool:
        """Whether both the main hand and the off hand are empty."""
        return not self.held_item and not self.inventory.item[OFFHAND_SLOT]

    @property
    def on_ground(self) -> bool:
        """Whether the player stood on something at the end of the last tick."""
        return bool(self.records["on_ground"][0])

    @property
    def sneaking(self) -> bool:
        """Whether the player sneaks (lower eyes, slower, does not fall off edges)."""
        return bool(self.records["sneaking"][0])

    @property
    def sprinting(self) -> bool:
        """Whether the player sprints."""
        return bool(self.records["sprinting"][0])

    @property
    def eye_height(self) -> float:
        """Height of the eyes above the feet, in blocks."""
        return SNEAKING_EYES if self.sneaking else STANDING_EYES

    @property
    def hurt_ticks(self) -> int:
        """Ticks left of the reaction to a hit, counting down from 10."""
        return int(self.records["hurt_ticks"][0])

    @property
    def swing_progress(self) -> float:
        """Progress of the arm's swing as a frame shows it: 0 at rest, rising towards 1."""
        return float(self.records["swing_seen"][0])

    @property
    def attack_charge(self) -> float:
        """Share of a full attack that a press would be now, 0 to 1."""
        state = self.records[0]
        charged = (state["attack_ticks"] + 0.5) * state["attack_speed"] / 20.0
        return float(min(charged, 1.0))


def swing_length(haste: int, fatigue: int) -> int:
    """Return how many ticks a swing of the arm takes, with effects of these levels."""
    return max(SWING_TICKS - haste, 1) if haste else SWING_TICKS + 2 * fatigue


# --------------------------------------------------------------------------------------------- keys
# The keys of MineStudio's action dictionary as bits of an integer.

FORWARD, BACK, LEFT, RIGHT, JUMP, SNEAK, SPRINT, ATTACK, USE, DROP, OPEN_INVENTORY = (
    1 << bit for bit in range(11)
)

_KEYS = (
    ("forward", FORWARD),
    ("back", BACK),
    ("left", LEFT),
    ("right", RIGHT),
    ("jump", JUMP),
    ("sneak", SNEAK),
    ("sprint", SPRINT),
    ("attack", ATTACK),
    ("use", USE),
    ("drop", DROP),
    ("inventory", OPEN_INVENTORY),
)
_HOTBAR = tuple((f"hotbar.{slot + 1}", slot) for slot in range(9))

NO_SLOT = -1


def read_keys(action: Mapping[str, Any]) -> int:
    """Return the bits of the keys held in `action`; a missing key is not held."""
    bits = 0
    get = action.get
    for name, bit in _KEYS:
        if get(name, 0):
            bits |= bit
    return bits


def read_hotbar(action: Mapping[str, Any]) -> int:
    """Return the hotbar slot (0-8) that `action` selects (the last of several), or `NO_SLOT`."""
    selected = NO_SLOT
    get = action.get
    for name, slot in _HOTBAR:
        if get(name, 0):
            selected = slot
    return selected


def read_camera(action: Mapping[str, Any]) -> tuple[float, float]:
    """Return the turn of the head (pitch, yaw) in degrees, zero if missing.

    Raises:
        InvalidActionError: If it is not finite, which would make the position not finite, too.
    """
    camera = action.get("camera")
    if camera is None:
        return 0.0, 0.0
    pitch, yaw = float(camera[0]), float(camera[1])
    if not (math.isfinite(pitch) and math.isfinite(yaw)):
        raise InvalidActionError(
            f"camera must be two finite numbers (pitch, yaw) in degrees; got ({pitch}, {yaw})."
        )
    return pitch, yaw


# --------------------------------------------------------------------------------------- experience


def points_of(level: int) -> int:
    """Return the points of experience that a level begins with (minecraft.wiki/w/Experience)."""
    if level <= 16:
        return level**2 + 6 * level
    if level <= 31:
        return (5 * level**2 - 81 * level + 720) // 2
    return (9 * level**2 - 325 * level + 4440) // 2


@lru_cache(maxsize=1024)  # asked for each frame
def progress_at(points: int) -> tuple[int, float]:
    """Return the level that some points of experience make, and the share of the next one."""
    above = 1
    while points_of(above) <= points:
        above *= 2
    level = bisect_right(range(above), points, key=points_of) - 1
    return level, (points - points_of(level)) / (points_of(level + 1) - points_of(level))


def without_levels(points: int, levels: int) -> int:
    """Return the points that are left when levels are paid; the share of the next one stays."""
    level, share = progress_at(points)
    left = max(level - levels, 0)
    return points_of(left) + int(share * (points_of(left + 1) - points_of(left)))


# ------------------------------------------------------------------------------------------- hunger
# Exhaustion, food and natural healing, as in Minecraft Java 1.16.

SPRINT_FOOD = 6
"""Food level at or below which the player cannot sprint."""
PER_SPRINTED_BLOCK = 0.1
PER_JUMP = 0.05
PER_SPRINT_JUMP = 0.2
PER_ATTACK = 0.1
PER_MINED_BLOCK = 0.005
"""Exhaustion caused by actions; 4 points cost one point of saturation or food.

Damage that bypasses armour, such as that of a fall, causes none.
"""

_EXHAUSTED = 4.0
_HEALING_FOOD = 18
_FAST_HEALING_TICKS = 10
_SLOW_HEALING_TICKS = 80
_MOST_HEALING = 6.0
_LEAST_HEALTH = 1.0
"""Health at which starvation on normal difficulty stops."""


@kernel()
def tick_hunger(player: np.void) -> None:
    """Turn exhaustion into hunger, and food into health or starvation into damage."""
    if player.exhaustion > _EXHAUSTED:
        player.exhaustion -= _EXHAUSTED
        if player.saturation > 0.0:
            player.saturation = max(player.saturation - 1.0, 0.0)
        else:
            player.food = max(player.food - 1, 0)
    hurt = 0.0 < player.health < MAX_HEALTH
    player.food_ticks += 1
    if hurt and player.food >= MAX_FOOD and player.saturation > 0.0:
        if player.food_ticks >= _FAST_HEALING_TICKS:
            spent = min(player.saturation, _MOST_HEALING)
            player.health = min(player.health + spent / _MOST_HEALING, MAX_HEALTH)
            player.exhaustion += spent
            player.food_ticks = 0
    elif hurt and player.food >= _HEALING_FOOD:
        if player.food_ticks >= _SLOW_HEALING_TICKS:
            player.health = min(player.health + 1.0, MAX_HEALTH)
            player.exhaustion += _MOST_HEALING
            player.food_ticks = 0
    elif player.food <= 0:
        if player.food_ticks >= _SLOW_HEALING_TICKS:
            if player.health > _LEAST_HEALTH:
                player.health -= 1.0
            player.food_ticks = 0
    else:
        player.food_ticks = 0


# --------------------------------------------------------------------- status effects of the player
# Names and consequences.

EFFECTS: tuple[str, ...] = (
    "speed",
    "slowness",
    "haste",
    "mining_fatigue",
    "strength",
    "instant_health",
    "instant_damage",
    "jump_boost",
    "nausea",
    "regeneration",
    "resistance",
    "fire_resistance",
    "water_breathing",
    "invisibility",
    "blindness",
    "night_vision",
    "hunger",
    "weakness",
    "poison",
    "wither",
    "health_boost",
    "absorption",
    "saturation",
    "glowing",
    "levitation",
    "luck",
    "unluck",
    "slow_falling",
    "conduit_power",
    "dolphins_grace",
    "bad_omen",
    "hero_of_the_village",
)
"""Effects of Minecraft 1.16 in the order of their numeric ids, which start at 1.

Those in `ACTING` have consequences in this engine.
"""
ACTING = frozenset(
    (
        *("speed", "slowness", "haste", "mining_fatigue", "strength", "weakness", "jump_boost"),
        *("resistance", "regeneration", "instant_health", "saturation", "conduit_power"),
        *("fire_resistance", "instant_damage", "poison", "wither", "hunger", "invisibility"),
        "night_vision",
    )
)
_WITHOUT_OBJECT = frozenset(
    (
        *("water_breathing", "dolphins_grace", "luck", "unluck", "bad_omen"),
        "hero_of_the_village",
    )
)
"""Effects on things that do not exist in this engine, so that nothing is lacking without them."""

_HARMS = {"poison": 25, "wither": 40}
"""Ticks per point of damage of effects of the lowest level; poison leaves one point of health."""
_HUNGER = 0.005
"""Exhaustion in a tick of hunger of the lowest level."""
_HEALING_PERIOD = 50
"""Ticks per point of health with regeneration of the lowest level."""


def lacking(name: str) -> str:
    """Return what this engine does not do of the effect `name`; empty for nothing."""
    return "" if name in ACTING | _WITHOUT_OBJECT else f"the effect {name} changes nothing here"


def give_effect(
    player: Player,
    name: str,
    amplifier: int,
    ticks: int,
    hurt: Callable[[float], None],
    share: float = 1.0,
    hidden: bool = False,
) -> bool:
    """Give the player an effect, unless there is a stronger one, or the same for as long.

    Return whether it was given.

    Args:
        player: The player.
        name: One of `EFFECTS`.
        amplifier: Level minus one, 0 to 255.
        ticks: Duration in ticks.
        hurt: Harms the player by health points.
        share: Share of an instant effect's health points.
        hidden: Whether it has no icon at the edge of the screen.
    """
    if name == "instant_health":
        player.health += int(share * (4 << min(amplifier, 8)) + 0.5)
        return True
    if name == "instant_damage":
        hurt(float(int(share * (6 << min(amplifier, 8)) + 0.5)))
        return True
    if (amplifier, ticks) <= player.effects.get(name, (-1, 0)):
        return False
    player.effects[name] = (amplifier, ticks)
    player.hidden_effects.discard(name)
    if hidden:
        player.hidden_effects.add(name)
    apply_effects(player)
    return True


def clear_effects(player: Player, name: str | None = None) -> bool:
    """Remove one effect, or all of them if `name` is None; return whether there was one."""
    taken = bool(player.effects) if name is None else name in player.effects
    if name is None:
        player.effects.clear()
    else:
        player.effects.pop(name, None)
    apply_effects(player)
    return taken


def tick_effects(player: Player, hurt: Callable[[float], None]) -> None:
    """Advance the player's effects by one tick.

    Args:
        player: The player.
        hurt: Harms the player by health points.
    """
    ended = False
    for name, (amplifier, ticks) in list(player.effects.items()):
        if name == "regeneration" and ticks % max(_HEALING_PERIOD >> min(amplifier, 6), 1) == 0:
            player.health += 1.0
        elif name == "saturation":
            feed(player, amplifier + 1, 2.0 * (amplifier + 1))
        elif name == "hunger":
            player.records["exhaustion"] += _HUNGER * (amplifier + 1)
        elif period := _HARMS.get(name):
            is_due = ticks % max(period >> min(amplifier, 6), 1) == 0
            if is_due and (name == "wither" or player.health > 1.0):
                hurt(1.0)
        if ticks > 1:
            player.effects[name] = (amplifier, ticks - 1)
        else:
            del player.effects[name]
            ended = True
    if ended:
        apply_effects(player)


def feed(player: Player, nutrition: int, saturation: float) -> None:
    """Raise the food level, up to full, then the saturation, up to the food level."""
    state = player.records[0]
    state["food"] = min(int(state["food"]) + nutrition, MAX_FOOD)
    state["saturation"] = min(float(state["saturation"]) + saturation, float(state["food"]))


def apply_effects(player: Player) -> None:
    """Write the consequences of the current effects into the player and its record.

    Formulas: minecraft.wiki/w/Effect (Java 1.16).
    """
    level = {name: amplifier + 1 for name, (amplifier, _) in player.effects.items()}
    state = player.records[0]
    slowed = max(1.0 - 0.15 * level.get("slowness", 0), 0.0)
    state["speed_factor"] = (1.0 + 0.2 * level.get("speed", 0)) * slowed
    state["jump_boost"] = level.get("jump_boost", 0)
    state["fireproof"] = "fire_resistance" in level
    state["invisible"] = "invisibility" in level
    state["resistance"] = min(0.2 * level.get("resistance", 0), 1.0)
    player.damage_bonus = 3.0 * level.get("strength", 0) - 4.0 * level.get("weakness", 0)
    haste, fatigue = level.get("haste", 0), level.get("mining_fatigue", 0)
    player.attack_haste = (1.0 + 0.1 * haste) * max(1.0 - 0.1 * fatigue, 0.0)
    player.mining_haste = max(haste, level.get("conduit_power", 0))
    player.mining_fatigue = fatigue
    player.update_equipment(force=True)
