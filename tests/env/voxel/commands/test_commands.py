"""Chat commands: what they do, and what they answer."""

import re

import numpy as np
import pytest

from rllib_minestudio.env.voxel.commands import world_commands
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.errors import InvalidOptionsError
from tests.env.voxel.arena import FLOOR, arena, state, ticks


@pytest.fixture
def engine():
    return arena()


def test_give_fills_the_first_slot_and_counts(engine):
    given = engine.execute("/give @p minecraft:iron_sword 1")
    assert given == (True, "Gave 1 [Iron Sword] to Player", "")
    engine.execute("give @s dirt 70")
    inventory = engine.info()["inventory"]
    assert inventory[0] == {"type": "iron_sword", "quantity": 1}
    assert inventory[1] == {"type": "dirt", "quantity": 64}
    assert inventory[2] == {"type": "dirt", "quantity": 6}
    assert engine.execute("/clear @p dirt").message == "Removed 70 items from player Player"
    assert engine.execute("/clear").ok
    assert not engine.execute("/clear").ok


def test_replaceitem_fills_the_slot_that_it_names(engine):
    for slot, item in (
        ("weapon.mainhand", "minecraft:iron_sword{Damage:0}"),
        ("hotbar.3", "dirt 12"),
        ("inventory.26", "stone 70"),
        ("inventory.25", "stone 64"),
    ):
        engine.execute(f"/replaceitem entity @p {slot} {item}")
    inventory = engine.info()["inventory"]
    assert inventory[0] == {"type": "iron_sword", "quantity": 1}
    assert inventory[3] == {"type": "dirt", "quantity": 12}
    assert inventory[34] == {"type": "stone", "quantity": 64}
    assert inventory[35]["type"] == "none"  # 70 is more than fits
    engine.execute("/replaceitem entity @p weapon.offhand oak_planks")
    assert engine.info()["equipped_items"]["offhand"]["type"] == "oak_planks"
    assert engine.execute("/replaceitem entity @p hotbar.3 air").ok
    assert engine.info()["inventory"][3] == {"type": "none", "quantity": 0}
    assert "Did you mean" in engine.execute("/replaceitem entity @p hotbar.33 dirt").message
    assert not engine.execute("/replaceitem block 0 0 0 hotbar.3 dirt").ok


def test_summon_beside_the_player(engine):
    command = '/execute as @p at @p run summon minecraft:cow ~3 ~ ~-2 {Age:0, Tags:["a b"]}'
    assert engine.execute(command) == (True, "Summoned new Cow", "of its data, Tags is ignored")
    engine.execute("/kill @e[type=cow]")
    assert not engine.execute("/summon cow ~3 ~ ~-2 {Age:0}").lacking
    (cow,) = engine.mobs_near(10.0)
    assert cow["name"] == "cow"
    assert (cow["x"], cow["y"], cow["z"]) == pytest.approx((3.5, FLOOR, -1.5))
    assert cow["health"] == 10.0


def test_summoned_mobs_are_never_inside_of_blocks(engine):
    state(engine).world.fill((2, 6), (FLOOR, FLOOR + 2), (2, 6), 1)
    engine.execute("/summon pig ~3 ~ ~3")
    assert engine.mobs_near(10.0)[0]["y"] == FLOOR + 2


@pytest.mark.parametrize("height", [0, 3])
@pytest.mark.parametrize("aside", [0, 1, 2])
def test_summoned_mobs_come_down_beside_a_tree(engine, aside, height):
    x = 6 + aside
    engine.execute(f"/fill 4 {FLOOR + 2} -2 8 {FLOOR + 4} 2 oak_leaves")
    engine.execute(f"/fill 6 {FLOOR} 0 6 {FLOOR + 3} 0 oak_log")
    for kind in ("cow", "chicken"):
        engine.execute(f"/summon {kind} {x} {FLOOR + height} 0")
    engine.execute(f"/summon pig 12 {FLOOR + 1000} 0")
    for _ in range(100):
        engine.tick({})
    assert [mob["y"] for mob in engine.mobs_near(20.0) if mob["name"] != "pig"] == [FLOOR] * 2


