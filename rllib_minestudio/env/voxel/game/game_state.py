"""The state of one game, and the basic operations on it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import DAY_TICKS
from rllib_minestudio.env.voxel.entities.herds import Herds
from rllib_minestudio.env.voxel.entities.mobs import (
    CHICKEN,
    DROP_DELAY,
    EGG_TICKS,
    EVENT_CAPACITY,
    EVENT_DTYPE,
    THROW_DELAY,
    harm_mob,
)
from rllib_minestudio.env.voxel.entities.particles import Particles
from rllib_minestudio.env.voxel.entities.records import (
    MOB_KINDS,
    DroppedItems,
    FallingBlocks,
    MobKind,
    Mobs,
    ThrownItems,
    coat_of,
)
from rllib_minestudio.env.voxel.game.block_ticks import BlockTicks, Place
from rllib_minestudio.env.voxel.game.statistics import Statistics
from rllib_minestudio.env.voxel.items.items import (
    EMPTY,
    ITEMS,
    ItemStack,
    level_of,
    wear_of,
    with_wear,
)
from rllib_minestudio.env.voxel.player.combat import hurt_player
from rllib_minestudio.env.voxel.player.player import NO_SLOT, Player
from rllib_minestudio.env.voxel.player.raycast import TARGET_DTYPE, look_direction
from rllib_minestudio.env.voxel.screens.crafting import BlockEntities
from rllib_minestudio.env.voxel.screens.screen import Screen
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.blocks import BLOCKS
from rllib_minestudio.env.voxel.world.box_field import HEIGHT
from rllib_minestudio.env.voxel.world.world import World

GAME_RULES: dict[str, str] = {
    "doDaylightCycle": "true",
    "doFireTick": "true",
    "keepInventory": "false",
}
"""Game rules that this engine obeys, with their values in a new world."""

MOST_LIFTS = HEIGHT + 2
"""Most blocks by which a mob that is summoned inside blocks is lifted: from a body's height below
the world, the lowest place where a block can be in the way, to above the highest block."""

_TREE_RINGS = 3
"""How far from a tree there is a place for a mob: a crown's two blocks, and its own width."""

NAME_TICKS = 40
"""How long the display shows the name of an item that has come to hand."""

THROW_SPEED = 0.3
"""Speed of an item that the player throws, in blocks per tick."""
_THROW_LIFT, _BELOW_EYES = 0.1, 0.3
STATISTIC_SCALE = 10
"""Minecraft counts damage in tenths of a health point."""
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def _mix(seed: int) -> int:
    """Hash a seed to a non-zero 64-bit number with splitmix64 (Steele et al. 2014)."""
    value = (seed + _GOLDEN_GAMMA) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return (value ^ (value >> 31)) or 1


