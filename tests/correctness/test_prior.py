"""Policy = prior means KL = 0, however the fragments reach the learner."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from tests.algorithms.toy_envs import tiny_model
from tests.correctness.problems import Noise

ROLLOUTS = 5
SHARPER = 50.0


def harness_with_kl_zero(make_harness, **options):
    """Only the value head learns: the policy stays the prior, which has strong opinions."""
    harness = make_harness(
        Noise,
        {"length": 37},
        **{"vf_warmup_iterations": 99, "vf_warmup_head_only": True, **options},
    )
    with torch.no_grad():  # a network that was just initialised is all but uniform
        for parameter in harness.network.pi_head.parameters():
            parameter.mul_(SHARPER)
    harness.learner._prior.follow(harness.learner.policy, version=1)
    harness.publish_prior()
    harness.publish()
    return harness


def in_order(fragments):
    return [fragments]


def one_by_one_at_random(fragments):
    """As a buffer hands them out that holds more than is asked for."""
    shuffled = random.Random(0).sample(fragments, len(fragments))
    return [shuffled[i : i + 4] for i in range(0, len(shuffled), 4)]


def newest_first(fragments):
    by_time = sorted(fragments, key=lambda f: -f.index)
    return [by_time[i : i + 4] for i in range(0, len(by_time), 4)]


def with_gaps(fragments):
    """Every third never arrives, some arrive twice."""
    kept = [f for i, f in enumerate(fragments) if i % 3]
    return one_by_one_at_random(kept) + one_by_one_at_random(kept)[:2]


ORDERS = (in_order, one_by_one_at_random, newest_first, with_gaps)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)
def test_the_kl_to_itself_is_zero_in_any_order(make_harness, order):
    harness = harness_with_kl_zero(make_harness)
    assert_kl_is_zero(harness, order(harness.play(ROLLOUTS)), 1e-5)


@pytest.mark.parametrize("order", [one_by_one_at_random, with_gaps], ids=lambda o: o.__name__)
def test_also_in_reduced_precision(make_harness, order):
    harness = harness_with_kl_zero(make_harness, model=tiny_model(precision="bfloat16"))
    assert_kl_is_zero(harness, order(harness.play(ROLLOUTS)), 1e-2)


def test_also_where_fragments_are_joined(make_harness):
    harness = harness_with_kl_zero(
        make_harness,
        fragments_per_minibatch=2,
        replay_buffer={"fragments_per_chunk": 2, "max_staleness": 99},
    )
    fragments = harness.play(4)
    pairs = [fragments[i : i + 2] for i in range(0, len(fragments), 2)]
    random.Random(1).shuffle(pairs)
    batches = [[*a, *b] for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
    assert_kl_is_zero(harness, batches, 1e-5)


def test_a_restored_learner_goes_on_with_kl_zero(make_harness):
    """What was played before it is restored, too."""
    harness = harness_with_kl_zero(make_harness)
    fragments = harness.play(2)
    harness.update(fragments)
    state = harness.learner.get_state()
    other = harness_with_kl_zero(make_harness)
    other.learner.set_state(state)
    other.publish_prior()
    other.publish()
    assert_kl_is_zero(other, [other.play(2), fragments], 1e-5)


def test_memory_is_what_makes_it_zero(make_harness):
    """MineStudio's prior forgets everything at a fragment's border: another policy."""
    harness = harness_with_kl_zero(make_harness, carry_prior_state=False)
    harness.update(harness.play())
    assert harness.update(harness.play())["kl_to_prior"] > 1e-2


def test_a_prior_that_followed_the_policy_is_known_by_its_version(make_harness):
    """Fragments of versions that are too old to be known are trained on without the KL term."""
    harness = make_harness(Noise, prior_update_interval=1, replay_buffer={"max_staleness": 0})
    fragments = harness.play()
    for _ in range(2):
        assert harness.update(fragments)["kl_masked_fragments"] == 0
        harness.publish_prior()
        harness.publish()
        old, fragments = fragments, harness.play()
    stranger = [replace(f, prior_version=77) for f in fragments]
    metrics = harness.update([*stranger[:2], *fragments[2:]])
    assert metrics["kl_masked_fragments"] == 2
    assert metrics["policy_loss"] != 0.0
    assert old[0].prior_version != fragments[0].prior_version


def assert_kl_is_zero(harness, batches, bound):
    for batch in batches:
        metrics = harness.update(batch)
        assert abs(metrics["kl_to_prior"]) < bound
        assert metrics["entropy"] > 1.0, "it was measured"
