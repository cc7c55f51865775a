"""Policies in a whole algorithm: saved, restored, asked for, partly frozen, averaged."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioPPO
from rllib_minestudio.checkpoints.checkpoint import MODULE_PATH
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policy_loading import load_module
from rllib_minestudio.models.policy_registry import find_policy
from tests.policies.conftest import FROZEN, SLOW_PART, algorithm_config
from tests.policies.parts_env import BUTTONS, CAMERA, PartsEnv


def numbers(algorithm):
    """Weights, prior, average and moments."""
    learner = algorithm.learner_group.get_state()["learner"]
    found = {f"weights/{n}": a for n, a in learner["rl_module"]["default_policy"].items()}
    found |= {f"prior/{n}": a for n, a in learner["prior"].items()}
    found |= {f"average/{n}": a for n, a in learner["weight_average"].items()}
    moments = learner["optimizer"]["default_policy_default_optimizer"]["state"]["state"]
    for parameter, values in moments.items():
        found |= {f"moments/{parameter}/{n}": np.asarray(v) for n, v in values.items()}
    return found


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


def test_it_is_restored_elsewhere_and_goes_on(trained):
    restored = MineStudioPPO.from_checkpoint(trained.checkpoint)
    try:
        assert_same(numbers(restored), numbers(trained.algorithm))
        assert any(n.startswith("moments/") for n in numbers(restored))
        module = restored.get_module()
        assert type(module) is find_policy(trained.policy)
        assert_same(module.get_state(), trained.algorithm.get_module().get_state())
        learner = restored.train()["learners"]["default_policy"]
        assert learner["weights_version"] == 3 and learner["kl_to_prior"] > 0
        assert learner["dropped_nonfinite"] == 0
    finally:
        restored.stop()


def test_what_is_frozen_stays_and_factors_count(trained):
    now = numbers(trained.algorithm)
    frozen = FROZEN[trained.policy]
    for name, before in trained.before.items():
        if fnmatchcase(name, frozen):
            np.testing.assert_array_equal(now[f"weights/{name}"], before)
    moved = [n for n, a in trained.before.items() if (now[f"weights/{n}"] != a).any()]
    assert any(fnmatchcase(name, SLOW_PART) for name in moved)
    assert not any(fnmatchcase(name, frozen) for name in moved)
    optimizer = trained.algorithm.learner_group._learner.get_optimizer("default_policy")
    rates = {group["lr_factor"]: group["lr"] for group in optimizer.param_groups}
    assert rates == pytest.approx({1.0: 1e-2, 0.5: 5e-3})


def test_the_average_lags_behind_and_can_be_loaded(trained):
    now = numbers(trained.algorithm)
    name = "value_head.linear.weight"
    assert (now[f"average/{name}"] != now[f"weights/{name}"]).any()
    module = trained.algorithm.get_module()
    for folder in ("learner_group/learner/weight_average", "policy_average"):
        loaded = type(module)(
            model_config=module.model_config,
            observation_space=module.observation_space,
            action_space=module.action_space,
        )
        loaded.load_weights(Path(trained.checkpoint, folder))
        np.testing.assert_array_equal(loaded.get_state()[name], now[f"average/{name}"])


def test_the_initial_prior_is_what_training_began_with(trained):
    now = numbers(trained.algorithm)
    for name, before in trained.before.items():
        np.testing.assert_array_equal(now[f"prior/{name}"], before)


def test_forward_inference_by_hand_is_the_rollout_session(trained):
    """Nested observations, the state passed on, and nothing else."""
    module, env = trained.algorithm.get_module(), PartsEnv({"anonymous": True})
    session = module.make_rollout_session(1)
    obs, _ = env.reset(seed=1)
    state, first = {}, torch.tensor([True])
    for _ in range(6):
        inputs = {name: _as_tensor(value) for name, value in obs.items()}
        out = module.forward_inference({Columns.OBS: inputs, Columns.STATE_IN: state})
        state = out[Columns.STATE_OUT]
        alone = {name: _as_tensor(value, axes=1) for name, value in obs.items()}
        decision = session.act(alone, first, explore=False)
        first = torch.tensor([False])
        action = {n: tokens[0, 0].numpy() for n, tokens in out[Columns.ACTIONS].items()}
        assert env.action_space.contains(action)
        for name, token in decision.actions.items():
            assert token.item() == action[name].item()
        value = out[Columns.VF_PREDS][0, 0].item()
        assert decision.value_b.item() == pytest.approx(value, abs=1e-5)
        obs, *_ = env.step(action)


def test_rllibs_recipe_for_a_checkpoint_is_policy(trained):
    env = PartsEnv({"anonymous": True})
    module = RLModule.from_checkpoint(Path(trained.checkpoint) / MODULE_PATH)
    policy = Policy.load(trained.checkpoint, env, deterministic=True)
    obs, _ = env.reset(seed=1)
    state = {name: part[None] for name, part in module.get_initial_state().items()}
    for _ in range(4):
        batch = {Columns.OBS: _as_tensor(obs), Columns.STATE_IN: state}
        out = module.forward_inference(batch)
        state, action = out[Columns.STATE_OUT], policy.act(obs)
        for name, tokens in out[Columns.ACTIONS].items():
            np.testing.assert_array_equal(action[name], tokens[0, 0].numpy())
        obs, *_ = env.step(action)


def _as_tensor(value, axes=2):
    if isinstance(value, dict):
        return {name: _as_tensor(inner, axes) for name, inner in value.items()}
    array = np.asarray(value)
    return torch.from_numpy(array.reshape((1,) * axes + array.shape))


def test_a_checkpoint_plays_one_environment(trained):
    """As `rllib play` does; actions are of the environment's space."""
    env = PartsEnv({"anonymous": True})
    module = load_module(trained.checkpoint, env)
    assert_same(module.get_state(), trained.algorithm.get_module().get_state())
    assert checkpoints.open(trained.checkpoint).policy_class == trained.policy
    plays = []
    for _ in range(2):
        policy, actions = Policy(module, deterministic=True), []
        obs, _ = env.reset(seed=3)
        for _ in range(4):
            actions.append(policy.act(obs))
            assert env.action_space.contains(actions[-1])
            obs, *_ = env.step(actions[-1])
        plays.append(actions)
    assert plays[0] == plays[1]


