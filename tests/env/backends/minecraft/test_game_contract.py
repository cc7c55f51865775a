"""What MineStudio's simulator does otherwise than an env should, done right over the real game."""

import copy
import pickle
import random

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_minestudio.errors import InvalidActionError

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

IDLE = {"buttons": 0, "camera": 60}
COWS = {"name": "cow", "number": 2, "range_x": [-5, 5], "range_z": [-5, 5]}


def test_the_checker_of_gymnasium_finds_nothing(played):
    check_env(played, skip_render_check=True)


def test_sizes_are_width_and_height_everywhere(played):
    obs, _ = played.reset()
    assert obs["image"].shape == played.observation_space["image"].shape == (64, 96, 3)
    assert played.observation_space is played.observation_space
    assert played.action_space is played.action_space


def test_a_seed_decides_the_episode_and_the_world(played):
    first, info = played.reset(seed=5)
    other, _ = played.reset(seed=6)
    again, info_again = played.reset(seed=5)
    np.testing.assert_array_equal(first["image"], again["image"])
    assert info["player_pos"] == info_again["player_pos"]
    assert (first["image"] != other["image"]).any()


def test_fast_resets_draw_from_the_envs_generator_alone(played):
    played.reset(seed=5)
    state = random.getstate(), np.random.get_state()[1].tolist()
    _, info = played.reset()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state
    played.reset(seed=5)
    random.seed(99)
    _, info_again = played.reset()
    assert info["player_pos"] == info_again["player_pos"]


def test_a_time_limit_truncates_and_does_not_terminate(played):
    played.reset()
    ends = [played.step(IDLE)[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(False, True)]


def test_actions_are_left_alone(played):
    played.reset()
    action = {"buttons": np.array([5]), "camera": np.array([33])}
    given = copy.deepcopy(action)
    played.step(action)
    assert action == given


def test_infos_are_small_plain_fresh_and_alike(played, capfd):
    _, at_reset = played.reset()
    first = played.step(IDLE)[-1]
    kept = copy.deepcopy(first)
    second = played.step({"buttons": 1, "camera": 60})[-1]
    assert first == kept and first is not second
    assert at_reset.keys() == first.keys()
    assert len(pickle.dumps(first)) < 8192
    assert not _arrays(first)
    assert capfd.readouterr().out == ""


def test_the_original_time_limit_and_prints_are_corrected(make_env, capfd):
    package = "minestudio.simulator.callbacks"
    env = make_env(
        obs_size=[64, 64],
        callbacks=[
            {f"{package}.SummonMobsCallback": {"mobs": []}},
            {f"{package}.CommandsCallback": {"commands": []}},
            {f"{package}.TaskCallback": {"task_cfg": [{"name": "a"}, {"name": "b"}]}},
            {f"{package}.FastResetCallback": {"biomes": ["plains"], "random_tp_range": 90}},
            {f"{package}.JudgeResetCallback": 2},
        ],
    )
    env.reset(seed=3)
    assert [env.step(IDLE)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    _, info = env.reset()
    env.reset(seed=3)
    random.seed(1)
    np.random.seed(1)
    assert env.reset()[1]["player_pos"] == info["player_pos"]
    assert capfd.readouterr().out == ""


def test_commands_with_two_lines_press_no_keys(make_env):
    env = make_env(obs_size=[64, 64])
    env.reset()
    with pytest.raises(InvalidActionError, match="one line"):
        env.backend.execute_cmd("/say hi\nattack 1")


NO_OTHERS = {"Commands": ["/kill @e[type=!player]"]}


def test_mobs_and_blocks_on_request(make_env):
    voxels = {
        "minestudio.simulator.callbacks.VoxelsCallback": {"voxels_ins": [-1, 1, -1, 0, -1, 1]}
    }
    env = make_env(
        obs_size=[64, 64], callbacks=[voxels, NO_OTHERS, {"SummonMobs": {"mobs": [COWS]}}]
    )
    env.reset(seed=1)
    for _ in range(25):  # those of the land take a second to die
        env.step(IDLE)
    assert len(env.sim.info["voxels"]) == 18
    cows = [mob for mob in env.backend.mobs_near(12) if mob["name"] == "cow"]
    assert len(cows) == 2
    assert all(cow["distance"] <= 12 for cow in cows)


def _arrays(value):
    if isinstance(value, dict):
        return [found for each in value.values() for found in _arrays(each)]
    return [value] if isinstance(value, np.ndarray | np.generic) else []
