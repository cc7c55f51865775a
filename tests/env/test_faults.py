"""What happens when the engine or a callback raises."""

import contextlib

import numpy as np
import pytest

from rllib_minestudio.env import ENGINE_ERROR, MineStudioEnv, minestudio_env
from rllib_minestudio.env.minestudio_env import HEALTHY_STEPS, MAX_REBUILDS
from rllib_minestudio.errors import EngineError

SMALL = {"obs_size": [64, 64], "num_empty_frames": 1}
IDLE = {"buttons": 0, "camera": 60}


class Bomb:
    """Raises in a chosen hook while armed."""

    def __init__(self):
        self.armed = ""

    def _tick(self, hook):
        if self.armed == hook:
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
    assert info[ENGINE_ERROR] == "ZeroDivisionError: bomb in after_step"
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
    assert truncated and info[ENGINE_ERROR] == "MemoryError: kernel"
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
