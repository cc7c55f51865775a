"""A game: its beginning, its ticks, and what follows from their events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from rllib_minestudio.env.voxel.entities.mobs import (
    BLOCK_BROKEN,
    DROP_DELAY,
    EGG_LAID,
    FOOD_EATEN,
    GRASS_EATEN,
    IN_LAVA,
    IN_PORTAL,
    ITEM_TOUCHED,
    MOB_BURNS,
    MOB_DIED,
    MOB_HURT,
    MOB_ON_LEAD,
    MOB_SWEPT,
    PLAYER_HURT,
    SNOW_GOLEM,
    YOUNG_BORN,
    rare_conditions,
    tick_items,
    tick_mobs,
)
from rllib_minestudio.env.voxel.entities.records import FALLING_CAPACITY, MOB_KINDS
from rllib_minestudio.env.voxel.game import (
    fire,
    husbandry,
    projectiles,
    screen_handling,
    spawning,
    use_and_drop,
)
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import STATISTIC_SCALE, GameState
from rllib_minestudio.env.voxel.game.loot import (
    Circumstances,
    drop_loot,
    drop_mob_loot,
    experience_of,
)
from rllib_minestudio.env.voxel.game.placement import lacks_half, other_half, stands
from rllib_minestudio.env.voxel.game.screen_handling import spill
from rllib_minestudio.env.voxel.game.use_and_drop import drop_held_item, is_vacant, use_item
from rllib_minestudio.env.voxel.items.items import (
    EMPTY,
    FOOD,
    ITEM_ID,
    ITEMS,
    POTION_ITEMS,
    POTIONS,
    counts_as_use,
    is_right_tool,
    mining_wear,
    potion_of,
)
from rllib_minestudio.env.voxel.player.locomotion import tick_player
from rllib_minestudio.env.voxel.player.player import (
    ATTACK,
    DROP,
    NO_SLOT,
    OPEN_INVENTORY,
    SNEAK,
    USE,
    clear_effects,
    feed,
    give_effect,
    read_camera,
    read_hotbar,
    read_keys,
    tick_effects,
)
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCKS,
    FALLS,
    bears,
    kind_of,
    lands,
    needs_others,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES

# ------- what becomes of blocks that a change has left without what they need, after Minecraft Java
# What becomes of blocks that a change has left without what they need, after Minecraft Java 1.16.
# Sand and gravel without ground fall. What has lost its support, or its other half, breaks and
# drops: torches, signs, rails, doors, plants. Whatever made the change counts alike: players,
# commands, blocks that fall, and blocks that broke a tick ago, so that a column of cactus breaks
# from the bottom up, one block a tick.
#
# The world lists the places that a change may concern; `notice` schedules a look at each of them.
# So the work of a tick has a limit, and the order of all places is the same in every process.
#
# A block that would land inside the player or a mob becomes an item there. Minecraft places the
# block, and the body inside suffocates or is pushed out; this engine implements neither.

FALL, SUPPORT = "fall", "support"
"""The kinds of scheduled ticks."""
_FALL_DELAY, _BREAK_DELAY = 2, 1
"""Ticks from a change to what becomes of it."""
_GRAVITY = 0.04
_DRAG = 0.98
MOST_LOOKS = 1024
"""Most places that are looked at in a tick, as each takes ten microseconds or more."""


def notice(state: GameState) -> None:
    """Schedule what becomes of the places that changes since the last tick's call may concern."""
    world, block_ticks = state.world, state.block_ticks
    for place in world.unsupported:
        block = world.block_at(*place)
        is_known = world.is_loaded(place[0], place[2])  # unless the player has been taken away
        if FALLS[kind_of(block)] or not is_known:
            block_ticks.schedule(FALL, place, _FALL_DELAY)
        if needs_others(block) or not is_known:
            block_ticks.schedule(SUPPORT, place, _BREAK_DELAY)
    world.unsupported.clear()


def break_unsupported(state: GameState, places: Iterator[Place]) -> None:
    """Break the blocks that still lack what they need; they drop what they yield to no tool.

    As in the game, a block drops nothing if only its other half is missing: what removed that half
    has dropped the whole.
    """
    world = state.world
    gone: dict[Place, int] = {}
    for place in islice(places, MOST_LOOKS):
        block = world.block_at(*place)
        if place in gone or not needs_others(block) or stands(block, place, world.block_next_to):
            continue
        gone[place] = AIR
        state.particles.burst(block, *place)
        if lacks_half(block, place, world.block_next_to):
            continue
        if (rest := other_half(place, block)) and world.is_loaded(rest[0][0], rest[0][2]):
            gone[rest[0]] = AIR
        drop_loot(state, block, None, place)
    world.set_blocks(gone)


