"""Handling of a tick's events: loot, wear, pickups, meals, statistics."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.entities.mobs import (
    BLOCK_BROKEN,
    DROP_DELAY,
    EGG_LAID,
    FOOD_EATEN,
    GRASS_EATEN,
    ITEM_TOUCHED,
    MOB_DIED,
    MOB_HURT,
    MOB_SWEPT,
    PLAYER_HURT,
    YOUNG_BORN,
)
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game import husbandry
from rllib_minestudio.env.voxel.game.game_state import STATISTIC_SCALE, GameState
from rllib_minestudio.env.voxel.game.loot import (
    Circumstances,
    drop_loot,
    drop_mob_loot,
    experience_of,
)
from rllib_minestudio.env.voxel.game.placement import other_half
from rllib_minestudio.env.voxel.game.screen_handling import spill
from rllib_minestudio.env.voxel.items.item_data import POTION_ITEMS, POTIONS, potion_of
from rllib_minestudio.env.voxel.items.items import (
    EMPTY,
    FOOD,
    ITEM_ID,
    ITEMS,
    counts_as_use,
    is_right_tool,
    mining_wear,
)
from rllib_minestudio.env.voxel.player.player import clear_effects, feed, give_effect
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS

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
