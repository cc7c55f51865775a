"""Two learners do what one does with all the data, and leave out together what must be left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import ray
import torch
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.errors import InvalidOptionsError

FRAGMENTS = 8


@pytest.fixture(scope="module")
def pair(local_ray, make_config_for_module):
    """One learner and two with the same weights, in two steps an epoch; all else is the same.

    A fragment is four chunks, the last of which averages the gradients.

    AdamW divides by the square root of a mean square: where a gradient is nothing but rounding
    noise, which differs with the order of sums, it would make a full step of it. The large eps
    keeps such steps as small as the noise.
    """
    config = make_config_for_module(
        adam_eps=1e-3,
        context_length=8,
        fragments_per_minibatch=2,
        gradient_accumulation=2,
        replay_buffer={"max_fragments": 64, "max_reuse": 2, "max_staleness": 3},
    )
    algorithm = config.build_algo()
    shared = config.copy(copy_frozen=False).learners(num_learners=2, num_cpus_per_learner=1)
    shared.validate()
    runner = algorithm.env_runner
    spaces = {"default_policy": (runner.module.observation_space, runner.module.action_space)}
    two = shared.build_learner_group(spaces=spaces)
    two.set_state(algorithm.learner_group.get_state())
    yield algorithm, two
    two.shutdown()
    algorithm.stop()


def play(algorithm):
    """One fragment of every environment, in an order of its own each time."""
    return sorted(algorithm.env_runner.sample().fragments, key=lambda f: f.key)


def update(group, fragments, iteration):
    data = TrainingData(episodes=fragments)
    if group.is_remote:
        data = TrainingData(episodes_refs=[ray.put(fragment) for fragment in fragments])
    timesteps = {ITERATION: iteration, NUM_ENV_STEPS_SAMPLED_LIFETIME: 0}
    return group.update(training_data=data, timesteps=timesteps)


def numbers(group):
    """All weights, statistics and moments by name."""
    state = group.get_state()["learner"]
    found = dict(state["rl_module"]["default_policy"])
    moments = state["optimizer"]["default_policy_default_optimizer"]["state"]["state"]
    for parameter, values in moments.items():
        found |= {f"{parameter}/{name}": np.asarray(value) for name, value in values.items()}
    return found


def assert_equal(one, two):
    """Equal but for the rounding of float32 sums taken in another order, and what Adam makes of it.

    Such sums differ by about 1e-7 of their largest terms, which is what the tolerances allow
    sixteen steps to add up to; a step itself is about 2e-3.
    """
    expected, actual = numbers(one), numbers(two)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        of_moments = 1e-3 if "/" in name else 0.0
        np.testing.assert_allclose(actual[name], value, rtol=of_moments, atol=5e-6, err_msg=name)


@pytest.mark.slow
def test_two_learners_end_with_the_weights_of_one(pair):
    """Fresh, stale and reused fragments; environments change from one learner to the other."""
    algorithm, two = pair
    one = algorithm.learner_group
    before = numbers(one)
    first = play(algorithm)
    update(one, first, 0)
    update(two, first, 0)
    second = play(algorithm)  # by the same weights: stale by one now
    swapped = second[FRAGMENTS // 2 :] + second[: FRAGMENTS // 2]
    update(one, swapped, 1)
    update(two, swapped, 1)
    mixed = [*first[::2], *second[::2]]
    update(one, mixed, 2)
    update(two, mixed, 2)
    (alone,) = update(one, first, 3)
    results = update(two, first, 3)

    assert_equal(one, two)
    moved = numbers(one)
    assert (
        np.abs(moved["net.lastlayer.layer.weight"] - before["net.lastlayer.layer.weight"]).max()
        > 1e-3
    )
    for result in results:
        for name in ("explained_variance", "staleness_mean", "value_mean", "gradient_norm"):
            expected = alone["default_policy"][name]
            assert float(result["default_policy"][name]) == pytest.approx(float(expected), rel=1e-3)


@pytest.mark.slow
def test_a_bad_fragment_at_one_learner_is_left_out_by_both(pair):
    algorithm, two = pair
    one = algorithm.learner_group
    two.set_state(one.get_state())  # or the rounding of the updates before would add up
    fragments = play(algorithm)
    version = algorithm.learner_group.get_state()["learner"]["weights_seq_no"]
    fragments = [replace(f, weights_version_min=version) for f in fragments]
    fragments[0].reward[3] = np.nan
    fragments[1] = replace(fragments[1], weights_version_min=version - 9)
    (alone,) = update(one, fragments, 4)
    results = update(two, fragments, 4)
    for name in ("dropped_nonfinite", "dropped_stale"):
        assert float(alone["default_policy"][name]) == 1
        assert sum(float(result["default_policy"][name]) for result in results) == 1
    assert_equal(one, two)


@pytest.mark.slow
def test_two_learners_take_over_one_state_and_go_on_from_it(pair):
    """Each with moments of its own, though both were restored from one object in shared memory."""
    algorithm, two = pair
    one = algorithm.learner_group
    two.set_state(one.get_state())
    for iteration in (5, 6):
        fragments = play(algorithm)
        update(one, fragments, iteration)
        update(two, fragments, iteration)
    assert_equal(one, two)
    first, second = (
        result.get() for result in two.foreach_learner(lambda learner: learner.get_state())
    )
    for name, array in first["rl_module"]["default_policy"].items():
        np.testing.assert_array_equal(second["rl_module"]["default_policy"][name], array)


@pytest.mark.slow
def test_peers_learn_sums_and_items_and_keep_their_own(pair):
    def exchange(learner):
        peers = learner._peers
        own = torch.full((2,), float(peers.rank + 1))
        return peers.total(own).tolist(), own.tolist(), peers.gather(f"of {peers.rank}")

    _, two = pair
    first, second = (result.get() for result in two.foreach_learner(exchange))
    assert first == ([3.0, 3.0], [1.0, 1.0], ["of 0", "of 1"])
    assert second == ([3.0, 3.0], [2.0, 2.0], ["of 0", "of 1"])


def test_what_does_not_divide_is_refused(make_config):
    config = make_config(fragments_per_iteration=9).learners(num_learners=2)
    with pytest.raises(InvalidOptionsError) as caught:
        config.validate()
    assert len(caught.value.problems) == 2
    message = str(caught.value)
    assert "fragments_per_iteration must be a multiple of num_learners=2" in message
    assert "such as 10; got 9." in message
    assert "gradient_accumulation must" in message and "such as 2; got 1." in message
