"""What people do with animals: wool, milk, dyes, eggs, pumpkins; feeding, breeding, growing."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities import goals
from rllib_minestudio.env.voxel.entities.mobs import EGG_TICKS
from rllib_minestudio.env.voxel.entities.records import (
    DYES,
    MOB_KIND_ID,
    MOB_KINDS,
    SHORN,
    YOUNG_AGE,
    coat_of,
)
from rllib_minestudio.env.voxel.game import husbandry
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, BLOCKS, kind_of, properties_of
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

GRASS_BLOCK, DIRT, GRASS = (BLOCK_ID[name] for name in ("grass_block", "dirt", "grass"))


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage without anything on it."""
    return cleared(stage)


def put(engine, mob, *, at=(0.5, 2.0), **fields):
    """An animal ahead, on which the crosshair is after a tick; returns its record."""
    game = state(engine)
    game.spawn_mob(MOB_KIND_ID[mob], at[0], float(FLOOR), at[1])
    record = game.mobs.records[game.mobs.count - 1]
    record["coat"] = 0
    for name, value in fields.items():
        record[name] = value
    return record


def use(engine, item, mob, **fields):
    """Use an item on an animal ahead; returns its record, and how often it counted."""
    record = put(engine, mob, **fields)
    engine.player.inventory.clear()
    engine.player.inventory.set(0, ITEM_ID[item], 1)
    engine.player.pitch = 40.0 if fields.get("age", 0) < 0 else 20.0
    engine.tick({})
    before = Counter(state(engine).statistics.copy()["use_item"])
    engine.tick({"use": 1})
    after = Counter(state(engine).statistics.copy()["use_item"])
    return record, (after - before)[item]


def dropped(engine):
    game = state(engine)
    found = Counter()
    for item, quantity in zip(game.items.item.tolist(), game.items.quantity.tolist(), strict=True):
        found[ITEMS[item].name] += quantity
    return found


def test_wool_has_the_colour_of_the_sheep_and_comes_once(engine):
    numbers = Counter()
    for trial in range(60):
        state(engine).mobs.clear()
        state(engine).items.clear()
        colour = trial % len(DYES)
        sheep, used = use(engine, "shears", "sheep", coat=colour)
        assert used == 1 and sheep["coat"] == SHORN + colour
        ((name, count),) = dropped(engine).items()
        assert name == f"{DYES[colour]}_wool"
        numbers[count] += 1
        assert engine.player.inventory[0].data == 1
        ticks(engine, 6)
        engine.tick({"use": 1})
        assert engine.player.inventory[0].data == 1
    assert set(numbers) == {1, 2, 3}


def test_lambs_keep_their_wool_and_shears_wear_out(engine):
    sheep, used = use(engine, "shears", "sheep", age=YOUNG_AGE)
    assert used == 0 and sheep["coat"] == 0 and not dropped(engine)
    state(engine).mobs.clear()
    put(engine, "sheep")
    engine.player.inventory.set(0, ITEM_ID["shears"], 1, 237)
    engine.player.pitch = 20.0
    engine.tick({})
    engine.tick({"use": 1})
    assert engine.player.inventory[0].quantity == 0


@pytest.mark.parametrize("shorn", [False, True])
def test_a_sheep_that_dies_leaves_the_wool_it_has(engine, shorn):
    sheep = put(engine, "sheep", coat=DYES.index("red") + SHORN * shorn, health=0.5)
    sheep["position"] = (0.5, FLOOR + 9.0, 6.5)  # it falls
    ticks(engine, 40)
    wool = {name for name in dropped(engine) if name.endswith("_wool")}
    assert wool == (set() if shorn else {"red_wool"}) and dropped(engine)["mutton"] in (1, 2)


def test_young_animals_leave_nothing(engine):
    put(engine, "cow", age=YOUNG_AGE, health=0.5, at=(0.5, 6.5))["position"][1] = FLOOR + 9.0
    ticks(engine, 40)
    assert state(engine).mobs.count == 0 and not dropped(engine)


def test_a_dye_colours_wool_that_is_there_and_of_another_colour(engine):
    sheep, used = use(engine, "red_dye", "sheep")
    assert used == 1 and DYES[sheep["coat"]] == "red" and engine.player.held_item == 0
    for coat in (DYES.index("red"), SHORN):
        state(engine).mobs.clear()
        sheep, used = use(engine, "red_dye", "sheep", coat=coat)
        assert used == 0 and sheep["coat"] == coat and engine.player.held_item


def test_a_bucket_is_filled_with_milk_which_ends_effects_when_drunk(engine):
    _, used = use(engine, "bucket", "cow", age=YOUNG_AGE)
    assert used == 0
    state(engine).mobs.clear()
    _, used = use(engine, "bucket", "cow")
    assert used == 1 and ITEMS[engine.player.held_item].name == "milk_bucket"
    engine.execute("/effect give @p speed 100")
    state(engine).mobs.clear()
    ticks(engine, 5)
    ticks(engine, 31, use=1)
    assert "speed" in engine.player.effects
    ticks(engine, 3, use=1)
    assert not engine.player.effects and ITEMS[engine.player.held_item].name == "bucket"


