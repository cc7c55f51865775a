"""What was recorded of the behaviour policy is what the learner computes from the fragments."""

from __future__ import annotations

import numpy as np
import pytest

from tests.policies.kinds import recomputed

TOLERANCE = {"rtol": 0, "atol": 1e-5}


def assert_recorded_is_recomputed(harness, fragments, join=1, tolerance=TOLERANCE):
    """Log-probabilities and values, those of final and last observations included."""
    found = recomputed(harness, fragments, join)
    for name, actual in (("logp", found.logp_bt), ("value", found.value_bt)):
        expected = np.concatenate([getattr(f, name) for f in fragments])
        np.testing.assert_allclose(actual.ravel(), expected, **tolerance)
    cut = np.concatenate([f.truncated & ~f.terminated for f in fragments])
    bootstrap = np.concatenate([f.bootstrap_value for f in fragments])
    assert cut.any() and np.isfinite(bootstrap[cut]).all() and np.isnan(bootstrap[~cut]).all()
    np.testing.assert_allclose(found.bootstrap_value_bt.ravel()[cut], bootstrap[cut], **tolerance)
    last = [f.last_value for f in fragments[join - 1 :: join]]
    np.testing.assert_allclose(found.last_value_b, last, **tolerance)


@pytest.mark.parametrize("context_length", [64, 5])
def test_recorded_is_recomputed(make_harness, policy, context_length):
    """Episodes begin within fragments, and fragments in the middle of episodes."""
    harness = make_harness(policy, context_length=context_length, zero_init_value_head=False)
    fragments = harness.play(3)
    assert any(f.first[1:].any() for f in fragments) and not all(f.first[0] for f in fragments)
    assert max(np.ptp(f.value) for f in fragments) > 1e-3, "values that say something"
    assert_recorded_is_recomputed(harness, fragments)


def test_joined_fragments_are_one_sequence(make_harness, policy):
    """The memory runs through the border."""
    options = {"context_length": 7, "zero_init_value_head": False}
    harness = make_harness(policy, **options)
    assert_recorded_is_recomputed(harness, harness.play(2), join=2)


@pytest.mark.parametrize("join", [1, 2])
def test_the_first_update_begins_at_a_ratio_of_one(make_harness, policy, join):
    harness = make_harness(
        policy,
        context_length=5,
        fragments_per_iteration=3 * join,
        fragments_per_minibatch=3,
        replay_buffer={"fragments_per_chunk": join},
    )
    metrics = harness.update(harness.play(join))
    assert abs(metrics["approximate_kl"]) < 1e-5 and metrics["clip_fraction"] == 0
    assert metrics["recomputed_fragments"] == 0
    harness.publish()
    metrics = harness.update(harness.play(join))
    assert abs(metrics["approximate_kl"]) < 1e-5


def test_a_second_step_within_an_iteration_has_moved_on(make_harness, policy):
    """Else the ratio of 1 would show nothing."""
    harness = make_harness(policy, num_epochs=3, lr=1e-2)
    assert harness.update(harness.play())["approximate_kl"] > 1e-6


@pytest.mark.parametrize("join", [1, 2])
def test_stale_and_reused_fragments_are_recomputed(make_harness, policy, join):
    """With the weights that the iteration starts from: again a ratio of 1."""
    harness = make_harness(
        policy,
        context_length=5,
        lr=1e-2,
        fragments_per_iteration=6,
        fragments_per_minibatch=3,
        gradient_accumulation=2,
        replay_buffer={"fragments_per_chunk": join, "max_reuse": 2, "max_staleness": 3},
    )
    fragments = harness.play(2)
    metrics = harness.update(fragments)
    assert metrics["recomputed_fragments"] == 0
    for _ in range(2):
        harness.publish()
        metrics = harness.update(fragments)
        assert metrics["recomputed_fragments"] == len(fragments)
        assert abs(metrics["approximate_kl"]) < 1e-5
    targets, now = harness.targets(fragments), recomputed(harness, fragments, join)
    np.testing.assert_allclose(targets.proximal_logp_bt.numpy(), now.logp_bt, **TOLERANCE)
    np.testing.assert_allclose(targets.value_bt.numpy(), now.value_bt, **TOLERANCE)
    behaviour = np.concatenate([f.logp for f in fragments])
    assert np.abs(now.logp_bt.ravel() - behaviour).max() > 1e-3


def test_a_fragment_of_two_versions_is_recomputed(make_harness, policy):
    """Environments that go on while weights change."""
    harness = make_harness(policy, lr=1e-2)
    harness.update(harness.play())
    mixed = []
    for _ in range(2):
        rollout = harness.runner.sample(aligned=False)
        harness.publish()
        mixed += rollout.fragments
    metrics = harness.update(mixed[:3])
    assert abs(metrics["approximate_kl"]) < 1e-5
