"""The game dies, hangs or talks nonsense at every moment: a truncated episode, then a new game."""

import os
import signal
import time

import numpy as np
import pytest

from rllib_minestudio.env import ENGINE_ERROR
from rllib_minestudio.errors import EngineError

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

IDLE = {"buttons": 0, "camera": 60}
FIRST = {"launches": [0]}
"""Only the first game that is launched has the fault."""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("die", "has closed the connection|is gone"),
        ("hang", "has not answered in time"),
        ("short_frame", "a frame of 49145 bytes instead of 49152"),
        ("garbage_json", r"info cannot be read .*inventory"),
        ("no_health", "health is nan, which is not a finite number"),
    ],
)
def test_a_step_that_fails(engine, make_env, kind, message):
    engine.fail("step", kind, count=4, **FIRST)
    env = make_env(**engine.with_limits(step_timeout_s=3.0))
    env.reset(seed=1)
    for _ in range(3):
        last, *_, truncated, info = env.step(IDLE)
        assert not truncated
    started = time.monotonic()
    obs, reward, terminated, truncated, info = env.step(IDLE)
    assert time.monotonic() - started < 25
    np.testing.assert_array_equal(obs["image"], last["image"])
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert pytest.raises(EngineError, match=message).matches(EngineError(info[ENGINE_ERROR]))
    assert engine.living() == []
    env.reset()
    assert not env.step(IDLE)[3]
    assert len(engine.launches) == 2


def test_a_frozen_game_is_killed_too(engine, make_env):
    engine.fail("step", "freeze", count=2, **FIRST)
    env = make_env(**engine.with_limits(step_timeout_s=2.0))
    env.reset()
    assert not env.step(IDLE)[3]
    assert "not answered in time" in env.step(IDLE)[-1][ENGINE_ERROR]
    assert engine.living() == []


@pytest.mark.parametrize(
    ("at", "kind"),
    [("launch", "die"), ("launch", "hang"), ("mission", "hang"), ("peek", "die")],
)
def test_a_reset_that_fails_is_tried_again_with_a_new_game(engine, make_env, at, kind):
    engine.fail(at, kind, **FIRST)
    launch_timeout_s = 20.0 if (at, kind) == ("launch", "hang") else 60.0
    env = make_env(**engine.with_limits(launch_timeout_s=launch_timeout_s, reset_timeout_s=15.0))
    env.reset()
    assert not env.step(IDLE)[3]
    assert len(engine.launches) == 2
    assert len(engine.living()) == 1


def test_a_mission_that_is_over_before_it_begins(engine, make_env):
    engine.fail("peek", "done", **FIRST)
    env = make_env()
    env.reset()
    assert len(engine.launches) == 2


def test_a_game_that_never_starts_is_an_error_after_a_few_attempts(engine, make_env):
    engine.fail("launch", "die")
    env = make_env()
    started = time.monotonic()
    with pytest.raises(EngineError, match=r"failed 4 times in a row.*ended before it was ready"):
        env.reset()
    assert time.monotonic() - started > 3  # the pauses before the third and fourth attempt
    assert len(engine.launches) == 4


def test_a_slow_game_is_no_fault(engine, make_env):
    engine.fail("step", "slow", seconds=0.2)
    env = make_env(**engine.with_limits(step_timeout_s=5.0))
    env.reset()
    assert not any(env.step(IDLE)[3] for _ in range(3))
    assert len(engine.launches) == 1


def test_done_from_the_game_begins_a_new_world_despite_a_fast_reset(engine, make_env):
    engine.fail("step", "done", count=3, **FIRST)
    env = make_env(callbacks=[{"FastReset": {"biomes": ["plains"], "random_tp_range": 100}}])
    env.reset()
    steps = [env.step(IDLE)[2] for _ in range(3)]
    assert steps == [False, False, True]
    for _ in range(2):
        # The same process: its steps say "done" for ever, but the reset itself succeeds.
        env.reset()
    assert len(engine.launches) == 1


def test_a_game_killed_between_episodes(engine, make_env):
    env = make_env()
    env.reset()
    os.kill(engine.launches[-1], signal.SIGKILL)
    env.reset()
    assert not env.step(IDLE)[3]
    assert len(engine.launches) == 2


def test_the_game_is_started_anew_every_few_episodes(engine, make_env):
    fast = {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}}
    env = make_env(**engine.with_limits(restart_interval=2), callbacks=[fast])
    launches = []
    for _ in range(5):
        env.reset()
        launches.append(len(engine.launches))
    assert launches == [1, 1, 2, 2, 3]
    assert len(engine.living()) == 1
