"""Loot of mobs: Minecraft's tables, quantities and chances; what is not implemented is refused."""

import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.loot import (
    Circumstances,
    drop_mob_loot,
    read_table,
    roll,
)
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import SMELTING
from rllib_minestudio.errors import EngineError

FACTS = Path(__file__).parents[5] / "shared" / "data" / "minecraft_1_16_5" / "loot_entities.json"
TABLES = read_json("mob_loot.json")
FILE = "mob_loot.json"
TRIES = 10_000
REFUSED = {
    "creeper": "tag",
    "elder_guardian": "gameplay/fishing/fish",
    "guardian": "gameplay/fishing/fish",
    "stray": "limit",
    "turtle": "damage_source_properties",
}


@pytest.fixture(scope="module")
def game():
    return GameState()


def rolled(game, name, tries=TRIES, **case):
    """How often a table yields each quantity of each item, 0 included: item -> Counter."""
    table, found = read_table(TABLES, name, FILE), {}
    for _ in range(tries):
        for item, quantity in roll(game, table, Circumstances(**case)):
            found.setdefault(item, Counter())[quantity] += 1
    for counts in found.values():
        counts[0] += tries - counts.total()
    return found


def assert_shares(counts, wanted, tries=TRIES):
    """The counts are those of the wanted probabilities, within four standard deviations."""
    assert set(counts) - {0} <= set(wanted)
    for value, share in wanted.items():
        deviation = 4 * np.sqrt(tries * share * (1 - share)) + 1e-9
        assert abs(counts[value] - tries * share) <= deviation, (value, counts)


@pytest.mark.parametrize(
    ("table", "drops"),
    [
        ("cow", {"beef": (1, 3), "leather": (0, 2)}),
        ("sheep/white", {"white_wool": (1, 1), "mutton": (1, 2)}),
        ("sheep/pink", {"pink_wool": (1, 1), "mutton": (1, 2)}),
        ("sheep", {"mutton": (1, 2)}),
        ("pig", {"porkchop": (1, 3)}),
        ("chicken", {"feather": (0, 2), "chicken": (1, 1)}),
    ],
)
def test_the_mobs_that_exist_drop_what_minecrafts_do(game, table, drops):
    found = rolled(game, table)
    assert set(found) == set(drops)
    for item, (low, high) in drops.items():
        assert_shares(found[item], {n: 1 / (high - low + 1) for n in range(low, high + 1)})


def test_looting_adds_a_rounded_random_number(game):
    # Of one level, half of the random numbers below 1 round to 1; of three, a sixth of those
    # below 3 round to 0, a third to 1 and to 2 each, a sixth to 3.
    assert_shares(rolled(game, "sheep", looting=1)["mutton"], {1: 1 / 4, 2: 1 / 2, 3: 1 / 4})
    wanted = {1: 1 / 12, 2: 3 / 12, 3: 4 / 12, 4: 3 / 12, 5: 1 / 12}
    assert_shares(rolled(game, "sheep", looting=3)["mutton"], wanted)
    assert_shares(rolled(game, "spider", by_player=True)["spider_eye"], {0: 2 / 3, 1: 1 / 3})
    # Minecraft adds to the quantity even where that is -1.
    wanted = {0: 1 / 2, 1: 1 / 3, 2: 1 / 6}
    assert_shares(rolled(game, "spider", by_player=True, looting=1)["spider_eye"], wanted)


def test_what_burns_drops_what_a_furnace_would_leave(game):
    assert set(rolled(game, "cow", 20, on_fire=True)) == {"cooked_beef", "leather"}
    assert set(rolled(game, "sheep/white", 20, on_fire=True)) == {"white_wool", "cooked_mutton"}


def test_some_loot_is_for_players_only(game):
    assert set(rolled(game, "zombie", 1000)) == {"rotten_flesh"}
    rare = {"iron_ingot", "carrot", "potato"}
    found = rolled(game, "zombie", by_player=True)
    assert set(found) == {"rotten_flesh"} | rare
    for item in rare:
        assert_shares(found[item], {1: 0.025 / 3})
    found = rolled(game, "zombie", by_player=True, looting=3)
    for item in rare:
        assert_shares(found[item], {1: 0.055 / 3})


