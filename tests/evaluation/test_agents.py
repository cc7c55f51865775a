"""Anybody's agent: how it is told apart, what its actions mean, and what it may not do."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio.env.agents import user_agents
from rllib_minestudio.env.agents.user_agents import (
    ActionReader,
    AgentMaker,
    adapt,
    rows_of,
    shipped,
)
from rllib_minestudio.errors import AgentError, InvalidOptionsError
from rllib_minestudio.evaluation import agent_runner
from rllib_minestudio.evaluation.agent_runner import AgentOrder, AgentRunner, ShowsFrames
from rllib_minestudio.evaluation.request import EpisodeSpec, PlaySettings
from tests.evaluation import own_agents
from tests.evaluation.toy_envs import CoinToss

OWN = "tests.evaluation.own_agents"


class Box(gym.Env):
    """Notes the actions of an episode of four steps; any space."""

    def __init__(self, space=None, pov=False):
        self.action_space = space or CoinToss(EnvContext({"seed": 0}, 0)).action_space
        self._pov = pov
        self.observation_space = gym.spaces.Dict(
            {} if pov else {"image": gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)}
        )
        self.actions = []

    def reset(self):  # MineStudio's takes neither seed nor options
        self.actions = []
        return self._seen()

    def step(self, action):
        self.actions.append(action)
        obs, info = self._seen()
        return obs, 1.0, False, len(self.actions) == 4, {**info, "actions": repr(self.actions)}

    def _seen(self):
        frame = np.zeros((16, 16, 3), np.uint8)
        return ({}, {"pov": frame}) if self._pov else ({"image": frame}, {})


def order_of(agent, env=Box, **others):
    make = agent if callable(agent) else (lambda: agent)
    return AgentOrder(AgentMaker.of(make), shipped(env, "env_generator"), **others)


def play(order, episodes=2, **settings):
    runner = AgentRunner()
    specs = [EpisodeSpec(index) for index in range(episodes)]
    try:
        return list(runner.play(specs, PlaySettings(**settings), order))
    finally:
        runner.close()


def tokens(episode):
    """The buttons of an episode in `Box`."""
    actions = eval(episode.info["actions"], {"array": np.array, "int64": np.int64})
    return [int(np.asarray(action["buttons"]).item()) for action in actions]


# ---------------------------------------------------------------- interfaces


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (own_agents.MineStudio1, [0, 1, 2, 3]),
        (own_agents.StableBaselines3, None),
        (own_agents.Plain, [1, 2, 3, 4]),
        (own_agents.Batched, [1, 0, 0, 0]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_interface_plays_whole_episodes_and_forgets_between_them(agent, expected):
    if expected is None:
        space = gym.spaces.MultiDiscrete([8641, 121])
        episodes = play(order_of(agent, functools.partial(Box, space)))
        assert [e.info["actions"].count("array") for e in episodes] == [4, 4]
        assert "array([ 0, 60])" in episodes[1].info["actions"]  # its state began anew
        assert "array([ 3, 60])" in episodes[1].info["actions"]
        return
    episodes = play(order_of(agent))
    assert [tokens(episode) for episode in episodes] == [expected, expected]
    assert all(e.error is None and e.undiscounted_return == 4 and e.length == 4 for e in episodes)


def test_a_state_is_its_callers_to_keep_and_keys_become_tokens():
    env = functools.partial(our_env, "agent")
    acts = adapt(own_agents.MineStudio2(), env(), name="it", deterministic=True)
    reader = ActionReader(env(), "it")
    for _ in range(2):
        acts.begin(0)
        first, second = (acts.act({}) for _ in range(2))
        assert first == {"attack": 1, "camera": (0.0, 0.0)} and second["camera"] == (0.0, 1.0)
    mapper = reader._mapper
    assert mapper.to_env(*mapper.parse(reader.read(second)))["attack"] == 1
    keys = ActionReader(our_env("env"), "it")
    assert keys.read({"buttons": 0, "camera": 60})["attack"] == 0  # tokens become keys
    assert keys.env.action_space.contains(
        {**keys.read({"buttons": 0, "camera": 60}), "camera": np.zeros(2, np.float32)}
    )
    assert reader.read(torch.tensor([[3, 60]]))["buttons"] == 3
    assert reader.read({"buttons": torch.tensor([[3]]), "camera": torch.tensor(60)})["camera"] == 60


def test_a_wrapper_may_want_other_actions_than_ours():
    class Flat(gym.ActionWrapper):
        action_space = gym.spaces.MultiDiscrete([8641, 121])

        def action(self, action):
            return {"buttons": action[0], "camera": action[1]}

    read = ActionReader(Flat(our_env("agent")), "it").read
    assert read(torch.tensor([[3, 60]])).tolist() == [3, 60]
    with pytest.raises(AgentError, match="no action here: the space is MultiDiscrete"):
        read({"buttons": 3, "camera": 60})


@functools.cache
def our_env(action_type):
    from rllib_minestudio.env import MineStudioEnv

    return MineStudioEnv(action_type=action_type, obs_size=(16, 16), num_empty_frames=0)


def test_an_agent_that_looks_at_the_environment_gets_it():
    class Looks:
        def act(self, env):
            return {"buttons": len(env.unwrapped.actions), "camera": 60}

    assert tokens(play(order_of(Looks))[0]) == [0, 1, 2, 3]


def test_batches_are_of_several_environments_side_by_side(monkeypatch):
    seen = []

    class Notes(own_agents.Batched):
        def act(self, observations, begins):
            seen.append((observations["image"].shape, begins.tolist()))
            return super().act(observations, begins)

    monkeypatch.setattr(AgentMaker, "load", lambda _: Notes)  # by reference: it notes here
    episodes = play(order_of(own_agents.Batched, num_envs=3), episodes=5)
    assert sorted(e.index for e in episodes) == list(range(5))
    assert all(tokens(episode) == [1, 0, 0, 0] for episode in episodes)
    assert {shape[1:] for shape, _ in seen} == {(16, 16, 3)}
    assert max(shape[0] for shape, _ in seen) == 3


@pytest.mark.parametrize("batch", [{"buttons": np.zeros(2), "camera": np.zeros(3)}, 7, [1]])
def test_a_batch_of_another_size_is_refused(batch):
    with pytest.raises(AgentError, match="did not return 3 actions"):
        rows_of(batch, 3)


def test_who_has_no_interface_is_refused_by_name():
    with pytest.raises(InvalidOptionsError, match=r"made a object, which is no agent"):
        play(order_of(own_agents.make_nobody))
    with pytest.raises(InvalidOptionsError, match=r"deterministic: .* cannot be told"):
        play(order_of(own_agents.Plain), deterministic=True)


def test_an_environment_that_takes_no_seed_is_told(caplog):
    ShowsFrames(Box())
    assert "Box.reset takes no seed" in caplog.text
    caplog.clear()
    ShowsFrames(CoinToss(EnvContext({"seed": 0}, 0)))
    assert not caplog.text


def test_frames_may_be_in_the_info_and_must_be_somewhere():
    class Looks:
        def act(self, obs):
            return {"buttons": obs["image"].shape[0], "camera": 60}

    episode = play(order_of(Looks, functools.partial(Box, None, pov=True)))[0]
    assert tokens(episode) == [16] * 4
    blind = ShowsFrames(Box(pov=True))
    blind.env.reset = lambda: ({"sound": 1}, {})
    with pytest.raises(InvalidOptionsError, match=r"a mapping of 'sound': frames must be in"):
        blind.reset(seed=1)
    with pytest.raises(InvalidOptionsError, match="made a dict: it must be a gymnasium"):
        ShowsFrames({})


def test_a_policy_of_ours_plays_as_an_object_and_by_its_checkpoints_name():
    from rllib_minestudio import Policy

    options = {"obs_size": (64, 64), "num_empty_frames": 1}
    orders = [
        AgentOrder(AgentMaker.of(make))
        for make in (lambda: "package:hunter_nano", lambda: Policy.load("package:hunter_nano"))
    ]
    played = [
        play(order, 1, max_steps=12, deterministic=True, env_config=options) for order in orders
    ]
    assert [episode.error for (episode,) in played] == [None, None]
    (one,), (other,) = played
    assert one.length == 12 and one.info["player_pos"] == other.info["player_pos"]
    assert one.info["player_pos"] != one.first_info["player_pos"]


# ---------------------------------------------------------------- seeds


@pytest.mark.parametrize("agent", [own_agents.Drawing, own_agents.make_seeded])
def test_the_same_seed_gives_the_same_episodes_in_any_order(agent):
    order = order_of(agent)
    first, second = ([tokens(e) for e in play(order, seed=3)] for _ in range(2))
    assert first == second and first[0] != first[1]
    runner = AgentRunner()
    (alone,) = runner.play([EpisodeSpec(1)], PlaySettings(seed=3), order)
    assert tokens(alone) == first[1]
    assert [tokens(e) for e in play(order, seed=4)] != first


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (own_agents.Raises, "raised ValueError: no idea"),
        (own_agents.Exits, "raised SystemExit: 3"),
        (own_agents.Nonsense, "which is no action here: the space is MultiDiscrete"),
        (own_agents.make_from_a_library_that_is_missing, "No module named 'no_such_library"),
    ],
)
def test_an_agent_that_fails_costs_its_episodes_and_says_so(agent, told):
    episodes = play(order_of(agent, failures=100), episodes=2, max_attempts=2)
    assert [episode.attempts for episode in episodes] == [2, 2]
    for episode in episodes:
        assert told in episode.error and "\n" not in episode.error


def test_what_fails_every_time_is_not_tried_for_ever():
    episodes = play(order_of(own_agents.Raises, failures=3), episodes=20, max_attempts=2)
    assert len(episodes) == 20 and all(episode.error for episode in episodes)
    assert "not played: the agent failed 3 times in a row" in episodes[-1].error


def test_an_agent_that_does_not_answer_is_interrupted():
    order = order_of(own_agents.Sleeps, timeout_s=0.05)
    episode = play(order, episodes=1, max_attempts=1)[0]
    assert episode.error == "the agent did not answer within 0.05 s"


class Breaks(Box):
    """Fails in its third step, once."""

    def __init__(self, folder):
        super().__init__()
        self._broken = folder / "broken"

    def step(self, action):
        if len(self.actions) == 2 and not self._broken.exists():
            self._broken.touch()
            raise RuntimeError("lost the world")
        return super().step(action)


def test_an_environment_that_fails_is_built_anew(tmp_path):
    episodes = play(order_of(own_agents.Plain, functools.partial(Breaks, tmp_path)), episodes=3)
    assert all(episode.error is None and tokens(episode) == [1, 2, 3, 4] for episode in episodes)
    assert sorted((episode.index, episode.attempts) for episode in episodes) == [
        (0, 2),
        (1, 1),
        (2, 1),
    ]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_module:make", "the module no_such_module cannot be imported"),
        (f"{OWN}:make_plane", "has no 'make_plane'; it has .*make_plain"),
        (f"{OWN}:NOTHING", "is a dict: it must be a function that makes an agent"),
    ],
)
def test_a_path_that_leads_nowhere_is_one_sentence(path, told):
    with pytest.raises(InvalidOptionsError, match=told):
        AgentMaker.named(path)


def test_a_path_says_which_program_it_was():
    identity = AgentMaker.named(f"{OWN}:make_plain").identity
    assert identity["module"] == OWN and len(identity["file_digest"]) == 16
    assert user_agents.AgentMaker.named("json:loads").identity["agent"] == "json:loads"
    assert isinstance(AgentMaker.named("numpy:array").identity["version"], str)


def test_what_cannot_be_shipped_is_said_at_once():
    lock = __import__("threading").Lock()
    with pytest.raises(InvalidOptionsError, match="agent_generator cannot be shipped"):
        AgentMaker.of(lambda: lock)
    with pytest.raises(InvalidOptionsError, match="it must be a function without arguments"):
        AgentMaker.of(own_agents.Plain())


def test_paths_are_told_from_checkpoints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert user_agents.is_agent_path("my_module:make") and user_agents.is_agent_path("a.b:c.d")
    for name in ("package:hunter_nano", "results/cow/best", "CraftJarvis/VPT", "hunter", "c:/x"):
        assert not user_agents.is_agent_path(name)
    (tmp_path / "a:b").touch()
    assert not user_agents.is_agent_path("a:b")


@pytest.mark.slow
def test_an_agent_that_cannot_be_interrupted_ends_its_process_and_nothing_is_lost(local_ray):
    order = order_of(own_agents.Stuck, timeout_s=0.5)
    runner = agent_runner.ray.remote(_Impatient).options(max_restarts=3).remote(ends_hung=True)
    settings = PlaySettings(max_attempts=2)
    specs = [EpisodeSpec(index) for index in range(2)]
    episodes = list(
        agent_runner.play_on_actors({1: runner}, specs, settings, order, silence_s=60.0)
    )
    assert sorted(episode.index for episode in episodes) == [0, 1]
    ends = [(episode.error, episode.attempts) for episode in episodes]
    assert ends == [("its env runner died or hung", 2)] * 2


@pytest.mark.slow
def test_episodes_of_a_runner_that_is_gone_are_played_by_one_that_had_finished(local_ray, tmp_path):
    """Whether or not Ray can restart it; another runner is not asked to wait for that."""
    order, settings = order_of(own_agents.Plain()), PlaySettings(max_attempts=2)
    finishes = agent_runner.ray.remote(AgentRunner).remote()
    ends = agent_runner.ray.remote(_Ends).options(max_restarts=0).remote(tmp_path / "finished")
    specs = [EpisodeSpec(index) for index in range(2)]
    attempts = {}
    actors = {1: finishes, 2: ends}
    for played in agent_runner.play_on_actors(actors, specs, settings, order, silence_s=60.0):
        attempts[played.index] = (played.error, played.attempts)
        (tmp_path / "finished").touch()
    assert attempts == {0: (None, 1), 1: (None, 2)}


class _Ends(AgentRunner):
    """Ends its process when it is asked to play, once another runner has finished."""

    def __init__(self, finished):
        super().__init__()
        self._finished = finished

    def play(self, specs, settings, order):
        while not self._finished.exists():
            time.sleep(0.05)
        time.sleep(0.3)
        os._exit(1)
        yield


class _Impatient(AgentRunner):
    """Does not wait ten seconds before it ends its process."""

    def __init__(self, **options):
        super().__init__(**options)
        user_agents._GRACE_S = 0.5


def test_nobody_is_given_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(agent_runner.ray, "cluster_resources", lambda: {"CPU": 2.0})
    with pytest.raises(InvalidOptionsError, match=r"is 0\.25, and Ray knows of 0 GPUs"):
        agent_runner.require_gpu(0.25)
    agent_runner.require_gpu(0.0)


def test_mappings_of_actions_keep_their_names():
    rows = rows_of({"a": np.arange(2), "b": torch.arange(2)}, 2)
    assert all(isinstance(row, Mapping) for row in rows) and rows[1] == {"a": 1, "b": 1}
