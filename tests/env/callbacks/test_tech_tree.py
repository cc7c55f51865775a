"""What the tech tree pays: VPT's numbers, for everything once."""

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents import Toolmaker
from rllib_minestudio.env.callbacks import MinecraftCallback, TechTreeRewardsCallback
from rllib_minestudio.env.callbacks.builder import highest_return
from rllib_minestudio.env.callbacks.rewards import TECH_TREE_ITEMS
from rllib_minestudio.errors import InvalidOptionsError

SMALL = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}
IDLE = {"buttons": 0, "camera": 60}
WORTH = {
    "log": 1.0,
    "planks": 1.0,
    "stick": 1.0,
    "crafting_table": 1.0,
    "wooden_pickaxe": 1.0,
    "cobblestone": 1.0,
    "stone_pickaxe": 1.0,
    "furnace": 1.0,
    "coal": 2.0,
    "torch": 2.0,
    "iron_ore": 4.0,
    "iron_ingot": 4.0,
    "iron_pickaxe": 4.0,
}
"""What an episode pays for each item at most, diamonds aside."""


class Game:
    """A callback and the statistics that tests raise."""

    def __init__(self, **options):
        self.callback = TechTreeRewardsCallback(**options)
        self.info = {name: {} for name in ("craft_item", "pickup", "mine_block", "use_item")}
        self.reset()

    def reset(self):
        return self.callback.after_reset(None, {}, self.info)[1]

    def step(self, **happened):
        """Raise counters, given as statistic={name: amount}; return the reward and the counts."""
        self.info = {name: dict(counts) for name, counts in self.info.items()}
        for statistic, counts in happened.items():
            for name, amount in counts.items():
                self.info[statistic][name] = self.info[statistic].get(name, 0) + amount
        step = self.callback.after_step(None, {}, 99.0, False, False, self.info)
        return step[1], step[4]["tech_tree"]


def obtaining(item, amount=1):
    """Statistics of obtaining an item of the table in the ordinary way."""
    names = {"log": "birch_log", "planks": "oak_planks", "cobblestone": "cobblestone"}
    name = names.get(item.name, item.name)
    if item.crafted:
        return {"craft_item": {name: amount}}
    blocks = {"log": "birch_log", "cobblestone": "stone"}
    block = blocks.get(name, item.mined[0] if "*" not in item.mined[0] else name)
    return {"mine_block": {block: amount}, "pickup": {name: amount}}


def test_each_item_pays_what_the_paper_says_up_to_its_limit():
    game = Game()
    total = 0.0
    for item in TECH_TREE_ITEMS:
        one, _ = game.step(**obtaining(item))
        assert one == pytest.approx(float(item.each))
        rest, counts = game.step(**obtaining(item, 99))
        assert counts[item.name] == 100
        if item.name in WORTH:
            assert one + rest == pytest.approx(WORTH[item.name])
        else:
            assert one + rest == pytest.approx(
                100 * {"diamond": 8 / 3, "diamond_pickaxe": 8}[item.name]
            )
        total += one + rest
    assert sum(WORTH.values()) == 24.0 and total == pytest.approx(24 + 100 * (8 / 3 + 8))


def test_kinds_of_wood_count_together_and_nothing_else_counts():
    game = Game()
    logs = {"oak_log": 2, "birch_log": 3}
    reward, counts = game.step(mine_block=logs, pickup=logs)
    assert reward == pytest.approx(5 / 8) and counts["log"] == 5
    planks = {"oak_planks": 4, "spruce_planks": 8, "oak_slab": 6}
    assert game.step(craft_item=planks)[0] == pytest.approx(12 / 20)
    others = {"dirt": 3, "oak_leaves": 9, "cow": 1}
    assert game.step(mine_block=others, pickup=others)[0] == 0.0


@pytest.mark.parametrize(
    "again",
    [
        {"pickup": {"iron_ore": 1}},  # thrown away and picked up
        {"use_item": {"iron_ore": 1}, "mine_block": {"iron_ore": 1}, "pickup": {"iron_ore": 1}},
    ],
)
def test_an_item_pays_once(again):
    game = Game()
    (ore,) = (item for item in TECH_TREE_ITEMS if item.name == "iron_ore")
    assert game.step(**obtaining(ore))[0] == pytest.approx(4 / 3)
    for _ in range(3):
        assert game.step(**again)[0] == 0.0
    assert game.step(use_item={"iron_ore": 1})[0] == 0.0  # placing takes nothing back
    assert game.step(mine_block={"iron_ore": 1}, pickup={"iron_ore": 1})[0] == 0.0


def test_no_more_is_paid_than_was_mined():
    game = Game()
    assert game.step(mine_block={"coal_ore": 2}, pickup={"coal": 1})[0] == pytest.approx(2 / 5)
    assert game.step(pickup={"coal": 9})[0] == pytest.approx(2 / 5)


def test_what_was_given_is_not_obtained_by_placing_and_mining_it():
    game = Game()
    for _ in range(3):
        assert game.step(use_item={"oak_log": 1})[0] == 0.0
        assert game.step(mine_block={"oak_log": 1}, pickup={"oak_log": 1})[0] == 0.0
    assert game.step(mine_block={"oak_log": 1}, pickup={"oak_log": 1})[0] == 1 / 8


