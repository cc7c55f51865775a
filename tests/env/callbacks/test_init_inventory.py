"""InitInventory: what lies in which slot at the start of an episode."""

import logging
from collections import Counter

import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.callbacks import build_callbacks
from rllib_minestudio.env.callbacks.initial_state import allowed_quantities
from rllib_minestudio.errors import InvalidOptionsError

SMALL = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}


def make_env(entries, **arguments):
    callback = {"InitInventory": {"init_inventory": entries, **arguments}}
    return MineStudioEnv(SMALL, callbacks=[callback])


def item(slot, name="oak_planks", quantity=1, **more):
    return {"slot": slot, "type": name, "quantity": quantity, **more}


def filled(info):
    return {slot: stack for slot, stack in info["inventory"].items() if stack["type"] != "none"}


def test_every_slot_gets_what_it_should_in_each_episode(caplog):
    env = make_env(
        [
            item(0, "iron_sword"),
            item("8", "minecraft:dirt", ">=2,<4"),
            item(9, "stick", 17),
            item(35, "egg", ">15"),
            item(36, "iron_boots"),
            item(37, "iron_leggings"),
            item(38, "iron_chestplate"),
            item(39, "iron_helmet"),
            item(40, "shield"),
        ]
    )
    with caplog.at_level(logging.WARNING):
        counts = set()
        for i in range(6):
            _, info = env.reset(seed=5 if i == 0 else None)
            stacks = filled(info)
            counts.add(stacks.pop(8)["quantity"])
            assert stacks == {
                0: {"type": "iron_sword", "quantity": 1},
                9: {"type": "stick", "quantity": 17},
                35: {"type": "egg", "quantity": 16},
            }
            worn = {place: each["type"] for place, each in info["equipped_items"].items()}
            assert worn == {
                "mainhand": "iron_sword",
                "offhand": "shield",
                "head": "iron_helmet",
                "chest": "iron_chestplate",
                "legs": "iron_leggings",
                "feet": "iron_boots",
            }
    assert counts == {2, 3}
    assert "InitInventory" not in caplog.text


class SelectsTheFifthSlot:
    def after_reset(self, sim, obs, info):
        raw_obs, _, _, raw_info = sim.env.step({"hotbar.5": 1})
        return sim._wrap_obs_info(raw_obs, raw_info)


def test_slot_0_is_that_of_the_hotbar_whichever_is_in_hand():
    held = {"InitInventory": [item(0, "stick"), item(4, "dirt")]}
    env = MineStudioEnv(SMALL, callbacks=[SelectsTheFifthSlot(), held])
    _, info = env.reset(seed=1)
    assert {slot: stack["type"] for slot, stack in filled(info).items()} == {0: "stick", 4: "dirt"}
    assert info["equipped_items"]["mainhand"]["type"] == "dirt"


def test_random_slots_are_free_ones_and_follow_the_seed():
    entries = [item(slot, "stone") for slot in range(3, 30)]
    entries += [item("random", "egg", 7), item("random", "stick")]

    def play():
        env = make_env(entries)
        found = []
        for i in range(20):
            _, info = env.reset(seed=2 if i == 0 else None)
            stacks = filled(info)
            assert len(stacks) == len(entries)
            found += [
                [slot for slot, each in stacks.items() if each["type"] == name]
                for name in ("egg", "stick")
            ]
        return found

    found = play()
    assert len({slot for (slot,) in found}) > 5
    assert play() == found


def test_random_quantities_are_mostly_one():
    env = make_env([item(slot, "stick", "random") for slot in range(36)])
    quantities = Counter()
    for i in range(10):
        _, info = env.reset(seed=3 if i == 0 else None)
        quantities.update(stack["quantity"] for stack in filled(info).values())
    assert quantities.total() == 360 and set(quantities) <= set(range(1, 65))
    assert 0.6 < quantities[1] / 360 < 0.8
    assert max(quantities) > 50


