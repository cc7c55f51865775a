"""What happens when the engine or a callback raises."""

import contextlib
import math
import re

import gymnasium as gym
import numpy as np
import pytest

from rllib_minestudio.env import ENGINE_ERROR, MineStudioEnv, minestudio_env
from rllib_minestudio.env.minestudio_env import HEALTHY_STEPS, MAX_REBUILDS
from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation.names import RESET_ERROR

SMALL = {"obs_size": [64, 64], "num_empty_frames": 1}
IDLE = {"buttons": 0, "camera": 60}


class Bomb:
    """Raises in a chosen hook while armed."""

    def __init__(self):
        self.armed = ""
        self.times = math.inf

    def _tick(self, hook):
        if self.armed == hook and self.times > 0:
            self.times -= 1
            raise ZeroDivisionError(f"bomb in {hook}")

    def after_step(self, sim, *result):
        self._tick("after_step")
        return result

    def before_reset(self, sim, reset_flag):
        self._tick("before_reset")
        return reset_flag


@pytest.fixture
def bomb():
    return Bomb()


@pytest.fixture
def env(bomb):
    return MineStudioEnv(SMALL, callbacks=[bomb, {"JudgeReset": 10}])


def test_a_raising_callback_truncates_with_the_last_observation(env, bomb):
    env.reset()
    last, *_ = env.step(IDLE)
    bomb.armed = "after_step"
    obs, reward, terminated, truncated, info = env.step(IDLE)
    np.testing.assert_array_equal(obs["image"], last["image"])
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert re.fullmatch(
        r"ZeroDivisionError: bomb in after_step \(test_faults.py, line \d+: raise Zero.*\)",
        info[ENGINE_ERROR],
    )
    assert "player_pos" in info
    assert not env.render().any()
    with pytest.raises(Exception, match="call reset"):
        env.step(IDLE)


def test_the_next_reset_rebuilds_and_goes_on(env, bomb):
    env.reset()
    broken = env.backend
    bomb.armed = "after_step"
    env.step(IDLE)
    bomb.armed = ""
    _, info = env.reset()
    assert ENGINE_ERROR not in info
    assert env.backend is not broken
    assert ENGINE_ERROR not in env.step(IDLE)[-1]


def test_a_raising_engine_is_treated_alike(env, monkeypatch):
    env.reset()

    def crash(action):
        raise MemoryError("kernel")

    monkeypatch.setattr(env.backend.engine, "tick", crash)
    *_, truncated, info = env.step(IDLE)
    assert truncated and info[ENGINE_ERROR].startswith("MemoryError: kernel")
    env.reset()
    assert not env.step(IDLE)[3]


def test_a_seeded_reset_after_a_failure_is_still_reproducible(env, bomb):
    expected, _ = env.reset(seed=11)
    bomb.armed = "after_step"
    env.step(IDLE)
    bomb.armed = ""
    obs, _ = env.reset(seed=11)
    np.testing.assert_array_equal(obs["image"], expected["image"])


def test_rebuilds_in_a_row_are_bounded_in_resets(env, bomb):
    bomb.armed = "before_reset"
    with pytest.raises(EngineError, match=rf"failed {MAX_REBUILDS + 1} times in a row.*bomb"):
        env.reset()
    bomb.armed = ""
    env.reset()


def test_rebuilds_in_a_row_are_bounded_over_episodes(env, bomb):
    bomb.armed = "after_step"
    for _ in range(MAX_REBUILDS):
        env.reset()
        assert ENGINE_ERROR in env.step(IDLE)[-1]
    env.reset()
    with pytest.raises(EngineError, match="times in a row"):
        env.step(IDLE)


def test_rare_failures_are_survived_for_ever(env, bomb):
    for _ in range(MAX_REBUILDS + 2):
        env.reset()
        while not env.step(IDLE)[3]:
            pass
        env.reset()
        bomb.armed = "after_step"
        env.step(IDLE)
        bomb.armed = ""


def test_long_healthy_stretches_count_too(bomb):
    env = MineStudioEnv(SMALL, callbacks=[bomb])
    for _ in range(MAX_REBUILDS + 2):
        env.reset()
        for _ in range(HEALTHY_STEPS):
            env.step(IDLE)
        bomb.armed = "after_step"
        env.step(IDLE)
        bomb.armed = ""


def test_the_pause_before_a_rebuild_is_bounded_however_often_it_fails():
    failures = minestudio_env.engine_failures(pauses=True)
    pauses = []
    for _ in range(2000):
        with contextlib.suppress(EngineError):  # whoever goes on after it
            failures.note_failure("RuntimeError", "again")
        pauses.append(failures.delay_s)
    assert pauses[:5] == [0.0, 1.0, 2.0, 4.0, 4.0]
    assert max(pauses) == minestudio_env.LONGEST_PAUSE_S


def test_the_first_info_tells_of_an_engine_that_was_rebuilt_in_the_reset(env, bomb):
    _, info = env.reset()
    assert RESET_ERROR not in info
    bomb.armed, bomb.times = "before_reset", 1
    _, info = env.reset()
    assert "bomb in before_reset" in info[RESET_ERROR] and ENGINE_ERROR not in info
    _, info = env.reset()
    assert RESET_ERROR not in info


class Speedometer:
    """Declares three numbers and adds something else."""

    def __init__(self, value):
        self.value = value

    def observation_spaces(self):
        return {"speed": gym.spaces.Box(-1, 1, (3,), np.float32)}

    def after_reset(self, sim, obs, info):
        return {**obs, "speed": np.zeros(3, np.float32)}, info

    def after_step(self, sim, obs, *result):
        return {**obs, "speed": self.value}, *result


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros(4, np.float32), r"float32 \(4,\)"),
        (np.zeros(3), r"float64 \(3,\)"),
        (np.zeros(1, np.float32), r"float32 \(1,\)"),  # NumPy would broadcast it
        (None, r"object \(\)"),
    ],
)
def test_a_part_that_is_not_as_declared_names_its_callback(value, found):
    env = MineStudioEnv(SMALL, callbacks=[{"Compose": {"callbacks": [Speedometer(value)]}}])
    env.reset()
    error = env.step(IDLE)[-1][ENGINE_ERROR]
    assert re.search(rf"'speed' is {found}, but .* of Speedometer declares float32 \(3,\)", error)


def test_a_frame_of_another_size_names_the_callbacks_that_are_not_ours():
    class Zoom:
        def after_step(self, sim, obs, *result):
            return {**obs, "image": obs["image"][8:-8, 8:-8]}, *result

    env = MineStudioEnv(SMALL, callbacks=[{"JudgeReset": 10}, Zoom()])
    env.reset()
    error = env.step(IDLE)[-1][ENGINE_ERROR]
    assert "uint8 (48, 48, 3) instead of uint8 (64, 64, 3): one of Zoom must" in error


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_ends_the_episode(reward):
    class Pays:
        def after_step(self, sim, obs, _, terminated, truncated, info):
            return obs, reward, terminated, truncated, info

    env = MineStudioEnv(SMALL, callbacks=[Pays()])
    env.reset()
    _, earned, terminated, truncated, info = env.step(IDLE)
    assert (earned, terminated, truncated) == (0.0, False, True)
    assert f"the reward {reward}: it must be finite" in info[ENGINE_ERROR]
