"""The learner's rules that no curve shows: warmup, bad numbers, the frozen prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rllib_minestudio.errors import NonFiniteLossError


def learner_of(algorithm):
    return algorithm.learner_group._learner


def weights_of(module):
    return {name: array.copy() for name, array in module.get_state().items()}


def test_warmup_trains_the_value_function_and_publishes_nothing(local_ray, make_config):
    algorithm = make_config(vf_warmup_iterations=1).build_algo()
    before = weights_of(algorithm.env_runner.module)
    metrics = algorithm.train()["learners"]["default_policy"]
    assert metrics["kl_coeff"] == 1.0
    for name, array in weights_of(algorithm.env_runner.module).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    trained = weights_of(learner_of(algorithm).vpt)
    assert np.any(trained["value_head.linear.weight"] != before["value_head.linear.weight"])

    metrics = algorithm.train()["learners"]["default_policy"]
    assert metrics["recomputed_fragments"] == 8, "the values moved on, though unpublished"
    assert algorithm.weights_version == algorithm.env_runner._weights_seq_no == 2
    algorithm.stop()


def test_a_nan_reward_is_skipped_counted_and_leaves_no_trace(local_ray, make_config):
    algorithm = make_config({"nan_reward_at": 3}).build_algo()
    algorithm.train()  # every fragment of this iteration holds one
    state = learner_of(algorithm).get_state()["rl_module"]["default_policy"]
    assert all(np.isfinite(array).all() for array in state.values())
    metrics = algorithm.train()["learners"]["default_policy"]
    assert math.isfinite(metrics["policy_loss"])
    algorithm.stop()


def test_persistent_nans_end_the_run(local_ray, make_config):
    algorithm = make_config({"nan_reward_at": -1}, max_nonfinite_minibatches=3).build_algo()
    with pytest.raises(NonFiniteLossError, match="3 minibatches in a row"):
        algorithm.train()
    algorithm.stop()


def test_the_prior_stays_frozen(local_ray, make_config):
    algorithm = make_config().build_algo()
    prior = learner_of(algorithm)._prior.network
    before = {name: tensor.clone() for name, tensor in prior.state_dict().items()}
    algorithm.train()
    for name, tensor in prior.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    assert np.any(
        weights_of(learner_of(algorithm).vpt)["pi_head.buttons.linear_layer.weight"]
        != before["pi_head.buttons.linear_layer.weight"].numpy()
    )
    algorithm.stop()


def test_a_strong_kl_term_holds_the_policy_to_the_prior(local_ray, make_config):
    distances = []
    for kl_coeff in (0.0, 30.0):
        algorithm = make_config(kl_coeff=kl_coeff).build_algo()
        for _ in range(4):
            metrics = algorithm.train()["learners"]["default_policy"]
        distances.append(metrics["kl_to_prior"])
        algorithm.stop()
    free, held = distances
    assert held < 0.2 * free
