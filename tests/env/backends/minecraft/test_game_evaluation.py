"""Evaluating a policy in the real game's environment, with recordings, whatever its engines do."""

import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.filters import parse_filter
from rllib_minestudio.evaluation.policy_loading import evaluation_config
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.recordings import Recording
from tests.algorithms.toy_envs import tiny_model

EPISODES, STEPS = 3, 10


@pytest.fixture
def runner(engine):
    """Two environments, one of whose first games dies in its first episode."""
    engine.fail("step", "die", count=6, launches=[0])
    env_config = {
        **engine.options,
        "obs_size": [16, 16],
        "num_empty_frames": 1,
        "callbacks": [
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}},
            {"JudgeReset": STEPS},
        ],
    }
    config = MineStudioPPOConfig().environment(MineStudioEnv, env_config=env_config)
    config.training(model=tiny_model())
    config = evaluation_config(config, num_env_runners=0, num_envs=2)
    runner = EvaluationEnvRunner(config=config, worker_index=0, num_workers=0)
    yield runner
    runner.stop()


def test_episodes_of_the_game_are_evaluated_and_recorded(runner, engine, tmp_path):
    recorder = {"folder": str(tmp_path / "out"), "source": "pov", "overlay": True}
    specs = [EpisodeSpec(index) for index in range(EPISODES)]
    played = runner.play(specs, PlaySettings(recorder=recorder))
    summary = Summary.of(
        parse_filter("y>0 and kill_entity:cow<1").filter(played), seed=0, filter=""
    )
    assert summary.rate.num_yes == EPISODES and summary.failures == []
    assert max(episode.attempts for episode in summary.episodes) == 2
    assert len(engine.launches) == 3
    for episode in summary.episodes:
        recording = Recording(episode.recording)
        assert len(recording) == episode.length == STEPS
        frames = list(recording.frames())
        assert len(frames) == STEPS + 1 and frames[0].shape[0] >= 240  # enlarged, for the text
        *_, last = recording.infos()
        assert last["player_pos"] == episode.info["player_pos"]
