"""Leads: who is led, tied, pulled, and when a lead comes off."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import LED, MOB_KIND_ID, TIED, UNTIED
from rllib_minestudio.env.voxel.game import husbandry
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

FENCE = (0, FLOOR, 5)


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage without anything on it, the player with two leads."""
    engine = cleared(stage, pitch=20.0)
    engine.player.inventory.set(0, ITEM_ID["lead"], 2)
    return engine


def cow(engine, *, at=(0.5, 2.0), **fields):
    game = state(engine)
    game.spawn_mob(MOB_KIND_ID["cow"], at[0], float(FLOOR), at[1])
    record = game.mobs.records[game.mobs.count - 1]
    for name, value in fields.items():
        record[name] = value
    return record


def away(engine, mob):
    return float(np.linalg.norm(mob["position"] - engine.player.position))


def lying(engine):
    return [ITEMS[item].name for item in state(engine).items.item.tolist()]


def test_a_lead_is_used_up_counted_and_comes_off_by_hand(engine):
    mob = cow(engine)
    before = state(engine).statistics.copy()["use_item"].get("lead", 0)
    engine.tick({})
    engine.tick({"use": 1})
    assert mob["leash"] == LED and engine.player.inventory[0].quantity == 1
    assert state(engine).statistics.copy()["use_item"]["lead"] == before + 1
    engine.player.inventory.clear()
    mob["position"] = (0.5, FLOOR, 2.0)
    ticks(engine, 6)
    engine.tick({"use": 1})
    assert mob["leash"] == UNTIED and lying(engine) == ["lead"]


def test_an_animal_on_a_lead_comes_along(engine):
    mob = cow(engine, leash=LED, at=(0.5, 5.5))
    ticks(engine, 120)
    assert away(engine, mob) < 3.5
    for step in range(200):
        engine.player.position[2] -= 0.1
        engine.tick({})
        if step % 50 == 0:
            assert away(engine, mob) <= 10.0
    assert mob["leash"] == LED
    free = cow(engine, at=(5.5, 5.5))
    for _ in range(200):
        engine.player.position[2] -= 0.1
        engine.tick({})
    assert away(engine, free) > 10.0 > away(engine, mob)


def test_beyond_six_blocks_it_is_pulled_and_beyond_ten_it_comes_off(engine):
    mob = cow(engine, leash=LED, at=(0.5, 8.5))
    engine.tick({})
    assert mob["velocity"][2] < -0.1
    mob["position"] = (0.5, FLOOR, 11.0)
    engine.tick({})
    assert mob["leash"] == UNTIED and lying(engine) == ["lead"]


def test_the_pull_is_minecrafts(engine):
    mob = cow(engine, leash=LED)
    mob["position"] = engine.player.position + np.array([3.0, 0.0, 6.0])
    before = mob["velocity"].copy()
    husbandry.tick_leads(state(engine))
    x, z = 3.0 / np.hypot(3.0, 6.0), 6.0 / np.hypot(3.0, 6.0)
    wanted = np.array([-0.4 * x * x, 0.0, -0.4 * z * z])
    assert np.allclose(mob["velocity"] - before, wanted)


def test_a_fence_keeps_what_the_player_led_there(engine):
    state(engine).world.set_block(*FENCE, BLOCK_ID["oak_fence"])
    near, far = cow(engine, leash=LED, at=(2.5, 5.5)), cow(engine, leash=LED, at=(0.5, -3.5))
    assert husbandry.tie(state(engine), FENCE)
    assert (near["leash"], far["leash"]) == (TIED, LED)
    assert tuple(near["knot"]) == FENCE
    far["leash"] = UNTIED
    engine.execute(f"/tp @p 0.5 {FLOOR} -11.5")
    ticks(engine, 200)
    assert near["leash"] == TIED
    assert np.linalg.norm(near["position"] - np.array(FENCE) - 0.5) < 6.0
    assert husbandry.tie(state(engine), FENCE)
    assert near["leash"] == UNTIED and lying(engine) == ["lead"]
    assert not husbandry.tie(state(engine), FENCE)


def test_a_fence_that_goes_lets_go(engine):
    state(engine).world.set_block(*FENCE, BLOCK_ID["oak_fence"])
    mob = cow(engine, leash=LED, at=(2.5, 5.5))
    husbandry.tie(state(engine), FENCE)
    state(engine).world.set_block(*FENCE, 0)
    engine.tick({})
    assert mob["leash"] == UNTIED and lying(engine) == ["lead"]


def test_a_fence_on_land_that_is_not_loaded_still_holds(engine, monkeypatch):
    state(engine).world.set_block(*FENCE, BLOCK_ID["oak_fence"])
    mob = cow(engine, leash=LED, at=(2.5, 5.5))
    husbandry.tie(state(engine), FENCE)
    monkeypatch.setattr(state(engine).world, "is_loaded", lambda x, z: False)
    monkeypatch.setattr(state(engine).world, "kind_at", lambda x, y, z: 0)
    husbandry.tick_leads(state(engine))
    assert mob["leash"] == TIED


def test_other_blocks_tie_nothing(engine):
    state(engine).world.set_block(*FENCE, BLOCK_ID["stone"])
    mob = cow(engine, leash=LED, at=(2.5, 5.5))
    assert not husbandry.tie(state(engine), FENCE) and mob["leash"] == LED


def test_a_snapshot_keeps_leads(engine):
    mob = cow(engine, leash=LED, at=(0.5, 7.5))
    saved = engine.snapshot()
    ticks(engine, 30)
    there = mob["position"].copy()
    engine.restore(saved)
    ticks(engine, 30)
    again = state(engine).mobs.records[0]
    assert again["leash"] == LED and (again["position"] == there).all()