# ------------------------------------------------------------------------------- falling blocks


def let_go(state: GameState, places: Iterator[Place]) -> None:
    """Turn blocks that still have no ground into falling ones, as many as there is room for."""
    world, falling = state.world, state.falling
    gone: dict[Place, int] = {}
    while falling.count < FALLING_CAPACITY and (place := next(places, None)) is not None:
        x, y, z = place
        block = world.block_at(x, y, z)
        if not FALLS[kind_of(block)] or bears(world.block_at(x, y - 1, z)):
            continue
        gone[place] = AIR
        row = falling.append()
        row["position"] = (x + 0.5, y, z + 0.5)
        row["block"] = block
    world.set_blocks(gone)


def _resting_layer(state: GameState, x: int, z: int, y: float, target: float) -> int | None:
    """Return the layer where a block that falls from y to `target` ends, or None.

    It falls through what has no body: into a flower, in whose place it cannot be put.
    """
    for layer in range(math.ceil(y) - 1, max(math.floor(target), 0) - 1, -1):
        if lands(state.world.block_at(x, layer, z)):
            return layer + 1
    return None


def move_falling(state: GameState) -> None:
    """Move the falling blocks by one tick, and place those that land."""
    falling = state.falling
    kept = np.ones(falling.count, bool)
    landed: dict[Place, int] = {}
    for row, record in enumerate(falling.records[: falling.count]):
        x, y, z = record["position"].tolist()
        if not state.world.is_loaded(x, z):
            continue
        speed = float(record["speed"]) + _GRAVITY
        column = math.floor(x), math.floor(z)
        layer = _resting_layer(state, *column, y, y - speed)
        record["speed"] = speed * _DRAG
        record["position"][1] = y - speed
        record["moved"][1] = -speed
        if layer is not None:
            kept[row] = False
            cell = (column[0], layer, column[1])
            block = int(record["block"])
            if cell not in landed and is_vacant(state, cell, block):
                landed[cell] = block
            else:
                state.scatter_item(kind_of(block), 1, (x, float(layer), z), DROP_DELAY)
        elif y - speed < 0.0:  # lost: it falls out of the world
            kept[row] = False
    falling.keep(kept)
    state.world.set_blocks(landed)


# ------------------------------ handling of a tick's events: loot, wear, pickups, meals, statistics

_EGG = ITEM_ID["egg"]
_ANIMALS_EXPERIENCE = 3
"""Most experience for an animal that the player kills; the least is one."""


def resolve_all(state: GameState) -> None:
    """Handle everything that has happened, in its order, and what comes of it."""
    index = 0
    while index < state.event_count[0]:  # handling an event may cause others
        _resolve(state, state.events[index])
        index += 1
    state.event_count[0] = 0


def _resolve(state: GameState, event: np.void) -> None:
    """Handle one event, an `EVENT_DTYPE` record."""
    kind, subject, amount = int(event["kind"]), int(event["subject"]), float(event["amount"])
    x, y, z = event["position"].tolist()
    if kind == MOB_HURT:
        state.count_damage(subject, amount)
        _wear_by_attack(state)
    elif kind == MOB_SWEPT:
        state.count_damage(subject, amount)
    elif kind == MOB_DIED:
        table = husbandry.loot_table(subject, int(event["coat"]), bool(event["is_young"]))
        case = Circumstances(
            by_player=amount > 0,
            on_fire=bool(event["is_burning"]),
            looting=state.player.held_level("looting") if amount > 0 else 0,
        )
        _die(state, subject, table, (x, y, z), case)
    elif kind == BLOCK_BROKEN:
        break_block(state, int(x), int(y), int(z))
    elif kind == ITEM_TOUCHED:
        _pick_up(state, subject - state.items.displaced)
    elif kind == PLAYER_HURT:
        state.statistics.add("custom", "damage_taken", round(amount * STATISTIC_SCALE))
    elif kind == FOOD_EATEN:
        _eat(state)
    elif kind == GRASS_EATEN:
        husbandry.eat_grass(state, state.mobs.records[subject])
    elif kind == YOUNG_BORN:
        husbandry.bear_young(state, state.mobs.records[subject], state.mobs.records[int(amount)])
    elif kind == EGG_LAID:
        state.scatter_item(_EGG, 1, (x, y, z), DROP_DELAY)