def test_crafted_items_that_are_picked_up_pay_nothing_more():
    game = Game()
    assert game.step(craft_item={"crafting_table": 1})[0] == 1.0
    table = {"crafting_table": 1}
    reward, counts = game.step(use_item=table, mine_block=table, pickup=table)
    assert reward == 0.0 and counts["crafting_table"] == 1


def test_statistics_that_arrive_late_are_paid_late():
    game = Game()
    assert game.step(pickup={"coal": 2})[0] == 0.0
    assert game.step(mine_block={"coal_ore": 2})[0] == pytest.approx(2 * 2 / 5)


def test_a_reset_begins_anew_though_the_game_goes_on_counting():
    game = Game()
    made = {
        "craft_item": {"crafting_table": 1},
        "mine_block": {"oak_log": 8},
        "pickup": {"oak_log": 8},
    }
    assert game.step(**made)[0] == 2.0
    told = game.reset()["tech_tree"]
    assert list(told) == [item.name for item in TECH_TREE_ITEMS] and not any(told.values())
    assert game.step()[0] == 0.0
    assert game.step(**made)[0] == 2.0


def test_scale_and_limits():
    game = Game(scale=3.0, limits={"torch": 4, "diamond": 0, "stick": None})
    reward, counts = game.step(craft_item={"torch": 8, "stick": 32})
    assert reward == pytest.approx(3.0 * (4 / 8 + 32 / 16)) and counts["torch"] == 8
    assert game.step(mine_block={"diamond_ore": 1}, pickup={"diamond": 1})[0] == 0.0


@pytest.mark.parametrize(
    ("options", "highest"),
    [
        ({}, None),
        ({"limits": {"diamond": 3, "diamond_pickaxe": 1}}, 40.0),
        ({"limits": {"diamond": 0, "diamond_pickaxe": 0}, "scale": 0.5}, 12.0),
    ],
)
def test_the_highest_return(options, highest):
    assert highest_return([{"TechTreeRewards": options}]) == highest


def test_wrong_arguments_are_all_named():
    with pytest.raises(InvalidOptionsError) as caught:
        TechTreeRewardsCallback(scale=0, limits={"logs": 3, "torch": -1})
    text = str(caught.value)
    assert "scale must be a number above 0" in text and "Did you mean 'log'?" in text
    assert "limits.torch must be an integer of at least 0" in text
    with pytest.raises(InvalidOptionsError, match="limits must be a mapping"):
        TechTreeRewardsCallback(limits=[3])


class Keys(MinecraftCallback):
    """Presses what the test says."""

    def __init__(self):
        self.pressed = {}

    def before_step(self, sim, action):
        return {**action, **self.pressed}


def played(env, keys, steps, **pressed):
    """Play steps with keys held; return what they paid and the last info."""
    keys.pressed, earned = pressed, 0.0
    for _ in range(steps):
        _, reward, _, _, info = env.step(IDLE)
        earned += reward
    return earned, info


def test_in_the_game_a_log_that_is_placed_and_mined_again_pays_once():
    keys = Keys()
    setup = [
        "/give @p iron_axe",
        "/effect give @p haste 9999 9",
        "/setblock ~ ~-1 ~ oak_log",
        "/setblock ~ ~-2 ~ bedrock",
    ]
    env = MineStudioEnv(SMALL, callbacks=["TechTreeRewards", {"Commands": setup}, keys])
    env.reset(seed=1)
    played(env, keys, 1, camera=np.array([90.0, 0.0]))
    earned, info = played(env, keys, 25, attack=1)
    assert info["pickup"] == {"oak_log": 1} and earned == 1 / 8
    played(env, keys, 1, **{"hotbar.2": 1})
    # It jumps, and puts the log below its feet, as one builds a pillar.
    played(env, keys, 5, jump=1)
    earned, info = played(env, keys, 10, use=1)
    assert info["use_item"].get("oak_log") == 1 and earned == 0.0
    played(env, keys, 1, **{"hotbar.1": 1})
    earned, info = played(env, keys, 25, attack=1)
    assert info["mine_block"]["oak_log"] == 2 and info["pickup"] == {"oak_log": 2}
    assert earned == 0.0 and info["tech_tree"]["log"] == 1


def test_in_the_game_an_agent_is_paid_for_what_it_makes_of_given_logs():
    """A fast reset later, the same again: 12 of 20 planks, 4 of 16 sticks, table and pickaxe."""
    env = MineStudioEnv(
        SMALL,
        callbacks=[
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}},
            {"Commands": ["/give @p oak_log 3"]},
            {"Task": [{"name": "pickaxe", "make": "wooden_pickaxe"}]},
            "TechTreeRewards",
        ],
    )
    agent = Toolmaker(seed=8)
    for seed in (8, None):
        agent.reset()
        _, info = env.reset(seed=seed)
        earned = 0.0
        for _ in range(900):
            _, reward, _, _, info = env.step(agent.act(env))
            earned += reward
            if info["tech_tree"]["wooden_pickaxe"]:
                break
        counts = {name: count for name, count in info["tech_tree"].items() if count}
        assert counts == {"planks": 12, "stick": 4, "crafting_table": 1, "wooden_pickaxe": 1}
        assert earned == pytest.approx(12 / 20 + 4 / 16 + 1 + 1)
        assert info["task"] == "pickaxe"
