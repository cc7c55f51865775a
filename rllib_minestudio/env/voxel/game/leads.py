"""Leads, as in Minecraft Java 1.16: an animal follows the player, or stays near a fence.

An animal farther than `_SLACK` blocks from the player or its fence walks there; beyond `_TAUT` it
is pulled, and beyond `_LONGEST` the lead comes off and drops.
"""

from __future__ import annotations

import math

import numpy as np

from rllib_minestudio.env.voxel.entities.goals import NO_GOAL, STROLL
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import LED, MOB_KINDS, TIED, UNTIED
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.block_states import FAMILY_OF

LEAD = ITEM_ID["lead"]
_SLACK, _TAUT, _LONGEST = 2.0, 6.0, 10.0
"""Blocks from the holder within which the animal stands, beyond which it is pulled, and beyond
which the lead comes off."""
_PULL = 0.4
_KNOT_REACH = 7.0
"""Distance from a fence within which the animals that the player leads are tied to it."""
_STEP_TICKS = 10


def animals(item: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of an index in `MOB_KINDS` and an item, for all kinds."""
    return tuple((kind, item) for kind in range(len(MOB_KINDS)))


def take_or_let_go(state: GameState, animal: np.void) -> bool:
    """Put an animal on a lead, or take it off the one in the hand.

    Returns:
        Whether anything was done: one that is tied to a fence stays.
    """
    if animal["leash"] != UNTIED:
        return let_go(state, animal)
    animal["leash"] = LED
    state.count_use()
    state.use_up()
    return True


def let_go(state: GameState, animal: np.void) -> bool:
    """Take an animal off the lead in the hand, which drops; return whether it was on one."""
    if animal["leash"] != LED:
        return False
    _come_off(state, animal)
    return True


def tie(state: GameState, place: Place) -> bool:
    """Tie the animals that the player leads to a fence, or untie those of its knot.

    Returns:
        Whether there were any.
    """
    if FAMILY_OF[state.world.kind_at(*place)].name != "fence":
        return False
    mobs = state.mobs.records[: state.mobs.count]
    middle = np.array(place) + 0.5
    led = [
        mob
        for mob in mobs
        if mob["leash"] == LED and np.abs(mob["position"] - middle).max() <= _KNOT_REACH
    ]
    for mob in led:
        mob["leash"], mob["knot"] = TIED, place
    tied = [mob for mob in mobs if mob["leash"] == TIED and tuple(mob["knot"]) == place]
    if not led:
        for mob in tied:
            _come_off(state, mob)
    return bool(led or tied)


def tick(state: GameState) -> None:
    """Let animals on leads follow, be pulled, or come off."""
    mobs = state.mobs.records[: state.mobs.count]
    for row in np.flatnonzero(mobs["leash"]).tolist():
        _follow(state, mobs[row])


def _follow(state: GameState, animal: np.void) -> None:
    """Pull an animal towards its holder, or let it walk there."""
    if animal["leash"] == TIED:
        place = tuple(animal["knot"].tolist())
        is_loaded = state.world.is_loaded(place[0], place[2])
        if is_loaded and FAMILY_OF[state.world.kind_at(*place)].name != "fence":
            _come_off(state, animal)
            return
        holder = np.array(place) + 0.5
    else:
        holder = state.player.position
    if animal["death_ticks"] or (animal["leash"] == LED and state.player_dead):
        _come_off(state, animal)
        return
    apart = holder - animal["position"]
    distance = math.sqrt(float(apart @ apart))
    if distance > _LONGEST:
        _come_off(state, animal)
    elif distance > _TAUT:
        along = apart / distance
        animal["velocity"] += np.copysign(along * along * _PULL, along)
    elif distance > _SLACK and animal["goal"] in (NO_GOAL, STROLL):
        step = apart / distance * (distance - _SLACK)
        animal["goal"], animal["goal_ticks"], animal["follows_player"] = STROLL, _STEP_TICKS, 0
        animal["goal_x"] = animal["position"][0] + step[0]
        animal["goal_z"] = animal["position"][2] + step[2]


def _come_off(state: GameState, animal: np.void) -> None:
    animal["leash"] = UNTIED
    x, y, z = animal["position"].tolist()
    state.scatter_item(LEAD, 1, (x, y + 0.5, z), DROP_DELAY)