def _wear_by_attack(state: GameState) -> None:
    held = ITEMS.get(state.player.held_item)
    if held is not None and held.attack_wear:
        state.statistics.add("use_item", held.name)
        state.wear_tool(held.attack_wear)


def _die(
    state: GameState,
    kind: int,
    table: str,
    place: tuple[float, float, float],
    case: Circumstances,
) -> None:
    if case.by_player:
        state.statistics.add("kill_entity", MOB_KINDS[kind].name)
        state.statistics.add("custom", "mob_kills")
    if table:
        drop_mob_loot(state, table, place, case)
        if case.by_player and MOB_KINDS[kind].food:  # golems yield no experience
            state.player.experience += state.random_between(1, _ANIMALS_EXPERIENCE)


def break_block(state: GameState, x: int, y: int, z: int) -> None:
    """Break the block at (x, y, z) as mined by the player: drop its loot, count it, wear the tool.

    As in Minecraft, it drops and counts only if it was mined with the right tool.
    """
    block = state.world.block_at(x, y, z)
    kind = kind_of(block)
    if not state.world.set_block(x, y, z, AIR):
        return
    state.particles.burst(block, x, y, z)
    spill(state, (x, y, z))
    if rest := other_half((x, y, z), block):
        place, half = rest
        if state.world.block_at(*place) == half:
            state.world.set_block(*place, AIR)
    held = ITEMS.get(state.player.held_item)
    if is_right_tool(held, kind):
        state.statistics.add("mine_block", BLOCKS[kind].name)
        silk_touch = state.player.held_level("silk_touch") > 0
        drop_loot(state, block, held, (x, y, z), silk_touch)
        if not silk_touch:
            state.player.experience += experience_of(state, BLOCKS[kind].name)
    if held is not None and held.mining_wear:
        if counts_as_use(held, kind):
            state.statistics.add("use_item", held.name)
        state.wear_tool(mining_wear(held, kind))


def _eat(state: GameState) -> None:
    player = state.player
    food = FOOD.get(player.held_item)
    if food is None:  # dropped in the same tick
        return
    feed(player, food.nutrition, food.saturation)
    if food.cures:
        clear_effects(player, None if food.cures == "all" else food.cures)
    effects = food.effects
    if player.held_item in POTION_ITEMS:
        effects = POTIONS[potion_of(player.held_data)]
    for effect in effects:
        if effect.chance >= 1.0 or state.random() < effect.chance:
            give_effect(player, effect.name, effect.amplifier, effect.ticks, state.hurt_player)
    state.count_use()
    state.use_up(ITEM_ID[food.leaves] if food.leaves else EMPTY)


def _pick_up(state: GameState, row: int) -> None:
    if row < 0:  # displaced by others in this tick
        return
    dropped = state.items.records[row]
    item, quantity = int(dropped["item"]), int(dropped["quantity"])
    left = state.player.inventory.add(item, quantity, int(dropped["data"]))
    if left < quantity:
        state.statistics.add("pickup", ITEMS[item].name, quantity - left)
        dropped["quantity"] = left  # an empty stack vanishes in the next tick


# -------------------------------------------------------------- a game: its beginning and its ticks

BLOCK_TICKS: dict[str, Callable[[GameState, Iterator[Place]], None]] = {
    FALL: let_go,
    use_and_drop.RELEASE: use_and_drop.release,
    SUPPORT: break_unsupported,
    fire.BURN: fire.burn,
}
"""What happens at the scheduled ticks of blocks, by their kind. A handler takes the places in their
order; those that it leaves are due again in the next tick."""


