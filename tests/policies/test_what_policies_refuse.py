"""What does not fit a policy is refused by name, before anything starts."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.policy_registry import find_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule
from tests.correctness.harness import config_of
from tests.policies.foreign import VectorLSTM
from tests.policies.kinds import FOREIGN, MODELS, policy_options
from tests.policies.parts_env import SPACES, PartsEnv

TOKENS = gym.spaces.Dict(buttons=gym.spaces.MultiDiscrete([5]))


def ppo(**training):
    return MineStudioPPOConfig().environment(PartsEnv).training(**training)


def with_spaces(folder, action_space=TOKENS, observation_space=None, **training):
    """A config with spaces that are not the environment's own."""
    config = MineStudioBCConfig().offline_data(input_=str(folder)).training(**training)
    space = observation_space or gym.spaces.Dict(SPACES)
    return config.environment(PartsEnv, observation_space=space, action_space=action_space)


def problems_of(config):
    """Of a config that is refused."""
    with pytest.raises(InvalidOptionsError) as caught:
        config.validate()
    return caught.value.problems


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Dict(turn=gym.spaces.Box(-1, 1, (2,))),
        gym.spaces.Dict(buttons=gym.spaces.MultiDiscrete([5, 5])),
        gym.spaces.Dict(buttons=gym.spaces.Discrete(5, start=1)),
        gym.spaces.Dict(buttons=gym.spaces.MultiBinary(4)),
        gym.spaces.Discrete(5),
    ],
    ids=["Box", "two numbers", "from 1", "MultiBinary", "no Dict"],
)
def test_action_spaces(policy, space, tmp_path):
    (problem,) = problems_of(with_spaces(tmp_path, space, **policy_options(policy)))
    assert "action space must be a Dict of Discrete" in problem and str(space) in problem


class Turning(PartsEnv):
    """Its actions are numbers, not tokens."""

    def __init__(self, config=None):
        super().__init__(config)
        self.action_space = gym.spaces.Dict(turn=gym.spaces.Box(-1, 1, (2,)))


def test_action_spaces_that_only_the_environment_knows(policy):
    """One is built to see them, before env runners are."""
    with pytest.raises(InvalidOptionsError, match="'turn' of the environment's action space"):
        config_of(Turning, **policy_options(policy))


def test_frames(tmp_path):
    """Too small for convolutions that the user chose."""
    space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, (16, 16, 3), np.uint8))
    options = policy_options("ConvGRU", kernels=[9, 4, 3])
    (problem,) = problems_of(with_spaces(tmp_path, observation_space=space, **options))
    assert "image must be at least 37 pixels each way" in problem


@pytest.mark.parametrize("make", [MineStudioPPOConfig, MineStudioBCConfig])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ConvGrU", "Did you mean 'ConvGRU'"),
        ("tests.policies.foreign.VectorLSTN", "cannot be imported"),
        ("tests.policies.nowhere.Policy", "cannot be imported"),
        ("tests.policies.foreign.LSTMNetwork", "subclass of RecurrentRLModule"),
        ("os.system", "subclass of RecurrentRLModule"),
        (5, "must be the name or import path"),
    ],
)
def test_classes(make, name, message, tmp_path):
    config = make().training(module_class=name)
    if make is MineStudioBCConfig:
        config.offline_data(input_=str(tmp_path))
    found = [problem for problem in problems_of(config) if "module_class" in problem]
    assert found and message in " ".join(found) and str(name) in found[0]


def test_two_classes():
    config = ppo(**policy_options("ConvGRU")).rl_module(
        rl_module_spec=RLModuleSpec(module_class=VectorLSTM)
    )
    (problem,) = problems_of(config)
    assert "'ConvGRU'" in problem and "VectorLSTM" in problem and "leave out one" in problem


@pytest.mark.parametrize("named", [None, FOREIGN, VectorLSTM])
def test_one_class_said_twice_is_fine(named):
    options = {} if named is None else {"module_class": named}
    config = ppo(model=MODELS[FOREIGN], **options)
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=VectorLSTM)).validate()
    assert config.policy_class is VectorLSTM


@pytest.mark.parametrize(
    "option", [{"precision": "bfloat16"}, {"compile": True}, {"preset": "nano"}, {"hidsize": 8}]
)
def test_options_that_only_vpt_has(option, tmp_path):
    """Of ConvGRU without an environment; of others when the spaces are known."""
    (name,) = option
    (problem,) = problems_of(ppo(**policy_options("ConvGRU", **option)))
    assert name in problem and "unknown option" in problem
    (problem,) = problems_of(with_spaces(tmp_path, **policy_options(FOREIGN, **option)))
    assert name in problem


def test_patterns_that_pick_nothing(policy, tmp_path):
    """With the parameters' names, which are the policy's own."""
    for options, pattern in (
        (policy_options(policy, freeze=["net.*"]), "net.*"),
        ({**policy_options(policy), "lr_factors": {"pi_head.*": 0.1}}, "pi_head.*"),
    ):
        (problem,) = problems_of(with_spaces(tmp_path, **options))
        assert f"{pattern!r} picks no parameter" in problem


def test_a_policy_is_found_by_its_class_and_its_name():
    assert find_policy("ConvGRU") is find_policy(ConvGRURLModule) is ConvGRURLModule
    assert find_policy(FOREIGN) is VectorLSTM
