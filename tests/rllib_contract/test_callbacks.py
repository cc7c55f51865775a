"""Callbacks of an env runner see what happened, in the order it happened, in every kind of pool."""

from __future__ import annotations

import gymnasium as gym
import pytest
from ray.rllib.callbacks.callbacks import RLlibCallback

from rllib_minestudio.algorithms.env_pool.base import Infos
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.rllib_contract.telling_env import Telling


class Journal(RLlibCallback):
    """Writes down every call."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def on_environment_created(self, *, env_runner, metrics_logger, env, env_context, **_):
        assert env is env_runner.env and env_context["length"] == 5
        self.lines.append(("created", env.num_envs))

    def on_episode_start(self, *, episode, **rest):
        self._note("start", episode, **rest)
        episode.custom_data["steps"] = 0

    def on_episode_step(self, *, episode, **rest):
        self._note("step", episode, **rest)
        episode.custom_data["steps"] += 1

    def on_episode_end(self, *, episode, prev_episode_chunks, **rest):
        assert prev_episode_chunks == [] and episode.is_done
        assert episode.custom_data["steps"] == len(episode) == episode.t
        self._note("end", episode, **rest)

    def on_sample_end(self, *, env_runner, metrics_logger, samples, **_):
        self.lines.append(("sampled", sum(map(len, samples))))

    def _note(self, what, episode, *, env_runner, metrics_logger, env, env_index, rl_module):
        assert env_runner.module is rl_module and env is env_runner.env
        assert metrics_logger is env_runner.metrics
        info = episode.get_infos(-1)
        assert isinstance(env, gym.Env) or "frame" not in info
        step = info.get("step")
        self.lines.append((what, env_index, episode.id_, step, episode.get_return()))


@pytest.fixture
def make_runner(make_config):
    runners = []

    def make(callbacks, mode="inline", num_envs=1, **env_config):
        config = make_config(env_pool={"mode": mode}).environment(
            Telling, env_config={"length": 5, **env_config}
        )
        config.env_runners(num_envs_per_env_runner=num_envs, rollout_fragment_length=12)
        runners.append(MineStudioEnvRunner(config=callbacks(config), worker_index=0, num_workers=0))
        return runners[-1]

    yield make
    for runner in runners:
        runner.stop()


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_every_step_of_every_episode_is_told(make_runner, mode):
    runner = make_runner(lambda config: config.callbacks(Journal), mode, num_envs=2)
    rollout = runner.sample(aligned=True)
    (journal,) = runner._callbacks
    assert journal.lines[0] == ("created", 2)
    assert journal.lines[-1] == ("sampled", 24)
    for row in range(2):
        told = [line for line in journal.lines if len(line) == 5 and line[1] == row]
        episode = ["start", *["step"] * 5, "end"]
        assert [what for what, *_ in told] == [*episode, *episode, "start", "step", "step"]
        steps = [0, 1, 2, 3, 4, 5, 5]
        assert [line[3] for line in told] == [*steps, *steps, 0, 1, 2]
        assert len({line[2] for line in told}) == 3
        # Returns are those of the rewards in the fragment.
        (fragment,) = (f for f in rollout.fragments if f.env_id == f"0-{row}")
        ends = [line[4] for line in told if line[0] == "end"]
        assert ends == [fragment.reward[:5].sum(), fragment.reward[5:10].sum()]


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_an_episode_that_a_failure_cuts_short_says_so(make_runner, mode):
    failures = []

    def note(*, episode, **_):
        failures.append((episode.env_error, len(episode), episode.is_truncated))

    runner = make_runner(lambda c: c.callbacks(on_episode_end=note), mode, fails=True)
    runner.sample()
    assert failures[0] == (None, 5, True)
    error, steps, is_truncated = failures[1]
    assert "the game is gone" in error and steps == 3 and is_truncated


def test_classes_and_functions_come_in_lists_too(make_runner):
    counts = {"class": 0, "first": 0, "second": 0}

    class Counting(RLlibCallback):
        def on_episode_end(self, **_):
            counts["class"] += 1

    def first(**_):
        counts["first"] += 1

    def second(**_):
        counts["second"] += 1

    runner = make_runner(
        lambda config: config.callbacks([Counting, RLlibCallback], on_episode_end=[first, second])
    )
    runner.sample()
    assert counts == {"class": 2, "first": 2, "second": 2}


def test_environments_are_asked_for_no_more_than_is_wanted(make_runner):
    def nothing(**_):
        pass

    for callbacks, infos in (
        ({}, Infos.NONE),
        ({"on_sample_end": nothing}, Infos.NONE),
        ({"on_episode_end": nothing}, Infos.EPISODES),
        ({"on_episode_step": nothing}, Infos.STEPS),
    ):
        runner = make_runner(lambda config, given=callbacks: config.callbacks(**given))
        assert runner._hooks.infos is infos
        assert runner._hooks.follows_episodes == (infos is not Infos.NONE)
        runner.sample()
        assert bool(runner._hooks._running) == (infos is not Infos.NONE)


def test_what_an_episode_does_not_keep_is_named(make_runner):
    said = []

    def ask(*, episode, **_):
        for question in (lambda: episode.get_observations(-1), lambda: episode.get_infos(-2)):
            try:
                question()
            except (AttributeError, IndexError) as error:
                said.append(str(error))

    make_runner(lambda config: config.callbacks(on_episode_start=ask)).sample()
    assert said[0].startswith("episode.get_observations is not kept") and "get_infos(-1)" in said[0]
    assert said[1].startswith("episode.get_infos(-2): only the last step is kept")
