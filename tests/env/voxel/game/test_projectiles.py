"""Thrown things: how they leave the hand and fly, and what they do where they hit."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import (
    MOB_EFFECTS,
    MOB_KIND_ID,
    THROWN_CAPACITY,
)
from rllib_minestudio.env.voxel.game import fire, projectiles
from rllib_minestudio.env.voxel.items.items import ITEM_ID, enchanted, potion_data, wear_of
from rllib_minestudio.env.voxel.player.raycast import look_direction
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

COW, CHICKEN = MOB_KIND_ID["cow"], MOB_KIND_ID["chicken"]
STONE = BLOCK_ID["stone"]
FLIGHT = {
    "snowball": (1.5, 0.0, 0.03),
    "egg": (1.5, 0.0, 0.03),
    "splash_potion": (0.5, 20.0, 0.05),
    "experience_bottle": (0.7, 20.0, 0.07),
}
"""Speed, lift and gravity of Minecraft's `SnowballItem`, `EggItem`, `ThrowablePotionItem` and
`ExperienceBottleItem`, and their entities."""


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    state(stage).thrown.clear()
    return cleared(stage)


def hold(engine, item, count=1, data=0):
    engine.player.inventory.set(0, ITEM_ID[item], count, data)
    ticks(engine, 2)


def in_flight(engine):
    game = state(engine)
    return game.thrown.records[: game.thrown.count]


@pytest.mark.parametrize("item", FLIGHT)
def test_a_press_throws_one_of_the_stack(engine, item):
    hold(engine, item, 1 if "potion" in item else 3)
    before = state(engine).statistics.copy()["use_item"].get(item, 0)
    engine.tick({"use": 1})
    assert state(engine).statistics.copy()["use_item"][item] == before + 1
    assert len(in_flight(engine)) == 1
    assert engine.player.inventory[0].quantity == (0 if "potion" in item else 2)
    ticks(engine, 3, use=1)  # the held key throws again after four ticks
    assert len(in_flight(engine)) == 1


@pytest.mark.parametrize("item", FLIGHT)
@pytest.mark.parametrize("pitch", [-40.0, 0.0, 30.0])
def test_it_leaves_the_hand_with_minecrafts_speed_and_spread(engine, item, pitch):
    speed, lift, _ = FLIGHT[item]
    player = engine.player
    player.yaw, player.pitch = 130.0, pitch
    hold(engine, item, 1)
    found = []
    for _ in range(10_000):
        state(engine).thrown.clear()
        projectiles.throw(state(engine))
        found.append(in_flight(engine)[0]["velocity"].copy())
    direction = np.array(look_direction(player.yaw, pitch))
    direction[1] = -np.sin(np.radians(pitch - lift))
    wanted = speed * direction / np.linalg.norm(direction)
    spread = 0.0075 * speed
    assert np.mean(found, axis=0) == pytest.approx(wanted, abs=4 * spread / np.sqrt(10_000))
    assert np.std(found, axis=0) == pytest.approx(spread, rel=0.03)
    x, y, z = player.position
    at = in_flight(engine)[0]["position"]
    assert at == pytest.approx((x, y + player.eye_height - 0.1, z))


@pytest.mark.parametrize("item", FLIGHT)
def test_it_flies_along_the_closed_form(engine, item):
    """v(n) = 0.99^n v - g (1 - 0.99^n) / 0.01, and the places are the sums of these."""
    _, _, gravity = FLIGHT[item]
    engine.execute(f"/tp @p 0.5 {FLOOR + 12} 0.5 0 -60")
    hold(engine, item, 1)
    projectiles.throw(state(engine))
    record = in_flight(engine)[0].copy()
    n = np.arange(12)
    decay = 0.99**n
    steps = decay[:, None] * record["velocity"]
    steps[:, 1] -= gravity * (1 - decay) / 0.01
    for count in range(1, 13):
        projectiles.tick(state(engine))
        wanted = record["position"] + steps[:count].sum(0)
        assert in_flight(engine)[0]["position"] == pytest.approx(wanted, abs=1e-9)


def send(engine, item, start, velocity, data=0):
    """Put a thing into flight, clear of the player."""
    record = state(engine).thrown.append()
    record["item"], record["data"] = ITEM_ID[item], data
    record["position"], record["velocity"], record["is_clear"] = start, velocity, 1
    return record


def test_it_ends_at_the_first_block_with_a_body(engine):
    world = state(engine).world
    world.set_block(3, FLOOR + 1, 0, BLOCK_ID["oak_sapling"])
    world.set_block(4, FLOOR + 1, 0, BLOCK_ID["torch"])
    world.set_block(5, FLOOR + 1, 0, STONE)
    send(engine, "snowball", (1.5, FLOOR + 1.3, 0.5), (1.5, 0.0, 0.0))
    record = in_flight(engine)[0]
    hits = []
    for _ in range(4):
        if (hit := projectiles._first_hit(state(engine), record)) is not None:
            hits.append(hit)
            break
        projectiles._fly(state(engine), record)
    assert hits[0].place == (5, FLOOR + 1, 0) and hits[0].face == (-1, 0, 0)
    assert hits[0].at[0] == pytest.approx(5.0, abs=1e-6)


def test_nothing_flies_through_a_thin_wall_or_an_animal_at_any_speed(engine):
    state(engine).mobs.add(COW, (0.5, float(FLOOR), 6.5), 0.0)
    for speed in (0.3, 1.5, 20.0):
        send(engine, "snowball", (0.5, FLOOR + 1.0, 4.8), (0.0, 0.0, speed))
        hit = None
        for _ in range(40):
            record = in_flight(engine)[0]
            hit = projectiles._first_hit(state(engine), record)
            if hit:
                break
            projectiles._fly(state(engine), record)
        assert hit is not None and hit.what == 0
        assert hit.at[2] == pytest.approx(6.5 - 0.45 - 0.3, abs=1e-6)
        state(engine).thrown.clear()


def test_a_snowball_pushes_an_animal_away_and_frightens_it(engine):
    state(engine).mobs.add(COW, (0.5, float(FLOOR), 4.5), 0.0)
    hold(engine, "snowball", 1)
    engine.player.pitch = 10.0
    ticks(engine, 4, use=1)
    (mob,) = state(engine).mobs.records[:1]
    assert mob["health"] == 10.0 and mob["panic_ticks"] > 90 and mob["hurt_ticks"] > 0
    assert mob["velocity"][2] > 0.1 and not len(in_flight(engine))


def test_an_egg_in_eight_hatches_and_one_in_32_of_these_has_four(engine):
    game, hatched = state(engine), Counter()
    hit = projectiles.Hit((5.0, FLOOR + 1.0, 5.0), projectiles._BLOCK)
    record = send(engine, "egg", (0, 0, 0), (0, 0, 0))
    trials = 10_000
    for _ in range(trials):
        game.mobs.clear()
        projectiles._hatch(game, record, hit)
        hatched[game.mobs.count] += 1
        assert all(mob["age"] == -24000 for mob in game.mobs.records[: game.mobs.count])
    assert set(hatched) == {0, 1, 4}
    for count, share in ((1, 31 / 256), (4, 1 / 256)):
        assert hatched[count] / trials == pytest.approx(share, abs=4 * np.sqrt(share / trials))


def test_a_bottle_gives_3_to_11_points(engine):
    game, found = state(engine), Counter()
    for _ in range(10_000):
        game.player.experience = 0
        projectiles._spill_experience(game, None, None)
        found[game.player.experience] += 1
    wanted = {3 + n: min(n + 1, 9 - n) / 25 for n in range(9)}
    assert found.keys() == wanted.keys()
    for points, share in wanted.items():
        assert found[points] / 10_000 == pytest.approx(share, abs=0.02)


# ------------------------------------------------------------------------------ splash potions


def splash(engine, kind, at, what=projectiles._BLOCK):
    record = send(engine, "splash_potion", (0, 0, 0), (0, 0, 0), potion_data(kind))
    projectiles._splash(state(engine), record, projectiles.Hit(at, what))
    state(engine).thrown.clear()


@pytest.mark.parametrize("away", [0.0, 1.0, 2.5, 3.9])
def test_a_splash_acts_the_less_the_farther_away(engine, away):
    x, y, z = engine.player.position.tolist()
    splash(engine, "swiftness", (x + away, y, z))
    assert engine.player.effects["speed"] == (0, int((1 - away / 4) * 3600 + 0.5))
    splash(engine, "harming", (x + away, y, z))
    assert engine.player.health == 20.0 - int((1 - away / 4) * 6 + 0.5)


def test_out_of_reach_or_for_too_short_it_does_nothing(engine):
    x, y, z = engine.player.position.tolist()
    splash(engine, "swiftness", (x + 4.1, y, z))
    splash(engine, "swiftness", (x, y + 1.8 + 2.1, z))
    splash(engine, "strong_regeneration", (x + 3.9, y, z))  # 450 ticks, of which 11 are left
    assert not engine.player.effects


def test_who_is_hit_has_all_of_it_and_animals_are_healed_and_harmed(engine):
    mobs = state(engine).mobs
    for x in (5.5, 7.5):
        mobs.add(COW, (x, float(FLOOR), 0.5), 0.0)
    splash(engine, "harming", (5.5, FLOOR + 1.7, 0.5), what=0)
    far = np.hypot(2.0, 1.7)
    assert mobs.health.tolist() == [4.0, 10.0 - int((1 - far / 4) * 6 + 0.5)]
    splash(engine, "healing", (5.5, FLOOR + 1.0, 0.5), what=0)
    assert mobs.health[0] == 8.0
    assert not engine.player.effects


def splashed_cow(engine, kind, at=5.5):
    """A cow in the middle of a splash; returns a view of its record."""
    state(engine).mobs.add(COW, (at, float(FLOOR), 0.5), 0.0)
    row = state(engine).mobs.count - 1
    splash(engine, kind, (at, FLOOR + 1.0, 0.5), what=row)
    return state(engine).mobs.records[row : row + 1]


def left_of(cow, name):
    return int(cow["effect_ticks"][0, MOB_EFFECTS.index(name)])


def test_poison_hurts_an_animal_each_25_ticks_down_to_a_point(engine):
    cow = splashed_cow(engine, "poison")
    assert left_of(cow, "poison") == 900
    ticks(engine, 100)
    assert cow["health"][0] == 6.0 and left_of(cow, "poison") == 800
    ticks(engine, 200)
    assert cow["health"][0] == 1.0 and not cow["death_ticks"][0]


def test_regeneration_heals_it_each_50_ticks(engine):
    cow = splashed_cow(engine, "regeneration")
    cow["health"] = 5.0
    ticks(engine, 200)
    assert cow["health"][0] == 9.0
    ticks(engine, 200)
    assert cow["health"][0] == 10.0


@pytest.mark.parametrize(("kind", "factor"), [("swiftness", 1.2), ("slowness", 0.85)])
def test_speed_and_slowness_change_its_pace(engine, kind, factor):
    """The length of a step on level ground goes with the square of the speed."""
    paces = []
    for potion in (None, kind):
        state(engine).mobs.clear()
        state(engine).mobs.add(COW, (-8.5, float(FLOOR), 0.5), 0.0)
        cow = state(engine).mobs.records[:1]
        if potion:
            splash(engine, potion, (-8.5, FLOOR + 1.0, 0.5), what=0)
        farthest = 0.0
        for _ in range(80):
            cow["panic_ticks"] = 20
            engine.tick({})
            farthest = max(farthest, np.linalg.norm(cow["moved"][0, ::2]))
        paces.append(farthest)
    assert paces[1] / paces[0] == pytest.approx(factor**2, rel=0.02)


def test_a_fireproof_animal_burns_without_harm(engine):
    cow = splashed_cow(engine, "fire_resistance")
    cow["fire_ticks"] = 100
    ticks(engine, 60)
    assert cow["health"][0] == 10.0


def test_an_invisible_animal_is_not_seen(engine):
    ticks(engine, 2)
    bare = engine.render()
    state(engine).mobs.add(COW, (0.5, float(FLOOR), 4.5), 0.0)
    assert (engine.render() != bare).any()
    splash(engine, "invisibility", (0.5, FLOOR + 1.0, 4.5), what=0)
    engine.execute("/effect clear @p")  # the player's share
    assert (engine.render() == bare).all()


def test_the_stronger_effect_and_the_longer_of_equals_stay(engine):
    cow = splashed_cow(engine, "strong_swiftness")  # level two, 1,800 ticks
    splash(engine, "long_swiftness", (5.5, FLOOR + 1.0, 0.5), what=0)
    assert (cow["effect_levels"][0, 0], left_of(cow, "speed")) == (2, 1800)
    ticks(engine, 10)
    splash(engine, "strong_swiftness", (5.5, FLOOR + 1.0, 0.5), what=0)
    assert left_of(cow, "speed") == 1800
    cow = splashed_cow(engine, "swiftness", at=-5.5)
    splash(engine, "strong_swiftness", (-5.5, FLOOR + 1.0, 0.5), what=1)
    assert (cow["effect_levels"][0, 0], left_of(cow, "speed")) == (2, 1800)


def test_a_kill_by_potion_is_the_players(engine):
    state(engine).mobs.add(COW, (5.5, float(FLOOR), 0.5), 0.0)
    before = Counter(state(engine).statistics.copy()["kill_entity"])["cow"]
    splash(engine, "strong_harming", (5.5, FLOOR + 1.0, 0.5), what=0)
    ticks(engine, 1)
    assert Counter(state(engine).statistics.copy()["kill_entity"])["cow"] == before + 1
    ticks(engine, 25)
    assert state(engine).items.count > 0


def test_water_puts_fire_out(engine):
    world = state(engine).world
    for place in ((5, FLOOR, 5), (6, FLOOR, 5), (9, FLOOR, 5)):
        world.set_block(*place, fire.FIRE)
    world.set_block(4, FLOOR, 5, STONE)
    send(engine, "splash_potion", (5.5, FLOOR + 1.5, 5.5), (0, -0.9, 0), potion_data("water"))
    for _ in range(4):
        projectiles.tick(state(engine))
    left = [world.kind_at(x, FLOOR, 5) for x in (5, 6, 9)]
    assert left == [0, 0, fire.FIRE]
    world.set_block(9, FLOOR, 5, 0)


# ------------------------------------------------------------------------------ bows


def arm(engine, **enchantments):
    """Give the player a bow, and arrows in another slot."""
    data = enchanted(ITEM_ID["bow"], 0, enchantments)
    engine.player.inventory.set(5, ITEM_ID["arrow"], 9)
    hold(engine, "bow", 1, data)


def shoot(engine, ticks_held=25):
    ticks(engine, ticks_held, use=1)
    engine.tick({})


def arrow_count(engine):
    return sum(engine.player.inventory.quantity[engine.player.inventory.item == ITEM_ID["arrow"]])


@pytest.mark.parametrize("held", [2, 3, 10, 19, 20, 60])
def test_a_bow_shoots_the_faster_the_longer_it_was_drawn(engine, held):
    arm(engine)
    engine.player.pitch = -90.0
    before = state(engine).statistics.copy()["use_item"].get("bow", 0)
    shoot(engine, held)
    share = min(held / 20, 1)
    pull = (share**2 + 2 * share) / 3
    assert arrow_count(engine) == (9 if pull < 0.1 else 8)
    shots = state(engine).statistics.copy()["use_item"].get("bow", 0) - before
    assert shots == len(in_flight(engine)) == int(pull >= 0.1)
    if pull >= 0.1:
        (arrow,) = in_flight(engine)
        flown = 3 * pull  # and a tick of drag and gravity since
        assert arrow["moved"][1] == pytest.approx(flown, abs=5 * 0.0075 * flown)
        assert arrow["is_critical"] == (held >= 20)
        assert wear_of(engine.player.inventory[0].data) == 1


def test_without_an_arrow_or_with_another_item_in_hand_nothing_is_shot(engine):
    arm(engine)
    engine.player.inventory.set(5, 0, 0)
    shoot(engine)
    assert not len(in_flight(engine)) and engine.player.records["eating_ticks"][0] == 0
    arm(engine)
    ticks(engine, 25, use=1)
    engine.tick({"hotbar.2": 1})
    ticks(engine, 3)
    assert not len(in_flight(engine)) and arrow_count(engine) == 9


def test_the_dead_do_not_shoot():
    engine = arena()
    arm(engine)
    ticks(engine, 25, use=1)
    engine.player.health = 0.0
    engine.tick({"use": 1})
    engine.tick({})
    assert not len(in_flight(engine))


def test_drawing_slows_the_player_down(engine):
    arm(engine)
    ticks(engine, 20, forward=1)
    walked = np.linalg.norm(engine.player.records["moved"][0])
    ticks(engine, 30, forward=1, use=1)
    assert np.linalg.norm(engine.player.records["moved"][0]) < 0.4 * walked


@pytest.mark.parametrize(("power", "least"), [(0, 6), (1, 9), (5, 15)])
@pytest.mark.parametrize("is_critical", [False, True])
def test_an_arrow_harms_by_its_speed_and_power(engine, power, least, is_critical):
    """ceil(3 (2 + power / 2 + 1 / 2)), and if critical up to half of it and one more."""
    found = Counter()
    for _ in range(600 if is_critical else 3):
        state(engine).mobs.clear()
        state(engine).mobs.add(MOB_KIND_ID["iron_golem"], (0.5, float(FLOOR), 5.5), 0.0)
        record = send(engine, "arrow", (0.5, FLOOR + 1.0, 3.0), (0.0, 0.0, 3.0))
        record["damage"] = 2.0 + (0.5 * power + 0.5 if power else 0.0)
        record["is_critical"] = is_critical
        projectiles.tick(state(engine))
        found[100 - int(state(engine).mobs.health[0])] += 1
    assert not len(in_flight(engine))
    most = least + (least // 2 + 1 if is_critical else 0)
    assert set(found) == set(range(least, most + 1))


def test_infinity_keeps_arrows_and_flame_and_punch_act(engine):
    arm(engine, infinity=1, flame=1, punch=2)
    state(engine).mobs.add(COW, (0.5, float(FLOOR), 8.5), 0.0)
    shoot(engine, 4)
    assert arrow_count(engine) == 9
    record = in_flight(engine)[0]
    assert (record["is_lost"], record["flame"], record["punch"]) == (1, 1, 2)
    record["position"], record["velocity"] = (0.5, FLOOR + 1.0, 7.0), (0.0, 0.0, 1.0)
    before = state(engine).mobs.velocity[0].copy()
    projectiles.tick(state(engine))
    cow = state(engine).mobs.records[0]
    assert cow["fire_ticks"] == 100 and cow["health"] == 8.0
    assert cow["velocity"][2] - before[2] > 2 * 0.6
    record = send(engine, "arrow", (4.5, FLOOR + 1.0, 0.5), (0.0, -2.0, 0.0))
    record["is_lost"] = 1
    projectiles.tick(state(engine))
    assert state(engine).items.count == 0


def test_an_arrow_in_the_ground_can_be_picked_up(engine):
    arm(engine)
    engine.player.pitch = 70.0
    shoot(engine, 25)
    ticks(engine, 40)
    assert arrow_count(engine) == 9 and not len(in_flight(engine))


def test_a_kill_by_arrow_is_the_players(engine):
    state(engine).mobs.add(CHICKEN, (0.5, float(FLOOR), 4.5), 0.0)
    before = Counter(state(engine).statistics.copy()["kill_entity"])["chicken"]
    record = send(engine, "arrow", (0.5, FLOOR + 0.4, 2.0), (0.0, 0.0, 3.0))
    record["damage"] = 2.0
    ticks(engine, 30)
    assert Counter(state(engine).statistics.copy()["kill_entity"])["chicken"] == before + 1
    assert state(engine).items.count


# ------------------------------------------------------------------------------ in the game


def test_what_is_thrown_straight_up_comes_down_on_the_thrower(engine):
    hold(engine, "splash_potion", 1, potion_data("harming"))
    engine.player.pitch = -90.0
    engine.tick({"use": 1})
    for _ in range(60):
        engine.tick({})
        if not len(in_flight(engine)):
            break
    assert engine.player.health < 20.0


def test_the_oldest_gives_way_and_nothing_flies_for_ever(engine):
    for number in range(THROWN_CAPACITY + 3):
        send(engine, "snowball", (0.5, FLOOR + 3.0, 0.5), (0.0, 1e-3 * number, 0.0))
    assert len(in_flight(engine)) == THROWN_CAPACITY
    assert in_flight(engine)[0]["velocity"][1] == pytest.approx(3e-3)
    state(engine).thrown.clear()
    send(engine, "snowball", (0.5, 5000.0, 0.5), (0.0, 0.0, 1000.0))
    ticks(engine, 3)
    assert not len(in_flight(engine))


def test_a_snapshot_in_flight_goes_on(engine):
    hold(engine, "egg", 16)
    engine.player.pitch = -30.0
    ticks(engine, 12, use=1)
    saved = engine.snapshot()
    ticks(engine, 60)
    later = engine.snapshot()
    engine.restore(saved)
    assert len(in_flight(engine)) == 3
    ticks(engine, 60)
    assert engine.snapshot() == later


def test_it_is_seen_as_it_flies(engine):
    engine.execute("/time set noon")
    engine.player.pitch = -20.0
    ticks(engine, 2)
    before = engine.render().astype(int)
    send(engine, "egg", (0.5, FLOOR + 2.0, 2.0), (0.0, 0.0, 0.0))
    in_flight(engine)["ticks"] = 1
    assert (engine.render() == before).all()
    in_flight(engine)["ticks"] = 5
    seen = np.abs(engine.render().astype(int) - before).sum(-1) > 30
    assert 10 < seen.sum() < 100
    rows, columns = np.nonzero(seen)
    assert abs(columns.mean() - 15.5) < 1 and rows.mean() < 20