def test_it_evaluates(trained):
    results = trained.algorithm.evaluate()["env_runners"]
    assert results["num_episodes"] == 4 and 5 <= results["episode_len_mean"] <= 7


def test_a_token_of_a_discrete_space_has_no_axis(trained):
    """`int(action)` must do: NumPy refuses that of an array."""
    env = PartsEnv({"anonymous": True})
    env.action_space = gym.spaces.Dict(
        buttons=gym.spaces.Discrete(BUTTONS), camera=gym.spaces.MultiDiscrete([CAMERA])
    )
    action = Policy.load(trained.checkpoint, env).act(env.reset(seed=3)[0])
    assert env.action_space.contains(action)
    assert int(action["buttons"]) in range(BUTTONS)


def test_the_replay_buffer_joins_and_reuses(local_ray, policy):
    """Every iteration begins at a ratio of 1: one step each, and what is stale is recomputed."""
    algorithm = algorithm_config(
        policy,
        fragments_per_iteration=8,
        context_length=7,
        gradient_accumulation=2,
        replay_buffer={"fragments_per_chunk": 2, "max_reuse": 2, "max_staleness": 3},
    ).build_algo()
    try:
        recomputed = 0
        for _ in range(3):
            learner = algorithm.train()["learners"]["default_policy"]
            assert abs(learner["approximate_kl"]) < 1e-5 and learner["clip_fraction"] == 0
            assert learner["dropped_stale"] == learner["dropped_nonfinite"] == 0
            recomputed += learner["recomputed_fragments"]
        assert recomputed > 0
    finally:
        algorithm.stop()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ConvGRU"])  # the other takes the same way
def test_remote_runners_and_two_learners(local_ray, policy):
    """All parts in processes of their own."""
    config = algorithm_config(policy, fragments_per_minibatch=1, gradient_accumulation=2)
    config.env_runners(num_env_runners=1)
    config.learners(num_learners=2, num_cpus_per_learner=0.5)
    algorithm = config.build_algo()
    try:
        before = algorithm.get_module().get_state()
        for _ in range(2):
            learner = algorithm.train()["learners"]["default_policy"]
        assert learner["weights_version"] == 2 and learner["dropped_nonfinite"] == 0
        first, second = (
            result.get()["rl_module"]["default_policy"]
            for result in algorithm.learner_group.foreach_learner(lambda each: each.get_state())
        )
        assert_same(second, first)
        assert_same(algorithm.get_module().get_state(), first)
        name = "value_head.linear.weight"
        assert (before[name] != first[name]).any()
    finally:
        algorithm.stop()
