"""Mobs, dropped and thrown items, falling blocks: their types, and the arrays that hold them.

With records (numpy structured arrays), kernels can write `mob.health`, and Python can read a column
of all mobs as a view (`mobs.health`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv

MOB_CAPACITY = 256
"""Most mobs at once."""
ITEM_CAPACITY = 256
"""Most dropped items at once; the oldest vanish first."""
THROWN_CAPACITY = 64
"""Most thrown things in flight at once; the oldest vanish first."""
FALLING_CAPACITY = 256
"""Most falling blocks at once; others wait until one lands."""

HURT_TICKS = 10
"""Ticks for which a mob is shown as hurt, and immune to equal or weaker hits."""
DEATH_TICKS = 20
"""Ticks between a mob's death and its disappearance, while it falls over."""

DYES = (
    *("white", "orange", "magenta", "light_blue", "yellow", "lime", "pink", "gray", "light_gray"),
    *("cyan", "purple", "blue", "brown", "green", "red", "black"),
)
"""Colours of wool, in Minecraft's order; a sheep's coat is an index into them."""
SHORN = len(DYES)
"""Added to the coat of a sheep whose wool has been taken."""
COATS = 2 * SHORN
"""How many coats there are."""
_NATURAL = (("black", 0.05), ("gray", 0.1), ("light_gray", 0.15), ("brown", 0.18))
_PINK_CHANCE = 1 / 500


def coat_of(dice: float, pink: float) -> int:
    """Return the coat of a sheep that nobody bred: 82 of 100 are white, and a few of these pink.

    Args:
        dice: A random number in [0, 1).
        pink: Another one.
    """
    for colour, below in _NATURAL:
        if dice < below:
            return DYES.index(colour)
    return DYES.index("pink" if pink < _PINK_CHANCE else "white")


YOUNG_AGE = -24000
"""Age of an animal at birth, in ticks: it is grown up at 0."""


@dataclass(frozen=True)
class MobKind:
    """One kind of mob, with the numbers of Minecraft Java 1.16.

    Attributes:
        name: Minecraft's identifier without the namespace.
        width: Side of the square footprint of its collision box, in blocks.
        height: Height of that box, in blocks.
        max_health: Health points at birth.
        speed: Movement speed attribute.
        glides: Whether it beats its wings as it falls: it sinks slowly, and no landing hurts it.
        food: Names of the items that it follows, breeds with and grows by.
        goals: What it does, the most urgent first: names of `goals.GOAL_CODE`, each with its factor
            on the speed, which is 0 for a goal that it pursues standing.
        loot: Name of its table in `mob_loot.json`.
    """

    name: str
    width: float
    height: float
    max_health: float
    speed: float
    glides: bool
    food: tuple[str, ...]
    goals: tuple[tuple[str, float], ...]
    loot: str


def _goal(text: str) -> tuple[str, float]:
    """Read "panic=2": a goal's name, and its factor on the speed."""
    name, factor = text.split("=")
    return name, float(factor)


MOB_KINDS: tuple[MobKind, ...] = tuple(
    MobKind(
        name=row["mob"],
        width=float(row["width"]),
        height=float(row["height"]),
        max_health=float(row["health"]),
        speed=float(row["speed"]),
        glides=row["glides"] == "yes",
        food=tuple(row["food"].split()),
        goals=tuple(map(_goal, row["goals"].split())),
        loot=row["loot"],
    )
    for row in read_csv("mobs.csv")
)
"""All kinds of mobs; `Mobs.kind` holds indices into this tuple."""

MOB_KIND_ID: dict[str, int] = {kind.name: index for index, kind in enumerate(MOB_KINDS)}
"""Index in `MOB_KINDS` by name."""

MOB_GLIDES = np.array([kind.glides for kind in MOB_KINDS])
"""Whether each kind glides, for kernels."""

MOB_EFFECTS = (
    *("speed", "slowness", "jump_boost", "regeneration", "poison", "fire_resistance"),
    "invisibility",
)
"""Lasting status effects that do something to a mob."""
SPEED, SLOWNESS, JUMP_BOOST, REGENERATION, POISON, FIRE_RESISTANCE, INVISIBILITY = range(7)
"""Indices into these."""

