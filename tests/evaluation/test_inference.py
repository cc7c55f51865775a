"""`Policy`: loaded from wherever policies are, and acting as RLlib's own recipe does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import ray
import torch
import yaml
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from rllib_minestudio import MineStudioEnv, Policy, checkpoints
from rllib_minestudio.checkpoints.checkpoint import PLAYING_FILE
from rllib_minestudio.checkpoints.lookup import PRIORS
from rllib_minestudio.checkpoints.record import with_own_digest
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidBatchError,
    InvalidOptionsError,
)
from rllib_minestudio.evaluation.policy_loading import load_policy
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule, VPTRLModule
from rllib_minestudio.models.vpt.weights import export_checkpoint, save_checkpoint
from tests.algorithms.toy_envs import AttackOnRed, tiny_model
from tests.policies.kinds import MODELS
from tests.policies.parts_env import PartsEnv

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
PRIOR = "package:hunter_nano"


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """Nothing here may start Ray."""
    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("Ray was started"))


@pytest.fixture(params=["VPT", "ConvGRU"])
def case(request):
    """A module and an environment that it plays in."""
    torch.manual_seed(0)
    env = AttackOnRed({"delay": 3}) if request.param == "VPT" else PartsEnv({"anonymous": True})
    kind, options = {
        "VPT": (VPTRLModule, tiny_model()),
        "ConvGRU": (ConvGRURLModule, MODELS["ConvGRU"]),
    }[request.param]
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    return kind(model_config=options, **spaces), env


def observations(env, count):
    """What an environment shows while the same random actions are taken."""
    env.action_space.seed(3)
    shown = [env.reset(seed=3)[0]]
    while len(shown) < count:
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        shown.append(env.reset()[0] if terminated or truncated else obs)
    return shown


def with_axes(value, axes=2):
    """Add the axes of a batch and of time."""
    if isinstance(value, dict):
        return {name: with_axes(part, axes) for name, part in value.items()}
    array = np.asarray(value)
    return torch.from_numpy(array.reshape((1,) * axes + array.shape))


def stacked(values):
    """Put observations of several environments side by side, as a vector environment does."""
    if isinstance(values[0], dict):
        return {name: stacked([value[name] for value in values]) for name in values[0]}
    return np.stack([np.asarray(value) for value in values])


def test_the_loop_on_the_page_runs_as_it_stands():
    names = {"__name__": "page"}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1], names)
    assert names["truncated"] and not names["terminated"]
    assert names["env"].action_space.contains(names["action"])


LOAD_IN_A_NEW_PROCESS = """
import sys
from rllib_minestudio import Policy
policy = Policy.load("package:hunter_nano")
assert policy.module is not None and not sys.modules["ray"].is_initialized()
"""


@pytest.mark.slow
def test_a_policy_loads_with_one_word_at_most_about_its_looks_and_without_starting_ray():
    done = subprocess.run(
        [sys.executable, "-c", LOAD_IN_A_NEW_PROCESS], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    told = done.stderr.splitlines()
    assert len(told) <= 1 and all("frames of other looks" in line for line in told), told


def test_rllibs_recipe_gives_the_same_actions(case, tmp_path):
    module, env = case
    restored = RLModule.from_checkpoint(module.save_to_path(tmp_path / "module"))
    policy = Policy(module, deterministic=True)
    state = {name: part[None] for name, part in restored.get_initial_state().items()}
    seen = set()
    for obs in observations(env, 12):
        out = restored.forward_inference({Columns.OBS: with_axes(obs), Columns.STATE_IN: state})
        state = out[Columns.STATE_OUT]
        action = policy.act(obs)
        assert env.action_space.contains(action)
        for name, tokens in out[Columns.ACTIONS].items():
            np.testing.assert_array_equal(action[name], tokens[0, 0].numpy())
        seen.add(str(action))
    assert len(seen) > 1, "it acts upon what it sees"


def test_several_environments_are_those_alone(case):
    """Each with a memory of its own, though the second one's episode ends on the way."""
    module, env = case
    shown = observations(env, 18)
    rows = [shown[0:6], shown[6:12], shown[12:18]]
    together, alone = Policy(module, deterministic=True), []
    for row in rows:
        policy = Policy(module, deterministic=True)
        actions = []
        for step, obs in enumerate(row):
            if row is rows[1] and step == 3:
                policy.reset()
            actions.append(policy.act(obs))
        alone.append(actions)
    for step in range(6):
        if step == 3:
            together.reset([False, True, False])
        action = together.act(stacked([row[step] for row in rows]))
        for name, tokens in action.items():
            expected = np.stack([actions[step][name] for actions in alone])
            np.testing.assert_array_equal(tokens, expected)


