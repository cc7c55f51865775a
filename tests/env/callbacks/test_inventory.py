"""Inventory: the counts of some items, as the game's info has them."""

import numpy as np
import pytest

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError

SMALL = {"obs_size": [32, 32], "num_empty_frames": 1, "preferred_spawn_biome": "plains"}
ITEMS = ["dirt", "oak_log", "stick"]


def game(items):
    logs = [{"slot": slot, "type": "oak_log", "quantity": 8} for slot in (0, 20)]
    sticks = [{"slot": slot, "type": "stick", "quantity": 64} for slot in (1, 2)]
    callbacks = [{"InitInventory": {"init_inventory": logs + sticks}}, {"Inventory": items}]
    return MineStudioEnv(SMALL, callbacks=callbacks, action_type="env")


def test_it_counts_what_all_slots_hold():
    env = game(ITEMS)
    obs, _ = env.reset(seed=1)
    assert obs in env.observation_space
    assert obs["inventory"].tolist() == [0.0, 16 / 64, 1.0]  # 128 sticks are told as 64
    env.step({})
    obs, _ = env.reset(seed=2)
    assert obs["inventory"].tolist() == [0.0, 16 / 64, 1.0]


def test_what_hangs_on_the_cursor_is_not_counted():
    env = game(ITEMS)
    env.reset(seed=1)
    env.step({"inventory": 1})
    env.step({"camera": np.array([10.2, -9.6])})  # from the middle to the first slot
    obs, *_ = env.step({"attack": 1})
    assert obs["inventory"].tolist() == [0.0, 8 / 64, 1.0]
    obs, *_ = env.step({"inventory": 1})  # thrown away
    assert obs["inventory"].tolist() == [0.0, 8 / 64, 1.0]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["oak_log", "stik"], "no item 'stik'. Did you mean 'stick'"),
        (["stick", "stick"], "must name every item once"),
        ([], "must be a list of items"),
        ([3], "no item 3"),
        ([["stick"]], r"no item \['stick'\]"),
    ],
)
def test_what_it_cannot_count_is_named(items, message):
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv.check_options({"callbacks": [{"Inventory": {"items": items}}]})
