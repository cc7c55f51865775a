"""The env runner plays what it is told, each episode by itself."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.recordings import Recording
from tests.evaluation.toy_envs import Fragile, Slow, TellsModules

SETTINGS = PlaySettings(seed=5)


def specs(count, start=0):
    return [EpisodeSpec(index) for index in range(start, start + count)]


def by_index(episodes):
    """What an evaluation reports, without how long it took."""
    found = {episode.index: replace(episode, seconds=0.0) for episode in episodes}
    assert len(found) == len(episodes)
    return found


def test_every_episode_is_played_once_and_to_its_end(make_runner):
    episodes = by_index(list(make_runner(pool="inline").play(specs(13), SETTINGS)))
    assert sorted(episodes) == list(range(13))
    assert len({episode.seed for episode in episodes.values()}) == 13
    for episode in episodes.values():
        assert episode.length == (3 if episode.success else 30)
        assert episode.terminated and not episode.truncated and episode.attempts == 1
        assert episode.undiscounted_return == float(episode.success)
        assert episode.task == ("heads" if episode.seed % 2 else "tails")


def test_an_episode_does_not_depend_on_its_company_or_on_the_order(make_runner):
    runner = make_runner()
    together = by_index(list(runner.play(specs(9), SETTINGS)))
    backwards = by_index(list(runner.play(specs(9)[::-1], SETTINGS)))
    alone = by_index([e for spec in specs(9) for e in runner.play([spec], SETTINGS)])
    assert together == backwards == alone
    assert len({episode.info["trace"] for episode in together.values()}) == 9


def test_another_seed_gives_other_episodes_and_actions(make_runner):
    runner = make_runner(pool="inline")
    one = by_index(list(runner.play(specs(6), SETTINGS)))
    other = by_index(list(runner.play(specs(6), replace(SETTINGS, seed=6))))
    assert all(one[i].seed != other[i].seed for i in one)
    assert all(one[i].info["trace"] != other[i].info["trace"] for i in one)


def test_environments_import_neither_ray_nor_torch(make_runner):
    runner = make_runner(TellsModules, num_envs=1, pool="process")
    (episode,) = runner.play(specs(1), replace(SETTINGS, max_steps=2))
    modules = episode.task.split()
    assert "rllib_minestudio.evaluation.evaluation_env" in modules
    assert not {"ray", "torch"} & set(modules)


def test_deterministic_actions_need_no_numbers(make_runner):
    runner = make_runner(pool="inline")
    settings = replace(SETTINGS, deterministic=True)
    (first,) = runner.play(specs(1), settings)
    (again,) = runner.play(specs(1), settings)
    (sampled,) = runner.play(specs(1), SETTINGS)
    assert first.info["trace"] == again.info["trace"] != sampled.info["trace"]


def test_a_step_limit_truncates(make_runner):
    runner = make_runner(pool="inline")
    episodes = by_index(list(runner.play(specs(8), replace(SETTINGS, max_steps=10))))
    assert {episode.length for episode in episodes.values()} == {3, 10}
    assert all(e.truncated == (e.length == 10) != e.terminated for e in episodes.values())


@pytest.mark.parametrize("in_reset", [False, True])
def test_an_episode_in_which_the_environment_fails_is_repeated(make_runner, tmp_path, in_reset):
    runner = make_runner(Fragile, folder=str(tmp_path), in_reset=in_reset)
    episodes = by_index(list(runner.play(specs(12), SETTINGS)))
    assert sorted(episodes) == list(range(12))
    attempts = {i: episode.attempts for i, episode in episodes.items()}
    assert attempts == {i: 2 if e.seed % 3 == 0 else 1 for i, e in episodes.items()}
    assert 2 in attempts.values() and not any(e.error for e in episodes.values())


@pytest.mark.slow
def test_an_environment_whose_process_dies_is_replaced_and_its_episode_repeated(
    make_config, make_runner, tmp_path
):
    inline = by_index(list(make_runner(pool="inline").play(specs(9), SETTINGS)))
    config = make_config(Fragile, num_envs=2, folder=str(tmp_path / "attempts"), exits=True)
    (tmp_path / "attempts").mkdir()
    config.training(env_pool={"mode": "process"}).validate()
    runner = EvaluationEnvRunner(config=config, worker_index=0, num_workers=0)
    settings = replace(SETTINGS, recorder={"folder": str(tmp_path / "out")})
    try:
        episodes = by_index(list(runner.play(specs(9), settings)))
    finally:
        runner.stop()
    assert {i: e.attempts for i, e in episodes.items()} == {
        i: 2 if e.seed % 3 == 0 else 1 for i, e in episodes.items()
    }
    assert 2 in {e.attempts for e in episodes.values()}
    lengths = {i: e.length for i, e in episodes.items()}
    assert lengths == {i: e.length for i, e in inline.items()}
    assert {Recording(e.recording).path.name for e in episodes.values()} == set(
        os.listdir(tmp_path / "out")
    )


def test_nobody_waits_for_a_slow_environment(make_runner, tmp_path):
    expected = by_index(list(make_runner(pool="inline", num_envs=2).play(specs(6), SETTINGS)))
    slow = make_runner(Slow, num_envs=2, folder=str(tmp_path))  # in processes of their own
    assert by_index(list(slow.play(specs(6), SETTINGS))) == expected


def test_an_environment_that_always_fails_is_given_up_and_reported(make_runner, tmp_path):
    runner = make_runner(Fragile, folder=str(tmp_path), failures=99)
    episodes = by_index(list(runner.play(specs(12), replace(SETTINGS, max_attempts=2))))
    failed = [e for e in episodes.values() if e.seed % 3 == 0]
    assert failed and all(e.attempts == 2 and "lost the world" in e.error for e in failed)
    assert not any(e.error for e in episodes.values() if e.seed % 3)


def test_recordings_name_the_episode_and_hold_the_policys_values(make_runner, tmp_path):
    settings = replace(
        SETTINGS, recorder={"folder": str(tmp_path)}, policy={"checkpoint": "somewhere"}
    )
    for episode in make_runner(pool="inline").play(specs(3), settings):
        recording = Recording(episode.recording)
        assert len(recording) == episode.length == len(list(recording.frames())) - 1
        assert recording.meta["index"] == episode.index
        assert recording.meta["seed"] == episode.seed
        assert recording.meta["success"] == episode.success
        assert recording.meta["policy"] == {"checkpoint": "somewhere"}
        assert abs(recording.steps["value"]).max() < 10  # NaN is not


def test_the_divergence_from_a_prior_is_recorded_step_by_step(make_runner, tmp_path):
    runner = make_runner(pool="inline", failure_length=6)
    own = {name: np.array(value) for name, value in runner.module.get_state().items()}
    other = {n: -30 * a if n.startswith("pi_head") else a for n, a in own.items()}
    kl = {}
    for name, prior in (("same", own), ("other", other), ("none", None)):
        settings = replace(SETTINGS, recorder={"folder": str(tmp_path / name)})
        played = list(runner.play(specs(3), settings, prior=prior))
        kl[name] = [Recording(episode.recording).steps.get("kl") for episode in played]
    assert all(np.abs(column).max() < 1e-5 for column in kl["same"])
    assert all(len(column) in (3, 6) and column.min() > 1e-3 for column in kl["other"])
    assert kl["none"] == [None] * 3


@pytest.mark.slow
def test_environments_with_other_options_replace_those_that_there_are(make_runner):
    changed = replace(SETTINGS, env_config={"failure_length": 7})
    runner = make_runner()
    before, module = by_index(list(runner.play(specs(6), SETTINGS))), runner.module
    switched = by_index(list(runner.play(specs(6), changed)))
    env = runner.env
    again = by_index(list(runner.play(specs(6), changed)))
    assert runner.env is env, "nothing is built that is there"
    back = by_index(list(runner.play(specs(6), SETTINGS)))
    assert runner.module is module
    assert before == back != switched == again
    assert {episode.length for episode in switched.values()} == {3, 7}
    assert switched == by_index(list(make_runner(failure_length=7).play(specs(6), SETTINGS)))


@pytest.mark.slow  # environments are tried anew, ever more rarely
def test_options_that_build_no_environment_leave_none_that_passes_for_them(make_runner):
    runner = make_runner(num_envs=2, max_restarts_per_hour=2)
    refused = replace(SETTINGS, env_config={"seed": "none"})
    for _ in range(2):
        with pytest.raises(EnvPoolError, match="seed string"):
            list(runner.play(specs(1), refused))
    assert len(list(runner.play(specs(3), SETTINGS))) == 3
