"""`gymnasium.make("MineStudio-v0")`: whichever is imported first, with a time limit."""

import subprocess
import sys
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.registration import ENVIRONMENT, TIME_LIMIT

SMALL = {"obs_size": (64, 64), "render_size": (64, 36), "num_empty_frames": 1}
NO_OP = {"buttons": 0, "camera": 60}


def length_of_an_episode(env, most):
    env.reset(seed=0)
    for step in range(1, most + 1):
        _, _, terminated, truncated, _ = env.step(NO_OP)
        if terminated or truncated:
            return step
    return None


def test_gymnasiums_checker_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ENVIRONMENT, **SMALL)
        check_env(env.unwrapped)
    assert type(env.unwrapped) is MineStudioEnv


def test_episodes_are_limited_unless_they_are_not_to_be():
    env = gymnasium.make(ENVIRONMENT, **SMALL)
    assert env.spec.max_episode_steps == TIME_LIMIT
    assert length_of_an_episode(gymnasium.make(ENVIRONMENT, max_episode_steps=3, **SMALL), 5) == 3
    endless = gymnasium.make(ENVIRONMENT, max_episode_steps=-1, **SMALL)
    assert endless.spec.max_episode_steps is None
    assert MineStudioEnv(SMALL).spec.max_episode_steps is None, "MineStudio's has none"


def test_a_task_may_end_them_sooner():
    name = f"rllib_minestudio:{ENVIRONMENT}"  # which imports the package
    env = gymnasium.make(name, callbacks=[{"JudgeReset": {"time_limit": 2}}], **SMALL)
    assert length_of_an_episode(env, 5) == 2


def test_several_play_side_by_side():
    envs = gymnasium.make_vec(ENVIRONMENT, num_envs=2, vectorization_mode="sync", **SMALL)
    obs, _ = envs.reset(seed=0)
    assert obs["image"].shape == (2, 64, 64, 3)
    envs.close()


@pytest.mark.parametrize(
    "imports",
    [
        "import rllib_minestudio, sys; assert 'gymnasium' not in sys.modules; import gymnasium",
        "import gymnasium, rllib_minestudio",
    ],
)
def test_the_order_of_imports_does_not_matter(imports):
    look = "import sys; assert gymnasium.spec('MineStudio-v0').max_episode_steps; "
    look += "assert not {'ray', 'torch', 'numba'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-W", "error", "-c", f"{imports}; {look}"], check=True)
