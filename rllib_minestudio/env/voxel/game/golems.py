"""Golems, as in Minecraft Java 1.16: a pumpkin's face on top of snow or iron brings them to life.

A snow golem leaves snow where it is not too warm, and melts where it is hot. What the game's golems
do to monsters they cannot do here, since there are none; an iron golem that a player built never
attacks players, and one that a command summoned does not here either.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.entities.records import MOB_CAPACITY, MOB_KIND_ID
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import is_supported
from rllib_minestudio.env.voxel.world.block_states import block_of
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at

_FACES = frozenset((BLOCK_ID["carved_pumpkin"], BLOCK_ID["jack_o_lantern"]))
_SNOW_BLOCK, _IRON_BLOCK = BLOCK_ID["snow_block"], BLOCK_ID["iron_block"]
_SNOW, _SNOW_GOLEM = block_of(BLOCK_ID["snow"], {}), MOB_KIND_ID["snow_golem"]
_TEMPERATURE = {row["biome"]: float(row["temperature"]) for row in read_csv("biomes.csv")}
_MELTS, _SNOWS = 1.0, 0.8
"""Temperature of a biome above which snow golems melt, and below which they leave snow."""
_MELTING, _MELTING_TICKS = 1.0, 10
"""Health that a melting golem loses, and how often: it is shielded in between."""
_TRACK = tuple((dx, dz) for dx in (-0.25, 0.25) for dz in (-0.25, 0.25))
"""The corners of a snow golem's track from its middle, in blocks."""


class _Form(NamedTuple):
    """What a golem is made of.

    Attributes:
        mob: Its name.
        kind: The kind of its blocks.
        blocks: Where they are from the pumpkin: along an axis, and up.
        empty: Where there must be nothing.
        feet: Where it stands up, upwards from the pumpkin.
    """

    mob: str
    kind: int
    blocks: tuple[tuple[int, int], ...]
    empty: tuple[tuple[int, int], ...]
    feet: int


_FORMS = (
    _Form("snow_golem", _SNOW_BLOCK, ((0, -1), (0, -2)), (), -2),
    _Form(
        "iron_golem",
        _IRON_BLOCK,
        ((0, -1), (-1, -1), (1, -1), (0, -2)),
        ((-1, 0), (1, 0), (-1, -2), (1, -2)),
        -2,
    ),
)


def come_to_life(state: GameState, place: Place) -> bool:
    """Let a golem rise if the pumpkin that was put at a place completes one.

    Its blocks vanish without a drop.
    """
    world = state.world
    if world.kind_at(*place) not in _FACES or state.mobs.count == MOB_CAPACITY:
        return False
    x, y, z = place
    for form in _FORMS:
        for dx, dz in ((1, 0), (0, 1)):
            body = [(x + along * dx, y + up, z + along * dz) for along, up in form.blocks]
            empty = [(x + along * dx, y + up, z + along * dz) for along, up in form.empty]
            if all(world.kind_at(*cell) == form.kind for cell in body) and all(
                world.kind_at(*cell) == AIR for cell in empty
            ):
                for cell in (place, *body):
                    state.particles.burst(world.block_at(*cell), *cell)
                world.set_blocks(dict.fromkeys((place, *body), AIR))
                feet = (x + 0.5, y + form.feet + 0.05, z + 0.5)
                state.mobs.add(MOB_KIND_ID[form.mob], feet, 0.0)
                return True
    return False


def tick_snow_golems(state: GameState) -> None:
    """Let snow golems melt where it is hot, and leave snow where it is not warm."""
    world, mobs = state.world, state.mobs
    for row, golem in enumerate(mobs.records[: mobs.count]):
        if golem["kind"] != _SNOW_GOLEM or golem["death_ticks"]:
            continue
        x, y, z = golem["position"].tolist()
        biome = BIOMES[biome_at(math.floor(x), math.floor(z), world.seed)]
        if _TEMPERATURE[biome] > _MELTS and state.game_time % _MELTING_TICKS == 0:
            state.hurt_mob(row, _MELTING)
        if _TEMPERATURE[biome] < _SNOWS:
            for dx, dz in _TRACK:
                cell = math.floor(x + dx), math.floor(y), math.floor(z + dz)
                if world.kind_at(*cell) == AIR and is_supported(_SNOW, cell, world.block_at):
                    world.set_block(*cell, _SNOW)
