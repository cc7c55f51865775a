"""`FlatSpaces`: actions press the keys that they name, and episodes are the environment's."""

import warnings
from itertools import product

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env import ActionMapper, CameraConfig, FlatSpaces
from rllib_minestudio.env.actions import KEYS
from rllib_minestudio.env.flat_spaces import (
    ACTION_GROUPS,
    DEFAULT_GROUPS,
    FlatActions,
    make_flat_env,
)
from rllib_minestudio.errors import InvalidActionError, InvalidOptionsError
from rllib_minestudio.foundation.names import NUM_BUTTONS
from tests.processes import run_python

TASK = {
    "obs_size": (64, 64),
    "num_empty_frames": 1,
    "callbacks": [
        {"InventoryCallback": {"items": ["oak_log", "stick"]}},
        "PrevActionCallback",
        {"JudgeReset": {"time_limit": 3}},
    ],
}
CAMERA = CameraConfig()
MAPPER = ActionMapper(CAMERA)
STANDING_STILL = (5, 5)


@pytest.fixture(scope="module")
def game():
    env = gymnasium.make("MineStudio-v0", **TASK)
    yield env
    env.close()


# ------------------------------------------------------------------------------------------ actions


def pressed_and_turned(flat, action):
    keys = MAPPER.to_env(*flat.to_tokens(action))
    return {key for key in KEYS if keys[key]}, tuple(keys["camera"])


def named(flat, action):
    """The keys and degrees that an action's elements mean, by `choices`."""
    chosen = {group: flat.choices[group][i] for group, i in zip(flat.choices, action, strict=True)}
    turned = (chosen.pop("pitch"), chosen.pop("yaw"))
    return set(chosen.values()) - {"none"}, turned


def test_every_action_presses_the_keys_it_names_and_all_tokens_are_reached():
    flat = FlatActions(ACTION_GROUPS, CAMERA)
    *groups, inventory = [range(n) for n in flat.space.nvec[:-2]]
    assert list(inventory) == [0, 1]
    tokens = set()
    for keys in product(*groups):
        for view in (STANDING_STILL, (0, 10)):
            action = np.array([*keys, 0, *view])
            assert pressed_and_turned(flat, action) == named(flat, action)
            tokens.add(flat.to_tokens(action)[0])
    assert tokens == set(range(NUM_BUTTONS - 1))


@pytest.mark.parametrize("keys", [(0,) * 8, (3, 1, 2, 1, 1, 1, 1, 1)])
def test_the_view_turns_by_the_degrees_named_and_inventory_is_pressed_alone(keys):
    flat = FlatActions(ACTION_GROUPS, CAMERA)
    for view in product(range(11), repeat=2):
        action = np.array([*keys, 0, *view])
        assert pressed_and_turned(flat, action) == named(flat, action)
        with_inventory = np.array([*keys, 1, *view])
        assert pressed_and_turned(flat, with_inventory) == ({"inventory"}, named(flat, action)[1])


def test_groups_that_are_left_out_are_never_chosen_from():
    flat = FlatActions(("jump", "yaw"), CameraConfig(camera_binsize=5))
    assert list(flat.choices) == ["jump", "yaw"] and flat.space.nvec.tolist() == [2, 5]
    mapper = ActionMapper(CameraConfig(camera_binsize=5))
    keys = mapper.to_env(*flat.to_tokens([1, 4]))
    assert {key for key in KEYS if keys[key]} == {"jump"} and keys["camera"].tolist() == [0, 10]
    assert not {"hotbar", "drop", "inventory"} & set(DEFAULT_GROUPS)


@pytest.mark.parametrize(
    "action", [3, [0] * 7, [0] * 9, [0.0] * 8, [3, *[0] * 7], [-1, *[0] * 7], ["a"] * 8, None]
)
def test_other_actions_are_refused(game, action):
    with pytest.raises(InvalidActionError, match="8 integers, for fore_back, left_right"):
        FlatSpaces(game).step(action)


# ------------------------------------------------------------------------------------- observations


