"""Plays episodes of random keys, cameras, commands and views, and checks the engine every tick.

    python -m tests.env.voxel.fuzz --first 0 --episodes 250 --ticks 4000

prints a line for each episode with a hash of all that happened and was seen in it, and stops with
the first thing that is wrong: an exception, a number that is not finite or out of its range, a
player whom a tick moved into a block, an item that a screen made or lost, something kept that is
not what a rebuild makes of it, or ten seconds of the processor's time without progress. `--first
N --episodes 1` plays episode N again.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import math
import signal
import time
from collections import Counter
from functools import cache
from random import Random
from typing import Any

import numpy as np

from rllib_minestudio.env.voxel.data import DAY_TICKS
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.player.player import (
    MAX_FOOD,
    SNEAKING_HEIGHT,
    STANDING_HEIGHT,
    WIDTH,
)
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.blocks import FAMILY_OF, SCREENS
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW
from rllib_minestudio.env.voxel.world.climate import BIOMES
from tests.env.voxel.caches import check_caches
from tests.env.voxel.fuzz_commands import random_command
from tests.env.voxel.fuzz_hands import Hands
from tests.env.voxel.ledger import can_lose_items, count_items

DEADLINE = 10.0
"""Seconds without progress after which the program ends, telling where it hangs.

They are the processor's, so that a busy machine changes no verdict; the rebuild takes one.
"""
_TICKS_PER_DEADLINE = 50
_TICKS_PER_CHECK = 1000
"""Ticks between two rebuilds of everything that is kept; each takes as long as a thousand ticks."""

_SIZES = ((8, 8), (9, 33), (32, 32), (64, 64), (128, 128), (120, 67))
_AROUND = 2
"""Columns around the player in which it is remembered where there were blocks before a tick."""


_KIT = (
    *("diamond_pickaxe", "iron_sword", "dirt 64", "sand 64", "iron_shovel", "crafting_table 9"),
    *("furnace 9", "chest 9", "oak_log 64", "coal 9", "iron_ore 9", "stick 9", "cobblestone 64"),
    *("iron_ingot 20", "iron_boots", "milk_bucket", "bucket 9", "oak_planks 64"),
    *("shears", "lead 9", "wheat 64", "red_bed", "lapis_lazuli 64", "snow_block 64"),
)
_USED = (
    *("shears", "lead 9", "wheat 64", "carrot 64", "wheat_seeds 64", "red_dye 64", "bucket 16"),
    *('potion{Potion:"strong_harming"}', 'potion{Potion:"poison"}', "milk_bucket", "red_bed"),
    *("carved_pumpkin 64", 'diamond_sword{Enchantments:[{id:"fire_aspect",lvl:2}]}'),
    *("flint_and_steel", "fire_charge 64", "obsidian 64", "snowball 16", "egg 16"),
    *("arrow 64", 'bow{Enchantments:[{id:"power",lvl:3},{id:"flame",lvl:1}]}'),
    *("experience_bottle 64", 'splash_potion{Potion:"harming"}', 'splash_potion{Potion:"water"}'),
)
"""Items that do something to animals, to blocks or to the player."""
_FRIENDS = ("cow", "sheep", "pig", "chicken", "snow_golem", "iron_golem")
_PLACED = [
    ITEMS[kind].name for kind, family in enumerate(FAMILY_OF) if family.placed and kind in ITEMS
]
"""Items whose blocks are put in a state that depends on where the player clicks and looks."""
Ledger = tuple[Counter[int], dict[str, int]]
"""Items by id, and how many of each were crafted."""
Blocks = tuple[int, int, np.ndarray]
"""The player's column (x, z), and the block ids around it as they were, uint16 [x, z, y]."""