def test_kill_selectors(engine):
    for kind in ("cow", "cow", "sheep"):
        engine.execute(f"/summon {kind} ~2 ~ ~")
    state(engine).scatter_item(BLOCK_ID["dirt"], 1, (5.0, FLOOR, 5.0), 10)
    assert engine.execute("/kill @e[type=cow]").message == "Killed 2 entities"
    assert [mob["name"] for mob in engine.mobs_near(9)] == ["sheep"]
    assert engine.execute("/kill @e[type=item]").message == "Killed Item"
    assert engine.execute("/kill @e[type=!player]").message == "Killed Sheep"
    assert engine.execute("/kill @e[type=!player]").message == "No entity was found"
    assert engine.info()["kill_entity"] == {}


def test_distance_and_limit(engine):
    for distance in (2, 4, 8):
        engine.execute(f"/summon cow ~{distance} ~ ~")
    assert engine.execute("/kill @e[type=cow,distance=6..]").message == "Killed Cow"
    assert engine.execute("/kill @e[type=cow,sort=nearest,limit=1]").ok
    assert [mob["distance"] for mob in engine.mobs_near(20)] == pytest.approx([4.0])


def test_killing_the_player_respawns_it_at_once(engine):
    engine.execute("/give @p iron_sword")
    engine.player.health = 5.0
    engine.player.yaw, engine.player.pitch = 120.0, 80.0
    engine.tick({"hotbar.4": 1})
    place = engine.player.position.copy()
    assert engine.execute("/kill").message == "Killed Player"
    assert not engine.player_dead
    assert engine.player.health == 20.0
    assert np.array_equal(engine.player.position, place)
    assert (engine.player.yaw, engine.player.pitch) == (0.0, 0.0)
    assert engine.player.selected == 0
    assert engine.info()["inventory"][0]["type"] == "none"
    assert engine.info()["custom"]["deaths"] == 1
    assert state(engine).items.count == 1
    engine.tick({})
    assert not engine.player_dead


def test_keep_inventory(engine):
    engine.execute("/gamerule keepInventory true")
    engine.execute("/give @p iron_sword")
    engine.execute("/kill @p")
    assert engine.info()["inventory"][0]["type"] == "iron_sword"


def test_death_by_damage_is_reported(engine):
    engine.execute("/tp @p ~ ~26 ~")
    ticks(engine, 60)
    assert engine.player_dead
    assert engine.info()["health"] == 0.0


def test_resistance_protects_from_falls(engine):
    assert engine.execute("/effect give @p minecraft:resistance 9999 255 true").ok
    engine.execute("/tp @p ~ ~26 ~")
    ticks(engine, 60)
    assert engine.player.health == 20.0
    assert engine.execute("/effect clear @p").ok
    assert not engine.execute("/effect clear @p").ok


def test_effect_in_both_syntaxes_and_its_end(engine):
    assert engine.execute("/effect @p 5 1 0 True").message == "Applied effect Strength to Player"
    assert state(engine).player.records["attack_damage"][0] == 4.0
    ticks(engine, 20)
    assert state(engine).player.records["attack_damage"][0] == 1.0
    assert not engine.execute("/effect give @p flying").ok


def test_time_weather_and_rules(engine):
    engine.execute("/gamerule doDaylightCycle false")
    assert engine.execute("/time set noon").message == "Set the time to 6000"
    assert engine.execute("/time add 100").message == "Set the time to 6100"
    before = state(engine).game_time
    ticks(engine, 5)
    assert engine.execute("/time query daytime").message == "The time is 6100"
    assert engine.execute("/time query gametime").message == f"The time is {before + 5}"
    engine.execute("/time add 2d")
    assert engine.execute("/time query daytime").message == "The time is 6100"
    assert engine.execute("/time query day").message == "The time is 2"
    assert not engine.execute("/weather clear").lacking
    assert engine.execute("/weather rain").lacking == "the sky stays clear"
    assert engine.info()["location_stats"]["is_raining"]
    assert engine.execute("/difficulty").message == "The difficulty is Easy"
    assert engine.execute("/difficulty peaceful").ok
    assert engine.execute("/difficulty").message == "The difficulty is Peaceful"
    assert engine.execute("/gamerule doMobSpawning false") == (
        True,
        "Gamerule doMobSpawning is now set to: false",
        "",
    )
    assert engine.execute("/gamerule fallDamage false").lacking == "this rule is not obeyed"


