"""Checkpoints of policies are evaluated: the same numbers whoever plays the episodes."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from rllib_minestudio.cli.main import main
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner, load_prior
from rllib_minestudio.evaluation.policy_loading import evaluation_config, load_policy
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from rllib_minestudio.experiments import ray_session
from rllib_minestudio.recordings import Recording

SPECS = [EpisodeSpec(index) for index in range(6)]
SETTINGS = PlaySettings(seed=5)


@pytest.fixture(scope="module")
def loaded(trained):
    """The policy of the checkpoint."""
    return load_policy(trained.checkpoint)


def play(loaded, specs, settings=SETTINGS, *, worker=0, num_envs=3, prior=None):
    """Episodes by index, without how long they took."""
    config = evaluation_config(loaded.config, num_env_runners=0, num_envs=num_envs)
    runner = EvaluationEnvRunner(config=config, worker_index=worker, num_workers=worker)
    try:
        episodes = list(runner.play(specs, settings, loaded.weights, prior))
    finally:
        runner.stop()
    assert not any(episode.error for episode in episodes)
    return {episode.index: replace(episode, seconds=0.0) for episode in episodes}


def test_the_checkpoint_says_what_it_is_of(trained, loaded):
    assert loaded.config.module_class == trained.policy
    state = trained.algorithm.get_module().get_state()
    for name, array in state.items():
        np.testing.assert_array_equal(loaded.weights[name], array)


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_number_of_env_runners_changes_nothing(loaded, deterministic):
    settings = replace(SETTINGS, deterministic=deterministic)
    alone = play(loaded, SPECS, settings)
    first = play(loaded, SPECS[::2], settings, worker=1)
    second = play(loaded, SPECS[1::2][::-1], settings, worker=2)
    assert alone == {**first, **second}
    assert len({episode.undiscounted_return for episode in alone.values()}) > 1


def test_the_divergence_from_the_prior_is_recorded(loaded, tmp_path):
    """The initial prior, which only the checkpoint holds; the values beside it."""
    prior = load_prior(loaded.config, loaded.checkpoint, "prior")
    settings = replace(SETTINGS, recorder={"folder": str(tmp_path)})
    episodes = play(loaded, SPECS[:3], settings, prior=prior)
    own = play(loaded, SPECS[:3], replace(SETTINGS, recorder={"folder": str(tmp_path / "own")}),
               prior=loaded.weights)  # fmt: skip
    for index, episode in episodes.items():
        assert episode.recording_error is None
        steps = Recording(episode.recording).steps
        assert len(steps["kl"]) == episode.length and steps["kl"].max() > 1e-6
        assert np.isfinite(steps["value"]).all()
        assert np.abs(Recording(own[index].recording).steps["kl"]).max() < 1e-6


def test_the_command_evaluates_it(trained, tmp_path, capsys, monkeypatch):
    """In the Ray that runs already; as a command of its own it starts one."""
    monkeypatch.setattr(ray_session, "ray_session", lambda *_: nullcontext())
    out = tmp_path / "out"
    arguments = ["evaluate", trained.checkpoint, "--episodes", "4", "--envs", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["episodes"]) == 4
    assert summary["policy"]["checkpoint"] == trained.checkpoint
    assert "episodes" in capsys.readouterr().out


@pytest.mark.slow
def test_remote_env_runners_play_the_same(trained, loaded, local_ray):
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

    from rllib_minestudio.evaluation.agent_runner import play_episodes

    found = []
    for count in (0, 2):
        config = evaluation_config(loaded.config, num_env_runners=count, num_envs=3)
        group = EnvRunnerGroup(config=config, local_env_runner=count == 0)
        episodes = play_episodes(group, len(SPECS), SETTINGS, loaded.weights)
        found.append({e.index: replace(e, seconds=0.0) for e in episodes})
        group.stop()
    assert found[0] == found[1]
