"""The learner's rules that no curve shows: warmup, bad numbers, the frozen prior."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.algorithms.learner.batch import MinibatchStream, sequences_of
from rllib_minestudio.algorithms.learner.objective import adapted
from rllib_minestudio.algorithms.learner.policy_learner import evaluate
from rllib_minestudio.errors import NonFiniteLossError, NonFiniteWeightsError
from tests.algorithms.toy_envs import tiny_model
from tests.correctness.harness import Harness


class Rounds(Harness):
    """Plays, learns and publishes, as the training loop does in one process."""

    def iterate(self):
        metrics = self.update(self.play())
        self.publish()
        return metrics


@pytest.fixture
def make_harness(make_config):
    """Builds a learner and an env runner, without an algorithm around them."""
    made = []

    def make(*args, **options):
        config = make_config(*args, **options)
        config.validate()
        made.append(Rounds(config))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


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
    trained = weights_of(learner_of(algorithm).policy)
    assert np.any(trained["value_head.linear.weight"] != before["value_head.linear.weight"])

    metrics = algorithm.train()["learners"]["default_policy"]
    assert metrics["recomputed_fragments"] == 8, "the values moved on, though unpublished"
    assert algorithm.weights_version == algorithm.env_runner._weights_seq_no == 1
    algorithm.stop()


def test_a_warmup_of_the_head_leaves_the_policy_as_it_is(make_harness):
    harness = make_harness(vf_warmup_iterations=1, vf_warmup_head_only=True)
    before = weights_of(harness.learner.policy)

    def moved():
        after = weights_of(harness.learner.policy)
        return {name.split(".")[0] for name in after if np.any(after[name] != before[name])}

    metrics = harness.iterate()
    assert metrics["value_loss"] > 0
    assert moved() == {"value_head"}
    harness.iterate()
    assert moved() == {"net", "pi_head", "value_head"}


def test_nan_rewards_are_left_out_counted_and_leave_no_trace(make_harness):
    """Every fragment of the first iteration holds one."""
    harness = make_harness({"nan_reward_at": 3})
    before = weights_of(harness.learner.policy)
    metrics = harness.iterate()
    assert metrics["dropped_nonfinite"] == 8
    assert metrics["skipped_minibatches"] == 4
    for name, array in weights_of(harness.learner.policy).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    metrics = harness.iterate()
    assert metrics["dropped_nonfinite"] == 0
    assert math.isfinite(metrics["policy_loss"])


def test_persistent_nans_end_the_run(make_harness):
    harness = make_harness({"nan_reward_at": -1}, max_nonfinite_minibatches=3)
    with pytest.raises(NonFiniteLossError, match="4 minibatches in a row"):
        harness.iterate()


@pytest.mark.parametrize("number", [np.nan, 1e30], ids=["NaN", "too large to square"])
def test_a_spoilt_gradient_costs_one_step(make_harness, number):
    """Neither weights nor the optimizer's moments notice."""
    harness = make_harness(grad_clip=None)
    learner = harness.learner
    spoil = iter([number])
    weight = learner.policy.network.net.lastlayer.layer.weight
    weight.register_hook(lambda gradient: gradient * next(spoil, 1.0))
    metrics = harness.iterate()
    assert metrics["skipped_minibatches"] == 1
    assert all(math.isfinite(metrics[name]) for name in ("policy_loss", "gradient_norm"))
    moments = learner.get_optimizer("default_policy").state[weight]
    assert moments["step"] == 3, "of the iteration's four"
    assert all(moment.isfinite().all() for moment in moments.values())


def test_weights_that_are_not_finite_are_neither_published_nor_saved(
    local_ray, make_config, tmp_path
):
    algorithm = make_config().build_algo()
    with torch.no_grad():
        learner_of(algorithm).policy.network.net.final_ln.weight[0] = math.nan
    with pytest.raises(NonFiniteWeightsError, match="neither published nor saved"):
        algorithm.train()
    with pytest.raises(NonFiniteWeightsError):
        algorithm.save_to_path(tmp_path / "checkpoint")
    for name, array in weights_of(algorithm.env_runner.module).items():
        assert np.isfinite(array).all(), name
    algorithm.stop()


