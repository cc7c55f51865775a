"""MineStudio's own filter and recorder take what is recorded in its format."""

import pytest
import yaml

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

from minestudio.inference.filter.info_base_filter import InfoBaseFilter
from minestudio.inference.recorder.base_recorder import EpisodeRecorder as MineStudioRecorder

from rllib_minestudio import MineStudioEnv
from rllib_minestudio.env.recorder import EpisodeRecorder, RecorderOptions
from rllib_minestudio.recordings import find_recordings
from rllib_minestudio.watch.catalogue import Catalogue
from rllib_minestudio.watch.protocol import HandDocument
from rllib_minestudio.watch.request import WatchRequest
from rllib_minestudio.watch.views import HumanInput


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


def test_a_person_plays_and_records_the_real_game(engine, tmp_path):
    options = {**engine.options, "obs_size": [64, 64], "num_empty_frames": 1}
    task = {"real": {"env": "MineStudioEnv", "config": {"env_config": options}}}
    (tmp_path / "real.yaml").write_text(yaml.safe_dump(task))
    request = WatchRequest(source=str(tmp_path / "real.yaml"), out=str(tmp_path / "played"))
    catalogue, hand = Catalogue(request), HumanInput()
    (view,) = catalogue.open([catalogue.entries()[0]["key"]], hand)
    view.begin(1)
    hand.take(HandDocument(keys=["forward", "drop"], turn=[1.0, -7.0]))
    view.advance()
    facts, pictures = view.shown()
    assert (facts["keys"], facts["recorded"]) == (["forward", "drop"], 1)
    assert pictures["view"].shape == (128, 128, 3)
    view.keep("Ann")
    view.close()
    (found,) = find_recordings(tmp_path / "played")
    assert found.steps["degrees"].tolist() == [[1.0, -7.0]]
    assert [next(found.frames(beside=b)).shape[0] for b in (False, True)] == [64, 128]
