"""Goals of mobs: the same as ever for cows, sheep and pigs; a table that is checked."""

import csv
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities import goals
from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID, MOB_KINDS
from rllib_minestudio.env.voxel.world.blocks import STONE
from rllib_minestudio.errors import EngineError
from tests.env.voxel.arena import FLOOR, arena, state

FACTS = Path(__file__).parents[5] / "shared" / "data" / "minecraft_1_16_5" / "entities.csv"


def trajectories(engine, seed, ticks=600):
    """Places, angles and legs of twelve mobs among walls, rounded, int64 [ticks, mobs, 5].

    Some are near the player, who stands still; some are hurt now and then.
    """
    game = state(engine)
    game.mobs.clear()
    game.rng[0] = seed
    for number in range(12):
        x, z = 3.5 * (number % 4) - 5.25, 3.5 * (number // 4) - 3.0
        game.spawn_mob(number % 3, x, float(FLOOR), z)
    found = []
    for tick in range(ticks):
        if tick % 150 == 100:
            game.mobs.records["panic_ticks"][tick // 150] = 100
        engine.tick({})
        mobs = game.mobs
        columns = (mobs.position, mobs.yaw[:, None], mobs.limb_swing[:, None])
        found.append(np.rint(np.concatenate(columns, axis=1) * 1e4).astype(np.int64))
    return np.array(found)


DIGEST = "2b982965476d744359a479e98d533c699c62c8f090bc06633fb2618eb0917ebb"
"""Of the trajectories with seeds 1 to 4, from the commit in which sheep began to graze."""


def test_cows_sheep_and_pigs_do_what_they_always_did():
    engine = arena()
    world = state(engine).world
    for side in (-9, 9):
        world.fill((side, side + 1), (FLOOR, FLOOR + 3), (-9, 10), STONE)
        world.fill((-9, 10), (FLOOR, FLOOR + 3), (side, side + 1), STONE)
    world.fill((3, 7), (FLOOR, FLOOR + 1), (3, 7), STONE)
    digest = hashlib.sha256()
    for seed in range(1, 5):
        digest.update(trajectories(engine, seed).tobytes())
    assert digest.hexdigest() == DIGEST


def test_a_goal_is_interrupted_by_more_urgent_ones_only():
    engine = arena()
    game = state(engine)
    game.spawn_mob(MOB_KIND_ID["cow"], 3.5, float(FLOOR), 3.5)
    order = [goals.GOAL_CODE[name] for name, _ in MOB_KINDS[0].goals]
    before, seen = goals.NO_GOAL, set()
    for tick in range(6000):
        if tick % 500 == 0:
            game.mobs.records["panic_ticks"][0] = 100
        engine.tick({})
        now = int(game.mobs.records["goal"][0])
        left = int(game.mobs.records["goal_ticks"][0])
        if now not in (before, goals.NO_GOAL) and before != goals.NO_GOAL and left > 0:
            assert order.index(now) < order.index(before)
            seen.add((before, now))
        before = now
    assert (goals.LOOK, goals.PANIC) in seen or (goals.STROLL, goals.PANIC) in seen


def test_a_goal_that_does_not_exist_is_refused_by_name(monkeypatch):
    odd = replace(MOB_KINDS[0], goals=(("dance", 1.0),))
    with pytest.raises(EngineError, match="cow has the goal 'dance', which is not one of panic,"):
        goals._codes(odd)


@pytest.mark.skipif(not FACTS.is_file(), reason="the facts are not at hand")
def test_bodies_have_minecrafts_sizes():
    with FACTS.open(newline="") as file:
        sizes = {
            row["entity"]: (float(row["width"]), float(row["height"]))
            for row in csv.DictReader(file)
        }
    for kind in MOB_KINDS:
        assert (kind.width, kind.height) == sizes[kind.name]
