"""MineStudio's own filter and recorder take what is recorded in its format."""

import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

from minestudio.inference.filter.info_base_filter import InfoBaseFilter
from minestudio.inference.recorder.base_recorder import EpisodeRecorder as MineStudioRecorder

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions


def test_minestudios_inference_tools_read_our_episodes(tmp_path):
    env = MineStudioEnv(
        render_size=(64, 36), num_empty_frames=1, callbacks=[{"JudgeReset": {"time_limit": 5}}]
    )
    recorder = EpisodeRecorder(env, RecorderOptions(str(tmp_path), format="minestudio"))
    episodes = []
    for seed in range(2):
        recorder.action_space.seed(seed)
        recorder.reset(seed=seed)
        truncated = False
        while not truncated:
            *_, truncated, info = recorder.step(recorder.action_space.sample())
        episodes.append({"info_path": info["recording"], "y": info["player_pos"]["y"]})
    recorder.close()
    # It sums the entries whose names match: here the height at which the last step left the player.
    threshold = sum(episode["y"] for episode in episodes) / 2
    labelled = InfoBaseFilter(key="player_pos", regex="y", num=threshold).filter(episodes)
    expected = sum(episode["y"] >= threshold for episode in episodes)
    summary = MineStudioRecorder().record(labelled)
    assert (summary["num_yes"], summary["num_episodes"]) == (expected, 2)