@pytest.mark.parametrize(
    ("level", "fewest", "most"),
    [("zero", 0, 0), ("one", 1, 1), ("easy", 3, 6), ("hard", 16, 34), ([2, 4], 2, 4)],
)
def test_distractions(level, fewest, most, caplog):
    env = make_env([item(0, "stick")], distraction_level=level)
    with caplog.at_level(logging.WARNING):
        numbers, kinds = [], set()
        for i in range(8):
            _, info = env.reset(seed=3 if i == 0 else None)
            stacks = filled(info)
            assert stacks.pop(0)["type"] == "stick"
            numbers.append(len(stacks))
            kinds.update(stack["type"] for stack in stacks.values())
    assert fewest <= min(numbers) and max(numbers) <= most
    assert len(set(numbers)) > 1 or fewest == most
    assert len(kinds) > 2 or not most
    assert "failed" not in caplog.text  # only items that the engine has


def test_the_engines_items_are_minecrafts():
    env = make_env([])
    assert set(env.backend.item_names()) == set(STACK_SIZES)
    assert len(STACK_SIZES) == 975


def test_what_the_engine_lacks_is_named_once(caplog):
    env = make_env([item(0, "stick"), item(1, "elytra"), item(2, "totem_of_undying")])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            _, info = env.reset()
    assert set(filled(info)) == {0, 1, 2}
    lacking = [record.getMessage().partition(", but ")[2] for record in caplog.records]
    assert lacking == ["elytra cannot be worn here", "totem_of_undying cannot be used here"]


@pytest.mark.parametrize(
    ("quantity", "stack", "allowed"),
    [
        (5, 1, [5]),
        (0, 64, []),
        (65, 64, []),
        (True, 64, []),
        (None, 64, []),
        ("random", 3, [1, 2, 3]),
        (">2", 4, [3, 4]),
        ("<12,>10", 64, [11]),
        (">=2 , <= 3", 64, [2, 3]),
        ("==7", 16, [7]),
        ("==17", 16, []),
        ("<1", 16, []),
        ("7", 16, []),
        (">=2,many", 16, []),
        ("", 16, []),
    ],
)
def test_quantities(quantity, stack, allowed):
    assert allowed_quantities(quantity, stack) == allowed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"init_inventory": {}}, r"init_inventory must be a list"),
        ({"init_inventory": [7]}, r"init_inventory\[0\] must be a mapping with slot, type, qua"),
        ([item(41)], r"slot must be an integer from 0 to 40, or random; got 41"),
        ([item("any")], r"slot must be.*got 'any'"),
        ([item(0, "oak_plank")], r"has no item 'oak_plank'\. Did you mean 'oak_planks'"),
        ([item(0, "egg", ">16")], r"that 1 to 16 egg can meet; got '>16'"),
        ([{"slot": 0, "type": "egg"}], r"quantity must be an integer from 1 to 64.*got None"),
        ([item(0, metadata="5")], r"metadata must be NBT data in braces"),
        ([item(0, metadata="{a:\n}")], r"metadata must be one line"),
        ([{**item(0), "quantitty": 1}], r"Did you mean 'quantity'"),
        ([item(3), item("3", "dirt")], r"fills slot 3 twice"),
        ([*map(item, range(35)), item("random"), item("random")], r"2 random slots, but only 1"),
        ({"init_inventory": [], "distraction_level": "hrad"}, r"Did you mean 'hard'"),
        ({"init_inventory": [], "distraction_level": [37]}, r"integers from 0 to 36; got \[37\]"),
        ({"init_inventory": [], "distraction_level": []}, r"a non-empty list"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(InvalidOptionsError, match=message):
        build_callbacks([{"InitInventory": arguments}])


def test_metadata_goes_into_the_item():
    commands = []
    env = make_env([item(1, "iron_sword", metadata="{Damage:5}")])
    execute = env.backend.execute_cmd
    env.backend.execute_cmd = lambda command: commands.append(command) or execute(command)
    env.reset()
    assert commands == ["/replaceitem entity @p hotbar.1 minecraft:iron_sword{Damage:5} 1"]