def test_moments_that_are_not_finite_are_not_saved(local_ray, make_config, tmp_path):
    algorithm = make_config().build_algo()
    algorithm.train()
    moments = next(iter(learner_of(algorithm).get_optimizer("default_policy").state.values()))
    moments["exp_avg"].view(-1)[0] = math.inf
    with pytest.raises(NonFiniteWeightsError, match="optimizer's moments"):
        algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()


def test_values_too_large_to_square_are_finite(make_harness):
    harness = make_harness()
    harness.iterate()
    moments = next(iter(harness.learner.get_optimizer("default_policy").state.values()))
    moments["exp_avg"].fill_(1e30)
    harness.learner.get_state()
    moments["exp_avg"].view(-1)[-1] = -math.inf
    with pytest.raises(NonFiniteWeightsError):
        harness.learner.get_state()


def test_the_rate_is_annealed_over_iterations(make_harness):
    harness = make_harness(lr=1e-3, lr_annealing_iterations=2)
    rates, moved = [], []
    for _ in range(3):
        before = weights_of(harness.learner.policy)
        metrics = harness.iterate()
        rates.append(metrics["default_optimizer_learning_rate"])
        after = weights_of(harness.learner.policy)
        # The value head's statistics have no rate.
        moved.append(any((before[name] != after[name]).any() for name in after if "net." in name))
    assert rates == pytest.approx([1e-3, 0.5e-3, 0.0])
    assert moved == [True, True, False]


def test_the_prior_stays_frozen(make_harness):
    harness = make_harness()
    prior = harness.learner._prior.module.network
    before = {name: tensor.clone() for name, tensor in prior.state_dict().items()}
    harness.iterate()
    for name, tensor in prior.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    assert np.any(
        weights_of(harness.learner.policy)["pi_head.buttons.linear_layer.weight"]
        != before["pi_head.buttons.linear_layer.weight"].numpy()
    )


def test_the_prior_can_follow_the_policy(make_harness):
    harness = make_harness(prior_update_interval=2)
    learner = harness.learner
    harness.iterate()
    assert weights_differ(learner), "not yet"
    harness.iterate()
    assert not weights_differ(learner)
    harness.iterate()
    assert weights_differ(learner), "it stands still in between"


def weights_differ(learner):
    prior = learner._prior.module.network.state_dict()
    return any(not t.equal(prior[name]) for name, t in learner.policy.network.named_parameters())


def test_reduced_precision_is_for_the_network_only(make_harness):
    """Weights, moments, statistics and losses stay in float32, and it learns."""
    harness = make_harness(model=tiny_model(precision="bfloat16"))
    learner = harness.learner
    dtypes = set()
    learner.policy.network.net.lastlayer.layer.register_forward_hook(
        lambda module, inputs, output: dtypes.add(output.dtype)
    )
    before = weights_of(learner.policy)
    metrics = harness.iterate()
    assert dtypes == {torch.bfloat16}
    assert math.isfinite(metrics["policy_loss"])
    after = weights_of(learner.policy)
    assert {array.dtype for array in after.values()} == {np.dtype(np.float32)}
    assert all(np.any(after[name] != array) for name, array in before.items() if "r_layer" in name)
    moments = learner.get_optimizer("default_policy").state.values()
    assert {m.dtype for state in moments for m in state.values()} == {torch.float32}


@pytest.mark.slow
def test_a_strong_kl_term_holds_the_policy_to_the_prior(make_harness):
    distances = []
    for kl_coeff in (0.0, 30.0):
        harness = make_harness(kl_coeff=kl_coeff)
        for _ in range(4):
            metrics = harness.iterate()
        distances.append(metrics["kl_to_prior"])
    free, held = distances
    assert held < 0.2 * free


@pytest.mark.slow
def test_an_adaptive_coefficient_brings_the_kl_to_its_target(make_harness, target=0.2):
    """From a weight that holds it at a tenth of that."""
    harness = make_harness(kl_coeff=4.0, kl_target=target, kl_target_rate=0.5)
    found = [harness.iterate()["kl_to_prior"] for _ in range(36)]
    assert max(found[:6]) < 0.2 * target
    assert np.mean(found[-20:]) == pytest.approx(target, rel=0.25)