@pytest.mark.parametrize(
    "kind", [kind for kind in MOB_KINDS if kind.food], ids=lambda kind: kind.name
)
def test_two_that_are_fed_have_young(engine, kind):
    experience = engine.player.experience
    for x in (-2.5, 2.5):
        put(engine, kind.name, at=(x, 5.5))
    parents = state(engine).mobs.records[:2]
    for parent in parents:
        engine.player.inventory.set(0, ITEM_ID[kind.food[0]], 2)
        assert husbandry.feed_animal(state(engine), parent)
        assert not husbandry.feed_animal(state(engine), parent)
        assert engine.player.inventory[0].quantity == 1
    engine.player.inventory.clear()
    for _ in range(300):
        engine.tick({})
        if state(engine).mobs.count == 3:
            break
    young = state(engine).mobs.records[2]
    assert young["kind"] == MOB_KIND_ID[kind.name] and YOUNG_AGE <= young["age"] < YOUNG_AGE + 5
    assert not parents["love_ticks"].any() and (parents["age"] > 5990).all()
    assert 1 <= engine.player.experience - experience <= 7
    engine.player.inventory.set(0, ITEM_ID[kind.food[0]], 1)
    assert not husbandry.feed_animal(state(engine), parents[0])


def test_love_passes_after_half_a_minute(engine):
    cow = put(engine, "cow")
    engine.player.inventory.set(0, ITEM_ID["wheat"], 1)
    assert husbandry.feed_animal(state(engine), cow)
    ticks(engine, 599)
    assert cow["love_ticks"] == 1
    engine.tick({})
    assert cow["love_ticks"] == 0 and cow["age"] == 0


def test_food_saves_a_tenth_of_the_time_to_grow(engine):
    cow = put(engine, "cow", age=-1000)
    engine.player.inventory.set(0, ITEM_ID["wheat"], 5)
    assert husbandry.feed_animal(state(engine), cow)
    assert cow["age"] == -900  # five seconds of fifty
    cow["age"] = -3
    ticks(engine, 4)
    assert cow["age"] == 0


def test_lambs_have_the_colour_that_their_parents_dyes_make(engine):
    def born(one, other):
        pair = [put(engine, "sheep", coat=coat, love_ticks=9) for coat in (one, other)]
        husbandry.bear_young(state(engine), *pair)
        lamb = int(state(engine).mobs.records[2]["coat"])
        state(engine).mobs.clear()
        return DYES[lamb]

    red, yellow, black, lime = map(DYES.index, ("red", "yellow", "black", "lime"))
    assert born(red, yellow) == born(yellow, red + SHORN) == "orange"
    assert {born(black, lime) for _ in range(40)} == {"black", "lime"}


def test_coats_of_natural_sheep_have_minecrafts_shares():
    dice = (np.arange(10_000) + 0.5) / 10_000
    found = Counter(DYES[coat_of(value, 0.5)] for value in dice)
    wanted = {"white": 8200, "black": 500, "gray": 500, "light_gray": 500, "brown": 300}
    assert found == wanted
    assert DYES[coat_of(0.5, 0.0019)] == "pink" and DYES[coat_of(0.5, 0.0021)] == "white"


def test_food_in_the_hand_draws_animals_near(engine):
    cow = put(engine, "cow", at=(0.5, 8.5))
    engine.player.inventory.set(0, ITEM_ID["carrot"], 1)
    ticks(engine, 20)
    assert cow["goal"] != goals.TEMPT
    engine.player.inventory.set(0, ITEM_ID["wheat"], 1)
    cow["position"] = (0.5, FLOOR, 8.5)
    ticks(engine, 120)
    assert cow["goal"] == goals.TEMPT
    assert 1.0 < np.hypot(*(cow["position"][[0, 2]] - 0.5)) < 2.7
    engine.player.inventory.clear()
    ticks(engine, 2)
    assert cow["goal"] != goals.TEMPT and cow["aloof_ticks"] > 90
    engine.player.inventory.set(0, ITEM_ID["wheat"], 1)
    ticks(engine, 50)
    assert cow["goal"] != goals.TEMPT


def test_young_ones_follow_the_grown_up(engine):
    calf = put(engine, "cow", at=(0.5, 3.5), age=YOUNG_AGE)
    put(engine, "cow", at=(0.5, 10.5))
    seen = set()
    for _ in range(200):
        state(engine).mobs.records["position"][1] = (0.5, FLOOR, 10.5)
        engine.tick({})
        seen.add(int(calf["goal"]))
    assert goals.FOLLOW in seen
    assert np.hypot(*(calf["position"][[0, 2]] - (0.5, 10.5))) < 5.0


