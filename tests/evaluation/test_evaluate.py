"""Evaluation on env runners: unbiased, reproducible, and undeterred by what dies."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.evaluation.agent_runner import play_episodes
from rllib_minestudio.evaluation.during_training import evaluate, keep_chosen, still_recorded
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.policy_loading import evaluation_config
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.recordings import find_recordings
from tests.algorithms.actors import freeze, kill, process_of
from tests.evaluation.toy_envs import Fragile


@pytest.fixture
def make_group(make_config, local_ray):
    groups = []

    def make(workers, silence_s=60.0, **options):
        config = make_config(**options).env_runners(sample_timeout_s=silence_s)
        config = evaluation_config(config, num_env_runners=workers)
        groups.append(EnvRunnerGroup(config=config, local_env_runner=workers == 0))
        return groups[-1]

    yield make
    for group in groups:
        group.stop()


def outcome(summary):
    """A summary without how long things took and where they lie."""
    facts = summary.to_json()
    for part in (facts, *facts["tasks"].values(), *facts["episodes"]):
        for name in ("seconds", "episode_seconds", "recording"):
            part.pop(name, None)
    return facts, [episode.info["trace"] for episode in summary.episodes]


def test_any_number_of_environments_fits_for_nothing_is_collected(make_config):
    config = make_config(replay_buffer={"max_fragments": 64})
    assert evaluation_config(config, num_env_runners=0, num_envs=500).num_envs_per_env_runner == 500


def test_a_rate_of_one_half_is_measured_as_one_half(make_runner):
    # In one process, all at the same pace: which episodes end first depends on no scheduler.
    runner = make_runner(num_envs=8, pool="inline", failure_length=60)
    specs = [EpisodeSpec(i) for i in range(64)]
    started = runner.play(specs, PlaySettings(seed=3))
    first = list(itertools.islice(started, 8))  # as "8 episodes, please" of stock sampling
    every = first + list(started)
    low, high = 0.5 - 3 * (0.25 / 64) ** 0.5, 0.5 + 3 * (0.25 / 64) ** 0.5
    assert low < sum(bool(e.success) for e in every) / 64 < high
    assert sum(bool(e.success) for e in first) / 8 > high


def test_the_summary_is_the_same_whatever_the_number_of_workers(make_group, tmp_path):
    found = []
    weights = None
    for workers in (0, 1, 2, 3):
        group = make_group(workers, pool="auto" if workers == 2 else "inline")
        if weights is None:
            weights = group.local_env_runner.module.get_state()
        record = {"folder": str(tmp_path / str(workers))}
        options = EvaluationOptions(
            episodes=13, seed=4, filter="return>0 and length<10", record=record, only="success"
        )
        summary = evaluate(group, options, weights=weights)
        group.stop()
        found.append(outcome(summary))
        names = [recording.path.name for recording in find_recordings(record["folder"])]
        yes = [e for e in summary.episodes if e.counts_as_success]
        assert names == [f"episode-{e.index:05d}" for e in yes]
        assert [e for e in summary.episodes if e.recording] == yes != []
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.slow
@pytest.mark.parametrize("end", [kill, freeze])
def test_what_an_env_runner_leaves_when_it_dies_or_hangs_is_played_again(make_group, end):
    group = make_group(2, silence_s=4.0, pool="inline", failure_length=800)
    local = make_group(0, pool="inline", failure_length=800)
    weights = local.local_env_runner.module.get_state()
    settings = PlaySettings(seed=1)
    expected = {e.index: e.info["trace"] for e in play_episodes(local, 12, settings, weights)}
    process = process_of(group._worker_manager.actors()[1])
    group.foreach_env_runner(lambda _: None)  # a call that had not begun would lose nothing
    found = {}
    for episode in play_episodes(group, 12, settings, weights):
        found[episode.index] = episode
        if len(found) == 1:
            end(process)
    assert {i: e.info["trace"] for i, e in found.items()} == expected
    assert {e.attempts for e in found.values()} == {1, 2}


@pytest.mark.slow
def test_an_environment_that_cannot_be_put_up_with_ends_it_with_its_error(make_group, tmp_path):
    group = make_group(1, env=Fragile, folder=str(tmp_path), failures=999, max_restarts_per_hour=2)
    with pytest.raises(EnvPoolError, match=r"max_restarts_per_hour=2.*lost the world"):
        list(play_episodes(group, 200, PlaySettings(max_attempts=99)))


def test_the_best_recordings_are_kept(make_runner, tmp_path):
    options = EvaluationOptions(record={"folder": str(tmp_path)}, only="best_2", max_steps=5)
    specs = [EpisodeSpec(i) for i in range(10)]
    played = list(keep_chosen(make_runner(pool="inline").play(specs, options.settings()), options))
    kept = [e for e in map(still_recorded, played) if e.recording]
    assert len(kept) == 2 == len(list(find_recordings(tmp_path)))
    best = sorted(played, key=lambda e: (-e.undiscounted_return, e.index))[:2]
    assert {e.index for e in kept} == {e.index for e in best}


@pytest.mark.parametrize(
    "only, kept", [("all", {0, 1, 2, 3}), ("success", {1, 3}), ("failure", {0, 2}), ("best_1", {3})]
)
def test_only_some_recordings_are_kept(tmp_path, only, kept):
    def played():
        for index in range(4):
            folder = tmp_path / str(index)
            folder.mkdir()
            yield EvaluatedEpisode(
                index, 0, "t", 5, float(index), success=index % 2 == 1, recording=str(folder)
            )

    options = EvaluationOptions(record={"folder": str(tmp_path)}, only=only)
    found = [still_recorded(episode) for episode in list(keep_chosen(played(), options))]
    assert {episode.index for episode in found if episode.recording} == kept
    assert {int(folder.name) for folder in tmp_path.iterdir()} == kept


def test_impossible_options_are_refused_together():
    from rllib_minestudio.errors import InvalidOptionsError

    with pytest.raises(InvalidOptionsError) as caught:
        EvaluationOptions.from_mapping(
            {"episodes": 0, "only": "best", "filter": "sucess", "record": {"crf": 99}, "sed": 1}
        )
    assert len(caught.value.problems) == 6
    assert replace(EvaluationOptions(), only="best_12").best == 12
