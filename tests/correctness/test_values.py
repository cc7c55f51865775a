"""What a step is worth: episodes that go on, that terminate, and that a time limit cuts short.

With reward 1 and gamma 0.9 an endless episode is worth 10 at every step, and so is one that is cut
short, because it would have gone on. A value function that says 10 must therefore be told 10.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.correctness.problems import Noise, RewardOne

GAMMA = 0.9
ENDLESS = 10.0


def learnt(harness, value):
    """The learner's value function says `value`; the runner acts with what it had before."""
    harness.set_constant_value(value)
    harness.learner._weights_seq_no += 1
    harness.version += 1


@pytest.mark.parametrize("length", [None, 6, 7, 16], ids="{}".format)
@pytest.mark.parametrize("join", [1, 2], ids=["one fragment", "two joined"])
def test_an_episode_cut_short_is_worth_what_an_endless_one_is(make_harness, length, join):
    """Also where it is cut twice within a fragment, or at its very end."""
    options = {"replay_buffer": {"fragments_per_chunk": join}, "fragments_per_minibatch": 2}
    harness = make_harness(RewardOne, {"length": length}, **options)
    fragments = harness.play(2)
    assert fragments[0].truncated.sum() == {None: 0, 6: 2, 7: 2, 16: 1}[length]
    learnt(harness, ENDLESS)
    targets = harness.targets(fragments)
    np.testing.assert_allclose(targets.value_target_bt, ENDLESS, rtol=1e-5)


def test_a_value_function_that_warms_up_bootstraps_from_itself(make_harness):
    """Its weights move while nothing is published: what env runners recorded is not its own."""
    harness = make_harness(RewardOne, {"length": 6}, vf_warmup_iterations=9)
    fragments = harness.play()
    harness.update(fragments)
    harness.set_constant_value(ENDLESS)
    targets = harness.targets(harness.play())
    np.testing.assert_allclose(targets.value_target_bt, ENDLESS, rtol=1e-5)


def test_the_same_fragment_is_worth_more_when_the_value_function_has_learnt_more(make_harness):
    """Reuse: targets are those of the weights at the time, not of those that played."""
    harness = make_harness(RewardOne, {"length": 6})
    fragments = harness.play()
    for value in (ENDLESS, 2 * ENDLESS):
        learnt(harness, value)
        gain = harness.targets(fragments).value_target_bt[:, 5] - 1.0
        np.testing.assert_allclose(gain, GAMMA * value, rtol=1e-5)


def test_a_terminated_episode_is_worth_what_is_left_of_it(make_harness):
    harness = make_harness(RewardOne, {"length": 8, "end": "terminated"}, lambda_=1.0)
    fragments = harness.play()
    learnt(harness, ENDLESS)
    left = 8 - np.arange(16) % 8
    expected = (1 - GAMMA**left) / (1 - GAMMA)
    targets = harness.targets(fragments).value_target_bt
    np.testing.assert_allclose(targets, np.tile(expected, (4, 1)), rtol=1e-5)


def test_bootstrap_values_are_made_with_the_memory_of_their_step(make_harness):
    """As the runner itself evaluated them, when it still had that memory and those weights."""
    harness = make_harness(Noise, {"length": 7}, context_length=5, zero_init_value_head=False)
    fragments = harness.play(2)
    harness.learner._is_published = False  # nothing recorded is trusted
    sequences = harness.learner._loader.load(_data(fragments)).sequences
    fresh = _evaluate(harness, sequences)
    for name in ("logp", "value", "bootstrap_value"):
        recorded = getattr(sequences, name)
        np.testing.assert_allclose(getattr(fresh, f"{name}_bt"), recorded, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(fresh.last_value_b, sequences.last_value, atol=2e-5)
    assert np.std(fresh.bootstrap_value_bt[~np.isnan(fresh.bootstrap_value_bt)]) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("warmup", [0, 40])
def test_the_value_function_learns_the_true_value(make_harness, warmup):
    """Time limit after 20 steps, fragments of 16: one that counts them as the end learns 8."""
    harness = make_harness(
        RewardOne, {"length": 20}, vf_warmup_iterations=warmup, lr=4e-3, prior=None, kl_coeff=0.0
    )
    for _ in range(40):
        metrics = harness.update(harness.play())
        if warmup == 0:
            harness.publish()
    assert metrics["value_mean"] == pytest.approx(ENDLESS, abs=0.5)


def _data(fragments):
    from ray.rllib.core.learner.training_data import TrainingData

    return TrainingData(episodes=fragments)


def _evaluate(harness, sequences):
    from rllib_minestudio.algorithms.learner.policy_learner import evaluate

    return evaluate(
        harness.learner.policy,
        sequences,
        stream=harness.learner._stream,
        context_length=harness.config.context_length,
        batch_size=3,
    )