def test_a_seed_repeats_what_was_drawn(case):
    module, env = case
    shown = observations(env, 8)
    plays = [[str(policy.act(obs)) for obs in shown] for policy in _policies(module, 1, 1, 2)]
    assert plays[0] == plays[1] != plays[2]


def _policies(module, *seeds):
    return [Policy(module, seed=seed) for seed in seeds]


def test_reset_begins_with_an_empty_memory(case):
    module, env = case
    policy, shown = Policy(module, deterministic=True), observations(env, 4)
    first = [str(policy.act(obs)) for obs in shown]
    policy.reset()
    assert [str(policy.act(obs)) for obs in shown] == first


IMAGE = np.zeros((64, 64, 3), np.uint8)


@pytest.fixture(scope="module")
def hunter():
    return Policy.load(PRIOR)


@pytest.mark.parametrize(
    ("observation", "said"),
    [
        ({"frame": IMAGE}, "has no 'image', which the policy reads; it has 'frame'."),
        ({}, "it has nothing."),
        (IMAGE, "is a ndarray: it must be a mapping with 'image'"),
        ({"image": IMAGE.astype(float)}, r"is float64 \(64, 64, 3\): the policy reads uint8"),
        ({"image": IMAGE[:32]}, r"\(N, 64, 64, 3\) of N environments. .* obs_size must be"),
        ({"image": IMAGE[None, None]}, r"is uint8 \(1, 1, 64, 64, 3\)"),
    ],
)
def test_an_observation_that_does_not_fit_says_what_would(hunter, observation, said):
    with pytest.raises(InvalidBatchError, match=said):
        hunter.act(observation)


def test_environments_cannot_become_more_within_an_episode(hunter):
    hunter.reset()
    hunter.act({"image": IMAGE})
    with pytest.raises(InvalidBatchError, match=r"of 2 environment\(s\).* was of 1: call reset"):
        hunter.act({"image": np.stack([IMAGE, IMAGE])})
    with pytest.raises(InvalidBatchError, match=r"begins is bool \(2,\): it must be bool \(1,\)"):
        hunter.reset([True, False])
    hunter.reset()
    assert hunter.act({"image": np.stack([IMAGE, IMAGE])})["buttons"].shape == (2, 1)


def test_every_form_of_weights_plays_alike(hunter, tmp_path):
    prior = checkpoints.open(PRIOR)
    export_checkpoint(prior, tmp_path / "hugging_face")
    save_checkpoint(prior, tmp_path / "own")
    frames = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), np.uint8)
    played = []
    for source in (PRIORS / "hunter_nano", tmp_path / "hugging_face", tmp_path / "own"):
        policy = Policy.load(source, deterministic=True)
        played.append([str(policy.act({"image": frame})) for frame in frames])
    assert played[0] == played[1] == played[2]


@pytest.mark.parametrize("source", [PRIOR, Path(PRIOR)])
def test_the_prior_says_what_it_played(source):
    """So that it can be evaluated."""
    policy = load_policy(source)
    assert policy.identity["checkpoint"] == PRIOR
    assert policy.config.env_config["obs_size"] == [64, 64]
    assert policy.config.known_spaces()["action_space"]["buttons"].nvec.tolist() == [8641]


def test_an_environment_that_does_not_fit_is_refused():
    with pytest.raises(InvalidOptionsError, match=r"set the environment's obs_size to \[64, 64\]"):
        Policy.load(PRIOR, MineStudioEnv(obs_size=(32, 32)))


def test_other_policies_know_their_spaces_or_are_told_them(tmp_path):
    options = {"obs_size": [48, 48], "callbacks": [{"PrevAction": {}}]}
    spaces = MineStudioEnv.spaces_of(options)
    module = ConvGRURLModule(model_config=MODELS["ConvGRU"], **spaces)
    torch.save(module.network.state_dict(), tmp_path / "state.pt")
    copy_policy(
        checkpoints.open(tmp_path / "state.pt"), tmp_path / "policy", "ConvGRU", module.model_config
    )
    observation = spaces["observation_space"].sample()
    expected = str(Policy(module, deterministic=True).act(observation))
    with pytest.raises(CheckpointMismatchError, match=r"of the class ConvGRU.*load\(source, env\)"):
        Policy.load(tmp_path / "policy")
    env = gym.Env()
    env.observation_space, env.action_space = spaces.values()
    told = Policy.load(tmp_path / "policy", env, deterministic=True)
    assert str(told.act(observation)) == expected
    facts = yaml.safe_load((PRIORS / "hunter_nano" / PLAYING_FILE).read_text())
    facts["env_config"] = options
    (tmp_path / "policy" / PLAYING_FILE).write_text(with_own_digest(yaml.safe_dump(facts)))
    knows = Policy.load(tmp_path / "policy", deterministic=True)
    assert str(knows.act(observation)) == expected