class Episode:
    """One engine, played from one number on."""

    def __init__(self, number: int) -> None:
        self._random = random = Random(number)
        self._engine = VoxelEngine(
            frame_size=random.choice(_SIZES),
            fov_degrees=random.choice((10.0, 70.0, 70.0, 150.0)),
            aspect=random.choice((0.2, 1.0, 16 / 9, 5.0)),
            view_distance=random.choice((16.0, 64.0, 80.0)),
        )
        self._hands = Hands(random)
        self._digest = hashlib.blake2b(digest_size=16)
        self._dead_ticks = 0
        self._last_command = ""
        self._begin(number)

    @property
    def _state(self) -> GameState:
        return self._engine._game.state

    def play(self, ticks: int) -> str:
        """Plays so many ticks; returns the hash of what happened.

        Raises:
            RuntimeError: With the tick and the last command, from whatever went wrong.
        """
        for tick in range(ticks):
            if tick % _TICKS_PER_DEADLINE == 0:
                signal.setitimer(signal.ITIMER_PROF, DEADLINE)
            try:
                self._tick()
                if tick % _TICKS_PER_CHECK == _TICKS_PER_CHECK - 1:
                    check_caches(self._engine)
                    self._digest.update(self._state.world.blocks.tobytes())
            except Exception as error:
                raise RuntimeError(
                    f"tick {tick}, after the command {self._last_command!r}"
                ) from error
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        return self._digest.hexdigest()

    def _tick(self) -> None:
        random, engine = self._random, self._engine
        if random.random() < 0.02:
            self._command(random_command(random))
        self._find_a_way_out()
        if self._state.screen is None and random.random() < 0.01:
            self._visit_a_station()
        if self._state.screen is None and random.random() < 0.01:
            self._command(f"/replaceitem entity @p weapon {random.choice(_PLACED)} 64")
            self._hands.build_around()
        if self._state.screen is None and random.random() < 0.01:
            self._meet_somebody()
        was_free, before = self._is_free(), self._blocks_around()
        action = self._hands.action(self._state.screen, engine.player.pitch)
        ledger = self._open_ledger(action)
        engine.tick(action)
        self._check_numbers()
        self._check_ledger(ledger)
        if was_free:
            self._check_free(before)
        self._hash_state()
        if random.random() < 0.05:
            self._look()
        if random.random() < 0.05:
            self._tell()

    def _visit_a_station(self) -> None:
        """Puts a block with a screen in front of the player, and has it used."""
        x, y, z = self._engine.player.position.tolist()
        yaw = math.radians(self._engine.player.yaw)
        x, z = x - 1.5 * math.sin(yaw), z + 1.5 * math.cos(yaw)
        station = self._random.choice((*SCREENS, "red_bed", "pumpkin", "oak_fence"))
        self._command(f"/setblock {x // 1:.0f} {y // 1 + 1:.0f} {z // 1:.0f} {station}")
        self._hands.visit()

    def _meet_somebody(self) -> None:
        """Puts an animal or a golem in front of the player, and something for it into the hand."""
        random, (x, y, z) = self._random, self._engine.player.position.tolist()
        yaw = math.radians(self._engine.player.yaw)
        at = f"{x - 1.5 * math.sin(yaw):.2f} {y:.2f} {z + 1.5 * math.cos(yaw):.2f}"
        data = f"{{Age:{random.choice((0, -9, -24000))},Color:{random.randrange(16)}}}"
        self._command(f"/summon {random.choice(_FRIENDS)} {at} {data}")
        item, _, count = random.choice(_USED).partition(" ")
        self._command(f"/replaceitem entity @p weapon {item} {count or 1}")
        self._command(f"/time set {random.choice((1000, 13000, 20000))}")
        self._hands.visit()

    def _command(self, text: str) -> None:
        self._last_command = text
        result = self._engine.execute(text)
        assert isinstance(result.message, str) and result.message
        self._digest.update(repr(result).encode())

    def _begin(self, seed: int) -> None:
        biome = self._random.choice((None, *BIOMES))
        self._engine.reset(seed, biome, natural_animals=self._random.random() < 0.5)
        for item in _KIT:
            self._command(f"/give @p {item}")

    def _find_a_way_out(self) -> None:
        """Now and then begins anew after death, and leaves where nothing more would happen."""
        random, engine = self._random, self._engine
        self._dead_ticks = self._dead_ticks + 1 if engine.player_dead else 0
        if self._dead_ticks > 30 and random.random() < 0.1:
            if random.random() < 0.5:
                self._begin(random.getrandbits(40))
                return
            self._command("/kill @p")
        x, y, z = engine.player.position.tolist()
        lost = not -1.0 <= y <= HEIGHT + 10.0 or not self._is_free()
        if lost and not engine.player_dead and random.random() < 0.03:
            if random.random() < 0.2:
                self._command(f"/teleportbiome @p {random.choice(BIOMES)}")
            else:
                self._command(f"/tp @p ~ {self._state.world.surface(x, z)} ~")

    def _look(self) -> None:
        """Draws a frame, seldom a large one; all depths are numbers."""
        size = (640, 360) if self._random.random() < 0.002 else self._engine._frame_size
        frame = self._engine.render(frame_size=size)
        depth = self._engine._renderers[size].depth
        assert np.isfinite(depth).all() and depth.min() >= 0.0, "depth"
        self._digest.update(frame.tobytes())

    def _check_numbers(self) -> None:
        state = self._state
        player = state.player
        bodies = (state.mobs, state.items, state.particles)
        for rows in (player.records, *(body.records[: body.count] for body in bodies)):
            words = rows.view(np.float64).reshape(len(rows), rows.itemsize // 8)
            assert np.isfinite(words[:, _float_words(rows.dtype)]).all(), f"not finite: {rows}"
        assert -90.0 <= player.pitch <= 90.0 and -180.0 <= player.yaw <= 180.0, "angles"
        assert 0.0 <= player.health <= 20.0 and 0 <= player.food <= MAX_FOOD, "health or food"
        x, _, z = player.position.tolist()
        assert max(abs(x), abs(z)) <= physics.FARTHEST, "beyond the end of the world"
        assert 0 <= state.daytime < DAY_TICKS, "daytime"
        assert ((player.inventory.item == 0) == (player.inventory.quantity == 0)).all(), "stacks"

    def _open_ledger(self, action: dict[str, Any]) -> Ledger | None:
        """What there is before a tick that can neither make nor lose items by other ways."""
        state = self._state
        in_world = action.get("inventory") and (action.get("attack") or action.get("use"))
        if state.screen is None or in_world or can_lose_items(state):
            return None
        return count_items(state), state.statistics.copy()["craft_item"]

    def _check_ledger(self, before: Ledger | None) -> None:
        """A screen that was open has neither made nor lost items, unless it crafted some."""
        state = self._state
        if before is None or can_lose_items(state):  # also a furnace that has just been lit
            return
        if state.statistics.copy()["craft_item"] == before[1]:
            now = count_items(state)
            assert now == before[0], f"{now - before[0]} too many, {before[0] - now} too few"

    def _tell(self) -> None:
        """Asks for the info with some blocks and all mobs; it holds nothing but finite numbers."""
        box = tuple(self._random.randint(*ends) for ends in ((-3, 0), (0, 3)) * 3)
        info = self._engine.info(voxels=box, mobs=(-1000, 1000, -1000, 1000, -1000, 1000))
        for stack in info["inventory"].values():
            limit = 0 if stack["type"] == "none" else ITEMS[ITEM_ID[stack["type"]]].max_stack
            assert 0 <= stack["quantity"] <= limit, f"stack {stack}"
        self._digest.update(json.dumps(info, sort_keys=True, allow_nan=False).encode())

    def _hash_state(self) -> None:
        state, digest = self._state, self._digest
        digest.update(state.player.records.tobytes())
        digest.update(state.rng.tobytes())
        digest.update(state.player.inventory.item.tobytes())
        digest.update(state.player.inventory.quantity.tobytes())
        digest.update(state.mobs.records[: state.mobs.count].tobytes())
        digest.update(state.items.records[: state.items.count].tobytes())
        digest.update(state.particles.records[: state.particles.count].tobytes())
        if state.screen is not None:
            digest.update(repr(state.screen.view()).encode())
        for container in state.block_entities:
            digest.update(repr(container.stacks).encode())

    def _is_free(self) -> bool:
        x, y, z = self._engine.player.position.tolist()
        # The border of the world cuts a step off, wherever that leads.
        if max(abs(x), abs(z)) > physics.FARTHEST - 1.0:
            return False
        return physics.is_free(self._state.world.blocks, x, y, z, WIDTH / 2, self._height)

    @property
    def _height(self) -> float:
        return SNEAKING_HEIGHT if self._engine.player.sneaking else STANDING_HEIGHT

    def _blocks_around(self) -> Blocks:
        x, _, z = (int(value // 1) for value in self._engine.player.position.tolist())
        layers = self._state.world.blocks.reshape(WINDOW, WINDOW, HEIGHT)
        span = np.arange(-_AROUND, _AROUND + 1)
        return x, z, layers[((x + span) % WINDOW)[:, None], (z + span) % WINDOW]

    def _check_free(self, before: Blocks) -> None:
        """A player who was in no block is in none after the tick, unless blocks around changed.

        Motion ends at blocks, nobody builds into a player, and who cannot stand up goes on
        sneaking. What falls may come to rest in a player, a door may close on one, and a fence
        reach out, as in Minecraft.
        """
        x, y, z = self._engine.player.position.tolist()
        if max(abs(x), abs(z)) > physics.FARTHEST - 1.0 or self._is_free():
            return
        now = self._blocks_around()
        changed = now[:2] != before[:2] or not np.array_equal(now[2], before[2])
        assert changed, f"{(x, y, z)} is in a block"


@cache
def _float_words(dtype: np.dtype) -> list[int]:
    """Where the floating-point numbers of a record are, in words of eight bytes."""
    return [
        offset // 8 + index
        for field, offset in (value[:2] for value in dtype.fields.values())
        if field.base == np.float64
        for index in range(field.itemsize // 8)
    ]


def main() -> None:
    """Plays the episodes that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="number of the first episode")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--ticks", type=int, default=1000, help="of each episode")
    options = parser.parse_args()
    began = time.monotonic()
    faulthandler.register(signal.SIGPROF, chain=True)  # the signal itself ends the program
    VoxelEngine()  # compiles the kernels, which may take longer than the deadline
    for number in range(options.first, options.first + options.episodes):
        print(number, Episode(number).play(options.ticks), flush=True)
    print(f"# {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