class Game:
    """One game.

    Attributes:
        state: Everything that the game consists of.
    """

    def __init__(self) -> None:
        self.state = GameState()

    def begin(self, seed: int, biome: str | None, natural_animals: bool = False) -> None:
        """Create a new world and put the player on it.

        Args:
            seed: Any integer; it and the actions determine the whole game.
            biome: One of `BIOMES` to begin in; None to begin at the origin.
            natural_animals: Whether herds come with the land.
        """
        state = self.state
        state.reset(seed, natural_animals)
        screen_handling.prepare_inventory(state)
        x, z = 0, 0
        if biome is not None:
            x, z = spawning.find_biome(state, BIOMES.index(biome), x, z) or (x, z)
        spawning.teleport(state, *spawning.surface_place(state, x, z))
        state.player.yaw = state.random() * 360.0
        state.herds.follow(state.world, state.mobs)

    def tick(self, action: Mapping[str, Any]) -> None:
        """Advance the game by one tick (1/20 s).

        Args:
            action: MineStudio's env action. Missing keys are not held. It is not modified.

        Raises:
            InvalidActionError: If the camera is not finite; the game is then unchanged.
        """
        state = self.state
        pitch, yaw = read_camera(action)
        keys = read_keys(action)
        before, state.held_keys = state.held_keys, keys
        slot = read_hotbar(action)
        if slot == state.held_slot:
            slot = NO_SLOT
        else:
            state.held_slot = slot
        pressed = keys & ~before
        if state.player_dead or state.bed is not None:
            keys, pressed, pitch, yaw = 0, 0, 0.0, 0.0
        elif state.screen is not None and not pressed & OPEN_INVENTORY:
            screen_handling.play_screen(state.screen, keys, before, slot, pitch, yaw)
            keys, pressed, pitch, yaw = 0, 0, 0.0, 0.0
        else:
            keys, pressed = self._play_world(keys, pressed, slot)
        self._simulate(keys, pressed, pitch, yaw)
        state.tick_name()
        if state.rules["doDaylightCycle"] == "true":
            state.time += 1
        state.game_time += 1
        if state.player.health <= 0.0 and not state.player_dead:
            state.player_dead = True
            spawning.die(state)
        if state.bed is not None:
            spawning.tick(state)

    def _play_world(self, keys: int, pressed: int, slot: int) -> tuple[int, int]:
        """Apply a tick's keys to the hotbar and the inventory screen.

        Returns:
            Bits of the held keys, and of the pressed ones, that act on the world.
        """
        state = self.state
        if slot != NO_SLOT:
            state.player.selected = slot
        if pressed & OPEN_INVENTORY:
            if state.screen is None:
                # The camera still turns the head in this tick, but all keys count as released.
                screen_handling.open_inventory(state)
                return 0, 0
            screen_handling.close(state)
            # The attack key must be released first, even if it was pressed in this tick.
            state.dead_keys &= ~pressed | ATTACK
        state.dead_keys &= keys
        return keys & ~state.dead_keys, pressed

    def _simulate(self, keys: int, pressed: int, pitch: float, yaw: float) -> None:
        state = self.state
        player, mobs, items = state.player, state.mobs, state.items
        blocks, players = state.world.blocks, player.records
        events, event_count = state.events, state.event_count
        player.update_equipment()
        drawn = projectiles.ready_bow(state) if player.equipped == projectiles.BOW else 0
        uses = bool(keys & USE)
        # From the last tick's keys, which `tick_player` replaces.
        sneaks = uses and bool(players["keys"][0] & SNEAK)
        tick_player(
            blocks,
            players,
            mobs.records,
            mobs.count,
            state.target,
            keys,
            pitch,
            yaw,
            events,
            event_count,
        )
        if drawn and not players["eating_ticks"][0]:
            projectiles.shoot(state, drawn)
        if state.particles.count:
            state.particles.tick(blocks)
        if pressed & DROP:
            drop_held_item(state)
        if uses and (pressed & USE or not players["use_delay"][0]):
            use_item(state, sneaks)
        x, _, z = player.position.tolist()
        state.world.load_around(x, z)
        state.world.make_ahead(x, z)
        state.herds.follow(state.world, state.mobs)
        if mobs.count:
            mobs.count = tick_mobs(
                blocks, mobs.records, mobs.count, players, state.rng, events, event_count
            )
        conditions = rare_conditions(blocks, player.position, mobs.records, mobs.count)
        if conditions & SNOW_GOLEM:
            husbandry.tick_snow_golems(state)
        if conditions & MOB_ON_LEAD:
            husbandry.tick_leads(state)
        if items.count:
            items.count = tick_items(
                blocks, items.records, items.count, players, events, event_count
            )
        if player.effects:
            tick_effects(player, state.hurt_player)
        if state.thrown.count:
            projectiles.tick(state)
        in_lava, mobs_burn = bool(conditions & IN_LAVA), bool(conditions & MOB_BURNS)
        fire.tick(state, in_lava=in_lava, mobs_burn=mobs_burn)
        if conditions & IN_PORTAL:
            fire.log_missing_nether()
        items.displaced = 0
        resolve_all(state)
        if players["hits_block"][0]:
            state.particles.hit(blocks, state.target)
        if state.world.unsupported:
            notice(state)
        for kind, places in state.block_ticks.advance(state.world):
            BLOCK_TICKS[kind](state, places)
        if state.falling.count:
            move_falling(state)
        if state.block_entities:
            state.block_entities.tick(state.world)
        if state.screen is not None:
            screen_handling.close_if_out_of_reach(state, state.screen)