@pytest.mark.parametrize("plant", [False, True])
def test_a_sheep_eats_grass_and_its_wool_grows_again(engine, plant):
    world = state(engine).world
    world.fill((-12, 13), (FLOOR - 1, FLOOR), (-12, 13), GRASS_BLOCK)
    if plant:
        world.set_block(3, FLOOR, 3, GRASS)
    sheep = put(engine, "sheep", at=(3.5, 3.5), coat=SHORN + 4)
    sheep["goal"], sheep["goal_ticks"] = goals.GRAZE, goals.GRAZE_TICKS
    sheep["goal_x"], sheep["goal_z"] = 3.5, 3.5
    ticks(engine, 35)
    assert sheep["coat"] == SHORN + 4
    ticks(engine, 2)
    assert sheep["coat"] == 4
    assert kind_of(world.block_at(3, FLOOR, 3)) == 0
    assert world.kind_at(3, FLOOR - 1, 3) == (GRASS_BLOCK if plant else DIRT)
    world.fill((-12, 13), (FLOOR - 1, FLOOR), (-12, 13), BLOCK_ID["stone"])


def test_sheep_graze_as_often_as_in_the_game(engine):
    """Once in a thousand ticks of standing on grass; lambs twenty times as often."""
    world = state(engine).world
    world.fill((-12, 13), (FLOOR - 1, FLOOR), (-12, 13), GRASS_BLOCK)
    for number in range(60):
        at = (number % 10 - 5.0, number // 10 + 3.0)
        put(engine, "sheep", at=at, age=0 if number < 30 else YOUNG_AGE)
    begun = np.zeros(60)
    before = np.zeros(60, int)
    asked = np.zeros(60)
    for _ in range(600):
        engine.tick({})
        now = state(engine).mobs.records["goal"][:60].copy()
        begun += (now == goals.GRAZE) & (before != goals.GRAZE)
        asked += (before != goals.GRAZE) & (before != goals.FOLLOW) & (before != goals.PANIC)
        before = now
        # Grass that was eaten stands again.
        world.fill((-12, 13), (FLOOR - 1, FLOOR), (-12, 13), GRASS_BLOCK)
    for group, chance in ((slice(0, 30), 1 / 1000), (slice(30, 60), 1 / 50)):
        wanted = asked[group].sum() * chance
        assert abs(begun[group].sum() - wanted) < 5.0 * np.sqrt(wanted) + 1.0
    world.fill((-12, 13), (FLOOR - 1, FLOOR), (-12, 13), BLOCK_ID["stone"])


def test_a_chicken_lays_an_egg_each_five_to_ten_minutes(engine):
    chicken = put(engine, "chicken", at=(3.5, 3.5), egg_ticks=2)
    ticks(engine, 1)
    assert not dropped(engine)
    ticks(engine, 1)
    assert dropped(engine) == {"egg": 1} and EGG_TICKS <= chicken["egg_ticks"] < 2 * EGG_TICKS
    chicken["age"], chicken["egg_ticks"] = YOUNG_AGE, 1
    ticks(engine, 3)
    assert dropped(engine) == {"egg": 1}


@pytest.mark.parametrize(("yaw", "facing"), [(0, "north"), (90, "east"), (180, "south")])
def test_shears_carve_a_pumpkin_on_the_side_that_is_clicked(engine, yaw, facing):
    x, z = {0: (0, 2), 90: (-2, 0), 180: (0, -2)}[yaw]
    world = state(engine).world
    world.set_block(x, FLOOR + 1, z, BLOCK_ID["pumpkin"])
    engine.player.inventory.set(0, ITEM_ID["shears"], 1)
    engine.player.yaw, engine.player.pitch = yaw, 0.0
    engine.tick({})
    engine.tick({"use": 1})
    block = world.block_at(x, FLOOR + 1, z)
    assert BLOCKS[kind_of(block)].name == "carved_pumpkin"
    assert properties_of(block)["facing"] == facing
    assert dropped(engine) == {"pumpkin_seeds": 4}
    assert engine.player.inventory[0].data == 1


def test_summoned_animals_are_as_their_data_says(engine):
    engine.execute("/summon sheep ~2 ~ ~ {Color:14,Sheared:1b,Age:-24000}")
    sheep = state(engine).mobs.records[0]
    assert (sheep["coat"], sheep["age"]) == (14 + SHORN, YOUNG_AGE)
    result = engine.execute("/summon sheep ~2 ~ ~ {Color:16}")
    assert "Color must be 0 to 15; got 16" in str(result)
    assert "ignored" in str(engine.execute("/summon cow ~2 ~ ~ {NoAI:1b}"))
    for mob, data in (("iron_golem", "{Age:-24000}"), ("cow", "{Color:3}")):
        assert "is ignored" in str(engine.execute(f"/summon {mob} ~2 ~ ~ {data}"))
        last = state(engine).mobs.records[state(engine).mobs.count - 1]
        assert last["age"] == last["coat"] == 0
    assert "ignored" not in str(engine.execute("/summon cow ~2 ~ ~ {Age:0}"))
