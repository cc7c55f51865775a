"""Combat against the closed forms of Minecraft Java 1.16."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import HURT_TICKS
from rllib_minestudio.env.voxel.player.combat import charge, charged_damage
from rllib_minestudio.env.voxel.world.blocks import STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def duel(weapon=None, kind="cow", distance=2.0):
    """An arena with a mob straight ahead, and the player charged for a full attack."""
    engine = arena()
    if weapon:
        engine.execute(f"/give @p {weapon}")
    ticks(engine, 40)
    engine.execute(f"/summon {kind} 0.5 {FLOOR} {0.5 + distance}")
    engine.player.pitch = 20.0
    return engine


def hold_still(engine):
    """Puts the first mob back where it was, so that timing alone is tested."""
    mobs = state(engine).mobs
    mobs.position[0] = (0.5, FLOOR, 2.5)
    mobs.velocity[0] = 0.0


@pytest.mark.parametrize(
    ("weapon", "damage"),
    [
        (None, 1.0),
        ("wooden_sword", 4.0),
        ("stone_sword", 5.0),
        ("iron_sword", 6.0),
        ("diamond_sword", 7.0),
        ("iron_axe", 9.0),
    ],
)
def test_full_attack_damage(weapon, damage):
    engine = duel(weapon)
    engine.tick({"attack": 1})
    assert state(engine).mobs.health[0] == 10.0 - damage
    assert engine.info()["damage_dealt"] == {"cow": round(damage * 10)}


@pytest.mark.parametrize("pause", [1, 3, 6, 11, 12, 20])
def test_cooldown(pause):
    engine = duel("iron_sword")
    mobs = state(engine).mobs
    engine.tick({"attack": 1})
    ticks(engine, pause - 1)
    hold_still(engine)
    mobs.health[0] = 10.0
    mobs.hurt_ticks[0] = 0
    engine.tick({"attack": 1}) if pause > 1 else (engine.tick({}), engine.tick({"attack": 1}))
    waited = max(pause, 2)
    share = min((waited + 0.5) * 1.6 / 20, 1.0)
    assert mobs.health[0] == pytest.approx(10.0 - 6.0 * (0.2 + 0.8 * share**2))


def test_charge_closed_form():
    assert charge(0, 4.0) == pytest.approx(0.1)
    assert charge(12, 1.6) == 1.0
    assert charged_damage(6.0, 0.5) == pytest.approx(6.0 * 0.4)


def test_held_key_hits_once():
    engine = duel("iron_sword")
    engine.tick({"attack": 1})
    mobs = state(engine).mobs
    health = mobs.health[0]
    for _ in range(30):
        hold_still(engine)
        engine.tick({"attack": 1})
    assert mobs.health[0] == health


def test_invulnerability_lasts_ten_ticks_and_a_stronger_hit_deals_the_difference():
    engine = duel()
    mobs = state(engine).mobs
    engine.tick({"attack": 1})
    assert mobs.health[0] == 9.0
    engine.tick({})
    hold_still(engine)
    engine.tick({"attack": 1})  # weaker: shielded
    assert mobs.health[0] == 9.0
    engine.execute("/give @p iron_sword")
    ticks(engine, 3)
    hold_still(engine)
    state(engine).player.records["attack_ticks"] = 100
    engine.tick({"attack": 1})
    assert mobs.hurt_ticks[0] < HURT_TICKS
    assert mobs.health[0] == pytest.approx(10.0 - 6.0)  # 1 + (6 - 1)


def test_reach_is_three_blocks_from_the_eyes():
    # the eyes are 0.22 above a cow's top; looking level from the edge of a step hits nothing
    for gap, hit in ((2.9, True), (3.1, False)):
        engine = duel(distance=gap + 0.45, kind="cow")
        engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 0")
        state(engine).mobs.position[0, 1] = FLOOR + 0.5
        engine.tick({"attack": 1})
        assert (state(engine).mobs.health[0] < 10.0) == hit, gap


def test_a_block_in_the_way_shields():
    engine = duel(distance=2.5)
    state(engine).world.fill((0, 1), (FLOOR, FLOOR + 3), (1, 2), STONE)
    engine.tick({"attack": 1})
    assert state(engine).mobs.health[0] == 10.0


def test_a_miss_resets_the_cooldown_and_blocks_the_key_while_held():
    engine = arena()
    engine.execute("/give @p iron_sword")
    ticks(engine, 40)
    engine.player.pitch = -60.0
    engine.tick({"attack": 1})
    assert engine.player.attack_charge < 0.2
    state(engine).world.set_block(0, FLOOR + 3, 1, STONE)
    target_ticks = 0
    while not state(engine).player.records["is_mining"][0]:
        engine.tick({"attack": 1})
        target_ticks += 1
        assert target_ticks < 30
    assert 9 <= target_ticks <= 11


def test_critical_hit_when_falling():
    engine = duel("iron_sword")
    engine.tick({"jump": 1})
    while engine.player.velocity[1] > -0.2:
        engine.tick({})
    hold_still(engine)
    engine.player.pitch = 40.0
    engine.tick({"attack": 1})
    assert state(engine).mobs.health[0] == pytest.approx(10.0 - 9.0)


def test_knockback_is_stronger_from_a_sprint():
    pushed = []
    for sprinting in (0, 1):
        engine = duel()
        state(engine).player.records["sprinting"] = sprinting
        engine.tick({"attack": 1, "forward": sprinting, "sprint": sprinting})
        pushed.append(state(engine).mobs.velocity[0, 2])
    assert pushed[1] > pushed[0] + 0.2
    assert pushed[0] > 0.1


def test_sweep_hits_neighbours_for_one():
    engine = duel("iron_sword")
    engine.execute(f"/summon cow 1.6 {FLOOR} 2.4")
    engine.tick({"attack": 1})
    assert state(engine).mobs.health.tolist() == [4.0, 9.0]


def test_death_counts_drops_and_removes():
    engine = duel("diamond_sword")
    state(engine).mobs.health[0] = 1.0
    engine.tick({"attack": 1})
    assert engine.info()["kill_entity"] == {"cow": 1}
    assert engine.info()["damage_dealt"] == {"cow": 10}  # no more than it had
    assert engine.mobs_near(10.0) == []
    assert state(engine).mobs.count == 1  # falling over
    ticks(engine, 25)
    assert state(engine).mobs.count == 0
    assert state(engine).items.count >= 1


def test_a_hit_cow_flees_and_calms_down():
    engine = duel()
    engine.tick({"attack": 1})
    mobs = state(engine).mobs
    start = mobs.position[0].copy()
    fastest, roamed = 0.0, 0.0
    for _ in range(60):
        before = mobs.position[0].copy()
        engine.tick({})
        fastest = max(fastest, float(np.hypot(*(mobs.position[0] - before)[[0, 2]])))
        roamed = max(roamed, float(np.hypot(*(mobs.position[0] - start)[[0, 2]])))
    assert roamed > 2.0
    assert fastest > 0.25
    ticks(engine, 200)
    before = mobs.position[0].copy()
    ticks(engine, 20)
    assert np.hypot(*(mobs.position[0] - before)[[0, 2]]) < 3.0


def test_tools_wear_and_break():
    engine = duel("iron_sword")
    inventory = engine.player.inventory
    inventory.set(0, inventory[0].item, 1, data=248)
    assert engine.info()["equipped_items"]["mainhand"]["damage"] == 248
    engine.tick({"attack": 1})
    assert engine.info()["equipped_items"]["mainhand"]["damage"] == 249
    hold_still(engine)
    ticks(engine, 20)
    hold_still(engine)
    engine.tick({"attack": 1})
    assert engine.info()["break_item"] == {"iron_sword": 1}
    assert engine.info()["equipped_items"]["mainhand"]["type"] == "air"
