"""Demonstrations of `AttackOnRed` by an expert, and configs that clone it in seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from rllib_minestudio.algorithms import MineStudioBCConfig
from rllib_minestudio.recordings import EpisodeWriter
from rllib_minestudio.recordings.video import VideoOptions
from tests.algorithms.toy_envs import ATTACK_STRIDE, AttackOnRed, tiny_model

EPISODES, LENGTH, DELAY = 10, 40, 6
NULL_CAMERA = 60


@pytest.fixture(scope="session")
def demonstrations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten faultless episodes of 40 steps; the colour to act by is shown every sixth step."""
    folder: Path = tmp_path_factory.mktemp("demonstrations")
    env = AttackOnRed({"length": LENGTH, "delay": DELAY})
    for index in range(EPISODES):
        obs, info = env.reset(seed=index)
        writer = EpisodeWriter(folder / f"episode-{index:02}", video=VideoOptions(crf=0))
        writer.begin(_signed(obs["image"], index, 0), info)
        for t in range(1, LENGTH + 1):
            action = {"buttons": ATTACK_STRIDE * env._red, "camera": NULL_CAMERA}
            obs, reward, terminated, truncated, info = env.step(action)
            writer.add(
                action,
                reward,
                terminated,
                truncated,
                frame=_signed(obs["image"], index, t),
                info=info,
            )
        writer.finish({"seed": index})
    return folder


def _signed(frame: NDArray, episode: int, step: int) -> NDArray:
    """Write episode and step into one pixel, so that no two frames are the same."""
    signed = frame.copy()
    signed[0, 0] = (episode, step, 0)
    return signed


@pytest.fixture
def make_config(demonstrations: Path) -> Callable[..., MineStudioBCConfig]:
    """Builds a config; arguments go to `training`."""

    def make(**training: Any) -> MineStudioBCConfig:
        options: dict[str, Any] = {
            "model": tiny_model(),
            "lr": 3e-3,
            "window_length": 8,
            "context_length": 4,
            "windows_per_batch": 10,
            "shuffle_among": 20,
            "validation_fraction": 0.2,
            "validation_interval": 1,
            **training,
        }
        config = MineStudioBCConfig().offline_data(input_=str(demonstrations))
        config.offline_data(dataset_num_iters_per_learner=4)
        config.environment(AttackOnRed, env_config={"length": LENGTH, "delay": DELAY})
        config.env_runners(num_envs_per_env_runner=4)  # as many episodes as an evaluation plays
        config.evaluation(
            evaluation_interval=1,
            evaluation_duration=4,
            evaluation_options={"filter": f"return>={LENGTH // 2}"},
        )
        return config.debugging(seed=0).training(**options)

    return make
