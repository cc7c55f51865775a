"""What the observation space promises is what every reset and step gives."""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_minestudio.env import ENGINE_ERROR, MineStudioEnv
from rllib_minestudio.env.callbacks import MinecraftCallback
from rllib_minestudio.env.minestudio_env import blank_observation
from rllib_minestudio.errors import EngineError, InvalidOptionsError
from rllib_minestudio.foundation.observations import parts_of

SMALL = {"obs_size": [32, 32], "render_size": [64, 36], "num_empty_frames": 1}
IDLE = {"buttons": 0, "camera": 60}
BOX = gym.spaces.Box(0, 20, (), np.float32)
TASKS = {"Task": [{"name": "dig", "text": "dig a hole"}, {"name": "chop", "text": "chop"}]}
COMMANDS = {"Commands": ["/time set 0"]}
"""Steps the game in a reset, after which what others have added must still be there."""


class Senses(MinecraftCallback):
    """Adds two numbers, one of them in a mapping, and forgets the other when told to."""

    def __init__(self, spaces=None, forgetful=False):
        inner = gym.spaces.Dict({"y.z": gym.spaces.Discrete(3, start=5)})
        self.spaces = {"health": BOX, "where": inner} if spaces is None else spaces
        self.forgetful = forgetful

    def observation_spaces(self):
        return self.spaces

    def after_reset(self, sim, obs, info):
        return {**obs, "health": np.array(3, np.float32), "where": {"y.z": np.int64(6)}}, info

    def after_step(self, sim, obs, reward, terminated, truncated, info):
        if not self.forgetful:
            obs = {**obs, "health": np.array(3, np.float32), "where": {"y.z": np.int64(6)}}
        return obs, reward, terminated, truncated, info


class Explodes:
    """Raises in one step."""

    def __init__(self, at=3):
        self.left = at

    def before_step(self, sim, action):
        self.left -= 1
        if not self.left:
            raise RuntimeError("boom")
        return action


COMBINATIONS = {
    "image only": [COMMANDS],
    "previous action": ["PrevAction", COMMANDS],
    "task": [TASKS, COMMANDS],
    "both": [{"Compose": {"callbacks": ["PrevAction", TASKS, COMMANDS]}}],
    "own": ["PrevAction", Senses(), TASKS, COMMANDS],
}


@pytest.mark.parametrize("callbacks", COMBINATIONS.values(), ids=COMBINATIONS)
def test_the_space_tells_the_truth(callbacks):
    env = MineStudioEnv(SMALL, callbacks=[*copy.deepcopy(callbacks), Explodes()])
    assert env.observation_space == MineStudioEnv.space_of({**SMALL, "callbacks": callbacks})
    parts_of(env.observation_space)
    obs, info = env.reset(seed=1)
    assert obs in env.observation_space
    for _ in range(3):
        obs, _, _, truncated, info = env.step(IDLE)
        assert obs in env.observation_space
    assert truncated and ENGINE_ERROR in info
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(MineStudioEnv(SMALL, callbacks=copy.deepcopy(callbacks)))


def test_a_blank_observation_is_one_of_the_space():
    env = MineStudioEnv(SMALL, callbacks=COMBINATIONS["own"])
    obs = blank_observation(env.observation_space)
    assert obs in env.observation_space and not obs["image"].any()
    assert obs["where"]["y.z"] == 5  # nearest to zero
    env.close()


def test_a_failure_repeats_the_observation_before():
    env = MineStudioEnv(SMALL, callbacks=[*COMBINATIONS["own"], Explodes(at=1)])
    before, _ = env.reset(seed=1)
    obs, *_, truncated, info = env.step(IDLE)
    assert truncated and ENGINE_ERROR in info
    assert obs in env.observation_space and pickle.dumps(obs) == pickle.dumps(before)


def test_twins_observe_the_same():
    twins = [MineStudioEnv(SMALL, callbacks=copy.deepcopy(COMBINATIONS["own"])) for _ in range(2)]
    actions = np.random.default_rng(0)
    results = [twin.reset(seed=4) for twin in twins]
    for _ in range(20):
        assert pickle.dumps(results[0]) == pickle.dumps(results[1])
        action = {"buttons": actions.integers(8641), "camera": actions.integers(121)}
        results = [twin.step(action) for twin in twins]


def test_cameras_beyond_the_space_are_told_as_its_bounds():
    env = MineStudioEnv(SMALL, callbacks=["PrevAction"], action_type="env")
    env.reset(seed=1)
    obs, *_ = env.step({"camera": np.array([-500.0, 359.0]), "attack": np.array([1])})
    np.testing.assert_array_equal(obs["env_prev_action"]["camera"], [-180.0, 180.0])
    assert obs in env.observation_space


def test_a_promise_that_is_not_kept_is_named():
    env = MineStudioEnv(SMALL, callbacks=[Senses(forgetful=True)])
    env.reset(seed=1)
    obs, *_, truncated, info = env.step(IDLE)
    assert truncated and "no 'health'" in info[ENGINE_ERROR] and obs in env.observation_space
    env = MineStudioEnv(SMALL, callbacks=[Senses({"helth": BOX})])
    with pytest.raises(EngineError, match=r"no 'helth'.*observation_spaces"):
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([Senses({"image": BOX})], r"Senses must not declare the frame.*got 'image'"),
        ([Senses({"a.b": BOX})], r"Senses: .*must be a text without dots; got 'a\.b'"),
        ([Senses({3: BOX})], r"a key must be a text; got 3"),
        ([Senses({"word": gym.spaces.Text(5)})], r"'word' .*must be a Box"),
        ([Senses({"health": 3})], r"key 'health', must be a gymnasium space; got 3"),
        ([Senses([BOX])], r"must return a mapping"),
        (
            [Senses(), Senses({"health": gym.spaces.Discrete(21)})],
            r"must agree with Senses.*rename",
        ),
        (
            [TASKS, {"Task": {"task_cfg": {"name": "dig"}, "max_text_bytes": 9}}],
            r"must agree with TaskCallback, which declares 'task_text'",
        ),
        (
            [{"Compose": {"callbacks": ["PrevAction", COMMANDS], "options": 1}}],
            r"Compose: options can draw callbacks without 'env_prev_action'.*1 of 2",
        ),
    ],
)
def test_declarations_that_cannot_be_kept_are_refused_by_name(callbacks, message):
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv.space_of({"callbacks": callbacks})
    with pytest.raises(InvalidOptionsError, match=message):
        MineStudioEnv(SMALL, callbacks=callbacks)


def test_one_of_several_tasks_may_be_drawn():
    one_of = {"callbacks": [TASKS, {"Task": [{"name": "hunt"}]}], "options": 1}
    env = MineStudioEnv(SMALL, callbacks=[{"Compose": one_of}])
    assert set(env.observation_space.spaces) == {"image", "task_text"}
    drawn = [env.reset(seed=i) for i in range(6)]
    assert all(obs in env.observation_space for obs, _ in drawn)
    assert "hunt" in {info["task"] for _, info in drawn}


class Costly(MinecraftCallback):
    """Must not be built just to know the space."""

    def __init__(self):
        raise AssertionError("built")


def test_only_what_may_declare_is_built_to_know_the_space(monkeypatch):
    monkeypatch.setattr(MineStudioEnv, "_build", None)
    space = MineStudioEnv.space_of({"callbacks": [f"{__name__}.Costly", f"{__name__}.Senses"]})
    assert set(space.spaces) == {"image", "health", "where"}
    assert space["image"].shape == (128, 128, 3)