def test_what_can_only_be_carried_says_so(engine):
    given = engine.execute("/give @p minecraft:crossbow 2")
    assert given == (True, "Gave 2 [Crossbow] to Player", "crossbow cannot be shot or thrown here")
    given = engine.execute("/replaceitem entity @s armor.head iron_helmet{Unbreakable:1}")
    assert "worn for protection here, and of its data, Unbreakable is ignored" in given.lacking
    info = engine.info()
    assert [info["inventory"][slot]["quantity"] for slot in range(3)] == [1, 1, 0]
    assert info["equipped_items"]["head"] == {"type": "iron_helmet", "damage": 0, "maxDamage": 165}
    engine.execute("/give @p torch 70")
    assert engine.info()["inventory"][2] == {"type": "torch", "quantity": 64}
    for keys in [{"hotbar.3": 1}, {"camera": (60.0, 0.0)}, *[{"use": 1, "attack": 1}] * 10]:
        engine.tick(keys)
    assert engine.info()["inventory"][2] == {"type": "torch", "quantity": 64}


def test_setblock_and_fill(engine):
    assert engine.execute("/setblock ~ ~3 ~ minecraft:oak_planks").ok
    assert state(engine).world.block_at(0, FLOOR + 3, 0) == BLOCK_ID["oak_planks"]
    assert not engine.execute("/setblock ~ ~3 ~ oak_planks").ok
    assert engine.execute("/fill ~2 ~ ~2 ~4 ~1 ~4 stone").message == "Successfully filled 18 blocks"
    assert "Too many blocks" in engine.execute("/fill 0 0 0 40 40 40 stone").message


def test_teleport(engine):
    engine.execute("/tp @p 100 80 -50 90 10")
    assert engine.player.position.tolist() == [100.5, 80.0, -49.5]
    assert (engine.player.yaw, engine.player.pitch) == (90.0, 10.0)
    engine.execute("/teleport ~ ~5 ~")
    assert engine.player.position.tolist() == [100.5, 85.0, -49.5]


@pytest.mark.parametrize("biome", BIOMES)
def test_locatebiome_tells_where_teleportbiome_leads(engine, biome):
    told = engine.execute(f"/locatebiome minecraft:{biome}")
    place = re.fullmatch(
        rf"The nearest {biome} is at \[(-?\d+), ~, (-?\d+)\] \((\d+) blocks away\)", told.message
    )
    x, z, distance = map(int, place.groups())
    assert distance == int(np.hypot(x - 0.5, z - 0.5))
    assert engine.execute(f"/teleportbiome @p {biome}").ok
    assert engine.biome() == biome
    assert np.abs(engine.player.position[[0, 2]] - (x, z)).max() < 25


@pytest.mark.parametrize("biome", BIOMES)
def test_teleportbiome(engine, biome):
    assert engine.execute(f"/teleportbiome @a {biome} 29000000 ~0 -29000000").ok
    assert engine.biome() == biome
    x, y, z = engine.player.position
    assert state(engine).world.surface(x, z) == y
    ticks(engine, 10)
    assert engine.player.position[1] == y
    assert engine.render().shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("", "Unknown or incomplete command"),
        ("/sumon cow", "Did you mean 'summon'?"),
        ("/give @p iron_sord", "Did you mean 'iron_sword'?"),
        ("/give @p dirt many", "Expected integer, found 'many'"),
        ("/summon zombie", "This engine has: cow, sheep, pig, chicken"),
        ("/summon cow 1 2", "expected 3 coordinates"),
        ("/summon cow ~x ~ ~", "Expected number"),
        ("/summon cow ^ ^ ^1", "not supported"),
        ("/tp 99999999 0 0", "Invalid position for teleport"),
        ("/kill @e[colour=red]", "Option 'colour=red' is not known here"),
        ("/kill @e[name=Bob]", "the options are type, distance, limit, sort"),
        ("/kill @e[sort=random]", "Unknown sort order 'random'"),
        ("/time query noon", "Unknown time 'noon'"),
        ("/kill @x", "Unknown selector"),
        ("/locatebiome", "/locatebiome <biome>"),
        ("/locatebiome swamp", "plains, forest, desert, birch_forest"),
        ("/teleportbiome @a swamp", "plains, forest, desert, birch_forest"),
        ("/execute as @p", "Usage"),
        ("/execute as @e[type=cow] run kill @s", "No entity was found"),
        ("/effect give @p speed -5", "must not be less than 0"),
        ("/time set soon", "Expected integer"),
        ("/gamerule keepinventory true", "Did you mean 'keepInventory'?"),
        ("/gamerule keepInventory 1", "expected 'true' or 'false' but found '1'"),
        ("/gamerule spawnRadius true", "Expected integer"),
        ("/kill @e[" + "type=!cow," * 33 + "]", "32 options"),
    ],
)
def test_mistakes_get_one_clear_message(engine, command, part):
    result = engine.execute(command)
    assert not result.ok
    assert part in result.message


