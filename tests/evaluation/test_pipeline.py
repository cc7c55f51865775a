"""MineStudio's pipeline, from a checkpoint to a summary and its files."""

from __future__ import annotations

import os
import pickle

import pytest

from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters import InfoBaseFilter, parse_filter
from rllib_minestudio.evaluation.pipeline import EpisodePipeline, MineGenerator
from rllib_minestudio.recordings import find_recordings


class Hunt:
    """Yields three episodes, in which 0, 1 and 2 cows were killed."""

    def generate(self):
        for cows in range(3):
            info = {"kill_entity": {"cow": cows}}
            yield EvaluatedEpisode(cows, 0, "hunt", 10 * cows + 1, float(cows), info=info)


def test_one_of_the_filters_of_a_label_has_to_pass_as_in_minestudio():
    long, hunted = parse_filter("length>15"), InfoBaseFilter("kill_entity", "cow", 1)
    summary = EpisodePipeline(Hunt(), [long, hunted]).run()
    assert (summary["num_yes"], summary["num_episodes"]) == (2, 3)
    assert EpisodePipeline(Hunt(), long & hunted).run()["num_yes"] == 1


def test_another_label_does_not_count():
    summary = EpisodePipeline(Hunt(), InfoBaseFilter("kill_entity", "cow", 1, label="cow")).run()
    assert summary["yes_rate"] is None
    assert [e["labels"]["cow"] for e in summary["episodes"]] == ["no", "yes", "yes"]


def test_without_a_filter_nothing_is_claimed():
    assert EpisodePipeline(Hunt()).run()["yes_rate"] is None


def test_wrong_arguments_are_refused_before_anything_is_loaded(tmp_path):
    with pytest.raises(InvalidOptionsError, match="media must be one of 'h264', 'jpeg'"):
        MineGenerator(checkpoint=str(tmp_path), tmpdir="out", image_media="png")
    with pytest.raises(CheckpointMismatchError):
        MineGenerator(checkpoint=str(tmp_path))
    problems = "num_workers must be .* got 0.\nnum_gpus must be .* got -1.\nagent_timeout_s must be"
    with pytest.raises(InvalidOptionsError, match=problems):
        MineGenerator(0, -1, checkpoint=str(tmp_path), agent_timeout_s=0)
    with pytest.raises(InvalidOptionsError, match="needs a player: agent_generator or check"):
        MineGenerator()
    for wrong in ({"agent_generator": "a:b", "checkpoint": "c"}, {}):
        with pytest.raises(InvalidOptionsError, match="either agent_generator or checkpoint; got"):
            MineGenerator(env_generator=dict, **wrong)
    with pytest.raises(InvalidOptionsError, match="either env_generator or env_config"):
        MineGenerator(env_generator=dict, agent_generator=dict, env_config={})


@pytest.mark.slow
def test_a_checkpoint_is_played_and_recorded_as_minestudio_does(make_config, local_ray, tmp_path):
    config = make_config(failure_length=12).env_runners(num_env_runners=0)
    algorithm = config.training(
        fragments_per_iteration=4, fragments_per_minibatch=4, gradient_accumulation=1
    ).build_algo()
    algorithm.save_to_path(str(tmp_path / "checkpoint"))
    algorithm.stop()
    generator = MineGenerator(
        checkpoint=str(tmp_path / "checkpoint"),
        num_workers=2,
        num_gpus=0,
        max_restarts=2,
        num_episodes=3,
        num_max_steps=8,
        tmpdir=str(tmp_path / "out"),
        image_media="jpeg",
        format="episodes",
    )
    assert generator.options.max_attempts == 1 + 2
    summary = EpisodePipeline(generator, parse_filter("length<5")).run()
    assert summary["num_episodes"] == 6 and summary["num_yes"] > 0
    assert {episode["length"] for episode in summary["episodes"]} == {3, 8}
    recordings = list(find_recordings(tmp_path / "out"))
    assert len(recordings) == 6
    for recording in recordings:
        assert len(os.listdir(recording.path / "frames")) == len(recording) + 1
    assert pickle.dumps(summary)