class GameState:
    """Everything that a game consists of.

    Attributes:
        world: The blocks.
        player: The player, with inventory and effects.
        mobs: All mobs; with natural animals, those on loaded land.
        herds: What is known of animals that come with the land.
        items: All dropped items.
        thrown: All thrown things in flight.
        falling: All falling blocks.
        block_ticks: What is to happen to blocks, and when.
        particles: The dust of blocks, with a random stream of its own.
        statistics: Counters of what the player did.
        target: Target of the crosshair in the last tick, `TARGET_DTYPE` [1].
        time: Ticks since the first sunrise, which `/time` sets; the day decides the moon's phase.
        game_time: Ticks since the world began.
        raining: Whether it rains, which puts fire out, and shows in `location_stats`.
        difficulty: One of the game's; fire spreads by it, and no mob is hostile.
        rules: Game rules by name.
        block_entities: Contents of furnaces and chests.
        screen: The open screen, which then receives keys and mouse; None if none is open.
        next_screen: The inventory's screen, ready to be opened; None while it is open.
        held_keys: Bits of the keys held in the last tick.
        held_slot: The hotbar key held in the last tick, or `NO_SLOT`.
        dead_keys: Bits of the keys held since a screen closed, which act only after a release.
        player_dead: Whether the player died during a tick.
        bed: The head of the bed in which the player sleeps; None while awake.
        sleep_ticks: Ticks since the player fell asleep.
        spawn_point: The head of the bed at which a killed player is revived; None for no bed.
        named_item: The item in hand in the last tick, whose name the display may show.
        name_ticks: Ticks for which it still shows that name.
        rng: State of the only source of randomness in the rules, uint64 [1].
        events: What has happened and is still to be handled, `EVENT_DTYPE` records.
        event_count: How many of these are in use, int64 [1]; 0 between two ticks.
    """

    def __init__(self) -> None:
        self.world = World()
        self.player = Player()
        self.mobs = Mobs()
        self.herds = Herds()
        self.items = DroppedItems()
        self.thrown = ThrownItems()
        self.falling = FallingBlocks()
        self.block_ticks = BlockTicks()
        self.particles = Particles()
        self.block_entities = BlockEntities()
        self.statistics = Statistics()
        self.target: NDArray[np.void] = np.zeros(1, TARGET_DTYPE)
        self.rng = np.ones(1, np.uint64)
        self.events: NDArray[np.void] = np.zeros(EVENT_CAPACITY, EVENT_DTYPE)
        self.event_count = np.zeros(1, np.int64)
        self.reset(0)

    def reset(self, seed: int, natural_animals: bool = False) -> None:
        """Reset everything for a new game; the world then has no chunks yet.

        Args:
            seed: Any integer.
            natural_animals: Whether herds come with the land.
        """
        mixed = _mix(seed)
        self.event_count[0] = 0
        self.rng[0] = mixed
        self.world.reset(mixed >> 32)
        self.player = Player()
        self.player.enchanting_seed = mixed >> 33
        self.mobs.clear()
        self.herds.reset(natural_animals)
        self.items.clear()
        self.thrown.clear()
        self.falling.clear()
        self.block_ticks.clear()
        self.particles.begin(_mix(mixed))
        self.block_entities.clear()
        self.statistics.clear()
        self.target[0] = np.zeros((), TARGET_DTYPE)
        self.time = self.game_time = 0
        self.raining = False
        self.difficulty = "easy"
        self.rules = dict(GAME_RULES)
        self.screen: Screen | None = None
        self.next_screen: Screen | None = None
        self.player_dead = False
        self.held_keys = self.dead_keys = 0
        self.held_slot = NO_SLOT
        self.named_item, self.name_ticks = EMPTY, 0
        self.bed: Place | None = None
        self.sleep_ticks = 0
        self.spawn_point: Place | None = None

    def tick_name(self) -> None:
        """Begin or go on showing the name of the item in hand: again when it is another one."""
        item = self.player.held_item
        if item == self.named_item:
            self.name_ticks = max(self.name_ticks - 1, 0)
        else:
            self.named_item = item
            self.name_ticks = 0 if item == EMPTY else NAME_TICKS

    @property
    def daytime(self) -> int:
        """Ticks since sunrise, 0 to 23999 (6000 is noon)."""
        return self.time % DAY_TICKS

    def random(self) -> float:
        """Return the next random number in [0, 1)."""
        return float(physics.random(self.rng))

    def random_between(self, low: int, high: int) -> int:
        """Return a random whole number, both ends included."""
        return low + int(self.random() * (high - low + 1))

    def random_normal(self) -> float:
        """Return a standard normal random number (Box-Muller transform)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
        return radius * math.cos(2.0 * math.pi * self.random())

    def spawn_mob(self, kind: int, x: float, y: float, z: float) -> None:
        """Add a mob of `MOB_KINDS[kind]` with its feet at (x, y, z) and a random yaw.

        If blocks are in the way, the mob is put on top of them, so that summoning next to the
        player works on any slope; but it comes down beside a tree, not on its crown, where nobody
        who walks could reach it.
        """
        body = MOB_KINDS[kind]
        place = self._standing_place(body, x, y, z)
        yaw = (self.random() * 2.0 - 1.0) * np.pi
        coat = coat_of(self.random(), self.random()) if body.name == "sheep" else 0
        self.mobs.add(kind, place, yaw, coat, egg_ticks=self.egg_ticks(kind))

    def egg_ticks(self, kind: int) -> int:
        """Return the random number of ticks before a new chicken's first egg; 0 for other kinds."""
        if kind != CHICKEN:
            return 0
        return EGG_TICKS + self.random_between(0, EGG_TICKS - 1)

    def _standing_place(
        self, body: MobKind, x: float, y: float, z: float
    ) -> tuple[float, float, float]:
        """Return where a body has room: at (x, y, z), above it, or beside the tree below it."""
        if not self.world.is_loaded(x, z):
            return x, y, z
        for ring in range(_TREE_RINGS + 1):
            for dx in range(-ring, ring + 1):
                for dz in range(-ring, ring + 1):
                    if max(abs(dx), abs(dz)) == ring and self.world.is_loaded(x + dx, z + dz):
                        place = self._lifted(body, x + dx, y, z + dz)
                        if not self._is_over_crown(body, place):
                            return place
        return self._lifted(body, x, y, z)

    def _lifted(self, body: MobKind, x: float, y: float, z: float) -> tuple[float, float, float]:
        """Return the first place from (x, y, z) upwards where a body has room."""
        for _ in range(MOST_LIFTS):
            if physics.is_free(self.world.blocks, x, y, z, body.width / 2, body.height):
                break
            y = float(np.floor(y)) + 1.0
        return x, y, z

    def _is_over_crown(self, body: MobKind, place: tuple[float, float, float]) -> bool:
        """Return whether a body that falls from a place lands on leaves."""
        x, y, z = place
        y, half = min(y, HEIGHT), body.width / 2
        while y > 0.0 and physics.is_free(self.world.blocks, x, y - 1.0, z, half, body.height):
            y -= 1.0
        below = int(np.floor(y)) - 1
        corners = ((x + dx, z + dz) for dx in (-half, half) for dz in (-half, half))
        return any(
            BLOCKS[self.world.kind_at(int(i // 1), below, int(k // 1))].material == "leaves"
            for i, k in corners
        )

    def drop_item(
        self,
        item: int,
        quantity: int,
        position: tuple[float, float, float],
        velocity: tuple[float, float, float],
        delay: int,
        data: int = 0,
    ) -> None:
        """Add a dropped stack.

        Args:
            item: Item id.
            quantity: Size of the stack.
            position: Bottom centre.
            velocity: Blocks per tick.
            delay: Ticks before it can be picked up.
            data: What else there is, see `items`.
        """
        row = self.items.append()
        row["item"] = item
        row["quantity"] = quantity
        row["position"] = position
        row["velocity"] = velocity
        row["pickup_delay"] = delay
        row["data"] = data

    def throw_item(self, stack: ItemStack) -> None:
        """Throw a stack forward from slightly below the player's eyes."""
        player = self.player
        dx, dy, dz = look_direction(player.yaw, player.pitch)
        x, y, z = player.position.tolist()
        velocity = (dx * THROW_SPEED, dy * THROW_SPEED + _THROW_LIFT, dz * THROW_SPEED)
        place = (x, y + player.eye_height - _BELOW_EYES, z)
        self.drop_item(stack.item, stack.quantity, place, velocity, THROW_DELAY, stack.data)

    def scatter_item(
        self,
        item: int,
        quantity: int,
        position: tuple[float, float, float],
        delay: int,
        data: int = 0,
    ) -> None:
        """Drop a stack with a small hop to a random side, as from a block or a mob."""
        velocity = ((self.random() - 0.5) * 0.2, 0.2, (self.random() - 0.5) * 0.2)
        self.drop_item(item, quantity, position, velocity, delay, data)

    def hurt_player(self, amount: float) -> None:
        """Harm the player by health points, less what the effect of resistance prevents."""
        record = self.player.records[0]
        hurt_player(record, amount, record["resistance"], self.events, self.event_count)

    def hurt_mob(self, row: int, amount: float, by_player: bool = False) -> None:
        """Harm the mob in a row by health points."""
        harm_mob(self.mobs.records, row, amount, by_player, self.events, self.event_count)

    def count_damage(self, kind: int, amount: float) -> None:
        """Count the health points that the player took from a mob of `MOB_KINDS[kind]`."""
        tenths = round(amount * STATISTIC_SCALE)
        self.statistics.add("damage_dealt", MOB_KINDS[kind].name, tenths)
        self.statistics.add("custom", "damage_dealt", tenths)

    def count_use(self) -> None:
        """Count a use of the item in hand."""
        self.statistics.add("use_item", ITEMS[self.player.held_item].name)

    def use_up(self, leaves: int = EMPTY) -> None:
        """Take one item from the hand.

        Args:
            leaves: Id of the item that is left of it: put into the hand if that is empty now, else
                into the inventory, and dropped if that is full.
        """
        player = self.player
        player.inventory.take(player.selected)
        if leaves == EMPTY:
            return
        if player.held_item == EMPTY:
            player.inventory.set(player.selected, leaves, 1)
        elif player.inventory.add(leaves, 1):
            x, y, z = player.position.tolist()
            self.scatter_item(leaves, 1, (x, y + 1.3, z), DROP_DELAY)

    def wear_tool(self, uses: int) -> None:
        """Wear the tool in hand, which breaks when its durability is used up."""
        player = self.player
        item = ITEMS.get(player.held_item)
        if item is None or not item.durability:
            return
        slot = player.selected
        stack = player.inventory[slot]
        unbreaking = level_of(stack.item, stack.data, "unbreaking")
        if unbreaking:
            uses = sum(not self.random_between(0, unbreaking) for _ in range(uses))
        wear = wear_of(stack.data) + uses
        if wear < item.durability:
            data = with_wear(stack.data, wear)
            player.inventory.set(slot, stack.item, stack.quantity, data)
            return
        player.inventory.take(slot)
        self.statistics.add("break_item", item.name)