def test_execute_runs_once_for_each_entity(engine):
    for _ in range(3):
        engine.execute("/summon cow ~3 ~ ~")
    assert engine.execute("/execute as @e[type=cow] at @s run summon pig ~ ~ ~1").ok
    names = sorted(mob["name"] for mob in engine.mobs_near(20))
    assert names == ["cow"] * 3 + ["pig"] * 3
    assert engine.execute("/execute as @e[type=pig,limit=1] run kill @s").ok
    assert len(engine.mobs_near(20)) == 5


def test_execute_as_an_entity_means_that_entity(engine):
    for kind in ("cow", "pig", "cow"):
        engine.execute(f"/summon {kind} ~3 ~ ~")
    state(engine).scatter_item(BLOCK_ID["dirt"], 1, (5.0, FLOOR, 5.0), 10)
    assert engine.execute("/execute as @e[type=cow] run kill @s").ok
    assert [mob["name"] for mob in engine.mobs_near(20)] == ["pig"]
    assert engine.execute("/execute as @e[type=item] run kill @s").message == "Killed Item"
    assert [mob["name"] for mob in engine.mobs_near(20)] == ["pig"]


def test_a_command_nested_without_end_is_a_mistake_too(engine):
    result = engine.execute("/execute " + "as @p run execute " * 2000 + "run time set day")
    assert result.message == "The command is nested too deeply"


@pytest.mark.parametrize(
    "command",
    [
        "/execute " + "as @e " * 300 + "run time set day",
        "/execute " + "as @s " * 300 + "as @e at @s as @e at @s as @e run time set day",
        "/execute as @e as @e run tp @p ~500 ~ ~",
    ],
    ids=["branches", "own", "teleports"],
)
def test_what_one_command_does_is_bounded(engine, command):
    """Without the bound the first would run 257 ** 300 commands."""
    for _ in range(256):
        engine.execute("/summon cow ~3 ~ ~")
    result = engine.execute(command)
    assert not result.ok
    assert result.message == "Stopped: one command may process at most 524288 entities and blocks"
    assert engine.execute("/execute as @e[type=cow] at @s run time set day").ok


def test_what_a_world_remembers_is_bounded(engine, monkeypatch):
    """A fill that goes on for ever, elsewhere each time, would take up all memory."""
    monkeypatch.setattr(world_commands, "_MOST_EDITS", state(engine).world.num_edits + 20)
    assert engine.execute("/fill ~ 90 ~ ~9 91 ~ stone").ok
    assert "a world remembers" in engine.execute("/fill ~ 95 ~ ~9 96 ~ stone").message
    assert "a world remembers" in engine.execute("/setblock ~ 95 ~ stone").message
    engine.reset(0, "plains")
    assert engine.execute("/setblock ~ 127 ~ stone").ok


def test_an_error_is_short_however_long_the_command(engine):
    assert len(engine.execute("/give @p " + "x" * 30000).message) <= 300


def test_unknown_biome_is_refused_at_reset():
    with pytest.raises(InvalidOptionsError, match="Did you mean 'plains'"):
        VoxelEngine(frame_size=(32, 32)).reset(0, "plain")