def test_the_next_coefficient_follows_from_this_iterations_kl(make_harness):
    harness = make_harness(kl_coeff=0.5, kl_target=1e-4, kl_target_rate=0.3)
    factor = 1.0
    for _ in range(3):
        metrics = harness.iterate()
        assert metrics["kl_coeff"] == pytest.approx(0.5 * factor)
        assert metrics["prior_known"] == pytest.approx(1.0)
        factor = adapted(factor, metrics["kl_to_prior"], 1e-4, 0.3)
    assert factor != 1.0
    restored = make_harness(kl_coeff=0.25, kl_target=1e-4, kl_target_rate=0.3)
    restored.learner.set_state(harness.learner.get_state())
    assert restored.iterate()["kl_coeff"] == pytest.approx(0.25 * factor)


def test_steps_with_an_unknown_prior_say_nothing_about_the_kl(make_harness):
    """Half of the fragments were played beside a prior that this learner has not got."""
    harness = make_harness(kl_coeff=0.5, kl_target=1e-4, fragments_per_minibatch=8)
    harness.iterate()
    fragments = harness.runner.sample().fragments[:4] * 2
    found = []
    for unknown in (0, 4):
        again = make_harness(kl_coeff=0.5, kl_target=1e-4, fragments_per_minibatch=8, lr=0.0)
        again.learner.set_state(harness.learner.get_state())
        unknown_prior = [replace(f, prior_version=7) for f in fragments[:unknown]]
        metrics = again.update([*unknown_prior, *fragments[unknown:]])
        assert metrics["prior_known"] == pytest.approx(1 - unknown / 8)
        found.append(again.learner._collected.kl_to_prior())
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert found[0] > 0


def test_coefficients_follow_the_environment_steps(make_harness):
    harness = make_harness(kl_coeff=[[0, 0.4], [100, 0.2]], entropy_coeff=[[0, 0.0], [200, 1.0]])
    data = TrainingData(episodes=harness.play())
    timesteps = {ITERATION: 5, NUM_ENV_STEPS_SAMPLED_LIFETIME: 50}
    metrics = harness.learner.update(training_data=data, timesteps=timesteps)["default_policy"]
    assert metrics["kl_coeff"].peek() == pytest.approx(0.3)
    assert metrics["curr_entropy_coeff"].peek() == pytest.approx(0.25)


def test_what_a_fragment_that_became_too_stale_holds_does_not_matter(make_harness):
    """It takes part in no loss, no statistic and no mean: the weights after are the same."""
    outcomes = []
    for garbage in (0, 200):
        harness = make_harness(fragments_per_minibatch=8)
        first, *rest = harness.runner.sample().fragments
        reward = np.full_like(first.reward, 1e4 * garbage)
        obs = {name: np.full_like(part, garbage) for name, part in first.obs.items()}
        stale = replace(first, weights_version_min=-3, obs=obs, reward=reward)
        assert harness.update([stale, *rest])["dropped_stale"] == 1
        outcomes.append(weights_of(harness.learner.policy))
    for name, array in outcomes[0].items():
        np.testing.assert_array_equal(outcomes[1][name], array, err_msg=name)


def test_joined_fragments_are_evaluated_as_they_were_played(make_harness):
    """Memory runs through their border, episodes' ends included, without being stored there."""
    harness = make_harness()
    played = [*harness.runner.sample().fragments, *harness.runner.sample().fragments]
    fragments = sorted(played, key=lambda fragment: fragment.key)
    last = fragments[1::2]
    evaluation = evaluate(
        harness.learner.policy,
        sequences_of(fragments, join=2),
        stream=MinibatchStream(torch.device("cpu")),
        context_length=16,
        batch_size=3,
    )
    for name in ("logp", "value", "bootstrap_value"):
        expected = np.stack([getattr(f, name) for f in fragments]).reshape(8, 64)
        actual = getattr(evaluation, f"{name}_bt")
        np.testing.assert_allclose(actual, expected, atol=2e-5, err_msg=name)
    assert np.isfinite(evaluation.bootstrap_value_bt).sum() == 8 * 3, "episodes of 20 steps"
    np.testing.assert_allclose(evaluation.last_value_b, [f.last_value for f in last], atol=2e-5)
