"""Two learners take the steps that one takes with all the data, whatever the policy."""

from __future__ import annotations

import numpy as np
import pytest
import ray
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_minestudio.algorithms.learner import ITERATION
from tests.policies.conftest import algorithm_config

pytestmark = pytest.mark.slow


def update(group, fragments, iteration):
    data = TrainingData(episodes=fragments)
    if group.is_remote:
        data = TrainingData(episodes_refs=[ray.put(fragment) for fragment in fragments])
    timesteps = {ITERATION: iteration, NUM_ENV_STEPS_SAMPLED_LIFETIME: 0}
    return group.update(training_data=data, timesteps=timesteps)


def weights(group):
    return group.get_state()["learner"]["rl_module"]["default_policy"]


def test_they_end_with_the_weights_of_one(local_ray, policy):
    """Fresh and stale fragments. A large eps: Adam makes steps of what is but rounding."""
    sizes = {"fragments_per_minibatch": 1, "gradient_accumulation": 2}  # two steps an epoch
    adaptive = {"kl_target": 1.0, "kl_target_rate": 1.0}
    config = algorithm_config(policy, adam_eps=1e-4, lr=2e-3, **sizes, **adaptive)
    algorithm = config.build_algo()
    shared = config.copy(copy_frozen=False)
    shared.learners(num_learners=2, num_cpus_per_learner=0.5).validate()
    module = algorithm.env_runner.module
    spaces = {"default_policy": (module.observation_space, module.action_space)}
    two = shared.build_learner_group(spaces=spaces)
    try:
        one = algorithm.learner_group
        two.set_state(one.get_state())
        before = weights(one)
        for iteration in range(2):  # the second's are stale
            fragments = sorted(algorithm.env_runner.sample().fragments, key=lambda f: f.key)
            (alone,) = update(one, fragments, iteration)
            results = update(two, fragments, iteration)
        after = weights(one)
        assert np.abs(after["value_head.linear.weight"] - before["value_head.linear.weight"]).max()
        for name, array in weights(two).items():
            np.testing.assert_allclose(array, after[name], rtol=1e-3, atol=5e-6, err_msg=name)
        start = config.kl_coeff
        assert float(alone["default_policy"]["kl_coeff"]) == pytest.approx(0.8 * start, rel=1e-5)
        for result in results:
            for name in ("gradient_norm", "value_mean", "kl_coeff"):
                expected = float(alone["default_policy"][name])
                assert float(result["default_policy"][name]) == pytest.approx(expected, rel=1e-3)
    finally:
        two.shutdown()
        algorithm.stop()
