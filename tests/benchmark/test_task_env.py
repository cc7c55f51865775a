"""A policy's environment in the world of a task: what it keeps, what it must not lack."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.benchmark.judge import JUDGE
from rllib_minestudio.benchmark.players import check_environment, check_tasks, task_env_config
from rllib_minestudio.benchmark.task import BenchmarkTask
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError

FACTS = {
    "text": "Hunt a cow.",
    "category": "hunt",
    "time_limit": 40,
    "success": "kill_entity:cow>=1 or placed:dirt@near>=100",
    "because": "The game counts kills.",
    "world": {
        "biomes": ["plains", "forest"],
        "summon": [{"name": "cow", "number": 2, "range_x": [-3, 3], "range_z": [-3, 3]}],
        "inventory": [{"slot": "random", "type": "stick", "quantity": ">2,<9"}],
        "time": "night",
    },
}
TASK = BenchmarkTask.from_mapping("hunt/cow", FACTS)
TEXT = {"Task": {"task_cfg": {"name": "x", "text": "y"}, "max_text_bytes": 32}}


def names(config):
    return [spec if isinstance(spec, str) else next(iter(spec)) for spec in config["callbacks"]]


def test_the_policy_keeps_how_it_sees_and_acts_and_the_task_decides_the_rest():
    policy = {
        "obs_size": [64, 64],
        "sampling": "samples",
        "camera_config": {"camera_binsize": 1},
        "preferred_spawn_biome": "desert",
        "inventory": {0: {"type": "diamond"}},
        "num_empty_frames": 3,
        "callbacks": [{"MaskActions": {"inventory": 0}}, "PrevAction", {"JudgeReset": 7}, TEXT],
    }
    config = task_env_config(TASK, policy)
    assert {name: config[name] for name in ("obs_size", "sampling", "camera_config")} == {
        name: policy[name] for name in ("obs_size", "sampling", "camera_config")
    }
    assert config["preferred_spawn_biome"] == "plains"
    assert not {"inventory", "num_empty_frames", "seed"} & config.keys()
    assert names(config)[-5:] == ["MaskActions", "PrevAction", "Task", "JudgeReset", JUDGE]
    assert config["callbacks"][-2] == {"JudgeReset": 40}
    assert MineStudioEnv.spaces_of(config) == MineStudioEnv.spaces_of(policy)


def test_a_text_that_a_policy_does_not_read_is_not_in_its_observations():
    assert list(MineStudioEnv.space_of(task_env_config(TASK, {})).spaces) == ["image"]


def test_a_policy_that_reads_what_the_task_lacks_is_refused_in_one_sentence():
    policy = {"callbacks": [{"Compose": {"callbacks": ["PrevAction"]}}]}
    other = BenchmarkTask.from_mapping("hunt/again", FACTS)
    with pytest.raises(
        InvalidOptionsError, match="reads 'env_prev_action', which no callback"
    ) as e:
        check_tasks([TASK, other], policy)
    assert len(e.value.problems) == 1
    short = {"callbacks": [{"Task": {"task_cfg": {"name": "x"}, "max_text_bytes": 8}}]}
    with pytest.raises(InvalidOptionsError, match=r"its text has 11 bytes, .* room for 8"):
        task_env_config(TASK, short)


def test_a_policy_of_another_environment_is_refused():
    for name in ("MineStudio", MineStudioEnv, "rllib_minestudio.env.minestudio_env.MineStudioEnv"):
        check_environment(name)
    with pytest.raises(InvalidOptionsError, match="plays the environment 'CartPole-v1'"):
        check_environment("CartPole-v1")


def test_a_biome_that_the_engine_lacks_is_refused():
    facts = {**FACTS, "world": {"biomes": ["plain"]}}
    with pytest.raises(InvalidOptionsError, match=r"'plain'. Did you mean 'plains'"):
        task_env_config(BenchmarkTask.from_mapping("a", facts), {})


def test_marked_tasks_are_left_out():
    marked = BenchmarkTask.from_mapping("a", {**FACTS, "needs": ["fluids"]})
    assert list(check_tasks([marked, TASK], {})) == ["hunt/cow"]
    assert not check_tasks([TASK], {"engine": "minecraft"}), "it tells no placed blocks"


def play(env, seed, steps):
    rng = np.random.default_rng(1)
    obs, info = env.reset(seed=seed)
    seen = [(obs["image"].copy(), info)]
    for _ in range(steps):
        action = {
            "buttons": rng.integers(0, 8641, 1),
            "camera": rng.integers(0, 121, 1),
        }
        obs, _, terminated, truncated, info = env.step(action)
        seen.append((obs["image"].copy(), info))
        if terminated or truncated:
            break
    return seen


def test_the_same_seed_gives_the_same_episode_whatever_was_played_before():
    env = MineStudioEnv(task_env_config(TASK, {"obs_size": [64, 64]}))
    first = play(env, 5, 100)
    play(env, 6, 25)
    env.reset()
    again = play(env, 5, 100)
    assert len(first) == len(again) == 41, "the time limit is the task's"
    for (image, info), (other_image, other_info) in zip(first, again, strict=True):
        assert np.array_equal(image, other_image)
        assert info == other_info
    biomes = set()
    for seed in range(6):
        _, info = env.reset(seed=seed)
        biomes.add(info["location_stats"]["biome_id"])
        assert not info["success"] and info["task"] == "hunt/cow"
    assert len(biomes) == 2, "both of the task's biomes are drawn"