def test_gymnasiums_checker_finds_nothing(game):
    for arguments in ({}, {"parts": None, "scale_image": True}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
            check_env(FlatSpaces(game, **arguments))


def test_frames_rewards_infos_and_ends_are_the_environments(game):
    actions = [[1, 0, 0, 0, 1, 0, 5, 9], [1, 2, 0, 0, 0, 1, 0, 0], [0] * 8]
    flat = FlatSpaces(game)
    seen = [flat.reset(seed=4), *map(flat.step, actions)]
    tokens = map(FlatActions(DEFAULT_GROUPS, CAMERA).to_tokens, actions)
    expected = [game.reset(seed=4), *map(game.step, tokens)]
    for (obs, *rest), (whole, *others) in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(obs, whole["image"])
        assert rest == others
    assert seen[-1][3], "truncated by the task"


def test_one_part_is_the_observation_and_several_are_a_flat_dict(game):
    assert FlatSpaces(game, parts=["inventory"]).observation_space.shape == (2,)
    flat = FlatSpaces(game, parts=("image", "env_prev_action/camera"), scale_image=True)
    obs, _ = flat.reset(seed=0)
    whole, _ = game.reset(seed=0)
    assert obs in flat.observation_space and list(obs) == ["image", "env_prev_action/camera"]
    np.testing.assert_array_equal(obs["image"], whole["image"] / np.float32(255))
    assert flat.observation_space["image"] == gymnasium.spaces.Box(0, 1, (64, 64, 3), np.float32)
    assert all(isinstance(space, gymnasium.spaces.Box) for space in flat.observation_space.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": "jump"}, "actions must be a list of hotbar, .*; got 'jump'"),
        ({"actions": ["jmp"]}, "unknown group of actions 'jmp'. Did you mean 'jump'"),
        ({"actions": ["jump", "jump"]}, "actions must name every group once"),
        ({"parts": []}, "parts must be a list of parts of the observation, or None for all"),
        ({"parts": ["imag", [1]]}, "'imag'. Did you mean 'image'"),
        ({"parts": ["env_prev_action"]}, "unknown part of the observation 'env_prev_action'"),
        ({"scale_image": 1}, "scale_image must be true or false; got 1"),
    ],
)
def test_wrong_arguments_are_refused(game, arguments, message):
    with pytest.raises(InvalidOptionsError, match=message):
        FlatSpaces(game, **arguments)


def test_other_environments_are_refused():
    with pytest.raises(InvalidOptionsError, match=r"whose action_type is 'agent'; got .*CartPole"):
        FlatSpaces(gymnasium.make("CartPole-v1"))
    with pytest.raises(InvalidOptionsError, match="whose action_type is 'agent'"):
        FlatSpaces(MineStudioEnv(action_type="env", obs_size=(64, 64)))


def test_a_spec_builds_it_again_with_its_arguments_and_the_time_limit():
    env = gymnasium.make("MineStudio-v0", max_episode_steps=2, obs_size=(64, 64))
    again = gymnasium.make(FlatSpaces(env, actions=("attack", "yaw")).spec)
    assert again.action_space.nvec.tolist() == [2, 11]
    again.reset(seed=0)
    assert [again.step([1, 5])[3] for _ in range(2)] == [False, True]


def test_several_play_side_by_side():
    envs = gymnasium.make_vec("MineStudio-v0", 2, "sync", wrappers=[FlatSpaces], **TASK)
    obs, _ = envs.reset(seed=0)
    assert obs.shape == (2, 64, 64, 3) and envs.action_space.shape == (2, 8)
    envs.step(envs.action_space.sample())
    envs.close()


# ------------------------------------------------------------------------ RLlib's name "MineStudio"


def test_environments_of_one_env_runner_play_different_episodes():
    task = {key: TASK[key] for key in ("num_empty_frames", "callbacks")}
    config = EnvContext({**task, "max_episode_steps": 2}, worker_index=3)
    first, second = make_flat_env(config), make_flat_env(config)
    assert first.observation_space.shape == (64, 64, 3)
    assert first.observation_space.dtype == np.float32
    assert {env.unwrapped.options.worker_index for env in (first, second)} == {3}
    assert (first.reset()[0] != second.reset()[0]).any()
    *_, info = first.step(first.action_space.sample())
    assert "health" in info and "inventory" not in info
    assert first.step(first.action_space.sample())[3], "truncated by max_episode_steps"
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flat_spaces": {"action": ["jump"]}}, "flat_spaces: unknown option 'action'.*'actions'"),
        ({"flat_spaces": ["jump"]}, "flat_spaces must be a mapping of actions, parts, scale_image"),
        ({"obs_sise": (64, 64)}, "unknown env option 'obs_sise'. Did you mean 'obs_size'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InvalidOptionsError, match=message):
        make_flat_env(options)


@pytest.mark.slow
def test_environments_in_child_processes_play_different_episodes():
    """As with `gym_env_vectorize_mode="async"`, whose children are forked from an env runner."""
    program = """
import gymnasium, rllib_minestudio
from rllib_minestudio.env.flat_spaces import make_flat_env
envs = gymnasium.vector.AsyncVectorEnv([lambda: make_flat_env({"num_empty_frames": 1})] * 2)
first, second = envs.reset()[0]
envs.close()
assert (first != second).any()
"""
    status, printed = run_python("-c", program)
    assert status == 0, printed