MOB_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),  # feet, in blocks
        ("velocity", np.float64, 3),  # blocks per tick
        ("moved", np.float64, 3),  # change of the position in the last tick
        ("yaw", np.float64),  # radians; 0 looks to +z, growing clockwise seen from above
        ("health", np.float64),
        ("last_damage", np.float64),  # of the hit that started the current invulnerability
        ("fall_distance", np.float64),
        ("limb_swing", np.float64),  # phase of the legs, radians
        ("limb_amplitude", np.float64),  # how far the legs swing, 0 (standing) to 1
        ("goal_x", np.float64),
        ("goal_z", np.float64),
        ("kind", np.int32),
        ("hurt_ticks", np.int32),  # counts down from HURT_TICKS
        ("death_ticks", np.int32),  # 0 while alive, then counts up to DEATH_TICKS
        ("panic_ticks", np.int32),  # ticks left of fleeing
        ("goal", np.int32),  # one of the codes of goals.py
        ("goal_ticks", np.int32),  # ticks before the current goal is given up
        ("follows_player", np.int32),  # whether the goal's place is wherever the player is
        ("on_ground", np.int32),
        ("coat", np.int32),  # of a sheep: index in DYES, plus SHORN without its wool
        ("age", np.int32),  # ticks: below 0 until it is grown up, above 0 until it breeds again
        ("love_ticks", np.int32),  # ticks left of looking for a partner
        ("aloof_ticks", np.int32),  # ticks before food in the player's hand tempts it again
        ("fire_ticks", np.int32),  # ticks left of burning; below 0, ticks in fire before it burns
        ("egg_ticks", np.int32),  # ticks before a chicken lays its next egg
        ("leash", np.int32),  # one of the values below
        ("knot", np.int64, 3),  # the fence to which it is tied
        ("effect_ticks", np.int32, len(MOB_EFFECTS)),  # ticks left of each of `MOB_EFFECTS`
        ("effect_levels", np.int32, len(MOB_EFFECTS)),
    ],
    align=True,
)
"""One mob. Velocities are in blocks per tick, angles in radians."""

UNTIED, LED, TIED = range(3)
"""Values of a mob's `leash`: none, in the player's hand, tied to a fence."""


ITEM_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),
        ("velocity", np.float64, 3),
        ("moved", np.float64, 3),  # change of the position in the last tick
        ("item", np.int32),
        ("quantity", np.int32),
        ("data", np.int64),  # what else there is, see items.items
        ("age", np.int32),  # ticks; of a merged stack, the younger one's
        ("ticks", np.int32),  # since it was dropped
        ("pickup_delay", np.int32),  # ticks before the player can take it
        ("on_ground", np.int32),
    ],
    align=True,
)
"""One dropped stack of items."""

FALLING_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),  # bottom centre
        ("moved", np.float64, 3),  # change of the position in the last tick
        ("speed", np.float64),  # downwards, blocks per tick
        ("block", np.int32),
    ],
    align=True,
)
"""One falling block."""

THROWN_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),  # bottom centre
        ("velocity", np.float64, 3),  # blocks per tick
        ("moved", np.float64, 3),  # change of the position in the last tick
        ("item", np.int32),
        ("data", np.int64),  # what else there is, see items.items
        ("ticks", np.int32),  # since it was thrown
        ("is_clear", np.int32),  # whether it has left the player, whom it can hit from then on
        # Of an arrow:
        ("damage", np.float64),  # health points for each block per tick of its speed
        ("is_critical", np.int32),  # whether the bow was drawn fully
        ("punch", np.int32),  # levels of the bow's enchantments
        ("flame", np.int32),
        ("is_lost", np.int32),  # whether nobody can pick it up
    ],
    align=True,
)
"""One thrown or shot thing in flight."""