def test_a_pool_draws_by_weight_as_often_as_it_is_rolled(game):
    bears = rolled(game, "polar_bear")
    assert_shares(bears["cod"], {1: 3 / 4 / 3, 2: 3 / 4 / 3})
    assert_shares(bears["salmon"], {1: 1 / 4 / 3, 2: 1 / 4 / 3})
    sticks = sum(sum(n * c for n, c in counts.items()) for counts in rolled(game, "witch").values())
    assert sticks / TRIES == pytest.approx(2.0, abs=0.05)  # one to three rolls of 0 to 2


def test_every_table_is_read_or_refused_by_name():
    for name in TABLES:
        if name in REFUSED:
            with pytest.raises(EngineError, match=re.escape(repr(REFUSED[name]))):
                read_table(TABLES, name, FILE)
            continue
        pools = list(read_table(TABLES, name, FILE))
        while pools:
            for entry in pools.pop().entries:
                pools += entry.table
                assert entry.item in ITEM_ID or not entry.item, name
                assert not entry.smelted_on_fire or ITEM_ID[entry.item] in SMELTING, name


def test_a_mob_with_an_unknown_condition_cannot_be_added():
    tables = {"imp": [{"at_midnight": True, "first_of": [{"item": "stick"}]}]}
    message = "mob_loot.json: the table 'imp' needs 'at_midnight', which is not implemented"
    with pytest.raises(EngineError, match=message):
        read_table(tables, "imp", FILE)
    with pytest.raises(EngineError, match="there is no table 'elf'"):
        read_table({"imp": [[{"table": "elf"}]]}, "imp", FILE)


def test_loot_lies_where_the_mob_died(game):
    for table, drops in (("cow", {"beef", "leather"}), ("sheep/white", {"white_wool", "mutton"})):
        game.items.clear()
        drop_mob_loot(game, table, (8.5, 70.0, 8.5), Circumstances())
        assert game.items.count and (game.items.position == (8.5, 70.0, 8.5)).all()
        assert {ITEMS[item].name for item in game.items.item.tolist()} <= drops


def as_ours(entries):
    """Entries of a pool of Minecraft's, in our notation."""

    def ends(count):
        return [int(count["min"]), int(count["max"])] if isinstance(count, dict) else [count] * 2

    def entry(given):
        name = given["name"].removeprefix("entities/")
        of = (
            "tag"
            if name.startswith("creeper_drop")
            else "table"
            if "/" in given["name"]
            else "item"
        )
        ours = {of: name} if name else {}
        if len(entries) > 1 and given["weight"] != 1:
            ours["weight"] = given["weight"]
        for function in given["functions"]:
            kind = function["function"].removeprefix("minecraft:")
            if kind == "set_count" and ends(function["count"]) != [1, 1]:
                ours["quantity"] = ends(function["count"])
            elif kind == "looting_enchant":
                assert function["count"]["min"] == 0.0
                ours["looting"] = int(function["count"]["max"])
                ours |= {"limit": function["limit"]} if "limit" in function else {}
            elif kind == "furnace_smelt":
                assert "is_on_fire" in str(function["conditions"])
                ours["smelted_on_fire"] = True
            elif kind != "set_count":
                ours[kind] = function["tag"]
        return ours

    pool = {"rolls": ends(entries[0]["rolls"])}
    for condition in entries[0]["conditions"]:
        kind = condition["condition"].removeprefix("minecraft:")
        if kind.startswith("random_chance"):
            pool["chance"] = condition["chance"]
            if "looting_multiplier" in condition:
                pool["chance_per_looting"] = condition["looting_multiplier"]
        else:
            pool[kind] = True
    return {**pool, "one_of" if len(entries) > 1 else "first_of": [*map(entry, entries)]}


def in_full(pool):
    """A pool of our file without its abbreviations; what is not implemented is only named."""
    pool = {"first_of": pool} if isinstance(pool, list) else pool
    named = {key: True for key in ("entity_properties", "damage_source_properties") if key in pool}
    return {"rolls": [1, 1], **pool, **named}


@pytest.mark.skipif(not FACTS.is_file(), reason="the facts are not at hand")
def test_the_tables_are_minecrafts():
    facts = json.loads(FACTS.read_text())
    assert set(TABLES) == set(facts)
    for name, entries in facts.items():
        pools = [list(group) for _, group in groupby(entries, key=lambda entry: entry["pool"])]
        wanted = sorted(json.dumps(as_ours(pool), sort_keys=True) for pool in pools)
        found = sorted(json.dumps(in_full(pool), sort_keys=True) for pool in TABLES[name])
        assert [*map(json.loads, found)] == [*map(json.loads, wanted)], name
