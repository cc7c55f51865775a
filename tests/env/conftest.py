"""The cow task of MineStudio's online quick start, as the tuned example has it."""

import copy

import pytest

COW_TASK = {
    "obs_size": [128, 128],
    "preferred_spawn_biome": "plains",
    "callbacks": [
        {
            "SummonMobs": {
                "mobs": [{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]
            }
        },
        {"MaskActions": {"inventory": 0}},
        {
            "Rewards": {
                "reward_cfg": [
                    {
                        "event": "kill_entity",
                        "objects": ["cow"],
                        "reward": 1.0,
                        "identity": "kill_cow",
                        "max_reward_times": 30,
                    }
                ]
            }
        },
        {
            "Commands": {
                "commands": ["/give @p minecraft:iron_sword 1", "/effect @p 5 9999 255 True"]
            }
        },
        {"FastReset": {"biomes": ["plains"], "random_tp_range": 1000}},
        {"JudgeReset": {"time_limit": 600}},
    ],
}


@pytest.fixture
def cow_task():
    """Options of the cow task; a fresh copy per test."""
    return copy.deepcopy(COW_TASK)