class Records:
    """A record array of fixed capacity, with the first `count` rows in use.

    Attributes:
        records: The rows.
        count: How many rows are in use.
        displaced: How many rows `append` removed to make room since this was last set to 0; the
            indices of all other rows fell by as much.
    """

    records: NDArray[np.void]
    count: int
    displaced: int

    def __init__(self, dtype: np.dtype[np.void], capacity: int) -> None:
        self.records = np.zeros(capacity, dtype)
        self.count = self.displaced = 0

    def clear(self) -> None:
        """Remove all rows."""
        self.count = 0

    def append(self) -> np.void:
        """Add a zeroed row, replacing the oldest if full, and return it to be filled in."""
        if self.count == len(self.records):
            self.remove(0)
            self.displaced += 1
        row = self.records[self.count]
        self.records[self.count] = np.zeros((), self.records.dtype)
        self.count += 1
        return row

    def extend(self, rows: NDArray[np.void]) -> None:
        """Add rows, replacing the oldest if full."""
        for row in rows:
            self.append()
            self.records[self.count - 1] = row

    def remove(self, index: int) -> None:
        """Remove one row; the others keep their order."""
        self.records[index : self.count - 1] = self.records[index + 1 : self.count]
        self.count -= 1

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Keep only the rows where `kept`, bool [count], is True."""
        rows = self.records[: self.count][kept]
        self.records[: len(rows)] = rows
        self.count = len(rows)


class Mobs(Records):
    """All mobs of a world; writing to a column view, of `count` rows, changes the mobs."""

    def __init__(self, capacity: int = MOB_CAPACITY) -> None:
        super().__init__(MOB_DTYPE, capacity)

    def add(
        self,
        kind: int,
        position: tuple[float, float, float],
        yaw: float,
        coat: int = 0,
        age: int = 0,
        egg_ticks: int = 0,
    ) -> None:
        """Add one of `MOB_KINDS[kind]` in full health, its feet at (x, y, z); yaw in radians.

        For the others see `MOB_DTYPE`.
        """
        mob = self.append()
        mob["kind"] = kind
        mob["position"] = position
        mob["yaw"] = yaw
        mob["health"] = MOB_KINDS[kind].max_health
        mob["coat"] = coat
        mob["age"] = age
        mob["egg_ticks"] = egg_ticks

    @property
    def kind(self) -> NDArray[np.int32]:
        """Index in `MOB_KINDS`, int32 [n]."""
        return self.records["kind"][: self.count]

    @property
    def position(self) -> NDArray[np.float64]:
        """Feet, float64 [n, 3] (x, y, z)."""
        return self.records["position"][: self.count]

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Blocks per tick, float64 [n, 3]."""
        return self.records["velocity"][: self.count]

    @property
    def yaw(self) -> NDArray[np.float64]:
        """Radians, float64 [n]; 0 looks to +z (south), growing clockwise seen from above."""
        return self.records["yaw"][: self.count]

    @property
    def health(self) -> NDArray[np.float64]:
        """Health points, float64 [n]."""
        return self.records["health"][: self.count]

    @property
    def hurt_ticks(self) -> NDArray[np.int32]:
        """Ticks left of the red flash after a hit, int32 [n], counting down from `HURT_TICKS`."""
        return self.records["hurt_ticks"][: self.count]

    @property
    def death_ticks(self) -> NDArray[np.int32]:
        """0 while alive, then ticks since death, int32 [n], up to `DEATH_TICKS`."""
        return self.records["death_ticks"][: self.count]

    @property
    def limb_swing(self) -> NDArray[np.float64]:
        """Phase of the walking legs in radians, float64 [n]."""
        return self.records["limb_swing"][: self.count]

    @property
    def limb_amplitude(self) -> NDArray[np.float64]:
        """How far the legs swing, float64 [n], 0 (standing) to 1."""
        return self.records["limb_amplitude"][: self.count]


class DroppedItems(Records):
    """All dropped item stacks of a world; column views have `count` rows."""

    def __init__(self) -> None:
        super().__init__(ITEM_DTYPE, ITEM_CAPACITY)

    @property
    def item(self) -> NDArray[np.int32]:
        """Item ids, int32 [n]."""
        return self.records["item"][: self.count]

    @property
    def quantity(self) -> NDArray[np.int32]:
        """Size of each stack, int32 [n]."""
        return self.records["quantity"][: self.count]

    @property
    def position(self) -> NDArray[np.float64]:
        """Bottom centre, float64 [n, 3]."""
        return self.records["position"][: self.count]

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Blocks per tick, float64 [n, 3]."""
        return self.records["velocity"][: self.count]

    @property
    def age(self) -> NDArray[np.int32]:
        """Ticks since it was dropped, int32 [n]."""
        return self.records["age"][: self.count]


class ThrownItems(Records):
    """All things in flight that the player has thrown."""

    def __init__(self) -> None:
        super().__init__(THROWN_DTYPE, THROWN_CAPACITY)


class FallingBlocks(Records):
    """All falling blocks of a world."""

    def __init__(self) -> None:
        super().__init__(FALLING_DTYPE, FALLING_CAPACITY)
