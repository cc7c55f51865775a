"""A small hunting task, and recordings of it."""

from pathlib import Path
from typing import Any

import pytest

from rllib_minestudio.demonstrations.recording import RecordingOrder, record
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.recordings import Recording, find_recordings

COWS = {"name": "cow", "number": 5, "range_x": [-5, 5], "range_z": [-5, 5]}
KILL = {
    "event": "kill_entity",
    "objects": ["cow"],
    "reward": 1.0,
    "identity": "cow",
    "max_reward_times": 5,
}
TASK: dict[str, Any] = {
    "obs_size": [64, 64],
    "preferred_spawn_biome": "plains",
    "num_empty_frames": 1,
    "callbacks": [
        {"SummonMobs": {"mobs": [COWS]}},
        {"Rewards": {"reward_cfg": [KILL]}},
        {"Commands": {"commands": ["/give @p iron_sword 1", "/effect @p 5 9999 255 true"]}},
        {"JudgeReset": {"time_limit": 100}},
    ],
}


@pytest.fixture(scope="session")
def order() -> RecordingOrder:
    """Cows, hunted by the human-like hunter."""
    return RecordingOrder("cows", MineStudioEnv, TASK, prey=("cow",), seed=7)


@pytest.fixture(scope="session")
def recordings(order: RecordingOrder, tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """Three recorded episodes of 100 steps."""
    folder: Path = tmp_path_factory.mktemp("demonstrations")
    list(record(order, folder, 3))
    return list(find_recordings(folder))
